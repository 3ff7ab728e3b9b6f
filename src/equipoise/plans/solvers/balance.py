"""Rows of two labels that are balanced: groups are moved from one solution to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.solvers.kinds import TwoLabelKinds

TRIED = 48
"""Numbers of rows tried for the group that settles the balance."""

SETTLING = 400
"""Maximum number of groups that are tried for settling the balance, the largest first."""

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
        settled = _settle(groups, band, m, c, rate, left, margin)
        if settled is None:
            return None
        g, m[g], c[g] = settled
    return np.stack([m, c], axis=1).astype(np.int64)


def _settle(
    groups: TwoLabelKinds,
    band: tuple[Real, Real],
    m: Real,
    c: Real,
    rate: float,
    left: float,
    margin: float,
) -> tuple[int, float, float] | None:
    """The cheapest change of one group that takes away the excess of the rarer label."""
    which = np.argsort(-(m + c), kind="stable")[:SETTLING]
    some = groups.take(which)
    low, high = band[0][which, None], band[1][which, None]
    now_m, now_c = m[which, None], c[which, None]
    reach = left / (1 - rate)
    ends = np.sort([-2.0 if reach > 0 else 2.0, reach + np.sign(reach) * 2.0, 2.0 * np.sign(reach)])
    trial = now_m - np.unique(np.rint(np.linspace(ends[0], ends[-1], TRIED)))
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
        return None
    return int(which[g]), float(trial[g, place]), float(other[g, place])
