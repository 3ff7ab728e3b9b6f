"""A monitor that only reads leaves its store as it is."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.errors import InputError

DAY = {("m", "yes"): 40, ("m", "no"): 60, ("w", "yes"): 20, ("w", "no"): 80}
COUNTS = eq.Counts.from_mapping(DAY, sensitive=["sex"], label="hired")


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "bias.sqlite"
    with eq.Monitor(path) as monitor:
        for day in range(1, 11):
            monitor.add(COUNTS, name="hires", at=f"2026-11-{day:02}", id=str(day))
    return path


def state(store):
    """The content of a store with what is not yet in its file."""
    log = store.with_name(f"{store.name}-wal")
    return store.read_bytes(), log.read_bytes() if log.exists() else b""


def test_looking_changes_nothing(store):
    before = state(store)
    with eq.Monitor(store, read_only=True) as monitor:
        check = monitor.check("hires", max_abs_ub=0.2)
        history = monitor.history("hires", max_abs_ub=0.2)
        assert state(store) == before
        assert len(monitor.streams().streams) == 1
    assert state(store) == before
    with eq.Monitor(store) as monitor:
        told = monitor.check("hires", max_abs_ub=0.2).to_dict()
        assert {**told, "time": ""} == {**check.to_dict(), "time": ""}
        assert history.check.status == "outside"
        # Here the rules are noted, so that merging keeps their evidence.
        assert state(store) != before


@pytest.mark.parametrize(
    "change",
    [
        lambda monitor: monitor.add(COUNTS, name="hires", at="2026-12-01"),
        lambda monitor: monitor.withdraw("hires", id="1"),
        lambda monitor: monitor.acknowledge("hires"),
        lambda monitor: monitor.merge("hires", older_than="2d"),
    ],
    ids=["add", "withdraw", "acknowledge", "merge"],
)
def test_what_would_change_the_store_is_refused(store, change):
    before = state(store)
    with eq.Monitor(store, read_only=True) as monitor:
        monitor.check("hires")
        with pytest.raises(InputError, match="is read-only"):
            change(monitor)
    assert state(store) == before


def test_no_store_is_made(tmp_path):
    monitor = eq.Monitor(tmp_path / "new.sqlite", read_only=True)
    with pytest.raises(InputError, match="is read-only"):
        monitor.add(COUNTS, name="hires", at="2026-11-01")
    assert list(tmp_path.iterdir()) == []
