"""Which groups a tolerance applies to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group, roll_up
from equipoise.plans.patterns import group_of, members
from equipoise.plans.targets import Ratios, require_agreement, require_consistent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.request import PlanRequest


@dataclass(frozen=True, eq=False)
class Judged:
    """A coarser group that must stay within the tolerance: the finest groups inside it, and its K."""

    lines: NDArray[np.intp]
    k: Real


def judged_groups(
    counts: Counts, codes: NDArray[np.int32], have: Whole, request: PlanRequest, ratios: Ratios
) -> tuple[NDArray[np.bool_], tuple[Judged, ...]]:
    """Which finest groups must stay within the tolerance, and which coarser ones in addition."""
    judged = _judged_finest(counts, codes, have, request, ratios)
    coarse = [Judged(members(counts, codes, group), ratio) for group, ratio in ratios.coarse]
    slack = min(request.tolerance, 1.0)
    require_agreement(counts, ratios.coarse, slack)
    for (group, ratio), each in zip(ratios.coarse, coarse, strict=True):
        if judged[each.lines].all():
            require_consistent(group, ratio, ratios.finest[each.lines], slack)
    if not coarse and (ratios.finest == 1).all():
        coarse = [
            Judged(lines, np.ones(have.shape[1]))
            for lines in _lattice_groups(counts, codes, have, request)
            if not judged[lines].all()
        ]
    if not judged.any() and not coarse:
        raise InputError(
            f"no group has {request.min_group:,} rows, so there is nothing to repair; lower `min_group`."
        )
    return judged, tuple(coarse)


def _judged_finest(
    counts: Counts, codes: NDArray[np.int32], have: Whole, request: PlanRequest, ratios: Ratios
) -> NDArray[np.bool_]:
    sizes = have.sum(axis=1)
    large = sizes >= request.min_group
    large |= sizes == 0  # only groups that must get their first rows are here without any
    wanted = np.zeros(len(codes), np.bool_)
    if request.constrain == "all":
        wanted = ~ratios.free
    elif request.constrain == "marginals":
        wanted[:] = len(counts.sensitive) == 1
    else:
        for pattern in request.constrain:
            lines = members(counts, codes, Group.parse(pattern))
            if not len(lines):
                raise InputError(f"`constrain` names the group {pattern}, which has no rows.")
            wanted[lines] = True
    if request.target_rates is not None:
        wanted &= ~ratios.free
    # A group with its own target is always judged.
    return np.asarray((wanted & large) | ratios.given)


def _lattice_groups(
    counts: Counts, codes: NDArray[np.int32], have: Whole, request: PlanRequest
) -> Iterable[NDArray[np.intp]]:
    """The finest groups inside each coarser group that a request judges."""
    sizes = [len(a) for a in counts.sensitive]
    if len(sizes) < 2 or (request.constrain == "all" and request.min_group <= 1):
        return  # coarser groups follow from their parts
    order = 1 if request.constrain == "marginals" else len(sizes) - 1
    lattice = roll_up(codes, sizes, [have], min_count=request.min_group, max_order=order)
    patterns = request.constrain if isinstance(request.constrain, tuple) else ("*",)
    wanted = [Group.parse(p) for p in patterns]
    for line in lattice.codes.tolist():
        group = group_of(counts.sensitive, line)
        if any(w.matches(group) for w in wanted):
            yield members(counts, codes, group)
