"""One condition means the same in DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import datetime
import functools
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

import servers
from equipoise.counts import Condition, CountRequest
from equipoise.engines import engines
from equipoise.engines.filtering import restricted
from equipoise.engines.sources import locate
from equipoise.errors import InputError, Unsupported

DUCKDB = engines()["duckdb"](in_place=0)
REQUEST = CountRequest(sensitive=("id",), label="label")
ROWS = pa.table(
    {
        "id": range(12),
        "label": ["y"] * 12,
        "age": pa.array([9, 30, 31, 100, None, 0, -5, 30, 18, 18, 65, 30], pa.int64()),
        "pay": [1.5, 9.25, float("nan"), None, 30.75, -0.0, 100.0, 1e300, 0.1, 3.0, 30.0, 2.5],
        "short": pa.array(
            [0.1, 0.5, 1.5, None, 3.0, 0.1, 2.0, 0.3, 1e30, -1.0, 7.5, 0.2], pa.float32()
        ),
        "dept": [
            "Sales",
            "ops",
            None,
            "Ops",
            "ÄRZTE",
            "a_b",
            "a%b",
            "a\\b",
            "",
            "O'Brien",
            "z",
            "Z",
        ],
        "code": ["007", "12", "900", "1", "2", "3", "x", None, "10", "9", "08", "5"],
        "number": ["7", "12", "900", "1", "2", "3", "?", None, "10", "9", "8", "5"],
        "since": [f"20{i + 10}-0{i % 9 + 1}-11" for i in range(12)],
        "day": [datetime.date(2010 + i, i + 1, 28) if i % 4 else None for i in range(12)],
        "moment": [
            datetime.datetime.fromisoformat(f"2020-01-01T{i:02}:30") if i % 5 else None
            for i in range(12)
        ],
        "flag": [i % 3 == 0 if i % 4 else None for i in range(12)],
        "said": ["true", "False", "true", None, "false", "true", "true", "false"] + ["true"] * 4,
    }
)


@functools.cache
def database(name):
    if name == "postgres":
        return engines()[name](servers.postgres_address())
    return engines()[name](servers.spark_session())


CONDITIONS = (
    "age > 30",
    "AGE >= 31 -- of age",
    "age IS NULL",
    "age IS NOT NULL AND NOT age < 18",
    "pay < 30 AND dept = 'Sales'",
    "pay > 2 OR dept IN ('Ops', 'z')",
    "pay <> 3",
    "pay = 0.1",
    "short = 0.1",
    "short > 0.5",
    "short < pay",
    "age = 30.0 OR age = '18'",
    "age NOT IN (30, 18)",
    "age BETWEEN 9 AND 30.5",
    "age NOT BETWEEN '9' AND '30'",
    "since >= '2015-01-01'",
    "year(CAST(since AS DATE)) = 2019",
    "month(day) IN (2, 3)",
    "day > '2013-05-01'",
    "day = DATE '2011-02-28'",
    "day < moment",
    "moment >= '2020-01-01 03:00'",
    "moment > TIMESTAMP '2020-01-01 05:30:00'",
    "input.dept <> 'Sales' OR age = 9",
    "dept > 'Ops'",
    "dept BETWEEN 'A' AND 'a_b'",
    "dept LIKE 'a_b'",
    "dept LIKE 'a\\b'",
    "dept LIKE '%a%'",
    "dept NOT LIKE 'O%'",
    "dept = 'O''Brien'",
    "lower(CASE WHEN length(dept) = 3 THEN dept END) = 'ops' OR upper('é' || 'a') = 'b'",
    "upper(said) = 'TRUE'",
    "length(dept) = 3",
    "dept || '!' = 'z!'",
    "trim(dept) = ''",
    "coalesce(dept, 'none') = 'none'",
    "nullif(dept, 'z') IS NULL",
    "code = '007'",
    "code LIKE '0%'",
    "TRY_CAST(code AS INTEGER) > 8",
    "number > 8",
    "number LIKE '1%'",
    "pay > age",
    "age + 1 > 30 AND age * 2 < 100 - 1",
    "age / 2 > 15",
    "age % 4 = 2",
    "100 / age > 5",
    "abs(age) = 5",
    "-age = 5",
    "flag",
    "NOT flag",
    "flag = true OR flag IS NULL",
    "flag IS NOT DISTINCT FROM NULL",
    "age IS DISTINCT FROM 30",
    "said",
    "said = false",
    "CASE WHEN age > 30 THEN 'old' WHEN age IS NULL THEN NULL ELSE 'young' END = 'young'",
    "CASE dept WHEN 'Ops' THEN 1 ELSE 0 END = 1",
    "CAST(age AS VARCHAR) LIKE '3%'",
    "age = NULL OR id = 3",
)


def ids(engine, where):
    source = engine.settled(locate(ROWS, where=where))
    return source.where.types, sorted(engine.read(source)["id"].to_pylist())


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_means_the_same_in_postgres(where):
    assert ids(database("postgres"), where) == ids(DUCKDB, where)


@dataclass(frozen=True)
class Chosen:
    """A view of the rows of many conditions, each with the number of its condition."""

    conditions: tuple
    columns: tuple

    def query(self, d):
        types = {column.name: column.type for column in self.columns}
        chosen = [
            f"SELECT {i} AS c, id FROM {restricted(d, 'input', self.columns, how, d.attempted(how, types))} AS t"
            for i, how in enumerate(self.conditions)
        ]
        return " UNION ALL ".join(chosen)


@pytest.mark.spark
@pytest.mark.slow
def test_a_condition_means_the_same_in_spark():
    engine = database("spark")
    source = engine.settled(locate(ROWS, where="number > 8"))
    assert source.where.types == {"number": "BIGINT"}
    told = [DUCKDB.settled(locate(ROWS, where=where)).where for where in CONDITIONS]
    view = Chosen(tuple(told), engine.schema(locate(ROWS)))  # one query, since each takes seconds
    found = engine.read(replace(locate(ROWS), view=view))
    pairs = sorted(zip(*(found[name].to_pylist() for name in ("c", "id")), strict=True))
    for i, where in enumerate(CONDITIONS):
        assert [n for c, n in pairs if c == i] == ids(DUCKDB, where)[1], where


REFUSED = {
    "": "it is empty",
    "age >": "not a condition",
    "age": "its type is",
    "age > 1; DROP TABLE x": "syntax error",
    "count(*) > 1": "aggregates",
    "age > (SELECT 1)": "a subquery",
    "random() > 0.5": "may change",
    "agee > 3": "Did you mean 'age'",
    "code > 3": "cannot be evaluated",
    "age = 'old'": "cannot be evaluated",
    "CAST(code AS INTEGER) > 3": "cannot be evaluated",
    "age > 1000": "no row of",
}


@pytest.mark.parametrize(("where", "says"), REFUSED.items())
def test_bad_conditions_are_refused_as_in_duckdb(where, says):
    for engine in (DUCKDB, database("postgres")):
        with pytest.raises(InputError, match=says):
            engine.settled(locate(ROWS, where=where))


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("regexp_matches(dept, 'a')", "the function regexp_matches"),
        ("age // 2 = 15", "the sign //"),
        ("age % short > 0", "the sign %"),
        ("dept LIKE dept", "a pattern that is not a text in quotes"),
        ("dept LIKE 'a!%b' ESCAPE '!'", "the function like_escape"),
        ("day + 1 > DATE '2020-01-01'", r"the sign \+"),
        ("CAST(short AS HUGEINT) = 3", "a conversion of FLOAT to HUGEINT"),
    ],
)
def test_what_databases_may_read_otherwise_is_refused_by_name(where, what):
    DUCKDB.settled(locate(ROWS, where=where))  # which files can be filtered by
    with pytest.raises(Unsupported, match=f"has {what}.* only files can be filtered"):
        database("postgres").settled(locate(ROWS, where=where))


TYPED = pa.table(
    {
        "id": [0, 1, 2],
        "text": ["12", "2020-01-31", None],
        "whole": pa.array([1, 40_000, None], pa.int64()),
        "decimal": pa.array([1, 2, None], pa.decimal128(9, 2)),
        "short": pa.array([0.5, 2.0, None], pa.float32()),
        "double": pa.array([0.5, 2.0, None], pa.float64()),
        "boolean": [True, False, None],
        "date": [datetime.date(2020, 1, 31), datetime.date(2021, 2, 1), None],
        "moment": pa.array([0, 86_400_000_001, None], pa.timestamp("us")),
        "instant": pa.array([0, 86_400_000_001, None], pa.timestamp("us", "UTC")),
    }
)
TYPES = {
    "text": "VARCHAR",
    "short": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL(9,2)",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "moment": "TIMESTAMP",
    "instant": "TIMESTAMPTZ",
    "small": "SMALLINT",
    "middle": "INTEGER",
    "whole": "BIGINT",
    "huge": "HUGEINT",
}
CONVERTED = {
    "text": set(TYPES),
    "whole": {"huge", "double", "text"},
    "date": {"moment", "text"},
    "moment": {"date", "text"},
    "boolean": {"text"},
}
"""What docs/sources.md says; a value of a type stays one."""


@pytest.mark.parametrize("column", [name for name in TYPED.column_names if name != "id"])
def test_conversions_are_those_of_the_page(column):
    done = set()
    for name, kind in TYPES.items():
        where = f"TRY_CAST({column} AS {kind}) IS NOT NULL OR id = 2"
        try:
            found = ids_of(database("postgres"), where)
        except Unsupported as error:
            assert "a conversion of" in str(error)  # noqa: PT017 (all of them are asked for)
        else:
            assert found == ids_of(DUCKDB, where), where
            done.add(name)
    assert done == CONVERTED.get(column, set()) | {column}


@pytest.mark.parametrize("function", ["year", "month", "day"])
def test_parts_are_those_of_dates_and_of_moments_without_a_time_zone(function):
    for column in ("date", "moment"):
        where = f"{function}({column}) = {function}(CAST('2020-01-31' AS DATE)) OR id = 1"
        assert ids_of(database("postgres"), where) == ids_of(DUCKDB, where)
    with pytest.raises(Unsupported, match=f"the function {function}"):
        ids_of(database("postgres"), f"{function}(instant) = 1 OR id = 1")


def ids_of(engine, where):
    source = engine.settled(locate(TYPED, where=where))
    return sorted(engine.read(source)["id"].to_pylist())


@pytest.mark.slow
def test_upper_case_of_other_alphabets_is_right_or_refused():
    """It depends on the language of a database whether it knows it."""
    where = "lower(dept) = 'ärzte'"
    assert ids(DUCKDB, where)[1] == [4]
    utf8 = "TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'"
    with servers.new_database(utf8) as address, closing(engines()["postgres"](address)) as engine:
        assert ids(engine, where)[1] == [4]
    plain = "TEMPLATE template0 LOCALE 'C'"
    with servers.new_database(plain) as address, closing(engines()["postgres"](address)) as engine:
        with pytest.raises(InputError, match="cannot be evaluated"):
            ids(engine, where)
        assert ids(engine, "lower(code) = 'x'")[1] == [6]


def test_a_settled_condition_applies_to_other_tables_and_to_counts():
    engine = database("postgres")
    settled = DUCKDB.settled(locate(ROWS, where="number > 8")).where
    assert settled.types == {"number": "BIGINT"}
    other = {"id": ["a", "b", "c"], "label": ["y"] * 3, "number": ["9.5", "unknown", "30.0"]}
    assert engine.counts(locate(other, where=settled), REQUEST).n == 1
    first = {**other, "number": ["9", "30", "4"]}
    assert engine.counts(locate(first, where="number > 8"), REQUEST).n == 2
    assert engine.profile(locate(first, where="number > 8")).rows == 2
    nothing = engine.counts(locate(first, where="number > 8"), REQUEST)
    chosen = engine.rows(locate(first, where="number > 8"), REQUEST, nothing, located=True)
    assert sorted(chosen["id"].to_pylist()) == ["a", "b"]
    assert engine.schema(locate(first, where="number > 8")) == engine.schema(locate(first))


def test_columns_that_a_condition_does_not_name_stay_as_they_are():
    engine = database("postgres")
    edited = Condition("agee > 3", {"age": "BIGINT"})
    with pytest.raises(InputError, match="Did you mean 'age'"):
        engine.counts(locate(ROWS, where=edited), REQUEST)
