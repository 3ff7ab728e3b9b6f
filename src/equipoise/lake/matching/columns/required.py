"""When a match of a required column is certain: the label and the sensitive attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.lake.matching.columns.certainty import Agreement, Judge, say_other, say_silent
from equipoise.lake.matching.columns.evidence import ValueMaps
from equipoise.lake.matching.columns.likeness import NUMERIC
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.columns.wording import Level
from equipoise.lake.matching.values.concepts import tells_kind, tells_meaning
from equipoise.lake.matching.values.vocabulary import ValueMap


@dataclass(frozen=True)
class RequiredJudge:
    """Judges required columns more strictly than others: a wrong one silently swaps groups."""

    want: Wanted
    maps: ValueMaps
    values: Mapping[str, ValueMap]
    judge: Judge

    def doubt(self, i: int, j: int, _score: float) -> str | None:
        """Return why a match of a required column is not certain, or None if it is."""
        name, column = self.want.columns[i].name, self.judge.table.columns[j]
        said = self.judge.wording(i, j)
        if said.level == Level.OTHER:
            return say_other(name, column.name, said.words)
        if name in self.want.bins:
            return self._doubt_of_number(i, j, said.level)
        if not self.values[name].certain:
            return self.values[name].why
        values = self.want.vocabularies[name]
        if said.level == Level.SILENT and (doubt := self._doubt_of_silent(i, j)) is not None:
            return doubt
        if tells_meaning(values):
            return self._rival(i, j, said.level)
        if said.level >= Level.LOOSE:
            return f"values such as {_first(values)} do not show that {column.name} is {name}"
        if self.judge.is_generic(i):
            return f"{name} can mean anything, and so can values such as {_first(values)}"
        return self.judge.rival(i, j, said.level)

    def doubt_of_header(self, i: int, j: int) -> str | None:
        """Return why the header leaves a match open, whatever the values turn out to mean."""
        name, column = self.want.columns[i].name, self.judge.table.columns[j]
        said = self.judge.wording(i, j)
        if said.level == Level.OTHER:
            return say_other(name, column.name, said.words)
        if said.level == Level.SILENT:
            return say_silent(column.name)
        if said.level == Level.LOOSE:
            return f"{name} and {column.name} mostly mean the same, but not always"
        if self.judge.is_generic(i):
            return f"{name} can mean anything"
        return self.judge.rival(i, j, said.level)

    def _doubt_of_silent(self, i: int, j: int) -> str | None:
        """A header that says nothing needs words of one kind, which no other column has."""
        name, column = self.want.columns[i].name, self.judge.table.columns[j]
        if not tells_kind(self.want.vocabularies[name]):
            return say_silent(column.name)
        for k, other in enumerate(self.want.columns):
            if k != i and other.distinct and self.judge.agreement(k, j) == Agreement.STRONG:
                return f"{column.name} says nothing, and {other.name} has similar values"
        return self.judge.doubt_of_values(i, j)

    def _doubt_of_number(self, i: int, j: int, level: Level) -> str | None:
        name, column = self.want.columns[i].name, self.judge.table.columns[j]
        if column.numeric < NUMERIC:
            return f"{column.name} does not hold numbers, but {name} is binned"
        if level > Level.SYNONYMS or self.judge.is_generic(i):
            return f"{column.name} may be another number than {name}"
        if self.judge.agreement(i, j) == Agreement.CONTRARY and self.want.columns[i].distinct:
            return f"the numbers of {column.name} are not those of {name}"
        return self.judge.rival(i, j, level)

    def _rival(self, i: int, j: int, level: Level) -> str | None:
        """Name another column with the same header or, where headers say little, the same values."""
        if level < Level.LOOSE:
            return self.judge.rival(i, j, level)
        name, columns = self.want.columns[i].name, self.judge.table.columns
        rivals = [c.name for k, c in enumerate(columns) if k != j and self.maps.is_certain(name, k)]
        if rivals:
            return f"{' and '.join([columns[j].name, *rivals])} have the values of {name}"
        return None


def _first(values: Mapping[str, int]) -> str:
    return ", ".join(list(values)[:2])
