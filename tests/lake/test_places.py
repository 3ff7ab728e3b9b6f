"""Lakes of mixed places: folders, Delta and Iceberg tables and files in stores, under one index."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

import equipoise as eq
import stores
from equipoise.cli.app import run
from equipoise.engines.sources import Source
from equipoise.errors import InputError, SourceNotFound
from equipoise.lake.lake import Lake
from equipoise.lake.tables import catalog
from lakes import HEADER, ledger, more, write

SECRET = "hunter2-very-secret"
SEX = {"sensitive_features": ["sex"], "label": "hired"}
PEOPLE = [
    *((i, "Female", "no", 30 + i) for i in range(80)),
    *((i, "Female", "yes", 30 + i) for i in range(80, 100)),
    *((i, "Male", "no", 30 + i) for i in range(100, 150)),
    *((i, "Male", "yes", 30 + i) for i in range(150, 200)),
]


def table(rows):
    return pa.table(
        {name: list(values) for name, values in zip(HEADER, zip(*rows, strict=True), strict=True)}
    )


def both(first, n):
    """Rows of two cells, n of each."""
    return [*more(first, n), *more(first + 500, n, sex="Male", hired="no")]


def csv_text(rows):
    return "\n".join([",".join(HEADER), *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def store():
    with stores.memory() as made:
        yield made


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write("people.csv", HEADER, PEOPLE)


@pytest.fixture
def places(store):
    """A folder with a file, a Delta table, a store with two files, and a namespace of two tables."""
    write("files/a.csv", HEADER, both(1000, 6))
    write_deltalake("tables/hires", table(both(2000, 6)))
    store.write("far/b.csv", csv_text(both(3000, 6)))
    store.write("far/more/c.csv", csv_text(both(4000, 3)))
    settings = {"uri": f"sqlite:///{Path.cwd()}/catalog.db", "warehouse": f"file://{Path.cwd()}/wh"}
    house = load_catalog("main", type="sql", **settings)
    house.create_namespace("archive")
    for name, first in (("old", 5000), ("new", 6000)):
        house.create_table(f"archive.{name}", table(both(first, 3)).schema).append(
            table(both(first, 3))
        )
    iceberg = "iceberg:sqlite:///catalog.db?namespace=archive"
    return ["files", "delta:./tables/hires", f"{store.root}/far", iceberg]


def names(places):
    return {entry.name: entry.problem for entry in catalog.files(places).values()}


def test_all_places_are_listed_under_their_names(places, store):
    assert names(places) == dict.fromkeys(
        [
            "a.csv",
            "delta:./tables/hires",
            "iceberg:sqlite:///catalog.db?table=archive.new",
            "iceberg:sqlite:///catalog.db?table=archive.old",
            f"memory:///{store.root.partition('://')[2]}/far/b.csv",
            f"memory:///{store.root.partition('://')[2]}/far/more/c.csv",
        ]
    )


def test_an_index_sees_what_changes_anywhere(places, store):
    lake = Lake(places)
    first = lake.refresh()
    assert (first.new, first.same) == (6, 0)
    assert {t.rows for t in lake.tables} == {12, 6}
    assert not [t.problem for t in lake.tables if t.problem]
    assert Lake(places).refresh().same == 6
    write_deltalake("tables/hires", table(both(2100, 1)), mode="append")
    store.write("far/b.csv", csv_text(both(3000, 7)))
    store.files.rm(f"{store.root}/far/more/c.csv")
    later = Lake(places).refresh()
    assert (later.new, later.changed, later.gone, later.same) == (0, 2, 1, 3)


def test_a_table_stays_at_the_version_of_the_index(places):
    lake = Lake(places)
    (hires,) = [t for t in lake.tables if t.name == "delta:./tables/hires"]
    assert hires.snapshot == f"delta:{DeltaTable('tables/hires').metadata().id}@0"
    write_deltalake("tables/hires", table(both(2100, 1)), mode="append")
    again = Lake(places, refresh=False)
    (hires,) = [t for t in again.tables if t.name == "delta:./tables/hires"]
    assert lake.engine.read(hires.source).num_rows == 12
    Lake(places).refresh()
    (hires,) = [t for t in Lake(places, refresh=False).tables if t.name == "delta:./tables/hires"]
    assert lake.engine.read(hires.source).num_rows == 14


def test_search_finds_tables_of_all_places(places):
    found = Lake(places).search("people.csv")
    assert len(found.hits) == 6


def repaired(places, **options):
    return eq.repair("people.csv", Lake(places), "out.csv", **SEX, **{"tolerance": 0.1, **options})


@pytest.mark.slow
def test_a_repair_from_mixed_places_is_verified_and_replayed(places):
    done = repaired(places)
    assert done.reached
    assert done.verification.ok
    lines = [line for line in ledger() if line["action"] == "add"]
    sources = {line["source"]: line["snapshot"] for line in lines}
    kinds = {name.partition(":")[0] for name in sources}
    assert {"a.csv", "delta", "memory"} <= kinds
    assert sources["delta:./tables/hires"].endswith("@0")
    whole = {"base": "people.csv", "plan": "out.csv.plan.json"}
    assert eq.verify("out.csv", **whole, ledger="out.csv.ledger.parquet").ok
    again = Lake(places).replay("out.csv.ledger.parquet", repaired="out.csv")
    assert again.ok, again.problems
    assert again.rows == len(lines)


@pytest.mark.slow
def test_a_ledger_is_replayed_at_the_version_that_it_names(places):
    repaired(["delta:./tables/hires", "files"])
    few = table(both(9000, 3))
    write_deltalake("tables/hires", few, mode="overwrite")
    again = Lake(["delta:./tables/hires", "files"]).replay(
        "out.csv.ledger.parquet", repaired="out.csv"
    )
    assert again.ok, again.problems
    DeltaTable("tables/hires").vacuum(0, dry_run=False, enforce_retention_duration=False)
    gone = Lake(["delta:./tables/hires", "files"]).replay("out.csv.ledger.parquet")
    assert not gone.ok
    assert "this version has gone" in gone.problems[0]
    shutil.rmtree("tables/hires")
    write_deltalake("tables/hires", few)  # another table in the same place
    other = Lake(["delta:./tables/hires", "files"]).replay("out.csv.ledger.parquet")
    assert not other.ok


@pytest.mark.slow
def test_a_stored_file_that_changed_is_noticed(places, store):
    lake = Lake(places[2:3])
    eq.repair("people.csv", lake, "out.csv", **SEX, tolerance=0.3)
    assert Lake(places[2:3]).replay("out.csv.ledger.parquet").ok
    store.write("far/b.csv", csv_text(both(7000, 6)))
    assert not Lake(places[2:3]).replay("out.csv.ledger.parquet").ok


def test_delta_tables_below_a_folder_are_tables_and_not_files(places):
    write_deltalake("tables/hires", table(both(2100, 1)), mode="append")
    assert names(["tables"]) == {"hires": None}
    assert names(["tables/hires"]) == {"hires": None}
    assert names(["tables/*"]) == {"hires": None}
    lake = Lake("tables")
    assert [(t.name, t.rows) for t in lake.tables] == [("hires", 14)]
    assert lake.engine.read(lake.tables[0].source).num_rows == 14
    alone = Lake("tables/hires")
    assert [(t.name, t.rows) for t in alone.tables] == [("hires", 14)]
    assert not list(Path("tables/hires").glob(".equipoise*"))


def test_the_base_is_not_a_source(places):
    rows = [*PEOPLE, *both(8000, 3)]
    write_deltalake("base", table(rows))
    plan = eq.plan("delta:./base", **SEX, tolerance=0.1)
    for named in ("delta:./base", "base", f"delta:{Path.cwd()}/base"):
        found = Lake(["delta:./base", "files"]).find(plan, base=named)
        assert [ranked.offer.candidate.name for ranked in found.offers] == ["a.csv"]


@pytest.mark.slow
def test_a_delta_table_is_repaired_from_the_command_line(capsys):
    write_deltalake("base", table(PEOPLE))
    write("files/a.csv", HEADER, both(1000, 40))
    columns = ["-s", "sex", "-l", "hired", "--tolerance", "0.1"]
    assert run(["plan", "delta:./base", *columns, "-o", "plan.json"]) == 0
    assert eq.Plan.read("plan.json").source == "delta:./base"
    assert run(["find", "plan.json", "files"]) == 0  # the plan names its table
    assert run(["acquire", "plan.json", "files", "-o", "out.parquet"]) == 0
    assert (
        run(
            [
                "verify",
                "out.parquet",
                "--base",
                "delta:./base",
                "--plan",
                "plan.json",
                "--ledger",
                "out.parquet.ledger.parquet",
            ]
        )
        == 0
    )
    capsys.readouterr()


# ---------------------------------------------------------------------------- refused


def test_rows_are_not_written_to_an_address(places):
    before = sorted(Path().rglob("*"))
    for target in ("s3://bucket/out.csv", "delta:./out.parquet"):
        with pytest.raises(InputError, match="addresses are only read"):
            eq.repair("people.csv", "files", target, **SEX, tolerance=0.1)
    assert [p for p in sorted(Path().rglob("*")) if "equipoise" not in p.name] == before


def test_one_broken_table_of_a_namespace_is_told(places):
    for file in Path("wh/archive/old/metadata").glob("*.metadata.json"):
        file.unlink()
    problems = {t.name: t.problem for t in Lake(places).tables if t.problem}
    assert list(problems) == ["iceberg:sqlite:///catalog.db?table=archive.old"]


def test_places_that_are_not_there(store):
    with pytest.raises(InputError, match="not a known scheme"):
        Lake("mystery:here").refresh()
    with pytest.raises(SourceNotFound, match="not a Delta table"):
        Lake("delta:./nowhere").refresh()
    with pytest.raises(SourceNotFound, match="holds no table"):
        Lake(f"{store.root}/nothing/").refresh()
    with pytest.raises(SourceNotFound, match=r"catalogue nowhere\.db does not exist"):
        Lake("iceberg:sqlite:///nowhere.db?namespace=a").refresh()


def test_a_namespace_that_is_not_there(places):
    with pytest.raises(SourceNotFound, match=r"there are: archive\. Did you mean 'archive'\?"):
        Lake("iceberg:sqlite:///catalog.db?namespace=archives").refresh()


def test_two_tables_of_one_name():
    one, other = (f"https://h/a.csv?token={word}" for word in ("first", "second"))

    def entry(address):
        source = Source(name="x", kind="csv", address=address)
        return catalog.CatalogEntry(name="x", source=source, size=0, changed=0)

    with pytest.raises(InputError, match="two tables of the lake are called x") as caught:
        catalog._require_one(entry(one), entry(other))
    assert "first" not in str(caught.value)
    catalog._require_one(entry(one), entry(one))


def test_a_broken_table_of_a_place_is_told_and_others_are_used(places):
    for file in Path("tables/hires").glob("*.parquet"):
        file.write_bytes(b"no")
    lake = Lake(places)
    problems = {t.name: t.problem for t in lake.tables if t.problem}
    assert list(problems) == ["delta:./tables/hires"]


def test_no_secret_is_in_an_index(store, monkeypatch, capsys):
    """Of an address with a token, the index has everything else; the table can be read by it."""
    file = store.write("a.csv", csv_text(both(1, 4)))
    opened = []
    from equipoise.engines.stores import objects

    monkeypatch.setattr(
        objects, "listed", lambda address: [(objects.StoredFile(address, s := opened_status()), s)]
    )
    monkeypatch.setattr(objects.StoredFile, "stat", lambda self: opened_status())
    monkeypatch.setattr(
        objects.StoredFile,
        "open",
        lambda self, mode="rb": opened.append(self.address) or store.files.open(file, mode),
    )

    def opened_status():
        return objects.Status(10, 10, "mark")

    place = f"https://host/a.csv?token={SECRET}"
    lake = Lake([place], index="index.duckdb")
    assert [t.name for t in lake.tables] == ["https://host/a.csv"]
    assert SECRET not in repr(lake) + repr(lake.tables)
    again = Lake([place], index="index.duckdb", refresh=False)
    assert again.tables[0].source.address == place
    assert again.engine.read(again.tables[0].source).num_rows == 8
    assert {place} == set(opened)
    again.index.close()
    lake.index.close()
    assert not any(SECRET.encode() in p.read_bytes() for p in Path().rglob("*") if p.is_file())
    with duckdb.connect("index.duckdb", read_only=True) as known:
        assert SECRET not in str(known.execute("FROM tables").fetchall())


@pytest.mark.slow
def test_from_the_command_line(places, store, capsys):
    assert run(["lake", "index", *places]) == 0
    assert "6 tables with 54 rows" in capsys.readouterr().out
    assert run(["lake", "search", "people.csv", *places]) == 0
    assert "delta:./tables/hires" in capsys.readouterr().out
    assert run(["lake", "index", "files", f"icberg://ann:{SECRET}@host"]) == 2
    assert SECRET not in capsys.readouterr().err
