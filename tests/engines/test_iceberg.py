"""Iceberg tables: the same rows as their own library reads, at a snapshot, or refused with the reason."""

from __future__ import annotations

import datetime
import http.server
import json
import re
import sys
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import manifest as manifests
from pyiceberg.catalog import load_catalog
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType

from equipoise.cli.app import run
from equipoise.counts import CountRequest
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.engines.stores import iceberg
from equipoise.errors import EquipoiseError, InputError, MissingDependency, SourceNotFound

ENGINE = shared_engine()
PEOPLE = {"sex": ["w", "m", "w"], "hired": ["yes", "no", None], "age": [31, None, 25]}
SECRET = "hunter2-very-secret"


class Lakehouse:
    """A catalogue in SQLite with one namespace."""

    def __init__(self, folder):
        self.file = folder / "catalog.db"
        settings = {
            "type": "sql",
            "uri": f"sqlite:///{self.file}",
            "warehouse": f"file://{folder}/wh",
        }
        self.catalog = load_catalog("main", **settings)
        self.catalog.create_namespace("archive")

    def table(self, rows=PEOPLE, name="people", **options):
        made = self.catalog.create_table(f"archive.{name}", pa.table(rows).schema, **options)
        made.append(pa.table(rows))
        return made

    def address(self, name="people", more=""):
        return f"iceberg:sqlite:///{self.file}?table=archive.{name}{more}"


@pytest.fixture
def house(tmp_path):
    return Lakehouse(tmp_path)


def lines(table):
    """The rows of a table in any order, by column name."""
    names = sorted(table.column_names)
    return Counter(zip(*(map(str, table[name].to_pylist()) for name in names), strict=True))


def said(address, kind=InputError):
    with pytest.raises(kind) as caught:
        ENGINE.read(locate(address))
    assert str(caught.value).endswith((".", "?"))
    return str(caught.value)


def test_a_table_of_a_catalogue_and_by_its_metadata(house):
    made = house.table()
    direct = f"iceberg:{made.metadata_location}"
    for address in (house.address(), direct, direct.replace("file://", "")):
        source = locate(address)
        assert source.kind == "iceberg"
        assert ENGINE.read(source).to_pydict() == PEOPLE


def test_the_catalogue_is_not_written_to(house):
    house.table()
    before = house.file.read_bytes()
    house.file.chmod(0o444)
    assert ENGINE.read(locate(house.address())).num_rows == 3
    assert house.file.read_bytes() == before
    assert "does not exist" in said("iceberg:sqlite:///nowhere.db?table=a.b", SourceNotFound)
    assert not Path("nowhere.db").exists()


def test_renamed_dropped_new_and_wider_columns(house):
    made = house.table({"sex": ["w"], "n": pa.array([1], pa.int32()), "old": ["x"], "back": ["1"]})
    with made.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("sex", "gender")
        change.update_column("n", LongType())
        change.delete_column("old")
        change.delete_column("back")
    with made.update_schema() as change:
        change.add_column("back", StringType())  # a new column of an old name has no old values
        change.add_column("new", StringType())
    made.append(pa.table({"gender": ["m"], "n": [1 << 40], "back": ["2"], "new": ["y"]}))
    found = ENGINE.read(locate(house.address()))
    assert lines(found) == lines(made.scan().to_arrow())
    assert found.column_names == ["gender", "n", "back", "new"]
    assert found["back"].null_count == 1


def test_a_column_renamed_without_a_new_snapshot(house):
    made = house.table()
    before = locate(house.address())
    with made.update_schema() as change:
        change.rename_column("sex", "gender")
    after = locate(house.address())
    assert "gender" in ENGINE.read(after).column_names
    assert "sex" in ENGINE.read(before).column_names
    assert before.version != after.version


def partitioned(house, rows, columns):
    made = house.catalog.create_table("archive.people", pa.table(rows).schema)
    with made.update_spec() as change:
        for name, how in columns:
            change.add_field(name, how, f"part_{name}")
    made.append(pa.table(rows))
    return made


def without_column(path, name):
    """Write a file again without a column, as tools for Hive leave out what it is partitioned by."""
    table = pq.read_table(path)
    pq.write_table(table.drop_columns([name]), path)


def test_partitions(house):
    day = [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)]
    rows = PEOPLE | {"day": day}
    columns = [
        ("sex", IdentityTransform()),
        ("day", IdentityTransform()),
    ]
    made = partitioned(house, rows, columns)
    expected = lines(made.scan().to_arrow())
    assert expected == lines(ENGINE.read(locate(house.address())))
    for task in made.scan().plan_files():
        for name in ("sex", "day"):
            without_column(Path(task.file.file_path.removeprefix("file://")), name)
    assert lines(ENGINE.read(locate(house.address()))) == expected


