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


# ------------------------------------------------------------------ what belongs to a table

OWN = (
    "CREATE TABLE towns (town text PRIMARY KEY); INSERT INTO towns VALUES ('Bern'), ('Zug')",
    "ALTER TABLE people RENAME CONSTRAINT people_pkey TO known_by",
    "ALTER TABLE people ADD town text DEFAULT 'Bern' CONSTRAINT lives_in REFERENCES towns ON DELETE CASCADE",
    "ALTER TABLE people ADD boss int REFERENCES people DEFERRABLE, ADD serial_number serial",
    "ALTER SEQUENCE people_serial_number_seq INCREMENT 2; SELECT setval('people_serial_number_seq', 901)",
    "CREATE INDEX by_sex ON people (sex)",
    'CREATE STATISTICS "Both ""of"" them" ON sex, hired FROM people; CREATE STATISTICS few (mcv) ON sex, hired FROM people',
    "COMMENT ON TABLE people IS 'Those who''ve come'",
    "ALTER TABLE people SET (fillfactor = 70, autovacuum_enabled = false)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''fired''; END'",
    "CREATE TRIGGER noted BEFORE INSERT ON people FOR EACH ROW WHEN (NEW.sex = 'x') EXECUTE FUNCTION note()",
    "CREATE TRIGGER off AFTER DELETE ON people EXECUTE FUNCTION note(); ALTER TABLE people DISABLE TRIGGER off",
    "COMMENT ON TRIGGER off ON people IS 'Not now'",
    "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY few ON people AS RESTRICTIVE FOR UPDATE TO other USING (number IN (SELECT boss FROM people))",
    "ALTER POLICY few ON people WITH CHECK (sex <> 'x')",
    'CREATE POLICY "All of it" ON people USING (true)',
    "REVOKE ALL ON people FROM other; GRANT SELECT ON people TO PUBLIC",
    "GRANT INSERT ON people TO other WITH GRANT OPTION; GRANT UPDATE (sex, hired) ON people TO other",
    "GRANT USAGE ON people_serial_number_seq TO other",
    "ALTER DEFAULT PRIVILEGES GRANT TRUNCATE ON TABLES TO other",
)
TOLD = {
    "constraints": "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = {} AND contype <> 't'",
    "indexes": "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = {}",
    "statistics": "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext WHERE stxrelid = {}",
    "triggers": "SELECT pg_get_triggerdef(oid), tgenabled, obj_description(oid, 'pg_trigger') FROM pg_trigger "
    "WHERE tgrelid = {} AND NOT tgisinternal",
    "policies": "SELECT * FROM pg_policies WHERE tablename = 'people'",
    "table": "SELECT relowner, reloptions, relrowsecurity, relforcerowsecurity, obj_description(oid, 'pg_class') "
    "FROM pg_class WHERE oid = {}",
    "rights": "SELECT grantee, privilege_type, is_grantable FROM pg_class, aclexplode(relacl) WHERE oid = {}",
    "rights to columns": "SELECT attname, grantee, privilege_type FROM pg_attribute, aclexplode(attacl) "
    "WHERE attrelid = {}",
    "rights to the sequence": "SELECT grantee, privilege_type FROM pg_class, aclexplode(relacl) "
    "WHERE relname = 'people_serial_number_seq'",
    "sequence": "SELECT sequencename, data_type, increment_by FROM pg_sequences",
    "defaults": "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = {}",
}


def told(database, name="people"):
    number = f"'{name}'::regclass"
    return {what: sorted(database.do(q.format(number)), key=str) for what, q in TOLD.items()}


