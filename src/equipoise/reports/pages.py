"""The page of a result, whatever the result is."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.credentials import scrubbed, without_password
from equipoise.reports.frame.html import Section, bullets, html_table, more, render_page

if TYPE_CHECKING:
    from equipoise.results import Result

SUBJECTS = {
    "Audit": "audit",
    "BiasTable": "bias",
    "Plan": "plan",
    "PlanComparison": "plan_comparison",
    "Frontier": "frontier",
    "Sweep": "sweep",
    "PolicyMap": "policy_map",
    "Repaired": "repair",
    "Evaluation": "evaluation",
    "MethodComparison": "missing",
    "History": "history",
}
"""The folder of each kind of result that has its own page.

Its module ``page`` has two functions: ``render(result, *, source, top)`` returns the page, and
``plot(result)`` the charts of the picture of a result.
"""


def page_of(result: Any) -> ModuleType | None:
    """The module of a result's own page, if it has one."""
    # Names instead of classes, so that only the page that is written is loaded.
    names = [kind.__name__ for kind in type(result).__mro__]
    subject = next((SUBJECTS[name] for name in names if name in SUBJECTS), None)
    return importlib.import_module(f"equipoise.reports.{subject}.page") if subject else None


def write_page(
    result: Result,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
    **options: Any,
) -> None:
    """Write the page of any result, atomically; ``options`` are those of the page of a repair."""
    own = page_of(result)
    render = render_result if own is None else own.render
    named = {name: scrubbed(text) for name, text in options.items() if isinstance(text, str)}
    shown = None if source is None else without_password(source)
    atomic.write_text(path, render(result, source=shown, top=top, **{**options, **named}))


def render_result(result: Result, *, source: str | None = None, top: int = 50) -> str:
    """The page of a result without its own page: its sentences and its tables.

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
    sections = [Section("said", "Summary", [bullets(result.sentences)])]
    for number, grid in enumerate(result.grids(), start=1):
        table = grid.to_dict()
        # A dividing line below the last row shown would divide nothing.
        line = table["line"] if table["line"] is not None and table["line"][0] < top else None
        shown = {**table, "rows": table["rows"][:top], "line": line}
        after = more(len(table["rows"][top:]))
        sections.append(Section(f"table-{number}", "Numbers", [html_table(shown, after)]))
    return render_page(
        title=result.heading or type(result).__name__,
        source=source or "",
        figures=[],
        sections=sections,
        facts=[
            *([["source", source]] if source else []),
            ["made by", f"equipoise {result.version}"],
            ["time", result.time],
        ],
    )