CHANGE = st.tuples(
    st.sampled_from(["append", "overwrite", "rename", "add"]),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=4),
)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(CHANGE, min_size=1, max_size=4))
def test_every_snapshot_is_what_the_library_reads(tmp_path_factory, changes):
    house = Lakehouse(tmp_path_factory.mktemp("iceberg"))
    made = house.table({"g": ["a"], "n": [0]})
    for i, (what, rows) in enumerate(changes):
        if what == "rename":
            with made.update_schema() as change:
                change.rename_column(made.schema().fields[0].name, f"g{i}")
        elif what == "add":
            with made.update_schema() as change:
                change.add_column(f"new{i}", StringType())
        names = [column.name for column in made.schema().fields]
        values = [[g for g, _ in rows], [n for _, n in rows]]
        values += [[name] * len(rows) for name in names[2:]]
        table = pa.table(dict(zip(names, values, strict=True)))
        made.overwrite(table) if what == "overwrite" else made.append(table)
    for snapshot in made.snapshots():
        number = snapshot.snapshot_id
        found = ENGINE.read(locate(house.address(more=f"&snapshot={number}")))
        assert lines(found) == lines(made.scan(snapshot_id=number).to_arrow())
    assert lines(ENGINE.read(locate(house.address()))) == lines(made.scan().to_arrow())


def test_a_source_keeps_its_snapshot(house):
    made = house.table()
    source = locate(house.address())
    made.overwrite(pa.table(PEOPLE).slice(0, 1))
    made.append(pa.table(PEOPLE))
    assert ENGINE.read(source).num_rows == 3
    assert ENGINE.read(locate(house.address())).num_rows == 4
    assert iceberg.mark(source)[0] != iceberg.mark(locate(house.address()))[0]
    assert iceberg.mark(source)[0] == iceberg.file_list(source).snapshot


def test_a_table_without_rows(house):
    house.catalog.create_table("archive.people", pa.table(PEOPLE).schema)
    found = ENGINE.read(locate(house.address()))
    assert (found.num_rows, found.column_names) == (0, list(PEOPLE))


def test_every_verb(house):
    house.table()
    source = locate(house.address(), where="sex = 'w'")
    assert ENGINE.counts(source, CountRequest(sensitive=("sex",), label="hired")).n == 1
    assert ENGINE.distinct(source, "age") == {"25": 1, "31": 1}
    assert ENGINE.profile(source).rows == 2
    assert ENGINE.fetch(source, [1])["age"].to_pylist() == [25]


def test_nested_columns(house):
    rows = {"a": [[1, 2]], "s": [{"x": 1, "y": "q"}], "m": [None]}
    kinds = {"m": pa.map_(pa.string(), pa.int64())}
    table = pa.table({n: pa.array(v, kinds.get(n)) for n, v in rows.items()})
    made = house.table(table)
    assert ENGINE.read(locate(house.address())).to_pylist() == table.to_pylist()
    with made.update_schema() as change:
        change.rename_column("s.x", "z")
    assert "nested field" in said(house.address())


# ---------------------------------------------------------------------------- refused


def test_tables_that_are_not_there(house):
    house.table()
    house.table(name="places")
    message = said(house.address("peple"), SourceNotFound)
    assert "there are: archive.people, archive.places" in message
    assert "Did you mean 'archive.people'?" in message
    assert "names no table" in said(f"iceberg:sqlite:///{house.file}")
    assert "place of a lake" in said(f"iceberg:sqlite:///{house.file}?namespace=archive")
    assert "cannot be read" in said("iceberg:/nowhere/v1.metadata.json")
    assert "cannot be read" in said("iceberg:nobody-configured-this?table=a.b")


def test_snapshots_that_are_not_there(house, tmp_path):
    made = house.table()
    assert "has gone" in said(house.address(more="&snapshot=5"), SourceNotFound)
    assert "whole number" in said(house.address(more="&snapshot=x"))
    old = locate(house.address())
    made.overwrite(pa.table(PEOPLE).slice(0, 1))
    made.maintenance.expire_snapshots().by_id(int(old.version.partition("/")[0])).commit()
    with pytest.raises(SourceNotFound, match="has gone"):
        ENGINE.read(old)


def test_files_that_are_gone(house):
    made = house.table()
    made.append(pa.table(PEOPLE))
    for task in list(made.scan().plan_files())[:1]:
        Path(task.file.file_path.removeprefix("file://")).unlink()
    assert "cannot be read" in said(house.address(), SourceNotFound)


class DeleteManifest(manifests.ManifestWriterV2):
    def content(self):
        return manifests.ManifestContent.DELETES

    @property
    def _meta(self):
        return super()._meta | {"content": "deletes"}


