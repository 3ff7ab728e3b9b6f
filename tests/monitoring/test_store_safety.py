"""What a monitor that stays open never does: write elsewhere, or lose what it has acknowledged."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from urllib.parse import quote

import psycopg
import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.errors import EquipoiseError, InputError, SourceNotFound
from equipoise.monitoring.store import schema
from equipoise.monitoring.store.sqlite import SqliteDatabase
from forked import parent as forked_parent
from servers import new_database
from streams import START, day, fill


@pytest.mark.parametrize("schema", ["monitoring", 'Odd "name", \\ of\' $user'])
def test_a_lost_connection_is_made_again_in_the_same_schema(schema):
    with new_database() as address, psycopg.connect(address, autocommit=True) as owner:
        quoted = psycopg.sql.Identifier(schema)
        owner.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(quoted))
        with eq.Monitor(address) as public:
            fill(public, [day(1)])
        place = psycopg.conninfo.conninfo_to_dict(address)
        named = f"{address}{'&' if '?' in address else '?'}schema={quote(schema, safe='')}"
        with eq.Monitor(named) as monitor:
            fill(monitor, [day(), day(20)])
            _end_connections(owner, place["dbname"])
            with pytest.raises(EquipoiseError, match="connection to the database was lost"):
                monitor.batches("hires")
            assert len(monitor.batches("hires").batches) == 2
            monitor.add(day(25), name="hires", at="2026-02-01")
            assert len(monitor.batches("hires").batches) == 3
        with eq.Monitor(address) as public:
            assert public.counts("hires") == day(1)


def test_a_connection_that_is_lost_in_a_transaction_writes_nothing_of_it():
    from equipoise.engines.postgres.records import RecordConnection

    with new_database() as address, psycopg.connect(address, autocommit=True) as owner:
        owner.execute("CREATE TABLE kept (number INT)")
        name = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
        records = RecordConnection(address)

        def work():
            with records.transaction(write=True):
                records.run("INSERT INTO kept VALUES (1)")
                _end_connections(owner, name)
                with contextlib.suppress(EquipoiseError):
                    records.run("INSERT INTO kept VALUES (2)")
                records.run("INSERT INTO kept VALUES (3)")

        with pytest.raises(EquipoiseError, match="lost in a transaction"):
            work()
        assert owner.execute("SELECT * FROM kept").fetchall() == []
        records.run("INSERT INTO kept VALUES (4)")
        assert owner.execute("SELECT * FROM kept").fetchall() == [(4,)]
        records.close()


# ------------------------------------------------------------------- forks


def forked(work):
    """Start to work in a process of its own; return how to wait for what it returns."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # so that it ends even if the test does not tell it to go on
        try:
            said = work()
        except BaseException as error:  # noqa: BLE001  it must not go on as the test
            said = repr(error)
        os.write(there, str(said).encode())
        os._exit(0)
    os.close(there)

    def end():
        with os.fdopen(here, encoding="utf-8") as answer:
            said = answer.read()
        os.waitpid(pid, 0)
        return said

    return end


def at_day(number):
    return f"2026-03-{number:02}"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_batches_that_a_forked_process_adds_are_kept(tmp_path, kind):
    with contextlib.ExitStack() as stack:
        address = str(tmp_path / "bias.sqlite")
        if kind == "postgres":
            address = stack.enter_context(new_database())
        monitor = eq.Monitor(address)
        monitor.add(day(), name="hires", at=at_day(1))
        go, gone = os.pipe()

        def work():
            monitor.add(day(21), name="hires", at=at_day(2))
            os.read(go, 1)  # until the other process has closed the store
            return monitor.add(day(22), name="hires", at=at_day(3)).added

        end = forked(work)
        monitor.add(day(23), name="hires", at=at_day(4))
        monitor.close()
        os.write(gone, b"x")
        assert end() == "1"
        with eq.Monitor(address) as other:
            ns = {batch.starts.day for batch in other.batches("hires").batches}
        assert ns == {1, 2, 3, 4}
        assert len(monitor.batches("hires").batches) == 4
        monitor.close()


