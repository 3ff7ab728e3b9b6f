"""An evaluation as a page: scores, differences, groups, and the relation of bias and error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.evaluation.request import TESTS
from equipoise.evaluation.study.grids import TEST_NAMES
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.evaluation.charts.differences import difference_chart
from equipoise.reports.evaluation.charts.predictions import prediction_chart
from equipoise.reports.evaluation.charts.relation import relation_chart
from equipoise.reports.evaluation.charts.scores import score_chart
from equipoise.reports.evaluation.data import captions, summarize_evaluation
from equipoise.reports.frame.html import (
    Part,
    Section,
    bullets,
    folded,
    html_table,
    paragraph,
    render_page,
)

if TYPE_CHECKING:
    from equipoise.evaluation.evaluation import Evaluation

_KINDS = {
    "scores": (score_chart, "bars"),
    "differences": (difference_chart, "rows"),
    "relation": (relation_chart, "points"),
    "predictions": (prediction_chart, "pairs"),
}
"""How each kind of chart is drawn, and the part of its data without which it is not drawn."""


def render(evaluation: Evaluation, **_: Any) -> str:
    """The page of an evaluation."""
    data = summarize_evaluation(evaluation)
    several = len(data["studies"]) > 1
    sections = []
    for place, study in enumerate(data["studies"]):
        for part in _sections(study):
            if several:
                title = f"{study['title']}: {part.title[:1].lower()}{part.title[1:]}"
                sections.append(Section(f"{part.id}-{place}", title, part.content))
            else:
                sections.append(part)
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=sections,
        facts=data["facts"],
    )


def plot(evaluation: Evaluation) -> list[CaptionedChart]:
    """For each table scores and differences on the held-out test set, and UB of predictions."""
    studies = summarize_evaluation(evaluation)["studies"]
    names = ("scores_untouched", "differences_untouched", "predictions")
    return [
        chart
        for study in studies
        for chart in _charts(study, names, f"{study['title']}: " if len(studies) > 1 else "")
    ]


def _charts(
    study: Mapping[str, Any], names: Sequence[str], start: str = ""
) -> list[CaptionedChart]:
    """The charts with these names, if there is anything to draw."""
    texts, charts = captions(study), []
    for name in names:
        draw, part = _KINDS[name.partition("_")[0]]
        data = study["charts"][name]
        charts += [CaptionedChart(start + texts[name], draw, data)] if data[part] else []
    return charts


def _sections(study: Mapping[str, Any]) -> list[Section]:
    sections = [Section("said", "Summary", [bullets(study["sentences"])])]
    if study["claims"] is not None:
        said = paragraph(
            "The paper tests on rows of the repaired table itself, as the second column does. The "
            "numbers are those of models and sizes for which a claim holds here; clear means q ≤ "
            "0.05. That no loss is clear does not show that there is none: the table therefore also "
            "states for how many a loss above 0.01 is ruled out, and the lowest end of an interval, "
            "which is how large a loss may be."
        )
        claims = [said, html_table(study["claims"])]
        sections.append(Section("claims", "Claims of the paper, and results here", claims))
    relation: list[Part] = [*_charts(study, ["relation"]), html_table(study["relation"])]
    versions = [bullets(study["versions"]), html_table(study["tables"])]
    return [
        *sections,
        Section("tables", "Versions", versions),
        Section("scores", "Scores", _scores(study)),
        Section("differences", "Differences", _differences(study)),
        Section("groups", "Groups", _groups(study)),
        Section("relation", "Bias and error", relation),
    ]


def _scores(study: Mapping[str, Any]) -> list[Part]:
    charts = _charts(study, [f"scores_{test}" for test in reversed(TESTS)])
    tables = [
        folded(f"All scores on {TEST_NAMES[test]}", html_table(study["scores"][test]))
        for test in TESTS
    ]
    return [*charts, *tables]


def _differences(study: Mapping[str, Any]) -> list[Part]:
    parts: list[Part] = [*_charts(study, [f"differences_{test}" for test in TESTS])]
    if study["losses"]["rows"]:
        parts += [
            paragraph(
                "Number of models and samples for which a loss of more than 0.01 is ruled out, since "
                "the whole interval of the difference is above −0.01, and for which a loss is clear."
            ),
            html_table(study["losses"]),
        ]
    parts += [
        folded(f"All differences on {TEST_NAMES[test]}", html_table(study["differences"][test]))
        for test in TESTS
    ]
    return parts


def _groups(study: Mapping[str, Any]) -> list[Part]:
    tables = [
        folded(f"Groups, {model}", html_table(grid)) for model, grid in study["groups"].items()
    ]
    said = paragraph("On the held-out test set; means over repeats.")
    return [*_charts(study, ["predictions"]), said, *tables]
