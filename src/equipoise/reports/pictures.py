"""Results as pictures: the charts of a result below each other, as PNG and SVG."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise.atomic import atomic_path
from equipoise.errors import InputError
from equipoise.evaluation.evaluation import Evaluation
from equipoise.evaluation.missing.results import MethodComparison
from equipoise.lake.loop import Repaired
from equipoise.measures.table import BiasTable
from equipoise.plans.frontier import Frontier
from equipoise.plans.maps.policy_map import PolicyMap
from equipoise.plans.plan import Plan
from equipoise.reports.bias.charts import heat_map, interval_chart
from equipoise.reports.charts.before_after import bias_chart
from equipoise.reports.charts.vega import stacked, to_altair, to_png, to_svg
from equipoise.reports.evaluation.charts.differences import difference_chart
from equipoise.reports.evaluation.charts.predictions import prediction_chart
from equipoise.reports.evaluation.charts.scores import score_chart
from equipoise.reports.frontier import data as frontier_data
from equipoise.reports.frontier.charts import step_chart
from equipoise.reports.plan import data as plan_data
from equipoise.reports.plan.charts import change_chart
from equipoise.reports.policy_map.charts import policy_map_chart
from equipoise.reports.repair.charts import source_chart

if TYPE_CHECKING:
    from equipoise.results import Drawable

ENDINGS = (".png", ".svg")
Charts: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]
"""Captions, and specifications of Vega-Lite."""


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """The charts of a result; shows itself in a notebook.

    >>> import equipoise as eq
    >>> picture = eq.measure("adult", sensitive_features=["sex"], label="income").plot()
    >>> picture.to_png()[1:4], "sex=Female" in picture.to_svg()
    (b'PNG', True)
    """

    spec: Mapping[str, Any]
    """The specification of Vega-Lite."""

    def to_svg(self) -> str:
        """The picture as SVG."""
        return to_svg(self.spec)

    def to_png(self, *, scale: float = 2.0) -> bytes:
        """The picture as PNG, with ``scale`` pixels for each of the drawing."""
        return to_png(self.spec, scale=scale)

    def to_altair(self) -> Any:
        """A chart of Altair, to change it further."""
        return to_altair(self.spec)

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
        """Write the picture to a file, which is whole or not there.

        Parameters
        ----------
        path
            Ends with ``.png`` or ``.svg``.
        scale
            Of a PNG: how many pixels stand for one of the drawing.
        """
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise InputError(f"{path} is no name of a picture; use {' or '.join(ENDINGS)}.")
        drawn = self.to_svg().encode() if ending == ".svg" else self.to_png(scale=scale)
        with atomic_path(path) as temporary:
            temporary.write_bytes(drawn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: show it in a notebook, or save('x.png') or save('x.svg')>"

    def _repr_svg_(self) -> str:
        return self.to_svg()


@functools.singledispatch
def charts_of(result: Any) -> Charts:
    """The charts of a result with their captions, the most telling first."""
    raise InputError(f"there is no chart of a {type(result).__name__}.")


def draw_result(result: Drawable) -> Picture:
    """Draw a result: its charts below each other.

    Parameters
    ----------
    result
        A bias table, a plan, a frontier, a policy map, a repair, an evaluation, or a comparison
        of ways to treat missing values.
    """
    found = charts_of(result)
    if not found:
        raise InputError(
            f"there is nothing to draw: this {type(result).__name__} holds no groups with numbers."
        )
    return Picture(stacked(found))


@charts_of.register
def _(result: BiasTable) -> Charts:
    """The ranking of UB with intervals, and matrices of UB by pairs of attributes."""
    from equipoise.reports.bias.data import summarize

    summary = summarize(result.worst() if result.view is None else result)
    data, told = summary["charts"], summary["captions"]
    ranked = [(told["ranking"], interval_chart(data["ranking"]))]
    return [
        *(ranked if data["ranking"]["bars"] else []),
        *(
            (told[f"matrix-{i}"], heat_map(matrix))
            for i, matrix in enumerate(data["matrices"], start=1)
        ),
    ]


@charts_of.register
def _(result: Plan) -> Charts:
    """The cells that change, and |UB| before and after."""
    from equipoise.reports.plan.page import caption_of

    changes = [(change_chart, plan_data.changes(result))] if result.moves else []
    biases = plan_data.biases(result)
    wanted = [*changes, *([(bias_chart, biases)] if biases["pairs"] else [])]
    return [(caption_of(data), draw(data)) for draw, data in wanted]


@charts_of.register
def _(result: Frontier) -> Charts:
    """The least cost against the tolerance."""
    from equipoise.reports.frontier.page import steps_caption

    data = frontier_data.steps(result)
    return [(steps_caption(data), step_chart(data))]


@charts_of.register
def _(result: PolicyMap) -> Charts:
    """UB over both moves, its zero curve, the limits and the best point."""
    from equipoise.reports.policy_map.data import chart_data

    return [(result.heading, policy_map_chart(chart_data(result)))]


@charts_of.register
def _(result: Repaired) -> Charts:
    """The rows each cell needed and where they came from, and |UB| before and after."""
    from equipoise.reports.plan.page import caption_of
    from equipoise.reports.repair.data import summarize_repair
    from equipoise.reports.repair.page import sources_caption

    data = summarize_repair(result)
    sources, biases = data["sources"], data["after"]["biases"]
    found: list[tuple[str, Mapping[str, Any]]] = []
    if sources["chart"]["bars"]:
        found.append((sources_caption(sources["chart"]), source_chart(sources["chart"])))
    if biases["pairs"]:
        found.append((caption_of(biases), bias_chart(biases)))
    return found


@charts_of.register
def _(result: Evaluation) -> Charts:
    """For each table: the scores on the held-out test set, and the differences to the table as it is."""
    from equipoise.reports.evaluation.data import captions, summarize_evaluation

    kinds: dict[str, tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
        "scores_untouched": ("bars", score_chart),
        "differences_untouched": ("rows", difference_chart),
        "predictions": ("pairs", prediction_chart),
    }
    data = summarize_evaluation(result)
    several = len(data["studies"]) > 1
    found = []
    for page in data["studies"]:
        told, start = captions(page), f"{page['title']}: " if several else ""
        for name, (part, draw) in kinds.items():
            if page["charts"][name][part]:
                found.append((start + told[name], draw(page["charts"][name])))
    return found


@charts_of.register
def _(result: MethodComparison) -> Charts:
    """How far each method moves UB: the mean and the largest."""
    from equipoise.reports.missing.data import chart_caption, summarize_missing

    data = summarize_missing(result)["chart"]  # type: ignore[arg-type]
    return [(chart_caption(data), bias_chart(data))] if data["pairs"] else []
