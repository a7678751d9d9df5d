import tracemalloc

import numpy as np
import pytest

from gptviz.figures.pixels import max_pool, pool_by_size, quantise, quantise_signed, thumbnails


def test_quantise_is_monotone_and_uses_the_whole_range():
    values = np.linspace(0, 1, 1000)
    levels = quantise(values)
    assert levels.dtype == np.uint8
    assert (levels[0], levels[-1]) == (0, 254)
    assert (np.diff(levels.astype(int)) >= 0).all()
    assert len(np.unique(levels)) == 255


def test_255_is_for_masked_cells_alone():
    levels = quantise(np.array([[0.5, np.nan], [-np.inf, 2.0]]), maximum=1)
    np.testing.assert_array_equal(levels, [[127, 255], [255, 254]])


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.full((2, 2), -1.0)])
def test_nothing_above_zero_is_the_background(array):
    assert (quantise(array) == 0).all()


def test_an_array_without_numbers_is_masked():
    assert (quantise(np.full((3, 3), np.nan)) == 255).all()


@pytest.mark.parametrize("length", [65, 100, 128, 1000])
def test_pooling_keeps_a_lone_bright_cell(length):
    for row, column in [(0, 0), (length - 1, length - 1), (length // 3, length // 2)]:
        matrix = np.zeros((length, length), np.float32)
        matrix[row, column] = 0.9
        pooled = max_pool(matrix)
        assert pooled.shape == (64, 64)
        assert pooled[row * 64 // length, column * 64 // length] == np.float32(0.9)
        assert (pooled > 0).sum() == 1


def test_pooling_never_enlarges():
    matrix = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(max_pool(matrix), matrix)
    assert max_pool(np.zeros((3, 200)), size=50).shape == (3, 50)


def test_pooled_cells_are_masked_only_where_all_they_cover_is():
    matrix = np.where(np.triu(np.ones((128, 128), bool), 1), np.nan, 0.5)
    pooled = max_pool(matrix)
    np.testing.assert_array_equal(np.isnan(pooled), np.triu(np.ones((64, 64), bool), 1))


def test_all_heads_are_pooled_at_once():
    heads = np.random.default_rng(0).random((2, 3, 130, 130))
    pooled = max_pool(heads)
    assert pooled.shape == (2, 3, 64, 64)
    np.testing.assert_array_equal(pooled[1, 2], max_pool(heads[1, 2]))


def causal_heads(count: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Patterns (H, T, T), and where they may not look."""
    hidden = np.triu(np.ones((length, length), bool), 1)
    return np.where(hidden, 0, np.random.default_rng(0).random((count, length, length), np.float32)), hidden


@pytest.mark.parametrize("length", [1, 3, 64, 65, 200])
def test_thumbnails_are_each_heads_visible_cells_pooled(length):
    patterns, hidden = causal_heads(2, length)
    for pattern, thumbnail in zip(patterns, thumbnails(patterns, hidden), strict=True):
        np.testing.assert_array_equal(thumbnail, quantise(max_pool(np.where(hidden, np.nan, pattern)), 1))


@pytest.mark.parametrize("cell", [(1023, 0), (1023, 1023), (0, 0), (700, 333)])
def test_a_lone_bright_cell_survives_in_a_thumbnail(cell):
    patterns, hidden = np.zeros((2, 1024, 1024), np.float32), np.triu(np.ones((1024, 1024), bool), 1)
    patterns[1][cell] = 1
    dark, bright = thumbnails(patterns, hidden)
    assert bright[cell[0] // 16, cell[1] // 16] == 254
    assert np.isin(dark, (0, 255)).all()
    assert (bright == 254).sum() == 1


def test_thumbnails_take_less_room_than_their_layers_patterns():
    patterns, hidden = causal_heads(12, 512)
    tracemalloc.start()
    thumbnails(patterns, hidden)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < patterns.nbytes / 2


def test_signed_numbers_keep_zero_in_the_middle_and_their_ends():
    pixels = quantise_signed(np.array([[-2.0, 0.0], [1.0, -np.inf]]))
    assert pixels.tolist() == [[0, 127], [190, 255]]
    assert quantise_signed(np.zeros((2, 2))).tolist() == [[127, 127], [127, 127]]


def test_a_lone_negative_cell_survives_pooling():
    matrix = np.full((128, 128), 0.1)
    matrix[37, 91] = -5
    small = pool_by_size(matrix)
    assert small.shape == (64, 64)
    assert small[18, 45] == -5
    assert (np.delete(small.ravel(), 18 * 64 + 45) == 0.1).all()
