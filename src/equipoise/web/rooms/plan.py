"""The room of plans: controls, and what the plan that they ask for changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from equipoise.errors import InputError
from equipoise.options.plan import MEASURED, PlanOptions
from equipoise.web.rooms.room import Ask, Room, Text, plain_twin, table_query
from equipoise.web.schema import offered
from equipoise.web.twins import Twin, quoted

if TYPE_CHECKING:
    from equipoise.plans.infeasibility import Infeasible
    from equipoise.plans.plan import Plan

OPTIONS = offered(PlanOptions)
DRAFT = 0.5
"""Time limit in seconds while a control is being dragged."""
ROUGH = 0.05
"""Gap at which the search stops meanwhile."""
_CELLS, _REASONS, _POINTS = 200, 60, 12
_FEW = 30
"""Cells and reasons that are shown meanwhile."""

NOT_VARIED = (
    *("tolerance", "budget", "priority", "policy", "objective", "gap", "time_limit"),
    *("pin", "draft", "move"),
)
"""Parameters that a frontier does not depend on."""

_MOVE = re.compile(r"(?P<pattern>.+)\s+(?P<rows>[+-]?\d+)", re.DOTALL)


def plan_query() -> Any:
    """Make the class of the address of this room."""
    return table_query(
        "PlanQuery",
        OPTIONS,
        move=(
            list[Text],
            Field(
                default_factory=list,
                max_length=200,
                description="Plan by hand: a pattern and the rows to add (+) or delete (-).",
                examples=["sex=Female, income=>50K +3000"],
            ),
        ),
        pin=(
            list[Text],
            Field(default_factory=list, max_length=12, description="Addresses of pinned plans."),
        ),
        draft=(
            bool,
            Field(default=False, description="Answer at once, though the plan may cost more."),
        ),
    )


def read_moves(texts: Sequence[str]) -> dict[str, Any]:
    """Read moves by hand as what is added and what is deleted.

    >>> read_moves(["sex=w, hired=yes +30", "sex=m -5"])
    {'add': [('sex=w, hired=yes', 30)], 'delete': [('sex=m', 5)]}
    """
    found: dict[str, Any] = {"add": [], "delete": []}
    for text in texts:
        match = _MOVE.fullmatch(text.strip().replace("\N{MINUS SIGN}", "-"))
        if match is None or not int(match["rows"]) or len(match["rows"]) > 16:
            raise InputError(
                f"a move is a pattern and the rows to add or delete, as in 'sex=Female +3000', not {text!r}."
            )
        rows = int(match["rows"])
        found["add" if rows > 0 else "delete"].append((match["pattern"].strip(), abs(rows)))
    return found


def make(ask: Ask, options: Mapping[str, Any], moves: Sequence[str]) -> Plan:
    """Make the plan that some options ask for, or the one that is drawn by hand."""
    from equipoise.api.plans import plan, scenario

    counts, given = ask.counted(), dict(options)
    if not [text for text in moves if text.strip()]:
        given |= targets_read(ask, given)
        made: Plan = plan(counts, **given, progress=ask.progress)
    else:
        drawn = read_moves([text for text in moves if text.strip()])
        made = scenario(counts, **drawn, **{k: v for k, v in given.items() if k in MEASURED})
    return named(made, ask)


def targets_read(ask: Ask, options: Mapping[str, Any]) -> dict[str, Any]:
    """How tables of targets are read: like the table itself, if there are any."""
    if not {"target_rates", "target_shares"} & set(options):
        return {}
    return {"engine": ask.engine, **{k: ask.table[k] for k in ("na",) if k in ask.table}}


def named(plan: Plan, ask: Ask) -> Plan:
    """The plan with the name of its table, as the user knows it."""
    from dataclasses import replace

    return replace(plan, source=ask.data)


def compute(ask: Ask) -> dict[str, Any]:
    """Make a plan and describe it, or say what would make it possible."""
    from equipoise.plans.infeasibility import Infeasible

    options = dict(ask.options)
    if ask.view.get("draft"):
        options["time_limit"] = min(options.get("time_limit", DRAFT), DRAFT)
        options["gap"] = max(options.get("gap", ROUGH), ROUGH)
    try:
        made = make(ask, options, ask.view.get("move", ()))
    except Infeasible as error:
        return {"feasible": False, "infeasible": _infeasible(error), "draft": False}
    draft = bool(ask.view.get("draft"))
    most = (_FEW, _FEW) if draft else (_CELLS, _REASONS)
    return {"feasible": True, "draft": draft, **describe(made, *most)}


def describe(plan: Plan, cells: int = _CELLS, reasons: int = _REASONS) -> dict[str, Any]:
    """A plan as the page shows it, with its largest changes and their reasons."""
    from equipoise.reports.plan.data import biases, changes

    counts, certificate = plan.counts, plan.certificate
    return {
        "attributes": [axis.name for axis in counts.sensitive],
        "label": counts.label.name,
        "additions": plan.additions,
        "deletions": plan.deletions,
        "cost": plan.cost,
        "bound": plan.bound,
        "gap": plan.gap,
        "method": plan.method,
        "timed_out": plan.timed_out,
        "reached": plan.reached,
        "n_before": certificate.n_before,
        "n_after": certificate.n_after,
        "sentences": list(plan.explanation),
        "reasons": list(plan.reasons[:reasons]),
        "certificate": certificate.to_dict(),
        "cells": [
            {"pattern": _pattern(c, counts.label.name), **c.to_dict()} for c in plan.moves[:cells]
        ],
        "cells_left_out": len(plan.moves[cells:]),
        "changes": changes(plan),
        "biases": biases(plan),
        "steps": [step.to_dict() for step in plan.steps],
    }


def _pattern(cell: Any, label: str) -> str:
    from equipoise.lattice import Group

    return str(Group({**cell.group, label: cell.label}))


def _infeasible(error: Infeasible) -> dict[str, Any]:
    told = error.to_dict()
    return {"sentence": str(error).partition("\n")[0], **told}


def compute_frontier(ask: Ask) -> dict[str, Any]:
    """Find the lowest cost at some tolerances, with all other options as they are."""
    from equipoise.api.plans import frontier
    from equipoise.plans.infeasibility import Infeasible

    options = {k: v for k, v in ask.options.items() if k not in NOT_VARIED}
    options.setdefault("reference", "new" if options.get("target") is None else "original")
    options |= targets_read(ask, options)
    try:
        front = frontier(
            ask.counted(), **options, points=_POINTS, time_limit=10.0, progress=ask.progress
        )
    except (Infeasible, InputError) as error:
        return {"points": [], "why": str(error).partition("\n")[0], "now": None, "sentences": []}
    told = front.to_dict()
    return {
        "points": told["points"],
        "now": told["now"],
        "why": None,
        "sentences": told["explanation"],
    }


def twin(ask: Ask, _: dict[str, Any]) -> list[Twin]:
    """Planning, or measuring a plan by hand."""
    return [plan_twin(ask, ask.options, ask.view["move"])]


def plan_twin(ask: Ask, options: Mapping[str, Any], moves: Sequence[str], **more: Any) -> Twin:
    """The step that makes a plan with some options, or the one that is drawn by hand."""
    from dataclasses import replace

    own = replace(ask, options=options)
    drawn = [text for text in moves if text.strip()]
    if not drawn:
        return plain_twin(own, "plan", "plan", OPTIONS, **more)
    read = read_moves(drawn)
    signed = [(p, f"{s}{n}") for k, s in (("add", "+"), ("delete", "-")) for p, n in read[k]]
    flags = [word for pattern, rows in signed for word in ("--move", quoted(pattern), rows)]
    more["flags"] = (*flags, *more.get("flags", ()))
    more["keywords"] = {**{k: v for k, v in read.items() if v}, **more.get("keywords", {})}
    measured = tuple(option for option in OPTIONS if option.keyword in MEASURED)
    return plain_twin(own, "plan", "scenario", measured, **more)


ROOM = Room(
    name="plan",
    title="Plan",
    about="What the smallest repair is, what it costs, and what it does to every group.",
    query=plan_query(),
    options=OPTIONS,
    compute=compute,
    files=("json", "csv", "html"),
    twin=twin,
)

FRONTIER = Room(
    name="frontier",
    title="Frontier",
    about="The lowest cost of a repair at each tolerance.",
    query=ROOM.query,
    options=OPTIONS,
    compute=compute_frontier,
    slow=True,
)
