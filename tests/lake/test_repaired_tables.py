"""Repairs whose result is a table of a database: made where the base is, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections import Counter
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers
from equipoise.cli.app import run
from equipoise.engines.base import Part
from equipoise.engines.routing import Routing, shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.lake.repair.acquire import acquire
from equipoise.lake.repair.ledger import ledger_table, read_ledger
from equipoise.lake.repair.output import put_together
from lakes import planned, write

pytestmark = pytest.mark.slow  # each is a whole repair

ASKED = {"sensitive_features": ["sex"], "label": "hired"}
COLUMNS = "number bigint, sex text NOT NULL, hired text CHECK (hired IN ('yes', 'no'))"
HEADER = ("number", "sex", "hired")
PEOPLE = [
    *((i, "Female", "yes" if i < 10 else "no") for i in range(50)),
    *((i, "Male", "yes" if i < 90 else "no") for i in range(50, 120)),
]
MORE = [(1000 + i, ("Female", "Male")[i % 2], "yes" if i % 3 else "no") for i in range(180)]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write("lake/more.csv", HEADER, MORE)


class Database:
    """A database with a table to repair and a schema of other tables."""

    def __init__(self, address):
        self.address, self.lake = address, f"{address}&schema=archive"
        self.make("people", COLUMNS, PEOPLE)
        self.do("CREATE SCHEMA archive")
        self.make("archive.more", COLUMNS, MORE)

    def do(self, *statements):
        with psycopg.connect(self.address) as connection:
            for statement in statements:
                done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def make(self, name, columns, rows, given=HEADER):
        with psycopg.connect(self.address) as connection:
            connection.execute(f"CREATE TABLE {name} ({columns})".encode())
            target = f"COPY {name} ({', '.join(given)}) FROM STDIN".encode()
            with connection.cursor().copy(target) as copy:
                for row in rows:
                    copy.write_row(row)

    def table(self, name, more=""):
        return f"{self.address}&table={name}{more}"

    def rows(self, name="out"):
        return Counter(self.do(f"SELECT * FROM {name}"))

    def left(self):
        """What a repair may have left behind."""
        made = "relname ~ '^(out|equipoise)' AND relkind IN ('r', 'S')"
        files = [path.name for path in Path().iterdir() if "out" in path.name]
        return [name for (name,) in self.do(f"SELECT relname FROM pg_class WHERE {made}")] + files


@pytest.fixture
def database():
    with servers.new_database() as address:
        yield Database(address)


def never(*_, **__):
    pytest.fail("no work should begin")


def repair(database, base="people", lake="lake", out="out", more="", **options):
    return eq.repair(database.table(base, more), lake, database.table(out), **ASKED, **options)


# ------------------------------------------------------------------------- as with files


@pytest.mark.parametrize("more", ["", "&id=number"])
@pytest.mark.parametrize("allow", ["add", "both"])
def test_a_repair_inside_of_postgres_is_that_into_a_file(database, allow, more):
    if more:
        database.do("ALTER TABLE people ADD PRIMARY KEY (number)")
    options = {"allow": allow, **ASKED}
    expected = eq.repair(database.table("people", more), database.lake, "out.csv", **options)
    done = repair(database, lake=database.lake, more=more, allow=allow)
    assert done.exit_code == 0
    assert done.verification.ok
    assert (done.acquired.removed > 0) == (allow == "both")
    as_file = shared_engine().read(locate("out.csv")).to_pylist()
    assert database.rows() == Counter((int(r["number"]), r["sex"], r["hired"]) for r in as_file)
    assert done.acquired.after == expected.acquired.after
    assert database.rows("people") == Counter(PEOPLE)
    lines = read_ledger(locate(database.table("out_ledger")), shared_engine()).to_pylist()
    actions = Counter(line["action"] for line in lines)
    assert actions == Counter(add=done.acquired.added, remove=done.acquired.removed)
    plan = json.loads(Path("out.plan.json").read_text())
    assert plan["additions"] == done.acquired.added
    # What was made is no source of the next repair, and is replaced by it.
    names = [t.name.rpartition("table=")[2] for t in eq.Lake(database.address).tables]
    assert sorted(names) == ["archive.more", "public.people"]
    again = repair(database, lake=database.lake, more=more, allow=allow)
    assert again.acquired.after == done.acquired.after


def test_acquire_from_the_shell_with_a_ledger_elsewhere(database, capsys):
    plan = ["plan", database.table("people"), "-s", "sex", "-l", "hired", "-o", "plan.json"]
    assert run(plan) == 0
    to = ["--base", database.table("people"), "-o", database.table("out")]
    assert run(["acquire", "plan.json", "lake", *to, "--ledger", "listed.parquet"]) == 0
    assert "is listed in listed.parquet" in capsys.readouterr().out
    assert database.left() == ["out"]
    assert run(["acquire", "plan.json", "lake", *to, "--ledger", database.table("told")]) == 0
    files, tables = (
        read_ledger(locate(place), shared_engine()).drop_columns(["source"]).to_pylist()
        for place in ("listed.parquet", database.table("told"))
    )
    assert sorted(map(str, files)) == sorted(map(str, tables))
    assert run(["acquire", "plan.json", "lake", *to[:2], "-o", "out.csv", "--ledger", to[3]]) == 2
    assert "out exists and its comment does not begin with" in capsys.readouterr().err


def test_the_rows_of_the_base_do_not_travel(database):
    database.do(
        "INSERT INTO people SELECT 10000 + i, CASE i % 2 WHEN 0 THEN 'Male' ELSE 'Female' END, "
        "CASE WHEN i / 2 % 100 < 50 + i % 2 THEN 'yes' ELSE 'no' END FROM generate_series(1, 200000) AS t(i)"
    )
    engine = Routing()
    lake = eq.Lake("lake", engine=engine)
    people = database.table("people")
    plan = planned(people, {("Female", "yes"): 20}, {("Male", "yes"): 300})
    done = acquire(plan, locate(people), lake, database.table("out"))
    assert (done.added, done.removed, done.n_rows) == (20, 300, 199_840)
    (session,) = engine.engine_of(locate(database.table("people")))._sessions.values()
    ((size,),) = database.do("SELECT sum(length(t::text)) FROM people AS t")
    assert 0 < session.fetched < size / 20
    engine.close()


@pytest.mark.parametrize("name", ['public."Out.New"', '"public"."Out.New"', '"public".Out.New'])
def test_each_part_of_a_new_name_may_be_quoted(database, name):
    done = repair(database, out=name)
    assert done.verification.ok
    assert database.rows('public."Out.New"').total() == done.acquired.n_rows
    assert database.rows('public."Out.New_ledger"').total() > 0
    named = database.do("SELECT relname FROM pg_class WHERE relname ~ '\"'")
    assert named == []


def test_a_condition_chooses_the_rows_that_stay(database):
    done = repair(database, where="number < 100")
    assert done.acquired.as_planned
    assert all(number < 100 or number >= 1000 for number, *_ in database.rows())
    assert done.verification.ok


def test_bases_of_files_and_of_other_databases_are_brought(database):
    write("people.csv", HEADER, PEOPLE)
    done = eq.repair("people.csv", "lake", database.table("out"), **ASKED)
    assert done.verification.ok
    wanted = {(str(n), *rest) for n, *rest in PEOPLE}
    assert wanted <= set(database.rows())
    with servers.new_database() as address:
        other = Database(address)
        other.do("UPDATE people SET sex = 'Other'")  # of the same name, but not the base
        far = eq.repair(database.table("people"), "lake", other.table("out"), **ASKED)
        assert far.verification.ok
        assert {sex for _, sex, _ in other.rows()} == {"Female", "Male"}
        assert far.acquired.after == done.acquired.after


def test_a_base_is_the_table_that_its_own_address_means(database):
    database.make("archive.people", COLUMNS, PEOPLE)
    database.do("UPDATE public.people SET number = -1")  # of the same name, but not the base
    base = f"{database.address}&options=-csearch_path%3Darchive&table=people"
    done = eq.repair(base, "lake", database.table("out"), **ASKED)
    assert done.verification.ok
    assert set(PEOPLE) <= set(database.rows("public.out"))
    assert done.acquired.n_rows == database.rows("public.out").total()
    checked = database.do("SELECT 1 FROM pg_constraint WHERE conrelid = 'public.out'::regclass")
    assert checked  # it was copied with its constraints
    asked = {**ASKED, "sql": "SELECT people.* FROM people"}
    plan = eq.plan(base, **asked, allow="delete", tolerance=0.01)
    assert eq.apply(plan, to=base, pool=None, output=database.table("fewer")).as_planned
    assert set(database.rows("public.fewer")) <= set(PEOPLE)


POLICY = "CREATE POLICY few ON people FOR SELECT TO writer USING (number < 100)"


@pytest.mark.parametrize(
    "rights",
    [
        (),
        (
            "GRANT SELECT ON people TO writer",
            "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
            POLICY,
        ),
    ],
)
def test_rows_that_the_writer_cannot_read_are_brought(database, rights):
    database.do("DROP ROLE IF EXISTS writer", "CREATE ROLE writer LOGIN", *rights)
    database.do("GRANT CREATE ON SCHEMA public TO writer")
    out = database.table("out").replace("postgres:@", "writer:@")
    done = eq.repair(database.table("people"), "lake", out, **ASKED)
    assert done.verification.ok
    assert set(PEOPLE) <= set(database.rows())
    database.do("DROP OWNED BY writer", "DROP ROLE writer")


# ------------------------------------------------------------------- what columns can hold


def test_the_database_numbers_and_completes_added_rows(database):
    database.do(
        "CREATE TYPE town AS ENUM ('Bern', 'Zug')",
        "CREATE TABLE staff (number serial PRIMARY KEY, other int GENERATED ALWAYS AS IDENTITY, sex text, "
        "hired varchar(3), town town, code char(2), made text DEFAULT 'then', "
        "whole text GENERATED ALWAYS AS (sex || hired) STORED)",
        "INSERT INTO staff (number, sex, hired, town, code, made) SELECT number + 1, sex, hired, "
        "CASE number % 2 WHEN 0 THEN 'Bern' ELSE 'Zug' END::town, CASE number % 3 WHEN 0 THEN 'aa' ELSE 'bb' END, "
        "'now' FROM people",
    )
    towns, codes = ("Zug", "Bern", "Rome"), ("aa", "bb", "aa", "bb", "long")
    rows = [(*row, towns[row[0] % 7 % 3], codes[row[0] % 5]) for row in MORE]
    write("lake/more.csv", ("number", "sex", "hired", "town", "code"), rows)
    plan = eq.plan(database.table("staff"), **ASKED)
    done = eq.Lake("lake").acquire(plan, database.table("out"), base=database.table("staff"))
    assert done.as_planned
    assert set(done.numbered) == {"number", "other"}
    assert set(done.lost) <= {"town", "code"}
    assert done.lost
    assert "The database numbered the added rows itself" in done.text()
    found = database.do("SELECT * FROM out WHERE number > 120 ORDER BY number")
    assert len(found) == done.added
    assert [row[0] for row in found] == list(range(121, 121 + done.added))
    assert [row[1] for row in found] == list(range(121, 121 + done.added))
    assert all(row[7] == row[2] + row[3] and row[6] == "then" for row in found)
    assert sum(row[4] is None for row in found) == done.lost.get("town", 0)
    assert sum(row[5] is None for row in found) == done.lost.get("code", 0)
    again = eq.Lake("lake").replay(database.table("out_ledger"), repaired=database.table("out"))
    assert again.ok, again.text()
    for line in database.do("SELECT mapping FROM out_ledger WHERE action = 'add'"):
        told = json.loads(line[0])
        assert "number" not in told["columns"]
        assert told["lost"] == sorted(done.lost)
    # The new table has its own numbers, and the old one goes on as before.
    database.do("DROP TABLE staff CASCADE", "INSERT INTO out (sex, hired) VALUES ('Male', 'no')")
    ((number, other),) = database.do("SELECT max(number), max(other) FROM out")
    assert number == other == 121 + done.added
    sequences = database.do("SELECT relname FROM pg_class WHERE relkind = 'S' AND relname ~ '^out'")
    assert sorted(sequences) == [("out_number_seq",), ("out_other_seq",)]


def test_values_that_a_domain_cannot_hold_are_lost_and_those_that_it_needs_are_filled_in(database):
    database.do(
        "CREATE TYPE town AS ENUM ('Bern', 'Zug')",
        "CREATE DOMAIN place AS town; CREATE DOMAIN site AS place; CREATE DOMAIN code AS varchar(2)",
        "CREATE DOMAIN desk AS text NOT NULL DEFAULT 'none'",
        "ALTER TABLE people ADD town site, ADD code code, ADD desk desk",
        "UPDATE people SET town = CASE number % 2 WHEN 0 THEN 'Bern' ELSE 'Zug' END::town, desk = 'd' || number % 9, "
        "code = CASE number % 3 WHEN 0 THEN 'aa' ELSE 'bb' END",
    )
    towns, codes = ("Zug", "Bern", "Rome"), ("aa", "bb", "aa", "bb", "long")
    rows = [
        (*row, towns[row[0] % 7 % 3], codes[row[0] % 5], f"d{row[0] % 9}" if row[0] % 4 else "")
        for row in MORE
    ]
    write("lake/more.csv", (*HEADER, "town", "code", "desk"), rows)
    done = repair(database)
    assert done.verification.ok, done.verification.text()
    found = database.do("SELECT number, town, code, desk FROM out WHERE number >= 1000")
    told = {row[0]: row[3:] for row in rows}
    for number, town, code, desk in found:
        in_source = told[number]
        assert town == (in_source[0] if in_source[0] != "Rome" else None)
        assert code == (in_source[1] if in_source[1] != "long" else None)
        assert desk == (in_source[2] or "none")
    assert set(done.acquired.lost) == {"town", "code"}
    again = eq.Lake("lake").replay(database.table("out_ledger"), repaired=database.table("out"))
    assert again.ok, again.text()


def test_columns_that_must_have_a_value_get_their_default(database):
    database.do(
        "ALTER TABLE people ADD COLUMN town text NOT NULL DEFAULT 'Zug', ADD COLUMN desk text NOT NULL DEFAULT 'none'",
        "UPDATE people SET town = 'Bern', desk = 'd' || number",
    )
    with_town = [(*row, "Rome" if row[0] % 5 else "") for row in MORE[:90]]
    write("lake/more.csv", (*HEADER, "town"), with_town)  # some values are missing
    write("lake/others.csv", HEADER, MORE[90:])  # all are
    done = repair(database, max_share_per_source=0.6)
    assert done.acquired.lost == {}
    assert len(done.acquired.shares) == 2
    found = database.do("SELECT number, town, desk FROM out WHERE number >= 1000")
    assert len(found) == done.acquired.added
    rome = {row[0] for row in with_town if row[-1]}
    assert all((town == "Rome") == (number in rome) for number, town, _ in found)
    assert {town for _, town, _ in found} == {"Rome", "Zug"}
    assert {desk for *_, desk in found} == {"none"}
    assert any(number < 1090 and town == "Zug" for number, town, _ in found)
    again = eq.Lake("lake").replay(database.table("out_ledger"), repaired=database.table("out"))
    assert again.ok, again.text()


def test_rows_of_sources_without_a_column_get_its_default(database):
    database.do(
        "ALTER TABLE people ADD k int GENERATED BY DEFAULT AS IDENTITY, ADD town text DEFAULT 'Zug', ADD desk text, "
        "ADD twice int GENERATED ALWAYS AS (number * 2) STORED, ADD whole bool DEFAULT true",
        "UPDATE people SET town = CASE number % 3 WHEN 0 THEN 'Bern' ELSE 'Rome' END, desk = 'd' || number",
    )
    write(
        "lake/more.csv",
        (*HEADER, "town"),
        [(*row, "Rome" if row[0] % 5 else "") for row in MORE[:90]],
    )
    write("lake/others.csv", HEADER, MORE[90:])
    done = repair(database, max_share_per_source=0.6)
    assert done.verification.ok, done.verification.text()
    assert len(done.acquired.shares) == 2
    found = database.do("SELECT number, town, whole FROM out WHERE number >= 1000")
    assert {whole for *_, whole in found} == {True}
    for number, town, _ in found:
        has = number < 1090
        assert town == (("Rome" if number % 5 else None) if has else "Zug"), number
    assert {town for _, town, _ in found} == {"Rome", "Zug", None}
    assert set(done.acquired.filled) == {"k", "twice", "town", "whole"}
    said = done.acquired.text()
    assert "Some sources do not have 'desk', which stay empty" in said
    assert "desk is missing in all added rows" in said
    assert "The database numbered the added rows itself, in 'k'." in said
    assert "The database filled in 'twice', 'town' and 'whole' of added rows itself." in said
    again = eq.Lake("lake").replay(database.table("out_ledger"), repaired=database.table("out"))
    assert again.ok, again.text()


def test_columns_that_the_database_computes_are_not_those_of_the_sources(database):
    database.do(
        "ALTER TABLE people ADD COLUMN pay int, ADD COLUMN double int GENERATED ALWAYS AS (pay * 2) STORED",
        "UPDATE people SET pay = number",
    )
    rows = [(*row, row[0] if row[0] % 3 else "", row[0] + 7) for row in MORE]
    write("lake/more.csv", (*HEADER, "pay", "double"), rows)
    done = repair(database)
    assert done.verification.ok, done.verification.text()
    assert done.acquired.lost == {}
    assert done.acquired.numbered == ()
    found = database.do("SELECT pay, double FROM out WHERE number >= 1000")
    assert None in {pay for pay, _ in found}
    assert all(double == (pay and 2 * pay) for pay, double in found)
    again = eq.Lake("lake").replay(database.table("out_ledger"), repaired=database.table("out"))
    assert again.ok, again.text()


def test_numbers_of_any_scale_are_not_rounded(database):
    database.do(
        "ALTER TABLE people ADD COLUMN share numeric", "UPDATE people SET share = 0.25 * number"
    )
    shares = {number: f"{number}.123456789012345678901" for number, *_ in MORE}
    write("lake/more.csv", (*HEADER, "share"), [(*row, shares[row[0]]) for row in MORE])
    plan = eq.plan(database.table("people"), **ASKED)
    done = eq.Lake("lake").acquire(plan, database.table("out"), base=database.table("people"))
    found = dict(database.do("SELECT number, share::text FROM out WHERE number >= 1000"))
    assert len(found) == done.added > 0
    assert found.items() <= shares.items()


def test_numbers_of_any_scale_are_verified_where_they_are_texts(database):
    database.do(
        "ALTER TABLE people ADD COLUMN share numeric",
        "UPDATE people SET share = (number - 60) / 7::numeric(40, 30)",
    )
    shares = [f"{number - 1100}.123456789012345678901" for number, *_ in MORE]
    rows = [(*row, share) for row, share in zip(MORE, shares, strict=True)]
    write("lake/more.csv", (*HEADER, "share"), rows)
    done = eq.repair(database.table("people"), "lake", "out.parquet", **ASKED)
    assert done.verification.ok, done.verification.text()
    written = pq.read_table("out.parquet")
    assert any(len(text) > 30 for text in written["share"].to_pylist())
    texts = [t.replace("14285714", "14285715") for t in written["share"].to_pylist()]
    changed = written.set_column(3, "share", pa.array(texts))
    pq.write_table(changed, "out.parquet")
    files = {"plan": "out.parquet.plan.json", "ledger": "out.parquet.ledger.parquet"}
    found = eq.verify("out.parquet", base=database.table("people"), **files)
    assert not found.ok


def test_hashes_of_the_ledger_are_those_of_the_written_rows(database):
    plan = eq.plan(database.table("people"), **ASKED)
    done = eq.Lake("lake").acquire(plan, database.table("out"), base=database.table("people"))
    lines = read_ledger(locate(database.table("out_ledger")), shared_engine()).to_pylist()
    places = [f"{line['hash']}#1" for line in lines if line["action"] == "add"]
    fetched = shared_engine().fetch(locate(database.table("out")), places)
    assert len(fetched) == done.added == len(places)
    assert min(fetched["number"].to_pylist()) >= 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "CREATE UNIQUE INDEX ON people (sex) WHERE number >= 1000",
            "duplicate key value violates unique constraint",
        ),
        (
            "ALTER TABLE people ADD COLUMN pay int; UPDATE people SET pay = 1; ALTER TABLE people ALTER pay SET NOT NULL",
            'null value in column "pay"',
        ),
        ("ALTER TABLE people ADD CHECK (number < 500)", "violates check constraint"),
    ],
)
def test_rows_that_the_table_refuses_leave_nothing(database, change, message):
    database.do(change)
    with pytest.raises(InputError, match="nothing was written") as told:
        repair(database)
    assert message in str(told.value)
    assert "equipoise_" not in str(told.value)
    assert database.left() == []
    assert database.rows("people").total() == len(PEOPLE)


# --------------------------------------------------------------------- what is not written


def test_tables_that_must_stay_are_refused_before_the_lake_is_looked_at(database, monkeypatch):
    database.do("CREATE TABLE out_ledger (a int)", "CREATE VIEW seen AS SELECT 1 AS a")
    with monkeypatch.context() as patch:
        patch.setattr("equipoise.lake.tables.contents.refresh", never)
        patch.setattr("equipoise.api.repairs.count", never)
        for out, why in {
            "out": "out_ledger exists and its comment does not begin",
            "seen": "exists and is not a plain table",
            "nowhere.out": "has no schema 'nowhere'",
            "o" * 60: "longer than the 63 bytes",
            'pub"lic.out': "is only partly quoted; quote the whole part",
        }.items():
            with pytest.raises(InputError, match=why):
                repair(database, out=out)
        with pytest.raises(InputError, match="cannot both be"):
            repair(database, out="new", ledger=database.table("new"))
    with pytest.raises(InputError, match="is the base, which must not change"):
        repair(database, out="people")
    with (
        psycopg.connect(database.address) as connection,
        pytest.raises(InputError, match="is the base, which must not change"),
    ):
        eq.repair((connection, "people"), "lake", database.table("people"), **ASKED)
    with pytest.raises(InputError, match=r"is .*more of the lake, which must not change"):
        repair(database, lake=database.lake, out="archive.more")
    database.do("ALTER TABLE people ADD COLUMN told jsonb")
    with pytest.raises(InputError, match=r"'told' of .* has the type jsonb"):
        repair(database, out="new")
    assert database.left() == ["out_ledger"]


def test_who_may_not_write_is_told_before_the_lake_is_looked_at(database, monkeypatch):
    database.do("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN")
    database.do("GRANT SELECT ON people TO reader")
    monkeypatch.setattr("equipoise.api.repairs.count", never)
    for out, why in {
        database.table("out").replace(
            "postgres:@", "reader:@"
        ): "no right to make tables in the schema 'public'",
        database.table(
            "out", "&options=-c%20default_transaction_read_only=on"
        ): "only lets you read",
    }.items():
        with pytest.raises(InputError, match=why):
            eq.repair(database.table("people"), "lake", out, **ASKED)
    database.do("DROP OWNED BY reader", "DROP ROLE reader")
    assert database.left() == []


@pytest.mark.parametrize(
    "work", ["equipoise.lake.loop.verify", "equipoise.lake.repair.acquire._result"]
)
def test_work_that_is_interrupted_after_the_tables_are_made_says_so(
    database, monkeypatch, capsys, work
):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(work, interrupted)
    ours = ["--sensitive", "sex", "--label", "hired", "-o", database.table("out"), "-q"]
    assert run(["repair", database.table("people"), "lake", *ours]) == 130
    assert {"out", "out_ledger"} <= set(database.left())
    said = capsys.readouterr().err
    assert (
        "table=out_ledger were written, but not verified; check them with equipoise verify." in said
    )
    assert "nothing was written" not in said


@pytest.mark.parametrize("out", ["out.csv", "out", None])
def test_a_key_that_is_none_is_refused_before_the_lake_is_looked_at(database, monkeypatch, out):
    people = database.table("people", "&id=hired")
    plan = eq.plan(people, **ASKED)
    place = database.table("out") if out == "out" else out
    monkeypatch.setattr("equipoise.lake.loop.explore", never)
    monkeypatch.setattr("equipoise.lake.repair.acquire.explore", never)
    with pytest.raises(InputError, match="hired is not a key of"):
        eq.repair(people, "lake", place, **ASKED)
    with pytest.raises(InputError, match="hired is not a key of"):
        eq.Lake("lake").acquire(plan, place, base=people)
    assert database.left() == []


def test_a_part_of_another_table_is_not_replaced(database):
    database.do(
        "CREATE TABLE whole (LIKE people) PARTITION BY LIST (sex)",
        "CREATE TABLE female PARTITION OF whole FOR VALUES IN ('Female')",
        "CREATE TABLE male PARTITION OF whole FOR VALUES IN ('Male')",
        "INSERT INTO whole SELECT * FROM people",
        "CREATE TABLE heir () INHERITS (people)",
        "INSERT INTO heir SELECT number + 500, sex, hired FROM people WHERE number < 5",
    )
    for base, part in (("whole", "female"), ("people", "heir")):
        before = database.rows(base)
        with pytest.raises(InputError, match=f"public.{part} is a part of {base}"):
            repair(database, base=base, out=part)
        assert database.rows(base) == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_table_of_a_query_is_not_replaced(database):
    import ibis

    connection = psycopg.connect(database.address)
    tables = ibis.postgres.from_connection(connection)
    with pytest.raises(InputError, match="people exists and its comment does not begin"):
        eq.repair(tables.table("people"), "lake", database.table("people"), **ASKED)
    assert database.rows("people") == Counter(PEOPLE)
    for _ in range(2):  # what was made for a result may be replaced
        done = eq.repair(tables.table("people"), "lake", database.table("out"), **ASKED)
        assert done.acquired.as_planned
    connection.close()


def test_a_ledger_is_not_the_table_under_another_address(database):
    other = database.address.replace("postgresql://", "postgres://")
    for ledger in (database.table("public.out"), f"{other}&table=out", database.table('"out"')):
        with pytest.raises(InputError, match="the table and its ledger cannot both be"):
            repair(database, ledger=ledger)
    assert database.left() == []
    repair(database, ledger=database.table("archive.out"))
    assert database.rows("archive.out").total()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_after_the_rows_were_written_leaves_nothing(database, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("equipoise.lake.repair.destinations.stored_ledger", fail)
    with pytest.raises(error):
        repair(database)
    assert database.left() == []


@pytest.mark.parametrize(
    "change",
    ["INSERT INTO people VALUES (500, 'Male', 'no')", "DELETE FROM people WHERE number = 1"],
)
@pytest.mark.parametrize("to", ["a file", "a table"])
def test_a_base_that_changes_in_the_meantime(database, monkeypatch, change, to):
    def changed(*given):
        database.do(change)
        return put_together(*given)

    monkeypatch.setattr("equipoise.lake.repair.acquire.put_together", changed)
    out = "out.csv" if to == "a file" else database.table("out")
    with pytest.raises(InputError, match=r"people has changed since .*; nothing was written"):
        eq.repair(database.table("people"), "lake", out, **ASKED)
    assert database.left() == []


def test_rows_to_remove_that_are_gone_in_the_meantime(database):
    engine = shared_engine().engine_of(locate(database.table("people")))
    gone = Part(locate(database.table("people", "&id=number")), without=["3", "500"])
    database.do("ALTER TABLE people ADD PRIMARY KEY (number)")
    with pytest.raises(InputError, match=r"people.* has changed since .*; nothing was written"):
        engine.part_rows(gone)


def test_no_password_is_shown_or_written(database, capsys):
    address = database.address.replace("://postgres:@", "://postgres@")
    secret = address.replace("://postgres@", "://postgres:hunter2@")
    assert "hunter2" in secret
    base, lake, out = (f"{secret}&{x}" for x in ("table=people", "schema=archive", "table=out"))
    columns = ["--sensitive", "sex", "--label", "hired"]
    assert run(["repair", base, lake, *columns, "-o", out, "--report", "page.html"]) == 0
    said = capsys.readouterr()
    assert "table=out_ledger" in said.out
    assert "hunter2" not in said.out + said.err
    assert Path("page.html").exists()
    assert Path("out.plan.json").exists()
    assert not [p for p in Path().rglob("*") if p.is_file() and b"hunter2" in p.read_bytes()]
    stored = database.do("SELECT t::text FROM out_ledger AS t")
    stored += database.do("SELECT description FROM pg_description")
    assert not [line for (line,) in stored if "hunter2" in line]


# ------------------------------------------------------------------------------- Spark


FEW, OTHERS = PEOPLE[::2], MORE[:60]
"""Fewer rows for Spark, which compiles the values of a small column into its queries."""


@contextlib.contextmanager
def in_spark():
    session, schema = servers.spark_session(), f"repaired_{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {schema}")
    for name, rows in (("people", FEW), ("more", OTHERS)):
        frame = session.createDataFrame(rows, "number bigint, sex string, hired string")
        frame.write.saveAsTable(f"{schema}.{name}")
    try:
        yield session, schema
    finally:
        session.sql(f"DROP DATABASE {schema} CASCADE")


def stored(session, schema):
    return sorted(t.name for t in session.catalog.listTables(schema) if not t.isTemporary)


@pytest.mark.spark
def test_a_repair_inside_of_spark_and_what_it_refuses(monkeypatch):
    with in_spark() as (session, schema):
        base, out = f"spark:{schema}.people?id=number", f"spark:{schema}.out"
        done = eq.repair(base, f"spark:{schema}", out, **ASKED, allow="both")
        assert done.verification.ok
        assert done.acquired.added
        assert done.acquired.removed
        found = Counter(tuple(row) for row in session.table(f"{schema}.out").collect())
        assert found.total() == done.acquired.n_rows
        assert set(found) <= {*PEOPLE, *MORE}
        lines = Counter(row.action for row in session.table(f"{schema}.out_ledger").collect())
        removed = done.acquired.removed
        assert lines == Counter(about=1, add=done.acquired.added, remove=removed)
        assert len(eq.Lake(f"spark:{schema}").tables) == 2
        before = sorted(table.name for table in session.catalog.listTables(schema))
        monkeypatch.setattr("equipoise.api.repairs.count", never)
        with pytest.raises(InputError, match="out exists already"):
            eq.repair(base, f"spark:{schema}", out, **ASKED)
        session.sql(f"DROP TABLE {schema}.out")
        with pytest.raises(InputError, match="out_ledger exists already"):
            eq.repair(base, f"spark:{schema}", out, **ASKED)
        assert before[0] == "more"


@pytest.mark.spark
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_in_spark_leaves_nothing(error):
    from equipoise.lake.repair.destinations import TableDestination

    with in_spark() as (session, schema):
        place = TableDestination(locate(f"spark:{schema}.out"))
        base = Part(locate(f"spark:{schema}.people"))
        added = shared_engine().read(locate("lake/more.csv"))
        added = added.set_column(0, "number", added["number"].cast("int64"))

        def write_and_fail():
            with (
                contextlib.ExitStack() as stack,
                place.writing(base, len(FEW), added, shared_engine()) as written,
            ):
                assert session.table(written.source.table).count() == len(FEW) + len(MORE)
                assert len(set(written.md5s)) == len(MORE)
                listed = TableDestination(locate(f"spark:{schema}.out_ledger"))
                listed.listing(stack, shared_engine())(ledger_table([], {}))
                assert len(stored(session, schema)) == 4
                raise error

        with pytest.raises(error):
            write_and_fail()
        assert stored(session, schema) == ["more", "people"]
