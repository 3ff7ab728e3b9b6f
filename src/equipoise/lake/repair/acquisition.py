"""What became of a plan that was carried out with rows of a lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.counts import Counts
from equipoise.lake.matching.conversions import Treatment
from equipoise.lake.offers.prospect import say_unchecked
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.repair.base import difference, say_restricted
from equipoise.lake.repair.shift.shift import Shift
from equipoise.plain import Grid, in_words, rows_text, ub_text
from equipoise.results import FlatTable, Result
from equipoise.values import plain

SCHEMA = "equipoise.acquire/1"
_SHOWN = 5
_NAMED = 20
"""Up to how many columns are named that lack values the sources have."""


@dataclass(frozen=True)
class TreatedColumn(Treatment):
    """What was done with a column of a source, and with how many values of added rows."""

    values: int


@dataclass(frozen=True)
class Share:
    """What came from one table."""

    name: str
    snapshot: str
    rows: int
    cost: float
    confidence: float
    licence: str | None
    columns: Mapping[str, str]
    lacking: tuple[str, ...]
    why: str
    treated: tuple[TreatedColumn, ...] = ()
    uncertain: Mapping[str, str] = field(default_factory=dict)
    """By columns that stay empty, the table's that may be them, which nobody has confirmed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Acquired(Result):
    """What became of a plan: the files written, and the written table counted again.

    Attributes
    ----------
    output, ledger
        The repaired table, and the list of every row added or removed; none after a dry run.
    base
        What messages call the base.
    shares
        What came from which table, the most rows first.
    removed
        How many rows were removed from the base.
    lacks
        The cells of which too few rows were found, and why.
    cost, bound
        What the rows cost; no choice that gives as many costs less than the bound.
    before, after, planned
        The counts of the base, of the file that was written, and those it should have.
    max_abs_ub_before, max_abs_ub_after
        The largest |UB| over the whole lattice.
    shift
        How the added rows differ from the base's rows of the same cells.
    duplicates, by_chance
        How many rows were left out because they are there already, and how many of as many
        new ones would have been by chance.
    failures
        By table and column, how many rows could not be used since a value cannot become the
        base's type.
    unmapped
        How many rows could not be used since a value means nothing in the base.
    outside
        How many rows could not be used since they do not satisfy the condition of the base.
    unchecked
        By table in which the condition cannot be checked, so that no row of it is taken: why.
    open_tables
        How many tables could be used if someone confirmed what they mean.
    seed
        By which rows were chosen.
    known_again
        By columns in which every row of the base has a value of its own: how many added rows
        have such a value.
    lost
        By column, how many values of added rows the file cannot hold, since they are none of the
        base's type.
    """

    output: str | None
    ledger: str | None
    base: str
    shares: tuple[Share, ...]
    removed: int
    lacks: tuple[tuple[str, Lack], ...]
    cost: float
    bound: float
    before: Counts
    after: Counts
    planned: Counts
    max_abs_ub_before: float
    max_abs_ub_after: float
    shift: Shift | None
    duplicates: int
    by_chance: float
    failures: Mapping[str, Mapping[str, int]]
    unmapped: int
    open_tables: int
    seed: int
    outside: int = 0
    unchecked: Mapping[str, str] = field(default_factory=dict)
    known_again: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)

    @property
    def added(self) -> int:
        """How many rows were added."""
        return sum(share.rows for share in self.shares)

    @property
    def failed(self) -> int:
        """How many rows could not be used since a value cannot become the base's type."""
        return sum(sum(columns.values()) for columns in self.failures.values())

    @property
    def as_planned(self) -> bool:
        """Whether the written file has exactly the counts that were planned."""
        return self.after == self.planned

    @property
    def gap(self) -> float:
        """By what share of the cost a cheaper choice is not excluded."""
        return max(self.cost - self.bound, 0.0) / self.cost if self.cost > 0 else 0.0

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, or 1 if the file is not as planned."""
        return 0 if self.as_planned else 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was done, in sentences."""
        return tuple(_said(self))

    def grid(self) -> Grid:
        """What came from which table."""
        rows = tuple(
            (
                share.name,
                f"{share.rows:,}",
                f"{share.cost:,.6g}",
                f"{share.confidence:.2f}",
                share.licence or "",
                share.why,
            )
            for share in self.shares
        )
        headers = ("table", "rows", "cost", "confidence", "licence", "columns and values")
        return Grid(headers, rows, frozenset({1, 2, 3}))

    def _table(self) -> FlatTable:
        names = ("table", "rows", "cost", "confidence", "licence", "columns", "lacking", "why")
        rows = [
            (s.name, s.rows, s.cost, s.confidence, s.licence, s.columns, s.lacking, s.why)
            for s in self.shares
        ]
        return names, rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        own = [
            "output",
            "ledger",
            "base",
            "added",
            "removed",
            "cost",
            "bound",
            "gap",
            "as_planned",
            "seed",
            "duplicates",
            "by_chance",
            "failed",
            "failures",
            "unmapped",
            "outside",
            "open_tables",
        ]
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in own},
            "sources": [
                {
                    "table": s.name,
                    "snapshot": s.snapshot,
                    "rows": s.rows,
                    "cost": s.cost,
                    "confidence": s.confidence,
                    "licence": s.licence,
                    "columns": dict(s.columns),
                    "lacking": list(s.lacking),
                    "why": s.why,
                    "other_columns": [vars(t) for t in s.treated],
                    "uncertain": dict(s.uncertain),
                }
                for s in self.shares
            ],
            "shortfall": [
                {"cell": c, "need": k.need, "found": k.found, "missing": k.missing}
                | {"reasons": k.reasons}
                for c, k in self.lacks
            ],
            "n_before": self.before.n,
            "n_after": self.after.n,
            "max_abs_ub_before": plain(self.max_abs_ub_before),
            "max_abs_ub_after": plain(self.max_abs_ub_after),
            "fingerprint_before": self.before.fingerprint,
            "fingerprint_after": self.after.fingerprint,
            "known_again": dict(self.known_again),
            "lost": dict(self.lost),
            "unchecked": dict(self.unchecked),
            "reading": self.before.reading.to_dict(),
            "shift": None if self.shift is None else self.shift.to_dict(),
            "sentences": list(self.sentences),
            "version": self.version,
            "time": self.time,
        }


