"""Simulated lakes, to compare the cost of policies with its lower bound.

There are two kinds. In a ``"skewed"`` lake each source consists mostly of a few groups: the mixes are
drawn from a Dirichlet distribution with parameters of one half, and all groups are needed. In a
``"minority"`` lake the needed groups are rare everywhere: a tenth of the sources (at least two) have a
group at 2 to 8 %, a third of the others at 0.1 to 0.5 %, and the rest not at all. All other rows are of
groups that nobody needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from equipoise.lake.sampling.sources import Cell
from equipoise.validate import at_least, one_of

Kind: TypeAlias = Literal["skewed", "minority"]
KINDS: tuple[Kind, ...] = ("skewed", "minority")

Costs: TypeAlias = Literal["equal", "varied"]
COSTS: tuple[Costs, ...] = ("equal", "varied")

_LEAST_SIZE, _TIMES = 20_000, 10  # least rows of a source, and the largest multiple of that
_NEEDS = {"skewed": (50, 400), "minority": (50, 200)}  # rows needed of a cell
_CELLS = {"skewed": 8, "minority": 5}
_COMMON = 4  # groups of a minority lake that nobody needs


@dataclass(eq=False)
class SimulatedSource:
    """A simulated table that has only counts; its rows are numbers in the order of the draws.

    Attributes
    ----------
    name, cost, size
        Name in messages, price of a draw, and number of rows, if it is known.
    counts
        Number of rows by cell.
    seed
        Seed of the draws, which are without replacement.
    tells
        Whether the source makes its mix and size known.

    Examples
    --------
    >>> source = SimulatedSource("a", {("w",): 2, ("m",): 1}, seed=1)
    >>> sorted(cell for cell, _ in source.draw(5))
    [('m',), ('w',), ('w',)]
    >>> source.draw(5)
    []
    """

    name: str
    counts: dict[Cell, int]
    cost: float = 1.0
    seed: int = 0
    tells: bool = True
    mix: dict[Cell, float] | None = field(init=False)
    size: int | None = field(init=False)

    def __post_init__(self) -> None:
        rows = sum(self.counts.values())
        shares = {cell: n / rows for cell, n in self.counts.items()}
        self.mix, self.size = (shares, rows) if self.tells else (None, None)
        self._cells = list(self.counts)
        self._left = np.array(list(self.counts.values()), np.int64)
        self._rng = np.random.default_rng(self.seed)
        self._drawn = 0

    def draw(self, n: int) -> list[tuple[Cell, int]]:
        """Give up to ``n`` rows that were not drawn before, each with its cell."""
        n = min(n, int(self._left.sum()))
        taken = self._rng.multivariate_hypergeometric(self._left, n, method="marginals")
        self._left -= taken
        order = self._rng.permutation(np.repeat(np.arange(len(taken)), taken))
        first, self._drawn = self._drawn, self._drawn + n
        return [(self._cells[c], first + i) for i, c in enumerate(order.tolist())]


@dataclass(frozen=True, eq=False)
class SimulatedLake:
    """Sources, and the rows needed from them.

    Attributes
    ----------
    sources
        Sources, which remember what was drawn; simulate the lake again for another run.
    need
        Number of rows needed by cell.
    """

    sources: tuple[SimulatedSource, ...]
    need: dict[Cell, int]


def simulate(
    kind: Kind, sources: int = 10, *, seed: int = 0, costs: Costs = "equal", tells: bool = True
) -> SimulatedLake:
    """Simulate a lake of one of the two kinds.

    Parameters
    ----------
    kind
        ``"skewed"`` or ``"minority"``, as the module describes them.
    sources
        Number of sources.
    seed
        Seed of the lake and of the order of its rows.
    costs
        Price of a draw: ``"equal"``, 1 in each source, or ``"varied"``, from 0.5 to 2.
    tells
        Whether the sources make their mixes and sizes known.

    Examples
    --------
    >>> lake = simulate("minority", 10, seed=1)
    >>> len(lake.sources), min(lake.need.values()) >= 50
    (10, True)
    >>> max(source.mix[cell] for source in lake.sources for cell in lake.need) < 0.08
    True
    """
    one_of("kind", kind, KINDS)
    one_of("costs", costs, COSTS)
    at_least("sources", sources, 1, whole=True)
    rng = np.random.default_rng([KINDS.index(kind), sources, seed])
    cells = [(f"group {g}",) for g in range(_CELLS[kind])]
    mixes = _skewed(rng, sources) if kind == "skewed" else _minority(rng, sources)
    sizes = (_LEAST_SIZE * _TIMES ** rng.random(sources)).astype(int)
    need = rng.integers(*_NEEDS[kind], len(cells), endpoint=True)
    prices = np.exp2(rng.uniform(-1, 1, sources)) if costs == "varied" else np.ones(sources)
    named: list[Cell] = [*cells, *((f"other {g}",) for g in range(mixes.shape[1] - len(cells)))]
    made = tuple(
        SimulatedSource(
            name=f"source {s}",
            counts=dict(zip(named, _whole(mixes[s], int(sizes[s])), strict=True)),
            cost=float(prices[s]),
            seed=int(rng.integers(2**32)),
            tells=tells,
        )
        for s in range(sources)
    )
    return SimulatedLake(made, dict(zip(cells, need.tolist(), strict=True)))


def _skewed(rng: np.random.Generator, sources: int) -> npt.NDArray[np.float64]:
    return rng.dirichlet(np.full(_CELLS["skewed"], 0.5), sources)


def _minority(rng: np.random.Generator, sources: int) -> npt.NDArray[np.float64]:
    rare = np.zeros((sources, _CELLS["minority"]))
    holders = max(2, sources // 10)
    for column in rare.T:
        order = rng.permutation(sources)
        some = order[holders : holders + (sources - holders) // 3]
        column[order[:holders]] = rng.uniform(0.02, 0.08, min(holders, sources))
        column[some] = rng.uniform(0.001, 0.005, len(some))
    rest = rng.dirichlet(np.ones(_COMMON), sources) * (1 - rare.sum(axis=1, keepdims=True))
    return np.hstack([rare, rest])


def _whole(mix: npt.NDArray[np.float64], size: int) -> list[int]:
    counts = [int(share * size) for share in mix]
    counts[int(np.argmax(mix))] += size - sum(counts)
    return counts
