"""Which column of a table is which of the base's, with the evidence; or none, if unsure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.counts import Counts
from equipoise.engines.profiling import FEW_VALUES, ColumnProfile, Profile
from equipoise.lake.matching.columns.assignment import PLAUSIBLE, assigned, improved, one_to_one
from equipoise.lake.matching.columns.certainty import (
    Agreement,
    Judge,
    say_other,
    say_silent,
    shared_headers,
)
from equipoise.lake.matching.columns.headers import header_similarity
from equipoise.lake.matching.columns.likeness import NUMERIC, Contents, Likeness, content_similarity
from equipoise.lake.matching.columns.relations import Comparison, Relations, relations
from equipoise.lake.matching.columns.series import find_series
from equipoise.lake.matching.columns.wording import Level, compare_headers
from equipoise.lake.matching.conversions import Conversion, Decision, Treatment
from equipoise.lake.matching.values.concepts import tells_kind, tells_meaning
from equipoise.lake.matching.values.vocabulary import ValueMap, match_values
from equipoise.lake.tables.headers import is_opaque
from equipoise.values import MISSING

__all__ = [
    "LEAST",
    "Alignment",
    "ColumnMatch",
    "Wanted",
    "align",
    "content_similarity",
    "nearest_columns",
    "wanted",
]

LEAST = 0.3
"""Columns less alike than this are not matched."""

_ONE_NAME, _ONE_MEANING = 0.97, 0.93
_MISSING_TEXTS = 3


@dataclass(frozen=True)
class Wanted:
    """What a plan wants of a table.

    Attributes
    ----------
    columns
        The base's columns, or, if the base is not at hand, those the plan counts.
    vocabularies
        The rows of every value of the sensitive attributes and the label.
    bins
        The edges of those that are numbers in bins.
    """

    columns: tuple[ColumnProfile, ...]
    vocabularies: Mapping[str, Mapping[str, int]]
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def required(self) -> tuple[str, ...]:
        """The columns without which no row can be used."""
        return (*self.vocabularies, *self.bins)

    @functools.cached_property
    def contents(self) -> Contents:
        """The values of the columns, made ready to be compared."""
        return Contents.of(self.columns, recoded=self.vocabularies)

    @functools.cached_property
    def relations(self) -> Relations:
        """How the columns relate to each other."""
        return relations(self.contents, alike=True)


@dataclass(frozen=True)
class ColumnMatch:
    """A column of the base, the column of a table it is matched with, and why.

    Attributes
    ----------
    score
        How alike they are, from 0 to 1.
    header, content
        The parts of the evidence: how alike the headers and the values are.
    why
        The evidence in words.
    doubt
        Why it is not certain, if it is not.
    """

    base: str
    source: str
    score: float
    header: float = 0.0
    content: float = 0.0
    why: str = ""
    doubt: str | None = None


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How a table's columns and values become the base's.

    Attributes
    ----------
    columns
        By the base's column: the required ones, and others that are certain.
    values
        For sensitive attributes and the label that are not binned.
    doubts
        Why a required column is not certain, by its name; empty if rows can be taken.
    confirmed
        Whether a user has confirmed it, in a mapping file.
    spellings
        For other columns: the values that the base spells otherwise.
    proposed
        Other columns that are matched but not certain: not used unless a user confirms them.
    conversions, absent
        Other columns whose numbers or dates are written otherwise, and those in which texts such
        as ``NA`` stand for no value.
    kept
        Other columns that stay as they are though the base writes them otherwise, with how they
        are compared.
    unseen
        Other columns that are left missing, with the table's column and how they are compared.
    treated
        What is done with columns that are not written as in the base.
    """

    columns: Mapping[str, ColumnMatch]
    values: Mapping[str, ValueMap]
    doubts: Mapping[str, str]
    confirmed: bool = False
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    proposed: Mapping[str, ColumnMatch] = field(default_factory=dict)
    conversions: Mapping[str, Conversion] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    kept: Mapping[str, Decision] = field(default_factory=dict)
    unseen: Mapping[str, tuple[str, Decision]] = field(default_factory=dict)
    treated: tuple[Treatment, ...] = ()

    @property
    def compared(self) -> dict[str, Decision]:
        """How columns are compared whose values are not written as in the base."""
        return {**self.kept, **{name: decision for name, (_, decision) in self.unseen.items()}}

    @property
    def certain(self) -> bool:
        """Whether rows can be taken without asking."""
        return not self.doubts

    def confidence(self, required: Sequence[str]) -> float:
        """How sure the match of the required columns is: that of the least sure."""
        if self.confirmed:
            return 1.0
        return min((self.columns[n].score if n in self.columns else 0.0) for n in required)


