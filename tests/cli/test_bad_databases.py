"""What a user can get wrong with tables of databases: one sentence, exit 2, and nothing is written."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from urllib.parse import quote, unquote

import psycopg
import pytest

import servers
from equipoise.cli import main

ASKED = ("-s", "sex", "-l", "hired")
PEOPLE = (
    "SELECT i AS number, CASE i % 2 WHEN 0 THEN 'w' ELSE 'm' END AS sex, "
    "CASE WHEN i % 3 = 0 OR i % 10 = 2 THEN 'yes' ELSE 'no' END AS hired FROM generate_series(1, 60) AS t(i)"
)


@pytest.fixture(scope="module")
def database():
    """A database with good and odd tables; ``locked`` needs a password, and ``guest`` has few rights."""
    with servers.new_database() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            f"""
            CREATE TABLE people AS {PEOPLE};
            CREATE VIEW secret AS TABLE people;
            CREATE TABLE empty (sex text, hired text);
            CREATE TABLE bare ();
            CREATE TABLE "Weird ""Name" AS TABLE people;
            CREATE SCHEMA "My Schema";
            CREATE TABLE "My Schema"."a.b" AS TABLE people;
            CREATE TABLE repeated AS SELECT 1 AS number, sex, hired FROM people;
            CREATE TABLE gaps AS SELECT nullif(number, 5) AS number, sex, hired FROM people;
            CREATE TABLE odd AS SELECT *, '[]'::jsonb AS doc, '1 day'::interval AS long FROM people;
            CREATE TABLE partly AS TABLE people;
            DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN;
            DROP ROLE IF EXISTS locked; CREATE ROLE locked LOGIN PASSWORD 'richtig';
            GRANT SELECT (sex) ON partly TO guest;
            GRANT SELECT ON people TO locked, guest;
            """.encode()
        )
        (hba,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        rules = Path(hba).read_text("utf-8")
        Path(hba).write_text(f"local all locked scram-sha-256\n{rules}", "utf-8")
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)
        yield address, connection
        Path(hba).write_text(rules, "utf-8")
        connection.execute("SELECT pg_reload_conf(); DROP OWNED BY guest, locked")
        connection.execute("DROP ROLE guest, locked")


@pytest.fixture
def said(monkeypatch, capfd):
    """Run a command; return its exit code, and all that it said."""

    def run(*arguments: str) -> tuple[object, str]:
        capfd.readouterr()
        monkeypatch.setattr("sys.argv", ["equipoise", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, "".join(capfd.readouterr())

    return run


def named(address: str, table: str, user: str = "postgres:") -> str:
    return address.replace("postgres:@", f"{user}@") + f"&table={table}"


def objects(connection) -> list[tuple[str, ...]]:
    found = connection.execute(
        "SELECT relnamespace::regnamespace::text, relname FROM pg_class WHERE relnamespace >= 2200 "
        "AND relnamespace::regnamespace::text !~ '^pg_' ORDER BY 1, 2"
    )
    return found.fetchall()


@pytest.mark.parametrize(
    ("table", "user", "sentence"),
    [
        (
            "people",
            "locked:Geheim42",
            'password authentication failed for user "locked"; check the',
        ),
        ("people", "locked:a", 'password authentication failed for user "locked"; check the user'),
        ("people", "locked", "no password supplied; check the user and the password"),
        ("people", "nobody", 'role "nobody" does not exist; check the address'),
        ("poeple", "postgres:", "no table 'poeple'; it has: .*Did you mean 'people'"),
        ("nosuch.people", "postgres:", "no table 'nosuch.people'; it has: .*public.people"),
        ("nosuch", "guest", r"no table 'nosuch'; it has: public\.people\.\n"),
        ("secret", "guest", "no right to select from public.secret; ask its owner"),
        ("partly", "guest", "no right to select from all columns of public.partly; .*read sex:"),
        ("empty", "postgres:", "has no rows; there is nothing to measure"),
        ("bare", "postgres:", "has no columns; there is nothing to measure"),
        ("", "postgres:", "names it, as in postgresql://.*&table=people"),
        ("people&table=odd", "postgres:", "has the parameter 'table' twice"),
        ("people&id=nosuch", "postgres:", "column 'nosuch' not found in .*it has: number, sex"),
        ("people&wrong=1", "postgres:", 'invalid URI query parameter: "wrong"'),
    ],
)
def test_tables_that_cannot_be_read(database, said, table, user, sentence):
    code, text = said("measure", named(database[0], table, user), *ASKED)
    assert code == 2
    assert re.search(sentence, text)
    assert text.count("\n") == 1
    assert text.startswith("error: ")
    assert "Geheim" not in text


@pytest.mark.parametrize("column", ["doc", "long"])
def test_a_type_that_cannot_be_compared(database, said, column):
    code, text = said("measure", named(database[0], "odd"), "-s", column, "-l", "hired")
    assert (code, "whose values cannot be compared" in text) == (2, True)
    assert said("measure", named(database[0], "odd"), *ASKED)[0] == 0


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("mysql://ann:Geheim42@host/db?table=x", "'mysql:', which is not a known scheme"),
        ("postgrs://ann:Geheim42@host/db?table=x", "Did you mean 'postgres'"),
        (
            "postgresql://ann:Geheim42@127.0.0.1:1/db?table=x",
            "Connection refused; check the address",
        ),
        ("postgresql:ann:Geheim42@host/db?table=x", "postgresql:ann@host/db?table=x is no address"),
        ("host=h user=ann password='Geheim42 x' dbname=db", "host=h user=ann dbname=db does not"),
        ("postgresql:?table=x", "is no address of PostgreSQL; it begins with postgresql://"),
    ],
)
def test_addresses_that_lead_nowhere(said, address, sentence):
    code, text = said("measure", address, *ASKED)
    assert (code, sentence in text, "Geheim" in text) == (2, True, False)


def test_a_database_that_does_not_exist(database, said):
    address = re.sub(r"/test_\d+_\d+\?", "/nosuch?", named(database[0], "people"))
    code, text = said("measure", address, *ASKED)
    assert (code, 'database "nosuch" does not exist; check the address' in text) == (2, True)


def test_odd_names(database, said):
    for name in (
        'Weird "Name',
        '"Weird ""Name"',
        "Weird%20%22Name",
        "My Schema.a.b",
        '"My Schema"."a.b"',
    ):
        code, text = said("measure", named(database[0], name), *ASKED)
        assert (code, "60 rows" in text) == (0, True), name


def test_what_drivers_read_by_themselves(database, said, monkeypatch, tmp_path):
    socket = unquote(re.search(r"host=([^&]*)", database[0])[1])
    name = re.search(r"/(test_\d+_\d+)\?", database[0])[1]
    secrets, services = tmp_path / "pass", tmp_path / "services"
    secrets.write_text("*:*:*:locked:richtig\n")
    secrets.chmod(0o600)
    services.write_text(f"[mine]\nhost={socket}\nuser=locked\ndbname={name}\n")
    monkeypatch.setenv("PGPASSFILE", os.fspath(secrets))
    inside = f"postgresql://locked@{quote(socket, safe='')}/{name}?table=people"
    assert said("measure", inside, *ASKED)[0] == 0
    monkeypatch.setenv("PGSERVICEFILE", os.fspath(services))
    assert said("measure", "postgresql:///?service=mine&table=people", *ASKED)[0] == 0
    monkeypatch.setenv("PGSERVICE", "mine")
    assert said("measure", "postgresql:///?table=people", *ASKED)[0] == 0
    monkeypatch.setenv("PGSERVICE", "yours")
    code, text = said("measure", "postgresql:///?table=people", *ASKED)
    assert (code, 'definition of service "yours" not found' in text) == (2, True)
    monkeypatch.delenv("PGSERVICE")
    for variable, value in {"PGHOST": socket, "PGUSER": "locked", "PGDATABASE": name}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PGPASSFILE", os.fspath(tmp_path / "none"))
    monkeypatch.setenv("PGPASSWORD", "Geheim42")
    code, text = said("measure", "postgresql:///?table=people", *ASKED)
    assert (code, "Geheim" in text) == (2, False)
    monkeypatch.setenv("PGPASSWORD", "richtig")
    assert said("measure", "postgresql:///?table=people", *ASKED)[0] == 0


@pytest.mark.slow
def test_tables_that_cannot_be_repaired_or_made(database, said, tmp_path):
    address, connection = database
    plan = os.fspath(tmp_path / "plan.json")
    assert (
        said(
            *(
                "plan",
                named(address, "people"),
                *ASKED,
                "--allow",
                "delete",
                "--tolerance",
                "0.01",
                "-o",
                plan,
            )
        )[0]
        == 0
    )
    before = objects(connection)
    for base, output, sentence in (
        (
            named(address, "repeated&id=number"),
            named(address, "new"),
            "59 rows with the value of another",
        ),
        (named(address, "gaps&id=number"), named(address, "new"), "1 row without a value of it"),
        (named(address, "odd"), named(address, "new"), "'doc' of .* cannot be compared"),
        (named(address, "people"), named(address, "nosuch.new"), "nosuch"),
        (
            named(address, "people"),
            named(address, "new") + "&options=-c%20search_path%3D",
            "search_path of this connection has no schema .* as in table=public.new",
        ),
        (named(address, "people"), named(address, "secret"), "is not a plain table"),
        (
            named(address, "people"),
            named(address, "new", "guest"),
            "no right to make tables in the schema 'public'",
        ),
    ):
        code, text = said("apply", plan, "--to", base, "-o", output)
        assert code == 2
        assert re.search(sentence, text), text
        assert "Geheim" not in text
    assert objects(connection) == before
    assert connection.execute("SELECT count(*) FROM people").fetchone() == (60,)


@pytest.mark.slow
def test_a_plan_knows_no_password(database, said, tmp_path, monkeypatch):
    """What it names is opened with the same login of the lake, or the error says how to give it."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "cache"))
    base, plan = named(database[0], "people", "locked:richtig"), os.fspath(tmp_path / "plan.json")
    assert said("plan", base, *ASKED, "--tolerance", "0.05", "-o", plan)[0] == 0
    assert "richtig" not in Path(plan).read_text("utf-8")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_text("number,sex,hired\n100,w,yes\n101,w,no\n")
    files = os.fspath(tmp_path / "lake")
    for command in (("find", plan), ("acquire", plan, "-o", os.fspath(tmp_path / "out.csv"))):
        code, text = said(command[0], command[1], files, *command[2:])
        assert (code, "no password supplied" in text, "whole address as --base" in text) == (
            2,
            True,
            True,
        ), text
    assert said("find", plan, files, "--base", base)[0] in (0, 1)
    schema = database[0].replace("postgres:@", "locked:richtig@") + "&schema=public"
    code, text = said("find", plan, files, schema)
    assert (code in (0, 1), "password" in text) == (True, False), text
    other = schema.replace("locked:richtig@", "guest@")
    assert "no password supplied" in said("find", plan, files, other)[1]