def with_delete_file(made, folder):
    """Add a file of deleted rows to the newest snapshot, which the library itself cannot write."""
    snapshot, spec = made.current_snapshot(), made.spec()
    (task,) = made.scan().plan_files()
    deleted = pa.table({"file_path": [task.file.file_path], "pos": [0]})
    pq.write_table(deleted, folder / "deleted.parquet")
    file = manifests.DataFile.from_args(
        content=manifests.DataFileContent.POSITION_DELETES,
        file_path=str(folder / "deleted.parquet"),
        file_format=manifests.FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=(folder / "deleted.parquet").stat().st_size,
    )
    file.spec_id = spec.spec_id
    output = made.io.new_output(str(folder / "deletes.avro"))
    with DeleteManifest(spec, made.schema(), output, snapshot.snapshot_id, "null") as writer:
        added = manifests.ManifestEntryStatus.ADDED
        entry = manifests.ManifestEntry.from_args(
            status=added, snapshot_id=snapshot.snapshot_id, data_file=file
        )
        writer.add_entry(entry)
    listed = [*snapshot.manifests(made.io), writer.to_manifest_file()]
    target = made.io.new_output(str(folder / "list.avro"))
    number = snapshot.sequence_number
    with manifests.write_manifest_list(
        2, target, snapshot.snapshot_id, None, number, "null"
    ) as writing:
        writing.add_manifests(listed)
    path = Path(made.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    metadata["snapshots"][-1]["manifest-list"] = str(folder / "list.avro")
    (folder / "new.metadata.json").write_text(json.dumps(metadata))
    return f"iceberg:{folder}/new.metadata.json"


def test_delete_files(house, tmp_path):
    made = house.table()
    assert "has delete files" in said(with_delete_file(made, tmp_path))


def test_files_without_field_ids(house, tmp_path):
    made = house.table()
    pq.write_table(pa.table(PEOPLE), tmp_path / "added.parquet")
    made.add_files([str(tmp_path / "added.parquet")])
    assert "without field ids" in said(house.address())


def test_the_extra_is_missing(house, monkeypatch):
    house.table()
    for name in [n for n in sys.modules if n.partition(".")[0] == "pyiceberg"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=r"equipoise\[lakehouse\]"):
        locate(house.address())


def test_a_confined_engine_reads_none(house, tmp_path):
    house.table()
    engine = DuckDBEngine(within=[str(tmp_path)])
    try:
        with pytest.raises(EquipoiseError, match="folders that may be read"):
            engine.read(locate(house.address()))
    finally:
        engine.close()


# ---------------------------------------------------------------- other catalogues


def test_several_catalogues_in_one_file(house):
    house.table()
    other = load_catalog(
        "other", type="sql", uri=f"sqlite:///{house.file}", warehouse="file:///tmp"
    )
    other.create_namespace("archive")
    other.create_table("archive.people", pa.table({"x": [1]}).schema)
    assert "catalog=NAME; it has: main, other" in said(house.address())
    assert ENGINE.read(locate(house.address(more="&catalog=main"))).num_rows == 3
    assert ENGINE.read(locate(house.address(more="&catalog=other"))).column_names == ["x"]


def test_a_catalogue_of_the_library_s_own_settings(house, monkeypatch):
    house.table()
    monkeypatch.setenv("PYICEBERG_CATALOG__MAIN__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__MAIN__URI", f"sqlite:///{house.file}")
    from pyiceberg import catalog
    from pyiceberg.utils.config import Config

    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    assert ENGINE.read(locate("iceberg:main?table=archive.people")).num_rows == 3
    assert iceberg.tables("iceberg:main") == ("archive.people",)
    assert "has no table 'archive.p'" in said("iceberg:main?table=archive.p")


@pytest.fixture
def server(house):
    """A REST catalogue that knows one table, and one token."""
    made = house.table()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            table = {"metadata-location": made.metadata_location, "config": {}}
            table["metadata"] = json.loads(
                Path(made.metadata_location.removeprefix("file://")).read_text()
            )
            known = {
                "/v1/config": {"defaults": {}, "overrides": {}},
                "/v1/namespaces": {"namespaces": [["archive"]]},
                "/v1/namespaces/archive/tables": {
                    "identifiers": [{"namespace": ["archive"], "name": "people"}]
                },
                "/v1/namespaces/archive/tables/people": table,
            }
            found = known.get(self.path.partition("?")[0])
            allowed = self.headers.get("Authorization") == f"Bearer {SECRET}"
            kind = "NoSuchTableException" if allowed else "NotAuthorizedException"
            code = (200 if found else 404) if allowed else 401
            told = {"message": f"{self.headers['Authorization']}", "type": kind, "code": code}
            body = json.dumps(found if code == 200 else {"error": told}).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"iceberg:http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def test_a_rest_catalogue(server):
    source = locate(f"{server}?table=archive.people&token={SECRET}")
    assert ENGINE.read(source).to_pydict() == PEOPLE
    assert SECRET not in source.name + repr(source)
    assert iceberg.tables(f"{server}?token={SECRET}") == ("archive.people",)
    missing = said(f"{server}?table=archive.peple&token={SECRET}")
    assert "Did you mean 'archive.people'?" in missing
    assert SECRET not in missing


def test_a_wrong_token_is_not_told(server, capsys):
    wrong = "another-secret-token"
    message = said(f"{server}?table=archive.people&token={wrong}")
    assert "cannot be read" in message
    assert not re.search(f"{wrong}|{SECRET}", message)
    assert run(["measure", f"{server}?table=a.b&token={wrong}", "-s", "sex", "-l", "hired"]) == 2
    out, err = capsys.readouterr()
    assert wrong not in out + err


def test_from_the_command_line(house, capsys):
    house.table()
    assert run(["measure", house.address(), "-s", "sex", "-l", "hired", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2
