"""No row, and no unit, is in two parts of a split."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.splits import cut
from equipoise.evaluation.training.versions import make_version, part_for_test, split
from equipoise.options.evaluation import FeatureOptions
from people import asked, people


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=80),
    st.lists(st.floats(0.05, 0.4), min_size=1, max_size=2),
    st.integers(0, 5),
)
def test_parts_are_whole_units_and_all_rows(units, shares, seed):
    units = np.array(units)
    parts = cut(units, shares, np.random.default_rng(seed))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(units)))
    there = [set(units[part].tolist()) for part in parts]
    assert sum(map(len, there)) == len(set(units.tolist()))


def test_shares_are_kept_where_units_are_rows():
    parts = cut(np.arange(1000), [0.2, 0.3], np.random.default_rng(1))
    assert [len(part) for part in parts] == [200, 300, 500]


def test_rows_come_at_random():
    first, _ = cut(np.arange(1000), [0.5], np.random.default_rng(1))
    assert abs(first.mean() - 500) < 60
    assert not np.array_equal(first, np.arange(500))


@pytest.mark.parametrize("version", ["u", "p", "n", "deleted", "duplicated"])
def test_nothing_trained_on_is_in_a_test(version):
    request = asked()
    material = prepare(people(), request, name="people")
    for repeat in range(3):
        parts = split(material, request, repeat, 20.0)
        made = make_version(material, request, version, parts)
        train, own = part_for_test(material, request, made, parts)
        aside = set(parts.test.tolist())
        assert not aside & set(parts.sample.tolist())
        assert not aside & set(parts.pool.tolist())
        assert not aside & set(train.tolist())
        assert not aside & set(own.tolist())
        assert not set(train.tolist()) & set(own.tolist())
        assert len(train) + len(own) == len(made.rows)


def test_people_with_several_rows_stay_together():
    table = people(300)
    table = table.append_column("person", pa.array([i // 3 for i in range(300)]))
    request = asked(keep_together="person")
    material = prepare(table, request, name="people")
    assert "person" not in material.features.names
    person = np.arange(300) // 3
    parts = split(material, request, 0, 30.0)
    made = make_version(material, request, "p", parts)
    train, own = part_for_test(material, request, made, parts)
    for one, other in ((parts.test, parts.sample), (parts.sample, parts.pool), (train, own)):
        assert not set(person[one].tolist()) & set(person[other].tolist())


def test_repeated_rows_stay_together():
    request = asked()
    material = prepare(people(200), request, name="people")
    parts = split(material, request, 0, 40.0)
    made = make_version(material, request, "duplicated", parts)
    assert len(set(made.rows.tolist())) < len(made.rows)
    train, own = part_for_test(material, request, made, parts)
    assert not set(train.tolist()) & set(own.tolist())


def test_sizes_share_the_test_and_nest():
    request = asked()
    material = prepare(people(), request, name="people")
    small, large = (split(material, request, 0, size) for size in (10.0, 30.0))
    assert small.test.tolist() == large.test.tolist()
    assert set(small.sample.tolist()) < set(large.sample.tolist())


def test_of_two_tables_the_second_lacks_the_rows_tested_on():
    first = people(200)
    second = pa.concat_tables([first, people(100, seed=5)])
    request = asked(versions=("before", "after"))
    material = prepare(first, request, name="people", after=second)
    assert material.n == 500
    parts = split(material, request, 0, 20.0)
    assert not material.is_after[parts.test].any()
    assert material.is_after[parts.pool].all()
    rows = material.features.values
    tested = {tuple(row) for row in rows[parts.test].tolist()}
    assert not tested & {tuple(row) for row in rows[parts.pool].tolist()}
    assert len(parts.pool) == 300 - len(parts.test)


def test_equal_rows_are_one_unit_however_they_are_written():
    columns = {"sex": ["w", "m", "w"], "hired": ["yes", "no", "yes"], "pay": ["1", "2.50", "1"]}
    numbers = {**columns, "pay": [1.0, 2.5, 3.0]}
    request = asked(versions=("before", "after"))
    material = prepare(pa.table(columns), request, name="texts", after=pa.table(numbers))
    first, second = material.unit[:3].tolist(), material.unit[3:].tolist()
    assert first[0] == first[2] == second[0]
    assert first[1] == second[1]
    assert second[2] not in first


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array(range(8), pa.date32()), pa.array(range(8), pa.date32()).cast(pa.timestamp("ns"))),
        (["2020-01-01", "2020-02-01"] * 4, pa.array([18262, 18293] * 4, pa.date32())),
        (pa.array([i / 10 for i in range(8)], pa.float32()), [i / 10 for i in range(8)]),
        (["?", "2", "3", "4"] * 2, [None, 2.0, 3.0, 4.0] * 2),
        (["", "a", "b", "c"] * 2, [None, "a", "b", "c"] * 2),
        ([-0.0, 1.0] * 4, [0, 1] * 4),
    ],
)
def test_a_row_is_known_in_whatever_types_a_file_has(one, other):
    plain = {"sex": ["w", "w", "m", "m"] * 2, "hired": ["yes", "no"] * 4, "n": range(8)}
    first, second = (pa.table({**plain, "x": column}) for column in (one, other))
    request = asked(versions=("before", "after"), na=("?",))
    material = prepare(first, request, name="t", after=second)
    assert material.unit[:8].tolist() == material.unit[8:].tolist()
    assert len(set(material.unit.tolist())) == 8


def test_columns_that_are_left_out_do_not_tell_rows_apart():
    first = people(50).append_column("id", pa.array(range(50)))
    second = people(50).append_column("id", pa.array(range(1000, 1050)))
    request = asked(versions=("before", "after"), reading=FeatureOptions(drop=("id",)))
    material = prepare(first, request, name="t", after=second)
    assert material.unit[:50].tolist() == material.unit[50:].tolist()


def test_a_sensitive_column_can_be_no_feature_of_two_tables():
    table = people(40)
    request = asked(
        versions=("before", "after"), reading=FeatureOptions(drop=("sex", "race")), also=("race",)
    )
    material = prepare(table, request, name="t", after=table)
    assert not {"sex", "race"} & {*material.features.names}
    assert len(material.groups) == 4


def test_a_column_of_lists_can_be_left_out_of_two_tables():
    table = people(20).append_column("lists", pa.array([[1]] * 20))
    request = asked(versions=("before", "after"), reading=FeatureOptions(drop=("lists",)))
    assert prepare(table, request, name="t", after=table).n == 40
    with pytest.raises(InputError, match=r"leave it out with `drop=.'lists'.`"):
        prepare(table, asked(versions=("before", "after")), name="t", after=table)


def test_people_and_equal_rows_are_units_together():
    table = people(60).append_column("id", pa.array([i // 2 if i % 3 else None for i in range(60)]))
    request = asked(versions=("before", "after"), keep_together="id")
    material = prepare(table, request, name="t", after=table)
    assert material.unit[:60].tolist() == material.unit[60:].tolist()
    assert material.unit[4] == material.unit[5]


def test_copies_of_a_tested_row_are_not_trained_on():
    first = people(200)
    second = pa.concat_tables([first, first, first])
    request = asked(versions=("before", "after"))
    material = prepare(first, request, name="people", after=second)
    parts = split(material, request, 0, 0.0)
    made = make_version(material, request, "after", parts)
    train, own = part_for_test(material, request, made, parts)
    rows = material.features.values
    told = [{tuple(row) for row in rows[part].tolist()} for part in (parts.test, train, own)]
    assert not told[0] & told[1]
    assert not told[0] & told[2]
    assert not told[1] & told[2]


def test_tables_that_write_labels_in_other_words_are_refused():
    first = people(100)
    other = first.set_column(
        5, "hired", pa.array(["Y" if h == "yes" else "N" for h in first["hired"].to_pylist()])
    )
    with pytest.raises(
        InputError, match=r"column 'hired' has different values in the second table \(N, Y\)"
    ):
        prepare(first, asked(versions=("before", "after")), name="people", after=other)


def test_truths_are_truths_in_any_file():
    first = pa.table({"sex": ["w", "m"] * 4, "x": range(8), "hired": ["True", "False"] * 4})
    second = first.set_column(2, "hired", pa.array([True, False] * 4))
    material = prepare(first, asked(versions=("before", "after")), name="t", after=second)
    assert material.labels == ("false", "true")


def test_rows_without_a_person_stand_alone():
    table = people(90).append_column(
        "person", pa.array([i // 3 if i < 60 else None for i in range(90)])
    )
    material = prepare(table, asked(keep_together="person"), name="people")
    assert len(set(material.unit.tolist())) == 20 + 30
