"""The page of a result, whatever the result is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.reports.frame.html import Section, bullets, html_table, render_page

if TYPE_CHECKING:
    from equipoise.results import Result


def write_page(
    result: Result,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
    **more: Any,
) -> None:
    """Write the page of a result: its own, or that which every result has.

    Parameters
    ----------
    result
        Any result.
    path
        File to write; it is written atomically.
    source
        Name by which the reader knows the table that the page is about.
    top
        Maximum number of rows of a table to show.
    more
        Further parameters of the page of a repair.
    """
    # Only the page that is written is loaded, and with it only what it needs.
    name = {kind.__name__ for kind in type(result).__mro__}
    if "BiasTable" in name:
        from equipoise.reports.bias.page import write_report

        write_report(result.ordered, path, source=source, top=top)  # type: ignore[attr-defined]
    elif "Plan" in name:
        from equipoise.reports.plan.page import write_plan

        write_plan(result, path, source=source, top=top)  # type: ignore[arg-type]
    elif "Frontier" in name:
        from equipoise.reports.frontier.page import write_frontier

        write_frontier(result, path, source=source)  # type: ignore[arg-type]
    elif "PolicyMap" in name:
        from equipoise.reports.policy_map.page import write_map

        write_map(result, path, source=source)  # type: ignore[arg-type]
    elif "Evaluation" in name:
        from equipoise.reports.evaluation.page import write_evaluation

        write_evaluation(result, path)  # type: ignore[arg-type]
    elif "MethodComparison" in name:
        from equipoise.reports.missing.page import write_missing

        write_missing(result, path, source=source, top=top)  # type: ignore[arg-type]
    elif "Repaired" in name:
        from equipoise.reports.repair.page import write_repair

        write_repair(result, path, source=source, top=top, **more)  # type: ignore[arg-type]
    else:
        atomic.write_text(path, render_result(result, source=source, top=top))


def render_result(result: Result, *, source: str | None = None, top: int = 50) -> str:
    """The page that every result has: its sentences and its tables.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("<m>", "y"): 60, ("<m>", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render_result(eq.check(eq.measure(counts), max_abs_ub=0.1))
    >>> "sex=&lt;m&gt;" in page, "<m>" in page
    (True, False)
    """
    title = result.heading or type(result).__name__
    sections = [Section("said", "What was found", bullets(result.sentences))]
    for number, grid in enumerate(result._grids(), start=1):  # noqa: SLF001 - of all results
        table = grid.to_dict()
        left = len(table["rows"][top:])
        line = table["line"] if table["line"] is not None and table["line"][0] < top else None
        after = f'<p class="after">… and {left:,} more rows.</p>' if left else ""
        shown = html_table({**table, "rows": table["rows"][:top], "line": line})
        sections.append(Section(f"table-{number}", "The numbers", shown + after))
    return render_page(
        title=title,
        source=source or "",
        figures=[],
        sections=sections,
        facts=[
            *([["source", source]] if source else []),
            ["made by", f"equipoise {result.version}"],
            ["time", result.time],
        ],
    )
