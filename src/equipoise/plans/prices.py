"""What targets and coverage cost: the cheapest plan without each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.plans.rounds import solve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from equipoise.plans.problem import Problem

WITHOUT: dict[str, tuple[str, dict[str, Any]]] = {
    "target_rates": ("target rates", {"target_rates": None}),
    "group_shares": ("shares of groups", {"group_shares": (), "target_shares": None}),
    "at_least_each": ("minimum for every group", {"at_least_each": ()}),
}
"""What a plan may have a price for: its name, and the request without it."""

MOST_CELLS = 2_000
"""Larger tables are not planned again."""

EFFORT = 0.1
"""Share of the usual effort of a plan without a target."""


def prices_of(problem: Problem) -> dict[str, float]:
    """The cost of a plan without each target, compared with the same label frequencies."""
    request = problem.request
    if problem.have.size > MOST_CELLS or request.budget is not None:
        return {}
    found = {}
    for name, (_, change) in WITHOUT.items():
        if all(getattr(request, option) in (None, ()) for option in change):
            continue
        try:
            other = problem.again(**change, reference=problem.reference)
        except InputError:  # nothing is left to repair
            continue
        rows = solve(other, effort=EFFORT).rows
        if rows is not None:
            found[name] = other.cells.total_cost(rows)
    return found


def price_sentences(prices: Mapping[str, float], cost: float) -> Iterator[str]:
    """The price of each target in a sentence."""
    for name, without in prices.items():
        if name == "target_rates":
            yield (
                f"The target rates cost {cost:,.6g}; equal rates for all groups would cost "
                f"{without:,.6g}."
            )
        else:
            words = WITHOUT[name][0]
            yield f"With the {words} a plan costs {cost:,.6g}, and without {without:,.6g}."
