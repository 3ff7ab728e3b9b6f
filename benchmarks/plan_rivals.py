"""Plans against the repaired table's own frequencies as models for SCIP and HiGHS, from a textbook.

F_y is the share of label y in the repaired table, M_g the rows of group g in it. Whole numbers of
rows are added to and deleted from every cell, and x_gy, what is left, lies between (1 − τ)·F_y·M_g
and (1 + τ)·F_y·M_g. SCIP is given these products as they are.

HiGHS has no products and is given two models. In the first, each lies between its McCormick bounds
in one of some parts of the range of F_y, which relaxes the problem and bounds its cost. In the
second, F is what the first one found and the band is narrower, so that rounding the labels' totals
to whole rows does not break it: a plan. This is done with one part, in real numbers, and with
`PIECES` parts; the best plan and the best bound count. All plans are judged here in whole numbers.
"""

from __future__ import annotations

import json
import math
import sys
import time
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import plan_tables

PIECES = 8
ENOUGH = 1e-4  # the relative gap at which they may stop
NARROWER = 0.02  # of the tolerance


class Model(NamedTuple):
    """A table, what may be done to it, and the range of the frequencies of its labels."""

    have: Any
    tolerance: float
    delete: bool
    most: float  # rows that any cell may get
    low: Any
    high: Any


def model_of(table: str, tolerance: float, allow: str, labels: str = "keep") -> Model:
    _, (counted,) = plan_tables.counted(table).finest()
    have = np.asarray(counted, float)
    share = have.sum(axis=0) / have.sum()
    # Zero bias with the present labels by additions alone costs this much, so no more is needed.
    sizes = np.ceil((have / share).max(axis=1))
    most = float(sizes.sum() + have.size - have.sum())
    low, high = share * (1 - tolerance), np.minimum(share * (1 + tolerance), 1.0)
    if labels == "free":
        low, high = np.full_like(share, 1 / (have.sum() + most)), np.ones_like(share)
    return Model(have, tolerance, allow == "both", most, low, high)


def cost_of(model: Model, rows: Any) -> float | None:
    """What a plan costs; None if it is not one."""
    tolerance = Fraction(str(model.tolerance))
    after = [[round(value) for value in line] for line in rows]
    totals = [sum(column) for column in zip(*after, strict=True)]
    n = sum(totals)
    for line in after:
        size = sum(line)
        if min(line) < 0 or size < 1:
            return None
        for x, total in zip(line, totals, strict=True):
            if abs(x * n - size * total) > tolerance * size * total:
                return None
    return float(np.abs(np.asarray(after) - model.have).sum())


# --- SCIP ---------------------------------------------------------------------------------------


def scip(model: Model, time_limit: float) -> dict[str, Any]:
    from pyscipopt import Model as Scip
    from pyscipopt import quicksum

    groups, labels = model.have.shape
    asked = Scip()
    asked.hideOutput()
    asked.setParam("limits/time", time_limit)
    asked.setParam("limits/gap", ENOUGH)
    asked.setParam("parallel/maxnthreads", 1)
    cells = [(g, y) for g in range(groups) for y in range(labels)]
    n = model.have.sum()
    add = {c: asked.addVar(vtype="I", lb=0, ub=model.most) for c in cells}
    gone = {c: float(model.have[c]) if model.delete else 0.0 for c in cells}
    drop = {c: asked.addVar(vtype="I", lb=0, ub=gone[c]) for c in cells}
    size = [asked.addVar(lb=1, ub=n + model.most) for _ in range(groups)]
    total = [asked.addVar(lb=0, ub=n + model.most) for _ in range(labels)]
    everything = asked.addVar(lb=1, ub=n + model.most)
    share = [asked.addVar(lb=model.low[y], ub=model.high[y]) for y in range(labels)]
    part = {c: asked.addVar(lb=0, ub=n + model.most) for c in cells}
    rows = {c: float(model.have[c]) + add[c] - drop[c] for c in cells}
    for g in range(groups):
        asked.addCons(size[g] == quicksum(rows[g, y] for y in range(labels)))
        asked.addCons(size[g] == quicksum(part[g, y] for y in range(labels)))
    for y in range(labels):
        asked.addCons(total[y] == quicksum(rows[g, y] for g in range(groups)))
        asked.addCons(total[y] == quicksum(part[g, y] for g in range(groups)))
        asked.addCons(total[y] == share[y] * everything)
    asked.addCons(everything == quicksum(total))
    asked.addCons(quicksum(share) == 1)
    for g, y in cells:
        asked.addCons(part[g, y] == share[y] * size[g])
        asked.addCons(rows[g, y] <= (1 + model.tolerance) * part[g, y])
        asked.addCons(rows[g, y] >= (1 - model.tolerance) * part[g, y])
    asked.setObjective(quicksum(add.values()) + quicksum(drop.values()))
    start, started = time.perf_counter(), time.process_time()
    asked.optimize()
    seconds = {"wall": time.perf_counter() - start, "cpu": time.process_time() - started}
    cost, valid = None, True
    if asked.getNSols():
        best = asked.getBestSol()
        found = [[asked.getSolVal(best, rows[g, y]) for y in range(labels)] for g in range(groups)]
        cost = cost_of(model, found)
        valid = cost is not None
    bound = max(0.0, asked.getDualbound())
    return {"cost": cost, "valid": valid, "bound": bound, **seconds}


