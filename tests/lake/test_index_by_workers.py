"""An index that the workers of a cluster help to make is the one that this process makes alone."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gzip
import math
import pickle
import sqlite3
import subprocess
import sys
import uuid
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import servers
from equipoise.cli.app import run
from equipoise.engines.routing import shared_engine
from equipoise.errors import InputError
from equipoise.lake.lake import Lake
from equipoise.lake.tables.index import Index, Refreshed, _lookup, _update, refresh

ZONE = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
ODD = {
    "number": [1.5, math.nan, -0.0, 1e23, 5e-324, None, math.inf, 0.1],
    "whole": [2**53 + 1, None, -(2**63), 0, 7, 7, 1, 2],
    "day": [datetime.date(1, 1, 1), datetime.date(1582, 10, 10), None, datetime.date(9999, 12, 31)] * 2,
    "moment": [datetime.datetime(1500, 2, 3, 4, 5, 6, 7), None] * 4,  # noqa: DTZ001
    "instant": [datetime.datetime(2024, 3, 31, 2, 30, tzinfo=ZONE), None] * 4,
    "price": [decimal.Decimal("12.50"), decimal.Decimal("-0.00"), None, decimal.Decimal("9999999.99")] * 2,
    "is": [True, False, None, True] * 2,
    "text": ["O'Brien", "", None, "naïve – 中文", " x ", 'a"b', "1e5", "\t"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Elsewhere:
    """Workers in another folder, to which pieces are sent as bytes."""

    def __init__(self, folder):
        self.folder, self.pieces = folder, []

    def spread(self, work, pieces, title):
        sent = [pickle.dumps(piece) for piece in pieces]
        self.pieces += pieces
        with contextlib.chdir(self.folder):
            return [pickle.loads(pickle.dumps(work(pickle.loads(piece)))) for piece in sent]


@pytest.fixture
def elsewhere(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Elsewhere(folder)


def odd_lake():
    """Files of all kinds, some of which cannot be read."""
    place = Path("lake")
    (place / "below").mkdir(parents=True)
    table = pa.table(ODD)
    pq.write_table(table, place / "odd.parquet")
    lines = ["id,city,share", *(f"{i},town {i % 7},{i / 7!r}" for i in range(700))]
    (place / "plain.csv").write_text("\n".join(lines) + "\n")
    (place / "latin.csv").write_bytes("name;größe\nJosé;1,5\nZoë;\n".encode("latin-1"))
    (place / "below" / "uneven.csv").write_text('a,b\n1,2\n3\n"x,y",5\n6,7,8\n')
    (place / "packed.csv.gz").write_bytes(gzip.compress(b"x,y\n1,\n2,b\n"))
    (place / "lines.jsonl").write_text('{"a": 1, "b": "2024-01-01"}\n{"a": null, "c": 1.5}\n')
    (place / "empty.csv").write_text("")
    (place / "headed.csv").write_text("a,b\n")
    (place / "broken.parquet").write_bytes(b"PAR1 and no more")
    with duckdb.connect(str(place / "two.duckdb")) as connection:
        connection.execute("CREATE TABLE one AS SELECT range AS i, range / 3 AS x FROM range(600)")
        connection.execute("CREATE TABLE other (nothing INTEGER)")
    with contextlib.closing(sqlite3.connect(place / "old.sqlite")) as connection:
        connection.executescript(
            "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (NULL, 2.5);"
        )
    return place


def everything(path, places=("lake",)):
    """All records of an index."""
    kinds = ("tables", "columns", "postings", "frequencies", "numbers")
    with contextlib.closing(Index(Path(path), places)) as index:
        return {kind: sorted(map(repr, index.query(f"FROM {kind}"))) for kind in kinds}


def indexed(path, workers=None, places=("lake",), **options):
    given = None if workers is None else lambda: workers
    return refresh(Path(path), places, engine=shared_engine(), workers=given, **options)


@pytest.mark.slow
def test_workers_give_the_same_index(elsewhere):
    odd_lake()
    assert indexed("a.duckdb") == indexed("b.duckdb", elsewhere)
    alone = everything("a.duckdb")
    assert len(alone["tables"]) == 12
    assert everything("b.duckdb") == alone
    assert sum(map(len, elsewhere.pieces)) == 11  # files; one of them has two tables
    with contextlib.closing(Index(Path("b.duckdb"), ["lake"])) as index:
        problems = {t.name: t.problem for t in index.tables() if t.problem}
    assert set(problems) == {"broken.parquet", "empty.csv", "headed.csv", "two.duckdb::other"}
    assert not any(str(Path.cwd()) in problem for problem in problems.values())


@pytest.mark.slow
def test_workers_look_only_at_what_is_new_or_changed(elsewhere):
    place = odd_lake()
    indexed("a.duckdb")
    indexed("b.duckdb", elsewhere)
    elsewhere.pieces.clear()
    assert indexed("b.duckdb", elsewhere) == Refreshed(0, 0, 0, 11)
    assert elsewhere.pieces == []
    (place / "plain.csv").write_text("id,city\n1,new\n")
    (place / "odd.parquet").touch()
    (place / "below" / "uneven.csv").touch()
    (place / "lines.jsonl").unlink()
    assert indexed("b.duckdb", elsewhere) == Refreshed(0, 1, 1, 9)
    assert indexed("a.duckdb") == Refreshed(0, 1, 1, 9)
    assert everything("b.duckdb") == everything("a.duckdb")
    assert sum(map(len, elsewhere.pieces)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3, 700, 5_000])
def test_a_large_file_is_looked_at_in_parts(elsewhere, monkeypatch, rows):
    Path("lake").mkdir()
    table = pa.table(ODD).take(pa.array([i % 8 for i in range(20)]))
    pq.write_table(table, "lake/odd.parquet", row_group_size=4)
    if rows > 500:
        many = {
            "n": pa.array(range(3000)),
            "of": pa.array([f"v{i % 700}" for i in range(3000)]),
            "x": pa.array([i / 7 if i % 5 else None for i in range(3000)]),
        }
        pq.write_table(pa.table(many), "lake/many.parquet", row_group_size=500)
    Path("lake/broken.parquet").write_bytes(b"PAR1 and no more")
    Path("lake/none.parquet").write_bytes(b"")
    monkeypatch.setattr(_lookup, "_LARGE", 0)
    monkeypatch.setattr(_lookup, "_ROWS", rows)
    indexed("a.duckdb")
    indexed("b.duckdb", elsewhere)
    parts = [piece for piece in elsewhere.pieces if isinstance(piece, _lookup._Part)]
    assert len(parts) == {1: 20, 3: 7, 700: 6, 5_000: 2}[rows]
    assert everything("b.duckdb") == everything("a.duckdb")
    Path("lake/odd.parquet").touch()
    assert indexed("b.duckdb", elsewhere).same == len(list(Path("lake").iterdir()))


def test_what_a_worker_cannot_read_in_parts_is_told_as_by_this_process(elsewhere, monkeypatch):
    monkeypatch.setattr(_lookup, "_LARGE", 0)
    Path("lake").mkdir()
    pq.write_table(pa.table({"a": range(3000)}), "lake/a.parquet", compression="none")
    spoilt = bytearray(Path("lake/a.parquet").read_bytes())
    spoilt[4:40] = b"\xff" * 36  # the first page, and not the footer
    Path("lake/a.parquet").write_bytes(spoilt)
    indexed("a.duckdb")
    indexed("b.duckdb", elsewhere)
    assert everything("b.duckdb") == everything("a.duckdb")
    with contextlib.closing(Index(Path("b.duckdb"), ["lake"])) as index:
        assert "a.parquet cannot be read" in index.tables()[0].problem


def test_a_lake_that_workers_do_not_see_is_refused_and_nothing_is_written(elsewhere, monkeypatch):
    odd_lake()
    with monkeypatch.context() as patched:
        patched.setattr(_lookup, "_absolute", lambda asked: asked)  # as on another machine
        with pytest.raises(InputError, match="not for the workers of Spark; put the lake where"):
            indexed("b.duckdb", elsewhere)
    assert not Path("b.duckdb").exists()


def test_a_file_that_vanishes_meanwhile_is_told_of(elsewhere):
    place = odd_lake()

    class Slow(Elsewhere):
        def spread(self, work, pieces, title):
            (place / "plain.csv").unlink(missing_ok=True)
            return super().spread(work, pieces, title)

    indexed("b.duckdb", Slow(elsewhere.folder))
    with contextlib.closing(Index(Path("b.duckdb"), ["lake"])) as index:
        (gone,) = [t for t in index.tables() if t.name == "plain.csv"]
    assert "plain.csv cannot be read" in gone.problem


@pytest.mark.slow
def test_what_only_this_process_can_open_is_not_sent(elsewhere):
    odd_lake()
    store = MemoryFileSystem()
    store.pipe("/kept/a.csv", b"sex,hired\nF,yes\n")
    try:
        places = ["lake", "memory://kept"]
        indexed("a.duckdb", places=places)
        indexed("b.duckdb", elsewhere, places=places)
    finally:
        store.rm("/kept", recursive=True)
    assert everything("b.duckdb", places) == everything("a.duckdb", places)
    assert sum(map(len, elsewhere.pieces)) == 11


@pytest.mark.slow
def test_workers_read_delta_tables_in_folders(elsewhere):
    from deltalake import write_deltalake

    write_deltalake("lake/hires", pa.table({"sex": ["F", None], "age": [1.5, math.nan]}))
    write_deltalake("lake/hires", pa.table({"sex": ["M"], "age": [-0.0]}), mode="append")
    indexed("a.duckdb")
    indexed("b.duckdb", elsewhere)
    assert everything("b.duckdb") == everything("a.duckdb")
    assert [each.entry.name for piece in elsewhere.pieces for each in piece] == ["hires"]


@pytest.mark.slow
def test_a_stopped_job_leaves_the_index_and_is_gone_on_with(elsewhere, monkeypatch):
    odd_lake()
    indexed("a.duckdb")
    monkeypatch.setattr(_update, "_ROUND", 4)
    shares = []

    def stop(title, share):
        shares.append((title, share))
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        indexed("b.duckdb", elsewhere, progress=stop)
    assert not Path("b.duckdb").exists()
    assert ("profiling 4 files on a cluster", 4 / 11) in shares
    sent = sum(map(len, elsewhere.pieces))
    assert sent == 8
    assert indexed("b.duckdb", elsewhere) == Refreshed(3, 0, 0, 8)
    assert sum(map(len, elsewhere.pieces)) == sent + 3
    assert everything("b.duckdb") == everything("a.duckdb")


ALONE = """
import sys
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f).lower()]
sys.path = [sys.argv[1], *(p for p in sys.path if not p.rstrip("/").endswith("src"))]
import equipoise.lake.tables.index._lookup as lookup
assert sys.argv[1] in lookup.__file__, lookup.__file__
import pickle
piece = pickle.loads(bytes.fromhex(sys.argv[2]))
print(len(lookup._look_on_worker(piece).records))
"""


@pytest.mark.slow
def test_a_worker_needs_only_the_package_that_it_is_sent(tmp_path):
    import zipfile

    import equipoise
    from equipoise.lake.tables.catalog import files

    odd_lake()
    package = Path(equipoise.__file__).parent
    with zipfile.ZipFile("sent.zip", "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, path.relative_to(package.parent))
    asked = [_lookup.Asked(entry, frozenset()) for entry in files(["lake"]).values()]
    piece = [_lookup._absolute(each) for each in asked]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path / "sent.zip"), pickle.dumps(piece).hex()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1\n", done.stderr


# ------------------------------------------------------------------------------- on Spark


@pytest.fixture
def schema():
    session, name = servers.spark_session(), f"lake_{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {name}")
    try:
        odd = pa.table({key: ODD[key] for key in ODD if key not in ("day", "moment")})
        session.createDataFrame(odd).repartition(3).write.saveAsTable(f"{name}.odd")
        columns = (
            "id AS n, id / 7 AS x, DATE'1582-10-10' AS day, TIMESTAMP_NTZ'1500-02-03 04:05:06' AS t"
        )
        session.sql(f"CREATE TABLE {name}.many AS SELECT {columns} FROM range(0, 3000, 1, 4)")
        session.sql(f"CREATE TABLE {name}.none (a INT)")
        yield name
    finally:
        session.sql(f"DROP DATABASE {name} CASCADE")


@pytest.mark.spark
@pytest.mark.slow
def test_spark_gives_the_same_index(schema, monkeypatch, capsys):
    odd_lake()
    pq.write_table(pa.table({"n": range(50_000)}), "lake/large.parquet", compression="none")
    monkeypatch.setattr(_lookup, "_LARGE", 300_000)
    monkeypatch.setattr(_lookup, "_ROWS", 20_000)
    places = ["lake", f"spark:{schema}"]
    command = ["lake", "index", *places, "--index", "b.duckdb", "--by", "spark", "--quiet"]
    assert run(command) == 0
    said = capsys.readouterr().out
    assert said.startswith("16 tables with ")
    assert "broken.parquet" in said
    assert Lake(places, index="a.duckdb").refresh() == Refreshed(15, 0, 0, 0)
    assert everything("b.duckdb", places) == everything("a.duckdb", places)
    assert Lake(places, index="b.duckdb", by="spark").refresh() == Refreshed(0, 0, 0, 15)


def unknown(_):
    """Work in a module that workers are not given."""


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_that_fails_says_why_and_leaves_the_index(monkeypatch):
    servers.spark_session()
    odd_lake()
    lake = Lake("lake", index="b.duckdb", by="spark")
    lake.refresh()
    before = Path("b.duckdb").read_bytes()
    Path("lake/plain.csv").write_text("a\n1\n")
    monkeypatch.setattr(_lookup, "_look_on_worker", unknown)
    with pytest.raises(InputError, match=r"workers of Spark failed \(ModuleNotFoundError"):
        lake.refresh()
    assert Path("b.duckdb").read_bytes() == before
