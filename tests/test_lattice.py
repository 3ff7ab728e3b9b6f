"""The roll-up: three ways that must agree, and the one that is plainly right."""

from __future__ import annotations

import itertools
from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import lattice
from equipoise.errors import LatticeTooLarge
from equipoise.lattice import roll_up


@st.composite
def cubes(draw, max_axes=4, max_size=4, labels=3):
    """Finest groups, the sizes of the axes, and columns of rows and of weights."""
    sizes = tuple(draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_axes)))
    everything = list(itertools.product(*(range(d) for d in sizes)))
    cells = draw(st.lists(st.sampled_from(everything), min_size=1, max_size=20, unique=True))
    k = draw(st.integers(1, labels))
    line = st.lists(st.integers(0, 50), min_size=k, max_size=k).filter(any)
    rows = np.array([draw(line) for _ in cells], np.int64)
    weights = rows * 0.25
    return np.array(cells, np.int32), sizes, [rows, weights]


def brute_force(codes, sizes, columns, min_count=1, max_order=None):
    """Add every finest group to each of the groups it lies in."""
    found = defaultdict(lambda: [np.zeros(c.shape[1]) for c in columns])
    for line, cell in enumerate(codes.tolist()):
        for kept in itertools.product([True, False], repeat=len(sizes)):
            group = tuple(c if k else d for c, k, d in zip(cell, kept, sizes, strict=True))
            found[group] = [t + c[line] for t, c in zip(found[group], columns, strict=True)]
    del found[tuple(sizes)]
    return {
        group: [total.tolist() for total in totals]
        for group, totals in found.items()
        if totals[0].sum() >= min_count
        and sum(c != d for c, d in zip(group, sizes, strict=True)) <= (max_order or len(sizes))
    }


def as_mapping(found):
    lines = map(tuple, found.codes.tolist())
    totals = zip(*(c.tolist() for c in found.columns), strict=True)
    return dict(zip(lines, map(list, totals), strict=True))


def dense(codes, sizes, columns, **options):
    return roll_up(codes, sizes, columns, **options)


def without_dense(codes, sizes, columns, **options):
    """Sparse, or refining when there is something to prune."""
    with patch.object(lattice, "DENSE_ENTRIES", 0):
        return roll_up(codes, sizes, columns, **options)


def refining(codes, sizes, columns, **options):
    with patch.object(lattice, "DENSE_ENTRIES", 0), patch.object(lattice, "_KEY_LIMIT", 0):
        return roll_up(codes, sizes, columns, **options)


WAYS = [dense, without_dense, refining]


@pytest.mark.parametrize("way", WAYS)
@given(cube=cubes(), min_count=st.integers(1, 60), max_order=st.none() | st.integers(1, 4))
def test_every_way_gives_what_brute_force_gives(way, cube, min_count, max_order):
    found = way(*cube, min_count=min_count, max_order=max_order)
    assert as_mapping(found) == brute_force(*cube, min_count=min_count, max_order=max_order)


@given(cube=cubes())
def test_every_way_gives_the_groups_in_the_same_order(cube):
    found = [way(*cube) for way in WAYS]
    for other in found[1:]:
        assert other.codes.tolist() == found[0].codes.tolist()
        assert other.codes.dtype == found[0].codes.dtype == np.int32
        assert [c.dtype for c in other.columns] == [c.dtype for c in found[0].columns]


@pytest.mark.parametrize("way", WAYS)
@given(cube=cubes())
def test_orders_and_finding(way, cube):
    found = way(*cube)
    sizes = np.array(cube[1])
    assert found.orders.tolist() == [sum(g != sizes) for g in found.codes]
    assert found.find(found.codes[::-1]).tolist() == list(range(len(found)))[::-1]
    assert found.find(sizes[None].astype(np.int32)).tolist() == [-1]  # all rows are no group


@pytest.mark.parametrize("way", WAYS)
def test_a_lattice_without_groups(way):
    codes, columns = np.array([[0, 1]], np.int32), [np.array([[3, 4]])]
    found = way(codes, (2, 2), columns, min_count=8)
    assert len(found) == 0
    assert found.columns[0].shape == (0, 2)
    assert found.find(codes).tolist() == [-1]
    assert len(way(codes, (2, 2), columns, min_count=7)) == 3


