"""Weights of rows as one more column of a table, which its database looks up by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.engines import sql
from equipoise.engines.base import MADE, Column
from equipoise.engines.choices import wanted_cells

if TYPE_CHECKING:
    from equipoise.counts import CountRequest, Counts
    from equipoise.engines.dialect import Dialect

WEIGHTS = f"{MADE}: weights of"
"""How the comment on a table of weights begins."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """A view of a table with one more column: the weight of each row's cell, 0 for rows of none."""

    columns: Sequence[Column]
    request: CountRequest
    counts: Counts
    weights: Sequence[float]
    """The weight of each cell of the counts."""
    name: str

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        mark = sql.mark_of(self.columns)
        names = [d.identifier(c.name) for c in self.columns]
        types = {c.name: c.type for c in self.columns}
        texts = [sql.cell_text(d, name, types[name], self.request) for name in self.request.columns]
        weight = f"coalesce(asked.weight{mark}, {d.double(0.0)}) AS {d.identifier(self.name)}"
        shown = ", ".join([*names, weight, *map(d.identifier, carried)])
        return (
            f"SELECT {shown} FROM (SELECT *, {d.joined(texts)} AS cell{mark} FROM input) AS told "
            f"LEFT JOIN (SELECT * FROM (VALUES {self._lines(d)}) AS listed(key{mark}, weight{mark})) AS asked "
            f"ON asked.key{mark} = told.cell{mark}"
        )

    def _lines(self, d: Dialect) -> str:
        cells = wanted_cells(self.counts, self.columns, self.request)
        keys = [cells.column(f"k{i}").to_pylist() for i in range(len(self.request.columns))]
        return ", ".join(
            f"({d.literal(','.join(map(_measured, key)))}, {d.double(float(weight))})"
            for key, weight in zip(zip(*keys, strict=True), self.weights, strict=True)
        )


def _measured(text: str | None) -> str:
    """Write a text after its length, as :meth:`equipoise.engines.dialect.Dialect.joined` does."""
    return "-" if text is None else f"{len(text)}:{text}"
