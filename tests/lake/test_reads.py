"""How often a base is read, which is what takes time where it is large."""

from __future__ import annotations

import collections

import pytest

from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.lake.lake import Lake
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
