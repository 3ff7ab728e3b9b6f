"""Losses that are ruled out: more than that no loss is clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.evaluation.study.scores import MEASURES

MARGIN = 0.01
"""A loss of a score counts as small up to this; a larger one is ruled out or not."""


def losses_of(differences: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each version, test and measure: in how many comparisons a loss above the margin is ruled out.

    A comparison is a model and a size of the sample. That no loss is clear may be for want of
    repeats; that the whole interval of the difference is above minus the margin is not.

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
