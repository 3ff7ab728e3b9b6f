"""Addresses: what is one, how it is shown, and that its password is in nothing that is written."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.cli.app import run
from equipoise.engines.addresses import (
    SCHEMES,
    beside,
    locator,
    scheme_of,
    scrubbed,
    secrets_of,
    split,
    with_login,
    without_password,
)
from equipoise.engines.postgres._session import Session
from equipoise.engines.sources import Source, locate
from equipoise.errors import InputError
from equipoise.progress import silent

SECRET = "hunter2-very-secret"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_is_known_and_has_a_locator(scheme):
    assert scheme_of(f"{scheme}:somewhere") == scheme
    assert SCHEMES[scheme].about
    assert callable(locator(scheme))


@pytest.mark.parametrize(
    "path", ["people.csv", "people.duckdb::people", r"C:\data\a.csv", "C:/a.csv", "c:a.csv", "-"]
)
def test_paths_are_not_addresses(path):
    assert scheme_of(path) is None


def test_an_existing_path_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:people.csv").write_text("a\n1\n")
    assert scheme_of("s3:people.csv") is None
    assert scheme_of("s3:p*.csv") is None
    assert scheme_of("s3:other.csv") == "s3"
    assert locate("s3:people.csv").kind == "csv"


def test_an_unknown_scheme_names_the_known_ones():
    with pytest.raises(InputError, match=r"known are .*Did you mean 'memory'\?") as caught:
        scheme_of(f"memry://ann:{SECRET}@host/x")
    assert SECRET not in str(caught.value)


def test_a_file_by_its_address(tmp_path):
    (tmp_path / "my people.csv").write_text("a\n1\n")
    source = locate(f"file://{tmp_path}/my%20people.csv")
    assert source.paths == (tmp_path / "my people.csv",)


def test_parameters_are_split_off():
    assert split("iceberg:sqlite:///c.db?table=a.b&snapshot=1") == (
        "iceberg:sqlite:///c.db",
        {"table": "a.b", "snapshot": "1"},
    )
    assert split("s3://bucket/what?.csv") == ("s3://bucket/what?.csv", {})


SERVERS = ("h:1", "h:1,i:2", "h:1,i", "[::1]:5432", "[::1]", "h", "")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:pw@host/db?table=t", "postgresql://ann@host/db?table=t"),
        ("postgresql://ann:p@w/x@host/db", "postgresql://ann@host/db"),
        ("postgresql://:pw@host/db", "postgresql://host/db"),
        ("https://token@host/a.csv", "https://host/a.csv"),
        ("http://host:8080/a@b.csv", "http://host:8080/a@b.csv"),
        ("s3://bucket/a:b@c.csv", "s3://bucket/a:b@c.csv"),
        ("iceberg:https://h/?token=x&table=a.b", "iceberg:https://h/?table=a.b"),
        ("az://c/a.csv?sv=1&sig=x", "az://c/a.csv?sv=1"),
        ("https://h/a.csv?X-Amz-Signature=x&X-Amz-Credential=y", "https://h/a.csv"),
        ("postgresql://h/db?password=a b&table=t", "postgresql://h/db?table=t"),
        ("postgresql://h/db?keyspace=k&monkey=1", "postgresql://h/db?keyspace=k"),
        ("postgresql://ann:pw@host/db?options=a@b", "postgresql://ann@host/db?options=a@b"),
        ("postgresql://ann:p?x=1@host/db?table=t", "postgresql://ann@host/db?table=t"),
        ("postgresql://ann:12?34@host/db?table=t", "postgresql://ann@host/db?table=t"),
        ("postgresql://a?n:12@host/db?table=t", "postgresql://a?n@host/db?table=t"),
        ("postgresql://ann:?12@host/db?table=t", "postgresql://ann@host/db?table=t"),
        ("postgresql://ann:12/34@host?table=t", "postgresql://ann@host?table=t"),
        ("postgresql://ann:12/?a=1@host/db?table=t", "postgresql://ann@host/db?table=t"),
        ("postgresql://h:5432/db?user=ann@x&table=t", "postgresql://h:5432/db?user=ann@x&table=t"),
        *((f"postgresql://{x}/d?user=a@x", f"postgresql://{x}/d?user=a@x") for x in SERVERS),
        ("postgresql:ann:pw@host/db?table=t", "postgresql:ann@host/db?table=t"),
        ("postgresql:/ann:p@w@host/db?table=a@b", "postgresql:/ann@host/db?table=a@b"),
        ("postgresql:///ann:pw@host/db", "postgresql:///ann@host/db"),
        ("POSTGRESQL://ann:p?w@host/db", "POSTGRESQL://ann@host/db"),
        ("postgrs:ann:pw@host/db", "postgrs:ann@host/db"),
        ("https:/ann:pw@host/a.csv", "https:/host/a.csv"),
        ("http:/host:80/a@b.csv", "http:/host:80/a@b.csv"),
        ("iceberg:postgresql://ann:pw@h/db?table=a.b", "iceberg:postgresql://ann@h/db?table=a.b"),
        ("people.duckdb::a:b@c", "people.duckdb::a:b@c"),
        ("delta:people:b@c", "delta:people:b@c"),
        ("host=h user=ann password=pw dbname=db", "host=h user=ann dbname=db"),
        ("host=h password='a b' dbname=db", "host=h dbname=db"),
        (r"host=h sslpassword = 'it\'s' dbname=db", "host=h dbname=db"),
        ("host=h password='a b", "host=h"),
        (r"password=a\ b", ""),
        ("http://ann:12?34@host/a.csv", "http://host/a.csv"),
        ("http://host:80?mail=a@b", "http://host:80?mail=a@b"),
        ("people.csv", "people.csv"),
    ],
)
def test_how_an_address_is_shown(address, shown):
    assert without_password(address) == shown
    assert without_password(shown) == shown
    assert not any(secret in shown for secret in secrets_of(address) if len(secret) > 1)


SIGNS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)


@given(SIGNS, SIGNS)
def test_no_sign_of_a_password_is_shown(password, value):
    assume("=" not in password)  # or its end might be a parameter
    password, value = f"<{password}>", f"<{value}>".replace("&", "")
    address = f"postgresql://ann:{password}@host/db?table=t&password={value}"
    assert without_password(address) == "postgresql://ann@host/db?table=t"
    assert {password, value} <= set(secrets_of(address))
    said = f"connection to {address} failed: {password} or {value}"
    assert password not in scrubbed(said, [address])
    assert value not in scrubbed(said, [address])


MARK = "774411"
PIECES = [*"?:/#;&.%+12ax", "%40", "%3F", "%2F", "?a=1", "&b=2"]


@given(
    st.lists(st.sampled_from(PIECES), max_size=5),
    st.lists(st.sampled_from(PIECES), max_size=5),
    st.sampled_from(["", "/db", "/db?table=people", "/db?table=people&table=x", "?sslmode=prefer"]),
)
def test_no_password_of_postgres_is_shown(before, after, rest):
    password = f"{''.join(before)}{MARK}{''.join(after)}"
    assume("/" not in password or "=" not in password)  # or its end might be a parameter
    address = f"postgresql://ann:{password}@host{rest}"
    said = f"{without_password(address)} {scrubbed(f'no {address}: {password}', [address])}"
    try:
        source = locate(address)
        assert source.table == "people"
        said += f" {source.name} {source!r} {Session(source.address, silent).unopened(OSError(address))}"
    except InputError as error:
        said += f" {error}"
    assert MARK not in said
    assert "ann@host" in said


@pytest.mark.parametrize("password", ["pa?ss", "12?34", "s3cret?", "top?secret", "a?b=c&d=e", ":x"])
def test_addresses_of_postgres_are_split_as_the_driver_does(password):
    conninfo = pytest.importorskip("psycopg.conninfo").conninfo_to_dict
    address = f"postgresql://ann:{password}@host:5433/db?sslmode=prefer&table=people"
    source = locate(address)
    expected = {"user": "ann", "password": password, "host": "host", "port": "5433", "dbname": "db"}
    assert conninfo(source.address) == {**expected, "sslmode": "prefer"}
    assert source.table == "people"
    assert beside(address, "_ledger") == address.replace("people", "people_ledger")


def test_a_scheme_may_be_written_in_capitals():
    source = locate("POSTGRESQL://ann:pw@host/db?table=people")
    assert (source.name, source.address) == (
        "postgresql://ann@host/db?table=people",
        "postgresql://ann:pw@host/db",
    )
    assert beside("Postgres://h/db?table=people", "_x") == "postgres://h/db?table=people_x"


@pytest.mark.parametrize("login", ["ann:p@ss@host", "ann:12/34@host", "ann:a/b?c@host"])
def test_a_login_that_the_driver_would_misread_is_refused(login):
    with pytest.raises(
        InputError, match=r"^postgresql://ann@host/db.* misread; .*%40, and / as %2F"
    ):
        locate(f"postgresql://{login}/db?table=people")


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql:ann:{SECRET}@h/rv?table=people",
        f"postgresql:/ann:{SECRET}@h/rv?table=people",
        f"ann:{SECRET}@h/rv?table=people",
        f"host=h user=ann password={SECRET} dbname=rv",
        rf"host=h user=ann password='it\'s {SECRET}' dbname=rv",
        f"{SECRET[:2]}:/ann:{SECRET}@h/rv",
    ],
)
def test_no_password_of_a_mistyped_address_is_told(address):
    with pytest.raises(InputError) as caught:
        locate(address)
    assert SECRET not in str(caught.value)
    assert "ann" in str(caught.value)


@pytest.mark.parametrize("password", ["a", "pas", "password", "server", "ann", "Connection"])
@pytest.mark.parametrize(
    "said",
    [
        'connection to server on socket "/a/pas" failed: FATAL:  password authentication failed for user "ann"',
        'connection to server at "a", port 1 failed: fe_sendauth: no password supplied',
        'connection to server at "::1", port 1 failed: Connection refused',
    ],
)
def test_a_password_in_the_words_of_a_refusal_is_not_told_by_hiding_it(password, said):
    session = Session(f"postgresql://ann:{password}@host/db", silent)
    text = str(session.unopened(psycopg.OperationalError(f"connection failed: {said}")))
    assert "***" not in text
    assert text.endswith("reached." if "refused" in said else "from PGPASSWORD or ~/.pgpass.")
    assert said.rpartition("failed: ")[2].removeprefix("FATAL:  ") in text


def test_a_sentence_keeps_its_signs_when_a_secret_goes():
    said = "s3://b/a.csv?key=abc does not exist; it is elsewhere. Did you mean 'b'?"
    assert scrubbed(said) == said.replace("?key=abc", "")
    assert scrubbed("https://h/a?a=1&sig=x&b=2&key=y gone;") == "https://h/a?a=1&b=2 gone;"


def test_short_secrets_are_hidden_only_by_themselves():
    assert scrubbed("cat of 'at' a", ["https://h/x?sig=at"]) == "cat of '***' a"
    assert scrubbed("a cat", ["https://h/x?sig=a"]) == "a cat"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("postgresql://ann:p%40@h/db?schema=s&sslmode=prefer&id=n", "postgresql://ann:p%40@h/db?"),
        (
            "postgresql://ann@h/db?schema=s&password=x&sslmode=prefer",
            "postgresql://ann@h/db?password=x&",
        ),
        ("postgresql://bob:pw@h/db?schema=s&sslmode=prefer", None),
        ("postgresql://ann:pw@i/db?schema=s&sslmode=prefer", None),
        ("postgresql://ann:pw@h/other?schema=s&sslmode=prefer", None),
        ("postgresql://ann:pw@h/db?schema=s", None),
        ("postgresql://ann:pw@h:1/db?schema=s&sslmode=prefer", None),
        ("s3://bucket/files", None),
        ("./files", None),
    ],
)
def test_a_password_is_used_again_only_for_the_same_login(place, expected):
    recorded = "postgresql://ann@h/db?table=a.b&id=n,m&sslmode=prefer"
    found = with_login(recorded, [place])
    same = f"{expected}sslmode=prefer&table=a.b&id=n,m"
    assert found == (recorded if expected is None else same)
    assert locate(found).key == ("n", "m")


def test_a_source_never_shows_its_password():
    address = f"postgresql://ann:{SECRET}@host/db"
    source = Source(name=address, kind="csv", address=address)
    assert SECRET not in source.name + source.public_name + repr(source)
    assert source.address == address


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("s3://bucket/people.csv", "s3://bucket/people.csv"),
        ("postgresql://ann@host/db?table=t", "postgresql://ann@host/db?table=t"),
        ("delta:/data/ann/people", "delta:people"),
        ("delta:./people", "delta:./people"),
        ("delta:s3://bucket/people", "delta:s3://bucket/people"),
        ("/data/ann/people", "people"),
    ],
)
def test_public_names_have_no_folders_of_this_machine(name, public):
    assert Source(name=name, kind="delta", address=name).public_name == public


ADDRESSES = {
    "unknown scheme": f"mystery://ann:{SECRET}@host/people.csv",
    "nearly known": f"s4://ann:{SECRET}@bucket/people.csv",
    "missing file": f"memory://nothing/people.csv?token={SECRET}",
    "no server": f"http://ann:{SECRET}@127.0.0.1:9/people.csv?sig={SECRET}",
    "unknown file": f"file://ann:{SECRET}@host/people.csv",
}
COLUMNS = ["--sensitive", "sex", "--label", "income"]
COMMANDS = {
    "measure": lambda address: ["measure", address, *COLUMNS, "--output", "page.html"],
    "plan": lambda address: ["plan", address, *COLUMNS, "--output", "plan.json"],
    "index": lambda address: ["lake", "index", address],
    "repair": lambda address: ["repair", "base.csv", address, *COLUMNS, "-o", "repaired.csv"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", ADDRESSES)
def test_no_password_in_anything_printed_or_written(case, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "base.csv").write_text("sex,income\nw,low\nm,high\nw,high\nm,low\nw,low\n")
    before = {path.name for path in tmp_path.iterdir()}
    assert run(COMMANDS[command](ADDRESSES[case])) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert SECRET not in err
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == before
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in written)
    assert not any(SECRET in str(path) for path in tmp_path.rglob("*"))
