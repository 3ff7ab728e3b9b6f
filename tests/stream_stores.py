"""Stores of batches for tests: a quiet beginning, then a bias against one group."""

from __future__ import annotations

import datetime
from pathlib import Path

import equipoise as eq

FIRST = datetime.date(2026, 8, 3)


def day(number: int, *, biased: bool = False) -> dict[tuple[str, str, str], int]:
    """The cells of one day: 100 rows of each group, of which about 40 have the label yes."""
    cells = {}
    for i, (sex, race) in enumerate([("m", "a"), ("m", "b"), ("w", "a"), ("w", "b")]):
        yes = 40 + (number * 7 + i * 3) % 5 - 2
        if biased and (sex, race) == ("w", "b"):
            yes -= 20
        cells |= {(sex, race, "yes"): yes, (sex, race, "no"): 100 - yes}
    return cells


def write_store(
    path: Path,
    *,
    name: str = "loans",
    days: int = 30,
    begins: int = 15,
    columns: tuple[str, str, str] = ("sex", "race", "granted"),
    **more: object,
) -> Path:
    """Write a store with a stream whose bias begins on a day."""
    *sensitive, label = columns
    with eq.Monitor(path) as monitor:
        for number in range(days):
            cells = day(number, biased=number >= begins)
            counts = eq.Counts.from_mapping(cells, sensitive=sensitive, label=label)
            at = FIRST + datetime.timedelta(days=number)
            monitor.add(counts, name=name, at=at, id=f"day-{number}", **more)
    return path
