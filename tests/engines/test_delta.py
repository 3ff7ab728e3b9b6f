"""Delta tables: the same rows as their own library reads, at a version, or refused with the reason."""

from __future__ import annotations

import datetime
import decimal
import json
import shutil
import sys
import uuid
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.cli.app import run
from equipoise.counts import CountRequest
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.engines.stores import delta
from equipoise.errors import EquipoiseError, InputError, MissingDependency, SourceNotFound

ENGINE = shared_engine()
PEOPLE = {"sex": ["w", "m", "w"], "hired": ["yes", "no", None], "age": [31, None, 25]}


def people(path, **more):
    write_deltalake(path, pa.table(PEOPLE | more))
    return path


def lines(table):
    """The rows of a table in any order, by column name."""
    names = sorted(table.column_names)
    return Counter(zip(*(map(str, table[name].to_pylist()) for name in names), strict=True))


def theirs(path, version=None):
    """What the library of Delta reads."""
    return pa.table(DeltaTable(path, version=version).to_pyarrow_table())


def said(address, kind=InputError):
    with pytest.raises(kind) as caught:
        ENGINE.read(locate(address))
    assert str(caught.value).endswith((".", "?"))
    return str(caught.value)


def test_a_table_by_its_address_and_by_its_folder(tmp_path):
    path = people(tmp_path / "people")
    for named in (f"delta:{path}", str(path), f"delta:file://{path}", f"delta:{path}/"):
        source = locate(named)
        assert (source.kind, source.version) == ("delta", "0")
        assert ENGINE.read(source).to_pydict() == PEOPLE
    assert locate(f"delta:{path}").public_name == "delta:people"


def test_the_folder_is_not_read_as_its_files(tmp_path):
    path = people(tmp_path / "people")
    write_deltalake(path, pa.table(PEOPLE).slice(0, 1), mode="overwrite")
    assert len(list(path.glob("*.parquet"))) == 2
    assert ENGINE.read(locate(path)).num_rows == 1


def test_odd_partition_values_and_new_columns(tmp_path):
    path = tmp_path / "odd people?"
    values = ["a b", "ü%41/x", "q=1?&#", "new\nline", "it's", None, "w"]
    write_deltalake(
        path,
        pa.table(
            {
                "part": values,
                "x": range(7),
                "day": [datetime.date(2024, 1, 1 + i % 2) for i in range(7)],
            }
        ),
        partition_by=["part", "day"],
    )
    more = pa.table({"part": ["w"], "x": [8], "new": [1.5], "day": [datetime.date(2024, 1, 1)]})
    write_deltalake(path, more, mode="append", schema_mode="merge")
    found = ENGINE.read(locate(path))
    assert lines(found) == lines(theirs(path))
    assert found["day"].type == pa.date32()
    assert found["part"].null_count == 1
    assert found["new"].null_count == 7


def test_partitions_of_every_type(tmp_path):
    moment = datetime.datetime(2024, 3, 31, 2, 30, tzinfo=datetime.UTC)
    parts = {
        "flag": [True, None],
        "number": pa.array([7, None], pa.int16()),
        "price": [decimal.Decimal("1.50"), None],
        "moment": pa.array([moment, None], pa.timestamp("us", "UTC")),
        "plain": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("us")),
        "bytes": [b"a\xff", None],
    }
    write_deltalake(tmp_path / "t", pa.table({"x": [1, 2], **parts}), partition_by=list(parts))
    found = ENGINE.read(locate(f"delta:{tmp_path}/t"))
    assert lines(found) == lines(theirs(tmp_path / "t"))


CHANGE = st.tuples(
    st.sampled_from(["append", "overwrite"]),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=5),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(CHANGE, min_size=1, max_size=5), st.booleans())
def test_every_version_is_what_the_library_reads(tmp_path_factory, changes, split):
    path = tmp_path_factory.mktemp("delta") / "t"
    for i, (mode, rows, wider) in enumerate(changes):
        table = pa.table(
            {"g": [g for g, _ in rows], "n": pa.array([n for _, n in rows], pa.int32())}
        )
        if wider:
            table = table.append_column(f"extra{i}", pa.array([str(i)] * len(rows)))
        merge = {} if i == 0 else {"mode": mode, "schema_mode": "merge"}
        write_deltalake(path, table, partition_by=["g"] if split else None, **merge)
    for version in range(len(changes)):
        source = locate(f"delta:{path}?version={version}")
        assert lines(ENGINE.read(source)) == lines(theirs(path, version))


def test_places_are_the_same_after_a_checkpoint(tmp_path):
    path = people(tmp_path / "t")
    for _ in range(4):
        write_deltalake(path, pa.table(PEOPLE), mode="append")
    source = locate(f"delta:{path}")
    before = ENGINE.fetch(source, range(100))
    DeltaTable(path).create_checkpoint()
    assert ENGINE.fetch(source, range(100)).equals(before)
    assert before.column(before.num_columns - 2).to_pylist() == list(range(15))