def wanted(counts: Counts, base: Profile | None = None) -> Wanted:
    """Say what the counts a plan was made for want of a table."""
    vocabularies = {
        axis.name: {v: int(n) for v, n in zip(axis.values, rows, strict=True) if v is not MISSING}
        for axis, rows in zip(counts.axes, _margins(counts), strict=True)
        if axis.name not in counts.bins
    }
    bins = {name: tuple(edges) for name, edges in counts.bins.items()}
    if base is not None:
        return Wanted(base.columns, vocabularies, bins)
    known = [_told_by_counts(name, rows) for name, rows in vocabularies.items()]
    return Wanted((*known, *(_unknown(name) for name in bins)), vocabularies, bins)


def _margins(counts: Counts) -> list[NDArray[np.int64]]:
    return [
        np.bincount(counts.codes[:, i], weights=counts.rows, minlength=len(axis.values)).astype(
            np.int64
        )
        for i, axis in enumerate(counts.axes)
    ]


def _told_by_counts(name: str, values: Mapping[str, int]) -> ColumnProfile:
    return ColumnProfile(name, "VARCHAR", 0, len(values), values, (), 0.0, None, ())


def _unknown(name: str) -> ColumnProfile:
    return ColumnProfile(name, "DOUBLE", 0, 0, None, (), 1.0, None, ())


def align(
    want: Wanted,
    table: Profile,
    *,
    same_codes: bool = False,
    codebook: Mapping[str, Mapping[str, str]] | None = None,
) -> Alignment | None:
    """Match the columns of a table one to one with the base's; none if it is of no use.

    A table is of no use if some required column has no counterpart at all. Where there is one
    but it is not certain, the alignment says so, and a user may confirm it.

    Parameters
    ----------
    want
        The base's columns and vocabularies.
    table
        What is known of the table.
    same_codes
        Whether codes such as 1 and 2 mean the same everywhere.
    codebook
        By attribute, which value of a source means which of the base.
    """
    maps = _Maps(want, table, same_codes, codebook or {})
    evidence = _evidence(want, table, maps)
    if not _is_of_use(evidence, want):
        return None
    pairs, likely = _related(evidence, want)
    pairs += _guessed(pairs, likely, evidence, want)
    pairs += _left_over(pairs, shared_headers(want.columns, table.columns))
    series = find_series(pairs, want.columns, table.columns)
    judge = Judge(want.columns, table, evidence.likeness, series)
    required = _Required(want, table, maps, judge)
    found = {
        want.columns[i].name: _match(evidence, judge, required, float(likely[i, j]), i, j)
        for i, j in pairs
    }
    if any(name not in found for name in want.required):
        return None
    places = {want.columns[i].name: j for i, j in pairs}
    columns = {n: m for n, m in found.items() if n in want.required or m.doubt is None}
    return Alignment(
        columns=columns,
        values={name: maps.of(name, places[name]) for name in want.vocabularies},
        doubts={n: doubt for n in want.required if (doubt := found[n].doubt) is not None},
        spellings=spellings(want, table, columns),
        proposed={n: m for n, m in found.items() if n not in columns},
    )


