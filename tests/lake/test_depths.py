"""Of large tables only the rows are looked at that may be taken, and the same ones are taken."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import psycopg
import pytest

import servers
from equipoise.engines.routing import Routing
from equipoise.lake.lake import Lake
from equipoise.lake.offers import copies, scanner
from equipoise.lake.offers.reads import Reads
from lakes import HEADER, PEOPLE, acquired, found, ledger, planned, write

CELLS = {("Female", "yes"): 40, ("Male", "no"): 15}


def people(draw: random.Random, rows: int, ids: int) -> list[tuple[object, ...]]:
    """Rows of which some are equal, in tables and between them."""
    return [
        (
            draw.randrange(1000, 1000 + ids),
            draw.choice(["Female", "Male"]),
            draw.choice(["yes", "no"]),
            30,
        )
        for _ in range(rows)
    ]


def lake_of(seed: int, ids: int) -> None:
    draw = random.Random(seed)
    tables = [people(draw, 300, ids) for _ in range(3)]
    base = [*PEOPLE, *draw.sample(tables[0], 60), *draw.sample(tables[1], 20)]
    write("people.csv", HEADER, base)
    for i, rows in enumerate(tables):
        write(f"lake/part{i}.csv", HEADER, rows)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def taken(plan, monkeypatch, *, first=None, **limits):
    """What is taken, with tables in memory or, if a first depth is given, looked at in parts."""
    with monkeypatch.context() as patched:
        if first is not None:
            patched.setattr(copies, "LARGE", 0)
            patched.setattr(scanner, "_first_depth", lambda need: np.full(len(need), first))
        done = acquired(plan, partial=True, **limits)
        lines = ledger()
        return [(line["source"], line["place"], line["hash"]) for line in lines], done


@pytest.mark.slow
@pytest.mark.parametrize(("first", "ids"), [(1, 60), (20, 5000)])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"dedupe": "multiset"},
        {"dedupe": "key", "key": ["id"]},
        {"max_share_per_source": 0.5},
        {"max_tables": 1},
    ],
    ids=str,
)
def test_rows_are_taken_as_if_all_had_been_looked_at(monkeypatch, first, ids, limits):
    lake_of(first, ids)
    plan = planned("people.csv", CELLS)
    expected, whole = taken(plan, monkeypatch, **limits)
    assert expected
    some, part = taken(plan, monkeypatch, first=first, **limits)
    assert some == expected
    assert part.cost == whole.cost
    assert [(n, k.missing) for n, k in part.lacks] == [(n, k.missing) for n, k in whole.lacks]


def test_few_rows_of_a_large_table_are_looked_at(monkeypatch):
    lake_of(0, 5000)
    monkeypatch.setattr(copies, "LARGE", 0)
    drawn = Counter()
    rows = Reads.rows

    def counted(self, candidate, need, there):
        drawn[candidate.name] += int(there.sum())
        return rows(self, candidate, need, there)

    monkeypatch.setattr(Reads, "rows", counted)
    offers = found(planned("people.csv", {("Female", "yes"): 5})).offers
    assert offers
    assert 0 < max(drawn.values()) <= 5 + 8 * 2 + 20
    best = offers[0].offer
    assert best.offered.sum() > best.rows.sum() >= 5


def test_rows_that_are_too_many_to_be_held_are_chosen_once(monkeypatch):
    lake_of(0, 5000)
    plan = planned("people.csv", CELLS)
    expected, _ = taken(plan, monkeypatch)
    monkeypatch.setattr(scanner, "_KEPT", dict.fromkeys(scanner._KEPT, 0))
    chosen = Counter()
    rows = Routing.rows

    def counted(self, source, request, take, *args, **options):
        if source.name.endswith("part0.csv"):
            chosen[tuple(sorted(take.cells().items()))] += 1
        return rows(self, source, request, take, *args, **options)

    monkeypatch.setattr(Routing, "rows", counted)
    assert taken(plan, monkeypatch, first=1)[0] == expected
    assert len(chosen) > 2
    assert set(chosen.values()) == {1}


@pytest.mark.slow
def test_as_many_bytes_come_from_postgres_as_rows_are_taken():
    sizes = {}
    with servers.new_database() as address:
        with psycopg.connect(address) as connection:
            connection.execute("CREATE SCHEMA archive")
            for name, rows in (("small", 2_000), ("large", 40_000)):
                connection.execute(
                    f"CREATE TABLE archive.{name} AS SELECT i AS id, "
                    "CASE i % 2 WHEN 0 THEN 'Male' ELSE 'Female' END AS sex, "
                    "CASE i / 2 % 2 WHEN 0 THEN 'yes' ELSE 'no' END AS hired, i % 60 AS age, "
                    f"md5(i::text) AS remark FROM generate_series(1, {rows}) AS t(i)".encode()
                )
        base = [(-i, sex, hired, 40, "x") for i, (_, sex, hired, _) in enumerate(PEOPLE * 20)]
        write("people.csv", (*HEADER, "remark"), base)
        plan = planned("people.csv", {("Female", "yes"): 30})
        for name, other in (("small", "large"), ("large", "small")):
            engine = Routing()
            lake = Lake(f"{address}&schema=archive", engine=engine, index=f"{name}.index")
            session = engine.engine_of(lake.tables[0].source).session(lake.tables[0].source)
            before = session.fetched
            done = acquired(plan, lake, deny=[t.name for t in lake.tables if other in t.name])
            assert done.shares[0].rows == 30
            sizes[name] = session.fetched - before
            engine.close()
    assert 0 < sizes["large"] < 1.5 * sizes["small"]
    assert sizes["large"] < 40_000  # bytes, for a table of several megabytes
