"""A form of an audit as one plain dict, from which its page is made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from equipoise.audits import rates
from equipoise.measures.display import percent, whole
from equipoise.measures.four_fifths import RULE
from equipoise.plain import in_words

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit, AuditSection
    from equipoise.measures.selection import SelectionTable

SCHEMA = "equipoise.audit-page/1"
_MOST = 30
"""Maximum number of categories of a chart."""


def summarize_audit(result: Audit, *, source: str | None = None, top: int = 50) -> dict[str, Any]:
    """The content of the page of a form, ready for JSON."""
    return {
        "schema": SCHEMA,
        "title": f"{result.title}: {result.subject.counts.label.name}",
        "source": source or result.heading,
        "figures": _figures(result),
        "sections": [_section(part, top) for part in result.all_sections],
        "charts": {rates.id_of(i): ratios(t) for i, t in enumerate(result.tables, start=1)},
        "facts": _facts(result, source),
    }


def _section(part: AuditSection, top: int) -> dict[str, Any]:
    tables = []
    for grid in part.grids:
        table = grid.to_dict()
        line = table["line"] if table["line"] is not None and table["line"][0] < top else None
        left_out = len(table["rows"][top:])
        tables.append({**table, "rows": table["rows"][:top], "line": line, "left_out": left_out})
    return {"id": part.id, "title": part.title, "sentences": list(part.sentences), "tables": tables}


def _figures(result: Audit) -> list[list[str]]:
    counts, figures = result.subject.counts, [[whole(result.subject.counts.n), "rows"]]
    if result.tables:
        rate = "above the median" if result.subject.median is not None else "selected"
        selected = int(counts.rows[counts.codes[:, -1] == result.subject.code].sum())
        figures.append([percent(selected / counts.n), rate])
        for table in result.tables[:3]:
            lowest = [r for r in table.ratio.tolist() if math.isfinite(r)]
            shown = f"{min(lowest):.3f}" if lowest else "–"
            figures.append([shown, f"lowest impact ratio by {in_words(table.attributes)}"])
        return figures
    pairs = result.subject.table.pairs
    return [
        *figures,
        [whole(len(result.subject.table.measured.lattice)), "groups examined"],
        [
            whole(int((pairs.outside & pairs.evident).sum())),
            "pairs outside the limit, with evidence",
        ],
        [whole(int(pairs.untold.sum())), "pairs with too few rows to tell"],
        [whole(len(result.questions)), "questions for people"],
    ]


def ratios(table: SelectionTable) -> dict[str, Any]:
    """The impact ratios of a table for a chart, the lowest first."""
    known = [i for i in range(len(table)) if math.isfinite(table.ratio[i])]
    known.sort(key=lambda i: (float(table.ratio[i]), i))
    confidence = table.measured.options.confidence
    return {
        "title": f"impact ratio by {in_words(table.attributes)}, with its {confidence:.0%} interval",
        "limit": RULE,
        "bars": [_bar(table, i) for i in known[:_MOST]] if len(known) > 1 else [],
        "left_out": max(len(known) - _MOST, 0),
        "small": any(bool(table.small[i] or table.too_small[i]) for i in known[:_MOST]),
    }


def _bar(table: SelectionTable, place: int) -> dict[str, Any]:
    value = float(table.ratio[place])
    low, high = (
        (value, value) if table.interval is None else (float(x[place]) for x in table.interval)
    )
    rows = f"{int(table.selected[place]):,} of {int(table.n[place]):,}"
    name = rates.name_of(table, place)
    span = rates.interval_text(table, place)
    return {
        "name": name,
        "ratio": value,
        "low": low if math.isfinite(low) else value,
        "high": high if not math.isnan(high) else value,
        "below": bool(table.below[place]),
        "small": bool(table.small[place] or table.too_small[place]),
        "text": f"{value:.3f} ({rows})",
        "about": f"{name}: impact ratio {value:.3f}, interval {span}, {rows} rows",
    }


def _facts(result: Audit, source: str | None) -> list[list[str]]:
    subject = result.subject
    counts, options = subject.counts, subject.options
    print_ = result.to_dict()["fingerprint"]
    left_out = {"form", "sex", "race", "selected", "score", "unknown"}
    given = {k: v for k, v in vars(options).items() if k not in left_out and v is not None}
    return [
        *([["source", source]] if source else []),
        ["form", result.form],
        *counts.reading.facts,
        ["sensitive attributes", ", ".join(subject.attributes)],
        ["outcome", counts.label.name],
        *([["unknown", ", ".join(options.unknown)]] if options.unknown else []),
        ["parameters", ", ".join(f"{k}={v}" for k, v in given.items())],
        [
            "fingerprint of the counts",
            "not given, as counts are suppressed" if print_ is None else f"sha256:{print_}",
        ],
        ["made by", f"equipoise {result.version}"],
        ["time", result.time],
    ]
