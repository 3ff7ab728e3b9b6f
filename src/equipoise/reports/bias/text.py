"""A summary as text for a terminal, and a table as CSV."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from equipoise.plain import Grid, Paint

if TYPE_CHECKING:
    from equipoise.measures.table import BiasTable

_WRAP = 100
# Columns that a narrow terminal loses, the first of them first.
_SPARE_OF_RULE = ("share of rows", "best-off group")
_SPARE = ("overall", "rate", "missing rows", "q", "rows")
_COLOURS = {"fewer": "\x1b[31m", "more": "\x1b[34m", "unsure": "\x1b[2m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def render_text(summary: dict[str, Any], *, colour: bool = False, width: int | None = None) -> str:
    """Write a summary for a terminal: heading, facts, table and sentences.

    With ``colour``, UB outside the limit is red for fewer rows than the group's share and blue for
    more. A table wider than ``width`` loses its least needed columns.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> from equipoise.reports.bias.data import summarize
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> print(render_text(summarize(bias_table(counts)), width=79))
    Uniform Bias of outcome by sex: 600 rows, 2 groups, 2 labels
    <BLANKLINE>
    values of outcome: not 66.7%, hired 33.3% · missing values: none · limit: |UB|
    up to 0.1
    <BLANKLINE>
    group  outcome        rows      UB     95% interval      q  missing rows  note
    ─────  ───────  ──────────  ──────  ───────────────  ─────  ────────────  ────
    sex=w  hired     40 of 150  +0.200  +0.004 … +0.375  0.046            10
    ...
    """
    parts = [
        _heading(summary["heading"], width, colour=colour),
        _facts(summary, width or _WRAP),
        _table(summary["table"], colour=colour, width=width),
    ]
    rule = summary["four_fifths"]
    for topic in summary["topics"]:
        title = _styled(topic["title"], _BOLD, colour)
        table = [_rule_table(rule, width)] if topic["id"] == "four-fifths" else []
        said = [_wrapped(s, width or _WRAP) for s in topic["sentences"]]
        parts.append("\n".join([title, *table, *said]))
    return "\n\n".join(parts) + "\n"


def render_csv(table: BiasTable) -> str:
    """Write every row of a table as CSV, in full precision.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping({("m", "y"): 1, ("w", "n"): 1}, sensitive=["s"], label="l")
    >>> render_csv(bias_table(counts)).splitlines()[1][:20]
    '"s=m","m","y",1,1,1,'
    """
    import pyarrow as pa
    from pyarrow import csv

    arrow = table.to_arrow()
    plain = {
        name: arrow[name].cast(pa.string())
        if pa.types.is_dictionary(arrow[name].type)
        else arrow[name]
        for name in arrow.column_names
    }
    sink = io.BytesIO()
    csv.write_csv(pa.table(plain), sink, csv.WriteOptions(quoting_style="needed"))
    return sink.getvalue().decode()


def _heading(text: str, width: int | None, *, colour: bool) -> str:
    lines = [text] if width is None else _wrapped(text, width, bullet="").split("\n")
    return "\n".join(_styled(line, _BOLD, colour) for line in lines)


def _facts(summary: dict[str, Any], width: int) -> str:
    shown = [(n, v) for n, v in summary["facts"] if n not in ("rows", "groups")]
    return _wrapped(" · ".join(f"{n}: {v}" for n, v in shown), width, bullet="")


def _wrapped(text: str, width: int, *, bullet: str = "- ") -> str:
    return textwrap.fill(
        _one_line(text),
        max(width, 20),
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _one_line(text: str) -> str:
    # Values come from the data, and a terminal would obey their control characters.
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _styled(text: str, style: str, colour: bool) -> str:
    return f"{style}{_one_line(text)}{_RESET}" if colour else _one_line(text)


# ------------------------------------------------------------------------------- table


def _table(table: dict[str, Any], *, colour: bool, width: int | None) -> str:
    grid, left_out = _fitting(Grid.from_dict(table), _SPARE, width)
    paint = _painter(grid.headers.index("UB", 2), table["sides"]) if colour else None
    lines = [grid.text(width=width, paint=paint)]
    notes = [table["more"]] if table["more"] else []
    if left_out:
        notes.append(f"left out for the width: {', '.join(left_out)}")
    notes = [_wrapped(note, width or _WRAP, bullet="") for note in notes]
    return "\n".join([*lines, *notes])


def _fitting(grid: Grid, spare: tuple[str, ...], width: int | None) -> tuple[Grid, list[str]]:
    """Leave out columns, the least needed first, until the table fits."""
    left_out: list[str] = []
    for name in spare:
        if width is None or grid.fits(width):
            break
        if name in grid.headers[2:]:
            grid = _without(grid, grid.headers.index(name, 2))
            left_out.append(name)
    return grid, left_out


def _without(grid: Grid, column: int) -> Grid:
    def cut(cells: tuple[str, ...]) -> tuple[str, ...]:
        return cells[:column] + cells[column + 1 :]

    numbers = frozenset(i - (i > column) for i in grid.numbers if i != column)
    return Grid(cut(grid.headers), tuple(cut(row) for row in grid.rows), numbers, grid.line)


def _painter(ub: int, sides: Sequence[str]) -> Paint:
    """Colour the UB of rows outside the limit."""

    def paint(row: int, column: int, text: str) -> str:
        style = _COLOURS.get(sides[row]) if row >= 0 and column == ub else None
        return f"{style}{text}{_RESET}" if style else text

    return paint


def _rule_table(rule: dict[str, Any], width: int | None) -> str:
    grid, _ = _fitting(Grid.from_dict(rule["table"]), _SPARE_OF_RULE, width)
    more = rule["total"] - len(grid.rows)
    lines = [grid.text(width=width), *([f"… and {more:,} more groups"] if more else [])]
    return "\n".join(["", *lines, ""])