def _said(result: Acquired) -> list[str]:
    done = f"Wrote {result.output}" if result.output else "Would write"
    tables = f"{len(result.shares):,} table{'' if len(result.shares) == 1 else 's'}"
    came = f" from {tables} at a cost of {result.cost:,.6g}" if result.added else ""
    gap = (
        f" (no choice costs less than {result.bound:,.6g}, a gap of {100 * result.gap:.2g} %)"
        if result.added
        else ""
    )
    said = [
        (
            f"{done}: {result.base} with {rows_text(result.added)} added{came}{gap} and "
            f"{rows_text(result.removed)} removed, {rows_text(result.after.n + result.after.dropped)} "
            "in all."
        ),
        (
            f"The largest |UB| was {ub_text(result.max_abs_ub_before)} in {result.base} and is "
            f"{ub_text(result.max_abs_ub_after)}"
            + (f" in {result.output}, as counted there." if result.output else " after it.")
        ),
    ]
    said += say_restricted(result.before.reading, result.base)
    said += [lack.sentence(name) for name, lack in result.lacks[:_SHOWN]]
    if not result.as_planned:
        said.append(f"This is not as planned: {difference(result.after, result.planned)}.")
    said += _left_out(result)
    said += _treated(result)
    said += _empty(result)
    if result.shift is not None:
        said += result.shift.sentences
    if result.ledger:
        said.append(f"Every row added or removed is listed in {result.ledger}.")
    return said


_SAID: dict[str, tuple[str, int]] = {
    "converted": ("Values of other columns were written as the base writes them", _SHOWN),
    "left missing": ("Other columns were left missing in added rows", _NAMED),
    "kept": ("Other columns were kept as their tables write them", _SHOWN),
}


def _treated(result: Acquired) -> list[str]:
    """Say what was done with columns that their tables write otherwise than the base."""
    said = []
    for action, (what, most) in _SAID.items():
        found = [
            f"{t.name} of {share.name} ({t.values:,} value{'' if t.values == 1 else 's'}: {t.how})"
            for share in result.shares
            for t in share.treated
            if t.action == action
        ]
        if found:
            more = [f"{len(found) - most:,} more"] if len(found) > most else []
            said.append(f"{what}: {in_words([*found[:most], *more])}.")
    if result.lost:
        names = in_words([f"{name} ({n:,})" for name, n in result.lost.items()])
        said.append(f"Values that are none of the base's type are missing in the file: {names}.")
    return said


def _empty(result: Acquired) -> list[str]:
    """Say which columns are empty in added rows since their tables lack them, or may have them."""
    said = []
    doubted = {t.name for share in result.shares for t in share.treated}
    lacking = {n for share in result.shares for n in share.lacking if n not in share.uncertain}
    if lacking - doubted:
        names = in_words([repr(n) for n in sorted(lacking - doubted)[:_SHOWN]])
        said.append(f"Some sources lack {names}, which stay empty in their rows.")
    found = [f"{n} of {share.name}" for share in result.shares for n in share.uncertain]
    if found:
        more = [f"{len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else []
        said.append(
            "It is not certain what these columns mean, so they stay empty in added rows: "
            f"{in_words([*found[:_SHOWN], *more])}. Confirm them in a mapping file (equipoise lake "
            "mapping)."
        )
    return said


def _with_values(rows: int) -> str:
    return f"{rows_text(rows)} {'has' if rows == 1 else 'have'} values"


def _say_failures(failures: Mapping[str, Mapping[str, int]]) -> str:
    most = sorted(
        ((n, column, table) for table, found in failures.items() for column, n in found.items()),
        key=lambda line: (-line[0], line[1:]),
    )
    shown = [f"{column} of {table} ({n:,})" for n, column, table in most[:_SHOWN]]
    if len(most) > _SHOWN:
        others = len(most) - _SHOWN
        shown.append(f"{others:,} more column{'' if others == 1 else 's'}")
    return f"that cannot become the base's types: {in_words(shown)}"


def _left_out(result: Acquired) -> list[str]:
    said = [
        f"{n:,} of the {rows_text(result.added)} added have a {name} that {result.base} has "
        f"already; if it identifies people, take each once with `dedupe='key'` and `key={name!r}`."
        for name, n in result.known_again.items()
    ]
    if result.duplicates:
        chance = (
            f"; about {result.by_chance:,.0f} new ones would be taken for such by chance"
            if result.by_chance >= 1
            else ""
        )
        were = "row was" if result.duplicates == 1 else "rows were"
        said.append(f"{result.duplicates:,} {were} left out as duplicates{chance}.")
    if result.failed:
        said.append(f"{_with_values(result.failed)} {_say_failures(result.failures)}.")
    if result.outside:
        said.append(f"{rows_text(result.outside)} of the lake do not satisfy the condition.")
    said += say_unchecked(result.unchecked)
    if result.unmapped:
        said.append(f"{_with_values(result.unmapped)} that mean nothing in the base.")
    if result.open_tables:
        tables = "table" if result.open_tables == 1 else "tables"
        said.append(
            f"{result.open_tables:,} more {tables} could be of use if you confirm what they mean: "
            "equipoise lake mapping."
        )
    return said
