"""Rows of a base that stay where they are: the same answers as from memory, and little is fetched."""

from __future__ import annotations

import collections
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import servers
from equipoise.counts import CountRequest, Counts
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.lake.offers import base_rows
from equipoise.lake.offers.base_rows import HeldRows, StoredRows, rows_of
from equipoise.lake.offers.base_views import EqualRows
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.offers.need import need_of
from lakes import HEADER, PEOPLE, acquired, ledger, more, planned, share, write

REQUEST = CountRequest(sensitive=("sex",), label="hired")


def people(rows, seed=0, ids=False):
    """Rows with many equals, in several notations."""
    draw = random.Random(seed)
    table = {
        "sex": [draw.choice(["Female", "Male", None]) for _ in range(rows)],
        "hired": [draw.choice(["yes", "no"]) for _ in range(rows)],
        "age": [draw.choice([31, 40, 52, None]) for _ in range(rows)],
        "pay": [draw.choice([1.5, 2000.0, None]) for _ in range(rows)],
        "note": [draw.choice(["1,500", " Yes", "y", "3.4.2021", "Élan", "élan", ""]) for _ in range(rows)],
    }  # fmt: skip
    return pa.table(table | ({"id": range(rows)} if ids else {}))


def need(table, **cells):
    """Need rows of both labels of women."""
    add = Counts.from_mapping(
        {("Female", "yes"): 3, ("Female", "no"): 2}, sensitive=["sex"], label="hired"
    )
    return need_of(add, CountRequest(sensitive=("sex",), label="hired"))


@pytest.fixture(params=["duckdb", "postgres"])
def stored(request):
    """Make rows of a base that an engine has."""
    if request.param == "duckdb":
        yield lambda table: StoredRows(locate(table), DuckDBEngine())
        return
    from equipoise.engines.postgres import PostgresEngine

    with servers.new_database() as address:
        engine = PostgresEngine(address)
        yield lambda table: StoredRows(locate(table), engine)
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["strict", "multiset"])
def test_an_engine_answers_as_memory_does(stored, policy):
    base, other = people(60), people(40, seed=1).drop_columns("pay")
    theirs = stored(base).informed(DuckDBEngine().profile(locate(base)).columns)
    ours, rows = HeldRows(locate(base), base), RowHashes.of(other)
    known = [Known(which.hashes(), policy) for which in (ours, theirs)]
    assert known[0].is_new(rows).tolist() == known[1].is_new(rows).tolist()
    assert not known[0].is_new(rows).all()
    assert known[0].is_new(rows).any()
    asked = need(base)
    chance = [w.chances(k, asked)(rows) for w, k in zip((ours, theirs), known, strict=True)]
    assert chance[0].tolist() == pytest.approx(chance[1].tolist())
    assert 0 < chance[0].max() <= 1
    assert (ours.n, ours.counts(REQUEST)) == (theirs.n, theirs.counts(REQUEST))
    assert ours.like.column_names == theirs.like.column_names


@pytest.mark.slow
def test_values_that_are_ambiguous_elsewhere_are_compared_loosely(stored):
    base = pa.table({"day": ["2021-03-04", "04/03/2021", "25.12.2021"], "x": [1, 2, 3]})
    other = pa.table({"day": ["4.3.21", "12/25/2021"], "x": [1, 3]})
    ours, theirs = HeldRows(locate(base), base).hashes(["day"]), stored(base).hashes(["day"])
    rows = HeldRows(locate(other), other).hashes(["day"])
    for names in (["x"], ["day\0loosely"], ["day\0loosely", "x"], ["day", "x"]):
        found = ours.count_equal(rows, names).tolist()
        assert found == theirs.count_equal(rows, names).tolist()
    assert ours.count_equal(rows, ["day\0loosely"]).tolist() == [2, 1]


@pytest.mark.slow
def test_columns_that_identify_rows_are_found_in_an_engine(stored):
    base, added = people(30, ids=True), people(5, seed=2, ids=True)
    profiles = DuckDBEngine().profile(locate(base)).columns
    ours = HeldRows(locate(base), base).known_again(added, ["sex", "hired"])
    assert ours == {"id": 5}
    assert stored(base).known_again(added, ["sex", "hired"]) == ours
    assert stored(base).informed(profiles).known_again(added, ["sex", "hired"]) == ours
    twice = pa.concat_tables([base, base.slice(0, 1)])
    assert stored(twice).known_again(added, ["sex", "hired"]) == {}


def lines(table):
    return collections.Counter(map(str, table.to_pylist()))


@pytest.mark.slow
def test_few_rows_are_compared_without_those_that_are_removed(stored):
    base = people(80)
    rows = stored(base)
    sampled = rows.sample(need(base))
    women = base.filter(pa.compute.equal(base["sex"], "Female"))
    assert sampled.of is None
    assert lines(sampled.rows) == lines(women)
    take = replace(need(base).cells, rows=np.array([2, 1]))
    gone = rows.engine.rows(rows.source, REQUEST, take, located=True)
    removed = [(row["place"], row["md5"], ()) for row in gone.to_pylist()]
    left = rows.without(removed)
    assert left.n == 77
    assert lines(left.sample(need(base)).rows) == lines(women) - lines(
        gone.drop_columns(["place", "md5"])
    )


