"""An engine that is confined to some folders."""

from __future__ import annotations

import pytest

from equipoise.datasets.lookup import locate
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.errors import EquipoiseError

ROWS = "sex,hired\nw,yes\nm,no\n"


@pytest.fixture
def folders(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "people.csv").write_text(ROWS)
    return inside, outside


@pytest.fixture
def engine(folders):
    made = DuckDBEngine(within=(str(folders[0]),))
    yield made
    made.close()


def test_files_inside_are_read_and_written(engine, folders):
    source = locate(str(folders[0] / "people.csv"))
    assert [column.name for column in engine.schema(source)] == ["sex", "hired"]
    engine.write(engine.read(source), folders[0] / "again.parquet")
    again = locate(str(folders[0] / "again.parquet"))
    assert engine.read(again).num_rows == 2


def test_files_outside_are_refused(engine, folders):
    with pytest.raises(EquipoiseError):
        engine.read(locate(str(folders[1] / "people.csv")))


def test_links_out_of_the_folder_are_refused(engine, folders):
    (folders[0] / "link.parquet").symlink_to(folders[1] / "people.parquet")
    DuckDBEngine().write(
        DuckDBEngine().read(locate(str(folders[1] / "people.csv"))), folders[1] / "people.parquet"
    )
    with pytest.raises(EquipoiseError):
        engine.read(locate(str(folders[0] / "link.parquet")))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{outside}/people.csv')",
        "SELECT * FROM read_text('{outside}/people.csv')",
        "SELECT * FROM glob('{outside}/*')",
        "SELECT * FROM read_csv('https://example.com/people.csv')",
    ],
)
def test_queries_reach_nothing_outside(engine, folders, query):
    source = locate(str(folders[0] / "people.csv"), sql=query.format(outside=folders[1]))
    with pytest.raises(EquipoiseError):
        engine.read(source)
