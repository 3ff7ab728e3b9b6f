"""Parents, children and intersections that are worse than their parents, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import equipoise as eq
from equipoise.lattice import Group


@pytest.fixture(scope="module")
def table():
    return eq.measure("adult", sensitive_features=["sex", "race", "workclass"], label="income")


def groups_of(table):
    return {table.measured.group(line): line for line in range(len(table.measured.lattice))}


def without(group, name):
    return Group({k: v for k, v in group.items() if k != name})


def test_parents_leave_one_attribute_open(table):
    known = groups_of(table)
    for group, line in known.items():
        expected = {known[without(group, name)] for name in group} if len(group) > 1 else set()
        assert set(table.measured.parents(line).tolist()) == expected


def test_children_fix_one_attribute_more(table):
    known = groups_of(table)
    for group, line in itertools.islice(known.items(), 30):
        expected = {
            other
            for child, other in known.items()
            if len(child) == len(group) + 1 and group.matches(child)
        }
        assert set(table.measured.children(line).tolist()) == expected


def test_worse_than_all_parents(table):
    known, m = groups_of(table), table.measured
    for group, line in known.items():
        above = m.parents(line)
        for label in range(2):
            own, others = abs(m.ub[line, label]), np.abs(m.ub[above, label])
            expected = len(group) > 1 and np.isfinite(own) and bool((others < own).all())
            assert m.worse[line, label] == expected


def test_rows_are_chosen_by_words_attributes_and_evidence(table):
    chosen = table.filter(search="female BLACK", attributes=2, evident=True)
    patterns = {str(row.group) for row in chosen}
    assert patterns == {"sex=Female, race=Black"}
    assert all(row.evident for row in table.filter(evident=True))
    assert {len(row.group) for row in table.filter(attributes=3)} == {3}


def test_a_part_of_a_table_keeps_its_order(table):
    ordered = table.sort("n")
    rows = list(ordered)
    assert [row.to_dict() for row in ordered.part(5, 9)] == [row.to_dict() for row in rows[5:9]]
