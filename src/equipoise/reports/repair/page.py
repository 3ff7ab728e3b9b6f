"""A repair as a page: before, the plan, where the rows are from, after, and the proof."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.reports.frame.html import Section, bullets, figure, html_table, render_page
from equipoise.reports.plan.page import biases_caption, changes_caption
from equipoise.reports.repair.data import PLACES, summarize_repair

if TYPE_CHECKING:
    from equipoise.lake.loop import Repaired


def write_repair(
    done: Repaired,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    lake: str | None = None,
    plan_file: str | None = None,
    top: int = 50,
) -> None:
    r"""Write a repair as a page; without the charts if they cannot be drawn.

    Parameters
    ----------
    done
        What :func:`equipoise.repair` gave.
    path
        The file to write; it is whole or not there.
    source
        What the page calls the table that was repaired.
    lake, plan_file
        The places of the lake, as one writes them in a command, and the file of the plan, for
        the commands that check the result again.
    top
        How many of the cells that change are listed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import equipoise as eq
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "lake").mkdir()
    >>> _ = (folder / "lake" / "more.csv").write_text("id,sex,hired\n7,w,yes\n8,m,no\n9,w,yes\n")
    >>> _ = (folder / "people.csv").write_text(
    ...     "id,sex,hired\n1,w,no\n2,w,no\n3,w,yes\n4,m,yes\n5,m,yes\n6,m,no\n"
    ... )
    >>> done = eq.repair(
    ...     folder / "people.csv", folder / "lake", sensitive_features=["sex"], label="hired"
    ... )
    >>> write_repair(done, folder / "repair.html", source="people.csv")
    >>> "<h2>Where the rows are from</h2>" in (folder / "repair.html").read_text("utf-8")
    True
    """
    data = summarize_repair(done, source=source, lake=lake, plan_file=plan_file, top=top)
    atomic.write_text(path, render_repair(data, draw_repair(data)))


def draw_repair(data: Mapping[str, Any]) -> dict[str, str]:
    """Draw every chart of a repair: HTML fragments by name."""
    from equipoise.reports.bias.charts import heat_map
    from equipoise.reports.charts.before_after import bias_chart
    from equipoise.reports.charts.vega import to_html_fragment
    from equipoise.reports.plan.charts import change_chart
    from equipoise.reports.repair.charts import source_chart

    first, last = data["before"]["matrix"], data["after"]["matrix"]
    if first and last:  # one scale of colours, so that the two can be compared
        last = {**last, "bound": first["bound"]}
    wanted: list[tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]], Any]] = [
        ("before", heat_map, first),
        ("changes", change_chart, data["plan"]["changes"]),
        ("sources", source_chart, _if_any(data["sources"]["chart"], "bars")),
        ("biases", bias_chart, _if_any(data["after"]["biases"], "pairs")),
        ("after", heat_map, last),
    ]
    try:
        return {name: to_html_fragment(draw(what)) for name, draw, what in wanted if what}
    except MissingDependency as absent:
        return {"absent": f"<p>{escape(str(absent))}</p>"}


def _if_any(data: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    return data if data[name] else None


def render_repair(data: Mapping[str, Any], charts: Mapping[str, str] | None = None) -> str:
    """Write a repair as a page.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.repair.data.summarize_repair`.
    charts
        HTML fragments by name, from :func:`draw_repair`.
    """
    drawn = charts or {}
    sections = [
        Section("said", "What was done", bullets(data["sentences"]) + drawn.get("absent", "")),
        Section("before", "Before", _before(data["before"], drawn)),
        Section("plan", "The plan", _plan(data["plan"], drawn)),
        Section("sources", "Where the rows are from", _sources(data["sources"], drawn)),
        Section("lacks", "What lacks, and why", _lacks(data["lacks"])),
    ]
    if data["shift"] is not None:
        sections.append(
            Section("shift", "Are the added rows like the others?", _shift(data["shift"]))
        )
    sections.append(Section("after", "After", _after(data["after"], drawn)))
    if data["verification"] is not None:
        sections.append(Section("verification", "Checked again", _checks(data["verification"])))
    if data["commands"]:
        sections.append(Section("commands", "Check it yourself", _commands(data["commands"])))
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=sections,
        facts=data["facts"],
    )


def _drawn(charts: Mapping[str, str], name: str, caption: str) -> str:
    return figure(caption, charts[name]) if name in charts else ""


def _said(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _before(data: Mapping[str, Any], charts: Mapping[str, str]) -> str:
    picture = _drawn(
        charts,
        "before",
        "Uniform Bias of the base: red where a group has fewer rows with the label than its "
        "share, blue where it has more; grey where it has too few rows to say.",
    )
    worst = data["worst"]
    if worst is None:
        return "<p>No row of the base has all its values.</p>"
    table = html_table(worst, marked=worst["ub"], sides=worst["sides"])
    more = worst["total"] - len(worst["rows"])
    return picture + table + (f'<p class="after">… and {more:,} more rows.</p>' if more else "")


def _plan(data: Mapping[str, Any], charts: Mapping[str, str]) -> str:
    parts = [bullets(data["explanation"]), html_table(data["table"])]
    if data["changes"] is None:
        return "".join([*parts, "<p>Nothing has to change.</p>"])
    parts.append(_drawn(charts, "changes", changes_caption(data["changes"])))
    left = data["left_out"]
    more = f'<p class="after">… and {left:,} more cells.</p>' if left else ""
    return "".join([*parts, html_table(data["cells"]), more])


def _sources(data: Mapping[str, Any], charts: Mapping[str, str]) -> str:
    if not data["table"]["rows"]:
        return "<p>No rows were added.</p>"
    picture = _drawn(charts, "sources", sources_caption(data["chart"]))
    matches = "".join(_match(match) for match in data["matches"])
    return picture + html_table(data["table"]) + _said(data["bound"]) + matches


def sources_caption(data: Mapping[str, Any]) -> str:
    """What stands above the chart of where rows came from."""
    parts = ["The rows each cell needed, by the table they came from."]
    if "missing" in data["names"]:
        parts.append("What no table gave is red.")
    if data["shares"]:
        parts.append("Each bar is all of them, since needs differ much; numbers are on the right.")
    if data["others"]:
        parts.append(f"{data['others']:,} tables that gave less are drawn together.")
    if data["left_out"]:
        parts.append(f"{data['left_out']:,} more cells are not drawn.")
    return " ".join(parts)


def _match(match: Mapping[str, Any]) -> str:
    """How one table was read; folded, since there may be many."""
    lines = [*match["lines"], f"snapshot {match['snapshot']}"]
    name = escape(match["table"])
    return f"<details><summary>How {name} was read</summary>{bullets(lines)}</details>"


def _lacks(data: Mapping[str, Any]) -> str:
    table = "" if data["table"] is None else html_table(data["table"])
    return bullets(data["sentences"]) + table


def _shift(data: Mapping[str, Any]) -> str:
    said = (
        "<p>Added rows beside base rows of the same cells, on the columns that were not planned "
        "for. The distance is 0 where the two are alike and 1 where they have nothing in common; "
        "rows drawn alike stay below what chance gives in 99 of 100 cases.</p>"
    )
    table = data["table"]
    drawn = html_table(table, marked=table["marked"], sides=table["sides"]) if table["rows"] else ""
    return said + bullets(data["sentences"]) + drawn


def _after(data: Mapping[str, Any], charts: Mapping[str, str]) -> str:
    biases = data["biases"]
    caption = biases_caption(biases, "before (ring) and as counted after (dot)")
    parts = [
        html_table(data["table"]),
        _drawn(charts, "biases", caption),
        _drawn(charts, "after", "Uniform Bias after it, in the colours of the first picture."),
        _said(
            "This is about counts. It does not say that the added rows are true, nor what a model "
            "makes of them."
        ),
    ]
    return "".join(parts)


def _checks(data: Mapping[str, Any]) -> str:
    said = (
        f"{data['sentence']} They read the base, the repaired table, the plan and the ledger, and "
        "use nothing of what planned the repair or took the rows."
    )
    table = data["table"]
    return _said(said) + html_table(table, marked=table["marked"], sides=table["sides"])


def _commands(commands: list[str]) -> str:
    said = (
        "The first needs the files alone; the second fetches every added row again from its source "
        "and compares it."
    )
    if any(place in shlex.split(line) for line in commands for place in PLACES):
        said += " What stands in capitals is yours to fill in: the lake, the plan, the key."
    lines = "\n".join(escape(command) for command in commands)
    return f"{_said(said)}<pre>{lines}</pre>"
