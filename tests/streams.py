"""Streams for tests: batches of counts with known rates, seeded."""

from __future__ import annotations

import datetime

import numpy as np

import equipoise as eq

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def counts(cells, sensitive=("sex",), label="hired"):
    return eq.Counts.from_mapping(cells, sensitive=list(sensitive), label=label)


def day(women=30, men=30, rows=100):
    """Counts of a hundred women and a hundred men, of whom so many are hired."""
    return counts(
        {
            ("w", "yes"): women,
            ("w", "no"): rows - women,
            ("m", "yes"): men,
            ("m", "no"): rows - men,
        }
    )


def drawn(rng, p_women, p_men, women=40, men=60):
    w, m = int(rng.binomial(women, p_women)), int(rng.binomial(men, p_men))
    cells = {("w", "yes"): w, ("w", "no"): women - w, ("m", "yes"): m, ("m", "no"): men - m}
    return counts({cell: n for cell, n in cells.items() if n})


def fill(monitor, batches, name="hires", start=START, step=datetime.timedelta(days=1)):
    """Add batches, one a day."""
    return [monitor.add(batch, name=name, at=start + i * step) for i, batch in enumerate(batches)]


def quiet(days, seed=1, rate=0.3):
    rng = np.random.default_rng(seed)
    return [drawn(rng, rate, rate) for _ in range(days)]


def biased(days, seed=1, women=0.1, men=0.4):
    rng = np.random.default_rng(seed)
    return [drawn(rng, women, men) for _ in range(days)]


def people(*times, hired="yes"):
    """Rows of women and men in turn, with their times."""
    sex = ["w", "m"] * len(times)
    return {"sex": sex[: len(times)], "hired": [hired] * len(times), "t": list(times)}


def current(monitor, name="hires"):
    """The batches that count."""
    return [b for b in monitor.batches(name).batches if b.state == "current"]
