"""What a room shows as a file: the result of the library in its own formats."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from pathlib import Path
from typing import Any

from equipoise.web.rooms import audit, bias, monitor, plan
from equipoise.web.rooms import map as map_room
from equipoise.web.rooms.room import Ask

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]inf", re.ASCII | re.IGNORECASE)
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20\u2212|%]|[\t\r\n]")
"""How cells begin that a spreadsheet may compute; some treat full-width signs like the plain ones."""


def write(room: str, ask: Ask, kind: str) -> str:
    """Write what a room shows, in one of the formats of its room."""
    result = _result(room, ask)
    if kind == "html":
        return page(result, ask.data)
    if kind == "json":
        text: str = result.to_json(indent=2)
        return text
    if kind == "md" and room == "audit":
        return str(result.markdown())
    if kind == "md":
        from equipoise.reports.bias.data import summarize
        from equipoise.reports.bias.markdown import render_markdown

        return render_markdown(summarize(result, source=ask.data, top=100))
    if room == "bias":
        from equipoise.reports.bias.text import render_csv

        return without_formulas(render_csv(result))
    return without_formulas(result.to_csv())


def _result(room: str, ask: Ask) -> Any:
    if room == "bias":
        return bias.choose(bias.measured(ask.counted(), dict(ask.options)), ask.view)
    if room == "plan":
        return plan.make(ask, ask.options, ask.view["move"])
    if room == "monitor":
        return monitor.history(ask)
    return audit.make(ask) if room == "audit" else map_room.make(ask)


def page(result: Any, source: str, **options: Any) -> str:
    """The report of a result, as one page without scripts."""
    from equipoise.reports.pages import write_page

    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        path = Path(folder, "page.html")
        write_page(result, path, source=source, **options)
        return path.read_text("utf-8")


def without_formulas(text: str) -> str:
    r"""Put an apostrophe before cells that a spreadsheet would compute.

    >>> without_formulas("a,b\n=1+1,-2.5\n")
    "a,b\r\n'=1+1,-2.5\r\n"
    """
    csv.field_size_limit(2**31 - 1)
    written = io.StringIO(newline="")
    lines = csv.writer(written)
    for row in csv.reader(io.StringIO(text, newline="")):
        lines.writerow([_harmless(cell) for cell in row])
    return written.getvalue()


def _harmless(cell: str) -> str:
    if not _FORMULA.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"
