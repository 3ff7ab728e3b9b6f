"""Whether a match of two columns is certain, and if not, why. A person decides what is not certain.

A match is certain by header and values together. The more a header leaves open, the more the values
have to say. Headers of the same words need values that do not contradict them, headers of mostly the
same meaning need values that agree, and a header that says nothing needs values that no other column
has. A header with an additional word needs many numbers with nearly the same distribution. If it
refers to someone else, another time or another quantity, the match is never certain, whatever the
values: `previous_income` has the numbers of `income` and is not the same.

A table with nearly the same headers as the base is another part of the same records, for example of
other days or another place. There, a column of the very same header is certain unless it holds
another kind of values, such as text where the base has numbers.
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
from equipoise.plain import in_words

# Distributions whose Kolmogorov-Smirnov distance is at most the first agree. Beyond the second they
# contradict each other; in between are columns of one meaning in different populations.
_SAME_NUMBERS, _OTHER_NUMBERS = 0.2, 0.5
_SAME_TEXTS, _OTHER_TEXTS = 0.8, 0.2  # the same for texts: shares of rows with common values

# Where one header says more than the other, numbers must be this close, and this many different
# values must be known: few numbers are close by chance.
_NEAR_NUMBERS, _MANY_NUMBERS = 0.1, 20

_ALIKE = 0.88  # minimum probability of a certain match if a header says nothing
_ROWS = 50  # with fewer rows, values cannot contradict a match: most have not been seen yet
_SAME_HEADERS, _MOST_HEADERS = 4, 2 / 3  # of the base, in a table of the same schema
_MOSTLY = 0.5
_FEW_CODES = 12  # columns of at most this many numbers may hold codes, whose values must agree
_MANY_VALUES = 5  # shared values that, even as unknown words, identify a column
_KEY = 0.9  # distinct values per row in a column of identifiers
_AHEAD = 2.0  # log-odds by which a match must beat every rival that its values allow
_DATED = 0.9
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ]\d|$)|\d{1,2}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}"
    r"|[A-Za-z]{3,9}[- ]\d{2,4}$|\d{1,2}:\d{2}"
)


class Agreement(IntEnum):
    """What the values of two columns say about a match that the headers suggest."""

    CONTRARY = 0
    POSSIBLE = 1
    STRONG = 2


@dataclass(frozen=True)
class Judge:
    """Judges whether columns of a table are certain to be the columns of the base they resemble."""

    columns: Sequence[ColumnProfile]
    table: Profile
    likeness: Likeness
    in_series: Collection[tuple[int, int]]
    shared: Collection[tuple[int, int]]  # pairs of the same header in tables of one schema

    @functools.cached_property
    def headers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The headers of the base and of the table, without a prefix that all of a table have."""
        written = [[c.name for c in columns] for columns in (self.columns, self.table.columns)]
        ours, theirs = map(without_prefix, written)
        if ours != tuple(written[0]) and theirs != tuple(written[1]):
            # Both prefixes may be names of what the tables are about, which differ.
            return tuple(written[0]), tuple(written[1])
        return ours, theirs

    def wording(self, i: int, j: int) -> Wording:
        """Compare the meanings of the headers of two columns."""
        return compare_headers(self.headers[0][i], self.headers[1][j])

    def is_generic(self, i: int) -> bool:
        """Whether the header of a column of the base does not say what it is about."""
        return is_generic(self.headers[0][i])

    def doubt(self, i: int, j: int, score: float) -> str | None:
        """Return why a match is not certain, or None if it is."""
        base, column = self.columns[i], self.table.columns[j]
        said = self.wording(i, j)
        if said.level == Level.OTHER:
            if self._is_borne_out(i, j, said, score):
                return None
            return say_other(base.name, column.name, said.words)
        if said.level == Level.SILENT:
            return self._doubt_of_silent(i, j, score)
        if (i, j) in self.shared:
            if _are_of_one_kind(base, column):
                return self.rival(i, j, said.level)
            return f"the headers agree, but {column.name} holds another kind of values"
        agreement = self.agreement(i, j)
        if agreement == Agreement.CONTRARY:
            return f"the headers agree, but the values of {column.name} do not"
        strong = agreement == Agreement.STRONG and not (said.words and _is_coded(base))
        if strong or (said.level < Level.LOOSE and not self.is_generic(i)):
            return self.rival(i, j, said.level)
        if self.is_generic(i):
            return f"{column.name} can mean anything, and its values do not decide it"
        return (
            f"{base.name} and {column.name} mostly mean the same, but the values do not confirm it"
        )

    def rival(self, i: int, j: int, level: Level) -> str | None:
        """Name another column, of either table, whose header means the same as well."""
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
        """Compare the values of two columns."""
        base, column = self.columns[i], self.table.columns[j]
        if not base.distinct or not column.distinct:
            return Agreement.POSSIBLE
        if names_key(base.name) and names_key(column.name):
            # Identifiers need not have values in common; that both are unique says much.
            unique = all(c.distinct >= _KEY * max(_known(c), 1) for c in (base, column))
            return Agreement.STRONG if unique else Agreement.POSSIBLE
        if all(c.numeric >= NUMERIC for c in (base, column)):
            found = self._agreement_of_numbers(i, j)
        elif (base.numeric >= _MOSTLY) != (column.numeric >= _MOSTLY):
            return Agreement.CONTRARY
        elif base.numeric >= _MOSTLY:  # numbers with some texts among them
            return Agreement.POSSIBLE
        elif _is_dated(base) != _is_dated(column):
            found = Agreement.CONTRARY
        else:
            found = self._agreement_of_texts(i, j)
        enough = min(_known(base), _known(column)) >= _ROWS
        return found if enough else max(found, Agreement.POSSIBLE)

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
        """If a header says nothing, the values decide, unless another column has similar ones."""
        if score < _ALIKE or self.agreement(i, j) != Agreement.STRONG:
            return say_silent(self.table.columns[j].name)
        if (doubt := self.doubt_of_values(i, j)) is not None:
            return doubt
        for likeness, name in self._others(i, j):
            if likeness > self.likeness.evidence[i, j] - _AHEAD:
                return f"{self.table.columns[j].name} says nothing, and {name} has similar values"
        return None

    def doubt_of_values(self, i: int, j: int) -> str | None:
        """Return why values alone do not identify a column, or None if they do.

        Known words, or many values, show what a column holds; but no values show whose they are.
        """
        base, column = self.columns[i], self.table.columns[j]
        if (word := says_whose(base.name)) is not None:
            return f"{column.name} says nothing, and its values cannot show {word!r}"
        few_numbers = base.numeric >= NUMERIC and base.distinct < _MANY_NUMBERS
        if names_key(base.name) or few_numbers:
            return say_silent(column.name)
        if base.numeric < NUMERIC and base.values and column.values:
            shared = base.values.keys() & column.values.keys()
            if len(shared) < _MANY_VALUES and not tells_kind(base.values):
                return say_silent(column.name)
        return None

    def _is_borne_out(self, i: int, j: int, said: Wording, score: float) -> bool:
        """Whether values and other columns confirm a match although the headers differ."""
        if (i, j) in self.in_series and self.agreement(i, j) == Agreement.STRONG:
            return True
        if said.further and self._are_near(i, j):
            return True
        silent = is_generic(self.headers[0][i]) != is_generic(self.headers[1][j])
        return silent and self._doubt_of_silent(i, j, score) is None

    def _are_near(self, i: int, j: int) -> bool:
        """Whether two columns hold many numbers, distributed as those of no other column."""
        pair = self.columns[i], self.table.columns[j]
        if any(names_key(c.name) or c.distinct < _MANY_NUMBERS or _known(c) < _ROWS for c in pair):
            return False
        if any(c.numeric < NUMERIC for c in pair) or not self.likeness.gaps[i, j] <= _NEAR_NUMBERS:
            return False
        known = self.likeness.evidence[i, j]
        return all(likeness <= known - _AHEAD for likeness, _ in self._others(i, j))

    def _others(self, i: int, j: int) -> Iterator[tuple[float, str]]:
        """The evidence for rivals of a match, among the columns of both tables."""
        logs = self.likeness.evidence
        yield from ((float(logs[i, k]), c.name) for k, c in enumerate(self.table.columns) if k != j)
        yield from ((float(logs[k, j]), c.name) for k, c in enumerate(self.columns) if k != i)


