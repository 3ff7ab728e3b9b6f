"""The page about missing values, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from equipoise.evaluation.missing.comparison import MissingValues
from equipoise.evaluation.missing.imputation import METHODS
from equipoise.evaluation.missing.simulation import MissingSimulation
from equipoise.measures.display import percent, whole

MissingResult: TypeAlias = MissingValues | MissingSimulation
SCHEMA = "equipoise.missing-page/1"
_AWAY = (
    "Away from 0 is the mean change of UB in the direction away from 0: below 0, groups look more "
    "alike than {otherwise}."
)
_CHANGES = (
    (
        "A change is UB under a method minus UB under {baseline}; the mean is over all compared "
        "groups and labels, with equal weights."
    ),
    "The last columns are the shares of the labels; the rest up to 100% are rows without a label.",
)
_ERRORS = (
    (
        "An error is UB under a method minus the true UB; means are over all compared groups and "
        "labels, with equal weights, and then over the repeats."
    ),
    (
        "The mean error is signed, and positive and negative errors cancel: it may be near 0 even "
        "if single errors are not."
    ),
    "The largest |error| is that of each repeat, averaged over the repeats.",
    (
        "Imputed correctly is the share of removed values for which the method found the true one; "
        "this says little about UB, which depends on shares and not on single rows."
    ),
)


def summarize_missing(
    result: MissingResult, *, source: str | None = None, top: int = 50
) -> dict[str, Any]:
    """The content of the page, ready for JSON."""
    known = isinstance(result, MissingSimulation)
    what = f"{result.request.label} by {', '.join(result.request.sensitive)}"
    shown = result.groups_grid(top)
    return {
        "schema": SCHEMA,
        "title": f"{'Removed values' if known else 'Missing values'}: {what}",
        "source": source or f"{result.table_rows:,} rows",
        "figures": _figures(result),
        "sentences": list(result.sentences),
        "methods": result.methods_grid().to_dict(),
        "meanings": [f"{name}: {METHODS[name].sentence}." for name in result.names],
        "columns": _columns(result),
        "chart": chart_data(result),
        "groups": shown.to_dict(),
        "left_out": len(result.groups) - len(shown.rows),
        "facts": _facts(result, source),
    }


def _figures(result: MissingResult) -> list[list[str]]:
    groups = whole(len({entry.group for entry in result.groups}))
    shown = [[whole(result.n), "rows"]]
    if isinstance(result, MissingSimulation):
        errors = [simulated.mean_abs_error.mean for simulated in result.methods]
        return [
            *shown,
            [percent(result.taken / result.n), f"lose {result.column}"],
            [groups, "groups compared"],
            [f"{min(errors):.3f} – {max(errors):.3f}", "mean |error| of UB, by method"],
        ]
    most = max(result.methods, key=lambda treated: treated.largest_change)
    return [
        *shown,
        [percent(result.incomplete / result.n), "have missing values"],
        [groups, "groups compared"],
        [f"{most.largest_change:.3f}", f"largest change of UB ({most.method})"],
    ]


def _columns(result: MissingResult) -> list[str]:
    if isinstance(result, MissingSimulation):
        return [*_ERRORS, _AWAY.format(otherwise="they are")]
    changes = [text.format(baseline=result.baseline) for text in _CHANGES]
    return [*changes, _AWAY.format(otherwise=f"under {result.baseline}")]


def chart_data(result: MissingResult) -> dict[str, Any]:
    """The mean and the largest value of each method, as the before and after of a chart."""
    if isinstance(result, MissingSimulation):
        title = "|error of UB|"
        found = [(s.method, s.mean_abs_error.mean, s.largest_error.mean) for s in result.methods]
    else:
        title = f"|change of UB| against {result.baseline}"
        # The baseline does not differ from itself.
        others = [t for t in result.methods if t.method != result.baseline]
        found = [(t.method, t.mean_change, t.largest_change) for t in others]
    pairs = [
        {
            "name": name,
            "before": mean,
            "after": largest,
            "outside": False,
            "text": f"{mean:.3f}, at most {largest:.3f}",
            "about": f"{name}: {mean:.4f} on average, {largest:.3f} at most",
        }
        for name, mean, largest in found
    ]
    return {"title": title, "limit": None, "pairs": pairs}


def _facts(result: MissingResult, source: str | None) -> list[list[str]]:
    more: list[tuple[str, Sequence[str]]] = [
        ("sensitive attributes", result.request.sensitive),
        ("label", [result.request.label]),
        ("texts that mean a missing value", result.request.na),
        ("columns that imputers used", result.looked_at),
        ("columns that they did not use", result.left_out),
    ]
    return [
        *([["table", source]] if source else []),
        *result.reading.facts,
        *([name, ", ".join(texts)] for name, texts in more if texts),
        ["minimum rows of a group", whole(result.min_count)],
        ["seed", str(result.seed)],
        ["schema", result.to_dict()["schema"]],
        ["made by", f"equipoise {result.version}"],
        ["time", result.time],
    ]
