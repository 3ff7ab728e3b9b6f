"""Result of a plan that was carried out with rows of a lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.lake.matching.conversions import Treatment
from equipoise.lake.offers.prospect import say_unchecked
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.repair.base import CarriedOut, difference
from equipoise.lake.repair.shift.shift import Shift
from equipoise.lattice import Group
from equipoise.plain import Grid, counted, in_words, rows_text
from equipoise.results import FlatTable
from equipoise.values import plain

SCHEMA = "equipoise.acquire/1"
_SHOWN = 5
_NAMED = 20
"""Maximum number of named columns whose values were left missing."""


@dataclass(frozen=True)
class TreatedColumn(Treatment):
    """Treatment of a column of a source, and the number of values of added rows it affects."""

    values: int


@dataclass(frozen=True)
class Share:
    """Rows that came from one table."""

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
    """By column that stays empty, the unconfirmed candidate for it in the table."""
    cells: tuple[tuple[Group, int], ...] = ()
    """Number of rows taken of each needed cell."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By counted column, the value of the base for each value of the table."""
    consent: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data about the table."""
        own = ("snapshot", "rows", "cost", "confidence", "licence", "consent")
        return {
            "table": self.name,
            **{name: getattr(self, name) for name in own},
            "columns": dict(self.columns),
            "lacking": list(self.lacking),
            "why": self.why,
            "other_columns": [vars(t) for t in self.treated],
            "uncertain": dict(self.uncertain),
            "cells": [{"cell": _plain_cell(cell), "rows": n} for cell, n in self.cells],
            "values": {name: dict(values) for name, values in self.values.items()},
        }


def _plain_cell(cell: Group) -> dict[str, Any]:
    return {name: plain(value) for name, value in cell.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Acquired(CarriedOut):
    """Result of a plan: the files written, and the counts of the written table.

    Attributes
    ----------
    output, ledger
        Files or tables of the repaired table and of the list of changes; None after a dry run.
    base
        Name of the base.
    shares
        Rows taken from each table, the largest number first.
    removed
        Number of rows removed from the base.
    lacks
        Cells for which too few rows were found, and the reasons.
    cost, bound
        Cost of the rows, and a lower bound on the cost of any choice of as many rows.
    before, after, planned
        Counts of the base, of the file that was written, and those it should have.
    max_abs_ub_before, max_abs_ub_after
        Largest |UB| over the whole lattice.
    shift
        Difference between the added rows and the base's rows of the same cells.
    duplicates, by_chance
        Number of rows left out as duplicates, and how many of as many new rows would have been
        left out by chance.
    failures
        Number of rows, by table and column, with a value that cannot be converted to the type of
        the base.
    unmapped
        Number of rows with a value that has no counterpart in the base.
    outside
        Number of rows that do not satisfy the condition of the base.
    unchecked
        Tables not used because the condition cannot be checked in them, with the reason.
    open_tables
        Number of tables that could be used if someone confirmed their mapping.
    passed_over
        Number of tables of a large lake that were not compared closely, since they share no word
        with some column that the plan counts.
    seed
        Seed of the choice of rows.
    known_again
        Number of added rows, by column that identifies the rows of the base, with a value that
        the base has too.
    lost
        Number of values of added rows, by column, that are missing in the file because they do not
        have the type of the base.
    numbered
        Columns in which the database numbered the added rows, because it numbers those of the base.
    filled
        Columns in which the database filled in values of added rows by itself: numbers, computed
        values, and defaults for sources that do not have them.
    keyed
        Whether the hashes of the ledger were made with a key.
    """

    output: str | None
    ledger: str | None
    shares: tuple[Share, ...]
    lacks: tuple[tuple[str, Lack], ...]
    cost: float
    bound: float
    shift: Shift | None
    duplicates: int
    by_chance: float
    failures: Mapping[str, Mapping[str, int]]
    unmapped: int
    open_tables: int
    passed_over: int = 0
    outside: int = 0
    unchecked: Mapping[str, str] = field(default_factory=dict)
    known_again: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    numbered: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    keyed: bool = False

    @property
    def added(self) -> int:
        """Number of rows added."""
        return sum(share.rows for share in self.shares)

    @property
    def failed(self) -> int:
        """Number of rows with a value that cannot be converted to the type of the base."""
        return sum(sum(columns.values()) for columns in self.failures.values())

    @property
    def gap(self) -> float:
        """Largest share of the cost that a better choice could save."""
        return max(self.cost - self.bound, 0.0) / self.cost if self.cost > 0 else 0.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        done = f"Wrote {self.output}" if self.output else "Would write"
        came = ""
        if self.added:
            came = (
                f" from {counted(len(self.shares), 'table')} at a cost of {self.cost:,.6g} "
                f"(no choice costs less than {self.bound:,.6g}, a gap of {100 * self.gap:.2g} %)"
            )
        said = [
            (
                f"{done}: {self.base} with {rows_text(self.added)} added{came} and "
                f"{rows_text(self.removed)} removed, {rows_text(self.n_rows)} in all."
            ),
            *self._say_bias(self.output),
        ]
        said += [lack.sentence(name) for name, lack in self.lacks[:_SHOWN]]
        if not self.as_planned:
            said.append(f"This is not as planned: {difference(self.after, self.planned)}.")
        said += _left_out(self)
        said += _treated(self)
        said += _empty(self)
        if self.shift is not None:
            said += self.shift.sentences
        if self.ledger:
            said.append(f"Every row added or removed is listed in {self.ledger}.")
        return tuple(said)

    def grid(self) -> Grid:
        """Table of the sources for people."""
        rows = tuple(
            (s.name, f"{s.rows:,}", f"{s.cost:,.6g}", f"{s.confidence:.2f}", s.licence or "", s.why)
            for s in self.shares
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
        """Plain data, as ``--json`` prints it."""
        own = (
            *("output", "ledger", "base", "added", "removed", "cost", "bound", "gap"),
            *("as_planned", "seed", "duplicates", "by_chance", "failed", "failures"),
            *("unmapped", "outside", "open_tables", "passed_over"),
        )
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in own},
            "sources": [share.to_dict() for share in self.shares],
            "shortfall": [lack.to_dict(name) for name, lack in self.lacks],
            "cells": self._changed_cells(),
            **self._measured(),
            "known_again": dict(self.known_again),
            "lost": dict(self.lost),
            "numbered": list(self.numbered),
            "filled": list(self.filled),
            "unchecked": dict(self.unchecked),
            "reading": self.before.reading.to_dict(),
            "shift": None if self.shift is None else self.shift.to_dict(),
            **self._made(),
        }

    def _changed_cells(self) -> list[dict[str, Any]]:
        """Rows before, planned and after of the cells that change."""
        before, planned, after = (c.cells() for c in (self.before, self.planned, self.after))
        return [
            {
                "cell": _plain_cell(self.planned.pattern(cell)),
                "before": before.get(cell, 0),
                "planned": n,
                "after": after.get(cell, 0),
            }
            for cell, n in {**dict.fromkeys((*before, *after), 0), **planned}.items()
            if before.get(cell, 0) != n or after.get(cell, 0) != n
        ]


_SAID: dict[str, tuple[str, int]] = {
    "converted": ("Values of other columns were converted to the notation of the base", _SHOWN),
    "left missing": ("Other columns were left missing in added rows", _NAMED),
    "kept": ("Other columns were kept in the notation of their tables", _SHOWN),
}


def _treated(result: Acquired) -> list[str]:
    """Describe the treatment of columns that tables write in another notation than the base."""
    said = []
    for action, (what, most) in _SAID.items():
        found = [
            f"{t.name} of {share.name} ({counted(t.values, 'value')}: {t.how})"
            for share in result.shares
            for t in share.treated
            if t.action == action and not (action == "left missing" and t.name in result.filled)
        ]
        if found:
            said.append(f"{what}: {_listed(found, most)}.")
    if result.lost:
        names = in_words([f"{name} ({n:,})" for name, n in result.lost.items()])
        said.append(f"Values without the type of the base are missing in the result: {names}.")
    if result.numbered and result.added:
        names = in_words([repr(name) for name in result.numbered])
        said.append(f"The database numbered the added rows itself, in {names}.")
    others = [repr(name) for name in result.filled if name not in result.numbered]
    if others and result.added:
        said.append(f"The database filled in {in_words(others)} of added rows itself.")
    return said


def _empty(result: Acquired) -> list[str]:
    """Describe the columns that are empty in added rows."""
    said = []
    doubted = {t.name for share in result.shares for t in share.treated} | set(result.filled)
    lacking = {n for share in result.shares for n in share.lacking if n not in share.uncertain}
    if lacking - doubted:
        names = in_words([repr(n) for n in sorted(lacking - doubted)[:_SHOWN]])
        said.append(f"Some sources do not have {names}, which stay empty in their rows.")
    own = result.numbered
    uncertain = [(n, s.name) for s in result.shares for n in s.uncertain if n not in own]
    for is_filled, follows in (
        (False, "they stay empty in"),
        (True, "the database fills them in, in"),
    ):
        found = [f"{n} of {table}" for n, table in uncertain if (n in result.filled) is is_filled]
        if found:
            said.append(
                f"It is not certain what these columns mean, so {follows} added rows: {_listed(found)}. "
                "Confirm them in a mapping file (equipoise lake mapping)."
            )
    return said


def _listed(found: Sequence[str], most: int = _SHOWN, noun: str = "") -> str:
    others = len(found) - most
    plural = "s" if noun and others > 1 else ""
    more = [f"{others:,} more{noun}{plural}"] if others > 0 else []
    return in_words([*found[:most], *more])


def _with_values(rows: int) -> str:
    return f"{rows_text(rows)} {'has' if rows == 1 else 'have'} values"


def _say_failures(failures: Mapping[str, Mapping[str, int]]) -> str:
    most = sorted(
        ((n, column, table) for table, found in failures.items() for column, n in found.items()),
        key=lambda line: (-line[0], line[1:]),
    )
    shown = _listed([f"{column} of {table} ({n:,})" for n, column, table in most], noun=" column")
    return f"that cannot be converted to the types of the base: {shown}"


def _left_out(result: Acquired) -> list[str]:
    said = [
        f"{n:,} of the {rows_text(result.added)} added have a value of {name!r} that {result.base} has "
        f"already; if it identifies people, take each once with `dedupe='key'` and `key={name!r}`."
        for name, n in result.known_again.items()
    ]
    if result.duplicates:
        chance = f"; about {result.by_chance:,.0f} of as many new rows would be left out by chance"
        chance = chance if result.by_chance >= 1 else ""
        were = "was" if result.duplicates == 1 else "were"
        said.append(f"{rows_text(result.duplicates)} {were} left out as duplicates{chance}.")
    if result.failed:
        said.append(f"{_with_values(result.failed)} {_say_failures(result.failures)}.")
    if result.outside:
        said.append(f"{rows_text(result.outside)} of the lake do not satisfy the condition.")
    said += say_unchecked(result.unchecked)
    if result.unmapped:
        said.append(f"{_with_values(result.unmapped)} without a counterpart in the base.")
    if result.open_tables:
        said.append(
            f"{counted(result.open_tables, 'more table')} could be used if you confirm what they "
            "mean: equipoise lake mapping."
        )
    if result.passed_over:
        said.append(
            f"{counted(result.passed_over, 'table')} of the lake were not compared closely: they share "
            "no word with some column that the plan counts."
        )
    return said
