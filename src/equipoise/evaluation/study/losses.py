"""Losses that the data rule out, which says more than that no loss is clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.evaluation.study.scores import MEASURES

MARGIN = 0.01
"""Largest loss of a score that counts as small."""


def losses_of(differences: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count, by version, test and measure, the comparisons that rule out a loss above the margin.

    A comparison is one model at one size of the sample. That no loss is clear may only mean that
    there are too few repeats. If the whole interval of the difference is above minus the margin, a
    larger loss is ruled out.

    Examples
    --------
    >>> row = {"version": "p", "test": "own", "measure": "recall", "mean": 0.0, "clear": False}
    >>> losses_of([{**row, "low": -0.004, "high": 0.004}, {**row, "low": -0.03, "high": 0.03}])
    [{'version': 'p', 'test': 'own', 'measure': 'recall', 'margin': 0.01, 'of': 2, 'ruled_out': 1, 'clear': 0}]
    """
    places: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in differences:
        if row["measure"] in MEASURES and row["low"] is not None:
            places.setdefault((row["version"], row["test"], row["measure"]), []).append(row)
    return [
        {
            **dict(zip(("version", "test", "measure"), place, strict=True)),
            "margin": MARGIN,
            "of": len(rows),
            "ruled_out": sum(row["low"] > -MARGIN for row in rows),
            "clear": sum(row["clear"] and row["mean"] < 0 for row in rows),
        }
        for place, rows in places.items()
    ]
