"""A bias table as one plain dict, from which text, Markdown and the page are made."""

from __future__ import annotations

from typing import Any

from equipoise.counts import Counts, bin_names
from equipoise.lattice import format_value
from equipoise.measures.display import percent, rows_grid, whole
from equipoise.measures.measurement import SURE
from equipoise.measures.row import Row
from equipoise.measures.sentences import hints, topics
from equipoise.measures.table import BiasTable
from equipoise.reports.bias.chart_data import matrices, ranking, side
from equipoise.reports.bias.four_fifths import four_fifths

SCHEMA = "equipoise.report/1"
_LABELS = 12
"""Maximum number of labels in the line about them."""


def summarize(table: BiasTable, *, source: str | None = None, top: int = 20) -> dict[str, Any]:
    """The content of a report, ready for JSON.

    Rows that were sorted stay so. Otherwise the worst come first, and those with too few rows to
    tell last.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> summary = summarize(bias_table(counts), source="hiring.csv")
    >>> summary["heading"]
    'Uniform Bias of outcome by sex: 600 rows, 2 groups, 2 labels'
    >>> summary["rows"][0]["pattern"], summary["rows"][0]["side"]
    ('sex=w', 'fewer')
    """
    shown = table.top(top)
    said, charts = topics(table.pairs), {"matrices": matrices(table), "ranking": ranking(table)}
    rule = four_fifths(table, top=top)
    if rule is not None:
        said.append(
            {"id": "four-fifths", "title": "Four-fifths rule", "sentences": rule["sentences"]}
        )
    return {
        "schema": SCHEMA,
        "heading": table.heading,
        "title": _title(table),
        "source": source,
        "limit": table.options.limit,
        "figures": _figures(table),
        "facts": _facts(table, source),
        "provenance": _provenance(table),
        "labels": _labels(table),
        "table": _table(table, shown),
        "rows": [_raw(row, table.options.limit) for row in shown],
        "topics": said,
        "sentences": [sentence for topic in said for sentence in topic["sentences"]],
        "hidden": _hidden(table, top),
        "four_fifths": rule,
        "hints": [] if table.options.suppress_below else hints(table.counts),
        "charts": charts,
        "captions": _captions(charts),
    }


def _title(table: BiasTable) -> str:
    names = " × ".join(a.name for a in table.counts.sensitive)
    return f"Uniform Bias of {table.counts.label.name} by {names}"


def _table(table: BiasTable, shown: BiasTable) -> dict[str, Any]:
    printed = rows_grid(shown, shown.measured, shown.inconclusive_from)
    sides = [row_side(row, table.options.limit) for row in shown]
    return printed.to_dict(
        marked=printed.headers.index("UB", 2),
        sides=sides,
        total=len(table),
        more=_more(table, shown),
    )


def _more(table: BiasTable, shown: BiasTable) -> str:
    more = len(table) - len(shown)
    if not more:
        return ""
    untold = int(table.pairs.untold.sum() - shown.pairs.untold.sum())
    part = "all of them" if untold == more else f"{untold:,} of them"
    which = f", {part} with too few rows to tell" if untold else ""
    return f"… and {more:,} more rows{which}"


def row_side(row: Row, limit: float) -> str:
    """The side of the limit on which a row is, or ``unsure``."""
    return side(row.ub, limit) if row.evident else "unsure"


def _raw(row: Row, limit: float) -> dict[str, Any]:
    return {"pattern": str(row.group), "side": row_side(row, limit), **row.to_dict()}


def _hidden(table: BiasTable, top: int) -> list[dict[str, Any]]:
    found = table.filter(hidden=True).worst(top)
    return [_raw(row, table.options.limit) for row in found if row.evident]


def _captions(charts: dict[str, Any]) -> dict[str, str]:
    captions = {
        f"matrix-{i}": _matrix_caption(m) for i, m in enumerate(charts["matrices"], start=1)
    }
    captions["ranking"] = (
        f"{_ranked(charts['ranking'])}, with their intervals. Dashed lines are the limits; on the "
        "right are the group's rows with the label, of all its rows."
    )
    return captions


def _ranked(ranking: dict[str, Any]) -> str:
    bars, total = len(ranking["bars"]), ranking["total"]
    among = f"with q below {SURE:g}" if ranking["sure"] else "with enough rows to tell"
    some = f"The {bars} largest |UB| of the {total:,} groups {among}"
    return some if total > bars else f"UB of the groups {among}"


