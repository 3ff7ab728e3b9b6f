"""The result of buying rows draw by draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from equipoise.lake.sampling.sources import Cell, cell_name
from equipoise.plain import Grid, in_words
from equipoise.results import FlatTable, Result

SCHEMA = "equipoise.tailor/1"

Stopped: TypeAlias = Literal[
    "met", "exhausted", "no progress", "budget", "max_draws", "asked", "failed", "interrupted"
]
"""Reason why the run ended."""

Policy: TypeAlias = Literal["auto", "known", "unknown", "random"]
"""How sources are chosen."""

_SHOWN = 5

WHY: dict[Stopped, str] = {
    "met": "all needs are met",
    "exhausted": "all sources are exhausted",
    "no progress": "no source is likely to have what is missing",
    "budget": "the budget does not pay for another draw",
    "max_draws": "the maximum number of draws was reached",
    "asked": "the function `stop` requested it",
    "failed": "an error occurred",
    "interrupted": "it was interrupted",
}


class Kept(NamedTuple):
    """A row that is needed, and its source."""

    source: str
    row: Any


class Purchase(NamedTuple):
    """What was drawn from one source."""

    source: str
    draws: int
    kept: int
    cost: float
    exhausted: bool


class Standing(NamedTuple):
    """State of a run, for the function ``stop``."""

    draws: int
    cost: float
    missing: dict[Cell, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tailored(Result):
    """The rows that were bought.

    Attributes
    ----------
    need
        Number of rows needed by cell.
    rows
        Rows kept by cell, each with its source; never more than needed.
    purchases
        Draws, rows kept and cost of each source.
    stopped
        Reason why the run ended; ``"met"`` if nothing is missing.
    reasons
        Why rows are missing, by cell.
    bound
        The :func:`lower_bound` of the cost; ``None`` if a mix is unknown or the sources have too few
        rows.
    policy, seed
        How sources were chosen.
    error
        Error that ended the run, if any.
    """

    need: dict[Cell, int]
    rows: dict[Cell, tuple[Kept, ...]]
    purchases: tuple[Purchase, ...]
    stopped: Stopped
    reasons: dict[Cell, str]
    bound: float | None
    policy: Policy
    seed: int
    error: Exception | None = None

    @property
    def missing(self) -> dict[Cell, int]:
        """Number of missing rows by cell, which can be passed to :func:`tailor` again."""
        lacks = {cell: n - len(self.rows[cell]) for cell, n in self.need.items()}
        return {cell: n for cell, n in lacks.items() if n}

    @property
    def draws(self) -> int:
        """Number of rows drawn and paid for."""
        return sum(p.draws for p in self.purchases)

    @property
    def cost(self) -> float:
        """Cost of all draws."""
        return math.fsum(p.cost for p in self.purchases)

    @property
    def kept(self) -> int:
        """Number of rows kept."""
        return sum(map(len, self.rows.values()))

    @property
    def exit_code(self) -> int:
        """0, or 1 if rows are missing."""
        return 1 if self.missing else 0

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        asked = sum(self.need.values())
        said = [
            f"{self.kept:,} of {asked:,} needed rows kept; {self.draws:,} draws cost {self.cost:,.6g}."
        ]
        if self.bound is not None:
            said.append(f"Given the mixes, the expected cost is at least {self.bound:,.6g}.")
        if self.stopped != "met":
            failure = "" if self.error is None else f" ({type(self.error).__name__}: {self.error})"
            said.append(f"Stopped: {WHY[self.stopped]}{failure}.")
        lacks: dict[str, list[str]] = {}
        for cell, n in self.missing.items():
            lacks.setdefault(self.reasons[cell], []).append(f"{n:,} of {cell_name(cell)}")
        for why, cells in lacks.items():
            more = len(cells) - _SHOWN
            rest = [f"so on for {more:,} more"] if more > 0 else []
            said.append(f"Missing because {why}: {in_words([*cells[:_SHOWN], *rest])}.")
        return tuple(said)

    def _table(self) -> FlatTable:
        return Purchase._fields, self.purchases

    def grid(self) -> Grid:
        """Table for people, with the sources that rows were drawn from."""
        used = [p for p in self.purchases if p.draws]
        lines = [(p.source, f"{p.draws:,}", f"{p.kept:,}", f"{p.cost:,.6g}") for p in used]
        return Grid(("source", "draws", "kept", "cost"), tuple(lines), frozenset({1, 2, 3}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the rows themselves."""
        return {
            "schema": SCHEMA,
            "draws": self.draws,
            "cost": self.cost,
            "bound": self.bound,
            "stopped": self.stopped,
            "error": None if self.error is None else str(self.error),
            "policy": self.policy,
            "seed": self.seed,
            "cells": [
                {
                    "cell": [str(v) for v in cell] if isinstance(cell, tuple) else str(cell),
                    "need": n,
                    "kept": len(self.rows[cell]),
                    "why_missing": self.reasons.get(cell),
                }
                for cell, n in self.need.items()
            ],
            "sources": [p._asdict() for p in self.purchases],
            "sentences": list(self.sentences),
            "version": self.version,
        }
