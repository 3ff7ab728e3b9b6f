"""A summary as Markdown."""

from __future__ import annotations

import re
from typing import Any

from equipoise.plain import Grid


def render_markdown(summary: dict[str, Any]) -> str:
    """Write a summary as Markdown.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> from equipoise.reports.bias.data import summarize
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> print(render_markdown(summarize(bias_table(counts), top=1)).splitlines()[0])
    # Uniform Bias of outcome by sex
    """
    parts = [f"# {_escaped(summary['title'])}", _pairs(summary["facts"])]
    for topic in summary["topics"]:
        parts.append(f"## {topic['title']}")
        parts.append("\n".join(f"- {_escaped(s)}" for s in topic["sentences"]))
        if topic["id"] == "overview":
            parts += _table(summary["table"], summary["table"]["more"])
        if topic["id"] == "four-fifths":
            rule = summary["four_fifths"]
            more = rule["total"] - len(rule["table"]["rows"])
            parts += _table(rule["table"], f"… and {more:,} more groups" if more else "")
    if summary["hints"]:
        parts += ["## Hints", "\n".join(f"- {_escaped(h)}" for h in summary["hints"])]
    parts += ["## Provenance", _pairs(summary["provenance"])]
    return "\n\n".join(parts) + "\n"


def _pairs(pairs: list[list[str]]) -> str:
    return "\n".join(f"- **{_escaped(name)}:** {_escaped(value)}" for name, value in pairs)


def _table(table: dict[str, Any], more: str) -> list[str]:
    plain = Grid.from_dict(table)
    rows = tuple(tuple(_cell(c) for c in row) for row in plain.rows)
    headers = tuple(_cell(h) for h in plain.headers)
    text = Grid(headers, rows, plain.numbers, plain.line).markdown()
    return [text, *([more] if more else [])]


_MARKS = re.compile(r"([\\`*_\[\]<>#|~&])")


def _escaped(text: str) -> str:
    line = "".join(c if c.isprintable() else " " for c in text)
    return _MARKS.sub(r"\\\1", line)


def _cell(text: str) -> str:
    # Grid escapes bars, backslashes and stars; these would be read as HTML, links or emphasis.
    return (
        text.replace("&", "&amp;").replace("<", "&lt;").replace("[", "&#91;").replace("_", "&#95;")
    )