def _matrix_caption(matrix: dict[str, Any]) -> str:
    names = [matrix["row_name"], *([matrix["column_name"]] if matrix["labels"] else [])]
    text = f"UB of {matrix['label_name']} by {' and '.join(names)}."
    if any(cell["unsure"] and cell["ub"] is not None for cell in matrix["cells"]):
        text += " Grey cells, in brackets, are groups with too few rows to tell."
    if any(cell["ub"] is None for cell in matrix["cells"]):
        text += " A dash means that UB is undefined or suppressed."
    for name, n in matrix["left_out"].items():
        text += f" Only the values of {name} with the most rows are shown; {n:,} are left out."
    if matrix["labels_left_out"]:
        text += f" {matrix['labels_left_out']:,} labels with smaller |UB| are left out."
    return text


# ------------------------------------------------------------------------------- facts


def _figures(table: BiasTable) -> list[list[str]]:
    tally = table.pairs
    figures = [
        [whole(table.counts.n), "rows"],
        [whole(len(table)), "group–label pairs"],
        [whole(int(tally.outside.sum())), f"with |UB| above {table.options.limit:g}"],
    ]
    if table.measured.q_value is not None:
        figures.append([whole(int(tally.sure.sum())), f"of these with q below {SURE:g}"])
    figures.append([whole(int(tally.untold.sum())), "pairs with too few rows to tell"])
    return figures


def _facts(table: BiasTable, source: str | None) -> list[list[str]]:
    counts, options = table.counts, table.options
    facts = [["source", source]] if source else []
    facts += counts.reading.facts
    facts += [
        ["rows", whole(counts.n) + (" (weighted)" if counts.weights is not None else "")],
        ["groups", whole(len(table.measured.lattice)) + _left_out(table)],
        [f"values of {counts.label.name}", _label_text(table)],
        ["missing values", _missing_text(table)],
        *_skipped(counts),
        ["limit", f"|UB| up to {options.limit:g}"],
    ]
    # Values of a binned column are ranges, and a reader needs to see all of them at once.
    for name, edges in counts.bins.items():
        facts.append([f"bins of {name}", "  |  ".join(bin_names(edges))])
    return facts


def _left_out(table: BiasTable) -> str:
    options = table.options
    rules = [f"of at least {options.min_count:,} rows"] if options.min_count > 1 else []
    if options.max_order is not None and options.max_order < len(table.counts.sensitive):
        rules.append(f"that fix at most {options.max_order} of the attributes")
    return f" ({', '.join(rules)})" if rules else ""


def _labels(table: BiasTable) -> list[dict[str, Any]]:
    rates = table.measured.margins.overall_rate.tolist()
    rows = table.measured.n_label.tolist()
    values = [format_value(v) for v in table.counts.label.values]
    return [
        {"value": v, "rows": n, "share": r if r == r else None, "text": f"{v} {percent(r)}"}
        for v, n, r in zip(values, rows, rates, strict=True)
    ]


def _label_text(table: BiasTable) -> str:
    labels = sorted(_labels(table), key=lambda x: -x["rows"])
    more = f" and {len(labels) - _LABELS:,} more" if len(labels) > _LABELS else ""
    return ", ".join(x["text"] for x in labels[:_LABELS]) + more


def _missing_text(table: BiasTable) -> str:
    found = [f"{name} {whole(n)}" for name, n in table.counts.missing_values.items() if n]
    dropped = table.counts.dropped
    return (", ".join(found) or "none") + (f"; {whole(dropped)} rows left out" if dropped else "")


def _skipped(counts: Counts) -> list[list[str]]:
    lines = f"{whole(counts.skipped.lines)} that are not rows ({counts.skipped.named})"
    return [["skipped lines", lines]] if counts.skipped else []


def _provenance(table: BiasTable) -> list[list[str]]:
    counts, options = table.counts, table.options
    asked = {} if counts.request is None else counts.request.to_dict()
    skip = {"sensitive", "label", "bins"}
    parameters = {k: v for k, v in {**asked, **options.to_dict()}.items() if k not in skip}
    written = [f"{k}={_plain(v)}" for k, v in parameters.items() if v not in (None, [], (), {})]
    return [
        ["sensitive attributes", ", ".join(a.name for a in counts.sensitive)],
        ["label", counts.label.name],
        ["parameters", ", ".join(written)],
        ["fingerprint of the counts", _fingerprint(table)],
        ["made by", f"equipoise {table.version}"],
        ["time", table.time],
    ]


def _fingerprint(table: BiasTable) -> str:
    # Suppressed counts are small, and could be found by trying which give the fingerprint.
    hidden = table.options.suppress_below is not None
    return "not given, as counts are suppressed" if hidden else f"sha256:{table.counts.fingerprint}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "|".join(map(str, value)) if isinstance(value, list) else str(value)
