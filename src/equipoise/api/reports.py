"""Results as pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.evaluation.evaluation import Evaluation
    from equipoise.evaluation.missing.comparison import MissingValues
    from equipoise.evaluation.missing.simulation import MissingSimulation
    from equipoise.lake.loop import Repaired
    from equipoise.measures.table import BiasTable
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.plan import Plan


def report(
    table: BiasTable | Plan | Frontier | Repaired | Evaluation | MissingValues | MissingSimulation,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
) -> None:
    """Write a result as one HTML page with pictures, that needs nothing from outside.

    Parameters
    ----------
    table
        What :func:`measure`, :func:`plan`, :func:`frontier`, :func:`repair`, :func:`evaluate`,
        :func:`compare_missing` or :func:`simulate_missing` gave.
    path
        The file to write; it is whole or not there.
    source
        What the page calls the table it is about.
    top
        How many rows to show.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from equipoise import measure
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "adult.html"
    >>> table = measure("adult", sensitive_features=["sex"], label="income")
    >>> report(table, page, source="adult")
    >>> "Uniform Bias" in page.read_text(encoding="utf-8")
    True
    """
    from equipoise.evaluation.evaluation import Evaluation
    from equipoise.evaluation.missing.comparison import MissingValues
    from equipoise.evaluation.missing.simulation import MissingSimulation
    from equipoise.lake.loop import Repaired
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.plan import Plan
    from equipoise.reports.bias.page import write_report
    from equipoise.reports.evaluation.page import write_evaluation
    from equipoise.reports.frontier.page import write_frontier
    from equipoise.reports.missing.page import write_missing
    from equipoise.reports.plan.page import write_plan
    from equipoise.reports.repair.page import write_repair

    if isinstance(table, Plan):
        write_plan(table, path, source=source or "", top=top)
        return
    if isinstance(table, Frontier):
        write_frontier(table, path, source=source or "")
        return
    if isinstance(table, Evaluation):
        write_evaluation(table, path)
        return
    if isinstance(table, (MissingValues, MissingSimulation)):
        write_missing(table, path, source=source, top=top)
        return
    if isinstance(table, Repaired):
        write_repair(table, path, source=source, top=top)
        return
    write_report(table.ordered, path, source=source, top=top)