def test_a_source_keeps_its_version(tmp_path):
    path = people(tmp_path / "t")
    source = locate(f"delta:{path}")
    write_deltalake(path, pa.table(PEOPLE), mode="overwrite")
    write_deltalake(path, pa.table(PEOPLE), mode="append")
    assert ENGINE.read(source).num_rows == 3
    assert ENGINE.read(locate(f"delta:{path}")).num_rows == 6
    assert ENGINE.read(locate(f"delta:{path}?version=1")).num_rows == 3


def test_every_verb(tmp_path):
    path = people(tmp_path / "t")
    source = locate(f"delta:{path}", where="sex = 'w'")
    request = CountRequest(sensitive=("sex",), label="hired")
    assert ENGINE.counts(source, request).n == 1
    assert ENGINE.distinct(source, "age") == {"25": 1, "31": 1}
    assert ENGINE.profile(source).rows == 2
    assert [c.type for c in ENGINE.schema(source)] == ["VARCHAR", "VARCHAR", "BIGINT"]
    assert ENGINE.read(locate(path, sql="SELECT max(age) AS m FROM input"))["m"].to_pylist() == [31]


# ------------------------------------------------------------- written by other tools


def by_hand(path, fields, table, *, mode="none", features=(), change=None, partition_columns=()):
    """Write a table as another tool would: a log by hand, over one file."""
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(table, path / "a.parquet")
    schema = json.dumps({"type": "struct", "fields": fields})
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": list(features), "writerFeatures": list(features)}
    about = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partition_columns),
        "configuration": {} if mode == "none" else {"delta.columnMapping.mode": mode},
        "createdTime": 1,
    }
    size = (path / "a.parquet").stat().st_size
    added = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 1}
    added |= {"dataChange": True} | (change or {})
    actions = [{"protocol": protocol}, {"metaData": about}, {"add": added}]
    text = "\n".join(map(json.dumps, actions))
    (path / "_delta_log" / f"{0:020}.json").write_text(text + "\n")
    return f"delta:{path}"


