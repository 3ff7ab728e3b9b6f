"""The default engine confined to some folders: nothing else is read, written, attached or fetched."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import EquipoiseError
from written import write_rows

ROWS = "sex,hired\nw,yes\nm,no\n"


@pytest.fixture
def places(tmp_path):
    """A folder that is allowed, and one beside it that is not, with the same files."""
    for name in ("inside", "outside"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "t.csv").write_text(ROWS)
        (folder / "t.jsonl").write_text('{"sex": "w"}\n')
        pq.write_table(pa.table({"sex": ["w", "m"]}), folder / "t.parquet")
        with duckdb.connect(str(folder / "t.duckdb")) as base:
            base.execute("CREATE TABLE t AS SELECT 'w' AS sex")
    return tmp_path / "inside", tmp_path / "outside"


@pytest.fixture
def engine(places):
    made = DuckDBEngine(within=[str(places[0])])
    yield made
    made.close()


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.duckdb"])
def test_only_files_inside_are_read(engine, places, name):
    inside, outside = places
    assert "sex" in [c.name for c in engine.schema(locate(inside / name))]
    with pytest.raises(EquipoiseError):
        engine.read(locate(outside / name))


def test_a_folder_whose_name_begins_alike_is_outside(tmp_path, engine, places):
    beside = tmp_path / "inside-not"
    beside.mkdir()
    pq.write_table(pa.table({"sex": ["w"]}), beside / "t.parquet")
    with pytest.raises(EquipoiseError):
        engine.read(locate(beside / "t.parquet"))


def test_a_way_up_is_outside(engine, places):
    inside, _ = places
    with pytest.raises(EquipoiseError):
        engine.read(locate(inside / ".." / "outside" / "t.parquet"))


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.duckdb"])
def test_a_link_that_leads_out_is_outside(engine, places, name):
    inside, outside = places
    link = inside / f"link-{name}"
    link.symlink_to(outside / name)
    with pytest.raises(EquipoiseError):
        engine.read(locate(link))
    (inside / "folder").symlink_to(outside)
    with pytest.raises(EquipoiseError):
        engine.read(locate(inside / "folder" / name))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{outside}/t.csv')",
        "SELECT * FROM read_text('{outside}/t.csv')",
        "SELECT * FROM read_blob('{outside}/t.csv')",
        "SELECT * FROM '{outside}/t.parquet'",
        "SELECT * FROM read_parquet(['{inside}/t.parquet', '{outside}/t.parquet'])",
        "SELECT * FROM glob('{outside}/*')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('http://127.0.0.1:1/t.csv')",
        "SELECT * FROM read_parquet('s3://bucket/t.parquet')",
        "ATTACH '{outside}/t.duckdb' AS other",
        "COPY (SELECT 1) TO '{outside}/new.csv'",
        "EXPORT DATABASE '{outside}/all'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
    ],
)
def test_no_statement_reaches_outside(engine, places, query):
    inside, outside = places
    before = sorted(p.name for p in outside.iterdir())
    with pytest.raises(duckdb.Error):
        engine._session.connection.execute(query.format(inside=inside, outside=outside)).fetchall()
    assert sorted(p.name for p in outside.iterdir()) == before


def test_a_view_of_a_database_reads_nothing_outside(engine, places):
    inside, outside = places
    with duckdb.connect(str(inside / "view.duckdb")) as base:
        base.execute(f"CREATE VIEW seen AS SELECT * FROM read_csv('{outside}/t.csv')")
    with pytest.raises(EquipoiseError):
        engine.read(locate(f"{inside / 'view.duckdb'}::seen"))


def test_what_it_needs_itself_still_works(engine, places):
    inside, _ = places
    (inside / "late.csv").write_bytes("sex,name\nw,Jürgen\n".encode("latin-1"))
    read = engine.read(
        locate(inside / "late.csv", encoding="latin-1")
    )  # copied to a temporary folder
    assert read["name"].to_pylist() == ["Jürgen"]
    rows = engine.read(locate(inside / "t.parquet"))
    write_rows(engine, rows, inside / "copy.parquet")
    assert (inside / "copy.parquet").exists()
    with pytest.raises(EquipoiseError):
        write_rows(engine, rows, inside.parent / "outside" / "copy.parquet")
    assert not (inside.parent / "outside" / "copy.parquet").exists()


def test_engines_are_shared_by_their_folders(places):
    inside, outside = (str(place) for place in places)
    assert shared_engine(within=(inside,)) is shared_engine(within=(inside,))
    assert shared_engine(within=(inside,)) is not shared_engine(within=(outside,))


def test_without_folders_everything_can_be_read(places):
    inside, outside = places
    with_all = DuckDBEngine()
    for folder in (inside, outside):
        assert len(with_all.read(locate(folder / "t.parquet"))) == 2
    with_all.close()
