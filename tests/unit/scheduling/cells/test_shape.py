"""Leaves of a node: cells as masks, and the choice of leaves."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.scheduling.cells.shape import Shape, bits, lowest

SHAPES = [(), (4,), (2, 2), (2, 2, 2), (3, 2), (2, 4)]


def test_masks_are_the_cells_in_depth_first_order() -> None:
    shape = Shape((2, 2))
    assert shape.masks[1:] == [(1, 2, 4, 8), (0b0011, 0b1100), (0b1111,)]
    assert shape.sizes == [0, 1, 2, 4]


@pytest.mark.parametrize(("mask", "level"), [(0b1, 1), (0b11, 2), (0b110, 3), (0b1100, 2), (0b1001, 3)])
def test_the_lowest_cell_around_leaves(mask: int, level: int) -> None:
    assert Shape((2, 2)).level_of(mask) == level


@settings(max_examples=300, deadline=None)
@given(counts=st.sampled_from(SHAPES), data=st.data())
def test_chosen_leaves_are_free_and_as_close_together_as_any(counts: tuple[int, ...], data: st.DataObject) -> None:
    shape = Shape(counts)
    free = data.draw(st.integers(0, shape.full))
    count = data.draw(st.integers(1, shape.leaves))
    avoid = data.draw(st.integers(0, shape.full)) & ~free
    chosen = shape.choose(free, count, avoid)
    if free.bit_count() < count:
        assert chosen == 0
        return
    assert chosen.bit_count() == count
    assert not chosen & ~free
    sets = (sum(1 << leaf for leaf in leaves) for leaves in combinations(bits(free), count))
    assert shape.level_of(chosen) == min(shape.level_of(mask) for mask in sets)


def test_the_choice_keeps_away_from_what_is_avoided() -> None:
    shape = Shape((2, 2))
    assert shape.choose(0b1110, 1, avoid=0b0001) == 0b0100
    assert shape.choose(0b1110, 1) == 0b0010


def test_lowest_and_bits() -> None:
    assert lowest(0b11010, 2) == 0b01010
    assert bits(0b1011) == (0, 1, 3)
