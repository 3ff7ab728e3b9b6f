"""Pages and parts of pages, rendered from templates; every value is escaped."""

from __future__ import annotations

import datetime
import functools
import json
import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup, escape

from equipoise.measures.display import magnitude
from equipoise.monitoring.moments import shown
from equipoise.version import __version__


@functools.cache
def templates() -> jinja2.Environment:
    """The templates, with the filters that they use."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("equipoise.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "signed": signed,
        "whole": whole,
        "rows": rows,
        "number": number,
        "percent": percent,
        "island": island,
        "short": short,
        "said": said,
        "sentence": sentence,
        "moment": moment,
        "odds": odds,
    }
    made.globals |= {"version": __version__, "address": address}
    return made


def render(template: str, **given: Any) -> str:
    """Render a template."""
    return templates().get_template(template).render(**given)


def address(path: str, pairs: Sequence[tuple[str, str]], **changes: Any) -> str:
    """Write the address of a room with some parameters changed; None removes one.

    >>> address("/plan", [("data", "adult"), ("tolerance", "0.1")], tolerance=0.2, label=None)
    '/plan?data=adult&tolerance=0.2'
    """
    kept = [pair for pair in pairs if pair[0] not in changes]
    for name, value in changes.items():
        listed = value if isinstance(value, (list, tuple)) else [value]
        kept += [(name, str(each)) for each in listed if each is not None]
    return path + (f"?{urlencode(kept)}" if kept else "")


def island(data: Any) -> Markup:
    r"""Write data as JSON that is safe inside a script element of a page.

    >>> island({"name": "</script>"})
    Markup('{"name": "\\u003c/script\\u003e"}')
    """
    text = json.dumps(data, ensure_ascii=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704  nothing in it can end the element


def signed(value: float | None, digits: int = 3) -> str:
    """A UB with its sign, and a minus of typography.

    >>> signed(0.25), signed(-0.1), signed(-0.0002), signed(None)
    ('+0.250', '−0.100', '0.000', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:+.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}") if text.strip("+-0.") else text[1:]


def whole(value: float | None) -> str:
    """A number of rows, with its thousands apart.

    >>> whole(-1234.4), whole(None)
    ('−1,234', '–')
    """
    return "–" if value is None else f"{round(value) + 0:,}".replace("-", "\N{MINUS SIGN}")


def rows(value: float) -> str:
    """A number of rows that need not be whole.

    >>> rows(25.6789), rows(3.0), rows(1414.96)
    ('25.7', '3', '1,415')
    """
    return f"{value:,.1f}".removesuffix(".0") if abs(value) < 1000 else f"{value:,.0f}"


def number(value: Any) -> str:
    """A number in at most six digits."""
    return "–" if value is None else f"{value:,.6g}"


def short(value: float | None) -> str:
    """A number in three digits.

    >>> short(0.0999812), short(0.771413), short(2.3e-6)
    ('0.1', '0.771', '2.3e-06')
    """
    return "–" if value is None or not math.isfinite(value) else f"{value:,.3g}"


def said(sentence: str) -> Markup:
    """A sentence whose parameters in backquotes are set as code.

    >>> said("see `gap` < 1")
    Markup('see <code>gap</code> &lt; 1')
    """
    parts = enumerate(_PARAMETER.split(sentence))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in parts
    )


_PARAMETER = re.compile(r"`([^`]+)`")


def sentence(text: str) -> str:
    """A message as a sentence: with a capital letter, unless it begins with a name.

    >>> sentence("no such table."), sentence("a.parquet is gone.")
    ('No such table.', 'a.parquet is gone.')
    """
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+[\s,:;]", text) else text


def moment(text: str | None, zone: datetime.tzinfo = datetime.UTC) -> str:
    """A time of plain data, in a zone.

    >>> moment("2026-11-15T00:00:00+00:00"), moment(None)
    ('2026-11-15', '–')
    """
    return "–" if text is None else shown(datetime.datetime.fromisoformat(text), zone)


def odds(log10: float | None) -> str:
    """A number that is given by its decimal logarithm.

    >>> odds(2.0), odds(-0.5), odds(41.3), odds(None)
    ('100', '0.316', '10⁴¹', '–')
    """
    return "–" if log10 is None else magnitude(log10)


def percent(value: float | None) -> str:
    """A share in percent."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.1%}"
