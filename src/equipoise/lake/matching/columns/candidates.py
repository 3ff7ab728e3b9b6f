"""Columns of a table that may be a column of the base, with the evidence in sentences for people."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.engines.profiling import FEW_VALUES, ColumnProfile, Profile
from equipoise.lake.matching.columns.assignment import PLAUSIBLE
from equipoise.lake.matching.columns.certainty import Judge, shared_headers
from equipoise.lake.matching.columns.evidence import Evidence, ValueMaps, gather_evidence
from equipoise.lake.matching.columns.likeness import NUMERIC, ColumnContents
from equipoise.lake.matching.columns.required import RequiredJudge
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.columns.wording import Level
from equipoise.lake.matching.values.vocabulary import ValueMap
from equipoise.plain import counted, in_words

_MOST = 5  # candidates that are named beside the column that was matched
_SIMILAR = 0.5  # similarity from which on it is worth saying in which words headers differ


@dataclass(frozen=True)
class ColumnCandidate:
    """A column that may be a column of the base; the score is the evidence taken by itself."""

    source: str
    score: float
    why: str


@dataclass(frozen=True)
class TableEvidence:
    """The evidence for the columns of one table."""

    want: Wanted
    table: Profile
    same_codes: bool = False
    codebook: Mapping[str, Mapping[str, str]] | None = None

    @functools.cached_property
    def _maps(self) -> ValueMaps:
        return ValueMaps(self.want, self.table, self.same_codes, self.codebook or {})

    @functools.cached_property
    def _evidence(self) -> Evidence:
        return gather_evidence(
            self.want, self.table, self._maps, ColumnContents(self.table.columns)
        )

    @functools.cached_property
    def _judge(self) -> Judge:
        shared = shared_headers(self.want.columns, self.table.columns)
        return Judge(self.want.columns, self.table, self._evidence.likeness, (), shared)

    @functools.cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        sides = (self.want.columns, self.table.columns)
        ours, theirs = ({c.name: i for i, c in enumerate(side)} for side in sides)
        return ours, theirs

    def _at(self, name: str, source: str) -> tuple[int, int]:
        return self._places[0][name], self._places[1][source]

    def profile(self, source: str) -> ColumnProfile:
        """Return the profile of a column of the table."""
        return self.table.columns[self._places[1][source]]

    def values(self, name: str, source: str) -> ValueMap:
        """Match the values of a column with those of a required column."""
        return self._maps.of(name, self._places[1][source])

    def doubt(self, name: str, source: str) -> str | None:
        """Return why it is not certain that a column is a required column, apart from its values."""
        judge = RequiredJudge(self.want, self._maps, {}, self._judge)
        return judge.doubt_of_header(*self._at(name, source))

    def score(self, name: str, source: str) -> float:
        """Return how likely a column is the one of the base, taken by itself."""
        return float(1 / (1 + np.exp(-self._evidence.logs[self._at(name, source)])))

    def candidates(self, name: str, *, but: str | None = None) -> tuple[ColumnCandidate, ...]:
        """Return the most likely columns, without the one that was matched."""
        logs = self._evidence.logs[self._places[0][name]]
        order = np.argsort(-logs, kind="stable").tolist()
        likely = [self.table.columns[j].name for j in order if logs[j] > PLAUSIBLE]
        return tuple(
            ColumnCandidate(source, self.score(name, source), self.say(name, source))
            for source in [s for s in likely if s != but][:_MOST]
        )

    def say(self, name: str, source: str) -> str:
        """Say in a sentence what speaks for or against a column."""
        i, j = self._at(name, source)
        return f"{self._say_header(i, j)}; {self._say_values(i, j)}."

    def _say_header(self, i: int, j: int) -> str:
        name, source = self.want.columns[i].name, self.table.columns[j].name
        said = self._judge.wording(i, j)
        if name == source:
            return "The headers are the same"
        sentences = {
            Level.SAME: f"The header {source!r} has the same words as {name!r}",
            Level.SYNONYMS: f"The header {source!r} means the same as {name!r}",
            Level.LOOSE: f"The header {source!r} mostly means the same as {name!r}",
            Level.SILENT: f"The header {source!r} does not say what the column is about",
        }
        if said.level in sentences:
            return sentences[said.level]
        if said.words and self._evidence.headers[i, j] >= _SIMILAR:
            words = in_words([repr(word) for word in said.words])
            return f"The header {source!r} differs from {name!r} in {words}"
        return f"The header {source!r} is not similar to {name!r}"

    def _say_values(self, i: int, j: int) -> str:
        base, column = self.want.columns[i], self.table.columns[j]
        if base.name in self.want.vocabularies:
            return self._say_vocabulary(base.name, j)
        if not column.distinct:
            return "it has no values"
        numbers = [c.numeric >= NUMERIC for c in (base, column)]
        if base.name in self.want.bins and not numbers[1]:
            return "it does not hold numbers"
        likeness = self._evidence.likeness
        if all(numbers):
            gap = float(likeness.gaps[i, j])
            if not base.distinct or np.isnan(gap):
                return "it holds numbers"
            return (
                f"its numbers are distributed with a distance of {gap:.2f} from those of the base"
            )
        return (
            f"its values are similar to those of the base by {likeness.similarity[i, j]:.2f} of 1"
        )

    def _say_vocabulary(self, name: str, j: int) -> str:
        column = self.table.columns[j]
        if column.values is None:
            return f"it has more than {FEW_VALUES} values"
        found = self._maps.of(name, j)
        if found.certain:
            return found.why
        shared = len(column.values.keys() & self.want.vocabularies[name].keys())
        are = "is" if shared == 1 else "are"
        of = f"of its {counted(len(column.values), 'value')}"
        return f"{shared or 'none'} {of} {are} written as in the base"
