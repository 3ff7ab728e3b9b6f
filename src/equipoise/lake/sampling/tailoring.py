"""Data set tailoring: buy the rows that are needed from sources that can only be sampled.

A source gives random rows, and rows that are not needed have to be paid for as well. If the mixes of
the sources are known, a linear program gives the cheapest numbers of draws, and is solved again as
rows arrive. If they are unknown, mixes are drawn from their posterior distributions given the rows
seen so far, with the rates of each cell shrunk towards what the sources have in common. The same
program is solved with these, and a few rows are bought accordingly: a source is tried as often as it
may yet turn out to be the best. (An upper confidence bound in place of the draw costs about the same.
What matters more is that the estimates are shrunk, but not too much.)
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
    """Draw from sources at the lowest expected cost until there are enough rows.

    Whatever ends the run, including Ctrl-C and a source that fails, the result has all rows that were
    paid for. The missing rows can be requested again.

    Parameters
    ----------
    sources
        Sources to draw from; see :class:`SampledSource`.
    need
        Number of rows needed by cell, or a plan whose additions are needed.
    budget
        Maximum cost of all draws; it is never exceeded. If it is too small, it is spent where it gives
        the most rows, of any cell.
    max_draws
        Maximum number of draws.
    min_rate
        Share of rows below which a cell is given up in a source, by a 95 % upper bound. If the source
        states its mix, the bound must also be below a tenth of the stated share. A cell is given up
        altogether once it is given up in every source. 0 never gives up.
    stop
        Function that decides before each round of draws whether to stop.
    batch
        Maximum number of draws from one source at a time.
    policy
        ``"known"`` uses the mixes that sources state. ``"unknown"`` estimates those that are not
        stated. ``"auto"`` is the former if all are stated, else the latter. ``"random"`` draws from any
        source that may help, for comparison.
    keep
        Function called with every row that is kept: name of the source, cell and row.
    seed
        Seed of all choices; the same seed and draws give the same result.
    progress
        Progress callback.

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
    limits = BuyingLimits(budget, max_draws, min_rate, batch, stop)
    _require(sources, need, limits)
    need = {cell: int(n) for cell, n in need.items()}
    told = all(mix_of(source) is not None for source in sources)
    chosen: Policy = ("known" if told else "unknown") if policy == "auto" else policy
    if chosen == "known" and not told:
        raise InputError(
            f"{name_untold(sources)} does not state its mix, which `policy='known'` needs; "
            "set `policy='unknown'`."
        )
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
    """Bound the expected cost of the needed rows from below, if all sources state their mixes.

    It is the cost of the best fractional draws, or infinity if there are too few rows. For infinite
    sources no policy costs less. A finite source of N rows, K of them of a cell, counts as giving
    (K + 1)/(N + 1) of it per draw, which is exact for one source and one cell. With several, a policy
    that leaves a source once it has given more than its share may be slightly cheaper, which matters
    only if a large part of a source is drawn.

    >>> from equipoise.lake.sampling.sources import TableSource
    >>> half = TableSource("half", [("w", 0), ("m", 1)])
    >>> lower_bound([half], {"w": 1})
    1.5
    """
    mixes, sizes = mixes_of(sources, list(need)), sizes_of(sources)
    if np.isnan(mixes).any():
        raise InputError(
            f"{name_untold(sources)} does not state its mix, so no cost can be computed."
        )
    left = np.array(list(need.values()), float)
    supply = (mixes * np.where(mixes > 0, sizes[:, None], 0)).sum(axis=0)
    if (left > supply + 0.5).any():  # rows are whole, so less than half a row is rounding
        return math.inf
    finite = np.isfinite(sizes)
    there, rows = mixes[finite], sizes[finite, None]
    mixes[finite] = np.where(there > 0, (there * rows + 1) / (rows + 1), 0)
    costs = np.array([source.cost for source in sources], float)
    return float(costs @ least_cost(costs, mixes, left, sizes))


def _require(
    sources: Sequence[SampledSource], need: Mapping[Cell, int], limits: BuyingLimits
) -> None:
    names = [source.name for source in sources]
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"`sources` has the names {in_words(names) or 'of no source'}; "
            "give at least one source, each with a different name."
        )
    for source in sources:
        at_least(f"the cost of a draw from {source.name}", source.cost, 0)
        if not 0 < source.cost < math.inf:
            raise InputError(f"the cost of a draw from {source.name} must be above 0.")
    for cell, rows in need.items():
        at_least(f"the need of {cell_name(cell)}", rows, 0, whole=True)
    at_least("min_rate", limits.min_rate, 0)
    for name, least in (("budget", 0), ("max_draws", 0), ("batch", 1)):
        if (value := getattr(limits, name)) is not None:
            at_least(name, value, least, whole=name != "budget")
