"""Measures in common use, computed from the same counts."""

from __future__ import annotations

import numpy as np

from equipoise.measures.measure import DIFFERENCE, RATIO, Floats, Margins, ratio, register
from equipoise.measures.uniform_bias import uniform_bias


@register(
    symbol="IR",
    formula="f_gy/f_ry",
    **RATIO,
    against="reference",
    sentence="the rate of {label} in {group} is {value} times that of {reference}.",
)
def impact_ratio(margins: Margins) -> Floats:
    """Impact ratio: a group's rate over the reference's, (1 − UB_g)/(1 − UB_r).

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> impact_ratio(hiring).round(4).ravel().tolist()
    [0.75, 1.3333]
    """
    return ratio(margins.rate, margins.reference)


@register(
    symbol="OR g:r",
    formula="[f_gy/(1 − f_gy)] / [f_ry/(1 − f_ry)]",
    **RATIO,
    against="reference",
    sentence="the odds of {label} in {group} are {value} times those in {reference}.",
)
def odds_ratio_group_over_reference(margins: Margins) -> Floats:
    """Odds ratio, the group's odds over the reference's; below 1 where the group has less.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> odds_ratio_group_over_reference(hiring).round(4).ravel().tolist()
    [0.6591, 1.5172]
    """
    rate, other = margins.rate, margins.reference
    return ratio(rate * (1 - other), other * (1 - rate))


@register(
    symbol="OR r:g",
    formula="[f_ry/(1 − f_ry)] / [f_gy/(1 − f_gy)]",
    **RATIO,
    against="reference",
    more_is_more=False,
    sentence="the odds of {label} in {reference} are {value} times those in {group}.",
)
def odds_ratio_reference_over_group(margins: Margins) -> Floats:
    """Odds ratio, the reference's odds over the group's; above 1 where the group has less.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> odds_ratio_reference_over_group(hiring).round(4).ravel().tolist()
    [1.5172, 0.6591]
    """
    rate, other = margins.rate, margins.reference
    return ratio(other * (1 - rate), rate * (1 - other))


@register(
    symbol="MD",
    formula="f_ry − f_gy",
    **DIFFERENCE,
    against="reference",
    more_is_more=False,
    symmetric=True,
    sentence="the rate of {label} in {reference} exceeds that in {group} by {value}.",
)
def mean_difference(margins: Margins) -> Floats:
    """Mean difference: the reference's rate less the group's.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> mean_difference(hiring).round(4).ravel().tolist()
    [0.0889, -0.0889]
    """
    return margins.reference - margins.rate


@register(
    symbol="IR(b)",
    formula="(1 − UB)/(1 + UB·P/U)",
    **RATIO,
    sentence="by its UB and its share of rows, {group} has an impact ratio of {value} against "
    "the rest for {label}.",
)
def impact_ratio_from_ub(margins: Margins) -> Floats:
    """Impact ratio against the rest, from UB and the group's share P of the rows (U = 1 − P).

    The identity shows why an impact ratio alone says little: a small UB with P near 1 and a large
    UB with P near 0 give the same ratio.

    >>> hiring = Margins.of(n=600, n_y=[200], n_g=[150, 450], n_gy=[[40], [160]])
    >>> impact_ratio_from_ub(hiring).round(4).ravel().tolist()
    [0.75, 1.3333]
    """
    ub = uniform_bias(margins)
    odds = ratio(margins.n_g, margins.n - margins.n_g)
    rest = 1 + ub * odds
    # This is 0 up to rounding where no row of the rest has the label.
    return ratio(1 - ub, np.where(np.abs(rest) < 1e-12, 0.0, rest))
