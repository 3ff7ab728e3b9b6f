"""Which column of a table is which column of the base, with the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.engines.profiling import Profile
from equipoise.lake.matching.columns.certainty import Judge, shared_headers
from equipoise.lake.matching.columns.evidence import Evidence, ValueMaps, gather_evidence, is_of_use
from equipoise.lake.matching.columns.likeness import NUMERIC, ColumnContents
from equipoise.lake.matching.columns.pairs import guessed_pairs, left_over_pairs, likely_pairs
from equipoise.lake.matching.columns.required import RequiredJudge
from equipoise.lake.matching.columns.series import find_series
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.conversions import Conversion, Decision, Treatment
from equipoise.lake.matching.values.vocabulary import ValueMap


@dataclass(frozen=True)
class ColumnMatch:
    """A column of the base, the column of a table it is matched with, and the evidence in words."""

    base: str
    source: str
    score: float  # probability of the match
    why: str = ""
    doubt: str | None = None  # why the match is not certain


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """How the columns and values of a table become those of the base, by column of the base.

    "Other columns" are those that are not required.
    """

    # The required columns, and others whose match is certain.
    columns: Mapping[str, ColumnMatch]
    values: Mapping[str, ValueMap]
    # Why a required column is not certain; empty if rows can be taken.
    doubts: Mapping[str, str]
    confirmed: bool = False
    spellings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Other columns that are used only if a user confirms them in a mapping file.
    proposed: Mapping[str, ColumnMatch] = field(default_factory=dict)
    conversions: Mapping[str, Conversion] = field(default_factory=dict)
    # Columns in which texts such as NA mean a missing value.
    absent: frozenset[str] = frozenset()
    # Other columns that stay as written, and those left missing. Neither can be compared with the
    # base as it is, so the decision says how their values are compared to find duplicates.
    kept: Mapping[str, Decision] = field(default_factory=dict)
    unseen: Mapping[str, tuple[str, Decision]] = field(default_factory=dict)
    treated: tuple[Treatment, ...] = ()

    @property
    def compared(self) -> dict[str, Decision]:
        """How columns that are not written as in the base are compared."""
        return {**self.kept, **{name: decision for name, (_, decision) in self.unseen.items()}}

    @property
    def certain(self) -> bool:
        """Whether rows can be taken without asking a person."""
        return not self.doubts

    def confidence(self, required: Sequence[str]) -> float:
        """The lowest score of the required columns; 1 if a user confirmed them."""
        if self.confirmed:
            return 1.0
        return min((self.columns[n].score if n in self.columns else 0.0) for n in required)


def align(
    want: Wanted,
    table: Profile,
    *,
    same_codes: bool = False,
    codebook: Mapping[str, Mapping[str, str]] | None = None,
) -> Alignment | None:
    """Match the columns of a table one to one with those of the base.

    The result is None if some required column has no counterpart at all. A counterpart that is not
    certain is among the doubts, and a user may confirm it.
    """
    maps = ValueMaps(want, table, same_codes, codebook or {})
    contents = ColumnContents(table.columns)
    # Most tables of a lake are about something else, which three columns show as well as thirty.
    counted = want.counted
    if counted.columns and not is_of_use(gather_evidence(counted, table, maps, contents), counted):
        return None
    evidence = gather_evidence(want, table, maps, contents)
    if not is_of_use(evidence, want):
        return None
    pairs, likely = likely_pairs(evidence, want)
    pairs += guessed_pairs(pairs, likely, evidence, want)
    shared = shared_headers(want.columns, table.columns)
    pairs += left_over_pairs(pairs, shared)
    places = {want.columns[i].name: j for i, j in pairs}
    if any(name not in places for name in want.required):
        return None
    values = {name: maps.of(name, places[name]) for name in want.vocabularies}
    series = find_series(pairs, want.columns, table.columns)
    judge = Judge(want.columns, table, evidence.likeness, series, shared)
    required = RequiredJudge(want, maps, values, judge)
    found = {
        want.columns[i].name: _match(evidence, judge, required, float(likely[i, j]), i, j)
        for i, j in pairs
    }
    columns = {n: m for n, m in found.items() if n in want.required or m.doubt is None}
    return Alignment(
        columns=columns,
        values=values,
        doubts={n: doubt for n in want.required if (doubt := found[n].doubt) is not None},
        spellings=spellings(want, table, columns),
        proposed={n: m for n, m in found.items() if n not in columns},
    )


def spellings(
    want: Wanted, table: Profile, columns: Mapping[str, ColumnMatch]
) -> dict[str, dict[str, str]]:
    """Find values of other columns that differ from the base only in case or surrounding blanks."""
    theirs = {column.name: column.values or {} for column in table.columns}
    found = {}
    for base in want.columns:
        if base.name in want.required or base.name not in columns or not base.values:
            continue
        known = _by_folded(base.values)
        spelled = {
            value: known[value.strip().casefold()]
            for value in theirs[columns[base.name].source]
            if value not in base.values and value.strip().casefold() in known
        }
        if spelled:
            found[base.name] = spelled
    return found


def _by_folded(values: Mapping[str, int]) -> dict[str, str]:
    """Index values by their folded spelling, without those that it does not tell apart."""
    folded = Counter(value.strip().casefold() for value in values)
    plain = {value.strip().casefold(): value for value in values}
    return {key: value for key, value in plain.items() if key and folded[key] == 1}


def _match(
    evidence: Evidence, judge: Judge, required: RequiredJudge, score: float, i: int, j: int
) -> ColumnMatch:
    base, column = judge.columns[i], judge.table.columns[j]
    header, content = float(evidence.headers[i, j]), float(evidence.likeness.similarity[i, j])
    parts = []
    if header == 1:
        parts.append("same header")
    elif header >= 0.5:
        parts.append(f"similar headers ({header:.2f})")
    if content >= 0.3:
        both = base.numeric >= NUMERIC and column.numeric >= NUMERIC
        parts.append(f"similar {'numbers' if both else 'values'} ({content:.2f})")
    why = ", ".join(parts) or "little evidence"
    doubt = (required if base.name in required.want.required else judge).doubt(i, j, score)
    return ColumnMatch(base.name, column.name, score, why, doubt)


def nearest_columns(want: Wanted, table: Profile) -> dict[str, tuple[float, str]]:
    """For each required column, the most similar column of a table, with its score."""
    if not table.columns:
        return {}
    maps = ValueMaps(want, table, False, {})
    evidence = gather_evidence(want, table, maps, ColumnContents(table.columns))
    scores = 1 / (1 + np.exp(-evidence.logs))
    return {
        column.name: (float(line.max()), table.columns[int(line.argmax())].name)
        for column, line in zip(want.columns, scores, strict=True)
        if column.name in want.required
    }
