"""What a sample drawn without replacement says about its table, and how large it must be.

Serfling's inequality bounds a whole table of frequencies by one additive error. A cell of a few rows
in ten thousand is smaller than such an error. For rare cells, exact hypergeometric tails bound the
number of rows from below and above.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from equipoise.errors import InputError
from equipoise.plain import in_words
from equipoise.validate import at_least, between, one_of

Rounding: TypeAlias = Literal["ceil", "floor"]
Terms: TypeAlias = npt.NDArray[np.float64]

_FIRST_BLOCK, _LAST_BLOCK = 64, 16_384  # terms summed at once: most sums end within the first
_OVERWHELMING = 1e200  # treated as infinite, well before a double overflows
_TIE = 1e-12  # a probability equal to the requested one is enough, whatever its last digit


class RowInterval(NamedTuple):
    """An interval of numbers of rows, both ends included."""

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
    """Return the sample size for which all frequencies are within an additive error.

    By the two-sided inequality of Serfling and a union bound over the cells: let
    n0 = ln(2·cells/failure) / (2·error²). In a sample of n = n0·(N + 1) / (N + n0) rows of N, drawn
    without replacement, the probability that some frequency is off by more than ``error`` is at most
    ``failure``.

    Parameters
    ----------
    population
        Number of rows N of the table.
    cells
        Number of frequencies that are bounded at once.
    error
        Maximum difference between a frequency in the sample and in the table.
    failure
        Maximum probability that some frequency is off by more.
    rounding
        The guarantee needs ``"ceil"``. ``"floor"`` reproduces published numbers that are one row short
        of the guarantee.

    Examples
    --------
    >>> serfling_sample_size(60_798, cells=12, error=0.05, failure=0.05)
    1211
    >>> serfling_sample_size(60_798, cells=12, error=0.05, failure=0.05, rounding="floor")
    1210
    """
    at_least("population", population, 1, whole=True)
    between("error", error, 0, 1)
    one_of("rounding", rounding, get_args(Rounding))
    unlimited = _log_tails(cells, failure) / (2 * error**2)
    needed = unlimited * (population + 1) / (population + unlimited)
    whole = math.ceil(needed) if rounding == "ceil" else max(1, math.floor(needed))
    return min(int(population), whole)


def serfling_error(population: int, sample: int, cells: int = 1, failure: float = 0.05) -> float:
    """Return the additive error that bounds all frequencies for a sample size.

    The inverse of :func:`serfling_sample_size`; 0 when all rows were drawn.

    Parameters
    ----------
    population, sample
        Number of rows of the table, and of rows drawn from it without replacement.
    cells, failure
        Number of frequencies, and maximum probability that one is off by more.

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
    """Return an interval for the number of rows of a cell in a table, given a sample.

    It is exact, as that of Clopper and Pearson is for shares: each bound is wrong with a probability
    of at most (1 − confidence)/2, whatever the table.

    Parameters
    ----------
    population, sample
        Number of rows of the table, and of rows drawn from it without replacement.
    found
        Number of rows of the cell in the sample.
    confidence
        Confidence level of the interval.

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
    """Return a lower bound for the number of rows of a cell in a table, given a sample.

    It is the smallest number for which the probability of finding at least as many rows is not below
    1 − confidence.

    Parameters
    ----------
    population, sample, found
        Number of rows of the table, of rows drawn without replacement, and of those of the cell.
    confidence
        Confidence level of the bound.

    Examples
    --------
    >>> hypergeometric_lower(60_798, 1_211, found=2)
    19
    >>> hypergeometric_lower(60_798, 1_211, found=0)
    0
    """
    _require_rising(found=found, sample=sample, population=population)
    between("confidence", confidence, 0, 1)
    if found == 0:
        return 0

    def is_likely(rows: int) -> bool:
        return _gives(found, population, rows, sample, 1 - confidence)

    return _smallest(found, population - (sample - found), is_likely)


def hypergeometric_upper(population: int, sample: int, found: int, confidence: float = 0.95) -> int:
    """Return an upper bound for the number of rows of a cell in a table, given a sample.

    Parameters
    ----------
    population, sample, found
        Number of rows of the table, of rows drawn without replacement, and of those of the cell.
    confidence
        Confidence level of the bound.

    Examples
    --------
    >>> hypergeometric_upper(60_798, 1_211, found=0)
    148
    """
    _require_rising(found=found, sample=sample, population=population)
    # By symmetry: an upper bound for the cell is a lower bound for all other rows.
    return int(population) - hypergeometric_lower(population, sample, sample - found, confidence)


def draws_needed(population: int, cell_rows: int, want: int, confidence: float = 0.95) -> int:
    """Return the number of draws without replacement that yield enough rows of a cell.

    Parameters
    ----------
    population, cell_rows
        Number of rows of the table, and of the cell.
    want
        Number of rows of the cell that are needed.
    confidence
        Minimum probability to obtain them.

    Examples
    --------
    >>> draws_needed(10_000, cell_rows=200, want=5)
    450
    >>> draws_needed(10_000, cell_rows=200, want=0)
    0
    """
    at_least("population", population, 1, whole=True)
    _require_rising(want=want, cell_rows=cell_rows, population=population)
    between("confidence", confidence, 0, 1)
    if want == 0:
        return 0

    def is_enough(sample: int) -> bool:
        return _gives(want, population, cell_rows, sample, confidence)

    return _smallest(want, population - (cell_rows - want), is_enough)


def _log_tails(cells: int, failure: float) -> float:
    at_least("cells", cells, 1, whole=True)
    between("failure", failure, 0, 1)
    return math.log(2 * cells / failure)


def _require_rising(**numbers: int) -> None:
    for name, value in numbers.items():
        at_least(name, value, 0, whole=True)
    if list(numbers.values()) != sorted(numbers.values()):
        said = in_words([f"`{name}` is {value:,}" for name, value in numbers.items()])
        raise InputError(f"{said}; each must be at most the next.")


def _smallest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Bisect for the smallest whole number for which ``holds`` is true, as it is for ``high``."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return int(low)


def _gives(found: int, population: int, rows: int, sample: int, probability: float) -> bool:
    """Whether a sample has at least as many rows of a cell with at least this probability."""
    below, above = _around(found, population, rows, sample)
    return 1 + above >= probability * (1 - _TIE) * (1 + above + below)


def _around(found: int, population: int, rows: int, sample: int) -> tuple[float, float]:
    """Return the probabilities of fewer and of more rows than found, relative to that of as many.

    Ratios of neighbouring terms are simple and precise, whereas logarithms of factorials of ten
    millions would lose half of the digits.
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
    """Sum products of decreasing ratios until the remaining terms cannot matter."""
    total, term, done, block = 0.0, 1.0, 0, _FIRST_BLOCK
    while done < terms:
        stop = min(terms, done + block)
        factors = ratios(done, stop)
        with np.errstate(over="ignore", invalid="ignore"):
            products = term * np.cumprod(factors)
            total += float(products.sum())
        term, ratio, done = float(products[-1]), float(factors[-1]), stop
        if not total <= _OVERWHELMING:  # also NaN, of an overflow times 0
            return math.inf
        if ratio < 1 and term * ratio / (1 - ratio) < 1e-17 * (1 + total):
            break
        block = min(2 * block, _LAST_BLOCK)
    return total
