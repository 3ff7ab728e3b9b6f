"""Which matches of columns are used without asking: what a header and the values may leave open."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from equipoise.engines.profiling import ColumnProfile, Profile, Profiler
from equipoise.lake.matching.columns.alignment import Alignment, align
from equipoise.lake.matching.columns.series import find_series
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.columns.wording import Level, compare_headers

ROWS = 400
SEXES = ["Male", "Female"]
DEPARTMENTS = ["Sales", "Finance", "Engineering", "Law", "Support", "Research"]


def people(seed: int) -> dict[str, list[str]]:
    """Rows of people, of whom one table is the base and another is matched with it."""
    rng = np.random.default_rng(seed)
    return {
        "sex": rng.choice(SEXES, ROWS, p=[0.6, 0.4]).tolist(),
        "department": rng.choice(DEPARTMENTS, ROWS).tolist(),
        "hired": rng.choice(["yes", "no"], ROWS, p=[0.3, 0.7]).tolist(),
        "age": rng.integers(18, 75, ROWS).astype(str).tolist(),
        "salary": rng.normal(60_000, 9_000, ROWS).round().astype(int).astype(str).tolist(),
        "absence": rng.poisson(40, ROWS).astype(str).tolist(),
    }


def profiled(rows: dict[str, list[str]]) -> Profile:
    profiler = Profiler(list(rows), ["VARCHAR"] * len(rows))
    profiler.add([pa.array(values, pa.string()) for values in rows.values()])
    return profiler.profile()


def named(rows: dict[str, list[str]], **headers: str) -> dict[str, list[str]]:
    return {headers.get(name, name): values for name, values in rows.items()}


def matched(base: dict[str, list[str]], table: dict[str, list[str]], *required: str) -> Alignment:
    known = profiled(base)
    values = {column.name: column.values or {} for column in known.columns}
    found = align(Wanted(known.columns, {name: values[name] for name in required}), profiled(table))
    assert found is not None
    return found


def certain(found: Alignment) -> dict[str, str]:
    return {n: m.source for n, m in found.columns.items() if n not in found.doubts}


# --- required columns under headers that say nothing ----------------------------------------------


def test_sexes_under_a_bare_code_are_certain_if_one_column_has_them():
    found = matched(people(1), named(people(2), sex="c7"), "sex")
    assert certain(found)["sex"] == "c7"


@pytest.mark.parametrize("required", ["department", "hired"])
def test_values_that_may_be_said_of_anything_do_not_tell_a_required_column(required):
    found = matched(people(1), named(people(2), **{required: "c7"}), required)
    assert required in found.doubts


def test_sexes_under_a_bare_code_are_open_if_two_columns_have_them():
    rows = named(people(2), sex="c7")
    found = matched(people(1), {**rows, "c8": rows["c7"][::-1]}, "sex")
    assert "sex" in found.doubts


def test_sexes_under_a_bare_code_are_open_if_two_columns_of_the_base_have_them():
    base = people(1)
    registered = [sex if i % 14 > 4 else "not told" for i, sex in enumerate(base["sex"])]
    found = matched({**base, "registered": registered}, named(people(2), sex="c7"), "sex")
    assert "registered" in found.doubts["sex"]


# --- headers that say more, or the same in another way --------------------------------------------


@pytest.mark.parametrize("prefix", ["src_", "T.", "hr-", "tbl "])
def test_a_prefix_of_all_columns_says_nothing(prefix):
    rows = people(2)
    found = matched(people(1), {prefix + name: values for name, values in rows.items()}, "hired")
    assert certain(found) == {name: prefix + name for name in rows}


@pytest.mark.parametrize("prefix", ["spouse_", "previous_", "average_", "household_"])
def test_a_prefix_that_speaks_of_something_else_is_a_doubt(prefix):
    table = {prefix + name: values for name, values in people(2).items()}
    assert certain(matched(people(1), table, "sex")) == {}


def test_two_prefixes_may_be_of_two_things():
    base, table = (
        {prefix + name: values for name, values in people(seed).items()}
        for seed, prefix in ((1, "crm_"), (2, "erp_"))
    )
    assert certain(matched(base, table, "crm_sex")) == {}


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("caploss", "capital_loss"),
        ("fnlwgt", "final weight"),
        ("hpw", "hours per week"),
        ("survey weight", "sampling_weight"),
        ("credit limit", "credit line"),
    ],
)
def test_contractions_and_listed_phrases_need_values_that_agree(short, long):
    assert compare_headers(short, long).level in (Level.LOOSE, Level.SYNONYMS)


@pytest.mark.parametrize(
    ("a", "b"),
    [("loss", "capital_loss"), ("age", "annual gross earnings"), ("weight", "final weight")],
)
def test_a_part_of_a_header_is_no_contraction(a, b):
    assert compare_headers(a, b).level == Level.OTHER


def test_many_numbers_spread_alike_make_up_for_a_further_word():
    found = matched(people(1), named(people(2), age="age_when_seen", sex="sex_when_seen"))
    assert certain(found)["age"] == "age_when_seen"
    assert "sex" in found.proposed


@pytest.mark.parametrize("header", ["first_salary", "gross_salary", "salary_limit", "net salary"])
def test_a_further_word_that_makes_another_figure_is_a_doubt(header):
    assert "salary" in matched(people(1), named(people(2), salary=header)).proposed


def test_a_further_word_is_a_doubt_if_the_numbers_differ_or_another_column_has_such():
    rows = named(people(2), age="age_when_seen")
    older = {**rows, "age_when_seen": [str(int(age) + 12) for age in rows["age_when_seen"]]}
    assert "age" not in certain(matched(people(1), older))
    assert "age" not in certain(matched(people(1), {**rows, "x": rows["age_when_seen"][::-1]}))


def test_a_generic_header_is_certain_only_by_many_values_that_no_other_column_has():
    rows = named(people(2), salary="value", sex="type", hired="status")
    found = matched(people(1), rows)
    assert certain(found)["salary"] == "value"
    assert "hired" not in certain(found)
    twice = {**rows, "amount": rows["value"][::-1]}
    assert "salary" not in certain(matched(people(1), twice))
    assert "sex" in matched(people(1), rows, "sex").doubts  # a required one is asked about


# --- series ---------------------------------------------------------------------------------------


def columns(*names: str) -> list[ColumnProfile]:
    return list(profiled({name: ["1", "2"] for name in names}).columns)


COUNTED = columns("bill_1", "bill_2", "bill_3", "bill_4", "bill_5", "bill_6")
DATED = columns("Bill Sep", "invoice_aug", "bill july", "BillJun", "bill.may", "previous_bill_apr")


def test_columns_that_are_counted_and_dated_in_one_order_are_one_series():
    pairs = [(i, i) for i in range(6)]
    assert find_series(pairs, COUNTED, DATED) == frozenset(pairs[:5])  # a previous one is another
    assert find_series(pairs, DATED, COUNTED) == frozenset(pairs[:5])


def test_what_does_not_fit_into_a_series_stays_out():
    pairs = [(0, 0), (1, 1), (2, 3), (3, 2), (4, 4), (5, 5)]
    assert find_series(pairs, COUNTED, DATED) == {(0, 0), (1, 1), (4, 4)}


@pytest.mark.parametrize("places", [[2, 0, 4, 1, 3, 5], [0, 1, 2]])
def test_few_or_disordered_columns_are_no_series(places):
    assert not find_series(list(enumerate(places)), COUNTED, DATED)


# --- tables of one schema -------------------------------------------------------------------------

DAYS = [f"2021-0{1 + i % 6}-1{i % 9}" for i in range(ROWS)]


def records(seed: int, **others: list[str]) -> dict[str, list[str]]:
    """Rows with columns of which another part of the same records has other values."""
    return {
        **people(seed),
        "date": DAYS,
        "state": ["Ohio", "Iowa"] * (ROWS // 2),
        "status": ["open", "shut"] * (ROWS // 2),
        "rate": [f"{i / 7:.3f}" for i in range(ROWS)],
        **others,
    }


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("date", [f"0{1 + i % 6}/1{i % 9}/2023" for i in range(ROWS)]),  # another year and format
        ("state", ["Utah"] * ROWS),  # of another place
        ("status", ["O", "S"] * (ROWS // 2)),  # otherwise spelled
        ("rate", [f"{i / 7:.3f}".replace(".", ",") for i in range(ROWS)]),  # with a decimal comma
        ("age", [str(61 + i % 14) for i in range(ROWS)]),  # of older people
    ],
)
def test_other_values_do_not_contradict_the_same_header_in_a_table_of_one_schema(column, values):
    table = records(2, **{column: values})
    assert certain(matched(records(1), table, "sex"))[column] == column
    # The same column in a table that has little else in common is asked about.
    renamed = {name: f"{name} of the spouse" for name in table if name not in {"sex", column}}
    assert column not in certain(matched(records(1), named(table, **renamed), "sex"))


def test_another_kind_of_values_contradicts_the_same_header_in_a_table_of_one_schema():
    table = records(2, rate=["high", "low"] * (ROWS // 2), date=["Monday", "Sunday"] * (ROWS // 2))
    found = matched(records(1), table, "sex")
    assert {"rate", "date"} <= found.proposed.keys()
    assert "holds another kind of values" in found.proposed["rate"].doubt


def test_headers_that_say_nothing_make_no_schema():
    def coded(rows):
        return {"sex": rows["sex"]} | {f"v{i}": v for i, v in enumerate(list(rows.values())[1:])}

    table = coded(records(2, age=[str(90 + i % 9) for i in range(ROWS)]))
    assert "v2" not in certain(matched(coded(records(1)), table, "sex"))
