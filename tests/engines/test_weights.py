"""Weights of tables of databases: looked up where the rows are, the same as those of files."""

from __future__ import annotations

import contextlib
import uuid

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError

ODD = ["w", "O'Brien", "a,b", "1:w", "é'\"\\", None, "-", ""]
PEOPLE = pa.table(
    {
        "number": range(240),
        "sex": [ODD[i * i % 8] for i in range(240)],
        "pay": [[0.1, 2.5, -0.0, 1e23][i % 4] for i in range(240)],
        "hired": [None if i % 17 == 0 else i % 3 == 0 for i in range(240)],
    }
)
ASKED = {"sensitive_features": ["sex", "pay"], "label": "hired"}
BY_BINS = {"sensitive_features": ["pay"], "label": "hired", "bins": {"pay": [1.0]}, "na": ["w"]}


@contextlib.contextmanager
def in_postgres():
    with servers.new_database() as address:
        with psycopg.connect(address) as connection:
            connection.execute(
                "CREATE TABLE people (number int PRIMARY KEY, sex text, pay float8, hired boolean)"
            )
            with connection.cursor().copy("COPY people FROM STDIN") as copy:
                for line in PEOPLE.to_pylist():
                    copy.write_row(list(line.values()))
        yield lambda name: f"{address}&table={name}"


@contextlib.contextmanager
def in_spark():
    session = servers.spark_session()
    schema = f"weights_{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {schema}")
    session.createDataFrame(PEOPLE).write.saveAsTable(f"{schema}.people")
    yield lambda name: f"spark:{schema}.{name}"
    session.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture(params=["postgres", pytest.param("spark", marks=pytest.mark.spark)])
def table(request):
    with in_postgres() if request.param == "postgres" else in_spark() as named:
        yield named


@pytest.mark.slow
@pytest.mark.parametrize("asked", [ASKED, BY_BINS, ASKED | {"missing": "drop"}])
def test_the_same_weights_as_of_a_frame(table, asked):
    expected = eq.sample_weight(PEOPLE, **asked).tolist()
    weighed = eq.write_weights(table("people"), table("weighted"), **asked)
    written = shared_engine().read(locate(table("weighted"))).sort_by("number")
    assert written.column_names == [*PEOPLE.column_names, "weight"]
    assert written["weight"].to_pylist() == expected
    assert written["sex"].to_pylist() == PEOPLE["sex"].to_pylist()
    assert weighed.counts.n == sum(w > 0 for w in expected)


@pytest.mark.slow
def test_weights_stay_in_postgres(tmp_path):
    with in_postgres() as table:
        engine = PostgresEngine()
        eq.write_weights(table("people"), table("weighted"), **BY_BINS, engine=engine)
        assert engine.session(locate(table("people"))).fetched < 500
        engine.close()
        eq.write_weights(table("people"), table("weighted"), **ASKED)  # its own table is replaced
        eq.write_weights(table("people"), tmp_path / "weighted.parquet", **ASKED, column="w")
        assert pq.read_table(tmp_path / "weighted.parquet").column_names[-1] == "w"
        for output, column, sentence in (
            ("public.people", "weight", "is the table itself"),
            ("people", "weight", "is the table itself"),
            ("other", "Sex", "has a column 'Sex' already"),
        ):
            with pytest.raises(InputError, match=sentence):
                eq.write_weights(table("people"), table(output), **ASKED, column=column)
        with pytest.raises(InputError, match=r"have no order .* `eq.write_weights`"):
            eq.sample_weight(table("people"), **ASKED)
    with pytest.raises(InputError, match=r"is not a table of PostgreSQL or Spark"):
        eq.write_weights(PEOPLE, tmp_path / "x.csv", **ASKED)


@pytest.mark.slow
def test_only_tables_of_weights_are_replaced():
    with in_postgres() as table:
        people = table("people")
        eq.write_weights(people, table("weighted"), **ASKED)
        for other in ("public.weighted", "weighted&application_name=b"):
            with pytest.raises(InputError, match="is the table itself"):
                eq.write_weights(table("weighted"), table(other), **ASKED, column="second")
        asked = {"sensitive_features": ["pay"], "label": "hired"}
        done = eq.apply(
            eq.plan(people, **asked, allow="delete"), to=people, output=table("repaired")
        )
        for output in ("repaired", "repaired_changes"):
            with pytest.raises(InputError, match=r"does not begin with .*weights"):
                eq.write_weights(people, table(output), **ASKED)
        assert eq.count(table("repaired"), **asked).n == done.after.n