@pytest.mark.parametrize("way", WAYS)
def test_no_rows_at_all(way):
    found = way(np.zeros((0, 2), np.int32), (2, 2), [np.zeros((0, 1), np.int64)])
    assert len(found) == 0


def test_a_key_space_wider_than_an_integer():
    """Forty attributes of five values: 6^40 groups could be, few are."""
    rng = np.random.default_rng(7)
    sizes = (5,) * 40
    codes = np.unique(rng.integers(0, 5, (30, 40)), axis=0).astype(np.int32)
    rows = rng.integers(1, 9, (30, 2))
    found = roll_up(codes, sizes, [rows], max_order=2)
    for group, totals in zip(found.codes, found.columns[0], strict=True):
        fixed = group != 5
        inside = (codes[:, fixed] == group[fixed]).all(axis=1)
        assert totals.tolist() == rows[inside].sum(axis=0).tolist()
    pairs = {
        (i, j, a, b)
        for i, j in itertools.combinations(range(40), 2)
        for a, b in set(map(tuple, codes[:, [i, j]].tolist()))
    }
    singles = {(i, a) for i in range(40) for a in codes[:, i].tolist()}
    assert len(found) == len(pairs) + len(singles)
    assert found.find(found.codes[[5, 0]]).tolist() == [5, 0]
    absent = np.full((1, 40), 5, np.int32)
    assert found.find(absent).tolist() == [-1]


def test_a_wide_key_space_without_pruning():
    sizes = (3_000_000_000,) * 2 + (4,)  # (3·10⁹)² · 4 is beyond 2⁶²
    sizes = tuple(min(d, 2**31 - 1) for d in sizes)
    codes = np.array([[0, 5, 1], [2**31 - 2, 5, 1]], np.int32)
    found = roll_up(codes, sizes, [np.array([[1], [2]])])
    assert as_mapping(found) == brute_force(codes, sizes, [np.array([[1], [2]])])


@pytest.mark.parametrize("way", [without_dense, refining])
def test_a_lattice_that_is_too_large_says_how_large_and_what_to_do(way):
    codes = np.array(list(itertools.product(range(3), repeat=6)), np.int32)
    columns = [np.ones((len(codes), 2), np.int64)]
    with pytest.raises(LatticeTooLarge) as caught:
        way(codes, (3,) * 6, columns, memory=10_000)
    text = str(caught.value)
    assert "6 attributes with 3 × 3 × 3 × 3 × 3 × 3 values" in text
    assert "groups, about" in text
    assert "GB may be used" in text
    assert "`max_order=2`" in text
    assert "`min_count=30`" in text
    assert text.endswith(".")
    assert isinstance(caught.value, (ValueError, MemoryError))
    found = way(codes, (3,) * 6, columns, memory=10**9)
    assert len(found) == 4**6 - 1


def test_pruning_saves_memory_as_promised():
    codes = np.array(list(itertools.product(range(6), repeat=6)), np.int32)
    columns = [np.ones((len(codes), 1), np.int64)]
    with patch.object(lattice, "DENSE_ENTRIES", 0):
        with pytest.raises(LatticeTooLarge):
            roll_up(codes, (6,) * 6, columns, memory=1_000_000)
        pruned = roll_up(codes, (6,) * 6, columns, memory=1_000_000, min_count=6**4)
    assert set(pruned.orders.tolist()) == {1, 2}


@given(cube=cubes(max_axes=3))
def test_every_group_is_the_sum_of_its_children(cube):
    found = as_mapping(roll_up(*cube))
    sizes = cube[1]
    for group, totals in found.items():
        for axis, size in enumerate(sizes):
            if group[axis] != size:
                continue
            children = [
                found[(*group[:axis], c, *group[axis + 1 :])]
                for c in range(size)
                if (*group[:axis], c, *group[axis + 1 :]) in found
            ]
            assert np.sum([c[0] for c in children], axis=0).tolist() == totals[0]
