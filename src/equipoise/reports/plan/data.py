"""The charts of a plan, as plain data: the cells that change, and UB before and after."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import LatticeTooLarge
from equipoise.lattice import Group, format_value, roll_up
from equipoise.measures.uniform_bias import ub_of
from equipoise.plans.problem import known_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan, PlanCell

BARS = 24
"""Maximum number of cells or groups in a chart."""
_SMALL = 30
"""If there are more groups, those with fewer rows are drawn only beyond the tolerance."""
_VISIBLE = 0.01
"""Changes below this share of the largest would be bars of less than four pixels."""
_MEMORY = 1_000_000_000
"""Maximum number of bytes for the lattice of a chart."""


# ----------------------------------------------------------------------------- changes


def changes(plan: Plan) -> dict[str, Any]:
    """The cells that change most: rows that stay, rows deleted, rows added.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> [(bar["name"], bar["text"]) for bar in changes(eq.plan(counts))["bars"]]
    [('sex=m → not', '290 + 30 = 320'), ('sex=w → hired', '40 + 15 = 55')]
    """
    moves = plan.moves
    least = _VISIBLE * max((_size(m) for m in moves), default=0)
    shown = [m for m in moves[:BARS] if _size(m) >= least]
    return {
        "bars": [_bar(m) for m in shown],
        "left_out": len(moves) - len(shown),
    }


def _size(move: PlanCell) -> int:
    return move.add + move.delete


def _bar(move: PlanCell) -> dict[str, Any]:
    name = f"{move.group} → {format_value(move.label)}"
    steps = [f"{move.before:,}"]
    steps += [f"− {move.delete:,}"] * bool(move.delete) + [f"+ {move.add:,}"] * bool(move.add)
    text = f"{' '.join(steps)} = {move.after:,}"
    return {
        "name": name,
        "stay": move.before - move.delete,
        "delete": move.delete,
        "add": move.add,
        "text": text,
        "about": f"{name}: {text} rows",
    }


# ------------------------------------------------------------------------------ biases


def biases(plan: Plan, measured: tuple[Counts, Counts] | None = None) -> dict[str, Any]:
    """The groups and labels with the largest |UB|, before and after a plan, worst first.

    With ``measured``, the counts of a table and of the repaired one, these are compared instead,
    each against its own label frequencies.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> data = biases(eq.plan(counts, tolerance=0.1, allow="both"))
    >>> data["title"], data["limit"]
    ('|UB| for outcome=hired', 0.1)
    >>> [(pair["name"], round(pair["before"], 3)) for pair in data["pairs"]]
    [('sex=w', 0.2), ('sex=m', 0.067)]
    """
    counts, there = _tables(plan, *(measured or (plan.counts, plan.after())))
    reference = plan.certificate.reference if measured is None else "new"
    lines, sizes, before, after = _distances(plan, counts, there, reference)
    label = counts.label
    totals = np.bincount(counts.codes[:, -1], counts.rows, len(label))
    # Two labels mirror each other; UB of the rarer one is larger and says more.
    one = len(label) == 2
    chosen = np.array([int(totals.argmin())]) if one else np.arange(len(label))
    worse = np.fmax(before, after)[:, chosen]
    order = np.argsort(-worse, axis=None, kind="stable")
    order = order[np.isfinite(worse.ravel()[order])]
    least = 1 if len(order) <= BARS else _SMALL
    # Numbers of groups exactly at the tolerance may exceed it by rounding errors.
    beyond = (after[:, chosen] > (_limit(plan) or math.inf) + 1e-12) | (sizes >= least)[:, None]
    total, order = len(order), order[beyond.ravel()[order]]
    pairs = []
    for place in order[:BARS].tolist():
        line, y = divmod(place, len(chosen))
        code = int(chosen[y])
        name = str(_group(counts, lines[line]))
        if not one:
            name += f" → {format_value(label.values[code])}"
        pairs.append(_pair(name, before[line, code], after[line, code], _limit(plan)))
    what = str(Group({label.name: label.values[int(chosen[0])]})) if one else label.name
    return {
        "title": f"{_kind(plan)} for {what}",
        "limit": _limit(plan),
        "targets": plan.certificate.targets,
        "reference": reference,
        "pairs": pairs,
        "least": least,
        "left_out": total - len(pairs),
    }


def _distances(
    plan: Plan, counts: Counts, there: tuple[NDArray[Any], ...], reference: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Every group of the lattice, its rows, and its distance before and after."""
    codes, have, rows = there
    sizes = [len(a) for a in counts.sensitive]
    try:
        lattice = roll_up(
            codes, sizes, [have, rows], min_count=plan.request.min_group, memory=_MEMORY
        )
        lines, (first, last) = lattice.codes, lattice.columns
    except LatticeTooLarge:  # a chart of the finest groups is better than none
        lines, first, last = codes, have, rows
    present, own = have.sum(axis=0), rows.sum(axis=0)
    held = present if reference == "original" else own
    on = plan.request.tolerance_on
    return lines, first.sum(axis=1), _off(first, present, on), _off(last, held, on)


