"""Plans made in a process of their own, for programs that must not end with a crash of the solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.progress import Reporter, silent
from equipoise.workers import Cancelled, Worker, WorkerEnded

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan
    from equipoise.plans.request import PlanRequest

__all__ = ["Aside", "Cancelled", "WorkerEnded", "plan_aside"]

GRACE = 30.0
"""Seconds beyond the time limit of a request that its explanation may take."""


def plan_aside(
    counts: Counts,
    request: PlanRequest,
    *,
    progress: Reporter = silent,
    cancelled: Callable[[], bool] = lambda: False,
) -> Plan:
    """Make one plan in a process of its own.

    Parameters
    ----------
    counts, request
        The table and what is requested, as for a plan in this process.
    progress
        Called with a title and the share done.
    cancelled
        Asked many times a second; if it returns true, the work ends with :class:`Cancelled`.

    Raises
    ------
    WorkerEnded
        If the process died, or took longer than the time limit of the request allows.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.plans.request import PlanRequest
    >>> cells = {("w", "yes"): 2, ("w", "no"): 8, ("m", "yes"): 5, ("m", "no"): 5}
    >>> counts = Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    >>> plan_aside(counts, PlanRequest(tolerance=0.1, reference="original")).cost
    5.0
    """
    with Aside() as aside:
        return aside.plan(counts, request, progress=progress, cancelled=cancelled)


class Aside(Worker):
    """A process that makes plans one after another; it starts when it is first needed.

    Threads may share it: each waits for its turn.
    """

    doing = "makes plans"

    def plan(
        self,
        counts: Counts,
        request: PlanRequest,
        *,
        progress: Reporter = silent,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Plan:
        """Make a plan, as :func:`plan_aside` does."""
        from equipoise.plans.planner import make_plan

        limit = 1.1 * request.time_limit + GRACE
        made: Plan = self.run(
            make_plan, counts, request, time_limit=limit, progress=progress, cancelled=cancelled
        )
        return made
