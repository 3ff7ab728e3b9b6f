"""When a match of two columns is certain, and if it is not, why: what is not certain is asked.

A column is certain by its header and its values together. The more a header leaves open, the more
the values have to say: headers of the same words need values that do not contradict them, headers
of mostly the same meaning need values that agree, and a header that says nothing needs values that
no other column has. A header with a further word needs many numbers that are spread nearly as the
other's; if it speaks of someone else, another time or another figure it is never certain, whatever
the values: `income` has the numbers of `previous_income`, and is not the same.

A table with nearly the base's own headers is another part of the same records: of other days, of
another place. There a column of the very same header is certain unless it holds another kind of
values, such as texts where the base has numbers.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.lake.matching.columns.likeness import FEW, NUMERIC, Likeness
from equipoise.lake.matching.columns.wording import (
    Level,
    Wording,
    compare_headers,
    is_generic,
    names_key,
    says_whose,
    without_prefix,
)
from equipoise.lake.matching.notations import patterns_for, read_numbers, tally_values
from equipoise.lake.matching.values.concepts import tells_kind, tells_meaning
from equipoise.lake.matching.values.vocabulary import match_values
from equipoise.lake.tables.headers import is_opaque

ALIKE = 0.88
"""Columns without a header are certain only if at least so likely."""

_SAME_NUMBERS, _OTHER_NUMBERS = 0.2, 0.5
"""Distributions that differ by at most the first agree; by more than the second they contradict."""

_NEAR_NUMBERS, _MANY_NUMBERS = 0.1, 20
"""So near numbers have to be where one header says more; so many, also where one says nothing."""

_SAME_TEXTS, _OTHER_TEXTS = 0.8, 0.2
"""The same for the share of rows whose value the other column has."""

_ROWS = 50
"""In fewer rows values do not contradict: others may come."""

_SAME_HEADERS, _MOST_HEADERS = 4, 2 / 3
"""So many columns of the base, and so large a share of them, stand in a table of one schema."""

_MOSTLY = 0.5
_FEW_CODES = 12
_MANY_VALUES = 5
_KEY = 0.9
_AHEAD = 2.0
_DATED = 0.9
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ]\d|$)|\d{1,2}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}"
    r"|[A-Za-z]{3,9}[- ]\d{2,4}$|\d{1,2}:\d{2}"
)


class Agreement(IntEnum):
    """What the values of two columns say of a match that the headers suggest."""

    CONTRARY = 0
    POSSIBLE = 1
    STRONG = 2


@dataclass(frozen=True)
class Judge:
    """Tells of the columns of a table why they may not be those of the base they look like."""

    columns: Sequence[ColumnProfile]
    table: Profile
    likeness: Likeness
    in_series: Collection[tuple[int, int]] = ()

    @functools.cached_property
    def headers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The headers of the base and of the table, without what all of one table begin with."""
        written = [[c.name for c in columns] for columns in (self.columns, self.table.columns)]
        ours, theirs = map(without_prefix, written)
        if ours != tuple(written[0]) and theirs != tuple(written[1]):
            return tuple(written[0]), tuple(written[1])  # these may be two tables' names
        return ours, theirs

    @functools.cached_property
    def _shared(self) -> frozenset[tuple[int, int]]:
        return frozenset(shared_headers(self.columns, self.table.columns))

    def wording(self, i: int, j: int) -> Wording:
        """Tell how far the headers of two columns say the same."""
        return compare_headers(self.headers[0][i], self.headers[1][j])

    def is_generic(self, i: int) -> bool:
        """Tell whether the header of a base's column says nothing of what it is about."""
        return is_generic(self.headers[0][i])

    def doubt(self, i: int, j: int, score: float) -> str | None:
        """Say why a column of the table may not be the base's column, or none if it surely is."""
        base, column = self.columns[i], self.table.columns[j]
        said = self.wording(i, j)
        if said.level == Level.OTHER:
            if self._is_borne_out(i, j, said, score):
                return None
            return say_other(base.name, column.name, said.words)
        if said.level == Level.SILENT:
            return self._doubt_of_silent(i, j, score)
        if (i, j) in self._shared:
            if _are_of_one_kind(base, column):
                return self.rival(i, j, said.level)
            return f"the headers agree, and {column.name} holds another kind of values"
        agreement = self.agreement(i, j)
        if agreement == Agreement.CONTRARY:
            return f"the headers agree, and the values of {column.name} do not"
        strong = agreement == Agreement.STRONG and not (said.words and _is_coded(base))
        if strong or (said.level < Level.LOOSE and not self.is_generic(i)):
            return self.rival(i, j, said.level)
        if self.is_generic(i):
            return f"{column.name} may be said of anything, and its values do not tell"
        return f"{base.name} and {column.name} mostly mean the same, and the values do not tell"

    def rival(self, i: int, j: int, level: Level) -> str | None:
        """Name another column, of either table, whose header says the same as well."""
        base, column = self.columns[i], self.table.columns[j]
        for k, other in enumerate(self.table.columns):
            same = k != j and self.wording(i, k).level <= level
            if same and self.agreement(i, k) != Agreement.CONTRARY:
                return f"{column.name} and {other.name} may both be {base.name}"
        for k, other in enumerate(self.columns):
            same = k != i and self.wording(k, j).level <= level
            if same and self.agreement(k, j) != Agreement.CONTRARY:
                return f"{column.name} may be {base.name} or {other.name}"
        return None

    def agreement(self, i: int, j: int) -> Agreement:
        """Tell how far the values of two columns agree."""
        base, column = self.columns[i], self.table.columns[j]
        if not base.distinct or not column.distinct:
            return Agreement.POSSIBLE
        if names_key(base.name) and names_key(column.name):
            return self._agreement_of_keys(base, column)
        if all(c.numeric >= NUMERIC for c in (base, column)):
            found = self._agreement_of_numbers(i, j)
        elif (base.numeric >= _MOSTLY) != (column.numeric >= _MOSTLY):
            return Agreement.CONTRARY
        elif base.numeric >= _MOSTLY:  # with some texts among them
            return Agreement.POSSIBLE
        elif _is_dated(base) != _is_dated(column):
            found = Agreement.CONTRARY
        else:
            found = self._agreement_of_texts(i, j)
        enough = min(_known(base), _known(column)) >= _ROWS
        return found if enough else max(found, Agreement.POSSIBLE)

    def _agreement_of_keys(self, base: ColumnProfile, column: ColumnProfile) -> Agreement:
        """Names given to rows need not meet; that both are given once only says much."""
        single = [c.distinct >= _KEY * max(_known(c), 1) for c in (base, column)]
        return Agreement.STRONG if all(single) else Agreement.POSSIBLE

    def _agreement_of_numbers(self, i: int, j: int) -> Agreement:
        gap = self.likeness.gaps[i, j]
        base, column = self.columns[i].values, self.table.columns[j].values
        if base and column and max(len(base), len(column)) <= _FEW_CODES:
            same = min(_share_of(base, column), _share_of(column, base))
            if same < _SAME_TEXTS:
                return Agreement.POSSIBLE if same > _OTHER_TEXTS else Agreement.CONTRARY
        if not gap <= _OTHER_NUMBERS:
            return Agreement.CONTRARY
        return Agreement.STRONG if gap <= _SAME_NUMBERS else Agreement.POSSIBLE

    def _agreement_of_texts(self, i: int, j: int) -> Agreement:
        base, column = self.columns[i], self.table.columns[j]
        overlap = float(self.likeness.overlaps[i, j])
        if overlap >= _SAME_TEXTS:
            return Agreement.STRONG
        few = [c.values for c in (base, column) if c.values and len(c.values) <= FEW]
        if len(few) == 2:
            if match_values(few[0], few[1], propose=False).certain:
                return Agreement.STRONG
            return Agreement.POSSIBLE if overlap >= _OTHER_TEXTS else Agreement.CONTRARY
        return Agreement.POSSIBLE if not few else Agreement.CONTRARY

    def _doubt_of_silent(self, i: int, j: int, score: float) -> str | None:
        """A header that says nothing leaves it to the values, and to no other column's."""
        if score < ALIKE or self.agreement(i, j) != Agreement.STRONG:
            return say_silent(self.table.columns[j].name)
        if (doubt := self.doubt_of_values(i, j)) is not None:
            return doubt
        for likeness, name in self._others(i, j):
            if likeness > self.likeness.evidence[i, j] - _AHEAD:
                return f"{self.table.columns[j].name} says nothing, and {name} has such values, too"
        return None

    def doubt_of_values(self, i: int, j: int) -> str | None:
        """Say why values alone do not tell that two columns are one.

        They tell of what kind they are, if they are known words or many; never whose they are.
        """
        base, column = self.columns[i], self.table.columns[j]
        if (word := says_whose(base.name)) is not None:
            return f"{column.name} says nothing, and its values do not tell {word!r}"
        few_numbers = base.numeric >= NUMERIC and base.distinct < _MANY_NUMBERS
        if names_key(base.name) or few_numbers:
            return say_silent(column.name)
        if base.numeric < NUMERIC and base.values and column.values:
            shared = base.values.keys() & column.values.keys()
            if len(shared) < _MANY_VALUES and not tells_kind(base.values):
                return say_silent(column.name)
        return None

    def _is_borne_out(self, i: int, j: int, said: Wording, score: float) -> bool:
        """Whether headers that differ are those of one column, by the values and other columns."""
        if (i, j) in self.in_series and self.agreement(i, j) == Agreement.STRONG:
            return True
        if said.further and self._are_near(i, j):
            return True
        silent = is_generic(self.headers[0][i]) != is_generic(self.headers[1][j])
        return silent and self._doubt_of_silent(i, j, score) is None

    def _are_near(self, i: int, j: int) -> bool:
        """Whether two columns hold many numbers that are spread as no other column's are."""
        pair = self.columns[i], self.table.columns[j]
        if any(names_key(c.name) or c.distinct < _MANY_NUMBERS or _known(c) < _ROWS for c in pair):
            return False
        if any(c.numeric < NUMERIC for c in pair) or not self.likeness.gaps[i, j] <= _NEAR_NUMBERS:
            return False
        known = self.likeness.evidence[i, j]
        return all(likeness <= known - _AHEAD for likeness, _ in self._others(i, j))

    def _others(self, i: int, j: int) -> Iterator[tuple[float, str]]:
        """How alike the values of other columns are, of both tables."""
        logs = self.likeness.evidence
        yield from ((float(logs[i, k]), c.name) for k, c in enumerate(self.table.columns) if k != j)
        yield from ((float(logs[k, j]), c.name) for k, c in enumerate(self.columns) if k != i)


