"""Tables of text: aligned for a terminal, as Markdown, as CSV and as plain HTML."""

from __future__ import annotations

import csv
import html
import io
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """Headers and rows of text; columns of numbers are aligned to the right.

    >>> grid = Grid(("group", "n"), (("sex=w", "150"), ("sex=m", "1,450")), frozenset({1}))
    >>> print(grid.text())
    group      n
    ─────  ─────
    sex=w    150
    sex=m  1,450
    >>> print(Grid(grid.headers, grid.rows, grid.numbers, line=(1, "below")).text())
    group      n
    ─────  ─────
    sex=w    150
    ── below ───
    sex=m  1,450
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    line: tuple[int, str] | None = None
    """Above which row a line with a text divides the table."""

    def text(self, *, rule: str = "─") -> str:
        """Align the columns for a terminal."""
        lines = [tuple(_one_line(c) for c in line) for line in (self.headers, *self.rows)]
        widths = [max(_width(line[i]) for line in lines) for i in range(len(self.headers))]
        lines.insert(1, tuple(rule * w for w in widths))
        texts = [
            "  ".join(
                _pad(cell, widths[i], right=i in self.numbers) for i, cell in enumerate(line)
            ).rstrip()
            for line in lines
        ]
        if self.line is not None:
            width = sum(widths) + 2 * (len(widths) - 1)
            said = f"{rule * 2} {_one_line(self.line[1])} "
            texts.insert(2 + self.line[0], said + rule * max(2, width - _width(said)))
        return "\n".join(texts)

    def markdown(self) -> str:
        r"""A Markdown table.

        >>> print(Grid(("a", "b"), (("x|y", "1"),), frozenset({1})).markdown())
        | a | b |
        | --- | ---: |
        | x\|y | 1 |
        """
        rules = ["---:" if i in self.numbers else "---" for i in range(len(self.headers))]
        lines = [self.headers, rules, *self.rows]
        if self.line is not None:
            said = f"— {self.line[1]} —"
            lines.insert(2 + self.line[0], (said, *[""] * (len(self.headers) - 1)))
        return "\n".join(
            "| " + " | ".join(_markdown_cell(c) for c in line) + " |" for line in lines
        )

    def html(self) -> str:
        """A plain HTML table.

        >>> Grid(("a",), (("<b>",),)).html()
        '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
        """
        head = "".join(
            f"<th{self._side(i)}>{html.escape(h)}</th>" for i, h in enumerate(self.headers)
        )
        body = [
            "<tr>"
            + "".join(f"<td{self._side(i)}>{html.escape(c)}</td>" for i, c in enumerate(row))
            + "</tr>"
            for row in self.rows
        ]
        if self.line is not None:
            said = html.escape(self.line[1])
            line = f'<tr><th colspan="{len(self.headers)}" style="text-align:left">{said}</th></tr>'
            body.insert(self.line[0], line)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def _side(self, column: int) -> str:
        return ' style="text-align:right"' if column in self.numbers else ""


def csv_text(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write comma-separated values in full precision; ``None`` is an empty field.

    >>> print(csv_text(("group", "ub"), [("sex=w, race=b", 0.2), ("sex=m", None)]), end="")
    group,ub
    "sex=w, race=b",0.2
    sex=m,
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return out.getvalue()


def sentences(items: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> sentences(["sex", "race", "age"])
    'sex, race and age'
    """
    return ", ".join(items[:-1]) + (" and " if len(items) > 1 else "") + "".join(items[-1:])


def _one_line(cell: str) -> str:
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in cell)


def _markdown_cell(cell: str) -> str:
    return _one_line(cell).replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*")


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    marks = sum(bool(unicodedata.combining(c)) for c in text)
    return len(text) + wide - marks


def _pad(cell: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space
