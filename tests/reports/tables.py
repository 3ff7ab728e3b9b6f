"""Small tables that reports are made of in tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from equipoise.counts import Counts
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import BiasTable, bias_table
from equipoise.values import MISSING

NASTY = "<script>alert('x')</script>"


def table_of(cells, sensitive, label="outcome", **options):
    counts = Counts.from_mapping(cells, sensitive=sensitive, label=label)
    return bias_table(counts, MeasureRequest(**options))


def hiring(**options):
    cells = {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110}
    return table_of(cells, ["sex"], **options)


def crossed(**options):
    """Each attribute alone is even; together they are not: two hidden pairs and their mirrors."""
    cells = {
        ("a", "x", "yes"): 260, ("a", "x", "no"): 240,
        ("a", "y", "yes"): 140, ("a", "y", "no"): 360,
        ("b", "x", "yes"): 140, ("b", "x", "no"): 360,
        ("b", "y", "yes"): 260, ("b", "y", "no"): 240,
        ("b", MISSING, "no"): 1,
    }  # fmt: skip
    return table_of(cells, ["first", "second"], **options)


def three(**options):
    rng = np.random.default_rng(7)
    cells = {
        (a, b, c, y): int(rng.integers(1, 60))
        for a in ("f", "m")
        for b in ("p", "q", "r")
        for c in ("<25", ">=25")
        for y in ("high", "low", "medium")
    }
    return table_of(cells, ["sex", "town", "age"], "risk", **options)


def nasty(**options):
    cells = {
        (NASTY, 'say "hi" & bye', "ja\u2028<b>"): 40, (NASTY, "Zürich, 東京", "nein | x"): 30,
        ("*", 'say "hi" & bye', "ja\u2028<b>"): 5, ("*", "Zürich, 東京", "nein | x"): 50,
        (MISSING, "Zürich, 東京", "ja\u2028<b>"): 20, (MISSING, 'say "hi" & bye', "nein | x"): 3,
    }  # fmt: skip
    return table_of(cells, ["<i>name</i>", "o'brien=1"], "$label ${x}", **options)


def weighted(**options):
    frame = pa.table(
        {
            "sex": ["m"] * 60 + ["w"] * 60,
            "y": ["1"] * 40 + ["0"] * 40 + ["1"] * 40,
            "w": [1.0, 3.0] * 60,
        }
    )
    counts = Counts.from_frame(frame, sensitive=["sex"], label="y", weight="w")
    return bias_table(counts, MeasureRequest(**options))


def binned():
    frame = pa.table({"age": [18, 30, 50, 70, None] * 8, "y": ["1", "0"] * 20})
    counts = Counts.from_frame(frame, sensitive=["age"], label="y", bins={"age": (25, 45)})
    return bias_table(counts)


def suppressed():
    measured = crossed().measured
    mask = np.zeros(measured.ub.shape, np.bool_)
    mask[0] = True
    return BiasTable(replace(measured, suppressed=mask))


TABLES = {
    "hiring": hiring,
    "crossed": crossed,
    "three": three,
    "nasty": nasty,
    "weighted": weighted,
    "binned": binned,
    "suppressed": suppressed,
    "favourable": lambda: three(favourable="high", measures=("impact_ratio", "mean_difference")),
    "nasty-favourable": lambda: nasty(favourable="nein | x"),
    "no-uncertainty": lambda: crossed(uncertainty=False, favourable="yes"),
    "one-label": lambda: table_of({("m", "y"): 3, ("w", "y"): 2}, ["s"], favourable="y"),
    "one-group": lambda: table_of({("m", "y"): 3, ("m", "n"): 2}, ["s"]),
    "first-order": lambda: three(max_order=1),
    "no-group-left": lambda: hiring(min_count=10_000, favourable="hired"),
    "filtered": lambda: three().filter(label_value="high").sort("n"),
}
