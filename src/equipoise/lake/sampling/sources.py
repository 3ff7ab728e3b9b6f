"""Sources that can only be sampled: their protocol, and a source of rows in memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from equipoise.errors import InputError

Cell: TypeAlias = Hashable
"""The cell of a row; in Equipoise a tuple of values."""

Floats: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


class SampledSource(Protocol):
    """A source of random rows that all have the same price.

    It may also have the attributes ``mix``, a mapping of cells to their shares of the rows, and
    ``size``, the number of rows. They are unknown if they are absent or ``None``.
    """

    @property
    def name(self) -> str:
        """Name in messages."""

    @property
    def cost(self) -> float:
        """Price of a draw, whether the row is needed or not."""

    def draw(self, n: int, /) -> Iterable[tuple[Cell, Any]]:
        """Return up to ``n`` rows that were not drawn before, each with its cell.

        Fewer than ``n`` rows mean that the source is exhausted.
        """


class TableSource:
    """Rows in memory as a source: pairs of a cell and any object, drawn in random order.

    Without ``tells``, the source keeps its mix and size to itself.

    >>> source = TableSource("a", [(("w",), "Ann"), (("m",), "Bob"), (("w",), "Cid")], seed=1)
    >>> source.size, round(source.mix[("w",)], 3)
    (3, 0.667)
    >>> sorted(row for _, row in source.draw(3)), source.draw(1)
    (['Ann', 'Bob', 'Cid'], [])
    """

    def __init__(
        self,
        name: str,
        rows: Iterable[tuple[Cell, Any]],
        *,
        cost: float = 1.0,
        seed: int = 0,
        tells: bool = True,
    ) -> None:
        self.name, self.cost = name, cost
        given = list(rows)
        order = np.random.default_rng(seed).permutation(len(given))
        self._rows = [given[i] for i in order.tolist()]
        self._next = 0
        counts = Counter(cell for cell, _ in given)
        self.size = len(given) if tells else None
        self.mix = {cell: n / len(given) for cell, n in counts.items()} if tells else None

    def draw(self, n: int, /) -> list[tuple[Cell, Any]]:
        """Return up to ``n`` rows that were not drawn before."""
        drawn = self._rows[self._next : self._next + n]
        self._next += len(drawn)
        return drawn


def mix_of(source: SampledSource) -> Mapping[Cell, float] | None:
    """Return the mix of a source, if it is known."""
    mix: Mapping[Cell, float] | None = getattr(source, "mix", None)
    # Shares are often rounded, so their sum may be slightly above 1.
    if mix is not None and not (min(mix.values(), default=0) >= 0 and sum(mix.values()) < 1 + 1e-6):
        raise InputError(
            f"the shares in the mix of {source.name} must be at least 0 and add up to at most 1."
        )
    return mix


def mixes_of(sources: Sequence[SampledSource], cells: Sequence[Cell]) -> Floats:
    """Return the shares of some cells in each source; NaN where the mix is unknown."""
    mixes = np.full((len(sources), len(cells)), np.nan)
    for s, source in enumerate(sources):
        mix = mix_of(source)
        if mix is not None:
            mixes[s] = [mix.get(cell, 0.0) for cell in cells]
    return mixes


def sizes_of(sources: Sequence[SampledSource]) -> Floats:
    """Return the number of rows of each source; infinity where it is unknown."""
    sizes = [getattr(source, "size", None) for source in sources]
    return np.array([math.inf if size is None else float(size) for size in sizes])


def name_untold(sources: Sequence[SampledSource]) -> str:
    """Name the first source whose mix is unknown."""
    return next(source.name for source in sources if mix_of(source) is None)


def cell_name(cell: Cell) -> str:
    """Write a cell as text."""
    return ", ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
