"""Tables of text: aligned for a terminal, as Markdown, as CSV and as plain HTML."""

from __future__ import annotations

import csv
import html
import io
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

Paint: TypeAlias = Callable[[int, int, str], str]
"""Styles the text of a cell, given its row and its column."""
terminal_width: ContextVar[int | None] = ContextVar("terminal_width", default=None)
"""Maximum width of tables of text; there is none unless a terminal sets it."""
# A column of text is narrowed to 28 letters before others are narrowed, and to at least 8. Words of
# up to 20 letters are never broken.
_COMFORT, _LEAST, _WORD = 28, 8, 20


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
    """Position of the row above which a line with a text divides the table, and that text."""

    def to_dict(self, **more: Any) -> dict[str, Any]:
        """The table as plain data, ready for JSON, with further entries.

        >>> Grid(("a", "b"), (("x", "1"),), frozenset({1})).to_dict()
        {'headers': ['a', 'b'], 'rows': [['x', '1']], 'numbers': [1], 'line': None}
        """
        return {
            "headers": list(self.headers),
            "rows": [list(row) for row in self.rows],
            "numbers": sorted(self.numbers),
            "line": None if self.line is None else list(self.line),
            **more,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Grid:
        """The table that :meth:`to_dict` returned."""
        rows, line = tuple(tuple(row) for row in data["rows"]), data.get("line")
        at = None if line is None else (int(line[0]), str(line[1]))
        return cls(tuple(data["headers"]), rows, frozenset(data["numbers"]), at)

    def text(self, *, width: int | None = None, paint: Paint | None = None) -> str:
        """Align the columns for a terminal of a width, by default that of `terminal_width`.

        In a table that is too wide, texts are wrapped. If that does not suffice, the last columns
        are left out, and a note names them.
        """
        most = terminal_width.get() if width is None else width
        lines, widths = self._measured()
        widths = self._narrowed(lines, widths, most)
        shown = len(widths)
        blocks = [
            self._block(line[:shown], widths, row, paint) for row, line in enumerate(lines, -1)
        ]
        blocks.insert(1, ["  ".join("─" * w for w in widths)])
        if self.line is not None:
            blocks.insert(2 + self.line[0], _divider(self.line[1], _total(widths), most))
        if shown < len(self.headers):
            note = f"left out for the width: {', '.join(self.headers[shown:])}"
            blocks.append(wrap(note, max(sum(widths), 30)))
        return "\n".join(line for block in blocks for line in block)

    def fits(self, width: int) -> bool:
        """Return whether the table fits a terminal without very narrow columns of text."""
        _, widths = self._measured()
        least = [w if i in self.numbers else min(w, _COMFORT) for i, w in enumerate(widths)]
        return _total(least) <= width

    def _measured(self) -> tuple[list[tuple[str, ...]], list[int]]:
        """The headers and rows as printed, and the width that each column needs."""
        lines = [tuple(map(_one_line, line)) for line in (self.headers, *self.rows)]
        return lines, [max(map(width_of, column)) for column in zip(*lines, strict=True)]

    def _block(
        self, cells: Sequence[str], widths: Sequence[int], row: int, paint: Paint | None
    ) -> list[str]:
        """The lines of one row."""

        def padded(cell: str, i: int) -> str:
            space = " " * (widths[i] - width_of(cell))
            styled = paint(row, i, cell) if paint and cell else cell
            return space + styled if i in self.numbers else styled + space

        columns = [
            wrap(cell, width) if width_of(cell) > width else [cell]
            for cell, width in zip(cells, widths, strict=True)
        ]
        return [
            "  ".join(padded(cell, i) for i, cell in enumerate(line)).rstrip()
            for line in itertools.zip_longest(*columns, fillvalue="")
        ]

    def _narrowed(
        self, lines: Sequence[Sequence[str]], widths: list[int], most: int | None
    ) -> list[int]:
        """Widths of the columns that are shown: texts are narrowed first, then numbers."""
        if most is None or _total(widths) <= most:
            return widths
        for least, which in ((_COMFORT, False), (_LEAST, False), (_LEAST, True)):
            floors = [
                min(w, max(least, _longest_word(line[i] for line in lines)))
                if (i in self.numbers) == which
                else w
                for i, w in enumerate(widths)
            ]
            widths = _shrunk(widths, floors, most)
        while len(widths) > 1 and _total(widths) > most:
            widths = widths[:-1]
        return widths

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


def width_of(text: str) -> int:
    """Width of a text in a terminal, in letters of ordinary width."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    marks = sum(bool(unicodedata.combining(c)) for c in text)
    return len(text) + wide - marks


def wrap(text: str, letters: int) -> list[str]:
    """Break a text into lines: after a comma if possible, else between words.

    Only a word that is longer than a line is broken inside: after a mark such as ``_``, ``-`` or
    ``/`` if it has one. Lines are of similar length, so that no word is left alone.

    >>> wrap("sex=Female, race=Native Hawaiian or Pacific Islander", 24)
    ['sex=Female,', 'race=Native Hawaiian', 'or Pacific Islander']
    >>> wrap("a_rather_long_name", 12)
    ['a_rather_', 'long_name']
    """
    lines = _wrapped(text, letters)
    longest = max(width_of(word) for word in text.split(" "))
    while len(lines) > 1 and letters > 1:
        letters -= 1
        shorter = _wrapped(text, letters)
        if len(shorter) > len(lines) or longest == letters + 1:
            break
        lines = shorter
    return lines


def _wrapped(text: str, letters: int) -> list[str]:
    return _filled(re.split(r"(?<=,) ", text), letters, _by_words)


def _by_words(part: str, letters: int) -> list[str]:
    return _filled(part.split(" "), letters, _inside)


def _filled(
    parts: Sequence[str], letters: int, breaks: Callable[[str, int], list[str]]
) -> list[str]:
    """Put as many parts into each line as fit; `breaks` splits what begins a line."""
    lines: list[str] = []
    for part in parts:
        if lines and width_of(f"{lines[-1]} {part}") <= letters:
            lines[-1] += f" {part}"
        else:
            lines += breaks(part, letters)
    return lines


def in_words(items: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> in_words(["sex", "race", "age"])
    'sex, race and age'
    """
    return ", ".join(items[:-1]) + (" and " if len(items) > 1 else "") + "".join(items[-1:])


def counted(n: int, noun: str) -> str:
    """Write a number of things.

    >>> counted(1, "table"), counted(1200, "table")
    ('1 table', '1,200 tables')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def rows_text(n: int) -> str:
    """Write a number of rows, as :func:`counted` does."""
    return counted(n, "row")


def ub_text(value: float) -> str:
    """Write a Uniform Bias.

    >>> ub_text(0.25), ub_text(float("nan"))
    ('0.250', 'undefined')
    """
    return "undefined" if value != value else f"{value:.3f}"


_INSIDE = re.compile(r"[^_\-/.|:;·]*[_\-/.|:;·]*")
_JOINERS = "\u200d\ufe0e\ufe0f"


def _inside(word: str, letters: int) -> list[str]:
    if width_of(word) <= letters:
        return [word]
    lines = [""]
    for piece in _INSIDE.findall(word):
        rest = piece
        if width_of(lines[-1] + rest) > letters and lines[-1]:
            lines.append("")
        while width_of(rest) > letters:
            # Wide characters take two places, so half as many of them fit.
            end = whole_end(rest, letters if width_of(rest) == len(rest) else max(letters // 2, 1))
            lines[-1:] = [rest[:end], ""]
            rest = rest[end:]
        lines[-1] += rest
    return [line for line in lines if line]


def whole_end(text: str, end: int) -> int:
    """The last position up to ``end`` that is not inside a character made of several."""
    while 1 < end < len(text) and (
        unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] in _JOINERS
    ):
        end -= 1
    return max(end, 1)


def _one_line(cell: str) -> str:
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in cell)


def _markdown_cell(cell: str) -> str:
    return _one_line(cell).replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*")


def _shrunk(widths: Sequence[int], floors: Sequence[int], most: int) -> list[int]:
    """Take letters from the widest column, one by one, until all fit or none can be narrowed further."""
    found = list(widths)
    for _ in range(_total(found) - most):
        spare = [w if w > floor else 0 for w, floor in zip(found, floors, strict=True)]
        if not any(spare):
            break
        found[spare.index(max(spare))] -= 1
    return found


def _longest_word(cells: Iterable[str]) -> int:
    """The width of the longest word; very long ones may be broken inside."""
    return min(max((width_of(w) for cell in cells for w in cell.split(" ")), default=0), _WORD)


def _total(widths: Sequence[int]) -> int:
    """The width of a table, with two spaces between its columns."""
    return sum(widths) + 2 * (len(widths) - 1)


def _divider(text: str, width: int, most: int | None) -> list[str]:
    """The line with a text that divides a table."""
    text = _one_line(text)
    wrapped = [text] if most is None else wrap(text, max(most - 6, _COMFORT))
    lines = [f"── {line} " for line in wrapped]
    lines[-1] += "─" * max(2, width - width_of(lines[-1]))
    return lines


def alike(one: Any, other: Any) -> bool:
    """Whether plain data is the same; floats may differ in the last digits between machines."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
        return numbers and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)
