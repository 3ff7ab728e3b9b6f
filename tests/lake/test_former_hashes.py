"""Ledgers that were written when floating-point numbers were hashed by their texts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.rows.former_hashes import former_md5s


@pytest.fixture
def repaired(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    base = {
        "sex": ["Female"] * 30 + ["Male"] * 30,
        "pay": [i / 7 for i in range(60)],
        "hired": (["yes"] * 5 + ["no"] * 25) + ["yes", "no"] * 15,
    }
    more = {"sex": ["Female", "Male"] * 60, "pay": [i / 14 + 0.01 for i in range(120)]}
    more["hired"] = ["yes", "yes", "no", "no"] * 30
    pq.write_table(pa.table(base), "people.parquet")
    pq.write_table(pa.table(more), "lake/more.parquet")
    done = eq.repair(
        "people.parquet", "lake", "out.parquet", sensitive_features=["sex"], label="hired"
    )
    assert done.exit_code == 0
    return done


def verified():
    return eq.verify(
        "out.parquet",
        base="people.parquet",
        plan="out.parquet.plan.json",
        ledger="out.parquet.ledger.parquet",
    )


def test_older_ledgers_are_verified_and_replayed(repaired):
    table = pq.read_table("out.parquet.ledger.parquet")
    lines = table.to_pylist()
    rows = {name: former_md5s(pq.read_table(name)) for name in ("lake/more.parquet", "out.parquet")}
    for line in lines:
        assert line["action"] == "add"
        line["source_hash"] = rows["lake/more.parquet"][line["place"]]
        line["hash"] = rows["out.parquet"][line["row"]]
    assert lines != table.to_pylist()
    older = pa.Table.from_pylist(lines, table.schema)
    pq.write_table(older, "out.parquet.ledger.parquet")
    found = verified()
    assert found.exit_code == 0, found
    assert eq.Lake("lake").replay("out.parquet.ledger.parquet").exit_code == 0
    lines[0]["hash"] = lines[1]["hash"]
    pq.write_table(pa.Table.from_pylist(lines, table.schema), "out.parquet.ledger.parquet")
    assert verified().exit_code == 1
