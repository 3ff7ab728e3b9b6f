"""Rows that are there already: told row by row, by each of the policies."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.offers import fingerprints
from equipoise.lake.offers.duplicates import Known, alike_rows
from equipoise.lake.offers.fingerprints import RowHashes, value_hashes
from lakes import Plain

rows = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=10)


def hashes(found, names=("x", "y")):
    columns = zip(*found, strict=True) if found else [[] for _ in names]
    types = (pa.string(), pa.int64())
    arrays = [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)]
    return RowHashes.of(pa.table(dict(zip(names, arrays, strict=True))))


@pytest.mark.parametrize("policy", ["strict", "multiset", "key"])
@given(base=rows, tables=st.lists(rows, max_size=4), share=st.floats(0, 1))
def test_new_rows_are_those_told_one_by_one(policy, base, tables, share):
    known = Known(hashes(base), policy, ("x",) if policy == "key" else ())
    plain = Plain([("cell", *r) for r in base], policy)
    for table in tables:
        new = known.is_new(hashes(table))
        expected = plain.new([("cell", *r) for r in table], ["cell"], keep=False)["cell"]
        assert int(new.sum()) == expected
        taken = np.flatnonzero(new)[: round(share * new.sum())]
        known.add(hashes([table[i] for i in taken]))
        plain.there.update(
            ("cell", *table[i])[1] if policy == "key" else ("cell", *table[i]) for i in taken
        )


@pytest.mark.parametrize("policy", ["strict", "multiset", "key"])
@given(
    base=rows,
    tables=st.lists(
        st.tuples(rows, st.sampled_from([("x", "y"), ("y", "z"), ("x", "z")])), max_size=5
    ),
    data=st.data(),
)
def test_rows_that_are_compared_at_once_are_as_new_as_when_compared_each_time(
    policy, base, tables, data
):
    if policy == "key":
        tables = [(table, ("x", "y")) for table, _ in tables]
    there = [hashes(table, names) for table, names in tables]
    key = ("x",) if policy == "key" else ()
    at_once, each_time = (Known(hashes(base), policy, key) for _ in range(2))
    at_once.compare_all(there)
    for table in (*there, *there):
        lines = (
            data.draw(st.lists(st.integers(0, table.length - 1), unique=True))
            if table.length
            else []
        )
        some = table.take(np.array(sorted(lines), np.int64))
        new = at_once.is_new(some)
        assert new.tolist() == each_time.is_new(some).tolist()
        taken = some.take(np.flatnonzero(new)[::2])
        for known in (at_once, each_time):
            known.add(taken)


@pytest.mark.slow
@given(base=rows, tables=st.lists(rows, min_size=1, max_size=4))
def test_as_many_equal_rows_are_taken_as_the_table_with_the_most_has(base, tables):
    known = Known(hashes(base), "multiset")
    total = Counter(base)
    for table in tables:
        new = known.is_new(hashes(table))
        fresh = [r for r, is_new in zip(table, new.tolist(), strict=True) if is_new]
        total.update(fresh)
        known.add(hashes(fresh))
    most = Counter(base)
    for table in tables:
        most |= Counter(table)
    assert total == most


SAME = [
    ("39", 39),
    ("39.0", 39),
    ("+39", 39.0),
    ("3.9e1", 39),
    (" 39 ", "39"),
    ("5.", 5),
    (".5", 0.5),
    ("-0.0", 0),
    ("", None),
    (" ", None),
    (float("nan"), None),
    ("Ä", "ä "),
    ("true", True),
    (2**60 + 1, str(2**60 + 1)),
    (-(2**62), str(-(2**62))),
]
OTHER = [
    ("39", "39a"),
    ("007", "7a"),
    ("a", "b"),
    ("0", None),
    ("a b", "ab"),
    (2**60 + 1, 2**60 + 2),
    (str(2**60 + 1), 2**60),
    ("é", "e"),
    ("nan", None),
]


@pytest.mark.parametrize(
    ("one", "other", "same"), [*((*p, True) for p in SAME), *((*p, False) for p in OTHER)]
)
def test_values_are_compared_by_what_they_say(one, other, same):
    a, b = (RowHashes.of(pa.table({"x": [value, None]})).over(["x"])[0] for value in (one, other))
    assert bool(a == b) is same


TEXTS = ["", " no ", "Yes", "7", "07", "1.50", "3/4/2020", "20/4/2020", "1,500", "Ä", None]


@given(st.lists(st.sampled_from(TEXTS) | st.text(max_size=5), max_size=30), st.integers(1, 4))
def test_texts_have_the_same_hashes_in_small_and_in_large_tables(texts, most):
    column = pa.chunked_array([texts[:9], texts[9:]], pa.string())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprints, "_MOST_TEXTS", most)  # so that they are forgotten now and then
        few = value_hashes(column)
        patch.setattr(fingerprints, "_FEW", -1)
        assert value_hashes(column).tolist() == few.tolist()


def test_the_order_of_columns_is_no_matter_but_their_names_are():
    a = RowHashes.of(pa.table({"x": ["1"], "y": ["2"]}))
    assert a.over(["x", "y"]) == a.over(["y", "x"])
    swapped = RowHashes.of(pa.table({"x": ["2"], "y": ["1"]}))
    assert a.over(["x", "y"]) != swapped.over(["x", "y"])


def test_sources_that_share_few_columns_are_not_compared():
    base = RowHashes.of(pa.table({n: ["0"] for n in "abcd"}))
    known = Known(base)
    known.add(RowHashes.of(pa.table({"a": ["1"], "b": ["1"]})))
    other = RowHashes.of(pa.table({"b": ["1"], "c": ["1"]}))
    assert known.is_new(other).tolist() == [True]
    alike = RowHashes.of(pa.table({"a": ["1"], "b": ["1"], "c": ["1"]}))
    assert known.is_new(alike).tolist() == [False]


def test_columns_that_a_cell_is_made_of_do_not_make_rows_alike():
    base = RowHashes.of(pa.table({n: ["0"] for n in "sryab"}))
    one = RowHashes.of(pa.table({n: ["1"] for n in "srya"}))
    other = RowHashes.of(pa.table({n: ["1"] for n in "sryb"}))
    both = RowHashes.of(pa.table({n: ["1"] for n in "sryab"}))
    known = Known(base, cell=frozenset("sry"))
    assert alike_rows(known, [one, other]).tolist() == []
    assert alike_rows(known, [one, other, both]).tolist() == [[0, 2], [1, 2]]
    known.add(one)
    assert known.is_new(other).tolist() == [True]
    assert known.is_new(both).tolist() == [False]
    bare = RowHashes.of(pa.table({n: ["1"] for n in "sry"}))
    assert known.is_new(bare).tolist() == [False]  # it may be anyone of the cell


@pytest.mark.parametrize(
    ("policy", "key"),
    [("key", ()), ("strict", ("x",)), ("key", ("z",)), ("multiset", ("x",)), ("keys", ("x",))],
)
def test_a_key_belongs_to_its_policy_and_to_the_base(policy, key):
    with pytest.raises(InputError, match="key"):
        Known(hashes([("a", 1)]), policy, key)


def test_the_share_alike_by_chance_is_that_of_the_cells_in_the_base():
    base = hashes([("a", 1), ("a", 1), ("b", 1), ("b", 2), ("a", 3), ("a", 3)])
    cells = np.array([0, 0, 0, 0, -1, 1])
    assert Known(base).chance(base, cells, 3).tolist() == [0.5, 1.0, 0.0]
    assert Known(base, "key", ("x",)).chance(base, cells, 3).tolist() == [0, 0, 0]
    assert Known(hashes([])).chance(base, np.array([], int), 3).tolist() == [0, 0, 0]


SAME = [
    ("2021-03-25", "03/25/2021"),
    ("2021-03-25", "25.3.2021"),
    ("2021-03-25", "2021-03-25T00:00:00.000"),
    ("2021-03-25 14:30:00", "03/25/2021 2:30 PM"),
    ("1234.5", "1.234,5"),
    ("1234.5", "1,234.5"),
    ("0.5", "0,5"),
    ("YES", "y"),
    ("false", "N"),
]
OTHER = [
    ("2021-03-04", "03/04/2021"),  # which may be in April
    ("2021-04-03", "03/04/2021"),
    ("1234", "1,234"),  # which may be a little more than one
    ("1.234", "1,234"),
    ("2021-03-25", "2021-03-25 00:01:00"),
    ("yes", "no"),
]


@pytest.mark.parametrize(("ours", "theirs"), SAME)
def test_values_that_can_be_read_in_one_way_are_compared_by_what_they_say(ours, theirs):
    a, b = (RowHashes.of(pa.table({"x": [value]})).over(["x"])[0] for value in (ours, theirs))
    assert a == b


@pytest.mark.parametrize(("ours", "theirs"), OTHER)
def test_values_that_can_be_read_in_two_ways_are_not(ours, theirs):
    a, b = (RowHashes.of(pa.table({"x": [value]})).over(["x"])[0] for value in (ours, theirs))
    assert a != b
