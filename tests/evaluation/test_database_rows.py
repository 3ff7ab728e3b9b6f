"""Evaluations of tables of databases: few columns and a sample travel, the same from every engine."""

from __future__ import annotations

import contextlib
import uuid

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import equipoise as eq
import servers
from equipoise.counts import CountRequest
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation import evaluate, reading
from equipoise.evaluation.reading import read_rows

RANDOM = np.random.default_rng(4)
N = 4000
WOMAN = RANDOM.random(N) < 0.4
AGE = RANDOM.integers(18, 70, N)
PEOPLE = pa.table(
    {
        "sex": np.where(WOMAN, "w", "m"),
        "age": AGE,
        "hired": np.where(
            RANDOM.random(N) < np.where(WOMAN, 0.3, 0.5) + (AGE - 44) / 100, "yes", "no"
        ),
        "notes": ["a long text that no model needs " * 4] * N,
    }
)
ASKED = {"sensitive_features": ["sex"], "label": "hired"}
REQUEST = CountRequest(sensitive=("sex",), label="hired")
FEW = {"models": "logistic", "versions": ["u", "p"], "repeats": 2, "jobs": 1, "drop": ["notes"]}


@contextlib.contextmanager
def in_postgres():
    with servers.new_database() as address:
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE people (sex text, age int, hired text, notes text)")
            with connection.cursor().copy("COPY people FROM STDIN") as copy:
                for line in PEOPLE.to_pylist():
                    copy.write_row(list(line.values()))
        yield f"{address}&table=people"


@contextlib.contextmanager
def in_spark():
    session = servers.spark_session()
    name = f"people_{uuid.uuid4().hex}"
    session.createDataFrame(PEOPLE).repartition(3).write.saveAsTable(name)
    yield f"spark:{name}"
    session.sql(f"DROP TABLE {name}")


@pytest.fixture(params=["postgres", pytest.param("spark", marks=pytest.mark.spark)])
def table(request):
    with in_postgres() if request.param == "postgres" else in_spark() as address:
        yield address


@pytest.mark.slow
def test_the_same_sample_from_every_engine(table):
    asked = {"drop": ["notes"], "max_rows": 500, "seed": 3}
    found = read_rows(locate(table), REQUEST, shared_engine(), **asked)
    assert found.given == N
    assert found.rows.column_names == ["sex", "age", "hired"]
    local = reading._sampled_rows(
        locate(PEOPLE), REQUEST, DuckDBEngine(), ["sex", "age", "hired"], 500, 3
    )
    assert found.rows.to_pydict() == local.rows.to_pydict()
    other = read_rows(locate(table), REQUEST, shared_engine(), **(asked | {"seed": 4}))
    assert other.rows.to_pydict() != found.rows.to_pydict()
    everything = read_rows(locate(table), REQUEST, shared_engine())
    assert sorted(everything.rows["age"].to_pylist()) == sorted(AGE.tolist())


@pytest.mark.slow
def test_models_of_a_table_of_a_database(table):
    result = eq.evaluate(table, **ASKED, **FEW, max_rows=1500)
    (study,) = result.studies
    assert (study["rows"], study["rows_given"]) == (1500, N)
    assert "The table has 4,000 rows; 1,500 were used." in result.sentences
    assert result.studies == eq.evaluate(table, **ASKED, **FEW, max_rows=1500).studies


@pytest.mark.slow
def test_few_bytes_travel():
    with in_postgres() as address:
        engine = PostgresEngine()
        source = locate(address)
        read_rows(source, REQUEST, engine, drop=["notes"], max_rows=400)
        assert engine.session(source).fetched < 10_000
        read_rows(source, REQUEST, engine, max_rows=400)
        assert engine.session(source).fetched > 50_000
        engine.close()


@pytest.mark.slow
def test_large_tables_are_sampled_by_default(monkeypatch):
    monkeypatch.setattr(reading, "MOST_ROWS", 900)
    with in_postgres() as address:
        found = eq.compare_missing(
            address,
            **ASKED,
            methods="group,drop",
            sql="SELECT CASE WHEN age > 25 THEN sex END AS sex, age, hired FROM input",
        )
        assert (found.n, found.table_rows) == (900, N)
        with pytest.raises(ColumnNotFound, match="'nosuch' not found"):
            eq.evaluate(address, **ASKED, drop=["nosuch"])
        with pytest.raises(InputError, match="missing"):
            eq.evaluate(
                address,
                **ASKED,
                missing="raise",
                sql="SELECT CASE WHEN age > 25 THEN sex END AS sex, age, hired FROM input",
            )


HOLES = (
    "SELECT CASE WHEN age > 30 THEN sex END AS sex, age, CASE WHEN age % 7 > 0 THEN hired END AS hired "
    "FROM input"
)
MISSING_ASKED = ASKED | {"methods": "group,drop", "sql": HOLES, "max_rows": 700}


@pytest.mark.slow
@pytest.mark.parametrize("missing_label", ["drop", "group"])
def test_rows_with_missing_values_are_set_aside_before_rows_are_drawn(missing_label):
    def told(found):
        return found.n, found.table_rows, found.incomplete, found.without_label

    asked = MISSING_ASKED | {"missing_label": missing_label}
    with in_postgres() as address:
        first, second = (
            eq.simulate_missing(data, **asked, repeats=1) for data in (address, PEOPLE)
        )
        assert told(first) == told(second)
        assert first.n == 700
        first, second = (eq.compare_missing(data, **asked) for data in (address, PEOPLE))
        assert (first.n, first.without_label) == (second.n, second.without_label)
        assert first.n == 700
        both = eq.compare_missing(address, **asked, treat_label=True)
        assert (both.n, both.without_label) == (700, 0)
        assert both.missing_values["hired"] > 50


@pytest.mark.slow
def test_two_tables_are_sampled_by_their_sizes(monkeypatch):
    read = []

    def kept(rows, request, *, name, after=None):
        read.extend((len(rows), len(after)))
        return prepare(rows, request, name=name, after=after)

    prepare = evaluate.prepare
    monkeypatch.setattr(evaluate, "prepare", kept)
    fewer = PEOPLE.filter(np.arange(N) % 4 == 0)
    asked = ASKED | FEW | {"versions": None, "max_rows": 800}
    with in_postgres() as address:
        result = eq.evaluate(address, fewer, **asked)
        assert read == [800, 200]
        assert [s["rows_given"] for s in result.studies] == [N + len(fewer)]
