"""Stores under several writers, killed writers, full disks, missing rights, damage and Ctrl-C."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

import equipoise as eq
import forked
from equipoise.cli.app import run
from equipoise.cli.output import print_result
from equipoise.errors import InputError
from forked import NAME, add, kept, sums
from streams import biased, day, fill

WHERE = ("--name", NAME, "--store")
ROOMS = (1000, 4096, *range(33_000, 200_000, 4_120))
"""Bytes that a file may have: every page of the log of a store is once the first without room."""


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    with forked.parent(tmp_path_factory.mktemp("answers")) as made:
        yield made


@pytest.fixture
def store(tmp_path):
    """A store with five batches."""
    path = tmp_path / "bias.sqlite"
    with eq.Monitor(path) as monitor:
        for number in range(5):
            add(monitor, number)
    return path


@pytest.fixture
def people(tmp_path):
    """A table with another batch."""
    path = tmp_path / "people.csv"
    path.write_text("sex,race,granted\nm,a,no\nw,a,yes\n", encoding="utf-8")
    return path


def numbers(place):
    """The numbers of all batches that are there, each as often as it is."""
    with eq.Monitor(place, read_only=True) as monitor:
        if not monitor.streams().streams:
            return []
        return [int(batch.id) for batch in monitor.batches(NAME).batches]


def require_whole(place, told):
    """Every batch that was told is there once, at most one more is, and all have their cells."""
    there = numbers(place)
    assert Counter(there).most_common(1)[0][1] == 1
    assert set(told) <= set(there)
    assert len(there) <= len(set(told)) + 1
    with eq.Monitor(place, read_only=True) as monitor:
        assert kept(monitor) == sums(there)
    require_integrity(place)


def require_integrity(place):
    if Path(place).exists():
        with contextlib.closing(sqlite3.connect(place)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# ------------------------------------------------------------------- several at once


@pytest.mark.slow
def test_writers_that_begin_at_once_make_one_store_and_lose_nothing(address, parent):
    # The store and the stream are made by whoever is first.
    start = time.time() + 0.3
    parts = [range(i, 240, 4) for i in range(4)]
    writers = [parent.add(address, part, start=start) for part in parts]
    for writer, part in zip(writers, parts, strict=True):
        assert writer.wait() == 0, writer.said
        assert writer.told == list(part)
    require_whole(address, range(240))


@pytest.mark.slow
def test_the_same_batches_of_several_writers_are_there_once(address, parent):
    start = time.time() + 0.3
    writers = [parent.add(address, range(60), start=start) for _ in range(3)]
    assert [(w.wait(), w.told) for w in writers] == [(0, list(range(60)))] * 3
    require_whole(address, range(60))


@pytest.mark.slow
def test_stores_made_at_one_moment_are_never_taken_for_others(tmp_path, parent):
    for number in range(12):
        place = tmp_path / f"{number}.sqlite"
        start = time.time() + 0.1
        writers = [parent.add(place, [i], start=start) for i in range(5)]
        assert [(w.wait(), w.said) for w in writers] == [(0, f"{i}\n") for i in range(5)]
        require_whole(place, range(5))


def test_a_long_count_is_not_taken_for_a_clock_that_went_back(store):
    begin = datetime.datetime(2027, 5, 1, tzinfo=datetime.UTC)
    later = begin + datetime.timedelta(minutes=20)
    with eq.Monitor(store) as slow, eq.Monitor(store) as other:
        other._clock = lambda: later
        moments = iter([begin])

        def clock():
            if (moment := next(moments, None)) is not None:
                add(other, 5)
            return moment or later

        slow._clock = clock
        cells = {("w", "a", "yes"): 1}
        counts = eq.Counts.from_mapping(cells, sensitive=forked.COLUMNS, label="granted")
        assert slow.add(counts, name=NAME).batch.starts == begin
        assert kept(other) == sums(range(6)) + Counter(cells)


# ------------------------------------------------------------------- kill -9


@pytest.mark.slow
@pytest.mark.parametrize("kills", [9])
def test_killed_writers_lose_nothing_that_was_acknowledged(address, parent, kills):
    moment = random.Random(5)
    told = []
    for _ in range(kills):
        # Each begins with what was acknowledged last, and with what was cut off.
        writer = parent.add(address, range(max(told, default=0), 10_000))
        writer.wait_for_more()
        time.sleep(moment.uniform(0, 0.1))
        writer.send(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        told += writer.told
        require_whole(address, told)
    with eq.Monitor(address) as monitor:
        add(monitor, max(told) + 1)


@pytest.mark.slow
def test_killed_while_the_store_is_made(tmp_path, parent):
    for room in ROOMS:
        place = tmp_path / f"{room}.sqlite"
        # Killed while it writes the byte at which there is no more room.
        writer = parent.add(place, [0], room=room, deadly=True)
        enough = writer.wait() == 0
        assert writer.told == [0] * enough
        other = parent.add(place, [0, 1])
        assert (other.wait(), other.told) == (0, [0, 1])
        require_whole(place, [0, 1])
        if enough:
            break
    assert room > 50_000


@pytest.mark.slow
def test_killed_at_random_moments_while_the_store_is_made(tmp_path, parent):
    for number in range(25):
        place = tmp_path / f"{number}.sqlite"
        writer = parent.add(place, [0])
        time.sleep(number * 0.002)
        writer.send(signal.SIGKILL)
        writer.wait()
        with eq.Monitor(place) as monitor:
            assert add(monitor, 0).added == (not writer.told) or not writer.told
        require_whole(place, [0])


@pytest.mark.slow
@pytest.mark.parametrize("room", range(33_000, 110_000, 7001))
def test_killed_in_the_middle_of_an_add(store, parent, room):
    writer = parent.add(store, range(5, 100), room=room, deadly=True)
    assert writer.wait() == -signal.SIGXFSZ
    require_whole(store, [*range(5), *writer.told])
    next_one = parent.add(store, range(5, 100))
    assert next_one.wait() == 0
    require_whole(store, range(100))


def raised(check):
    return [(str(f.group), f.label, f.raised, round(f.log10_e, 6)) for f in check.alerts]


@pytest.mark.slow
def test_killed_while_batches_are_merged(tmp_path, parent):
    place = tmp_path / "bias.sqlite"
    with eq.Monitor(place) as monitor:
        fill(monitor, biased(80), name=NAME)
        before = monitor.counts(NAME)
        check = monitor.check(NAME)
    shutil.copy(place, tmp_path / "first.sqlite")
    ended = set()
    for room in range(33_000, 250_000, 12_007):
        merged = parent.type("merge", *WHERE, place, "--older-than", "2w", room=room, deadly=True)
        ended.add(merged.wait())
        require_integrity(place)
        with eq.Monitor(place, read_only=True) as monitor:
            assert monitor.counts(NAME) == before
            again = monitor.check(NAME)
            assert raised(again) == raised(check)
            assert monitor.streams().streams[0].batches == 80
            there = len(monitor.batches(NAME).batches)
        assert there in (80, 29)
        shutil.copy(tmp_path / "first.sqlite", place)
        for name in ("-wal", "-shm"):
            place.with_name(place.name + name).unlink(missing_ok=True)
    assert ended == {0, -signal.SIGXFSZ}


# ------------------------------------------------------------------- full disks


@pytest.mark.slow
@pytest.mark.parametrize("room", [1000, 20_000, 33_000, 47_000, 60_000, 95_000])
def test_a_full_disk_is_told_and_the_store_stays_whole(store, parent, room):
    writer = parent.add(store, range(5, 100), room=room)
    assert writer.wait() == 70
    *_, error = writer.said.splitlines()
    assert error.startswith(
        f"equipoise.errors.InputError: {store} could not be written, because the"
    )
    assert error.endswith("all earlier batches are kept. Free some disk space and try again.")
    told = [int(line) for line in writer.said.splitlines() if line.isdigit()]
    assert numbers(store) == [*range(5), *told]
    require_whole(store, [*range(5), *told])
    writer = parent.add(store, range(5, 100))
    assert writer.wait() == 0
    require_whole(store, range(100))


@pytest.mark.slow
def test_a_store_on_a_full_disk_is_still_checked_and_shown(store, parent):
    for command in ("check", "show", "list"):
        roomy = parent.type(command, *WHERE, store)
        code = roomy.wait()
        full = parent.type(command, *WHERE, store, room=1000)
        assert full.wait() == code in (0, 1, 3), full.said
        assert full.said.partition("\n")[0] == roomy.said.partition("\n")[0]


@pytest.mark.slow
def test_a_full_disk_while_the_store_is_made(tmp_path, parent, people):
    how = ("-s", "sex,race", "-l", "granted", "--at", "2026-01-01")
    for room in ROOMS:
        place = tmp_path / f"{room}.sqlite"
        adding = parent.type("add", people, *WHERE, place, *how, room=room)
        if (code := adding.wait()) == 0:
            break
        assert code == 2
        assert adding.said.startswith(
            f"error: {place} could not be written, because the disk is full"
        )
        assert adding.said.count("\n") == 1
        require_integrity(place)
        # Nothing of the stream is there: it may as well be made with other columns.
        with eq.Monitor(place) as monitor:
            fill(monitor, [day()], name=NAME)
            assert monitor.counts(NAME) == day()
    assert room > 50_000


# ------------------------------------------------------------------- missing rights


@pytest.mark.slow
@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o755), (0o444, 0o555), (0o644, 0o555)])
def test_without_rights_to_write_a_store_is_read_and_nothing_is_changed(
    store, parent, people, file, folder
):
    before = store.read_bytes()
    typed = functools.partial(parent.type, usual_rights=True)
    store.chmod(file)
    store.parent.chmod(folder)
    try:
        looking = [typed(command, *WHERE, store) for command in ("check", "show", "list")]
        assert [each.wait() in (0, 1, 3) for each in looking] == [True] * 3
        for line in (
            ("add", people, *WHERE, store),
            ("withdraw", *WHERE, store, "--id", "1"),
            ("acknowledge", *WHERE, store),
        ):
            changing = typed(*line)
            assert changing.wait() == 2
            assert changing.said.startswith(f"error: {store} cannot be written to (")
            assert changing.said.count("\n") == 1
    finally:
        store.parent.chmod(0o755)
    assert store.read_bytes() == before
    assert numbers(store) == list(range(5))


@pytest.mark.slow
def test_a_store_that_may_not_be_read_or_made_is_told(store, parent, people):
    folder = store.parent
    (folder / "shut").mkdir()
    shutil.copy(store, folder / "shut")
    store.chmod(0)
    (folder / "shut").chmod(0)
    folder.chmod(0o555)
    try:
        for name in ("bias.sqlite", "new.sqlite", "shut/bias.sqlite"):
            for command in (("add", people, "-s", "sex", "-l", "granted"), ("check",)):
                tried = parent.type(*command, *WHERE, folder / name, usual_rights=True)
                assert tried.wait() == 2
                missing = (command, name) == (("check",), "new.sqlite")
                why = (
                    "there is no store"
                    if missing
                    else "check the permissions of the file and its folder"
                )
                assert why in tried.said
                assert tried.said.count("\n") == 1
    finally:
        folder.chmod(0o755)
        (folder / "shut").chmod(0o755)


# ------------------------------------------------------------------- damage


def garbled(data, start, end):
    return data[:start] + random.Random(start).randbytes(end - start) + data[end:]


COMMANDS = {
    "check": (),
    "show": (),
    "list": (),
    "plan": (),
    "merge": ("--older-than", "1w"),
    "withdraw": ("--id", "none"),
}


@pytest.fixture(scope="module")
def long_store(tmp_path_factory):
    place = tmp_path_factory.mktemp("long") / "bias.sqlite"
    with eq.Monitor(place) as monitor:
        fill(monitor, biased(60), name=NAME)
        monitor.check(NAME)
        monitor.merge(NAME, older_than="4w")
    return place


@pytest.mark.parametrize("length", [2, 50, 100, 4096, 5000, 20_000, -4096])
def test_a_file_that_was_cut_off_is_told(long_store, tmp_path, capsys, length):
    place = tmp_path / "cut.sqlite"
    for command, more in COMMANDS.items():
        place.write_bytes(long_store.read_bytes()[:length])
        assert run(["monitor", command, *WHERE, str(place), *more]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "is damaged or cannot be used (" in told or "is not a store" in told, told


@pytest.mark.slow
def test_garbage_is_told_or_changes_nothing(long_store, tmp_path, capsys):
    data = long_store.read_bytes()
    with eq.Monitor(long_store, read_only=True) as monitor:
        before = monitor.counts(NAME)
    told = Counter()
    for page in range(len(data) // 4096):
        place = tmp_path / f"{page}.sqlite"
        place.write_bytes(garbled(data, page * 4096, page * 4096 + 4096))
        with contextlib.suppress(InputError), eq.Monitor(place, read_only=True) as monitor:
            assert monitor.counts(NAME) == before
        for command, more in COMMANDS.items():
            code = run(["monitor", command, *WHERE, str(place), *more])
            err = capsys.readouterr().err
            assert "internal error" not in err
            assert code in (0, 1, 2, 3)
            told[command] += code == 2
            if code == 2:
                assert err.startswith("error: ")
                assert err.count("\n") == 1
    assert min(told.values()) >= 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE equipoise_batch SET cells = substr(cells, 2)", "ValueError"),
        ("UPDATE equipoise_batch SET cells = x'ffffff000100000000000000'", "IndexError"),
        ("UPDATE equipoise_batch SET cells = zeroblob(12)", "ValueError"),
        ("UPDATE equipoise_batch SET n = n + 1", "ValueError"),
        ("UPDATE equipoise_batch SET about = '{'", "JSONDecodeError"),
        ("UPDATE equipoise_batch SET ends = 1 << 62", "OverflowError"),
        ("UPDATE equipoise_batch SET starts = 'x'", "TypeError"),
        ("UPDATE equipoise_cell SET cell_values = '[1'", "JSONDecodeError"),
        ("UPDATE equipoise_stream SET definition = '{}'", "KeyError"),
        ("UPDATE equipoise_stream SET definition = cast(x'ff' AS TEXT)", "Could not decode to"),
        ("UPDATE equipoise_policy SET rules = ''", "JSONDecodeError"),
        ("UPDATE equipoise_event SET about = '['", "JSONDecodeError"),
        ("UPDATE equipoise_policy SET evidence = x'00'", "the evidence of merged batches"),
    ],
)
def test_values_that_cannot_be_read_are_told(long_store, tmp_path, capsys, change, why):
    place = tmp_path / "bias.sqlite"
    shutil.copy(long_store, place)
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.execute(change)
    assert run(["monitor", "check", *WHERE, str(place)]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert "damaged" in told
    assert len(told) < 300
    assert told.count("\n") == 1
    run(["monitor", "list", "--store", str(place)])
    run(["monitor", "add", "adult", *WHERE, str(place)])
    assert "internal error" not in capsys.readouterr().err


def test_tables_whose_names_cannot_be_read_are_told(long_store, tmp_path, capsys):
    data = long_store.read_bytes().replace(
        b"CREATE TABLE equipoise_former", b"CREATE TABLX equipoise_former"
    )
    name = b"equipoise_former"
    assert data.count(b"table" + name + name) == 1
    place = tmp_path / "bias.sqlite"
    place.write_bytes(data.replace(name, name.replace(b"i", b"\xcb")))
    assert run(["monitor", "check", *WHERE, str(place)]) == 2
    assert "is damaged or cannot be used (" in capsys.readouterr().err


# ------------------------------------------------------------------- Ctrl-C


@pytest.fixture(scope="module")
def big_table(tmp_path_factory):
    path = tmp_path_factory.mktemp("big") / "people.csv"
    lines = "m,a,no\nw,a,yes\nm,b,yes\nw,b,no\n" * 200_000
    path.write_text(f"sex,race,granted\n{lines}", encoding="utf-8")
    return path


STARTING = "error: interrupted."


def test_ctrl_c_while_duckdb_starts_is_no_error_of_ours(store, people, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(eq.Monitor, "add", interrupted)
    assert run(["monitor", "add", str(people), *WHERE, str(store)]) == 130
    assert capsys.readouterr().err.strip() == STARTING


@pytest.mark.slow
def test_ctrl_c_while_a_big_table_is_added_adds_nothing(store, parent, big_table):
    ended = Counter()
    for number in range(8):
        adding = parent.type("add", big_table, *WHERE, store, "--id", 100 + number)
        time.sleep(0.02 + number * 0.03)
        adding.send(signal.SIGINT)
        code = adding.wait()
        ended[code] += 1
        there = numbers(store)
        late = f"\nerror: interrupted; {store} was already changed.\n"
        assert (100 + number in there) == (code == 0 or adding.said == late)
        if code and adding.said != late:
            assert code == 130
            assert adding.said.strip() in ("error: interrupted; nothing was written.", STARTING)
    assert ended[130] >= 1
    require_integrity(store)


@pytest.mark.slow
def test_ctrl_c_is_heard_while_another_program_writes(store, parent, people):
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        adding = parent.type("add", people, *WHERE, store)
        time.sleep(1)
        start = time.monotonic()
        adding.send(signal.SIGINT)
        assert adding.wait() == 130
        assert time.monotonic() - start < 5
        assert adding.said == "\nerror: interrupted; nothing was written.\n"
    assert numbers(store) == list(range(5))


class Interrupted(sqlite3.Connection):
    """A connection for which Ctrl-C is pressed while it begins or ends to write."""

    last = ""

    def execute(self, statement, *values):
        found = super().execute(statement, *values)
        self.writes = getattr(self, "writes", False) or statement == "BEGIN IMMEDIATE"
        if self.writes and statement == self.last:
            raise KeyboardInterrupt
        self.writes = self.writes and statement != "COMMIT"
        return found


@pytest.mark.parametrize(
    ("last", "said"), [("BEGIN IMMEDIATE", ""), ("COMMIT", "bias.sqlite was already changed")]
)
def test_what_ctrl_c_came_too_late_for_is_told(store, monkeypatch, last, said):
    connect = functools.partial(sqlite3.connect, factory=Interrupted)
    with monkeypatch.context() as patch, eq.Monitor(store) as monitor:
        patch.setattr(sqlite3, "connect", connect)
        monitor.acknowledge(NAME)  # opened before Ctrl-C is pressed
        patch.setattr(Interrupted, "last", last)
        with pytest.raises(KeyboardInterrupt) as caught:
            monitor.withdraw(NAME, id="1")
        assert str(caught.value).endswith(said)
        patch.setattr(Interrupted, "last", "")
        # Nothing is left open that would keep others from writing.
        with eq.Monitor(store) as other:
            add(other, 50)
        assert monitor.counts(NAME).n == sum(
            sums(n for n in (0, 1, 2, 3, 4, 50) if n != 1 or not said).values()
        )


@pytest.mark.parametrize("place", ["result", "close"])
def test_ctrl_c_after_a_batch_was_added_is_too_late(store, people, monkeypatch, capsys, place):
    """The command goes on, since it could not say that nothing was written."""
    pressed = []

    class Opened(eq.Monitor):
        def close(self):
            if place == "close" and len(pressed) == 1:
                press()
            super().close()

    def press():
        pressed.append(place)
        os.kill(os.getpid(), signal.SIGINT)

    def shown(added, **given):
        if place == "result":
            press()
        else:
            pressed.append("not yet")
        print_result(added, **given)

    monkeypatch.setattr("equipoise.api.monitors.Monitor", Opened)
    monkeypatch.setattr("equipoise.cli.commands.monitor.print_result", shown)
    assert run(["monitor", "add", str(people), *WHERE, str(store), "--id", "7"]) == 0
    assert pressed[-1] == place
    assert "Added the batch 7" in capsys.readouterr().out
    assert 7 in numbers(store)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
