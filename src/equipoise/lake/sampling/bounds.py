"""How sure a sample drawn without replacement makes us, and how large it must be.

Serfling's inequality holds a whole table of frequencies to one additive error. A cell of a few
rows in ten thousand is lost in such an error; for these the exact hypergeometric tails say how
many rows there are at least and at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from equipoise.errors import InputError
from equipoise.validate import at_least, between, one_of

Rounding: TypeAlias = Literal["ceil", "floor"]
ROUNDINGS: tuple[Rounding, ...] = ("ceil", "floor")

Terms: TypeAlias = npt.NDArray[np.float64]

_FIRST_BLOCK, _LAST_BLOCK = 64, 16_384
_OVERWHELMING = 1e200
_TIE = 1e-12  # a probability that is just what was asked for is enough, whatever its last digit


class RowInterval(NamedTuple):
    """Whole numbers, both included."""

    low: int
    high: int


def serfling_sample_size(
    population: int,
    cells: int = 1,
    error: float = 0.05,
    failure: float = 0.05,
    *,
    rounding: Rounding = "ceil",
) -> int:
    """Tell how many rows to draw so that every frequency is within an additive error.

    By Serfling's inequality, on both sides, with a union bound over the cells: with
    n0 = ln(2·cells/failure) / (2·error²), a sample of n = n0·(N + 1) / (N + n0) rows of N,
    drawn without replacement, leaves any frequency farther off than ``error`` with a
    probability of at most ``failure``.

    Parameters
    ----------
    population
        N, the rows of the table.
    cells
        How many frequencies are held at once.
    error
        The largest difference allowed between a frequency in the sample and in the table.
    failure
        The largest probability that any of them is farther off.
    rounding
        The guarantee needs ``"ceil"``. ``"floor"`` reproduces numbers published without it,
        which are one row short of it.

    Examples
    --------
    >>> serfling_sample_size(60_798, cells=12, error=0.05, failure=0.05)
    1211
    >>> serfling_sample_size(60_798, cells=12, error=0.05, failure=0.05, rounding="floor")
    1210
    """
    at_least("population", population, 1, whole=True)
    between("error", error, 0, 1)
    one_of("rounding", rounding, ROUNDINGS)
    unlimited = _log_tails(cells, failure) / (2 * error**2)
    needed = unlimited * (population + 1) / (population + unlimited)
    whole = math.ceil(needed) if rounding == "ceil" else max(1, math.floor(needed))
    return min(int(population), whole)


def serfling_error(population: int, sample: int, cells: int = 1, failure: float = 0.05) -> float:
    """Tell the additive error that a sample of so many rows keeps all frequencies within.

    The inverse of :func:`serfling_sample_size`; 0 when all rows were drawn.

    Parameters
    ----------
    population, sample
        The rows of the table, and those drawn from it without replacement.
    cells, failure
        How many frequencies are held at once, and the probability that one is farther off.

    Examples
    --------
    >>> serfling_error(60_798, 1211, cells=12) <= 0.05 < serfling_error(60_798, 1210, cells=12)
    True
    """
    at_least("sample", sample, 1, whole=True)
    at_least("population", population, sample, whole=True)
    if sample == population:
        return 0.0
    left = 1 - (sample - 1) / population
    return math.sqrt(_log_tails(cells, failure) * left / (2 * sample))


def hypergeometric_interval(
    population: int, sample: int, found: int, confidence: float = 0.95
) -> RowInterval:
    """Bound how many rows of a cell a table has, by how many a sample of it found.

    Exact, as Clopper and Pearson's for shares: each bound is wrong with a probability of at
    most (1 − confidence)/2, whatever the table.

    Parameters
    ----------
    population, sample
        The rows of the table, and those drawn from it without replacement.
    found
        How many of those drawn are of the cell.
    confidence
        The least probability that the interval has the number in it.

    Examples
    --------
    >>> hypergeometric_interval(60_798, 1_211, found=2)
    RowInterval(low=13, high=359)
    >>> hypergeometric_interval(100, 100, found=7)
    RowInterval(low=7, high=7)
    """
    between("confidence", confidence, 0, 1)
    side = (1 + confidence) / 2
    return RowInterval(
        hypergeometric_lower(population, sample, found, side),
        hypergeometric_upper(population, sample, found, side),
    )


def hypergeometric_lower(population: int, sample: int, found: int, confidence: float = 0.95) -> int:
    """Tell how many rows of a cell a table has at least, by how many a sample of it found.

    The smallest number under which finding so many, or more, has a probability of at least
    1 − confidence.

    Parameters
    ----------
    population, sample, found
        The rows of the table, those drawn without replacement, and those of the cell.
    confidence
        The least probability that the bound holds.

    Examples
    --------
    >>> hypergeometric_lower(60_798, 1_211, found=2)
    19
    >>> hypergeometric_lower(60_798, 1_211, found=0)
    0
    """
    _require_sample(population, sample, found)
    between("confidence", confidence, 0, 1)
    if found == 0:
        return 0

    def is_likely(rows: int) -> bool:
        below, above = _around(found, population, rows, sample)
        return 1 + above >= (1 - confidence) * (1 - _TIE) * (1 + above + below)

    return _smallest(found, population - (sample - found), is_likely)


def hypergeometric_upper(population: int, sample: int, found: int, confidence: float = 0.95) -> int:
    """Tell how many rows of a cell a table has at most, by how many a sample of it found.

    Parameters
    ----------
    population, sample, found
        The rows of the table, those drawn without replacement, and those of the cell.
    confidence
        The least probability that the bound holds.

    Examples
    --------
    >>> hypergeometric_upper(60_798, 1_211, found=0)
    148
    """
    _require_sample(population, sample, found)
    # What was not found is what was found of the rest.
    return int(population) - hypergeometric_lower(population, sample, sample - found, confidence)


def draws_needed(population: int, cell_rows: int, want: int, confidence: float = 0.95) -> int:
    """Tell how many draws without replacement give so many rows of a cell.

    Parameters
    ----------
    population, cell_rows
        The rows of the table, and those of the cell.
    want
        How many of the cell are wanted.
    confidence
        The least probability to get them.

    Examples
    --------
    >>> draws_needed(10_000, cell_rows=200, want=5)
    450
    >>> draws_needed(10_000, cell_rows=200, want=0)
    0
    """
    at_least("population", population, 1, whole=True)
    at_least("want", want, 0, whole=True)
    at_least("cell_rows", cell_rows, 0, whole=True)
    between("confidence", confidence, 0, 1)
    if not want <= cell_rows <= population:
        raise InputError(
            f"{want:,} rows are wanted of a cell with {cell_rows:,} of {population:,} rows; "
            "want no more than it has, and give it no more than there are."
        )
    if want == 0:
        return 0

    def is_enough(sample: int) -> bool:
        below, above = _around(want, population, cell_rows, sample)
        return 1 + above >= confidence * (1 - _TIE) * (1 + above + below)

    return _smallest(want, population - (cell_rows - want), is_enough)


# ------------------------------------------------------------------------------- inside


def _log_tails(cells: int, failure: float) -> float:
    at_least("cells", cells, 1, whole=True)
    between("failure", failure, 0, 1)
    return math.log(2 * cells / failure)


def _require_sample(population: int, sample: int, found: int) -> None:
    for name, value in (("population", population), ("sample", sample), ("found", found)):
        at_least(name, value, 0, whole=True)
    if not found <= sample <= population:
        raise InputError(
            f"{found:,} rows were found among {sample:,} drawn of {population:,}; a sample has "
            "no more rows than its table, and no more of a cell than it has."
        )


def _smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Bisect for the least whole number that holds; ``high`` is known to."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return int(low)


def _around(found: int, population: int, rows: int, sample: int) -> tuple[float, float]:
    """Probabilities of fewer and of more rows than found, as multiples of that of just so many.

    Ratios of neighbouring terms are simple and exact, where logarithms of factorials of ten
    millions would cost half of the digits.
    """
    rest = population - rows - sample

    def up(start: int, stop: int) -> Terms:
        x = np.arange(found + start, found + stop, dtype=np.float64)
        return (rows - x) * (sample - x) / ((x + 1) * (rest + x + 1))

    def down(start: int, stop: int) -> Terms:
        x = np.arange(found - start, found - stop, -1, dtype=np.float64)
        return x * (rest + x) / ((rows - x + 1) * (sample - x + 1))

    least, most = max(0, -rest), min(rows, sample)
    return _total(down, found - least), _total(up, most - found)


def _total(ratios: Callable[[int, int], Terms], terms: int) -> float:
    """Add up products of ratios that only ever fall, until what is left cannot matter."""
    total, term, done, block = 0.0, 1.0, 0, _FIRST_BLOCK
    while done < terms:
        stop = min(terms, done + block)
        factors = ratios(done, stop)
        with np.errstate(over="ignore", invalid="ignore"):
            products = term * np.cumprod(factors)
            total += float(products.sum())
        term, ratio, done = float(products[-1]), float(factors[-1]), stop
        if not total <= _OVERWHELMING:  # also when an overflow met a ratio of 0
            return math.inf
        if ratio < 1 and term * ratio / (1 - ratio) < 1e-17 * (1 + total):
            break
        block = min(2 * block, _LAST_BLOCK)
    return total
