"""Units: rows that must stay in one part of a split, such as duplicates or a person's rows.

A duplicate must not be in both the training and the test set. Rows that are equal by chance may be:
new rows will equal known ones just as often, and keeping all rows of a common kind in one part would
test models on kinds of rows they never saw. Two signs reveal duplicates. If every row occurs k times,
2k times and so on, the whole table was repeated k times. And rows that are equal by chance have many
more neighbours that differ in one or two columns; the number of pairs that chance makes equal is
estimated from these neighbours.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from equipoise.counts.columns import encode_arrow
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.splits import generator_for
from equipoise.options.evaluation import EqualRows
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Rows: TypeAlias = NDArray[np.int64]

# Equal pairs count as duplicates if there are more than twice as many as chance explains. The
# estimate assumes that two columns are independent, so a smaller factor would raise false alarms.
_BEYOND_CHANCE = 2.0
# Equal rows that are a larger share of the table are never kept together: one part of a split
# would consist of little else.
_LARGEST_SHARE = 0.05
# With fewer distinct rows, a common divisor of their frequencies can well be chance.
_DISTINCT_ROWS = 20
_COLUMNS = 8  # all pairs of at most this many columns are compared
_STREAM = 103  # keeps this random choice independent of the others


@dataclass(frozen=True, eq=False, kw_only=True)
class Copies:
    """Rows that stay together because they are equal."""

    unit: Rows  # of each row
    equal: int  # rows that equal an earlier one in everything models see, label included
    held: int  # rows of these that share a unit with an earlier one
    pairs: int  # of equal rows
    by_chance: float | None = None  # pairs expected by chance; None if not estimated


def find_duplicates(
    request: EvaluationRequest, values: NDArray[np.float64], label: Rows, group: Rows
) -> Copies:
    """Find duplicates among rows by what models see of them.

    Of two tables all equal rows are duplicates: a repair of a table contains rows of it.
    """
    seen = np.column_stack([values, label, group])
    if request.is_of_two:
        return find_copies(seen, "together")
    if _same_rows(seen).max() == _same_rows(seen[:, :-1]).max():
        # The group follows from other columns. Such a column has no neighbours that differ in it
        # alone, so it would hide what the others reveal about chance.
        seen = seen[:, :-1]
    return find_copies(seen, request.equal_rows)


def find_units(table: pa.Table, request: EvaluationRequest, copies: Copies) -> Rows:
    """Return the unit of each row: duplicates, and rows with the same value of ``keep_together``."""
    if request.keep_together is None:
        return copies.unit
    together = _units_in(table[request.keep_together], request.counting.na)
    return _joined(together, copies.unit) if copies.held else together


def _joined(first: Rows, second: Rows) -> Rows:
    """Merge units that have a row in common, directly or through other units."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = int(first.max()) + 1
    nodes = size + int(second.max()) + 1
    edges = coo_matrix((np.ones(len(first)), (first, size + second)), shape=(nodes, nodes))
    return np.asarray(connected_components(edges, directed=False)[1][first], np.int64)


def _units_in(column: pa.ChunkedArray, na: tuple[str, ...]) -> Rows:
    """Make a unit of each value; a row without a value is a separate unit."""
    values, codes = encode_arrow(column, None)
    absent = np.array([v is MISSING or v in na for v in values])[codes]
    return np.where(absent, len(values) + np.arange(len(codes)), codes).astype(np.int64)


def find_copies(seen: NDArray[np.float64], equal_rows: EqualRows = "auto") -> Copies:
    """Assign rows to units so that duplicates share one.

    ``seen`` has what models see of each row, and its label.

    Examples
    --------
    >>> numbers = np.arange(100.0)[:, None]
    >>> copies = find_copies(np.concatenate([numbers, numbers, numbers]))
    >>> copies.equal, copies.held, len(set(copies.unit.tolist()))
    (200, 200, 100)

    Two columns with two values distinguish four kinds of rows, which are not duplicates:

    >>> copies = find_copies(np.random.default_rng(0).integers(0, 2, (100, 2)).astype(float))
    >>> copies.equal, copies.held
    (96, 0)
    """
    same = _same_rows(seen)
    kind, sizes = np.unique(same, return_inverse=True, return_counts=True)[1:]
    found = {"equal": len(same) - len(sizes), "pairs": _pairs_of(sizes)}
    if equal_rows == "together":
        return Copies(unit=same, held=found["equal"], **found)
    if equal_rows == "apart" or not found["equal"]:
        return Copies(unit=np.arange(len(same), dtype=np.int64), held=0, **found)
    times = int(np.gcd.reduce(sizes)) if len(sizes) >= _DISTINCT_ROWS else 1
    unit = _units_of(kind.ravel(), times)
    first = np.unique(unit, return_index=True)[1]  # one row of each unit
    by_chance = _pairs_by_chance(_columns(seen[first]))
    left = np.unique(kind.ravel()[first], return_counts=True)[1]
    is_copied = _pairs_of(left) > _BEYOND_CHANCE * by_chance
    if is_copied and sizes.max() <= _LARGEST_SHARE * len(same):
        return Copies(unit=same, held=found["equal"], by_chance=by_chance, **found)
    return Copies(unit=unit, held=len(unit) - len(first), by_chance=by_chance, **found)


def _same_rows(seen: NDArray[np.float64]) -> Rows:
    """Number rows so that equal rows share a number.

    Numbers are compared in single precision, since a file may store no more.
    """
    plain = _single_precision(seen)
    lines = np.ascontiguousarray(plain).view(np.dtype((np.void, plain.shape[1] * 4))).ravel()
    return np.asarray(np.unique(lines, return_inverse=True)[1], np.int64)


def _single_precision(seen: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        plain = seen.astype(np.float32) + np.float32(0)  # -0 becomes 0
    plain[np.isnan(plain)] = np.nan  # all in one bit pattern, since bytes are compared
    return plain


def _units_of(kind: Rows, times: int) -> Rows:
    """Make units of ``times`` equal rows each; which of them share a unit makes no difference."""
    order = np.argsort(kind, kind="stable")
    ordered = kind[order]
    start = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(len(kind)) - np.repeat(start, np.diff(np.r_[start, len(kind)]))
    first = np.empty(len(kind), np.int64)
    first[order] = order[np.arange(len(kind)) - place % times]
    return np.asarray(np.unique(first, return_inverse=True)[1], np.int64)  # in the rows' order


def _columns(seen: NDArray[np.float64]) -> list[Rows]:
    """Encode the values of every column; skip columns that repeat another one."""
    kept: list[Rows] = []
    for column in _single_precision(seen).T:
        values, codes = np.unique(column, return_inverse=True)
        n = len(values)
        if n > 1 and not any(o.max() == n - 1 and len(np.unique(o * n + codes)) == n for o in kept):
            kept.append(np.asarray(codes.ravel(), np.int64))
    return kept


def _pairs_by_chance(columns: list[Rows]) -> float:
    """Estimate how many pairs of rows chance makes equal.

    Two rows that agree in all columns but j and k agree in j, k, both or neither. If j and k were
    independent among such pairs, (only j differs) · (only k differs) / (both differ) pairs would
    agree in both. The upper quartile over pairs of columns allows for some dependent ones.
    """
    generator = generator_for(_STREAM)
    hashed = [generator.integers(0, 2**64, int(c.max()) + 1, dtype=np.uint64)[c] for c in columns]
    if len(hashed) < 2:
        return float("inf")  # one column reveals nothing about duplicates
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
