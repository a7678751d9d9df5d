"""The one place where colours live: roles, scales and the Plotly template, for light and dark.

A theme is "light" or "dark"; `.streamlit/config.toml` repeats the surfaces, and a test compares
the two. Knows nothing of what is drawn.
"""

import functools
from collections.abc import Sequence
from typing import Any, Literal

import plotly.graph_objects as go

from gptviz.figures.oklab import blend, hue_circle
from gptviz.figures.text import literal, number, shortened, tex

__all__ = [
    "CONFIG",
    "MONOSPACE",
    "ROLES",
    "SURFACES",
    "colorscale",
    "colour",
    "diverging",
    "figure",
    "head_colours",
    "literal",
    "number",
    "ramp",
    "shortened",
    "surface",
    "template",
    "tex",
    "tint",
]

Theme = Literal["light", "dark"]

SANS_SERIF = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# After Okabe and Ito's palette. Each is moved in lightness until it has a contrast of 3 against
# its background and stays apart from the others under deuteranopia and protanopia.
ROLES = {
    "light": {
        "attention": "#0072B2",
        "feed_forward": "#C25700",
        "token": "#029B70",
        "position": "#D772A5",
        "residual": "#6B7280",
        "logits": "#C48708",
        "generated": "#2E9DD7",
    },
    "dark": {
        "attention": "#2D99E3",
        "feed_forward": "#ED742A",
        "token": "#30B487",
        "position": "#E197BE",
        "residual": "#7E8AA0",
        "logits": "#F6AE28",
        "generated": "#87D2FF",
    },
}

SURFACES = {
    "light": {
        "background": "#FFFFFF",
        "raised": "#F5F6F8",
        "text": "#1F2933",
        "muted": "#5B6673",
        "line": "#D9DEE4",
        "hatch": "#DDE2E8",
    },
    "dark": {
        "background": "#13161B",
        "raised": "#1D2129",
        "text": "#E6E9ED",
        "muted": "#9BA5B1",
        "line": "#343B45",
        "hatch": "#2B313A",
    },
}

# The mode bar keeps export, zoom's way back and nothing else.
CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["zoom", "pan", "zoomIn", "zoomOut", "autoScale", "select", "lasso"],
    "toImageButtonOptions": {"format": "png", "scale": 3},
}


def colour(role: str, theme: Theme) -> str:
    """The hex colour of a role, such as "attention"."""
    return ROLES[theme][role]


def surface(name: str, theme: Theme) -> str:
    """The hex colour of a part of the page: background, raised, text, muted, line, hatch."""
    return SURFACES[theme][name]


@functools.cache
def ramp(role: str, theme: Theme, steps: int = 17) -> list[str]:
    """`steps` hex colours from the background (zero) to the role's colour, evenly spaced to the eye.

    17 are enough for Plotly, which fills in between; a canvas asks for 255.
    """
    return blend([surface("background", theme), colour(role, theme)], steps)


def tint(role: str, theme: Theme) -> list[str]:
    """The part of a ramp on which text can be printed."""
    return ramp(role, theme)[:10]


@functools.cache
def diverging(theme: Theme, steps: int = 17) -> list[str]:
    """`steps` hex colours from blue (negative) over the background (zero) to vermilion; odd steps."""
    ends = colour("attention", theme), colour("feed_forward", theme)
    return blend([ends[0], surface("background", theme), ends[1]], steps)


def head_colours(n: int) -> list[str]:
    """n hex colours of equal lightness and evenly spaced hue, readable on both backgrounds."""
    return hue_circle(n, lightness=0.65, chroma=0.11)


def colorscale(colours: list[str]) -> list[list]:
    """Plotly's form of evenly spaced colours: [[0, first], ..., [1, last]]."""
    return [[at / (len(colours) - 1), shade] for at, shade in enumerate(colours)]


def figure(traces: Sequence[dict[str, Any]], layout: dict[str, Any], theme: Theme) -> go.Figure:
    """A figure of traces in Plotly's own form ({"type": "bar", ...}) over the theme's template.

    Plotly does not check the properties, which takes 20 ms a figure: the tests check those of every figure instead.
    """
    return go.Figure(data=list(traces), layout={"template": template(theme), **layout}, _validate=False)


@functools.cache
def template(theme: Theme) -> dict[str, Any]:
    """What every figure shares: transparent, the system's font, an 8-pixel rhythm, no grid."""
    return {"layout": _layout(theme)}


def _layout(theme: Theme) -> dict[str, Any]:
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": SANS_SERIF, "size": 13, "color": surface("text", theme)},
        "title": {"font": {"size": 15}, "x": 0, "xanchor": "left", "xref": "paper", "yref": "container"},
        "margin": {"l": 64, "r": 24, "t": 32, "b": 48},
        "colorway": list(ROLES[theme].values()),
        "xaxis": _axis(theme),
        "yaxis": _axis(theme),
        "hoverlabel": _hover_label(theme),
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": surface("muted", theme),
            "activecolor": surface("text", theme),
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    }


def _axis(theme: Theme) -> dict:
    return {
        "showgrid": False,
        "zeroline": False,
        "linecolor": surface("line", theme),
        "ticks": "",
        "tickfont": {"size": 12, "color": surface("muted", theme)},
        "title": {"font": {"size": 13, "color": surface("muted", theme)}, "standoff": 8},
        "automargin": True,
    }


def _hover_label(theme: Theme) -> dict:
    return {
        "bgcolor": surface("raised", theme),
        "bordercolor": surface("line", theme),
        "font": {"family": SANS_SERIF, "size": 13, "color": surface("text", theme)},
        "align": "left",
        "namelength": -1,
    }
