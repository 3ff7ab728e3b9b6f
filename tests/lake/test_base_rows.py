"""Rows of a base that stay where they are: the same answers as from memory, and little is fetched."""

from __future__ import annotations

import collections
import contextlib
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import servers
from equipoise.counts import CountRequest, Counts
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.lake.lake import Lake
from equipoise.lake.offers import base_rows, stored_rows
from equipoise.lake.offers.base_rows import rows_of
from equipoise.lake.offers.base_views import EqualRows
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.offers.held_rows import HeldRows
from equipoise.lake.offers.need import need_of
from equipoise.lake.offers.stored_rows import StoredRows
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


def women_needed():
    """Need rows of both labels of women."""
    add = Counts.from_mapping(
        {("Female", "yes"): 3, ("Female", "no"): 2}, sensitive=["sex"], label="hired"
    )
    return need_of(add, CountRequest(sensitive=("sex",), label="hired"))


@pytest.fixture(params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)])
def stored(request):
    """Make rows of a base that an engine has."""
    if request.param == "duckdb":
        yield lambda table: StoredRows(locate(table), DuckDBEngine())
        return
    if request.param == "spark":
        from equipoise.engines.spark import SparkEngine

        engine = SparkEngine(servers.spark_session())
        yield lambda table: StoredRows(locate(table), engine)
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
    asked = women_needed()
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
    sampled = rows.sample(women_needed())
    women = base.filter(pa.compute.equal(base["sex"], "Female"))
    assert sampled.of is None
    assert lines(sampled.rows) == lines(women)
    take = replace(women_needed().cells, rows=np.array([2, 1]))
    gone = rows.engine.rows(rows.source, REQUEST, take, located=True)
    removed = [(row["place"], row["md5"], ()) for row in gone.to_pylist()]
    left = rows.without(removed)
    assert left.n == 77
    assert lines(left.sample(women_needed()).rows) == lines(women) - lines(
        gone.drop_columns(["place", "md5"])
    )


@pytest.mark.slow
@pytest.mark.parametrize("ids", [False, True])
def test_a_sample_is_small_and_has_the_shares_of_all_rows(stored, monkeypatch, ids):
    monkeypatch.setattr(stored_rows, "_SAMPLED", 600)
    base = people(6000, ids=ids)
    sampled = stored(base).sample(women_needed())
    women = base.filter(pa.compute.equal(base["sex"], "Female"))
    assert sampled.of == len(women)
    assert 500 <= len(sampled.rows) <= 600
    again = stored(base.take(pa.array(np.random.default_rng(0).permutation(6000)))).sample(
        women_needed()
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
    rows, asked = RowHashes.of(base.slice(0, 5)), women_needed()
    whole = stored(base)
    exact = whole.chances(Known(whole.hashes()), asked)(rows)
    monkeypatch.setattr(stored_rows, "_DIGESTS", 2500)
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


# ------------------------------------------------------------------------- databases

ROWS = 200_000
TABLE = f"""
CREATE TABLE people AS SELECT
    i AS id,
    CASE WHEN i % 5 < 2 THEN 'Female' ELSE 'Male' END AS sex,
    CASE WHEN i * 7919 % 1000 < CASE WHEN i % 5 < 2 THEN 290 ELSE 300 END THEN 'yes' ELSE 'no' END AS hired,
    18 + i * 31 % 50 AS age,
    'Street ' || i * 13 % 4000 AS street,
    (i * 104729 % 1000000) / 100.0::double precision AS pay,
    date '1990-01-01' + CAST(i % 9000 AS integer) AS joined
FROM generate_series(1::bigint, {ROWS}) AS i
"""


@pytest.fixture(scope="module")
def server():
    """A server with a base of 200,000 people."""
    with servers.new_database() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(TABLE.encode())
            (size,) = connection.execute("SELECT sum(length(p::text)) FROM people AS p").fetchone()
        yield f"{address}&table=public.people", int(size)


def applicants(path):
    """Write a table of a lake; some of the applicants are in the base, written otherwise."""
    draw = random.Random(5)
    fields = ("id", "sex", "hired", "age", "street", "pay", "joined")
    rows = [
        (10**7 + i, draw.choice(["Female", "Male"]), draw.choice(["yes", "no"]), draw.randint(18, 67),
         f"Street {draw.randrange(4000)}", draw.randrange(10**6) / 100, f"1995-03-{1 + i % 28:02}")
        for i in range(10_000)
    ]  # fmt: skip
    known = [
        (i, "Female" if i % 5 < 2 else "Male", "yes", f"{18 + i * 31 % 50}.0", f"STREET {i * 13 % 4000} ",
         f"{i * 104729 % 1000000 / 100:.3f}", _joined(i))
        for i in range(5, 20_000, 5)
        if i * 7919 % 1000 < 290
    ]  # fmt: skip
    write(path, fields, rows + known)
    return len(known)


def _joined(i):
    import datetime

    return str(datetime.date(1990, 1, 1) + datetime.timedelta(days=i % 9000))


@pytest.mark.slow
def test_a_repair_fetches_few_rows_of_a_base_in_a_database(server, tmp_path, monkeypatch, request):
    import equipoise as eq
    from equipoise.engines.postgres import PostgresEngine
    from equipoise.engines.routing import Routing
    from equipoise.errors import Unsupported
    from equipoise.lake.repair.acquire import acquire

    address, size = server
    monkeypatch.chdir(tmp_path)
    Path("lake").mkdir()
    copies = applicants("lake/applicants.csv")
    profile = PostgresEngine.profile

    def read(source):
        with contextlib.closing(PostgresEngine()) as other:
            return other.read(source)

    def profiled(self, source):
        try:
            return profile(self, source)
        except Unsupported:  # by another engine then, whose bytes are not counted
            return DuckDBEngine().profile(locate(read(source)))

    monkeypatch.setattr(PostgresEngine, "profile", profiled)
    base, engine = locate(address), Routing()
    request.addfinalizer(engine.close)
    counts = engine.counts(base, CountRequest(sensitive=("sex",), label="hired"))
    plan = eq.plan(counts, allow="add")
    lake = Lake("lake", engine=engine)
    done = acquire(plan, base, lake, None)
    assert 0 < done.added == plan.add.n < 8000
    assert done.as_planned
    assert done.duplicates >= copies * 0.9
    assert done.shift.sampled <= 1000
    assert done.shift.to_dict()["sampled_of"] > 10_000
    assert (
        f"a sample of {done.shift.sampled:,} of the {done.shift.sampled_of:,} base rows"
        in done.text()
    )
    fetched = engine.engine_of(base).session(base).fetched
    assert 0 < fetched < 0.02 * size
    held = acquire(plan, locate(read(base)), lake, None)
    assert done.duplicates == held.duplicates
    assert {s.name: s.rows for s in done.shares} == {s.name: s.rows for s in held.shares}
    assert done.by_chance == pytest.approx(held.by_chance, abs=0.05 * max(held.by_chance, 1))
