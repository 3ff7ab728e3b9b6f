"""Uniform Bias, and measures that follow from it directly."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.measures.measure import DIFFERENCE, RATIO, Floats, Margins, ratio, register


def ub_of(*, n: Any, n_y: Any, n_g: Any, n_gy: Any) -> Any:
    """Uniform Bias of counts; every UB of the package is computed here.

    The counts are numbers, fractions, or arrays that broadcast; sums of weights may replace them.
    UB has their type. In arrays it is nan where the group or the label has no rows.

    >>> ub_of(n=600, n_y=200, n_g=150, n_gy=40)
    0.2
    """
    if isinstance(n_g, np.ndarray):  # products of 64-bit integers could overflow
        n_g, n_gy = n_g.astype(np.float64), np.asarray(n_gy, np.float64)
    # Products of counts are whole, so a UB of 1/5 is 0.2 and not a little above that limit.
    expected = n_g * n_y
    ub = expected - n_gy * n
    with np.errstate(invalid="ignore", divide="ignore"):
        ub /= expected
    return ub


@register(
    symbol="UB",
    formula="1 − f_gy/f_y",
    high=1.0,
    neutral=0.0,
    more_is_more=False,
    sentence="{group} has {percent} {fewer} rows with {label} than its share of all rows.",
)
def uniform_bias(margins: Margins) -> Floats:
    """Uniform Bias: the share of a group's expected rows with a label that are missing.

    >>> hiring = Margins.of(n=600, n_y=[200, 400], n_g=[150, 450], n_gy=[[40, 110], [160, 290]])
    >>> uniform_bias(hiring).round(4).tolist()
    [[0.2, -0.1], [-0.0667, 0.0333]]
    """
    return np.asarray(ub_of(n=margins.n, n_y=margins.n_y, n_g=margins.n_g, n_gy=margins.n_gy))


@register(
    symbol="f_gy",
    formula="n_gy/n_g",
    low=0.0,
    high=1.0,
    neutral=None,
    against=None,
    sentence="{value} of the rows of {group} have {label}.",
)
def selection_rate(margins: Margins) -> Floats:
    """Selection rate: the share of a group's rows that have a label.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> selection_rate(hiring).round(4).ravel().tolist()
    [0.2667, 0.3556]
    """
    return margins.rate


@register(
    symbol="lift",
    formula="f_gy/f_y = 1 − UB",
    **RATIO,
    sentence="{label} is {value} times as frequent in {group} as in all rows.",
)
def lift(margins: Margins) -> Floats:
    """Lift: how many times as frequent a label is in a group as overall.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> lift(hiring).round(4).ravel().tolist()
    [0.8, 1.0667]
    """
    return ratio(margins.rate, margins.overall_rate)


@register(
    symbol="w",
    formula="f_y/f_gy = 1/(1 − UB)",
    **RATIO,
    more_is_more=False,
    sentence="weighting the {label} rows of {group} by {value} would bring its weighted UB to 0.",
)
def reweighing_weight(margins: Margins) -> Floats:
    """Reweighing weight: the weight of each row of a cell that makes UB 0.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> reweighing_weight(hiring).round(4).ravel().tolist()
    [1.25, 0.9375]
    """
    return ratio(np.broadcast_to(margins.overall_rate, margins.n_gy.shape), margins.rate)


@register(
    symbol="Δ",
    formula="f_gy − f_y = −f_y·UB",
    **DIFFERENCE,
    symmetric=True,
    sentence="the rate of {label} in {group} differs from the overall rate by {value}.",
)
def divergence(margins: Margins) -> Floats:
    """Divergence: by how much a group's rate differs from the overall rate.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> divergence(hiring).round(4).ravel().tolist()
    [-0.0667, 0.0222]
    """
    return margins.rate - margins.overall_rate


@register(
    symbol="n_gy(0)",
    formula="n_g·f_y",
    low=0.0,
    neutral=None,
    against=None,
    scale_invariant=False,
    sentence="with the overall rate {group} would have {value} rows with {label}.",
)
def expected_rows(margins: Margins) -> Floats:
    """Expected rows: how many rows with a label a group would have at the overall rate.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> expected_rows(hiring).ravel().tolist()
    [50.0, 150.0]
    """
    return margins.n_g * margins.overall_rate


@register(
    symbol="n_gy(0) − n_gy",
    formula="UB·n_g·f_y",
    neutral=0.0,
    more_is_more=False,
    scale_invariant=False,
    symmetric=True,
    sentence="{value} rows with {label} are missing in {group} at its present size and the present "
    "label frequencies; this is not the number to add, because adding rows changes both.",
)
def missing_rows(margins: Margins) -> Floats:
    """Missing rows: expected minus present rows, at present sizes and frequencies.

    This is not the number of rows to add: adding rows changes the group's size and the label's
    frequency.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> missing_rows(hiring).ravel().tolist()
    [10.0, -10.0]
    """
    return expected_rows(margins) - margins.n_gy