@pytest.mark.slow
def test_a_table_of_the_same_name_on_another_server_is_another_table(database, said, tmp_path):
    plan = os.fspath(tmp_path / "plan.json")
    here = named(database[0], "people")
    asked = ("plan", here, *ASKED, "--allow", "delete", "--tolerance", "0.01", "-o", plan)
    assert said(*asked)[0] == 0
    with servers.new_database() as far, psycopg.connect(far, autocommit=True) as there:
        there.execute("CREATE TABLE people (number int, sex text, hired text)")
        code, text = said("apply", plan, "--to", here, "-o", named(far, "mended"))
        assert (code, "52 rows in all" in text) == (0, True), text
        assert there.execute("SELECT count(*) FROM mended").fetchone() == (52,)
        code, text = said(
            "lake", "index", f"{far}&schema=nosuch", "--index", os.fspath(tmp_path / "i")
        )
        assert (code, "no schema 'nosuch'; there are: public" in text) == (2, True)


# ------------------------------------------------------------------------------------ Spark


@pytest.fixture(scope="module")
def warehouse():
    session = servers.spark_session()
    session.sql("CREATE SCHEMA bad")
    session.sql(
        "CREATE TABLE bad.people AS SELECT id AS number, IF(id % 2 = 0, 'w', 'm') AS sex, "
        "IF(id % 3 = 0 OR id % 10 = 2, 'yes', 'no') AS hired FROM range(60)"
    )
    session.sql(
        "CREATE TABLE bad.odd AS SELECT 1 AS number, sex COLLATE UTF8_LCASE AS sex, hired, X'61' AS raw, "
        "array(1) AS list FROM bad.people"
    )
    session.sql("CREATE TABLE bad.empty (sex STRING, hired STRING)")
    yield session
    session.sql("DROP SCHEMA bad CASCADE")


