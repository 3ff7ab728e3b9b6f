"""The room of comparisons: plans side by side, or two tables."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions
from equipoise.options.measure import MeasureOptions
from equipoise.web.rooms.plan import make, plan_twin
from equipoise.web.rooms.room import Ask, Room, Text, plain_twin, table_query, unpack
from equipoise.web.schema import offered
from equipoise.web.twins import Expression, Twin, outside_name, quoted

OPTIONS = offered(MeasureOptions, but=("reference", "measures", "favourable"))
_CELLS, _GROUPS = 100, 100


def compare_query() -> Any:
    """Make the class of the address of this room."""
    return table_query(
        "CompareQuery",
        OPTIONS,
        pin=(
            list[Text],
            Field(
                default_factory=list, max_length=12, description="Addresses of plans to compare."
            ),
        ),
        other=(Text | None, Field(default=None, description="Name of a second table.")),
        evaluation=(Text | None, Field(default=None, description="Evaluation of models to show.")),
    )


def compute(ask: Ask) -> dict[str, Any]:
    """Compare pinned plans, or two tables; with neither, say what can be compared."""
    shown: dict[str, Any] = {"plans": None, "tables": None}
    if ask.view.get("plans"):
        shown["plans"] = _plans(ask)
    if ask.view.get("other_counts") is not None:
        shown["tables"] = _tables(ask)
    return shown


def _plans(ask: Ask) -> dict[str, Any]:
    from equipoise.errors import EquipoiseError
    from equipoise.plans.comparison import compare_plans

    made, failed = [], []
    for name, options, moves in ask.view["plans"]:
        try:
            made.append((name, make(ask, options, moves)))
        except EquipoiseError as error:
            failed.append({"name": name, "why": str(error).partition("\n")[0]})
    if not made:
        return {
            "names": [],
            "failed": failed,
            "totals": None,
            "sentences": [],
            "cells": [],
            "groups": [],
        }
    both = compare_plans(made)
    label = both.counts.label.name
    return {
        "names": list(both.names),
        "failed": failed,
        "totals": both.totals().to_dict(),
        "sentences": list(both.sentences),
        "cells": [
            {"pattern": c.pattern, "before": c.before, "changes": list(c.changes)}
            for c in both.cells[:_CELLS]
        ],
        "cells_left_out": len(both.cells[_CELLS:]),
        "groups": [_bias(row, label) for row in both.biases.telling(_GROUPS)],
    }


def _bias(row: Any, label: str) -> dict[str, Any]:
    from equipoise.values import plain

    return {
        "pattern": str(row.group),
        "label": f"{label}={row.label}",
        "before": plain(row.before),
        "after": [plain(value) for value in row.after],
    }


def _tables(ask: Ask) -> dict[str, Any]:
    from equipoise.api.measurement import diff

    change = diff(ask.counted(), unpack(ask.view["other_counts"]), **ask.options)
    told = change.top(_GROUPS).to_dict()
    return {
        "heading": change.heading,
        "sentences": list(change.sentences),
        "rows": told["rows"],
        "total": len(change),
    }


def evaluate(ask: Ask, options: dict[str, Any], output: str) -> dict[str, Any]:
    """Train and test models on a table, or on two; write the report, and return what it says."""
    from pathlib import Path

    from equipoise import atomic
    from equipoise.api.evaluations import evaluate as work
    from equipoise.reports.pages import write_page

    result = work(
        ask.path, **ask.table, **options, engine=ask.engine, jobs=1, progress=ask.progress
    )
    write_page(result, output, source=ask.data)
    data = Path(output).with_suffix(".json")
    atomic.write_text(data, result.to_json(indent=2))
    grids = [grid.to_dict() for grid in result.grids()]
    return {
        "heading": result.heading,
        "sentences": list(result.sentences),
        "tables": [{k: grid[k] for k in ("headers", "rows", "numbers")} for grid in grids],
        "files": {"report": Path(output).name, "data": data.name},
    }


EVALUATED = offered(RunningOptions, EvaluationOptions, FeatureOptions, but=("runs", "jobs"))

EVALUATION = Room(
    name="evaluation",
    title="Evaluation",
    about="Train and test models.",
    query=table_query(
        "EvaluationQuery",
        EVALUATED,
        other=(Text | None, Field(default=None, description="Name of a second table.")),
    ),
    options=EVALUATED,
    compute=compute,
    counts=False,
)


def twin(ask: Ask, _: dict[str, Any]) -> list[Twin]:
    """The plans and their comparison, or the comparison of two tables."""
    if ask.view.get("other"):
        words = (outside_name(ask.data), outside_name(ask.view["other"]))
        return [plain_twin(ask, "diff", "diff", OPTIONS, words=words)]
    plans = ask.view.get("plans") or []
    steps = [
        plan_twin(ask, options, moves, flags=("-o", f"plan-{n}.json"), result=f"plan_{n}")
        for n, (_, options, moves) in enumerate(plans, start=1)
    ]
    if not steps:
        return []
    names = [name for name, _, _ in plans]
    files = [f"plan-{n}.json" for n in range(1, len(plans) + 1)]
    flags = [word for name in names for word in ("--name", quoted(name))]
    made = Expression("[" + ", ".join(step.result for step in steps) + "]")
    side_by_side = _Comparison(
        command="compare",
        function="compare",
        words=(made,),
        given={},
        options=(),
        flags=(*files, *flags),
        keywords={"names": names},
    )
    return [*steps, side_by_side]


class _Comparison(Twin):
    """The comparison of plans, which the command reads from files."""

    def shell(self) -> str:
        """The command."""
        return " ".join(["equipoise", self.command, *self.flags])


ROOM = Room(
    name="compare",
    title="Compare",
    about="Plans side by side, a table before and after, or models trained on both.",
    query=compare_query(),
    options=OPTIONS,
    compute=compute,
    twin=twin,
)
