"""The index of a lake: up to date with little work, whole at any moment, whatever lies there."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.routing import shared_engine
from equipoise.errors import InputError
from equipoise.lake.lake import Lake
from equipoise.lake.tables.catalog import files
from equipoise.lake.tables.index import (
    Index,
    Refreshed,
    _segments,
    _stamps,
    _update,
    _working_copy,
    load,
    records_of,
    refresh,
    table_id,
)
from equipoise.lake.tables.profiles import profile_table

TEXT = "sex,hired\nw,yes\nm,no\n"
PATH = Path("index.duckdb")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)


def put(name, text=TEXT):
    path = Path("lake") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def refreshed(*places, **options):
    return refresh(PATH, places or ("lake",), engine=shared_engine(), **options)


def content(path=PATH, places=("lake",)):
    """All that an index knows, by the names of the tables."""
    with contextlib.closing(Index(path, places)) as index:
        tables = index.tables()
        profiles = index.profiles(t.id for t in tables if t.profiled)
        names = {t.id: t.name for t in tables}
        terms = index.query("SELECT id, place, unnest(terms), unnest(weights) FROM columns")
        words = sorted((names[number], *rest) for number, *rest in terms)
        found = Counter((number, term) for number, _, term, _ in terms)
        assert found == {(i, t): n for t, i, n in index.query("SELECT term, id, n FROM postings")}
        every = index.query(
            "SELECT term, sum(n)::BIGINT FROM frequencies GROUP BY term HAVING sum(n) > 0"
        )
        assert Counter(term for _, _, term, _ in terms) == dict(every)
        assert index.counts == (len(tables), sum(len(p.columns) for p in profiles.values()))
        return [(t.name, t.snapshot, t.rows, t.problem, profiles.get(t.id)) for t in tables], words


def problems():
    return {name: problem for name, _, _, problem, _ in content()[0] if problem}


def rows():
    return {name: n for name, _, n, _, _ in content()[0]}


# -------------------------------------------------------------------------- what lies there


def test_an_empty_folder_has_an_empty_index():
    assert refreshed() == Refreshed(0, 0, 0, 0)
    assert content() == ([], [])


def test_a_broken_table_does_not_keep_the_others_out():
    put("good.csv")
    put("uneven.csv", "a,b\n1,2,3\n")
    put("text.parquet")
    put("empty.csv", "")
    put("header.csv", "a,b\n")
    Path("lake/out").symlink_to("/")
    os.mkfifo("lake/pipe.csv")
    Path(os.fsdecode(b"lake/bad\xff.csv")).write_text(TEXT)
    assert refreshed() == Refreshed(8, 0, 0, 0)
    assert set(problems()) == set(rows()) - {"good.csv"}
    assert rows()["good.csv"] == 2
    assert refreshed() == Refreshed(0, 0, 0, 8)


def test_tables_may_be_called_anything():
    names = ["it's.csv", "new\nline.csv", "st*r[1].csv", "ünï✓.csv", "a::b.csv", "c::"]
    for i, name in enumerate(names):
        put(name, TEXT + "m,yes\n" * i)
    assert refreshed() == Refreshed(5, 0, 0, 0)
    assert rows() == {name: 2 + i for i, name in enumerate(names[:5])}
    assert refreshed() == Refreshed(0, 0, 0, 5)
    with contextlib.closing(Index(PATH, ["lake"])) as index:
        assert all(table.source.paths[0].is_file() for table in index.tables())


def test_a_lake_may_be_a_database_a_glob_a_list_or_a_file():
    with contextlib.closing(duckdb.connect("lake/d.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 a; CREATE SCHEMA s")
        connection.execute('CREATE TABLE s.t AS SELECT 2 a; CREATE TABLE "x::y" AS SELECT 3 a')
    put("a.csv")
    put("b.csv")
    assert refreshed("lake/d.duckdb") == Refreshed(1, 0, 0, 0)
    assert list(rows()) == ["d.duckdb::s.t", "d.duckdb::t", "d.duckdb::x::y"]
    assert refreshed("lake/d.duckdb") == Refreshed(0, 0, 0, 1)
    assert refreshed("lake/*.csv") == Refreshed(2, 0, 1, 0)
    assert refreshed("lake/a.csv", "lake/d.duckdb") == Refreshed(1, 0, 1, 1)
    assert refreshed("lake/a.csv") == Refreshed(0, 0, 1, 1)
    assert list(rows()) == ["a.csv"]


def test_an_index_in_the_lake_is_none_of_its_tables():
    put("a.csv")
    path = Path("lake/index.duckdb")
    for expected in (Refreshed(1, 0, 0, 0), Refreshed(0, 0, 0, 1)):
        assert refresh(path, ["lake"], engine=shared_engine()) == expected
    assert [name for name, *_ in content(path)[0]] == ["a.csv"]


def test_a_file_that_vanishes_while_it_is_looked_at_is_told_of_and_then_gone():
    put("a.csv")
    put("b.csv")

    def vanish(title, _):
        if title == "looking at b.csv":
            Path("lake/b.csv").unlink()

    assert refreshed(progress=vanish) == Refreshed(2, 0, 0, 0)
    assert problems() == {"b.csv": "b.csv cannot be read: No such file or directory."}
    assert refreshed() == Refreshed(0, 0, 1, 1)
    assert rows() == {"a.csv": 2}


# ------------------------------------------------------------------------------ up to date


class Counting(DuckDBEngine):
    looked = ()

    def profile(self, source):
        self.looked = (*self.looked, source.name)
        return super().profile(source)


def test_only_what_is_new_or_changed_is_looked_at(monkeypatch):
    monkeypatch.setattr("equipoise.lake.tables.profiles._SMALL", 0)
    for name in ("same.csv", "changed.csv", "touched.csv", "gone.csv", "old-name.csv"):
        put(name, f"{TEXT}{name},yes\n")
    assert refreshed() == Refreshed(5, 0, 0, 0)
    before = content()
    put("changed.csv", TEXT + "w,no\n" * 9)
    put("new.csv", "a,b\n1,2\n")
    Path("lake/gone.csv").unlink()
    Path("lake/old-name.csv").rename("lake/new-name.csv")
    os.utime("lake/touched.csv", ns=(1, 1))
    engine = Counting()
    assert refresh(PATH, ["lake"], engine=engine) == Refreshed(2, 1, 2, 2)
    assert sorted(engine.looked) == ["changed.csv", "new-name.csv", "new.csv"]
    assert refreshed() == Refreshed(0, 0, 0, 5)
    old, now = ({t[0]: t for t in found[0]} for found in (before, content()))
    assert set(now) == {"same.csv", "changed.csv", "touched.csv", "new.csv", "new-name.csv"}
    assert (now["same.csv"], now["touched.csv"]) == (old["same.csv"], old["touched.csv"])
    assert now["changed.csv"][2] == 11
    assert now["new-name.csv"][1:] == old["old-name.csv"][1:]


@pytest.mark.slow
def test_step_by_step_gives_what_one_step_gives():
    for i in range(5):
        put(f"{i}.csv", TEXT + "w,no\n" * i)
        refreshed()
    put("2.csv", "a,b\n1,2\n")
    Path("lake/0.csv").unlink()
    os.utime("lake/1.csv", ns=(1, 1))
    refreshed()
    once = Path("once.duckdb")
    refresh(once, ["lake"], engine=shared_engine())
    assert content() == content(once)


# ------------------------------------------------------------------------------- deltas


def deltas():
    """The spans of the deltas that are there."""
    return sorted(
        p.name.rpartition(".")[2].partition("-")[2] for p in Path().glob("index.duckdb.*-*")
    )


def anew():
    """What an index holds that is made at once."""
    once = Path("once.duckdb")
    refresh(once, ["lake"], engine=shared_engine())
    found = content(once)
    once.unlink()
    Path("once.duckdb.lock").unlink()
    return found


@pytest.fixture
def large(monkeypatch):
    """A lake in which deltas are worth while, and merged with the base when they are larger."""
    monkeypatch.setattr(_segments, "_SMALL", 0)
    monkeypatch.setattr(_segments, "_SHARE", 1)
    for i in range(12):
        put(f"{i}.csv", f"name,c{i}\nrow {i},{i}.5\nother {i},2\n")
    refreshed()


def test_a_large_lake_grows_by_deltas(large):
    base = PATH.read_bytes()
    put("3.csv", "fruit\nplum\n")
    put("new.csv")
    assert refreshed() == Refreshed(1, 1, 0, 11)
    assert deltas() == ["1-1"]
    assert content() == anew()
    Path("lake/5.csv").unlink()
    Path("lake/new.csv").unlink()
    put("3.csv", "fruit\nplum\nfig\n")
    os.utime("lake/7.csv", ns=(1, 1))
    assert refreshed() == Refreshed(0, 1, 2, 10)
    assert deltas() == ["1-1", "2-2"]
    assert content() == anew()
    assert PATH.read_bytes() == base
    assert refreshed() == Refreshed(0, 0, 0, 11)


def test_deltas_are_merged_with_each_other_and_then_with_the_base(large, monkeypatch):
    monkeypatch.setattr(_segments, "_MOST_DELTAS", 2)
    seen = []
    for i in range(6):
        put("3.csv", "fruit\n" + "plum\n" * (i + 1))
        assert refreshed() == Refreshed(0, 1, 0, 11)
        seen.append(deltas())
        assert content() == anew()
    merged = [["1-3"], ["1-3", "4-4"], ["1-5"], ["1-5", "6-6"]]
    assert seen == [["1-1"], ["1-1", "2-2"], *merged]
    monkeypatch.setattr(_segments, "_SHARE", 4)  # six of twelve tables and removals are too many
    put("4.csv", "fruit\nplum\n")
    assert refreshed() == Refreshed(0, 1, 0, 11)
    assert deltas() == []
    assert content() == anew()


def test_who_reads_meanwhile_keeps_what_is_merged_away(large, monkeypatch):
    put("new.csv")
    refreshed()
    old = content()
    with contextlib.closing(Index(PATH, ["lake"])) as reader:
        monkeypatch.setattr(_segments, "_SMALL", 1000)
        put("more.csv")
        refreshed()
        assert deltas() == []
        assert [t.name for t in reader.tables()] == [name for name, *_ in old[0]]
    assert content() == anew()


def test_what_is_left_of_a_run_killed_while_it_moves_files_is_not_read(large, monkeypatch):
    put("new.csv")
    refreshed()
    (delta,) = Path().glob("index.duckdb.*-1-1")
    before = content()
    stamp = delta.name.split(".")[2].partition("-")[0]
    left = [f"{PATH}.{stamp}-3-3", f"{PATH}.00000000-1-1", f"{PATH}.{stamp}-0-0"]
    for name in left:  # after a gap, of another base
        Path(name).write_bytes(delta.read_bytes())
    assert content() == before
    put("more.csv")
    refreshed()
    assert deltas() == ["1-1", "2-2"]
    assert content() == anew()


@pytest.mark.parametrize("spoil", ["cut", "empty", "gone"])
def test_an_index_whose_delta_cannot_be_read_is_made_anew(large, spoil):
    put("new.csv")
    refreshed()
    (delta,) = Path().glob("index.duckdb.*-1-1")
    raw = delta.read_bytes()
    delta.unlink() if spoil == "gone" else delta.write_bytes(
        raw[: len(raw) // 2 * (spoil == "cut")]
    )
    assert refreshed().same in (0, 12)  # all anew, or those of the base stay
    assert content() == anew()


def test_a_stopped_run_is_gone_on_with_only_if_the_index_is_as_it_was(large, monkeypatch):
    monkeypatch.setattr(_update, "_BATCH", 1)
    put("a.csv")
    put("b.csv")

    def stop(title, _):
        if title == "looking at b.csv":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="profiled are kept for the next run"):
        refreshed(progress=stop)
    assert _working_copy.working_file(PATH).exists()
    assert refreshed() == Refreshed(1, 0, 0, 13)
    assert content() == anew()


def test_an_index_is_loaded_from_records_that_were_computed_elsewhere():
    import pyarrow.parquet as pq

    for i in range(5):
        put(f"{i}.csv", f"name,c{i}\nrow {i},{i}.5\n")
    entries = list(files(["lake"]).values())
    Path("records").mkdir()
    for i in range(0, 5, 2):
        some = [profile_table(entry, shared_engine()) for entry in entries[i : i + 2]]
        for kind, rows in zip(("tables", "columns"), records_of(some), strict=True):
            pq.write_table(rows, f"records/{kind}-{i}.parquet")
    load(PATH, "records/tables-*.parquet", "records/columns-*.parquet")
    assert content() == anew()
    assert refreshed() == Refreshed(0, 0, 0, 5)
    put("more.csv")
    assert refreshed() == Refreshed(1, 0, 0, 5)
    with pytest.raises(InputError, match="cannot be loaded into the index"):
        load(PATH, "records/none-*.parquet", "records/columns-*.parquet")
    assert content() == anew()


def test_tables_are_numbered_by_their_names():
    put("a.csv")
    put("sub/b.csv")
    refreshed()
    with contextlib.closing(Index(PATH, ["lake"])) as index:
        assert {t.id for t in index.tables()} == {table_id("a.csv"), table_id("sub/b.csv")}


def test_sizes_and_dates_are_those_of_the_catalogue_unless_something_is_unusual():
    for name in (
        "a.csv",
        "b.CSV.gz",
        "sub/deep/c.parquet",
        "_no.csv",
        ".no.csv",
        "notes.md",
        "_x/d.csv",
    ):
        put(name)
    listed = {name: (entry.size, entry.changed) for name, entry in files(["lake"]).items()}
    assert _stamps.quick_stamps(["lake"], PATH) == listed
    assert _stamps.quick_stamps(["lake/"], PATH) == listed
    assert _stamps.quick_stamps(["lake", "lake"], PATH) is None
    assert _stamps.quick_stamps(["lake/*.csv"], PATH) is None
    for unusual in ("ü.csv", "_delta_log/0.json", "sub/index.duckdb"):
        put(unusual)
        assert _stamps.quick_stamps(["lake"], PATH) is None
        Path("lake", unusual).unlink()
        if "_delta" in unusual:
            Path("lake/_delta_log").rmdir()
    Path("lake/link.csv").symlink_to("a.csv")
    assert _stamps.quick_stamps(["lake"], PATH) is None


def test_a_touched_database_keeps_all_its_tables_the_empty_ones_too():
    with contextlib.closing(duckdb.connect("lake/d.duckdb")) as connection:
        connection.execute("CREATE TABLE x AS SELECT 1 a; CREATE TABLE y (b INTEGER)")
    put("uneven.csv", "a,b\n1,2,3\n")
    put("broken.csv", "a,b\n1,2\n3\n4,5\n")
    put("text.parquet")
    refreshed()
    before = content()
    assert list(problems()) == ["d.duckdb::y", "text.parquet", "uneven.csv"]
    for name in ("d.duckdb", "uneven.csv", "broken.csv", "text.parquet"):
        os.utime(f"lake/{name}", ns=(1, 1))
    assert refreshed() == Refreshed(0, 0, 0, 4)
    assert content() == before


def test_what_could_not_be_read_is_looked_at_once_it_can_be(monkeypatch):
    put("a.csv")
    may = os.access
    monkeypatch.setattr(os, "access", lambda p, m: Path(p).name != "a.csv" and may(p, m))
    refreshed()
    assert problems() == {"a.csv": "a.csv cannot be read; check its permissions."}
    monkeypatch.setattr(os, "access", may)
    assert refreshed() == Refreshed(0, 1, 0, 0)
    assert (problems(), rows()) == ({}, {"a.csv": 2})


HOLD = """
import duckdb, sys
connection = duckdb.connect("lake/d.duckdb")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_database_in_use_is_looked_at_once_it_is_free():
    put("a.csv")
    with contextlib.closing(duckdb.connect("lake/d.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 a")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD], **pipes) as process:
        process.stdout.readline()
        assert refreshed() == Refreshed(2, 0, 0, 0)
        assert list(problems()) == ["d.duckdb"]
        assert rows()["a.csv"] == 2
        process.communicate()
    assert refreshed() == Refreshed(0, 1, 0, 1)
    assert rows() == {"a.csv": 2, "d.duckdb::t": 1}


