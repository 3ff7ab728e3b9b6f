"""Series of columns that one table numbers and another dates: `bill_3` and `Bill July`.

One such pair says nothing: the third bill may be of any month. Several do, if all begin in the same
month and run in the same direction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise.engines.profiling import ColumnProfile
from equipoise.lake.matching.columns.headers import ordinal
from equipoise.lake.matching.columns.wording import is_said_by
from equipoise.lake.tables.headers import words

_LEAST, _MOSTLY = 4, 2 / 3  # number and share of pairs that must begin in the same month


@dataclass(frozen=True)
class _Step:
    """A column that one table numbers and the other dates."""

    number: int
    month: int
    alike: bool  # whether the other words of the headers agree

    def starts(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The month before the first step, if the series runs forwards and if it runs backwards."""
        return ("on", (self.month - self.number) % 12), ("back", (self.month + self.number) % 12)


def find_series(
    pairs: Iterable[tuple[int, int]],
    columns: Sequence[ColumnProfile],
    others: Sequence[ColumnProfile],
) -> frozenset[tuple[int, int]]:
    """Find the pairs of columns that are the same step of a series in both tables.

    Most of the pairs that one table numbers and the other dates must begin in one month and run in
    one direction. Pairs that do not fit are left out, as are those whose other words differ.
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
    """The number and the month, if one header has a number and the other a month."""
    ours, theirs = ordinal(a), ordinal(b)
    counted = [any(token.isdigit() for token in words(header)) for header in (a, b)]
    if ours is None or theirs is None or counted[0] == counted[1]:
        return None
    alike = is_said_by(ours[0], theirs[0])
    numbers = (ours[1], theirs[1]) if counted[0] else (theirs[1], ours[1])
    return _Step(*numbers, alike)
