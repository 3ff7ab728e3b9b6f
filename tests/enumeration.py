"""All small tables, and which of them a request allows: in whole numbers, without any solver."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def all_tables(have, *, allow="both", more=3):
    """Every table with up to ``more`` rows more in each cell: an array of tables × groups × labels."""
    ranges = [
        np.arange(n if allow == "add" else 0, n + (0 if allow == "delete" else more) + 1)
        for n in have.ravel().tolist()
    ]
    grids = np.meshgrid(*ranges, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1).reshape(-1, *have.shape)


def within(tables, have, tolerance, *, reference="original", rates=None):
    """Which tables keep every group, and the labels, within a tolerance; no group is empty.

    ``rates`` are target shares of the labels by group, as pairs of whole numbers (part, whole).
    """
    p, q = Fraction(str(tolerance)).as_integer_ratio()
    size = tables.sum(axis=2)
    held = (size >= 1).all(axis=1)
    n, n_y = int(have.sum()), have.sum(axis=0)
    totals, everything = tables.sum(axis=1), tables.sum(axis=(1, 2))
    for y in range(have.shape[1]):
        if reference == "new":  # and the labels are kept
            part, whole = totals[:, y, None], everything[:, None]
            held &= abs(totals[:, y] * n - everything * n_y[y]) * q <= p * everything * n_y[y]
        else:
            part, whole = n_y[y], n
        if rates is not None:
            part, whole = rates[:, y, 0][None], rates[:, y, 1][None]
        held &= (abs(tables[:, :, y] * whole - size * part) * q <= p * size * part).all(axis=1)
    return held


def costs(tables, have, add=1, delete=1):
    """The cost of each table."""
    change = tables - have
    return add * change.clip(0).sum(axis=(1, 2)) + delete * (-change).clip(0).sum(axis=(1, 2))
