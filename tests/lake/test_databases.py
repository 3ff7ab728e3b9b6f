"""Plans carried out where the rows are: in PostgreSQL and in Spark, as with files."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers
from equipoise.engines.sources import locate
from equipoise.engines.stores.states import is_replaced
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound

PEOPLE = pa.table(
    {
        "number": range(120),
        "sex": ["Female"] * 50 + ["Male"] * 70,
        "pay": [i / 7 for i in range(120)],
        "hired": (["yes"] * 10 + ["no"] * 40) + (["yes"] * 40 + ["no"] * 30),
    }
)
MORE = pa.table(
    {
        "number": range(1000, 1200),
        "sex": ["Female"] * 100 + ["Male"] * 100,
        "pay": [i / 3 for i in range(200)],
        "hired": ["yes", "no"] * 100,
    }
)
ASKED = {"sensitive_features": ["sex"], "label": "hired"}


@contextlib.contextmanager
def in_postgres():
    with servers.new_database() as address:
        with psycopg.connect(address) as connection:
            for name, rows in (("people", PEOPLE), ("more", MORE)):
                connection.execute(
                    f"CREATE TABLE {name} (number bigint PRIMARY KEY, sex text NOT NULL, "
                    "pay double precision, hired text CHECK (hired IN ('yes', 'no')))".encode()
                )
                with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
                    for line in rows.to_pylist():
                        copy.write_row(list(line.values()))
        yield lambda name, more="": f"{address}&table={name}{more}"


@contextlib.contextmanager
def in_spark():
    session = servers.spark_session()
    schema = f"test_{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {schema}")
    for name, rows in (("people", PEOPLE), ("more", MORE)):
        session.createDataFrame(rows).write.saveAsTable(f"{schema}.{name}")
    try:
        yield lambda name, more="": f"spark:{schema}.{name}{more.replace('&', '?')}"
    finally:
        session.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture(params=["postgres", pytest.param("spark", marks=pytest.mark.spark)])
def database(request):
    with in_postgres() if request.param == "postgres" else in_spark() as table:
        yield table


def rows_of(address: str) -> Counter:
    from equipoise.engines.routing import shared_engine

    found = shared_engine().read(locate(address)).to_pylist()
    return Counter(tuple(sorted(row.items())) for row in found)


def do(table, *statements: str) -> None:
    with psycopg.connect(table("").partition("&table")[0]) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def in_files(tmp_path, plan) -> tuple[Counter, eq.Plan]:
    for name, rows in (("people", PEOPLE), ("more", MORE)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    done = eq.apply(
        plan,
        to=tmp_path / "people.parquet",
        pool=tmp_path / "more.parquet",
        output=tmp_path / "out.parquet",
    )
    return rows_of(str(tmp_path / "out.parquet")), done


@pytest.mark.parametrize("more", ["", "&id=number"])
@pytest.mark.parametrize("allow", ["add", "both"])
def test_a_plan_is_carried_out_in_the_database_as_with_files(database, tmp_path, allow, more):
    plan = eq.plan(database("people"), **ASKED, allow=allow)
    assert plan.counts == eq.plan(PEOPLE, **ASKED, allow=allow).counts
    done = eq.apply(
        plan, to=database("people", more), pool=database("more", more), output=database("out")
    )
    assert done.as_planned
    assert done.max_abs_ub_after == plan.certificate.max_abs_ub_after
    found = rows_of(database("out"))
    assert found.total() == done.n_rows
    expected, _ = in_files(tmp_path, plan)
    if not more:  # rows that are known by a key are chosen by it
        assert found == expected
    changes = rows_of(database("out_changes"))
    assert changes.total() == done.added + done.removed
    assert rows_of(database("people")) == rows_of(str(tmp_path / "people.parquet"))
    assert eq.count(database("out"), **ASKED) == done.after


def test_what_is_written_and_where_a_lake_is_has_a_name(tmp_path):
    with in_postgres() as table, psycopg.connect(table("").partition("&table")[0]) as connection:
        plan = eq.plan((connection, "people"), **ASKED)
        pair: Any = (connection, "out")
        address = r"address of a table such as postgresql://user@host/database\?table=people, not of the type tuple"
        with pytest.raises(InputError, match=f"`output` must be a file, or the {address}"):
            eq.apply(plan, to=(connection, "people"), pool=(connection, "more"), output=pair)
        with pytest.raises(InputError, match=f"`output` must be a file, or the {address}"):
            eq.repair((connection, "people"), tmp_path, pair, **ASKED)
        with pytest.raises(InputError, match=f"`output` must be a file, or the {address}"):
            eq.repair((connection, "people"), tmp_path, pair, plan="plan.json", **ASKED)
        with pytest.raises(InputError, match=f"`output` must be a file, or the {address}"):
            eq.write_weights((connection, "people"), pair, **ASKED)
        with pytest.raises(
            InputError, match=r"`places` must be .*\?schema=archive, not of the type Connection"
        ):
            eq.Lake((connection, "public"))
        with pytest.raises(InputError, match=r"`places` must be .*, not of the type int"):
            eq.Lake(["files", 3])


def test_only_counts_and_chosen_rows_come_from_postgres():
    from equipoise.engines.postgres import PostgresEngine

    with in_postgres() as table:
        with psycopg.connect(table("x").partition("&table")[0]) as connection:
            connection.execute(
                "INSERT INTO people SELECT 10000 + i, CASE i % 2 WHEN 0 THEN 'Male' ELSE 'Female' END, "
                "i, CASE i % 3 WHEN 0 THEN 'yes' ELSE 'no' END FROM generate_series(1, 100000) AS t(i)"
            )
        engine = PostgresEngine()
        plan = eq.plan(table("people"), **ASKED, engine=engine)
        done = eq.apply(
            plan,
            to=table("people"),
            pool=table("more"),
            output=table("out"),
            engine=engine,
            partial=True,
        )
        assert done.n_rows > 100_000
        (session,) = engine._sessions.values()
        assert 0 < session.fetched < 20_000
        engine.close()


def test_constraints_stay_and_a_failure_leaves_the_old_table():
    with in_postgres() as table:
        server = table("x").partition("&table")[0]
        plan = eq.plan(table("people"), **ASKED)
        eq.apply(plan, to=table("people"), pool=table("more"), output=table("out"))
        with psycopg.connect(server) as connection:
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("INSERT INTO out VALUES (-1, 'Female', 1, 'perhaps')")
            connection.rollback()
            with pytest.raises(psycopg.errors.UniqueViolation, match="out_pkey"):
                connection.execute("INSERT INTO out VALUES (0, 'Female', 1, 'yes')")
            connection.rollback()
            connection.execute("UPDATE more SET number = number - 1000")  # keys of the base
        before = rows_of(table("out"))
        with pytest.raises(InputError, match="duplicate key value violates unique constraint"):
            eq.apply(plan, to=table("people"), pool=table("more"), output=table("out"))
        assert rows_of(table("out")) == before
        with psycopg.connect(server) as connection:
            left = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^equipoise'")
            assert left.fetchall() == []


def test_the_table_itself_may_be_replaced_in_postgres():
    with in_postgres() as table:
        plan = eq.plan(table("people"), **ASKED, allow="delete")
        done = eq.apply(plan, to=table("people"), pool=None, output=table("people"))
        assert done.removed
        assert rows_of(table("people")).total() == len(PEOPLE) - done.removed
        assert eq.count(table("people"), **ASKED) == done.after


def test_a_table_with_the_name_of_the_output_is_replaced_in_postgres():
    with in_postgres() as table:
        plan = eq.plan(table("people"), **ASKED, allow="delete")
        with psycopg.connect(locate(table("people")).address.partition("&table=")[0]) as connection:
            connection.execute("CREATE TABLE own AS SELECT 1 AS kept")
        done = eq.apply(plan, to=table("people"), pool=None, output=table("own"))
        assert rows_of(table("own")).total() == len(PEOPLE) - done.removed


def test_rows_are_removed_from_queries_and_from_frames(database):
    part = "SELECT * FROM input WHERE number < 90"
    plan = eq.plan(database("people"), **ASKED, allow="delete", sql=part)
    done = eq.apply(plan, to=database("people"), pool=None, output=database("out"))
    assert (done.removed > 0, done.as_planned) == (True, True)
    plan = eq.plan(PEOPLE, **ASKED, allow="delete")
    done = eq.apply(plan, to=PEOPLE, pool=None, output=database("other"))
    assert (done.removed > 0, done.as_planned) == (True, True)
    assert rows_of(database("other")).total() == len(PEOPLE) - done.removed


def test_what_cannot_be_written(database):
    plan = eq.plan(database("people"), **ASKED)
    with pytest.raises(InputError, match="is the pool, which must not change"):
        eq.apply(plan, to=database("people"), pool=database("more"), output=database("more"))
    with pytest.raises(InputError, match="both the table to repair and the pool"):
        eq.apply(plan, to=database("people"), pool=database("people"), output=database("out"))
    with pytest.raises((SourceNotFound, InputError), match="nothing"):
        eq.measure(database("nothing"), **ASKED)


def never(*_, **__):
    pytest.fail("no work should begin")


@pytest.mark.slow
def test_a_table_of_ones_own_is_not_taken_for_a_list_of_changes(monkeypatch):
    with in_postgres() as table:
        plan = eq.plan(table("people"), **ASKED)
        own = eq.apply(plan, to=table("people"), pool=table("more"), output=table("own"))
        eq.apply(plan, to=table("people"), pool=table("more"), output=table("own"))
        assert rows_of(table("own_changes")).total() == own.added
        do(table, "COMMENT ON TABLE own_changes IS 'Mine'")
        monkeypatch.setattr("equipoise.engines.postgres.PostgresEngine.counts", never)
        with pytest.raises(InputError, match="own_changes exists and its comment does not begin"):
            eq.apply(plan, to=table("people"), pool=table("more"), output=table("own"))
        assert rows_of(table("own_changes")).total() == own.added


@pytest.mark.slow
def test_a_table_is_known_again_under_other_addresses():
    with in_postgres() as table:
        do(table, "UPDATE more SET number = number - 2000")  # so that the condition holds
        do(table, "CREATE SCHEMA archive", "CREATE TABLE archive.people AS TABLE more")
        people, more = table("people"), table("more")
        plan = eq.plan(people, **ASKED, where="number < 90")
        other = people.replace("postgresql://", "postgres://").replace("?", "?application_name=a&")
        with psycopg.connect(table("").partition("&table")[0]) as connection:
            for base in (people, (connection, "people"), table("public.people")):
                with pytest.raises(InputError, match="covers only a part"):
                    eq.apply(plan, to=base, pool=more, output=other)
                for pool in (other, (connection, "public.people")):
                    with pytest.raises(InputError, match="both the table to repair and the pool"):
                        eq.apply(plan, to=base, pool=pool, output=table("out"))
            with pytest.raises(InputError, match="more is the pool"):
                eq.apply(plan, to=people, pool=(connection, "more"), output=table("public.more"))
        assert rows_of(people).total() == len(PEOPLE)
        done = eq.apply(plan, to=people, pool=table("archive.people"), output=table("out"))
        assert done.added


@pytest.mark.slow
def test_a_query_may_read_a_table_that_it_does_not_name():
    with in_postgres() as table:
        plan = eq.plan(table("people"), **ASKED, allow="delete", sql="SELECT * FROM input")
        do(table, "CREATE TABLE mine (a int)")
        with pytest.raises(InputError, match="mine exists and its comment does not begin"):
            eq.apply(plan, to=table("people"), pool=None, output=table("mine"))
        for _ in range(2):  # what was made for a result may be replaced
            assert eq.apply(plan, to=table("people"), pool=None, output=table("out")).as_planned


@pytest.mark.spark
def test_nested_values_of_spark_are_refused_before_a_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(MORE, "more.parquet")
    lake = eq.Lake("more.parquet", index="index.duckdb")
    with in_spark() as table:
        servers.spark_session().sql(
            f"CREATE TABLE {table('nested')[6:]} AS SELECT *, map('a', pay) AS more FROM {table('people')[6:]}"
        )
        for output in ("out.parquet", "out.csv", None):
            with pytest.raises(
                InputError, match=r"column 'more' .* cannot be compared .* in a view or with"
            ):
                eq.repair(table("nested"), lake, output, **ASKED)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.spark
def test_a_table_of_spark_is_never_replaced():
    with in_spark() as table:
        plan = eq.plan(table("people"), **ASKED)
        before = rows_of(table("people"))
        with pytest.raises(InputError, match="exists already"):
            eq.apply(plan, to=table("people"), pool=table("more"), output=table("people"))
        assert rows_of(table("people")) == before
        with pytest.raises(InputError, match="both the table to repair and the pool"):
            eq.apply(
                plan, to=table("people", "&id=number"), pool=table("people"), output=table("o")
            )
        assert not is_replaced(locate(table("people")), locate("spark:default.people"))


@pytest.mark.parametrize("allow", ["add", "delete"])
def test_a_key_that_is_none_is_refused(database, allow):
    plan = eq.plan(database("people"), **ASKED, allow=allow)
    with pytest.raises(InputError, match="sex is not a key of"):
        eq.apply(
            plan, to=database("people", "&id=sex"), pool=database("more"), output=database("out")
        )
    with pytest.raises((SourceNotFound, InputError), match="out"):
        eq.measure(database("out"), **ASKED)
    with pytest.raises(ColumnNotFound, match="column 'nummer' not found"):
        eq.measure(database("people", "&id=nummer"), **ASKED)


def test_a_base_and_a_lake_in_postgres_give_a_repaired_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with in_postgres() as table:
        server = table("x").partition("&table")[0]
        with psycopg.connect(server) as connection:
            connection.execute("CREATE SCHEMA archive; ALTER TABLE more SET SCHEMA archive")
        lake = eq.Lake(f"{server}&schema=archive", index="lake.index")
        done = eq.repair(table("people"), lake, "out.parquet", **ASKED)
        assert done.exit_code == 0
        lines = pq.read_table("out.parquet.ledger.parquet").to_pylist()
        assert len(lines) == done.plan.additions > 0
        assert {line["snapshot"].partition(":")[0] for line in lines} == {"rows"}
        assert eq.count("out.parquet", **ASKED) == done.acquired.after
        assert lake.replay("out.parquet.ledger.parquet").exit_code == 0


def test_a_condition_chooses_rows_in_the_database(database):
    where = "number >= 10 AND pay < 12.5"
    found = eq.count(database("people"), **ASKED, where=where)
    assert found == eq.count(PEOPLE, **ASKED, where=where)
