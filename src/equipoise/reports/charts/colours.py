"""The colours of UB."""

from __future__ import annotations

from equipoise.reports.charts.vega import BLUE, RED, alt

_DIVERGING = [BLUE, "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", RED]
_EXACT = "datum.value === 0 ? '0' : format(datum.value, '+.2f')"
# UB is at most 1 but has no lower bound, so only the lower end of the colours may be cut off.
_CLAMPED = f"(datum.value < 0 ? '≤ ' : '') + ({_EXACT})"


def colour_of_ub(bound: float, *, clamped: bool) -> alt.Color:
    """The colour of a UB, with its legend; beyond the bound it grows no stronger."""
    scale = alt.Scale(domain=[bound * i / 3 for i in range(-3, 4)], range=_DIVERGING, clamp=True)
    legend = alt.Legend(
        title="UB: red, fewer rows than its share; blue, more",
        titleLimit=400,
        labelExpr=_CLAMPED if clamped else _EXACT,
        orient="bottom",
        direction="horizontal",
        gradientLength=260,
        gradientThickness=10,
        values=[-bound, 0, bound],
    )
    return alt.Color("ub:Q", scale=scale, legend=legend)