def test_the_log_is_there_while_a_forked_process_uses_it(tmp_path):
    path = tmp_path / "bias.sqlite"
    monitor = eq.Monitor(path)
    monitor.add(day(), name="hires", at=at_day(1))
    ready, is_ready = os.pipe()
    go, gone = os.pipe()

    def work():
        monitor.add(day(21), name="hires", at=at_day(2))
        os.write(is_ready, b"x")
        os.read(go, 1)
        return monitor.add(day(22), name="hires", at=at_day(3)).added

    end = forked(work)
    os.read(ready, 1)
    monitor.add(day(23), name="hires", at=at_day(4))
    monitor.close()
    assert path.with_name("bias.sqlite-wal").exists()
    os.write(gone, b"x")
    assert end() == "1"
    with eq.Monitor(path) as other:
        assert len(other.batches("hires").batches) == 4


def test_a_thread_that_uses_a_monitor_does_not_lock_it_for_a_forked_process(tmp_path, monkeypatch):
    from equipoise.api import stores

    monkeypatch.setattr(stores, "_PATIENCE", 0.1)
    monitor = eq.Monitor(tmp_path / "bias.sqlite")
    monitor.add(day(), name="hires", at=at_day(1))
    monitor.close()
    held, done = threading.Event(), threading.Event()

    def use():
        with monitor._lock:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=use)
    thread.start()
    held.wait(30)
    end = forked(lambda: monitor.add(day(21), name="hires", at=at_day(2)).added)
    assert end() == "1"
    done.set()
    thread.join()
    assert len(monitor.batches("hires").batches) == 2
    monitor.close()


# ------------------------------------------------------------------- other files


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "bias.sqlite"
    with eq.Monitor(made) as monitor:
        monitor.add(day(), name="first", at=at_day(1))
        monitor.add(day(), name="hires", at=at_day(1))
    return made


def remove(path):
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)


FORGOTTEN = """\
import sys
import equipoise as eq
from streams import day

def add(number):
    monitor = eq.Monitor(sys.argv[1])
    monitor.add(day(number), name="hires", at=f"2026-02-0{number}")
    return monitor

add(1)
import os
print(*sorted(os.listdir()))
monitor = add(2)
"""


def test_a_program_that_closes_no_monitor_leaves_one_file(tmp_path):
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", FORGOTTEN, "bias.sqlite"],
        check=True,
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "bias.sqlite\n"
    assert done.stderr == ""
    assert [file.name for file in tmp_path.iterdir()] == ["bias.sqlite"]
    with eq.Monitor(tmp_path / "bias.sqlite") as monitor:
        assert monitor.counts("hires") == day(1) + day(2)


@pytest.mark.parametrize("command", ["check", "show", "metrics", "list", "plan", "acknowledge"])
def test_a_command_leaves_one_file(path, command, capsys):
    store = ["--store", str(path), "--name", "hires"]
    limits = ["--max-abs-ub", "0.9"] if command in ("check", "show", "metrics") else []
    assert run(["monitor", command, *store, *limits]) == 0
    assert [file.name for file in path.parent.iterdir()] == ["bias.sqlite"]


def test_a_store_that_is_locked_is_waited_for_once(path, monkeypatch):
    modes, connect = [], SqliteDatabase._connect
    monkeypatch.setattr("equipoise.monitoring.store.sqlite.WAIT", 0.2)
    monkeypatch.setattr(
        SqliteDatabase, "_connect", lambda self, mode: modes.append(mode) or connect(self, mode)
    )
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="is in use by another program"):
            eq.Monitor(path).check("hires")
    assert modes == ["rw"]
    assert eq.Monitor(path).check("hires").batches == 1


