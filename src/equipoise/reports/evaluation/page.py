"""An evaluation as a page: scores, differences, groups, and how bias goes with error."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.evaluation.request import TESTS
from equipoise.evaluation.study.grids import TEST_NAMES
from equipoise.reports.evaluation.data import captions, summarize_evaluation
from equipoise.reports.frame.html import Section, bullets, figure, html_table, render_page

if TYPE_CHECKING:
    from equipoise.evaluation.evaluation import Evaluation


def write_evaluation(evaluation: Evaluation, path: str | os.PathLike[str]) -> None:
    """Write an evaluation as a page; without the charts if they cannot be drawn.

    Parameters
    ----------
    evaluation
        What :func:`equipoise.evaluate` gave.
    path
        The file to write; it is whole or not there.
    """
    data = summarize_evaluation(evaluation)
    drawn = [draw_study(page) for page in data["studies"]]
    atomic.write_text(path, render_evaluation(data, drawn))


def draw_study(page: Mapping[str, Any]) -> dict[str, str]:
    """Draw every chart of one table: HTML fragments by name."""
    from equipoise.reports.charts.vega import to_html_fragment
    from equipoise.reports.evaluation.charts.differences import difference_chart
    from equipoise.reports.evaluation.charts.predictions import prediction_chart
    from equipoise.reports.evaluation.charts.relation import relation_chart
    from equipoise.reports.evaluation.charts.scores import score_chart

    kinds = {
        "scores": score_chart,
        "differences": difference_chart,
        "relation": relation_chart,
        "predictions": prediction_chart,
    }
    drawn = {}
    try:
        for name, data in page["charts"].items():
            if any(data.get(part) for part in ("bars", "rows", "points", "pairs")):
                chart = kinds[name.partition("_")[0]]
                drawn[name] = to_html_fragment(chart(data))
    except MissingDependency as absent:
        return {"absent": f"<p>{escape(str(absent))}</p>"}
    return drawn


def render_evaluation(data: Mapping[str, Any], charts: list[dict[str, str]]) -> str:
    """Write an evaluation as a page.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.evaluation.data.summarize_evaluation`.
    charts
        For each study HTML fragments by name, from :func:`draw_study`.
    """
    several = len(data["studies"]) > 1
    sections = []
    for place, (page, drawn) in enumerate(zip(data["studies"], charts, strict=True)):
        start = f"{page['title']}: " if several else ""
        for part in _sections(page, drawn):
            title = start + (part.title[:1].lower() + part.title[1:] if several else part.title)
            sections.append(
                Section(f"{part.id}-{place}" if several else part.id, title, part.content)
            )
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=sections,
        facts=data["facts"],
    )


def _sections(page: Mapping[str, Any], drawn: Mapping[str, str]) -> list[Section]:
    told = captions(page)

    def picture(name: str) -> str:
        return figure(told[name], drawn[name]) if name in drawn else ""

    parts = [Section("said", "What came out", bullets(page["sentences"]) + drawn.get("absent", ""))]
    if page["claims"] is not None:
        said = (
            "<p>The paper tests on rows of the repaired table itself, as the second column does. For "
            "how many models and sizes it holds here; clear is q ≤ 0.05. That no loss is clear does not "
            "show that there is none: for how many a loss above 0.01 is ruled out is said beside it, and "
            "the lowest end of an interval says how large a loss may be.</p>"
        )
        parts.append(
            Section("claims", "What the paper says, and here", said + html_table(page["claims"]))
        )
    parts += [
        Section(
            "tables",
            "The versions themselves",
            bullets(page["versions"]) + html_table(page["tables"]),
        ),
        Section("scores", "Scores", _scores(page, picture)),
        Section("differences", "Differences", _differences(page, picture)),
        Section("groups", "Groups", _groups(page, picture)),
        Section("relation", "Bias and error", picture("relation") + html_table(page["relation"])),
    ]
    return parts


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _scores(page: Mapping[str, Any], picture: Callable[[str], str]) -> str:
    parts = [picture(f"scores_{test}") for test in reversed(TESTS)]
    parts += [
        _folded(f"All scores on {TEST_NAMES[test]}", html_table(page["scores"][test]))
        for test in TESTS
    ]
    return "".join(parts)


def _differences(page: Mapping[str, Any], picture: Callable[[str], str]) -> str:
    parts = [picture(f"differences_{test}") for test in TESTS]
    if page["losses"]["rows"]:
        parts.append(
            "<p>For how many models and samples a loss of more than 0.01 is ruled out, the whole "
            "interval of the difference being above −0.01; and for how many a loss is clear.</p>"
            + html_table(page["losses"])
        )
    parts += [
        _folded(f"All differences on {TEST_NAMES[test]}", html_table(page["differences"][test]))
        for test in TESTS
    ]
    return "".join(parts)


def _groups(page: Mapping[str, Any], picture: Callable[[str], str]) -> str:
    tables = [
        _folded(f"Groups, {model}", html_table(grid)) for model, grid in page["groups"].items()
    ]
    said = "<p>On the held-out test set; means over repeats.</p>"
    return picture("predictions") + said + "".join(tables)