# --- HiGHS --------------------------------------------------------------------------------------


def highs(model: Model, time_limit: float) -> dict[str, Any]:
    start, started = time.perf_counter(), time.process_time()
    relaxed = _solved(_relaxation(model, 1), time_limit / 4, whole=False)
    bounds, plans = [0.0], []
    if relaxed.x is not None and relaxed.status == 0:
        bounds.append(math.ceil(relaxed.fun - 1e-6))  # costs are whole
        plans.append(_planned(model, relaxed.x, time_limit / 4))
    parts = _solved(_relaxation(model, PIECES), time_limit / 4)
    bounds.append(parts.mip_dual_bound or 0.0)
    if parts.x is not None:
        plans.append(_planned(model, parts.x, time_limit / 4))
    seconds = {"wall": time.perf_counter() - start, "cpu": time.process_time() - started}
    made = [rows for rows in plans if rows is not None]
    costs = [cost for rows in made if (cost := cost_of(model, rows)) is not None]
    valid = len(costs) == len(made)
    return {"cost": min(costs, default=None), "valid": valid, "bound": max(bounds), **seconds}


def _planned(model: Model, x: Any, time_limit: float) -> Any:
    """Rows of a plan around the frequencies of a relaxation, if there are any."""
    cells = model.have.size
    rows = model.have + (x[:cells] - x[cells : 2 * cells]).reshape(model.have.shape)
    found = _solved(_centred(model, rows.sum(axis=0) / rows.sum()), time_limit).x
    if found is None:
        return None
    moved = np.round(found[:cells] - found[cells : 2 * cells])
    return model.have + moved.reshape(model.have.shape)


def _solved(model: dict[str, Any], time_limit: float, *, whole: bool = True) -> Any:
    from scipy.optimize import milp

    options = {"time_limit": time_limit, "mip_rel_gap": ENOUGH}
    asked = model if whole else {**model, "integrality": np.zeros(len(model["c"]))}
    return milp(**asked, options=options)


class _Rows:
    """A linear model, written a row at a time; variables are added, deleted, then any others."""

    def __init__(self, model: Model, others: int) -> None:
        groups, labels = model.have.shape
        cells = groups * labels
        self.model, self.count = model, 2 * cells + others
        self.values: list[float] = []
        self.at: tuple[list[int], list[int]] = ([], [])
        self.low: list[float] = []
        self.high: list[float] = []
        one = np.arange(cells).reshape(groups, labels)
        self.of_group, self.of_label, self.all = one, one.T, one.ravel()

    def row(self, rows: Any, others: dict[int, float], low: float, high: float) -> None:
        """Bound the sum of (cells, weight) of the repaired table, and of other variables."""
        cells, number = self.model.have.size, len(self.low)
        before = 0.0
        terms = dict(others)
        for where, weight in rows:
            for c in np.atleast_1d(where):
                terms[int(c)] = terms.get(int(c), 0.0) + weight
                terms[cells + int(c)] = terms.get(cells + int(c), 0.0) - weight
                before += weight * self.model.have.flat[c]
        self.values += terms.values()
        self.at[0].extend([number] * len(terms))
        self.at[1].extend(terms)
        self.low.append(low - before)
        self.high.append(high - before)

    def model_of(self, whole: Any, most: Any) -> dict[str, Any]:
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint

        cells = self.model.have.size
        shape = (len(self.low), self.count)
        matrix = sparse.coo_array((self.values, self.at), shape).tocsr()
        gone = self.model.have.ravel() if self.model.delete else np.zeros(cells)
        prices = np.zeros(self.count)
        prices[: 2 * cells] = 1.0
        return {
            "c": prices,
            "integrality": np.concatenate([np.ones(2 * cells), whole]),
            "bounds": Bounds(
                np.zeros(self.count), np.concatenate([np.full(cells, self.model.most), gone, most])
            ),
            "constraints": LinearConstraint(matrix, self.low, self.high),
        }