def _tables(
    plan: Plan, before: Counts, after: Counts
) -> tuple[Counts, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """The finest groups of both tables, and their rows by label before and after."""
    both = [known_rows(c, plan_missing=plan.request.plan_missing)[0] for c in (before, after)]
    # Adding nothing of the other table puts both on the same axes, with all values of either.
    both = [both[0] + (both[1] - both[1]), both[1] + (both[0] - both[0])]
    both[1] = both[1].with_axes(both[0])
    codes = np.unique(np.concatenate([c.codes[:, :-1] for c in both]), axis=0)
    place = {tuple(c): i for i, c in enumerate(codes.tolist())}
    tables = [np.zeros((len(codes), len(both[0].label)), np.int64) for _ in both]
    for counts, table in zip(both, tables, strict=True):
        for (*group, y), n in zip(counts.codes.tolist(), counts.rows.tolist(), strict=True):
            table[place[tuple(group)], y] += n
    return both[0], (codes, tables[0], tables[1])


def _off(rows: NDArray[Any], labels: NDArray[Any], on: str) -> NDArray[Any]:
    """The distance of groups from the label frequencies of a table, given by its rows by label."""
    n, n_g = labels.sum(), rows.sum(axis=1, keepdims=True)
    if on == "ub":
        return np.asarray(np.abs(ub_of(n=n, n_y=labels, n_g=n_g, n_gy=rows)))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(rows / n_g - labels / max(n, 1)))


def _group(counts: Counts, line: NDArray[Any]) -> Group:
    pairs = zip(counts.sensitive, line.tolist(), strict=True)
    return Group({a.name: a.values[c] for a, c in pairs if c < len(a)})


def _pair(name: str, before: float, after: float, limit: float | None) -> dict[str, Any]:
    numbers = [None if not math.isfinite(v) else float(v) for v in (before, after)]
    texts = ["–" if v is None else f"{v:.3f}" for v in numbers]
    return {
        "name": name,
        "before": numbers[0],
        "after": numbers[1],
        "outside": limit is not None and numbers[1] is not None and numbers[1] > limit + 1e-12,
        "text": f"{texts[0]} → {texts[1]}",
        "about": f"{name}: {texts[0]} before, {texts[1]} after",
    }


def _kind(plan: Plan) -> str:
    return "|UB|" if plan.request.tolerance_on == "ub" else "difference of rates"


def _limit(plan: Plan) -> float | None:
    """The tolerance, if it is a limit on the numbers that are drawn."""
    asked = plan.request
    plain = not plan.certificate.targets and asked.policy is None and isinstance(asked.labels, str)
    return asked.tolerance if asked.tolerance and plain else None