@pytest.mark.spark
def test_tables_of_spark_that_cannot_be_used(warehouse, said, tmp_path):
    plan = os.fspath(tmp_path / "plan.json")
    asked = (*ASKED, "--allow", "delete", "--tolerance", "0.01", "-o", plan)
    assert said("plan", "spark:bad.people", *asked)[0] == 0
    before = [t.name for t in warehouse.catalog.listTables("bad")]
    again = ("apply", plan, "--to")
    for arguments, sentence in (
        (("measure", "sparc:bad.people", *ASKED), "Did you mean 'spark'"),
        (("measure", "spark:", *ASKED), "names it, as in spark:warehouse.people"),
        (("measure", "spark:bad.poeple", *ASKED), "Did you mean 'bad.people'"),
        (("measure", "spark:bat.people", *ASKED), "the schemas bad, default. Did you mean 'bad'"),
        (("measure", "spark:bad.people?table=x", *ASKED), "has the parameter 'table'"),
        (("measure", "spark:bad.people?id=nosuch", *ASKED), "column 'nosuch' not found"),
        (("measure", "spark:bad.empty", *ASKED), "has no rows"),
        (("measure", "spark:bad.odd", *ASKED), "utf8_lcase.*takes different texts for equal"),
        (
            ("measure", "spark:bad.odd", "-s", "raw", "-l", "hired"),
            "type binary, whose values cannot",
        ),
        ((*again, "spark:bad.people?id=sex", "-o", "spark:bad.new"), "sex is not a key of"),
        ((*again, "spark:bad.people", "-o", "spark:bad.odd"), "exists already"),
        ((*again, "spark:bad.people", "-o", "spark:nosuch.new"), "nosuch.* cannot be found"),
        (
            ("lake", "index", "spark:nosuch", "--index", str(tmp_path / "i")),
            "neither a table nor a schema",
        ),
    ):
        code, text = said(*arguments)
        assert (code, bool(re.search(sentence, text))) == (2, True), text
    assert [t.name for t in warehouse.catalog.listTables("bad")] == before
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
