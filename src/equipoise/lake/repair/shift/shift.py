"""Shift of the added rows from the base rows of their cells, in columns that are not planned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from equipoise.plain import Grid, counted, in_words
from equipoise.results import FlatTable, Result
from equipoise.values import plain

Kind: TypeAlias = Literal["number", "category", "missing", "skipped"]
"""Comparison of a column: as numbers, as categories, or none because it is missing or skipped."""

_MOST_SENTENCES = 5

UNSEEN = 0.05
"""Minimum share of added rows with values unknown to the base that is reported."""


@dataclass(frozen=True, kw_only=True)
class ColumnShift:
    """Difference between added rows and base rows of the same cells in one column.

    Attributes
    ----------
    column, kind
        Name of the column, and the kind of comparison.
    distance
        Kolmogorov–Smirnov distance of numbers, or total variation distance of categories, from 0
        (equal) to 1; None if nothing could be compared.
    by_chance
        99 % quantile of the distance between samples of the same distribution.
    notable
        Whether the distance, or the difference in missing values, exceeds chance.
    base_text, added_text
        Means, or shares of the value that differs most.
    base_missing, added_missing
        Shares of missing values.
    mean_difference
        Difference of the means of numbers in standard deviations.
    value
        Category whose share differs most.
    unseen
        Share of added rows with a category that no base row has.
    worst_cell, worst_distance
        Cell that exceeds chance most, if any has enough added rows.
    reason
        Reason why the column was skipped.
    """

    column: str
    kind: Kind
    distance: float | None = None
    by_chance: float | None = None
    notable: bool = False
    base_text: str = ""
    added_text: str = ""
    base_missing: float = 0.0
    added_missing: float = 0.0
    mean_difference: float | None = None
    value: str | None = None
    unseen: float = 0.0
    worst_cell: int | None = None
    worst_distance: float | None = None
    reason: str = ""

    @property
    def sentence(self) -> str:
        """Difference in a sentence.

        >>> ColumnShift(column="age", kind="missing").sentence
        'age is missing in all added rows.'
        """
        if self.kind == "skipped":
            return f"{self.column} was not compared: {self.reason}."
        if self.kind == "missing":
            return f"{self.column} is missing in all added rows."
        if self.kind == "number":
            what = f"added rows have {self.column} of {self.added_text} on average against"
            measure = "KS distance"
        else:
            what = f"{self.added_text} of the added rows have {self.column}={self.value} against"
            measure = "total variation distance"
        said = f"Of the same cells, {what} {self.base_text} ({measure} {self.distance:.2f})"
        if self.unseen >= UNSEEN:
            said += f"; {self.unseen:.0%} of them have values that no row of the base has"
        if abs(self.base_missing - self.added_missing) >= 0.005:
            said += (
                f"; it is missing in {self.added_missing:.0%} of them against "
                f"{self.base_missing:.0%}"
            )
        return f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        own = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}
        return {**own, "sentence": self.sentence}


@dataclass(frozen=True, kw_only=True)
class Shift(Result):
    """Difference between added rows and base rows of the same cells, by column.

    Attributes
    ----------
    columns
        The largest distance first, then columns that are missing, then those not compared.
    limit
        Largest distance that is allowed, if there is a limit.
    rows_compared, rows_left_out
        Numbers of added rows in cells with enough base rows to compare with, and in others.
    cells_compared, cells_left_out, cells_without_added
        Numbers of these cells, and of cells of the base without added rows.
    sampled, sampled_of
        Number of base rows that were compared, and of how many they are a sample; None if all
        base rows of these cells were.
    """

    columns: tuple[ColumnShift, ...]
    limit: float | None = None
    rows_compared: int = 0
    rows_left_out: int = 0
    cells_compared: int = 0
    cells_left_out: int = 0
    cells_without_added: int = 0
    min_rows: int = 10
    sampled: int | None = None
    sampled_of: int | None = None

    def without(self, names: Collection[str], reason: str) -> Shift:
        """Return the same shift with some columns as not compared, and the reason."""
        others = [c for c in self.columns if c.column not in names]
        skipped = [
            ColumnShift(column=c.column, kind="skipped", reason=reason)
            for c in self.columns
            if c.column in names
        ]
        return replace(self, columns=(*others, *skipped))

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Columns whose distance exceeds the limit and chance."""
        if self.limit is None:
            return ()
        return tuple(
            c.column
            for c in self.columns
            if c.distance is not None
            and c.by_chance is not None
            and c.distance > max(self.limit, c.by_chance)
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """At most five sentences, the largest differences first."""
        told = (self._missing(), self._limit(), self._left_out(), self._sample())
        ends = [s for s in told if s]
        notable = [c for c in self.columns if c.notable and c.kind in ("number", "category")]
        said = [c.sentence for c in notable[: _MOST_SENTENCES - len(ends)]]
        compared = sum(c.distance is not None for c in self.columns)
        if compared and not notable:
            what = f"On {counted(compared, 'other column')} added rows differ from base rows of"
            said = [f"{what} the same cells no more than expected by chance."]
        return (*said, *ends)

    def _missing(self) -> str:
        names = [c.column for c in self.columns if c.kind == "missing"]
        if not names:
            return ""
        more = len(names) - 10
        shown = [*names[:10], *([f"{more:,} more columns"] if more > 0 else [])]
        return f"{in_words(shown)} {'is' if len(names) == 1 else 'are'} missing in all added rows."

    def _limit(self) -> str:
        if self.limit is None or not self.exceeded:
            return ""
        verb = "is" if len(self.exceeded) == 1 else "are"
        return f"{in_words(self.exceeded)} {verb} beyond the limit of {self.limit:g}."

    def _left_out(self) -> str:
        if not self.rows_left_out:
            return ""
        rows = counted(self.rows_left_out, "added row")
        return (
            f"{rows} of {counted(self.cells_left_out, 'cell')} with fewer than {self.min_rows:,} "
            f"base rows {'was' if self.rows_left_out == 1 else 'were'} not compared."
        )

    def _sample(self) -> str:
        if self.sampled is None or self.sampled_of is None:
            return ""
        return (
            f"Added rows were compared with a sample of {self.sampled:,} of the {self.sampled_of:,} "
            "base rows of their cells."
        )

    def grid(self) -> Grid:
        """Table for people with a line for each column."""
        headers = ("column", "base", "added", "distance", "by chance", "")
        rows = tuple(
            (
                c.column,
                c.base_text,
                c.added_text,
                "" if c.distance is None else f"{c.distance:.3f}",
                "" if c.by_chance is None else f"{c.by_chance:.3f}",
                self._word(c),
            )
            for c in self.columns
        )
        return Grid(headers, rows, frozenset({1, 2, 3, 4}))

    def _table(self) -> FlatTable:
        names = ("column", "kind", "base", "added", "distance", "by_chance", "notable")
        rows = [
            (c.column, c.kind, c.base_text, c.added_text, c.distance, c.by_chance, c.notable)
            for c in self.columns
        ]
        return names, rows

    def _word(self, column: ColumnShift) -> str:
        if column.kind == "missing":
            return "missing in all added rows"
        if column.kind == "skipped":
            return column.reason
        beyond = "beyond the limit" if column.column in self.exceeded else "beyond chance"
        return beyond if column.notable else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        left = ["columns", "time", "version"]  # the acquisition has its own time and version
        left += ["sampled", "sampled_of"] if self.sampled is None else []
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left}
        return {
            "schema": "equipoise.shift/1",
            **own,
            "exceeded": list(self.exceeded),
            "columns": [c.to_dict() for c in self.columns],
            "sentences": list(self.sentences),
        }
