"""What a lake's files are, before any is opened: whatever lies there is listed or told of."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import workbooks
from equipoise.engines.readers import sqlite
from equipoise.engines.routing import shared_engine
from equipoise.errors import InputError, SourceNotFound
from equipoise.lake.tables import catalog

TEXT = "sex,hired\nw,yes\nm,no\n"


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


def put(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT, "utf-8")


def names(*places):
    return list(catalog.files([str(place) for place in places]))


def problems(*places):
    found = catalog.files([str(place) for place in places])
    return {name: entry.problem for name, entry in found.items() if entry.problem}


# ------------------------------------------------------------------------- which files


def test_a_folder_without_tables_is_an_empty_lake(lake):
    (lake / "notes.md").write_text("no table")
    assert names(lake) == []


def test_files_are_named_by_their_place_below_the_folder_in_order(lake):
    put(lake, "b.csv", "a/z.csv.gz", "a/y.PARQUET", "c.jsonl", "d.db", "e.zip", "f")
    assert names(lake) == ["a/y.PARQUET", "a/z.csv.gz", "b.csv", "c.jsonl", "d.db"]


def test_hidden_files_and_folders_are_left_alone(lake):
    put(lake, ".a.csv", "_b.csv", ".git/c.csv", "_tmp/d.csv", "e.csv", ".e.csv.x1.tmp.csv")
    assert names(lake) == ["e.csv"]


def test_what_killed_runs_leave_is_no_table(lake):
    index = ".equipoise-index.duckdb"
    left = [f"{index}{end}" for end in ("", ".new", ".new.wal", ".part", ".lock")]
    left += ["i.duckdb.new", "i.duckdb.new.wal", "i.duckdb.part", "i.duckdb.lock"]
    put(lake, *left, ".out.csv.1a2b.tmp.csv", ".out.csv.3c4d/out.csv")
    assert names(lake) == names(f"{lake}/*") == []
    with pytest.raises(SourceNotFound, match="no file matches"):
        names(f"{lake}/**/*.csv")


def test_a_lake_may_be_a_glob_a_list_or_one_file(lake, monkeypatch):
    put(lake, "a.csv", "b.csv", "c.txt", "sub/d.csv")
    monkeypatch.chdir(lake)
    assert names("*.csv") == ["a.csv", "b.csv"]
    assert names("**/*.csv") == ["a.csv", "b.csv", "sub/d.csv"]
    assert names("s*") == ["sub/d.csv"]  # a folder that matches is looked into
    assert names("sub", "a.csv", "c.*") == ["a.csv", "c.txt", "sub/d.csv"]
    assert names("a.csv") == ["a.csv"]
    with pytest.raises(SourceNotFound, match=r"no file matches \*\.parquet"):
        names("*.parquet")


def test_a_table_has_one_name_however_the_lake_is_given(lake, monkeypatch):
    put(lake, "a.csv", "sub/b.csv")
    a, sub = f"{lake}/a.csv", f"{lake}/sub"
    assert names(lake) == names(a, sub) == names(f"{lake}/**/*.csv") == ["a.csv", "sub/b.csv"]
    assert names(f"{lake}/*.csv") == names(a) == ["a.csv"]
    monkeypatch.chdir(lake.parent)
    assert names("lake") == names("lake/a.csv", sub) == names("./lake/") == ["a.csv", "sub/b.csv"]


def test_a_file_of_several_names_is_a_table_by_each(lake):
    put(lake, "a.csv", "sub/b.csv")
    (lake / "hard.csv").hardlink_to(lake / "a.csv")
    (lake / "soft.csv").symlink_to("sub/b.csv")
    assert names(lake) == ["a.csv", "hard.csv", "soft.csv", "sub/b.csv"]
    assert names(lake, lake, f"{lake}/*.csv") == names(lake)


@pytest.mark.parametrize(
    "name",
    ["it's.csv", 'q"uote.csv', "new\nline.csv", "ünï✓.csv", "st*r.csv", "[ab].csv", "q?.csv",
     "a::b.csv", "semi;colon.csv", " lead.csv", "back\\slash.csv", "{x,y}.csv", "-o.csv"],
)  # fmt: skip
def test_any_name_is_found_as_a_folders_file_and_alone(lake, name):
    put(lake, name)
    assert names(lake) == [name]
    assert names(lake / name) == [name]
    assert problems(lake) == {}


def test_a_file_is_known_by_its_size_and_by_when_it_was_changed_at_all(lake):
    put(lake, "a.csv")
    before = catalog.files([str(lake)])["a.csv"]
    (lake / "a.csv").write_text(TEXT[::-1], "utf-8")
    os.utime(lake / "a.csv", ns=(5, 123_456_789))  # as if nothing had been written
    after = catalog.files([str(lake)])["a.csv"]
    assert before.size == after.size == len(TEXT)
    assert after.changed > before.changed


# -------------------------------------------------------------------- what is not there


def test_a_place_that_does_not_exist_is_an_error():
    with pytest.raises(SourceNotFound, match=r"^nowhere does not exist; a lake is a folder, a fil"):
        names("nowhere")


def test_a_name_that_is_too_long_is_an_error_in_words():
    with pytest.raises(SourceNotFound, match=r"cannot be read: File name too long\.$"):
        names("x" * 300)


def test_a_file_of_no_known_format_is_an_error_when_it_is_named(lake):
    put(lake, "a.xls")
    with pytest.raises(InputError, match="has an unknown extension"):
        names(lake / "a.xls")


@pytest.mark.parametrize("nothing", [[], (), 7, None])
def test_a_lake_is_at_least_one_place(nothing):
    with pytest.raises(InputError, match="no places were given"):
        catalog.as_places(nothing)


# --------------------------------------------------------------------- what is told of


def test_links_out_of_the_lake_are_told_of_and_not_followed(lake, tmp_path):
    put(tmp_path, "outside/x.csv", "lake-too/y.csv")
    put(lake, "a.csv")
    (lake / "file.csv").symlink_to(tmp_path / "outside" / "x.csv")
    (lake / "folder").symlink_to(tmp_path / "outside")
    (lake / "sibling").symlink_to("../lake-too")
    assert problems(lake) == {
        "file.csv": "file.csv is a link that leads out of the lake.",
        "folder": "folder is a link to a folder outside the lake; name that folder.",
        "sibling": "sibling is a link to a folder outside the lake; name that folder.",
    }
    assert names(lake) == ["a.csv", "file.csv", "folder", "sibling"]


def test_links_that_go_round_or_nowhere_end_and_are_told_of(lake):
    put(lake, "sub/a.csv")
    (lake / "sub" / "up").symlink_to("..")
    (lake / "self").symlink_to("self")
    (lake / "one.csv").symlink_to("two.csv")
    (lake / "two.csv").symlink_to("one.csv")
    (lake / "gone.csv").symlink_to("was-here.csv")
    assert names(lake) == ["gone.csv", "one.csv", "sub/a.csv", "two.csv"]
    assert problems(lake) == {
        "gone.csv": "gone.csv cannot be read: No such file or directory.",
        "one.csv": "one.csv cannot be read: Too many levels of symbolic links.",
        "two.csv": "two.csv cannot be read: Too many levels of symbolic links.",
    }


def test_a_file_one_may_not_read_is_told_of(lake, monkeypatch):
    put(lake, "a.csv", "secret.csv")
    may = os.access
    monkeypatch.setattr(os, "access", lambda p, m: Path(p).name != "secret.csv" and may(p, m))
    assert problems(lake) == {"secret.csv": "secret.csv cannot be read; check its permissions."}
    closed = catalog.files([str(lake)])["secret.csv"]
    monkeypatch.undo()
    # Or nothing would tell, once it can be read, that it is to be looked at.
    assert catalog.files([str(lake)])["secret.csv"].changed != closed.changed


def closed(folder, monkeypatch):
    listed = os.scandir

    def refusing(path):
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refusing)


def test_a_folder_one_may_not_list_is_told_of(lake, monkeypatch):
    put(lake, "a.csv", "secret/b.csv")
    closed(lake / "secret", monkeypatch)
    assert names(lake) == ["a.csv", "secret"]
    assert problems(lake) == {"secret": "secret cannot be read: Permission denied."}


def test_a_lake_one_may_not_list_is_an_error(lake, monkeypatch):
    closed(lake, monkeypatch)
    with pytest.raises(SourceNotFound, match=r"lake cannot be read: Permission denied\.$"):
        names(lake)


def test_a_file_that_vanishes_meanwhile_is_told_of(lake, monkeypatch):
    put(lake, "a.csv", "b.csv")
    walked = os.walk

    def vanishing(*args, **options):
        for found in walked(*args, **options):
            (lake / "b.csv").unlink(missing_ok=True)
            yield found

    monkeypatch.setattr(os, "walk", vanishing)
    assert problems(lake) == {"b.csv": "b.csv cannot be read: No such file or directory."}


def test_a_pipe_is_told_of_and_does_not_stop_the_walk(lake):
    put(lake, "a.csv")
    os.mkfifo(lake / "pipe.csv")
    said = "pipe.csv is not a regular file; pipes and devices are not read."
    assert problems(lake) == {"pipe.csv": said}


def test_a_name_that_is_no_text_is_told_of_in_text(lake):
    put(lake, "a.csv")
    Path(os.fsdecode(os.fsencode(lake) + b"/bad\xff.csv")).write_text(TEXT)
    said = problems(lake)
    assert said == {"bad\\xff.csv": "bad\\xff.csv has a name that is not UTF-8; rename it."}
    assert all(name.encode() for name in names(lake))


# --------------------------------------------------------------------------- databases


def made(path, script):
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute(script)


def tables(lake):
    engine = shared_engine()
    found = catalog.files([str(lake)]).values()
    return {t.name: t.problem for entry in found for t in catalog.tables(entry, engine)}


def test_every_table_of_a_database_is_one_of_the_lake_and_no_view_repeats_its_rows(lake):
    made(
        lake / "d.duckdb",
        'CREATE TABLE t AS SELECT 1 a; CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 2 b; '
        'CREATE VIEW v AS FROM t; CREATE TABLE "o""dd::x" AS SELECT 3 c',
    )  # fmt: skip
    assert tables(lake) == dict.fromkeys(['d.duckdb::o"dd::x', "d.duckdb::s.t", "d.duckdb::t"])


def test_tables_of_sqlite_and_sheets_of_workbooks_are_listed(lake):
    with contextlib.closing(sqlite3.connect(lake / "lite.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("CREATE TABLE u (a)")
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
        connection.commit()
    workbooks.write(lake / "book.xlsx", {"One": [["a"], [1]], "Nothing": [], "Two": [["a"], [2]]})
    workbooks.write(lake / "bare.xlsx", {"Nothing": []})
    assert tables(lake) == {
        "bare.xlsx": "bare.xlsx has no sheets with data.",
        "book.xlsx::One": None,
        "book.xlsx::Two": None,
        "lite.db::t": None,
        "lite.db::u": None,
    }


def test_sqlite_in_use_is_looked_at_again_the_next_time(lake, monkeypatch):
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.0)
    with contextlib.closing(sqlite3.connect(lake / "a.sqlite", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("BEGIN EXCLUSIVE")
        (entry,) = catalog.tables(catalog.files([str(lake)])["a.sqlite"], shared_engine())
        assert entry.problem == "a.sqlite is being written to by another program; try again later."
        assert entry.changed == catalog._IN_USE
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("INSERT INTO t VALUES (1)")
        (entry,) = catalog.tables(catalog.files([str(lake)])["a.sqlite"], shared_engine())
        assert "has changes that are still in its log" in entry.problem


def test_a_workbook_is_looked_at_again_once_the_extra_is_there(lake, monkeypatch):
    workbooks.write(lake / "book.xlsx", {"One": [["a"], [1]]})
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "python_calamine", None)
        (entry,) = catalog.tables(catalog.files([str(lake)])["book.xlsx"], shared_engine())
        assert entry.problem.endswith("install it with: pip install 'equipoise[excel]'")
        assert (entry.changed, str(lake) in entry.problem) == (catalog._IN_USE, False)
    (entry,) = catalog.tables(catalog.files([str(lake)])["book.xlsx"], shared_engine())
    assert (entry.name, entry.problem) == ("book.xlsx::One", None)


def test_databases_that_are_none_are_told_of_without_places_of_this_machine(lake):
    made(lake / "none.duckdb", "SELECT 1")
    put(lake, "text.db")
    (lake / "empty.duckdb").touch()
    put(lake, "text.sqlite")
    said = tables(lake)
    assert said["none.duckdb"] == "none.duckdb has no tables."
    assert said["text.sqlite"].startswith("text.sqlite cannot be read as an SQLite database: file")
    for name in ("text.db", "empty.duckdb"):
        assert said[name].startswith(f"{name} cannot be opened as a DuckDB database: The file")
    assert not any(str(lake) in problem for problem in said.values())


def test_a_broken_database_is_not_taken_for_one_in_use(lake):
    path = lake / "lock.duckdb"
    made(path, "CREATE TABLE t AS SELECT 1 a")
    raw = bytearray(path.read_bytes())
    raw[12_288:] = bytes(len(raw) - 12_288)  # behind the three headers
    path.write_bytes(raw)
    said = tables(lake)["lock.duckdb"]
    assert said.startswith("lock.duckdb cannot be opened as a DuckDB database: ")


HOLD = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
connection.execute("CREATE TABLE IF NOT EXISTS t AS SELECT 1 a")
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(path):
    """Let another process hold a database open for writing."""
    command = [sys.executable, "-c", HOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"held\n"
        yield
        process.communicate()


def test_a_database_that_is_written_to_is_told_of_and_looked_at_again_later(lake):
    with held(lake / "d.duckdb"):
        (entry,) = catalog.files([str(lake)]).values()
        (busy,) = catalog.tables(entry, shared_engine())
        assert busy.problem == "d.duckdb is being written to by another program; try again later."
        assert busy.changed != entry.changed
    assert tables(lake) == {"d.duckdb::t": None}


def test_a_database_with_a_log_beside_it_is_not_read(lake):
    with contextlib.closing(duckdb.connect(str(lake / "d.duckdb"))) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 a; CHECKPOINT")
        connection.execute("PRAGMA disable_checkpoint_on_shutdown; INSERT INTO t VALUES (2)")
    assert (lake / "d.duckdb.wal").stat().st_size
    assert "still in its log" in tables(lake)["d.duckdb"]
