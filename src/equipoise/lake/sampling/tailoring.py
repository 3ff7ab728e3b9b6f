"""Buy the rows that are needed from sources that can only be sampled, each draw at a price.

A source gives random rows; those nobody needs are paid for, too. Where the mixes of the sources
are known, a linear program says how many draws of each cost least, and it is solved again as
draws come in. Where they are not, mixes are drawn from what is believed of them after the rows
seen so far (each cell's rates shrunk to what the sources have in common), the same program is
solved with these, and a few rows are bought where it says: a source is tried as often as it may
yet turn out to be the best. (A bonus for what is uncertain in place of the draw costs about the
same; what matters more is that the beliefs are shrunk, but not too much.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.offers.need import Planned
from equipoise.lake.sampling.policies import CHOICES, POLICIES, least_cost
from equipoise.lake.sampling.purchases import Policy, Standing, Tailored
from equipoise.lake.sampling.run import BuyingLimits, Run, buy
from equipoise.lake.sampling.sources import (
    Cell,
    SampledSource,
    cell_name,
    mix_of,
    mixes_of,
    name_untold,
    sizes_of,
)
from equipoise.plain import in_words
from equipoise.progress import Reporter, silent
from equipoise.validate import at_least, one_of


def tailor(
    sources: Sequence[SampledSource],
    need: Mapping[Cell, int] | Planned,
    *,
    budget: float | None = None,
    max_draws: int | None = None,
    min_rate: float = 0.001,
    stop: Callable[[Standing], bool] | None = None,
    batch: int | None = None,
    policy: Policy = "auto",
    keep: Callable[[str, Cell, Any], None] | None = None,
    seed: int = 0,
    progress: Reporter = silent,
) -> Tailored:
    """Draw from sources, at the least cost one can hope for, until there are enough rows.

    Whatever ends it, Ctrl-C and a source that fails among these, what was paid for is in the
    result; what is missing then can be asked for again.

    Parameters
    ----------
    sources
        Where rows can be drawn; see :class:`SampledSource`.
    need
        How many rows of which cell; or a plan, which needs what it adds.
    budget
        The most all draws may cost; never exceeded. If it is too small, it goes where it gives
        the most rows, of whichever cells.
    max_draws
        The most draws.
    min_rate
        A cell is given up in a source once its share of the rows there is below this, by a 95 %
        upper bound (and, if the source told its mix, below a tenth of that), and altogether
        once it is given up in every source. 0 never gives up.
    stop
        A rule of one's own: is asked before each round of draws whether this is enough.
    batch
        The most draws from one source at a time, for sources that cannot do more.
    policy
        ``"known"`` goes by the mixes the sources tell; ``"unknown"`` learns those that are not
        told; ``"auto"`` is the first if all are told, else the second; ``"random"`` draws from
        any source that may help, for comparison.
    keep
        Is given every row as it is kept, with the name of its source and its cell.
    seed
        Of all choices; the same seed and draws give the same result.
    progress
        Is told which source is drawn from, and the share of the need that is met.

    Examples
    --------
    >>> from equipoise.lake.sampling.sources import TableSource
    >>> young = TableSource("young", [(("w",), i) for i in range(80)] + [(("m",), 0)] * 20)
    >>> old = TableSource("old", [(("w",), i) for i in range(10)] + [(("m",), 0)] * 90, cost=2)
    >>> bought = tailor([young, old], {("w",): 30, ("m",): 5}, seed=1)
    >>> len(bought.rows["w",]), bought.missing, bought.stopped
    (30, {}, 'met')
    >>> [purchase.source for purchase in bought.purchases if purchase.draws]
    ['young']
    """
    one_of("policy", policy, POLICIES)
    if not isinstance(need, Mapping):
        need = {cell: n for cell, n in need.add.cells().items() if n}
    _require(sources, need, budget=budget, max_draws=max_draws, min_rate=min_rate, batch=batch)
    need = {cell: int(n) for cell, n in need.items()}
    told = all(mix_of(source) is not None for source in sources)
    chosen: Policy = ("known" if told else "unknown") if policy == "auto" else policy
    if chosen == "known" and not told:
        raise InputError(
            f"{name_untold(sources)} does not tell its mix, which policy 'known' needs; "
            "use policy 'unknown'."
        )
    limits = BuyingLimits(budget, max_draws, min_rate, batch, stop)
    run = Run(sources, need, limits, np.random.default_rng(seed), keep, progress)
    bound = lower_bound(sources, need) if told else math.inf
    buy(run, CHOICES[chosen])
    return Tailored(
        need=need,
        rows={cell: tuple(rows) for cell, rows in run.rows.items()},
        purchases=run.purchases(),
        stopped=run.stopped,
        reasons=run.reasons(),
        bound=bound if math.isfinite(bound) else None,
        policy=chosen,
        seed=seed,
        error=run.error,
    )


def lower_bound(sources: Sequence[SampledSource], need: Mapping[Cell, int]) -> float:
    """Tell what the rows needed cost at best, on average, where the mixes are known.

    The cost of the best fractional draws, which no way of buying can do with less than if the
    sources have no end. If they have, a source of N rows, K of them of a cell, counts as giving
    (K + 1)/(N + 1) of it a draw: just what one source and one cell cost on average. With
    several, one who leaves a source once it has given more than its share may do slightly
    better, which matters only where a large part of a source is drawn.

    Parameters
    ----------
    sources
        All must tell their mixes.
    need
        How many rows of which cell.

    Returns
    -------
    float
        Infinity if there are too few rows.

    Examples
    --------
    >>> from equipoise.lake.sampling.sources import TableSource
    >>> half = TableSource("half", [("w", 0), ("m", 1)])
    >>> lower_bound([half], {"w": 1})
    1.5
    """
    mixes, sizes = mixes_of(sources, list(need)), sizes_of(sources)
    if np.isnan(mixes).any():
        raise InputError(f"{name_untold(sources)} does not tell its mix, so no cost is known.")
    left = np.array(list(need.values()), float)
    supply = (mixes * np.where(mixes > 0, sizes[:, None], 0)).sum(axis=0)
    if (left > supply + 0.5).any():
        return math.inf
    finite = np.isfinite(sizes)
    there, rows = mixes[finite], sizes[finite, None]
    mixes[finite] = np.where(there > 0, (there * rows + 1) / (rows + 1), 0)
    costs = np.array([source.cost for source in sources], float)
    return float(costs @ least_cost(costs, mixes, left, sizes))


def _require(
    sources: Sequence[SampledSource],
    need: Mapping[Cell, int],
    *,
    budget: float | None,
    max_draws: int | None,
    min_rate: float,
    batch: int | None,
) -> None:
    names = [source.name for source in sources]
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"the sources are called {in_words(names) or 'nothing'}; "
            "give at least one, each with a name of its own."
        )
    for source in sources:
        at_least(f"the cost of a draw from {source.name}", source.cost, 0)
        if not 0 < source.cost < math.inf:
            raise InputError(f"the cost of a draw from {source.name} must be above 0.")
    for cell, rows in need.items():
        at_least(f"the need of {cell_name(cell)}", rows, 0, whole=True)
    at_least("min_rate", min_rate, 0)
    for name, value, least in (
        ("budget", budget, 0),
        ("max_draws", max_draws, 0),
        ("batch", batch, 1),
    ):
        if value is not None:
            at_least(name, value, least, whole=name != "budget")
