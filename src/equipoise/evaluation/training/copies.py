"""Rows that are equal: copies of one another, or alike by chance because a table tells few apart.

A copy must not be trained and tested on. Rows that are equal by chance may be: new rows will be
equal to known ones as often, and to hold all rows of a common kind in one part would ask models
for something else. Two signs tell copies. If every row occurs k times, 2k times and so on, the
whole table was repeated k times. And rows that are equal by chance have many more neighbours that
differ in one column or two; how many equal pairs chance gives follows from these neighbours.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from equipoise.evaluation.request import EqualRows
from equipoise.evaluation.training.splits import generator_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows: TypeAlias = NDArray[np.int64]

BEYOND_CHANCE = 2.0
"""Equal pairs are taken for copies if there are more than this many times those of chance."""

_LARGEST = 0.05  # equal rows that are a larger share of the table cannot be held in one part
_SEVERAL = 20  # kinds of rows from which on a common divisor of their numbers is no chance
_COLUMNS = 8  # of so many columns all pairs are looked at
_HASHING = 103  # keeps this random choice apart from the others


@dataclass(frozen=True, eq=False, kw_only=True)
class Copies:
    """Which rows are held together because they are equal.

    Attributes
    ----------
    unit
        The unit of each row.
    equal
        How many rows equal an earlier row in all that models see, label included.
    held
        How many of them are in one unit with an earlier row.
    pairs, by_chance
        How many pairs of rows are equal, and how many would be by chance, as far as rows that
        differ in one or two columns tell; unknown if nobody asked.
    """

    unit: Rows
    equal: int
    held: int
    pairs: int
    by_chance: float | None = None


def find_copies(seen: NDArray[np.float64], equal_rows: EqualRows = "auto") -> Copies:
    """Number rows so that copies have one number.

    Parameters
    ----------
    seen
        What models see of each row, and its label: a column each.
    equal_rows
        Whether rows that are equal are held together always, never, or if they look like copies.

    Examples
    --------
    >>> numbers = np.arange(100.0)[:, None]
    >>> copies = find_copies(np.concatenate([numbers, numbers, numbers]))
    >>> copies.equal, copies.held, len(set(copies.unit.tolist()))
    (200, 200, 100)

    Two columns of two values tell four kinds of rows apart, which are no copies:

    >>> copies = find_copies(np.random.default_rng(0).integers(0, 2, (100, 2)).astype(float))
    >>> copies.equal, copies.held
    (96, 0)
    """
    same = same_rows(seen)
    kind, sizes = np.unique(same, return_inverse=True, return_counts=True)[1:]
    found = {"equal": len(same) - len(sizes), "pairs": _pairs_of(sizes)}
    if equal_rows == "together":
        return Copies(unit=same, held=found["equal"], **found)
    if equal_rows == "apart" or not found["equal"]:
        return Copies(unit=np.arange(len(same), dtype=np.int64), held=0, **found)
    times = int(np.gcd.reduce(sizes)) if len(sizes) >= _SEVERAL else 1
    unit = _cut_up(kind.ravel(), times)
    first = np.unique(unit, return_index=True)[1]  # one row of each unit
    by_chance = _by_chance(_columns(seen[first]))
    alike = np.unique(kind.ravel()[first], return_counts=True)[1]
    is_copied = _pairs_of(alike) > BEYOND_CHANCE * by_chance
    if is_copied and sizes.max() <= _LARGEST * len(same):
        return Copies(unit=same, held=found["equal"], by_chance=by_chance, **found)
    return Copies(unit=unit, held=len(unit) - len(first), by_chance=by_chance, **found)


def same_rows(seen: NDArray[np.float64]) -> Rows:
    """Give rows that say the same one number.

    Numbers count as far as single precision tells them apart, since one file may have no more.
    """
    plain = _plain(seen)
    lines = np.ascontiguousarray(plain).view(np.dtype((np.void, plain.shape[1] * 4))).ravel()
    return np.asarray(np.unique(lines, return_inverse=True)[1], np.int64)


def _plain(seen: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        plain = seen.astype(np.float32) + np.float32(0)  # -0 is 0
    plain[np.isnan(plain)] = np.nan  # in one form
    return plain


def _cut_up(kind: Rows, times: int) -> Rows:
    """Make units of so many equal rows each.

    Equal rows are alike, so which of them are called copies of which does not matter.
    """
    order = np.argsort(kind, kind="stable")
    ordered = kind[order]
    start = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(kind)) - np.repeat(start, np.diff(np.r_[start, len(kind)]))
    first = np.empty(len(kind), np.int64)
    first[order] = order[np.arange(len(kind)) - place % times]
    return np.asarray(np.unique(first, return_inverse=True)[1], np.int64)  # in the rows' order


def _columns(seen: NDArray[np.float64]) -> list[Rows]:
    """Number the values of every column; one that says the same as another is left out."""
    kept: list[Rows] = []
    for column in _plain(seen).T:
        values, codes = np.unique(column, return_inverse=True)
        n = len(values)
        if n > 1 and not any(o.max() == n - 1 and len(np.unique(o * n + codes)) == n for o in kept):
            kept.append(np.asarray(codes.ravel(), np.int64))
    return kept


def _by_chance(columns: list[Rows]) -> float:
    """Estimate how many pairs of rows chance makes equal.

    Two rows that agree but for columns j and k agree on j, k, both or none. Were j and k
    independent among such pairs, there would be (only j differs) · (only k differs) / (both
    differ) that agree on both. The upper quartile over pairs of columns allows for some that
    depend on each other.
    """
    generator = generator_for(_HASHING)
    hashed = [generator.integers(0, 2**64, int(c.max()) + 1, dtype=np.uint64)[c] for c in columns]
    if len(hashed) < 2:
        return float("inf")  # one column tells nothing of copies
    whole = np.asarray(np.sum(hashed, axis=0, dtype=np.uint64), np.uint64)
    equal = _pairs_in(whole)
    one = {j: _pairs_in(whole - h) - equal for j, h in enumerate(hashed)}
    chosen = sorted(one, key=lambda j: (-one[j], j))[:_COLUMNS]
    estimates = []
    for j, k in itertools.combinations(chosen, 2):
        both = _pairs_in(whole - hashed[j] - hashed[k]) - one[j] - one[k] - equal
        estimates.append(one[j] * one[k] / both if both else 0.0)
    return float(np.quantile(estimates, 0.75, method="higher"))


def _pairs_in(keys: NDArray[np.uint64]) -> int:
    return _pairs_of(np.unique(keys, return_counts=True)[1])


def _pairs_of(sizes: Rows) -> int:
    return int((sizes * (sizes - 1) // 2).sum())