def test_a_file_that_was_replaced_is_opened_again(path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    with eq.Monitor(path) as monitor:
        monitor.add(day(20), name="hires", at=at_day(2))
        remove(path)
        shutil.move(copy, path)
        assert monitor.counts("hires") == day()
        monitor.add(day(21), name="hires", at=at_day(3))
        with eq.Monitor(path) as other:
            assert other.counts("hires") == day() + day(21)


def test_a_file_that_was_deleted_is_told_or_made_anew(path):
    with eq.Monitor(path) as monitor:
        monitor.add(day(20), name="hires", at=at_day(2))
        remove(path)
        with pytest.raises(SourceNotFound, match="there is no store"):
            monitor.check("hires")
        assert monitor.add(day(21), name="hires", at=at_day(3)).added == 1
        with eq.Monitor(path) as other:
            assert other.counts("hires") == day(21)


def test_a_file_that_is_replaced_while_a_batch_is_counted_is_left_alone(path, tmp_path):
    other = tmp_path / "other.sqlite"
    with eq.Monitor(other) as monitor:
        monitor.add(day(1), name="others", at=at_day(1))
    rows = {"sex": ["w", "m"], "hired": ["yes", "no"]}

    def replace(*_):
        if other.exists():
            remove(path)
            shutil.move(other, path)

    with eq.Monitor(path) as monitor:
        monitor.add(day(20), name="hires", at=at_day(2))
        monitor._clock = lambda: replace() or START
        with pytest.raises(InputError, match=r"removed or replaced while it was .*nothing was"):
            monitor.add(rows, name="hires")
        with eq.Monitor(path) as there:
            assert [s.stream.name for s in there.streams().streams] == ["others"]
            assert there.counts("others") == day(1)


def test_nothing_is_acknowledged_that_goes_to_a_file_without_a_name(path):
    from equipoise.monitoring.store.store import Store

    with Store(str(path), write=True) as store:
        stream = store.stream("hires")
        place = store.last_place(stream)

        def work():
            with store.writing():
                store.note(stream, place, "acknowledged", {"text": "seen"})
                remove(path)

        with pytest.raises(InputError, match="removed or replaced while it was open; nothing was"):
            work()


def test_a_relative_name_stays_the_file_that_was_opened(path, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(path.parent)
    with eq.Monitor(path.name) as monitor:
        assert monitor.counts("hires") == day()
        monkeypatch.chdir(elsewhere)
        assert monitor.counts("hires") == day()


@pytest.mark.slow
def test_files_of_a_reader_that_keep_others_from_writing_are_named(path, tmp_path):
    beside = [path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm")]
    with eq.Monitor(path, read_only=True) as monitor:
        monitor.check("hires")
    for file in beside:
        file.touch()
        file.chmod(0o444)
    with forked_parent(tmp_path) as parent:
        told = parent.type(
            *("withdraw", "--name", "hires", "--store", path, "--id", "1"), usual_rights=True
        )
        assert told.wait() == 2
    assert "bias.sqlite-shm of the user" in told.said
    assert "do not delete them" in told.said
    for file in beside:
        file.chmod(0o644)
    with eq.Monitor(path) as monitor:
        assert monitor.add(day(20), name="hires", at=at_day(2)).added == 1


# ------------------------------------------------------------------- older versions


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_monitor_that_only_reads_does_not_migrate(path, monkeypatch, kind):
    later = ("ALTER TABLE equipoise_batch ADD COLUMN extra BIGINT NOT NULL DEFAULT 7",)
    with contextlib.ExitStack() as stack:
        address = str(path)
        if kind == "postgres":
            address = stack.enter_context(new_database())
            with eq.Monitor(address) as monitor:
                monitor.add(day(), name="hires", at=at_day(1))
        before = path.read_bytes()
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, later))
        reader = eq.Monitor(address, read_only=True)
        with pytest.raises(InputError, match="older version of Equipoise"):
            reader.check("hires")
        assert path.read_bytes() == before
        with eq.Monitor(address) as monitor:
            assert len(monitor.streams().streams) in (1, 2)
        assert reader.counts("hires") == day()
        reader.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_of_others_with_our_mark_is_no_store(tmp_path, read_only):
    place = tmp_path / "theirs.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
        connection.execute("CREATE TABLE people (sex TEXT)")
    before = place.read_bytes()
    with pytest.raises(InputError, match="but not a store of equipoise monitor"):
        eq.Monitor(place, read_only=read_only).streams()
    with pytest.raises(InputError):
        eq.Monitor(place, read_only=read_only).add(day(), name="hires")
    assert place.read_bytes() == before


# ------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    "address",
    [
        "jdbc:postgresql://u:secret@h/db",
        "JDBC:postgresql://h/db?user=u&password=secret",
        " postgresql://u:secret@h/db",
        "host=h password=secret dbname=d",
        "host=/var/run/postgresql user = u dbname=d password = secret",
        "user=u port=5432",
        "service=ours",
    ],
)
def test_other_ways_to_name_a_database_are_refused_without_their_passwords(address, tmp_path):
    with pytest.raises(InputError, match="postgresql://user@host/db") as refused:
        eq.Monitor(address)
    assert "secret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["host=a/bias.sqlite", "the host.sqlite", "user.sqlite"])
def test_names_of_files_are_no_such_ways(name, tmp_path):
    (tmp_path / "host=a").mkdir()
    with eq.Monitor(tmp_path / name) as monitor:
        monitor.add(day(), name="hires", at=at_day(1))
    eq.Monitor(name)


def _end_connections(owner, database):
    ended = owner.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = %s AND pid <> pg_backend_pid()",
        [database],
    ).fetchall()
    assert ended