def test_progress_names_every_table_and_rises():
    for i in range(4):
        put(f"{i}.csv")
    told = []
    refreshed(progress=lambda title, share: told.append((share, title)))
    assert [title for _, title in told if title.startswith("looking at")] == [
        f"looking at {i}.csv" for i in range(4)
    ]
    assert [share for share, _ in told] == sorted(share for share, _ in told)


# -------------------------------------------------------------------------- always whole


def spoilt_text():
    PATH.write_text("no index")


def spoilt_empty():
    PATH.write_bytes(b"")


def spoilt_cut():
    PATH.write_bytes(PATH.read_bytes()[: PATH.stat().st_size // 2])


def spoilt_end():
    PATH.write_bytes(PATH.read_bytes()[:-1])


def spoilt_inside():
    raw = bytearray(PATH.read_bytes())
    raw[12_288:] = os.urandom(len(raw) - 12_288)  # behind the three headers
    PATH.write_bytes(raw)


def other_format():
    with contextlib.closing(duckdb.connect(str(PATH))) as connection:
        connection.execute("UPDATE about SET format = 0")


def other_tables():
    PATH.unlink()
    with contextlib.closing(duckdb.connect(str(PATH))) as connection:
        connection.execute("CREATE TABLE strange AS SELECT 1 a")


@pytest.mark.parametrize(
    "spoil",
    [spoilt_text, spoilt_empty, spoilt_cut, spoilt_end, spoilt_inside, other_format, other_tables],
)
@pytest.mark.parametrize("where", ["index.duckdb", "index.duckdb.new"])
def test_an_index_that_cannot_be_used_is_made_anew(spoil, where):
    put("a.csv")
    put("b.csv")
    refreshed()
    before = content()
    spoil()
    if where != PATH.name:  # what a run that was killed has left
        PATH.rename(where)
    assert refreshed() == Refreshed(2, 0, 0, 0)
    assert content() == before
    assert sorted(p.name for p in Path().iterdir()) == ["index.duckdb", "index.duckdb.lock", "lake"]


def test_an_index_that_breaks_later_is_an_error_in_words():
    put("a.csv")
    refreshed()
    spoilt_inside()
    with pytest.raises(InputError, match=r"index\.duckdb cannot be read as an index .*; remove it"):
        content()


def test_a_run_that_was_stopped_is_gone_on_with(monkeypatch):
    monkeypatch.setattr(_update, "_BATCH", 2)
    for i in range(7):
        put(f"{i}.csv", TEXT + "w,no\n" * i)

    def stop(title, _):
        if title == "looking at 5.csv":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refreshed(progress=stop)
    assert not PATH.exists()
    assert refreshed() == Refreshed(3, 0, 0, 4)  # two batches were kept
    assert list(rows().values()) == [2, 3, 4, 5, 6, 7, 8]


FULL = f"""
import resource, sys
from pathlib import Path
from equipoise.engines.routing import shared_engine
from equipoise.errors import InputError
from equipoise.lake.tables.index import refresh
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), {resource.RLIM_INFINITY}))
try:
    print(refresh(Path("index.duckdb"), ["lake"], engine=shared_engine()))
except InputError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("room", "is_there"), [(1, True), (300_000, True), (20_000, False)])
def test_without_room_for_it_the_old_index_stays(room, is_there):
    put("a.csv")
    if is_there:
        refreshed()
        before = PATH.read_bytes()
    values = "\n".join(f"{i},{i * i},name {i}" for i in range(400))
    for i in range(30):
        put(f"more{i}.csv", f"x{i},y,z\n{values}\n")
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(room)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("the index index.duckdb cannot be written (")
    assert done.stdout.count("\n") == 1
    assert done.stdout.endswith("; free some disk space, or set `index` to a file elsewhere.\n")
    left = ["index.duckdb", "index.duckdb.lock", "lake"]
    assert sorted(p.name for p in Path().iterdir()) == left[0 if is_there else 1 :]
    if is_there:
        assert PATH.read_bytes() == before
        assert rows() == {"a.csv": 2}
    assert refreshed().new == 30 + (not is_there)


# ---------------------------------------------------------------------- several at once

RUN = """
import sys
from pathlib import Path
from equipoise.engines.routing import shared_engine
from equipoise.lake.tables.index import refresh
print("ready", flush=True)
sys.stdin.readline()
print(refresh(Path("index.duckdb"), ["lake"], engine=shared_engine()))
"""


@pytest.mark.slow
def test_two_processes_at_once_make_one_index():
    for i in range(150):
        put(f"{i}.csv", f"a,b{i % 7}\n{i},x\n")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(subprocess.Popen([sys.executable, "-c", RUN], **pipes))
            for _ in range(2)
        ]
        for process in both:
            process.stdout.readline()
        for process in both:
            process.stdin.write("go\n")
            process.stdin.flush()
        said = sorted(process.communicate()[0] for process in both)
        assert [process.returncode for process in both] == [0, 0]
    idle, busy = f"{Refreshed(0, 0, 0, 150)}\n", f"{Refreshed(150, 0, 0, 0)}\n"
    assert said == [idle, busy]
    once = Path("once.duckdb")
    refresh(once, ["lake"], engine=shared_engine())
    assert content() == content(once)


def test_a_run_waits_for_another_and_says_so():
    import fcntl

    put("a.csv")
    told = []
    with Path("index.duckdb.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def say():
            told.append(time.monotonic())
            threading.Timer(0.2, fcntl.flock, [lock, fcntl.LOCK_UN]).start()

        assert refreshed(waiting=say) == Refreshed(1, 0, 0, 0)
    assert len(told) == 1


def test_who_reads_meanwhile_sees_the_old_index_whole():
    put("a.csv")
    refreshed()
    old = content()
    put("b.csv")
    seen = []
    with contextlib.closing(Index(PATH, ["lake"])) as reader:
        refreshed(progress=lambda *_: seen.append(content()))
        assert [t.name for t in reader.tables()] == ["a.csv"]
    assert len(seen) == 3
    assert all(found == old for found in seen)
    assert list(rows()) == ["a.csv", "b.csv"]


def test_two_lakes_in_one_process_do_not_hide_what_is_new():
    put("a.csv")
    first = Lake("lake")
    assert [t.name for t in first.tables] == ["a.csv"]
    put("b.csv")
    assert [t.name for t in Lake("lake").tables] == ["a.csv", "b.csv"]
    assert first.refresh() == Refreshed(0, 0, 0, 2)
    assert [t.name for t in first.tables] == ["a.csv", "b.csv"]


def test_what_a_killed_run_left_is_removed_when_the_index_is_used_as_it_is():
    put("a.csv")
    refreshed()
    left = [Path(f"{PATH}{ending}") for ending in (".new", ".new.wal", ".part")]
    for path in left:
        path.write_bytes(b"half")
    assert Lake("lake", index=PATH, refresh=False).tables
    assert all(path.exists() for path in left)  # less than a day old: the next refresh goes on
    then = time.time() - 2 * 24 * 60 * 60
    for path in left:
        os.utime(path, (then, then))
    with _working_copy.locked(PATH, lambda: None):  # a run goes on
        assert Lake("lake", index=PATH, refresh=False).tables
    assert all(path.exists() for path in left)
    assert Lake("lake", index=PATH, refresh=False).tables
    assert not any(path.exists() for path in left)
