"""Numbers of a bias table as people read them, the same in text, Markdown and HTML."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise.lattice import format_value
from equipoise.measures.registry import measure_named
from equipoise.plain import Grid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from equipoise.measures.measurement import Measurement
    from equipoise.measures.row import Row

UNKNOWN = "–"
TOO_FEW = "too few rows to tell: chance alone may explain these"
"""The text of the line that divides a table."""


def number(value: float, digits: int = 3) -> str:
    """Write a number with its sign, or a dash where it is undefined.

    >>> number(0.5454), number(-0.1), number(float("nan"))
    ('+0.545', '−0.100', '–')
    """
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else ("+∞" if value > 0 else "−∞")
    text = f"{value:+.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")


def percent(value: float) -> str:
    """Write a share as a percentage.

    >>> percent(0.1094), percent(0.00004)
    ('10.9%', '0.00%')
    """
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:.1%}" if abs(value) >= 0.0995 or value == 0 else f"{value:.2%}"


def probability(value: float) -> str:
    """Write a p- or q-value.

    >>> probability(0.0312), probability(1e-20), probability(0.5)
    ('0.031', '<0.001', '0.500')
    """
    if math.isnan(value):
        return UNKNOWN
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def magnitude(log10: float) -> str:
    """Write a positive number that is given by its decimal logarithm, rounded down from 100 on.

    >>> magnitude(2.0), magnitude(-0.5), magnitude(2.9999), magnitude(5.303), magnitude(41.9)
    ('100', '0.316', '999', '200,909', '10⁴¹')
    >>> magnitude(-7), magnitude(float("nan"))
    ('<0.001', '–')
    """
    if math.isnan(log10):
        return UNKNOWN
    if log10 >= 6:
        return "+∞" if log10 == math.inf else "10" + str(math.floor(log10)).translate(_SUPERSCRIPTS)
    value = 10**log10
    if value >= 100:
        return f"{math.floor(value * _ABOVE_NOISE):,}"
    return "<0.001" if value < 0.001 else f"{value:.3g}"


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_ABOVE_NOISE = 1 + 1e-12
"""So that the logarithm of a whole number gives this number."""


def whole(value: float | None) -> str:
    """Write a number of rows, rounded to the nearest whole one.

    >>> whole(32561), whole(-1414.8), whole(None)
    ('32,561', '−1,415', '–')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    text = f"{round(value):,}"
    return text.replace("-", "−") if text != "-0" else "0"


def interval(row: Row) -> str:
    """Write the interval of a row's UB."""
    if math.isnan(row.ub_low):
        return UNKNOWN
    return f"{number(row.ub_low)} … {number(row.ub_high)}"


def remarks(row: Row) -> str:
    """Write the remarks about a row: whether it is hidden, and its note."""
    words = [row.note] if row.note else []
    return "; ".join([*(["hidden"] if row.hidden else []), *words])


def rows_grid(rows: Iterable[Row], measured: Measurement, divided_at: int | None) -> Grid:
    """Arrange rows of a bias table for reading, with the main numbers rounded.

    `divided_at` is the number of the first row with too few rows to tell, if there is one.
    """
    extra = [measure_named(name) for name in measured.options.measures]
    uncertain = measured.interval is not None
    confidence = f"{measured.options.confidence:.0%} interval"
    headers = ["group", measured.counts.label.name, "rows", "rate", "overall", "UB"]
    headers += [confidence, "q"] if uncertain else []
    headers += [
        "missing rows" if measured.counts.weights is None else "missing weight",
        *(m.symbol for m in extra),
        "note",
    ]
    lines = []
    for row in rows:
        cells = [str(row.group), format_value(row.label), _share(row), percent(row.rate)]
        cells += [percent(row.overall_rate), number(row.ub)]
        cells += [interval(row), probability(row.q_value)] if uncertain else []
        cells += [whole(row.missing_rows), *(_measure(v) for v in row.measures.values())]
        lines.append((*cells, remarks(row)))
    texts = {0, 1, len(headers) - 1}
    numbers = frozenset(i for i in range(len(headers)) if i not in texts)
    divider = None if divided_at is None else (divided_at, TOO_FEW)
    return Grid(tuple(headers), tuple(lines), numbers, divider)


def _share(row: Row) -> str:
    return UNKNOWN if row.n_cell is None else f"{whole(row.n_cell)} of {whole(row.n_group)}"


def _measure(value: float) -> str:
    if not math.isfinite(value):
        return number(value)
    return f"{value:,.3f}".replace("-", "−") if abs(value) < 1000 else whole(value)
