"""The cells of a stream while batches are added: their numbers, and the values that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from equipoise.counts import Counts
from equipoise.lattice import format_value
from equipoise.monitoring.store.records import cell_text, cell_values
from equipoise.values import Value

_ReadAll: TypeAlias = Callable[
    [Callable[[str], tuple[Value, ...]], Iterable[Sequence[Any]]], tuple[tuple[Value, ...], ...]
]


@dataclass
class KnownCells:
    """The numbers of all cells, and the values of each column, which are read once for all batches."""

    numbers: dict[str, int]
    read_all: _ReadAll
    _seen: list[set[Value]] | None = None

    def drift(self, counts: Counts) -> list[str]:
        """New values of columns, which earlier batches do not have."""
        if not self.numbers:
            return []
        said = []
        for i, (axis, seen) in enumerate(zip(counts.axes, self._known(), strict=True)):
            used = set(counts.codes[:, i].tolist())
            new = [v for code, v in enumerate(axis.values) if code in used and v not in seen]
            if new:
                what = "label" if axis.role == "label" else "attribute"
                named = ", ".join(map(format_value, new[:5])) + (", …" if len(new) > 5 else "")
                values = "a value" if len(new) == 1 else f"{len(new)} values"
                said.append(
                    f"The {what} {axis.name} has {values} that no earlier batch contains: {named}."
                )
        return said

    def _known(self) -> list[set[Value]]:
        if self._seen is None:
            before = self.read_all(cell_values, [(text,) for text in self.numbers])
            self._seen = [set(column) for column in zip(*before, strict=True)]
        return self._seen

    def number(self, counts: Counts) -> tuple[list[int], dict[str, int]]:
        """The numbers of the cells of counts, and those that are new."""
        values = [axis.values for axis in counts.axes]
        lines = [tuple(values[i][c] for i, c in enumerate(line)) for line in counts.codes.tolist()]
        texts = list(map(cell_text, lines))
        new = {
            text: line for text, line in zip(texts, lines, strict=True) if text not in self.numbers
        }
        made = {text: len(self.numbers) + i for i, text in enumerate(new)}
        self.numbers |= made
        for column, seen in enumerate(self._seen or ()):
            seen |= {line[column] for line in new.values()}
        return [self.numbers[text] for text in texts], made
