"""The rows that are kept, and the rows that are taken from a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.counts.rows import cells_of_rows
from equipoise.estimators._moves import Moves
from equipoise.estimators._rows import CountedRows
from equipoise.frames import stack_rows, take_rows
from equipoise.measures.table import largest_ub
from equipoise.plans.problem import known_rows
from equipoise.rows.draw import draw
from equipoise.values import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray


_PROVENANCE = np.dtype([("source", "U5"), ("row", np.int64)])


@dataclass(frozen=True, eq=False)
class Resampling:
    """The rows that are kept of those given, followed by rows from a pool."""

    given: CountedRows
    pool: CountedRows | None
    moves: Moves
    kept: NDArray[np.int64]  # positions in the given data
    added: NDArray[np.int64]  # positions in the pool

    @property
    def indices(self) -> NDArray[np.int64]:
        """Positions of the rows, where the pool follows the given rows."""
        return np.concatenate([self.kept, self.given.n + self.added])

    @property
    def provenance(self) -> NDArray[Any]:
        """Source of each row, and its position there."""
        found = np.empty(len(self.kept) + len(self.added), _PROVENANCE)
        found["source"] = ["given"] * len(self.kept) + ["pool"] * len(self.added)
        found["row"] = np.concatenate([self.kept, self.added])
        return found

    @property
    def strategy(self) -> dict[Any, int]:
        """Rows of each cell, as :func:`asked_moves` takes them."""
        rows = {**dict.fromkeys(self.given.counts.cells(), 0), **self.moves.after.cells()}
        known = {cell: n for cell, n in rows.items() if MISSING not in cell}
        if not self.given.sensitive:
            return {label: n for (_, label), n in known.items()}
        lone = len(self.given.sensitive) == 1
        return {(g[0] if lone else tuple(g), label): n for (*g, label), n in known.items()}

    def features(self) -> Any:
        """Return the features of the rows, in the type they were given in."""
        kept = take_rows(self.given.X, self.kept)
        if self.pool is None or not len(self.added):
            return kept
        return stack_rows(kept, take_rows(self.pool.X, self.added))

    def labels(self, y: Any) -> Any:
        """Return the labels of the rows as the given ``y`` writes them, which the pool may not do."""
        codes, label = _label_codes(self.given, self.given.counts), self.given.counts.label
        _, first = np.unique(codes, return_index=True)
        like = dict(zip(label.values, first.tolist(), strict=True))
        rows = self.kept
        if self.pool is not None and len(self.added):
            theirs = _label_codes(self.pool, self.moves.add)[self.added]
            texts = self.moves.add.label.values
            rows = np.concatenate([rows, [like[texts[code]] for code in theirs.tolist()]])
        return take_rows(y, rows)


def max_abs_ub(counts: Counts) -> float:
    """Compute the largest |UB| of the rows without a missing sensitive value."""
    return largest_ub(known_rows(counts, plan_missing=False)[0])


def _label_codes(rows: CountedRows, counts: Counts) -> NDArray[np.int32]:
    return np.asarray(counts.codes[cells_of_rows(rows.table, counts), -1])


def resample(
    given: CountedRows,
    moves: Moves,
    generator: np.random.Generator,
    *,
    pool: CountedRows | None = None,
) -> Resampling:
    """Choose rows of each cell at random: those that are deleted, and those that are added.

    Examples
    --------
    >>> from equipoise.estimators._rows import count_rows
    >>> from equipoise.estimators._moves import asked_moves
    >>> given = count_rows([1, 1, 0, 1, 0, 0], {"sex": list("mmmwww")}, X=np.arange(6))
    >>> moves = asked_moves(given.counts, {("m", 1): 1, ("w", 0): 1})
    >>> chosen = resample(given, moves, np.random.default_rng(0))
    >>> chosen.features(), max_abs_ub(moves.after)
    (array([0, 2, 3, 4]), 0.0)
    """
    gone = _drawn(given, moves.delete, generator)
    kept = np.delete(np.arange(given.n), gone)
    added = np.zeros(0, np.int64) if pool is None else _drawn(pool, moves.add, generator)
    return Resampling(given, pool, moves, kept, added)


def _drawn(rows: CountedRows, wanted: Counts, generator: np.random.Generator) -> NDArray[np.int64]:
    return draw(cells_of_rows(rows.table, wanted), wanted.rows, generator)