def say_silent(column: str) -> str:
    """Say that a header leaves it to the values, which are not enough."""
    return f"{column} says nothing, and the values are not enough to tell"


def say_other(base: str, column: str, words: Sequence[str]) -> str:
    """Say by which words two headers differ."""
    told = " and ".join([", ".join(map(repr, words[:-1])), repr(words[-1])][len(words) < 2 :])
    return f"{column} may not be {base}: they differ in {told}"


def shared_headers(
    ours: Sequence[ColumnProfile], theirs: Sequence[ColumnProfile]
) -> list[tuple[int, int]]:
    """Give the columns of the very same header, if most columns of a base stand so in a table.

    Headers that say nothing, such as `v1` to `v30`, do not count: many tables have those.
    """
    places = {column.name.strip().casefold(): j for j, column in enumerate(theirs)}
    names = [(i, column.name.strip().casefold()) for i, column in enumerate(ours)]
    shared = [(i, places[name]) for i, name in names if name in places and not is_opaque(name)]
    return shared if len(shared) >= max(_SAME_HEADERS, _MOST_HEADERS * len(ours)) else []


def _are_of_one_kind(base: ColumnProfile, column: ColumnProfile) -> bool:
    """Whether both columns hold numbers, in whatever notation, or dates, or neither."""
    if not base.distinct or not column.distinct or names_key(base.name):
        return True  # names of rows may be numbers in one part and texts in another
    numbers = [_holds_numbers(c) for c in (base, column)]
    if any(numbers):  # of which some, such as 3191.5, look like a year and a month
        return all(numbers)
    return _is_dated(base) == _is_dated(column)


def _holds_numbers(column: ColumnProfile) -> bool:
    """Whether most values are numbers, with a decimal point or a decimal comma."""
    if column.numeric >= _MOSTLY:
        return True
    told = Counter(value for value in column.sample if value)
    return read_numbers(tally_values(told, patterns_for(told))) is not None


def _share_of(some: Mapping[str, int], others: Mapping[str, int]) -> float:
    """The share of rows whose value is one of others."""
    return sum(n for v, n in some.items() if v in others) / max(sum(some.values()), 1)


def _known(column: ColumnProfile) -> int:
    """In how many rows a value is known, of those that were counted or kept."""
    if column.values is not None:
        return sum(column.values.values())
    return sum(value is not None for value in column.sample)


def _is_coded(column: ColumnProfile) -> bool:
    """Whether a column holds few values that may be said of anything, as yes and no."""
    few = column.values is not None and len(column.values) <= _FEW_CODES
    return few and not tells_meaning(column.values or ())


def _is_dated(column: ColumnProfile) -> bool:
    """Whether nearly all values are dates or times."""
    told = [value for value in column.sample if value]
    return bool(told) and sum(bool(_DATE.match(v.strip())) for v in told) >= _DATED * len(told)