@pytest.mark.slow
@pytest.mark.parametrize("ids", [False, True])
def test_a_sample_is_small_and_has_the_shares_of_all_rows(stored, monkeypatch, ids):
    monkeypatch.setattr(base_rows, "_SAMPLED", 600)
    base = people(6000, ids=ids)
    sampled = stored(base).sample(need(base))
    women = base.filter(pa.compute.equal(base["sex"], "Female"))
    assert sampled.of == len(women)
    assert 500 <= len(sampled.rows) <= 600
    again = stored(base.take(pa.array(np.random.default_rng(0).permutation(6000)))).sample(
        need(base)
    )
    assert lines(again.rows) == lines(sampled.rows)  # whatever the order of the table
    for name in ("age", "hired", "note"):
        there, here = (collections.Counter(t[name].to_pylist()) for t in (women, sampled.rows))
        for value, n in there.items():
            assert abs(here[value] / len(sampled.rows) - n / len(women)) < 0.07, (name, value)


@pytest.mark.slow
def test_the_share_of_equal_rows_is_estimated_from_some_digests(stored, monkeypatch):
    draw = random.Random(3)
    # Of a quarter of the people there are two.
    people = [("Female", draw.choice(["yes", "no"]), i) for i in range(8000)]
    people += people[:2000]
    base = pa.table(dict(zip(("sex", "hired", "x"), zip(*people, strict=True), strict=True)))
    rows, asked = RowHashes.of(base.slice(0, 5)), need(base)
    whole = stored(base)
    exact = whole.chances(Known(whole.hashes()), asked)(rows)
    monkeypatch.setattr(base_rows, "_DIGESTS", 2500)
    part = stored(base)
    estimate = part.chances(Known(part.hashes()), asked)(rows)
    assert exact.tolist() == pytest.approx([0.4, 0.4], abs=0.03)
    assert estimate.tolist() == pytest.approx(exact.tolist(), abs=0.06)
    assert estimate.tolist() != exact.tolist()


def test_tables_with_the_same_columns_are_compared_with_one_query():
    asked = []

    class Told(DuckDBEngine):
        def read(self, source, columns=None):
            asked.append(type(source.view).__name__)
            return super().read(source, columns)

    base = people(50)
    rows = StoredRows(locate(base), Told())
    known = Known(rows.hashes())
    tables = [RowHashes.of(people(20, seed=i)) for i in range(2, 12)]
    fewer = [RowHashes.of(people(20, seed=i).select(["sex", "hired", "age"])) for i in range(2, 12)]
    rows.expect([*tables, *fewer], known)
    new = [known.is_new(table).sum() for table in (*tables, *fewer)]
    assert asked == [EqualRows.__name__] * 2
    plain = Known(RowHashes.of(base))
    assert new == [plain.is_new(table).sum() for table in (*tables, *fewer)]


def test_few_rows_of_files_are_read_and_others_are_not(monkeypatch):
    engine, base = DuckDBEngine(), locate(people(10))
    assert isinstance(rows_of(engine, base, 10), HeldRows)
    monkeypatch.setattr(base_rows, "LARGE", 9)
    assert isinstance(rows_of(engine, base, 10), StoredRows)
    table = replace(base, kind="postgres", data=None, address="postgresql://x", table="t")
    monkeypatch.setattr(base_rows, "LARGE", 100)
    assert isinstance(rows_of(engine, table, 10), StoredRows)


# --------------------------------------------------------------------------- repairs


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"dedupe": "multiset"}, {"dedupe": "key", "key": ("id",)}])
@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_a_repair_is_the_same_wherever_the_rows_are(tmp_path, monkeypatch, options, kind):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, [*PEOPLE, *more(200, 12, hired="no")])
    base = written_as(kind)
    share("lake/a.csv", [PEOPLE[2], *more(100, 5), *more(400, 3, sex="Male")])
    share("lake/b.csv", [*more(103, 5), (1, "Female", "no", "31.0")])
    plan = planned(base, {("Female", "yes"): 6, ("Male", "yes"): 2}, {("Female", "no"): 3})
    held = acquired(plan, base=base, output="held.csv", **options)
    monkeypatch.setattr(base_rows, "LARGE", -1)
    there = acquired(plan, base=base, output="stored.csv", **options)
    assert Path("held.csv").read_bytes() == Path("stored.csv").read_bytes()
    assert ledger("held.csv.ledger.parquet") == ledger("stored.csv.ledger.parquet")
    left = ("time", "output", "ledger", "sentences", "verify")
    ours, theirs = ({k: v for k, v in d.to_dict().items() if k not in left} for d in (held, there))
    assert ours == theirs
    assert there.as_planned


def written_as(kind):
    """Write the same people in another format."""
    if kind == "csv":
        return "people.csv"
    rows = DuckDBEngine().read(locate("people.csv"))
    if kind == "parquet":
        pq.write_table(rows, "people.parquet")
        return "people.parquet"
    import duckdb

    with duckdb.connect("people.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE people AS FROM given")
    return "people.duckdb::people"
