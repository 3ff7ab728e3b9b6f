"""A repair as a page: before, the plan, the sources of the rows, after, and the verification."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from equipoise.reports.bias.charts import heat_map
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import (
    Part,
    Section,
    bullets,
    folded,
    html_table,
    more,
    paragraph,
    render_page,
)
from equipoise.reports.plan.page import bias_charts, change_charts
from equipoise.reports.repair.charts import source_chart
from equipoise.reports.repair.data import PLACES, summarize_repair

if TYPE_CHECKING:
    from equipoise.lake.loop import Repaired


def render(
    done: Repaired,
    *,
    source: str | None = None,
    top: int = 50,
    lake: str | None = None,
    plan_file: str | None = None,
) -> str:
    """The page of a repair.

    ``lake`` and ``plan_file`` are the places of the lake, as a command takes them, and the file of
    the plan; they are used in the commands that check the result again.
    """
    data = summarize_repair(done, source=source, lake=lake, plan_file=plan_file, top=top)
    lacks = [bullets(data["lacks"]["sentences"])]
    lacks += [] if data["lacks"]["table"] is None else [html_table(data["lacks"]["table"])]
    sections = [
        Section("said", "Summary", [bullets(data["sentences"])]),
        Section("before", "Before", _before(data["before"])),
        Section("plan", "Plan", _plan(data["plan"])),
        Section("sources", "Sources of the added rows", _sources(data["sources"])),
        Section("lacks", "Missing rows, and why", lacks),
        Section("shift", "Do the added rows resemble the base?", _shift(data["shift"])),
        Section("after", "After", _after(data["after"], data["before"]["matrix"])),
        Section("verification", "Verification", _checks(data["verification"])),
        Section("commands", "How to check this again", _commands(data["commands"])),
    ]
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=sections,
        facts=data["facts"],
    )


def plot(done: Repaired) -> list[CaptionedChart]:
    """The rows each cell needed and where they came from, and |UB| before and after."""
    data = summarize_repair(done)
    return [*_source_charts(data["sources"]["chart"]), *_bias_charts(data["after"])]


def _before(data: Mapping[str, Any]) -> list[Part]:
    worst, parts = data["worst"], []
    if worst is None:
        return [paragraph("No row of the base has all its values.")]
    if data["matrix"]:
        caption = (
            "Uniform Bias of the base: red where a group has fewer rows with the label than its "
            "share, blue where it has more; grey where it has too few rows to tell."
        )
        parts.append(CaptionedChart(caption, heat_map, data["matrix"]))
    return [*parts, html_table(worst, more(worst["total"] - len(worst["rows"])))]


def _plan(data: Mapping[str, Any]) -> list[Part]:
    parts: list[Part] = [bullets(data["explanation"]), html_table(data["table"])]
    if data["changes"] is None:
        return [*parts, paragraph("Nothing needs to change.")]
    cells = html_table(data["cells"], more(data["left_out"], "cells"))
    return [*parts, *change_charts(data["changes"]), cells]


def _sources(data: Mapping[str, Any]) -> list[Part]:
    if not data["table"]["rows"]:
        return [paragraph("No rows were added.")]
    # Folded, since a repair may use many tables.
    matches = [
        folded(f"How {match['table']} was read", bullets(match["lines"]))
        for match in data["matches"]
    ]
    charts = _source_charts(data["chart"])
    return [*charts, html_table(data["table"]), paragraph(data["bound"]), *matches]


def _source_charts(data: Mapping[str, Any]) -> list[CaptionedChart]:
    parts = ["The rows that each cell needed, by the table they came from."]
    if "missing" in data["names"]:
        parts.append("Rows that no table has are red.")
    if data["shares"]:
        parts.append("Needs differ widely, so bars show shares; the numbers are on the right.")
    if data["others"]:
        parts.append(f"{data['others']:,} tables with fewer rows are drawn together.")
    if data["left_out"]:
        parts.append(f"{data['left_out']:,} more cells are not drawn.")
    return [CaptionedChart(" ".join(parts), source_chart, data)] if data["bars"] else []


def _shift(data: Mapping[str, Any] | None) -> list[Part]:
    if data is None:
        return []
    said = paragraph(
        "Added rows compared with base rows of the same cells, on the columns that were not "
        "planned for. The distance is 0 if both are alike and 1 if they have nothing in common; "
        "for rows from the same population it stays below the value of chance in 99 of 100 cases."
    )
    table = [html_table(data["table"])] if data["table"]["rows"] else []
    return [said, bullets(data["sentences"]), *table]


def _bias_charts(after: Mapping[str, Any]) -> list[CaptionedChart]:
    return bias_charts(after["biases"], "before (ring) and as counted after (dot)")


def _after(data: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[Part]:
    parts: list[Part] = [html_table(data["table"]), *_bias_charts(data)]
    if data["matrix"]:
        # One scale of colours, so that both matrices can be compared.
        bound = {"bound": before["bound"]} if before else {}
        caption = "Uniform Bias after the repair, in the colours of the first chart."
        parts.append(CaptionedChart(caption, heat_map, {**data["matrix"], **bound}))
    said = "This is about counts. It does not show that the added rows are true, or what a model "
    return [*parts, paragraph(f"{said}learns from them.")]


def _checks(data: Mapping[str, Any] | None) -> list[Part]:
    if data is None:
        return []
    said = (
        f"{data['sentence']} The checks read the base, the repaired table, the plan and the "
        "ledger, and use no code of the planner or of the search."
    )
    return [paragraph(said), html_table(data["table"])]


def _commands(commands: list[str]) -> list[Part]:
    if not commands:
        return []
    said = (
        "The first command needs only the files; the second fetches every added row again from its "
        "source and compares it."
    )
    if any(place in shlex.split(line) for line in commands for place in PLACES):
        said += " Replace words in capitals by your lake, plan or key."
    lines = "\n".join(escape(command) for command in commands)
    return [paragraph(said), f"<pre>{lines}</pre>"]
