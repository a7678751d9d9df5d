"""What the Overview draws, against the model itself."""

import numpy as np

import gptviz
from tests.figures.spec import array, read

from .conftest import figure, tile_header, tile_pixels

PROMPT = "The cat sat"


def test_every_stage_has_a_row_with_shape_and_parameters(open_page):
    at = open_page("overview", prompt=PROMPT)
    rows = tile_header(at, "pipeline")["rows"]
    assert [row["title"] for row in rows] == ["Embedding", "Block 0", "Block 1", "Block 2", "Block 3", "Output"]
    tokens = len(gptviz.load("stories").tokenizer.encode(PROMPT, bos=True))
    assert rows[1]["caption"] == f"({tokens}, 256) · 789,760 parameters"
    assert rows[0]["caption"] == f"({tokens}, 256) · 163,840 parameters"
    assert "tied" in rows[-1]["caption"]


def test_without_added_positions_there_is_no_position_picture(open_page):
    assert "pos" in tile_pixels(open_page("overview", prompt=PROMPT), "pipeline")
    assert "pos" not in tile_pixels(open_page("overview", prompt=PROMPT, encoding="none"), "pipeline")


def test_a_block_shows_every_head_its_ffn_and_the_stream(open_page):
    ids = [tile["id"] for tile in tile_header(open_page("overview", prompt=PROMPT), "pipeline")["rows"][2]["tiles"]]
    assert ids == ["1.0", "1.1", "1.2", "1.3", "ffn 1", "stream 1"]


def test_norms_are_those_of_the_stream(open_page):
    shown = array(read(figure(open_page("overview", prompt=PROMPT), "norms"))["data"][0]["z"])
    checkpoint = gptviz.load("stories")
    run = gptviz.trace(checkpoint.model, checkpoint.tokenizer.encode(PROMPT, bos=True))
    expected = [run["blocks.0.hook_resid_pre"], *(run[f"blocks.{i}.hook_resid_post"] for i in range(4))]
    assert np.allclose(shown, [x.norm(dim=-1).numpy() for x in expected], rtol=1e-4)


def test_the_parameters_of_the_rows_are_those_of_the_model(open_page):
    rows = tile_header(open_page("overview", prompt=PROMPT), "pipeline")["rows"]
    counts = [int(row["caption"].split(" · ")[1].split()[0].replace(",", "")) for row in rows]
    assert sum(counts) == sum(p.numel() for p in gptviz.load("stories").model.parameters())