def say_silent(column: str) -> str:
    """Say that a header says nothing and the values are not enough."""
    return f"{column} says nothing, and its values are not enough to identify it"


def say_other(base: str, column: str, words: Sequence[str]) -> str:
    """Name the words in which two headers differ."""
    return f"{column} may not be {base}: they differ in {in_words([repr(w) for w in words])}"


def shared_headers(
    ours: Sequence[ColumnProfile], theirs: Sequence[ColumnProfile]
) -> list[tuple[int, int]]:
    """Return the columns of exactly the same header, if a table has most of the base's headers.

    Headers that say nothing, such as `v1` to `v30`, do not count: many tables have those.
    """
    places = {column.name.strip().casefold(): j for j, column in enumerate(theirs)}
    names = [(i, column.name.strip().casefold()) for i, column in enumerate(ours)]
    shared = [(i, places[name]) for i, name in names if name in places and not is_opaque(name)]
    return shared if len(shared) >= max(_SAME_HEADERS, _MOST_HEADERS * len(ours)) else []


def _are_of_one_kind(base: ColumnProfile, column: ColumnProfile) -> bool:
    """Whether both columns hold numbers, in whatever notation, or dates, or neither."""
    if not base.distinct or not column.distinct or names_key(base.name):
        return True  # identifiers may be numbers in one part and texts in another
    numbers = [_holds_numbers(c) for c in (base, column)]
    if any(numbers):  # tested before dates, since 3191.5 looks like a year and a month
        return all(numbers)
    return _is_dated(base) == _is_dated(column)


def _holds_numbers(column: ColumnProfile) -> bool:
    """Whether most values are numbers, with a decimal point or a comma."""
    return column.numeric >= _MOSTLY or _are_numbers(column.sample)


@functools.lru_cache(maxsize=1000)
def _are_numbers(sample: tuple[str | None, ...]) -> bool:
    told = Counter(value for value in sample if value)
    return read_numbers(tally_values(told, patterns_for(told))) is not None


def _share_of(some: Mapping[str, int], others: Mapping[str, int]) -> float:
    """The share of rows whose value is among some others."""
    return sum(n for v, n in some.items() if v in others) / max(sum(some.values()), 1)


def _known(column: ColumnProfile) -> int:
    """The number of rows with a known value, counted or sampled."""
    if column.values is not None:
        return sum(column.values.values())
    return sum(value is not None for value in column.sample)


def _is_coded(column: ColumnProfile) -> bool:
    """Whether a column holds a few values that fit anything, such as yes and no."""
    few = column.values is not None and len(column.values) <= _FEW_CODES
    return few and not tells_meaning(column.values or ())


def _is_dated(column: ColumnProfile) -> bool:
    """Whether nearly all values are dates or times."""
    return _are_dates(column.sample)


@functools.lru_cache(maxsize=1000)
def _are_dates(sample: tuple[str | None, ...]) -> bool:
    told = [value for value in sample if value]
    return bool(told) and sum(bool(_DATE.match(v.strip())) for v in told) >= _DATED * len(told)
