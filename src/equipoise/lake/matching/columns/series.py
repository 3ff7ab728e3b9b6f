"""Columns that are counted in one table and dated in another: `bill_3` and `Bill July`.

One such pair tells nothing: the third bill may be of any month. Several do, if they all begin at
the same month and go the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise.engines.profiling import ColumnProfile
from equipoise.lake.matching.columns.headers import ordinal
from equipoise.lake.matching.columns.wording import is_said_by
from equipoise.lake.tables.headers import words

_LEAST, _MOSTLY = 4, 2 / 3
"""So many pairs, and so large a share of all, have to begin at one month."""


@dataclass(frozen=True)
class _Step:
    """A column that one table counts and the other dates."""

    number: int
    month: int
    alike: bool  # whether the headers say the same otherwise

    def starts(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """From which month the series goes on, and from which it goes back."""
        return ("on", (self.month - self.number) % 12), ("back", (self.month + self.number) % 12)


def find_series(
    pairs: Iterable[tuple[int, int]],
    columns: Sequence[ColumnProfile],
    others: Sequence[ColumnProfile],
) -> frozenset[tuple[int, int]]:
    """Find the pairs of columns that are the same step of a series in both tables.

    Most of the pairs that one table counts and the other dates have to begin at one month and to go
    one way. Pairs that do not fit stay out, and so do those whose headers differ otherwise.
    """
    steps = {(i, j): _step(columns[i].name, others[j].name) for i, j in pairs}
    known = {pair: step for pair, step in steps.items() if step is not None}
    counted = Counter(start for step in known.values() for start in step.starts())
    found = counted.most_common(1)
    if not found or found[0][1] < max(_LEAST, _MOSTLY * len(known)):
        return frozenset()
    start = found[0][0]
    return frozenset(p for p, step in known.items() if start in step.starts() and step.alike)


def _step(a: str, b: str) -> _Step | None:
    """The number and the month, if one of two headers has the first and the other the second."""
    ours, theirs = ordinal(a), ordinal(b)
    counted = [any(token.isdigit() for token in words(header)) for header in (a, b)]
    if ours is None or theirs is None or counted[0] == counted[1]:
        return None
    alike = is_said_by(ours[0], theirs[0])
    numbers = (ours[1], theirs[1]) if counted[0] else (theirs[1], ours[1])
    return _Step(*numbers, alike)