def _centred(model: Model, centre: Any) -> dict[str, Any]:
    """The plan whose labels have these shares, nearly."""
    rows, labels = _Rows(model, 0), range(model.have.shape[1])
    room = NARROWER * model.tolerance
    for group in rows.of_group:
        rows.row([(group, 1.0)], {}, 1.0, math.inf)
        for y in labels:
            high, low = (1 + model.tolerance) * (1 - room), (1 - model.tolerance) * (1 + room)
            rows.row([(group[y], 1.0), (group, -high * centre[y])], {}, -math.inf, 0.0)
            rows.row([(group[y], 1.0), (group, -low * centre[y])], {}, 0.0, math.inf)
    for y in labels:
        for sign, low, high in ((1, -math.inf, 0.0), (-1, 0.0, math.inf)):
            share = centre[y] * (1 + sign * room)
            share = min(max(share, model.low[y]), model.high[y])
            rows.row([(rows.of_label[y], 1.0), (rows.all, -share)], {}, low, high)
    return rows.model_of(np.zeros(0), np.zeros(0))


def _relaxation(model: Model, pieces: int) -> dict[str, Any]:
    """Products F_y·M_g between their bounds in the part of the range that F_y lies in."""
    labels = model.have.shape[1]
    cells, n = model.have.size, model.have.sum() + model.most
    first_size, first_part = 3 * cells, 3 * cells + cells * pieces
    rows = _Rows(model, cells + cells * pieces + labels * pieces)
    edges = np.linspace(model.low, model.high, pieces + 1)  # a line an edge, a column a label
    for group in rows.of_group:
        rows.row([(group, 1.0)], {}, 1.0, math.inf)
        rows.row([(group, 1.0)], {2 * cells + int(c): -1.0 for c in group}, 0.0, 0.0)
        for y, c in enumerate(map(int, group)):
            product = 2 * cells + c
            sizes = [first_size + c * pieces + k for k in range(pieces)]  # M_g, in its part
            rows.row([(c, 1.0)], {product: -1 - model.tolerance}, -math.inf, 0.0)
            rows.row([(c, 1.0)], {product: model.tolerance - 1}, 0.0, math.inf)
            rows.row([(group, -1.0)], dict.fromkeys(sizes, 1.0), 0.0, 0.0)
            for ends, low, high in ((edges[:-1], 0.0, math.inf), (edges[1:], -math.inf, 0.0)):
                terms = {product: 1.0} | {
                    s: -float(e) for s, e in zip(sizes, ends[:, y], strict=True)
                }
                rows.row([], terms, low, high)
            for k, s in enumerate(sizes):
                rows.row([], {s: 1.0, first_part + y * pieces + k: -n}, -math.inf, 0.0)
    for y, label in enumerate(rows.of_label):
        rows.row([(label, 1.0)], {2 * cells + int(c): -1.0 for c in label}, 0.0, 0.0)
        rows.row([], {first_part + y * pieces + k: 1.0 for k in range(pieces)}, 1.0, 1.0)
    whole = np.concatenate([np.zeros(cells + cells * pieces), np.ones(labels * pieces)])
    most = np.concatenate([np.full(cells + cells * pieces, n), np.ones(labels * pieces)])
    return rows.model_of(whole, most)


RIVALS = {"SCIP": scip, "HiGHS": highs}

if __name__ == "__main__":
    case = json.loads(sys.argv[1])
    print(json.dumps(RIVALS[case["rival"]](model_of(**case["model"]), case["time_limit"])))
