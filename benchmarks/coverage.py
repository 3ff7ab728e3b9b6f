"""How often does the 95 % interval of UB contain the truth? Simulated, printed as Markdown.

    python benchmarks/coverage.py [--draws 10000] [--seed 1] [--quick]

The truth comes from the parameters of a setting: the rate of the label inside and outside the
group, and the group's share, which is that of the population when rows are drawn at random
("rows") and that of the table when group sizes are fixed ("groups"). A draw says nothing when
its UB is undefined (empty group, absent label) or zero by construction (no rest to compare
with); such draws are left out, and counted.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.measures.uncertainty.arrays import Floats
from equipoise.measures.uncertainty.intervals import ub_interval
from equipoise.options.measure import Sampling

CONFIDENCE = 0.95
WORST = 10


@dataclass(frozen=True)
class Setting:
    """One population, or one pair of group sizes, to draw tables from."""

    sampling: Sampling
    p1: float
    p0: float
    m: int
    share: float

    @property
    def n(self) -> int:
        """All rows of a drawn table."""
        return round(self.m / self.share)

    @property
    def true_ub(self) -> float:
        """UB that the parameters imply."""
        share = self.share if self.sampling == "rows" else self.m / self.n
        return 1 - self.p1 / (share * self.p1 + (1 - share) * self.p0)

    @property
    def expected(self) -> tuple[float, float, float, float]:
        """Expected rows with the label in group and rest, then those without it."""
        m, rest = self.m, self.n - self.m
        return m * self.p1, rest * self.p0, m * (1 - self.p1), rest * (1 - self.p0)

    def __str__(self) -> str:
        return (
            f"{self.sampling} | {self.p1:g} | {self.p0:g} | {self.m:,} | {self.n:,} "
            f"| {min(self.expected[:2]):.3g}"
        )


@dataclass(frozen=True)
class Measured:
    """What was seen in one setting."""

    setting: Setting
    coverage: float
    used: int
    left_out: int


@dataclass(frozen=True)
class Stratum:
    """Settings with one target."""

    name: str
    contains: Callable[[Setting], bool]
    least: float
    most: float

    def misses(self, measured: Measured) -> bool:
        """Tell whether a coverage is out of bounds."""
        return not self.least <= measured.coverage <= self.most


STRATA = (
    Stratum("all four ≥ 5", lambda s: min(s.expected) >= 5, 0.93, 0.99),
    Stratum(
        "both with the label ≥ 5, not all four",
        lambda s: min(s.expected[:2]) >= 5 > min(s.expected),
        0.93,
        0.99,
    ),
    Stratum("fewer", lambda s: min(s.expected[:2]) < 5, 0.90, 1.0),
)


def settings(*, quick: bool) -> Iterator[Setting]:
    """Go through the grid; without `quick` 900 settings a sampling model."""
    rates = (0.01, 0.1, 0.5, 0.9) if quick else (0.01, 0.05, 0.1, 0.3, 0.5, 0.9)
    sizes = (10, 100, 1_000) if quick else (10, 30, 100, 1_000, 10_000)
    shares = (0.1, 0.5) if quick else (0.01, 0.1, 0.3, 0.5, 0.9)
    models: tuple[Sampling, ...] = ("rows", "groups")
    for model, p1, p0, m, share in itertools.product(models, rates, rates, sizes, shares):
        yield Setting(model, p1, p0, m, share)


def measure(setting: Setting, draws: int, rng: np.random.Generator) -> Measured:
    """Draw tables and count the intervals that contain the truth."""
    n = setting.n
    m = np.full(draws, setting.m)
    if setting.sampling == "rows":
        m = rng.binomial(n, setting.share, draws)
    x = rng.binomial(m, setting.p1)
    total = x + rng.binomial(n - m, setting.p0)
    low, high = ub_interval(x, m, total, n, confidence=CONFIDENCE, sampling=setting.sampling)
    telling = ~np.isnan(low) & (m < n)
    hits = _contains(low[telling], high[telling], setting.true_ub)
    used = int(telling.sum())
    return Measured(setting, float(hits.mean()) if used else float("nan"), used, draws - used)


def _contains(
    low: Floats, high: Floats, truth: float
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    rounding = 1e-12 * max(1.0, abs(truth))
    return (low <= truth + rounding) & (truth - rounding <= high)


def summary(results: list[Measured]) -> Iterator[str]:
    """Write the table by sampling model and stratum."""
    yield "| sampling | expected counts | settings | min | median | max | target | below | above |"
    yield "| --- | --- | --: | --: | --: | --: | --- | --: | --: |"
    for model, stratum in itertools.product(("rows", "groups"), STRATA):
        chosen = [r for r in results if r.setting.sampling == model and stratum.contains(r.setting)]
        if not chosen:
            continue
        coverage = np.array([r.coverage for r in chosen])
        yield (
            f"| {model} | {stratum.name} | {len(chosen)} | {coverage.min():.4f} "
            f"| {np.median(coverage):.4f} | {coverage.max():.4f} "
            f"| {stratum.least:.2f}–{stratum.most:.2f} "
            f"| {(coverage < stratum.least).sum()} | {(coverage > stratum.most).sum()} |"
        )


def listing(results: list[Measured]) -> Iterator[str]:
    """Write one line a setting."""
    yield (
        "| sampling | p1 | p0 | group | rows | least expected with label | coverage | draws used "
        "| left out |"
    )
    yield "| --- |" + " --: |" * 8
    for r in results:
        yield f"| {r.setting} | {r.coverage:.4f} | {r.used:,} | {r.left_out:,} |"


def report(results: list[Measured], draws: int, seed: int) -> Iterator[str]:
    """Write the whole page."""
    noise = (CONFIDENCE * (1 - CONFIDENCE) / draws) ** 0.5
    yield "# Coverage of the 95 % interval of UB\n"
    yield (
        f"{len(results):,} settings, {draws:,} draws each (seed {seed}); the standard error of a "
        f"coverage is about {noise:.4f}.\n"
    )
    yield from summary(results)
    left_out = sum(r.left_out for r in results)
    yield f"\n{left_out:,} of {draws * len(results):,} draws were left out: nothing to measure."
    missed = [r for r in results for s in STRATA if s.contains(r.setting) and s.misses(r)]
    above = sum(r.coverage >= CONFIDENCE for r in missed)
    below = len(missed) - above
    yield f"\n## Outside their target: {len(missed)} ({below} below, {above} above)\n"
    yield from listing(missed) if missed else ["None."]
    yield f"\n## The {WORST} lowest\n"
    yield from listing(sorted(results, key=lambda r: r.coverage)[:WORST])


def main() -> None:
    """Parse, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, help="tables a setting (10000; quick: 2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a coarser grid, fewer draws")
    options = parser.parse_args()
    draws = options.draws or (2_000 if options.quick else 10_000)
    rng = np.random.default_rng(options.seed)
    start = time.perf_counter()
    results = [measure(s, draws, rng) for s in settings(quick=options.quick)]
    print("\n".join(report(results, draws, options.seed)))
    print(f"took {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