def _left_over(
    pairs: Sequence[tuple[int, int]], shared: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Give columns of the same header that are matched with no other; their values may not meet."""
    ours, theirs = {i for i, _ in pairs}, {j for _, j in pairs}
    return [(i, j) for i, j in shared if i not in ours and j not in theirs]


def spellings(
    want: Wanted, table: Profile, columns: Mapping[str, ColumnMatch]
) -> dict[str, dict[str, str]]:
    """Find the values of other columns that differ from the base's in case or blanks only."""
    theirs = {column.name: column.values or {} for column in table.columns}
    found = {}
    for base in want.columns:
        if base.name in want.required or base.name not in columns or not base.values:
            continue
        known = _by_folded(base.values)
        told = {
            value: known[value.strip().casefold()]
            for value in theirs[columns[base.name].source]
            if value not in base.values and value.strip().casefold() in known
        }
        if told:
            found[base.name] = told
    return found


def _by_folded(values: Mapping[str, int]) -> dict[str, str]:
    """Values by what they are without case and blanks, where that tells them apart."""
    folded = Counter(value.strip().casefold() for value in values)
    plain = {value.strip().casefold(): value for value in values}
    return {key: value for key, value in plain.items() if key and folded[key] == 1}


@dataclass(frozen=True)
class _Maps:
    """The vocabularies of required columns held against those of a table, when asked for."""

    want: Wanted
    table: Profile
    same_codes: bool
    codebook: Mapping[str, Mapping[str, str]]

    def of(self, name: str, place: int) -> ValueMap:
        """Match the values of a column of the table with those of a required one."""
        column = self.table.columns[place]
        if column.values is None:
            why = f"{column.name} has more than {FEW_VALUES} values, too many for groups"
            return ValueMap({}, (), (), {}, None, certain=False, why=why)
        return match_values(
            self.want.vocabularies[name],
            column.values,
            same_codes=self.same_codes,
            codebook=self.codebook.get(name),
        )

    def is_certain(self, name: str, place: int) -> bool:
        """Tell whether all values are matched; of most columns one look tells that they are not."""
        base, values = self.want.vocabularies.get(name), self.table.columns[place].values
        if not base or not values:
            return False
        few = len(values) <= len(base) + _MISSING_TEXTS or name in self.codebook
        if not few:
            return False
        book = tuple(self.codebook[name].items()) if name in self.codebook else None
        return _is_certain(tuple(base), tuple(values), self.same_codes, book)


@functools.lru_cache(maxsize=20_000)
def _is_certain(
    base: tuple[str, ...],
    source: tuple[str, ...],
    same_codes: bool,
    codebook: tuple[tuple[str, str], ...] | None,
) -> bool:
    book = None if codebook is None else dict(codebook)
    found = match_values(
        dict.fromkeys(base, 1),
        dict.fromkeys(source, 1),
        same_codes=same_codes,
        codebook=book,
        propose=False,
    )
    return found.certain


# ---------------------------------------------------------------------------- evidence

_Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Evidence:
    """For every two columns how alike they are, and how much likelier that makes them one."""

    likeness: Likeness
    headers: _Matrix
    logs: _Matrix


def _evidence(want: Wanted, table: Profile, maps: _Maps) -> _Evidence:
    headers = np.array(
        [[_header_similarity(a.name, b.name) for b in table.columns] for a in want.columns]
    ).reshape(len(want.columns), len(table.columns))
    opaque = np.array([is_opaque(c.name) for c in table.columns], bool)
    likeness = Likeness(want.contents, Contents.of(table.columns))
    logs = likeness.evidence.copy()
    for i, base in enumerate(want.columns):
        if base.name in want.vocabularies:
            certain = [maps.is_certain(base.name, j) for j in range(len(table.columns))]
            logs[i, certain] = _CERTAIN_VALUES
    logs = np.where(_same_kind(want, table) & (headers >= _ONE_NAME), np.maximum(logs, -4.0), logs)
    return _Evidence(likeness, headers, logs + _told_by_headers(headers, opaque))


def _header_similarity(a: str, b: str) -> float:
    """How alike two headers are, where words that always mean the same count as such."""
    alike = header_similarity(a, b)
    return max(alike, _ONE_MEANING) if compare_headers(a, b).level <= Level.SYNONYMS else alike


def _same_kind(want: Wanted, table: Profile) -> NDArray[np.bool_]:
    """Whether both are numbers or both are not: other values of one name are still its values."""
    ours = np.array([c.numeric >= 0.5 for c in want.columns], bool)
    theirs = np.array([c.numeric >= 0.5 for c in table.columns], bool)
    same: NDArray[np.bool_] = ours[:, None] == theirs
    return same


def _told_by_headers(headers: _Matrix, opaque: NDArray[np.bool_]) -> _Matrix:
    told = np.interp(headers, *_HEADER_LOGS)
    return np.where((headers < 0.5) & opaque, 0.0, told)


_CERTAIN_VALUES = 5.0
_HEADER_LOGS = ([0.0, 0.3, 0.6, 0.9, 1.0], [-2.0, -1.0, 2.0, 6.0, 8.0])


def _is_of_use(evidence: _Evidence, want: Wanted) -> bool:
    """Whether every required column has a counterpart that is not out of the question."""
    if not evidence.logs.size:
        return False
    names = [c.name for c in want.columns]
    return all(evidence.logs[names.index(n)].max() > PLAUSIBLE for n in want.required)


_COVERED, _SHIFT = 4.0, 2.0
_ROUNDS, _EAGER = 8, 6
_SETTLED = 0.97


def _related(evidence: _Evidence, want: Wanted) -> tuple[list[tuple[int, int]], _Matrix]:
    """The pairs that fit together best, and how likely every pair is, given these."""
    likely = one_to_one(evidence.logs + _SHIFT)
    if ((likely > _SETTLED) | (likely < 1 - _SETTLED)).all():
        return assigned(likely, LEAST), likely
    comparison = Comparison(want.relations, relations(evidence.likeness.theirs))
    likely = one_to_one(evidence.logs)
    for round_ in range(_ROUNDS):
        eager = min(1.0, (round_ + 1) / _EAGER)
        likely = (likely + _supported(evidence.logs, comparison, likely, eager)) / 2
    better = improved(evidence.logs, comparison, likely)
    likely = _supported(evidence.logs, comparison, better)
    return assigned(np.where(better > 0, likely, 0.0), LEAST), likely


def _guessed(
    pairs: Sequence[tuple[int, int]], likely: _Matrix, evidence: _Evidence, want: Wanted
) -> list[tuple[int, int]]:
    """Pairs for required columns that have none, if the table is surely about the same."""
    rows, columns = {i for i, _ in pairs}, {j for _, j in pairs}
    lacking = [i for i, c in enumerate(want.columns) if c.name in want.required and i not in rows]
    if not lacking or len(pairs) < _MOSTLY * (min(likely.shape) - len(lacking)):
        return []
    free = np.zeros(likely.shape)
    for i in lacking:
        for j in range(likely.shape[1]):
            if j not in columns and evidence.logs[i, j] > PLAUSIBLE:
                free[i, j] = likely[i, j] + 1e-9
    return assigned(free, 1e-9)


_MOSTLY = 0.5


def _supported(
    logs: _Matrix, comparison: Comparison, likely: _Matrix, eager: float = 1.0
) -> _Matrix:
    """How likely every pair is, given how likely the others are."""
    support = comparison.support(likely)
    best = np.where(logs > PLAUSIBLE, support, -np.inf)
    best = np.maximum(best.max(axis=1, keepdims=True), best.max(axis=0, keepdims=True))
    lag = np.where(np.isfinite(best), np.minimum(support - best, 0.0), 0.0)
    covered = likely.sum() / min(likely.shape)
    prior = _SHIFT + _COVERED * (2 * covered - 1)
    return one_to_one(logs + prior + eager * lag)


# --------------------------------------------------------------------------- matching


def _match(
    evidence: _Evidence, judge: Judge, required: _Required, score: float, i: int, j: int
) -> ColumnMatch:
    base, column = judge.columns[i], judge.table.columns[j]
    header, content = float(evidence.headers[i, j]), float(evidence.likeness.similarity[i, j])
    parts = []
    if header == 1:
        parts.append("same header")
    elif header >= 0.5:
        parts.append(f"headers alike ({header:.2f})")
    if content >= 0.3:
        both = base.numeric >= NUMERIC and column.numeric >= NUMERIC
        parts.append(f"{'numbers' if both else 'values'} alike ({content:.2f})")
    why = ", ".join(parts) or "little evidence"
    doubt = (required if base.name in required.want.required else judge).doubt(i, j, score)
    return ColumnMatch(base.name, column.name, score, header, content, why, doubt)


@dataclass(frozen=True)
class _Required:
    """Judges required columns, more strictly than others: a wrong one swaps groups unseen."""

    want: Wanted
    table: Profile
    maps: _Maps
    judge: Judge

    def doubt(self, i: int, j: int, _score: float) -> str | None:
        """Say why a required column cannot be used without asking, if so."""
        name, column = self.want.columns[i].name, self.table.columns[j]
        said = self.judge.wording(i, j)
        if said.level == Level.OTHER:
            return say_other(name, column.name, said.words)
        if name in self.want.bins:
            return self._doubt_of_number(i, j, said.level)
        found = self.maps.of(name, j)
        if not found.certain:
            return found.why
        values = self.want.vocabularies[name]
        if said.level == Level.SILENT and (doubt := self._doubt_of_silent(i, j)) is not None:
            return doubt
        if tells_meaning(values):
            return self._rival(i, j, said.level)
        if said.level >= Level.LOOSE:
            return f"values such as {_first(values)} do not tell that {column.name} is {name}"
        if self.judge.is_generic(i):
            return f"{name} may be said of anything, and values such as {_first(values)} as well"
        return self.judge.rival(i, j, said.level)

    def _doubt_of_silent(self, i: int, j: int) -> str | None:
        """A header that says nothing needs words of one kind, which one column of each has."""
        name, column = self.want.columns[i].name, self.table.columns[j]
        if not tells_kind(self.want.vocabularies[name]):
            return say_silent(column.name)
        for k, other in enumerate(self.want.columns):
            if k != i and other.distinct and self.judge.agreement(k, j) == Agreement.STRONG:
                return f"{column.name} says nothing, and {other.name} has such values, too"
        return self.judge.doubt_of_values(i, j)

    def _doubt_of_number(self, i: int, j: int, level: Level) -> str | None:
        name, column = self.want.columns[i].name, self.table.columns[j]
        if column.numeric < NUMERIC:
            return f"{column.name} does not hold numbers, which {name} is binned by"
        if level > Level.SYNONYMS or self.judge.is_generic(i):
            return f"{column.name} may be another number than {name}"
        if self.judge.agreement(i, j) == Agreement.CONTRARY and self.want.columns[i].distinct:
            return f"the numbers of {column.name} are not those of {name}"
        return self.judge.rival(i, j, level)

    def _rival(self, i: int, j: int, level: Level) -> str | None:
        """Name another column that says the same, or has the same values where none says much."""
        if level < Level.LOOSE:
            return self.judge.rival(i, j, level)
        name, columns = self.want.columns[i].name, self.table.columns
        rivals = [c.name for k, c in enumerate(columns) if k != j and self.maps.is_certain(name, k)]
        if rivals:
            return f"{' and '.join([columns[j].name, *rivals])} have the values of {name}"
        return None


def _first(values: Mapping[str, int]) -> str:
    return ", ".join(list(values)[:2])


def nearest_columns(want: Wanted, table: Profile) -> dict[str, tuple[float, str]]:
    """For each required column the column of a table that is most like it, and how much."""
    if not table.columns:
        return {}
    evidence = _evidence(want, table, _Maps(want, table, False, {}))
    scores = 1 / (1 + np.exp(-evidence.logs))
    places = [column.name for column in want.columns]
    nearest = {}
    for name in want.required:
        line = scores[places.index(name)]
        nearest[name] = (float(line.max()), table.columns[int(line.argmax())].name)
    return nearest
