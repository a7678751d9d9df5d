import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.oklab import contrast, from_lab, to_hex, to_lab, to_linear

THEMES = ["light", "dark"]

# Machado, Oliveira & Fernandes 2009, severity 1, on linear light.
VISION = {
    "usual": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


def seen(colour, vision):
    """OKLab of a colour as an eye of that kind sees it."""
    return to_lab(to_hex(np.asarray(VISION[vision]) @ to_linear(colour)))


def lightness(colours):
    return np.array([to_lab(c)[0] for c in colours])


def test_oklab_agrees_with_published_values():
    np.testing.assert_allclose(to_lab("#FFFFFF"), [1, 0, 0], atol=1e-4)
    np.testing.assert_allclose(to_lab("#FF0000"), [0.62796, 0.22486, 0.12585], atol=1e-4)
    assert to_hex(from_lab(to_lab("#3E99DC"))) == "#3E99DC"


def test_contrast_agrees_with_wcag():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#FFFFFF", "#767676") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_roles_stand_out_and_text_is_readable(theme):
    surfaces = style.SURFACES[theme]
    for role in style.ROLES[theme]:
        assert contrast(style.colour(role, theme), surfaces["background"]) >= 3, role
    for text, ground in itertools.product(("text", "muted"), ("background", "raised")):
        assert contrast(surfaces[text], surfaces[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", THEMES)
def test_roles_stay_apart_for_every_eye(theme, vision):
    roles = style.ROLES[theme].items()
    apart = {
        (a, b): np.linalg.norm(seen(x, vision) - seen(y, vision)) for (a, x), (b, y) in itertools.combinations(roles, 2)
    }
    closest = min(apart, key=apart.get)
    assert apart[closest] > 0.07, closest  # 0.02 is about what an eye can just tell


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", style.ROLES["light"])
def test_ramps_run_evenly_from_the_background_to_the_role(role, theme):
    colours = style.ramp(role, theme, 255)
    assert len(colours) == 255
    assert (colours[0], colours[-1]) == (style.surface("background", theme), style.colour(role, theme))
    steps = np.diff(lightness(colours))
    assert (steps <= 1e-3).all() or (steps >= -1e-3).all()
    labs = np.array([to_lab(c) for c in style.ramp(role, theme, 9)])
    strides = np.linalg.norm(np.diff(labs, axis=0), axis=1)
    assert strides.max() < 1.1 * strides.min()


@pytest.mark.parametrize("theme", THEMES)
def test_diverging_is_the_background_at_zero_and_as_strong_on_both_sides(theme):
    colours = style.diverging(theme)
    assert colours[len(colours) // 2] == style.surface("background", theme)
    assert (colours[0], colours[-1]) == (style.colour("attention", theme), style.colour("feed_forward", theme))
    low, middle, high = lightness([colours[0], colours[8], colours[-1]])
    assert abs(low - high) < 0.06
    assert abs(middle - low) > 0.3


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable_on_every_tint(theme):
    for shade in style.tint("attention", theme):
        assert contrast(style.surface("text", theme), shade) >= 4.5


@pytest.mark.parametrize("n", range(1, 33))
def test_heads_have_distinct_colours_of_equal_lightness(n):
    colours = style.head_colours(n)
    assert len(set(colours)) == n
    assert np.ptp(lightness(colours)) < 0.01
    for theme in THEMES:
        assert all(contrast(c, style.surface("background", theme)) >= 3 for c in colours)
    labs = np.array([to_lab(c) for c in colours])
    if n > 1:
        apart = np.linalg.norm(labs - np.roll(labs, 1, axis=0), axis=1)
        assert apart.max() < 1.2 * apart.min()


def test_no_heads_no_colours():
    assert style.head_colours(0) == []


@pytest.mark.parametrize("theme", THEMES)
def test_template_is_transparent_and_small(theme):
    template = style.template(theme)
    layout = template["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert layout["font"]["color"] == style.surface("text", theme)
    assert len(layout["colorway"]) == len(style.ROLES[theme])


@pytest.fixture(scope="module")
def config():
    return tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())


@pytest.mark.parametrize("theme", THEMES)
def test_the_apps_theme_and_the_figures_share_their_surfaces(config, theme):
    settings, surfaces = config["theme"][theme], style.SURFACES[theme]
    assert settings["backgroundColor"] == surfaces["background"]
    assert settings["secondaryBackgroundColor"] == surfaces["raised"]
    assert settings["textColor"] == surfaces["text"]
    assert settings["borderColor"] == surfaces["line"]
    assert settings["linkColor"] == style.colour("attention", theme)
    assert contrast(settings["primaryColor"], "#FFFFFF") >= 4
    assert contrast(settings["primaryColor"], surfaces["background"]) >= 4


def test_the_app_stays_on_this_machine_and_fetches_no_font(config):
    assert config["server"]["address"] == "127.0.0.1"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["theme"]["font"] == style.SANS_SERIF
    assert config["theme"]["codeFont"] == style.MONOSPACE
    assert "://" not in str(config)