@pytest.mark.parametrize("owner", ["postgres", "keeper"])
def test_a_copy_in_place_of_its_table_keeps_what_belongs_to_it(database, other, owner):
    database.do(*OWN)
    if owner == "keeper":
        database.do("DROP ROLE IF EXISTS keeper", "CREATE ROLE keeper")
        database.do("GRANT CREATE ON SCHEMA public TO keeper", "ALTER TABLE people OWNER TO keeper")
    before = told(database)
    assert all(before.values())
    plan = eq.plan(database.table("people"), **ASKED, allow="both")
    people = database.table("people")
    done = eq.apply(
        plan, to=people, pool=database.table("more"), output=people, missing_columns="null"
    )
    assert done.added
    assert done.removed
    after = told(database)
    for what, found in before.items():
        assert after[what] == found, what
    ((number,),) = database.do("SELECT min(serial_number) FROM people WHERE number > 1000")
    assert number == 903  # and none that was given before
    if owner == "keeper":
        database.do("DROP OWNED BY keeper CASCADE", "DROP ROLE keeper")


def test_statistics_of_a_new_table_are_called_after_it(database):
    database.do("CREATE STATISTICS pair ON sex, hired FROM people")
    database.apply("out", allow="add")
    assert ("out_sex_hired_stat",) in database.do("SELECT stxname FROM pg_statistic_ext")


def test_a_new_table_has_the_foreign_keys_of_the_base(database):
    database.do(
        "CREATE TABLE towns (town text PRIMARY KEY); INSERT INTO towns VALUES ('Bern')",
        "ALTER TABLE people ADD town text DEFAULT 'Bern' REFERENCES towns, ADD boss int REFERENCES people",
        "ALTER TABLE more ADD town text DEFAULT 'Bern', ADD boss int",
    )
    database.apply("out", allow="add")
    told = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' AND conrelid = 'out'::regclass"
    assert sorted(database.do(told)) == [
        ('FOREIGN KEY (boss) REFERENCES "out"(number)',),
        ("FOREIGN KEY (town) REFERENCES towns(town)",),
    ]
    database.do("UPDATE more SET town = 'Rome'")
    with pytest.raises(InputError, match=r"table \"out\" violates foreign key .*refers to a row"):
        database.apply("out", allow="add")
    assert database.do("SELECT DISTINCT town FROM out") == [("Bern",)]


@pytest.mark.parametrize(
    ("bound", "named"),
    [
        ("CREATE VIEW seen AS SELECT sex FROM people", "the view seen would"),
        ("CREATE TABLE kin (a int CONSTRAINT of REFERENCES people)", "the foreign key of of kin"),
        ("CREATE TABLE heir () INHERITS (people)", "the table heir, which inherits from it, would"),
        ("CREATE RULE never AS ON DELETE TO people DO INSTEAD NOTHING", "the rule never would"),
        ("CREATE PUBLICATION news FOR TABLE people", "its place in the publication news would"),
        ("ALTER TABLE people REPLICA IDENTITY FULL", "its replica identity would"),
        (
            "CREATE FUNCTION f(people) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            r"f\(people\) depends on type people",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_table_that_others_need_is_not_replaced(database, bound, named):
    database.do(bound)
    before = database.do("SELECT 'people'::regclass::oid, count(*) FROM people")
    with pytest.raises(InputError, match=rf"is not replaced, because .*{named}.*another name"):
        database.apply()
    assert database.do("SELECT 'people'::regclass::oid, count(*) FROM people") == before
    assert database.left() == []


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("ALTER TABLE out ENABLE ROW LEVEL SECURITY", "row-level security"),
        ("CREATE POLICY few ON out USING (true)", "the policy few"),
        (
            "CREATE TRIGGER t BEFORE UPDATE ON out EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "the trigger t",
        ),
        ("GRANT SELECT (sex) ON out TO other", "grants on the column sex"),
    ],
)
def test_a_table_of_its_own_is_not_replaced_by_one_made_of_another(database, other, own, named):
    database.apply("out")
    database.do(f"GRANT SELECT ON out, out_changes TO {other}")
    database.apply("out")  # which keeps the rights
    for table in ("out", "out_changes"):
        assert database.do(f"SELECT has_table_privilege('other', '{table}', 'SELECT')") == [(True,)]
    database.do(own)
    with pytest.raises(InputError, match=f"public.out is not replaced, because {named} would be"):
        database.apply("out")
