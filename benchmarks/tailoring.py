"""Tailoring: what rows cost when sources can only be sampled, against the least they could cost.

Lakes are made up (`simulated_sources.py` describes both kinds). Seeds below 1,000 were used
to choose the constants of the policies; those here were not.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass

from bars import Bar, Section, markdown_table
from simulated_sources import KINDS, simulate

SEEDS = range(1000, 1020)
SOURCES = (10, 50)
POLICIES = ("known", "unknown", "random")
MOST_KNOWN, MOST_UNKNOWN = 1.06, {10: 1.4, 50: 1.8}


@dataclass(frozen=True)
class Outcome:
    """One lake bought from in one way."""

    ratio: float  # of the cost to the lower bound
    rows: int
    draws: int
    seconds: float


def section() -> Section:
    """Buy from every lake in every way and judge what it cost."""
    lines, bars = [], []
    for kind in KINDS:
        for sources in SOURCES:
            print(f"tailoring: {kind}, {sources} sources ...", file=sys.stderr, flush=True)
            done = {p: [_bought(kind, sources, p, seed) for seed in SEEDS] for p in POLICIES}
            lines += [_line(kind, sources, policy, done[policy]) for policy in POLICIES]
            bars += _bars(f"{kind}, {sources} sources", sources, done)
    how = (
        f"Cost of all rows needed as a multiple of the lower bound from the true mixes, over "
        f"{len(SEEDS)} lakes each; in every other one draws cost the same in all sources, else "
        "0.5 to 2. `random` draws from any source that may help. A bound on the average may be "
        "beaten in one lake."
    )
    header = ["lake", "sources", "mixes", "cost ×", "median", "largest", "rows", "draws", "s a run"]
    return Section("Tailoring", [how, markdown_table(header, lines)], bars)


def _bought(kind: str, sources: int, policy: str, seed: int) -> Outcome:
    from equipoise.lake.sampling.tailoring import lower_bound, tailor

    costs = "varied" if seed % 2 else "equal"
    told = simulate(kind, sources, seed=seed, costs=costs)
    bound = lower_bound(told.sources, told.need)
    lake = simulate(kind, sources, seed=seed, costs=costs, tells=policy == "known")
    start = time.perf_counter()
    got = tailor(lake.sources, lake.need, policy=policy, seed=seed)
    seconds = time.perf_counter() - start
    if got.missing:
        raise AssertionError(f"rows are missing: {got}")
    return Outcome(got.cost / bound, got.kept, got.draws, seconds)


def _line(kind: str, sources: int, policy: str, done: list[Outcome]) -> list[str]:
    ratios = [outcome.ratio for outcome in done]
    return [
        kind,
        str(sources),
        policy,
        f"{statistics.fmean(ratios):.3f}",
        f"{statistics.median(ratios):.3f}",
        f"{max(ratios):.3f}",
        f"{statistics.fmean(o.rows for o in done):,.0f}",
        f"{statistics.fmean(o.draws for o in done):,.0f}",
        f"{statistics.fmean(o.seconds for o in done):.2f}",
    ]


def _bars(where: str, sources: int, done: dict[str, list[Outcome]]) -> list[Bar]:
    mean = {
        policy: statistics.fmean(o.ratio for o in outcomes) for policy, outcomes in done.items()
    }
    return [
        Bar(f"{where}, mixes known, mean cost against the bound", mean["known"], MOST_KNOWN),
        Bar(
            f"{where}, mixes unknown, mean cost against the bound",
            mean["unknown"],
            MOST_UNKNOWN[sources],
        ),
    ]


if __name__ == "__main__":
    print(section().markdown())
