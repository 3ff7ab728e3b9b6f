"""Tables of PostgreSQL that are replaced: no row of others is lost, and nothing that belongs to them."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

import equipoise as eq
import servers
from equipoise.engines.base import Part
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.lake.repair.output import put_together

pytestmark = pytest.mark.slow  # each is a whole repair

ASKED = {"sensitive_features": ["sex"], "label": "hired"}
ROWS = (
    "SELECT i, CASE WHEN i <= 50 THEN 'Female' ELSE 'Male' END, "
    "CASE WHEN i <= 10 OR i BETWEEN 51 AND 90 THEN 'yes' ELSE 'no' END FROM generate_series(1, 120) AS t(i)"
)
MORE = (
    "SELECT 1000 + i, CASE i % 2 WHEN 0 THEN 'Female' ELSE 'Male' END, "
    "CASE i % 3 WHEN 0 THEN 'yes' ELSE 'no' END FROM generate_series(1, 300) AS t(i)"
)


class Database:
    """A database with a table to repair, and a pool."""

    def __init__(self, address):
        self.address = address
        columns = "(number int PRIMARY KEY, sex text, hired text)"
        self.do(f"CREATE TABLE people {columns}", f"INSERT INTO people {ROWS}")
        self.do(f"CREATE TABLE more {columns}", f"INSERT INTO more {MORE}")

    def do(self, *statements):
        with psycopg.connect(self.address) as connection:
            for statement in statements:
                done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def table(self, name, more="", user="postgres"):
        return f"{self.address}&table={name}{more}".replace("postgres:@", f"{user}:@")

    def wait_for_waiting(self):
        """Wait until some connection waits for a lock."""
        until = time.monotonic() + 10
        while not self.do("SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert time.monotonic() < until, "nobody waits"
            time.sleep(0.02)

    def apply(self, output="people", user="postgres", allow="both", more=""):
        people = self.table("people", more, user)
        plan = eq.plan(people, **ASKED, allow=allow)
        return eq.apply(
            plan, to=people, pool=self.table("more", "", user), output=self.table(output, "", user)
        )

    def left(self):
        return self.do("SELECT relname FROM pg_class WHERE relname ~ '^(equipoise|.*_changes)'")


@pytest.fixture
def database():
    with servers.new_database() as address:
        yield Database(address)


@pytest.fixture
def other(database):
    """A user who may read and make tables."""
    database.do("DROP ROLE IF EXISTS other", "CREATE ROLE other LOGIN")
    database.do("GRANT CREATE ON SCHEMA public TO other", "GRANT ALL ON people, more TO other")
    yield "other"
    database.do("DROP OWNED BY other CASCADE", "DROP ROLE other")


# ---------------------------------------------------------------------------- others' rows


def test_a_row_that_is_added_meanwhile_waits_for_the_new_table(database, monkeypatch):
    from equipoise.engines.postgres import _engine

    def add():
        with psycopg.connect(database.address) as connection:
            connection.execute("INSERT INTO people VALUES (5000, 'Female', 'yes')")

    adding = threading.Thread(target=add)

    def made(*given, make=_engine.make_table, **more):
        if not adding.ident:
            adding.start()
            database.wait_for_waiting()
        return make(*given, **more)

    monkeypatch.setattr(_engine, "make_table", made)
    done = database.apply()
    adding.join()
    assert done.as_planned
    assert database.do("SELECT sex FROM people WHERE number = 5000") == [("Female",)]
    assert database.do("SELECT count(*) FROM people") == [(done.n_rows + 1,)]


def test_a_row_that_is_not_committed_yet_is_waited_for(database):
    engine, people = PostgresEngine(), locate(database.table("people"))

    def end(connection):
        database.wait_for_waiting()
        connection.commit()

    with psycopg.connect(database.address) as connection:
        connection.execute("INSERT INTO people VALUES (5000, 'Female', 'yes')")
        ending = threading.Thread(target=end, args=[connection])
        ending.start()
        with engine.creating(people, [Part(people)]):
            pass
        ending.join()
    engine.close()
    assert database.do("SELECT count(*) FROM people") == [(121,)]


@pytest.mark.parametrize("output", ["people", "out"])
@pytest.mark.parametrize(
    "change",
    ["INSERT INTO people VALUES (500, 'Male', 'no')", "DELETE FROM people WHERE number = 1"],
)
def test_a_base_that_changes_before_it_is_locked(database, monkeypatch, change, output):
    def changed(*given):
        database.do(change)
        return put_together(*given)

    monkeypatch.setattr("equipoise.lake.repair.apply.put_together", changed)
    with pytest.raises(InputError, match=r"people has changed since .*; nothing was written"):
        database.apply(output, allow="add")
    assert database.do("SELECT count(*) FROM people") != [(120,)]
    assert database.left() == []


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
def test_a_table_in_use_is_not_replaced(database, limit):
    engine = PostgresEngine()
    people = locate(database.table("people", f"&options=-c%20{limit}=300ms"))
    for use in ("INSERT INTO people VALUES (5000, 'Female', 'yes')", "SELECT * FROM people"):
        with psycopg.connect(database.address) as connection:
            connection.execute(use.encode())
            with (
                pytest.raises(InputError, match=r"\"people\" is in use by others .*nothing was"),
                engine.creating(people, [Part(people)]),
            ):
                pass
            connection.rollback()
    engine.close()
    assert database.do("SELECT count(*) FROM people") == [(120,)]
    assert database.left() == []


@pytest.mark.parametrize("name", ["out", "out_changes"])
def test_a_table_that_somebody_makes_meanwhile_stays(database, monkeypatch, name):
    from equipoise.engines.postgres import _engine

    def made(*given, make=_engine.make_table, **more):
        if not database.do(f"SELECT 1 FROM pg_class WHERE relname = '{name}'"):
            database.do(f"CREATE TABLE {name} AS SELECT 1 AS own")
        return make(*given, **more)

    monkeypatch.setattr(_engine, "make_table", made)
    with pytest.raises(InputError, match=f"somebody else has made or replaced .*{name} in the"):
        database.apply("out")
    assert database.do(f"SELECT * FROM {name}") == [(1,)]


def test_a_base_that_a_connection_reads_is_not_replaced(database):
    plan = eq.plan(database.table("people"), **ASKED, allow="delete")
    with (
        psycopg.connect(database.address) as connection,
        pytest.raises(InputError, match="give the table to repair by its address"),
    ):
        eq.apply(plan, to=(connection, "people"), pool=None, output=database.table("people"))
    assert database.do("SELECT count(*) FROM people") == [(120,)]


# ------------------------------------------------------------------------- rows not seen


def hide(database, table, owner):
    database.do(
        f"ALTER TABLE {table} OWNER TO {owner}",
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY few ON {table} USING (number % 2 = 0)",
    )


def test_rows_that_the_user_cannot_see_are_not_destroyed(database, other):
    database.do("CREATE TABLE out AS TABLE people")
    for table in ("people", "out"):
        hide(database, table, other)
        database.do(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        with pytest.raises(
            InputError, match=rf"public\.{table} has row-level security.*cannot see"
        ):
            database.apply(table, other)
        assert database.do(f"SELECT count(*) FROM {table}") == [(120,)]
    assert database.left() == []


def test_a_base_that_is_read_in_part_is_not_replaced_by_a_user_who_sees_all(database, other):
    hide(database, "people", "postgres")
    database.do("GRANT SELECT ON people TO other")
    people = database.table("people", "", other)
    plan = eq.plan(people, **ASKED, allow="delete")
    with pytest.raises(InputError, match="people has row-level security"):
        eq.apply(plan, to=people, pool=None, output=database.table("people"))
    assert database.do("SELECT count(*) FROM people") == [(120,)]


def test_a_table_of_somebody_else_is_refused_at_once(database, other, monkeypatch):
    people = database.table("people", "", other)
    plan = eq.plan(people, **ASKED, allow="delete")
    monkeypatch.setattr(PostgresEngine, "counts", lambda *_: pytest.fail("no work should begin"))
    with pytest.raises(InputError, match="only its owner may replace it"):
        eq.apply(plan, to=people, pool=None, output=people)
