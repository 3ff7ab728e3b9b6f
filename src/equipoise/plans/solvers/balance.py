"""Rows of two labels that are balanced: groups are moved from one solution to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.solvers.kinds import TwoLabelKinds

    Settled: TypeAlias = tuple[float, list[tuple[int, float, float]]]
    """The cost of settling a balance, with the new rows of groups; infinite if there is no way."""

TRIED = 48
"""Numbers of rows tried for the group that settles the balance."""

SETTLING = 400
"""Maximum number of groups that are tried for settling the balance: those without limits, then the
largest."""

NEAR = 6
"""Number of rows by which each label of two groups that settle the balance together may change."""

OPTIONS = 250
"""Maximum number of changes that are tried in pairs, the cheapest first."""

CHEAP = 2.0
"""Cost of settling a balance exactly with one group, up to which no pairs are tried."""

PAIRED = 60
"""Maximum number of different groups that are tried for settling the balance in pairs."""

_HAIR = 1e-9


def balanced_rows(
    groups: TwoLabelKinds,
    band: tuple[Real, Real],
    sides: tuple[tuple[Real, Real], tuple[Real, Real]],
    *,
    rate: float,
    margin: float,
) -> Whole | None:
    """Mix two solutions so that the rarer label has a share of all rows, up to a margin in rows.

    In the first solution the label is too frequent and in the second too rare. Groups move from the
    first to the second, those that change the balance most first, and one group settles the rest.
    """
    (m, c), (other_m, other_c) = sides
    m, c = m.copy(), c.copy()
    excess = m - rate * (m + c)
    moved = excess - (other_m - rate * (other_m + other_c))
    left = float(excess.sum())
    for g in np.argsort(-moved, kind="stable").tolist():
        if moved[g] <= 0 or left <= margin:
            break
        if left - moved[g] >= -margin:
            m[g], c[g] = other_m[g], other_c[g]
            left -= float(moved[g])
    if abs(left) > margin:
        cost, changes = _settle(groups, band, m, c, rate, left, margin)
        if not changes or (margin < 0.5 and cost > CHEAP):
            other = _settle_two(groups, band, m, c, rate, left, margin)
            cost, changes = min((cost, changes), other, key=lambda settled: settled[0])
        if not changes:
            return None
        for g, new_m, new_c in changes:
            m[g], c[g] = new_m, new_c
    return np.stack([m, c], axis=1).astype(np.int64)


def _settle(
    groups: TwoLabelKinds,
    band: tuple[Real, Real],
    m: Real,
    c: Real,
    rate: float,
    left: float,
    margin: float,
) -> Settled:
    """The cheapest change of one group that takes away the excess of the rarer label."""
    width = band[1] - band[0]
    which = np.lexsort([-(m + c), width < 1])[:SETTLING]
    some = groups.take(which)
    low, high = band[0][which, None], band[1][which, None]
    now_m, now_c = m[which, None], c[which, None]
    reach = left / (1 - rate)
    ends = np.sort([-2.0 if reach > 0 else 2.0, reach + np.sign(reach) * 2.0, 2.0 * np.sign(reach)])
    steps = np.concatenate([np.linspace(ends[0], ends[-1], TRIED), np.arange(-NEAR, NEAR + 1.0)])
    trial = now_m - np.unique(np.rint(steps))
    wanted = now_m - rate * (now_m + now_c) - left
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(high > 0, trial * (1 - high) / high, np.inf)
        most = np.where(low > 0, trial * (1 - low) / low, np.inf)
    least = np.maximum(least, (trial * (1 - rate) - wanted - margin) / rate)
    most = np.minimum(most, (trial * (1 - rate) - wanted + margin) / rate)
    least = np.maximum(np.ceil(least - _HAIR), some.least[:, 1:])
    least = np.maximum(least, some.group_least[:, None] - trial)
    most = np.minimum(np.floor(most + _HAIR), some.most[:, 1:])
    possible = (least <= most) & (trial >= some.least[:, :1]) & (trial <= some.most[:, :1])
    other = np.clip(some.have[:, 1:], least, np.maximum(most, least))
    cost = some.cost(0, trial.T).T + some.cost(1, other.T).T
    cost -= (some.cost(0, now_m[:, 0]) + some.cost(1, now_c[:, 0]))[:, None]
    cost = np.where(possible, cost, np.inf)
    g, place = np.unravel_index(int(cost.argmin()), cost.shape)
    if not np.isfinite(cost[g, place]):
        return np.inf, []
    change = int(which[g]), float(trial[g, place]), float(other[g, place])
    return float(cost[g, place]), [change]


def _settle_two(
    groups: TwoLabelKinds,
    band: tuple[Real, Real],
    m: Real,
    c: Real,
    rate: float,
    left: float,
    margin: float,
) -> Settled:
    """The cheapest changes of two groups that take away the excess together.

    Small groups have few shares within a band, so one of them rarely balances a table to the row.
    """
    same = np.stack([*groups.have.T, m, c, *band], axis=1)
    which = np.sort(np.unique(same, axis=0, return_index=True)[1])[:PAIRED]
    which = np.unique(np.concatenate([which, which + 1]).clip(0, len(m) - 1))
    g, new_m, new_c, cost, excess = _near(groups.take(which), band, which, m, c, rate)
    order = np.argsort(cost, kind="stable")[:OPTIONS]
    g, new_m, new_c, cost, excess = (part[order] for part in (g, new_m, new_c, cost, excess))
    fits = np.abs(left + excess[:, None] + excess) <= margin
    fits &= g[:, None] != g
    both = np.where(fits, cost[:, None] + cost, np.inf)
    if not np.isfinite(both).any():
        return np.inf, []
    pair = np.unravel_index(int(both.argmin()), both.shape)
    return float(both[pair]), [(int(g[i]), float(new_m[i]), float(new_c[i])) for i in pair]


def _near(
    some: TwoLabelKinds, band: tuple[Real, Real], which: Any, m: Real, c: Real, rate: float
) -> tuple[Any, ...]:
    """The rows near those of some groups that are within their bands, with what they change."""
    steps = np.arange(-NEAR, NEAR + 1.0)
    now_m, now_c = m[which, None, None], c[which, None, None]
    new_m, new_c = np.broadcast_arrays(now_m + steps[:, None], now_c + steps)
    size = new_m + new_c
    low, high = (edge[which, None, None] for edge in band)
    good = (size >= np.maximum(some.group_least, 1)[:, None, None]) & (new_m >= low * size - _HAIR)
    good &= new_m <= high * size + _HAIR
    for y, new in enumerate((new_m, new_c)):
        good &= (new >= some.least[:, y, None, None]) & (new <= some.most[:, y, None, None])
    line, *_ = at = np.nonzero(good)
    after = some.take(line)
    new_m, new_c = new_m[at], new_c[at]
    cost = after.cost(0, new_m) + after.cost(1, new_c)
    cost -= (some.cost(0, m[which]) + some.cost(1, c[which]))[line]
    change = new_m - m[which][line]
    excess = change - rate * (change + new_c - c[which][line])
    return which[line], new_m, new_c, cost, excess