def field(name, kind, physical=None, number=None):
    about = {}
    if physical is not None:
        about["delta.columnMapping.physicalName"] = physical
        about["delta.columnMapping.id"] = number
    return {"name": name, "type": kind, "nullable": True, "metadata": about}


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_columns(tmp_path, mode):
    fields = [field("gender", "string", "col-1", 1), field("age", "long", "col-2", 2)]
    fields.append(field("later", "double", "col-3", 3))
    numbered = pa.schema(
        [
            pa.field("col-1", pa.string(), metadata={"PARQUET:field_id": "1"}),
            pa.field("col-2", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    table = pa.table([["w", "m"], [31, None]], schema=numbered)
    address = by_hand(tmp_path / "t", fields, table, mode=mode, features=["columnMapping"])
    assert ENGINE.read(locate(address)).to_pydict() == {
        "gender": ["w", "m"],
        "age": [31, None],
        "later": [None, None],
    }


def test_partition_values_of_renamed_columns(tmp_path):
    fields = [field("gender", "string", "col-1", 1), field("year", "integer", "col-2", 2)]
    address = by_hand(
        tmp_path / "t",
        fields,
        pa.table({"col-1": ["w", "m"]}),
        mode="name",
        features=["columnMapping"],
        change={"partitionValues": {"col-2": "2024"}},
        partition_columns=["year"],
    )
    assert ENGINE.read(locate(address)).to_pydict() == {"gender": ["w", "m"], "year": [2024, 2024]}


def test_moments_of_spark_are_in_utc(tmp_path):
    (tmp_path / "t").mkdir()
    noon = datetime.datetime(2024, 7, 1, 12)  # noqa: DTZ001 (as Spark writes it)
    address = by_hand(tmp_path / "t", [field("at", "timestamp")], pa.table({"at": [noon]}))
    old = pa.table({"at": pa.array([noon], pa.timestamp("ns"))})
    pq.write_table(old, tmp_path / "t" / "a.parquet", use_deprecated_int96_timestamps=True)
    found = ENGINE.read(locate(address))
    assert found["at"].to_pylist() == [noon.replace(tzinfo=datetime.UTC)]
    assert list(ENGINE.distinct(locate(address), "at")) == ["2024-07-01 12:00:00+00"]


def test_nested_columns_are_read_and_refused_only_as_attributes(tmp_path):
    table = pa.table({"a": [[1, 2]], "s": [{"x": 1, "y z": "q"}], "sex": ["w"], "hired": ["yes"]})
    write_deltalake(tmp_path / "t", table)
    source = locate(f"delta:{tmp_path}/t")
    assert ENGINE.read(source).to_pylist() == table.to_pylist()
    with pytest.raises(InputError, match="nested"):
        ENGINE.counts(source, CountRequest(sensitive=("a",), label="hired"))


# ---------------------------------------------------------------------------- refused


DELETED = {
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
}
DELETED |= {"sizeInBytes": 40, "cardinality": 6}


def test_deletion_vectors(tmp_path):
    fields, table = [field("sex", "string")], pa.table({"sex": ["w", "m"]})
    some = {"features": ["deletionVectors"]}
    address = by_hand(tmp_path / "t", fields, table, **some, change={"deletionVector": DELETED})
    assert "has deletion vectors" in said(address)
    none = by_hand(tmp_path / "none", fields, table, **some)
    assert ENGINE.read(locate(none)).num_rows == 2


def test_features_that_are_not_known(tmp_path):
    fields, table = [field("sex", "string")], pa.table({"sex": ["w"]})
    address = by_hand(tmp_path / "t", fields, table, features=["mysteriousFeature"])
    assert "mysteriousFeature" in said(address)


def test_versions_that_are_not_there(tmp_path):
    path = people(tmp_path / "t")
    assert "version 7" in said(f"delta:{path}?version=7")
    assert "there are 0 to 0" in said(f"delta:{path}?version=7")
    assert "whole number" in said(f"delta:{path}?version=x")
    assert "'snapshot'" in said(f"delta:{path}?snapshot=3")


def test_a_version_whose_log_is_gone(tmp_path):
    path = people(tmp_path / "t")
    for _ in range(3):
        write_deltalake(path, pa.table(PEOPLE), mode="append")
    DeltaTable(path).create_checkpoint()
    for old in range(3):
        (path / "_delta_log" / f"{old:020}.json").unlink()
    assert ENGINE.read(locate(f"delta:{path}")).num_rows == 12
    assert "no longer in its log" in said(f"delta:{path}?version=1", SourceNotFound)


def test_a_version_whose_files_are_gone(tmp_path):
    path = people(tmp_path / "t")
    write_deltalake(path, pa.table(PEOPLE), mode="overwrite")
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert ENGINE.read(locate(f"delta:{path}")).num_rows == 3
    assert "this version has gone" in said(f"delta:{path}?version=0", SourceNotFound)


def test_what_is_no_table(tmp_path):
    assert "not a Delta table" in said(f"delta:{tmp_path}", SourceNotFound)
    assert "not a Delta table" in said(f"delta:{tmp_path}/nowhere", SourceNotFound)
    people(tmp_path / "t")
    shutil.rmtree(tmp_path / "t" / "_delta_log")
    (tmp_path / "t" / "_delta_log").mkdir()
    assert "cannot be read" in said(f"delta:{tmp_path}/t", SourceNotFound)


def test_the_extra_is_missing(tmp_path, monkeypatch):
    path = people(tmp_path / "t")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingDependency, match=r"equipoise\[lakehouse\]"):
        locate(f"delta:{path}")


def test_only_tables_below_the_allowed_folders(tmp_path):
    for name in ("inside", "outside"):
        people(tmp_path / name / "t")
    engine = DuckDBEngine(within=[str(tmp_path / "inside")])
    try:
        assert engine.read(locate(tmp_path / "inside" / "t")).num_rows == 3
        with pytest.raises(EquipoiseError, match="folders that may be read"):
            engine.read(locate(tmp_path / "outside" / "t"))
    finally:
        engine.close()


def test_a_log_that_leads_out_of_the_allowed_folders(tmp_path):
    outside = tmp_path / "outside.parquet"
    pq.write_table(pa.table({"sex": ["w"]}), outside)
    change = {"path": outside.as_uri()}
    address = by_hand(
        tmp_path / "inside" / "t", [field("sex", "string")], pa.table({"sex": ["m"]}), change=change
    )
    assert ENGINE.read(locate(address))["sex"].to_pylist() == ["w"]
    engine = DuckDBEngine(within=[str(tmp_path / "inside")])
    try:
        with pytest.raises(EquipoiseError):
            engine.read(locate(address))
    finally:
        engine.close()


def test_the_snapshot_is_that_of_the_table(tmp_path):
    path = people(tmp_path / "t")
    listed = delta.file_list(locate(f"delta:{path}"))
    assert listed.snapshot == f"delta:{DeltaTable(path).metadata().id}@0"
    assert delta.mark(locate(f"delta:{path}"))[0] == listed.snapshot
    assert delta.version_in(listed.snapshot) == "0"


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(tmp_path / "t")
    columns = ["-s", "sex", "-l", "hired"]
    assert run(["measure", "delta:./t", *columns, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2
    assert run(["measure", "delta:./u", *columns]) == 2
    assert capsys.readouterr().err.startswith("error: delta:./u is not a Delta table")
