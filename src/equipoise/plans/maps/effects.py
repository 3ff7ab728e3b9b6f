"""What the moves of a policy map do to all groups: a point of the map as a plan, measured."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.plans.plan import Plan
from equipoise.plans.planned_biases import PlannedBiases, planned_biases
from equipoise.plans.scenario import make_scenario
from equipoise.values import MISSING

if TYPE_CHECKING:
    from equipoise.plans.maps.landscape import Landscape, MapPoint


@dataclass(frozen=True, eq=False)
class Effect:
    """UB of every group before and after the moves of one point, in whole rows."""

    point: MapPoint
    plan: Plan

    @functools.cached_property
    def biases(self) -> PlannedBiases:
        """UB of every group and label before and after the moves."""
        plan = self.plan
        missing = plan.request.plan_missing
        return planned_biases(plan.counts, [plan.after()], plan_missing=missing)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        c = self.plan.certificate
        rows = [{**row.to_dict(), "after": row.to_dict()["after"][0]} for row in self.biases.rows]
        return {
            "x": self.point.x,
            "y": self.point.y,
            "max_abs_ub_before": c.max_abs_ub_before,
            "max_abs_ub_after": c.max_abs_ub_after,
            "label_drift": c.label_drift,
            "groups": rows,
        }


def measure_effect(map_: Landscape, point: MapPoint) -> Effect:
    """Measure what the moves of a point do to all groups."""
    # A cost of the moves does not change what they do, and not every cost is one of cells.
    return Effect(point, _scenario(map_, int(point.x), int(point.y), {}))


def plan_of(map_: Landscape, x: int, y: int) -> Plan:
    """The plan that makes the moves of a point, with their costs."""
    moves = (map_.x, map_.cost_x, x), (map_.y, map_.cost_y, y)
    shared = map_.x.kind == map_.y.kind and map_.x.overlaps(map_.y) and x and y
    if shared and map_.cost_x != map_.cost_y:
        raise InputError(
            "both moves change the same cell, and a row of it costs "
            f"{map_.cost_x:g} by one and {map_.cost_y:g} by the other; a plan has one cost for each "
            "cell, so give both moves the same cost."
        )
    costs: dict[str, Any] = {}
    for move, cost, rows in moves:
        if cost != 1 and rows:
            costs.setdefault(f"cost_{move.kind}", []).append((str(move.pattern), cost))
    return _scenario(map_, x, y, costs)


def _scenario(map_: Landscape, x: int, y: int, costs: dict[str, Any]) -> Plan:
    listed: dict[str, list[tuple[str, int]]] = {"add": [], "delete": []}
    for move, rows in ((map_.x, x), (map_.y, y)):
        if rows:
            listed[move.kind].append((str(move.pattern), rows))
    # A map counts missing values as values, so its plan must, too.
    missing = any(MISSING in axis.codes for axis in map_.counts.axes)
    options = {**costs, **({"plan_missing": True} if missing else {})}
    return make_scenario(map_.counts, listed["add"], listed["delete"], options)
