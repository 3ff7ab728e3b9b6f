"""Whether added rows are written as the base's are, told from the two tables alone."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.lake.verify.claims import Claims
from equipoise.lake.verify.columns import check_columns
from equipoise.lake.verify.tables import CheckedTable
from equipoise.lake.verify.views import RowComparison

ENGINE = DuckDBEngine()


class TableWithoutTypes(CheckedTable):
    """As of a CSV file."""

    has_types = False


def table(values, name="people.csv", *, dtype=None, made=TableWithoutTypes):
    source = locate(pa.table({"x": pa.array(values, dtype)}))
    columns = ENGINE.schema(source)
    return made(name, source, ENGINE, columns, None, None, "", RowComparison(columns))


def checked(held, added, *, kept=()):
    values = {is_kept: {"x": Counter()} for is_kept in (True, False)}
    for place, value in enumerate(added, len(held)):
        if value:
            values[place in kept]["x"][value] += 1
    new = table([*held, *added], "out.csv")
    return check_columns(table(held), new, Claims(values=values))


ISO = ["2021-03-25", "2021-04-01", "2020-12-31", None]
FINE = [
    (["1.5", "2", "1.5"], ["7", "-3.25", "1e3", "", None]),
    (["1,5", "2", "1,5"], ["1.234,5"]),
    (ISO, ["1999-12-31"]),
    (["25/03/2021", "01/02/2021"], ["02/01/2021"]),
    (["YES", "NO"], ["NO"]),
    (["17", "18", "19"], ["K-17"]),  # they may be names
    (["one text", "another one"], ["03/25/2021"]),
    (["1.5", "2", *["1.5"] * 200, "?"], ["?"]),  # the base has it, too
]
FOREIGN = [
    (["1.5", "2", "1.5"], ["1,5", "7"]),
    (["1.5", "2", "1.5"], ["much"]),
    (["100", "200", "100"], ["1,200"]),
    (ISO, ["03/25/2021"]),
    (ISO, ["2021-03-25 10:00:00"]),
    (["25/03/2021", "01/02/2021"], ["03/25/2021"]),
    (["3/25/2021", "1/2/2021"], ["25.3.2021"]),
    (["YES", "NO"], ["Y"]),
    (["YES", "NO"], ["yes"]),
    (["true", "false"], ["1"]),
]


@pytest.mark.parametrize(("held", "added"), FINE)
def test_values_that_read_as_those_of_the_base_hold(held, added):
    found = checked(held, added)
    assert found.holds
    assert not found.noted


@pytest.mark.parametrize(("held", "added"), FOREIGN)
def test_values_that_do_not_are_named_and_counted(held, added):
    found = checked(held, added)
    assert not found.holds
    assert found.sentence.startswith("The column 'x' of out.csv has 1 added value such as")
    asked = checked(held, added, kept=range(len(held), len(held) + len(added)))
    assert asked.holds
    assert asked.noted
    assert "'x' of out.csv has 1 added value" in asked.sentence
    first_kept = checked(held, [held[0], *added], kept=[len(held)])
    assert not first_kept.holds


def test_new_values_of_a_column_of_few_are_said_and_break_nothing():
    found = checked(["Ulm", "Bonn"] * 3, ["Kiel", "Kiel", "Ulm"])
    assert found.holds
    assert found.sentence.endswith("Columns of few values have new ones: x (2).")


@pytest.mark.parametrize(
    ("ours", "theirs", "holds"),
    [
        (pa.float64(), pa.string(), False),
        (pa.int64(), pa.float64(), False),
        (pa.int32(), pa.int64(), True),
        (pa.string(), pa.large_string(), True),
    ],
)
def test_a_column_keeps_its_type_where_files_have_types(ours, theirs, holds):
    old = table(
        [1, 2, 2] if ours != pa.string() else ["1", "2", "2"], dtype=ours, made=CheckedTable
    )
    values = (
        ["1", "2", "2"] if pa.types.is_string(theirs) or theirs == pa.large_string() else [1, 2, 2]
    )
    new = table(values, "out.parquet", dtype=theirs, made=CheckedTable)
    assert check_columns(old, new, Claims()).holds is holds
    # A CSV file has no types.
    as_csv = table(values, "out.csv", dtype=theirs)
    assert check_columns(old, as_csv, Claims()).holds is (holds or theirs == pa.string())
