"""How often a base and the tables of a lake are read, which is what takes time where they are large."""

from __future__ import annotations

import collections
import random

import pyarrow.parquet as pq
import pytest

from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.lake.lake import Lake
from equipoise.lake.offers import alignments, copies, reads
from equipoise.lake.offers.find import find
from equipoise.lake.repair.acquire import acquire


class Counting(DuckDBEngine):
    """Counts the calls of each verb that reads the rows of the base."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: collections.Counter[str] = collections.Counter()

    def __getattribute__(self, name):
        verb = super().__getattribute__(name)
        if name not in {"counts", "read", "rows", "profile"}:
            return verb

        def counted(source, *args, **options):
            if source.name.endswith("people.csv"):
                self.calls[name] += 1
            return verb(source, *args, **options)

        return counted


@pytest.fixture
def lake(tmp_path):
    import equipoise as eq

    (tmp_path / "lake").mkdir()
    header = "sex,age,hired\n"
    people = [
        "Male,31,yes",
        "Male,32,yes",
        "Male,33,no",
        "Female,34,yes",
        "Female,35,no",
        "Female,36,no",
    ]
    (tmp_path / "people.csv").write_text(header + "\n".join(people) + "\n")
    more = [
        f"{sex},{age},{hired}"
        for sex in ("Male", "Female")
        for hired in ("yes", "no")
        for age in range(50, 60)
    ]
    (tmp_path / "lake" / "more.csv").write_text(header + "\n".join(more) + "\n")
    plan = eq.plan(tmp_path / "people.csv", sensitive_features=["sex"], label="hired", allow="add")
    lake = Lake(tmp_path / "lake", engine=Counting())
    assert lake.tables
    lake.engine.calls.clear()
    return plan, lake, locate(tmp_path / "people.csv"), tmp_path


def test_find_reads_its_base_once_and_profiles_it_once(lake):
    plan, lake, base, _ = lake
    assert not find(plan, lake, base=base).lacks
    assert lake.engine.calls == {"read": 1, "profile": 1}


def test_acquire_reads_its_base_once_and_profiles_it_once(lake):
    plan, lake, base, folder = lake
    assert acquire(plan, base, lake, folder / "repaired.csv").as_planned
    assert lake.engine.calls == {"read": 1, "profile": 1}


READING = {"counts", "read", "rows", "profile", "fetch", "distinct", "middle"}


class CountingTables(DuckDBEngine):
    """Counts how often each table is read; what is in memory already does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: collections.Counter[str] = collections.Counter()

    def __getattribute__(self, name):
        verb = super().__getattribute__(name)
        if name not in READING:
            return verb

        def counted(source, *args, **options):
            if source.kind != "frame":
                self.reads[source.name] += 1
            return verb(source, *args, **options)

        return counted


def some_people(draw, rows, share):
    people = []
    for _ in range(rows):
        sex = draw.choice(["Female", "Male"])
        hired = draw.random() < (share if sex == "Female" else 0.5)
        people.append(
            f"{draw.randrange(10**6)},{sex},{'yes' if hired else 'no'},{draw.randint(18, 70)}"
        )
    return "id,sex,hired,age\n" + "\n".join(people) + "\n"


@pytest.fixture
def many(tmp_path):
    draw = random.Random(0)
    (tmp_path / "lake").mkdir()
    (tmp_path / "people.csv").write_text(some_people(draw, 300, 0.1))
    tables = [some_people(draw, 40, 0.5) for _ in range(5)]
    tables.append(tables[0])  # which shares all its rows
    for i, text in enumerate(tables):
        (tmp_path / "lake" / f"staff{i}.csv").write_text(text)
    (tmp_path / "lake" / "plants.csv").write_text("plant,height\nfir,30\noak,20\n")
    return tmp_path


def repaired(folder, name="repaired.parquet"):
    import equipoise as eq

    lake = Lake(folder / "lake", engine=CountingTables())
    assert lake.tables
    lake.engine.reads.clear()
    done = eq.repair(
        folder / "people.csv",
        lake,
        folder / name,
        sensitive_features=["sex"],
        label="hired",
        tolerance=0.01,
        allow="both",
    )
    ledger = pq.read_table(folder / f"{name}.ledger.parquet").to_pylist()
    return done, lake.engine.reads, (pq.read_table(folder / name).to_pylist(), ledger)


def test_a_repair_reads_no_table_twice(many):
    done, counted, _ = repaired(many)
    assert done.lacks  # so that tables are also looked at to explain what is missing
    assert done.acquired.shares
    tables = {name: n for name, n in counted.items() if name.startswith("staff")}
    assert tables == {f"staff{i}.csv": 1 for i in range(6)}
    assert "plants.csv" not in counted


def test_finding_rows_and_asking_questions_reads_no_table_twice_and_surveys_once(many, monkeypatch):
    import equipoise as eq

    aligned = collections.Counter()
    align = alignments.align

    def counted(want, profile, **options):
        aligned[profile.rows] += 1
        return align(want, profile, **options)

    monkeypatch.setattr(alignments, "align", counted)
    plan = eq.plan(many / "people.csv", sensitive_features=["sex"], label="hired", tolerance=0.01)
    lake = Lake(many / "lake", engine=CountingTables())
    assert lake.tables
    lake.engine.reads.clear()
    found = lake.find(plan)
    asked = lake.questions(plan)
    assert found.lacks
    assert [table.status for table in asked.tables].count("used") == 6
    assert aligned.total() == 7
    assert all(n == 1 for name, n in lake.engine.reads.items() if name.startswith("staff"))
    (many / "lake" / "more.csv").write_text(some_people(random.Random(1), 50, 0.5))
    lake.refresh()
    assert [table.status for table in lake.questions(plan).tables].count("used") == 7
    assert lake.questions(plan, deny=["more.csv"])["more.csv"].status == "barred"


@pytest.mark.parametrize(
    ("where", "name"),
    [(copies, "LARGE"), (copies, "_MOST_VALUES"), (copies, "_IN_MEMORY"), (reads, "_FEW")],
)
def test_what_is_repaired_does_not_depend_on_how_tables_are_held(many, monkeypatch, where, name):
    expected = repaired(many)[2]
    monkeypatch.setattr(where, name, 0)
    assert repaired(many, "again.parquet")[2] == expected
