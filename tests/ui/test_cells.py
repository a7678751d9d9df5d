"""What Python hands to the table of cells, and the words where it cannot be made."""

import json

import numpy as np
import pytest

from gptviz.ui.components.cells import Table, encode


def table(**changes) -> Table:
    given = dict(
        rows=["0 ·a", "1 <b>"],
        columns=["embed", "block 0", "block 1"],
        text=[["a", "b", "c"], ["<i>", "$5", "\ud800"]],
        values=[["1", "2", "3"], ["4", "5", "6"]],
        levels=np.array([[0, 1, 2], [2, 1, 0]], np.uint8),
        colours=["#ffffff", "#aaaaaa", "#000000"],
        measure="rank",
        low="1",
        high="9",
    )
    return Table(**given | changes)


def test_a_table_arrives_as_it_was_given():
    given = json.loads(encode(table(), {"selected": (1, 2), "height": 480}))
    assert given["text"] == [["a", "b", "c"], ["<i>", "$5", "\ud800"]]
    assert given["levels"] == [[0, 1, 2], [2, 1, 0]]
    assert (given["selected"], given["height"], given["measure"]) == ([1, 2], 480, "rank")


@pytest.mark.parametrize("name", ["text", "values"])
def test_every_row_has_a_cell_for_every_column(name):
    with pytest.raises(ValueError, match=f"{name} must have 2 rows of 3 cells"):
        table(**{name: [["a", "b", "c"], ["a"]]})


@pytest.mark.parametrize("levels", [np.zeros((2, 2), np.uint8), np.zeros((2, 3))])
def test_levels_are_whole_numbers_one_for_each_cell(levels):
    with pytest.raises(ValueError, match="levels must be whole numbers"):
        table(levels=levels)


@pytest.mark.parametrize("level", [3, -1])
def test_a_level_without_a_colour_is_refused(level):
    with pytest.raises(ValueError, match="3 colours"):
        table(levels=np.full((2, 3), level))
