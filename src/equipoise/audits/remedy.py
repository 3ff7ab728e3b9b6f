"""How the gaps of a table could be filled: a plan, and the tables that have rows for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equipoise.audits.audit import AuditSection
from equipoise.audits.subject import Subject
from equipoise.errors import EquipoiseError
from equipoise.plans.planner import make_plan
from equipoise.plans.request import PlanRequest
from equipoise.progress import Reporter, silent
from equipoise.results import Result

if TYPE_CHECKING:
    from equipoise.plans.plan import Plan

SECONDS = 20.0
"""Time limit of the search for the plan."""
_SHOWN = 20
_SENTENCES = 4


@dataclass(frozen=True, eq=False)
class Remedy:
    """A plan, or why there is none, and what tables offer for it."""

    plan: Plan | None
    reason: str = ""
    sources: Result | None = None
    """Offers of tables; None if none were searched."""

    @property
    def needs_rows(self) -> bool:
        """Whether there is anything to look for."""
        return self.plan is not None and self.plan.additions > 0

    def with_sources(self, sources: Result) -> Remedy:
        """The same with what tables offer."""
        return replace(self, sources=sources)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        plan = self.plan
        return {
            "plan": None
            if plan is None
            else {
                "additions": plan.additions,
                "cost": plan.cost,
                "lower_bound": plan.bound,
                "reached": plan.reached,
                "n_after": plan.certificate.n_after,
                "cells": [cell.to_dict() for cell in plan.moves],
            },
            "reason": self.reason or None,
            "sources": None if self.sources is None else self.sources.to_dict(),
        }


def find_remedy(subject: Subject, *, progress: Reporter = silent) -> Remedy:
    """Plan which rows would bring every group within the tolerance, or say why there is no plan."""
    if subject.options.suppress_below is not None:
        return Remedy(
            None,
            "No plan is shown, because it would list the rows of every cell, small counts among them. "
            "Make one without `suppress_below`, for readers who may see them.",
        )
    if subject.counts.weights is not None:
        return Remedy(None, "No plan was made, because rows are weighted.")
    options = subject.options
    request = PlanRequest(
        tolerance=options.tolerance, min_group=options.min_group, time_limit=SECONDS
    )
    try:
        plan = make_plan(subject.counts, request, progress=progress)
    except EquipoiseError as error:
        return Remedy(None, f"There is no plan with this tolerance: {error}")
    return Remedy(replace(plan, source=subject.source))


def remedy_sections(subject: Subject, remedy: Remedy) -> list[AuditSection]:
    """The plan, and its sources."""
    options, plan = subject.options, remedy.plan
    asked = (
        f"Asked for: the fewest rows to add such that every group of at least {options.min_group:,} rows "
        f"has |UB| of at most {options.tolerance:g} for every label, with the label frequencies kept "
        "within this tolerance. Every row costs 1."
    )
    if plan is None:
        return [AuditSection("plan", "How gaps could be filled", (remedy.reason,))]
    said = [asked, *plan.explanation[:_SENTENCES]]
    more = len(plan.moves) - _SHOWN
    if more > 0:
        said.append(f"The table shows the {_SHOWN} largest of {len(plan.moves):,} changes.")
    said.append(
        f"Measured again after the plan, {'every' if plan.reached else 'not every'} such group is within "
        "the tolerance."
    )
    return [
        AuditSection("plan", "How gaps could be filled", tuple(said), (plan.grid(_SHOWN),)),
        _sources(remedy),
    ]


def _sources(remedy: Remedy) -> AuditSection:
    title = "Where rows could come from"
    if remedy.sources is not None:
        grids = tuple(remedy.sources.grids())
        return AuditSection("sources", title, remedy.sources.sentences, grids)
    if not remedy.needs_rows:
        return AuditSection("sources", title, ("No rows are needed.",))
    return AuditSection(
        "sources",
        title,
        ("No sources were searched; name a folder of tables as `lake` to see what they offer.",),
    )
