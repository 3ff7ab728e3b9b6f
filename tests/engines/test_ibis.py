"""Tables of ibis are taken as their connection and query, and never read whole."""

from __future__ import annotations

import re

import pytest

import equipoise as eq
import servers
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.sources import locate
from equipoise.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of ibis, which calls DuckDB
ASKED = {"sensitive_features": ["sex"], "label": "hired"}
ROWS = "SELECT i AS number, CASE WHEN i % 2 = 0 THEN 'w' ELSE 'O''Brien' END AS sex, i % 3 = 0 AS hired FROM "


@pytest.fixture(scope="module")
def ibis():
    import ibis  # which takes a second, and other tests do not need

    return ibis


@pytest.fixture(scope="module")
def in_duckdb(ibis):
    connection = ibis.duckdb.connect()
    connection.con.execute(f"CREATE TABLE people AS {ROWS} range(600) AS t(i)")
    return connection.table("people")


def require_measured(table) -> None:
    some = table.filter(table.number < 100)
    counts = eq.count(some, **ASKED)
    assert (counts.n, counts.of("sex=O'Brien")) == (100, 50)
    assert eq.count(table, **ASKED, where="number < 100") == counts
    assert eq.count(table, **ASKED, sql="SELECT * FROM input WHERE number < 100") == counts
    assert eq.measure(some, **ASKED).counts == counts


@pytest.fixture
def unread(monkeypatch, ibis):
    """Let ibis hand out no rows."""

    def refuse(*_, **__):
        raise AssertionError("rows of the table were read through ibis")

    for name in ("execute", "to_pyarrow", "to_pandas", "to_pyarrow_batches", "__arrow_c_stream__"):
        monkeypatch.setattr(ibis.expr.types.Table, name, refuse, raising=False)


@pytest.mark.slow
def test_in_duckdb(in_duckdb, unread):
    require_measured(in_duckdb)


@pytest.mark.slow
def test_in_postgres(unread, ibis):
    with servers.new_database() as address:
        socket = re.search(r"host=([^&]*)", address)[1]
        name = re.search(r"/(test_\d+_\d+)\?", address)[1]
        connection = ibis.postgres.connect(host=socket, user="postgres", database=name)
        connection.con.execute(f"CREATE TABLE people AS {ROWS} generate_series(0, 599) AS t(i)")
        connection.con.commit()
        table = connection.table("people")
        require_measured(table)
        engine, source = PostgresEngine(), locate(table)
        plan = eq.plan(table, **ASKED, engine=engine, allow="delete", tolerance=0.01)
        assert plan.counts.n == 600
        assert engine.session(source).fetched < 1000
        with pytest.raises(InputError, match="'nosuch' not found"):
            eq.measure(table, sensitive_features=["nosuch"], label="hired")
        connection.disconnect()


@pytest.mark.spark
def test_in_spark(unread, ibis):
    session = servers.spark_session()
    session.sql(f"{ROWS} (SELECT id AS i FROM range(600))").createOrReplaceTempView("ibis_people")
    zone = session.conf.get("spark.sql.session.timeZone")
    table = ibis.pyspark.connect(session).table("ibis_people")
    session.conf.set("spark.sql.session.timeZone", zone)  # which ibis has changed
    require_measured(table)
    session.catalog.dropTempView("ibis_people")


@pytest.mark.slow
def test_others_are_refused(ibis):
    unbound = ibis.table({"sex": "string", "hired": "string"}, name="people")
    with pytest.raises(InputError, match="the ibis table cannot be written as a query"):
        eq.measure(unbound, **ASKED)

    class Backend:
        name = "bigquery"

        def compile(self, table) -> str:
            return "SELECT 1"

    other = type("Table", (), {"__module__": "ibis.expr", "get_backend": lambda _: Backend()})()
    with pytest.raises(InputError, match=r"on the backend 'bigquery'; .* Give its rows"):
        eq.measure(other, **ASKED)
