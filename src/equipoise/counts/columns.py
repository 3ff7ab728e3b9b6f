"""Columns as numbers: every value gets a code, every count and weight is checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import CountsError, InputError
from equipoise.options.count import CountRequest, bin_names
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

Coded: TypeAlias = "tuple[tuple[Value, ...], NDArray[np.int32]]"
"""The distinct values of a column and, for every line, the code of its value."""

LARGEST = 2.0**63
"""Counts are below this, so that they fit in 64 bits."""


# ------------------------------------------------------------------------------ codes


def take(table: Sequence[int], codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Replace every code by the table's entry for it."""
    return np.array(table, np.int32)[codes] if len(table) else codes


def encode_list(values: Sequence[Value]) -> Coded:
    """Number values in the order in which they come."""
    distinct = tuple(dict.fromkeys(values))
    codes = {v: c for c, v in enumerate(distinct)}
    return distinct, np.array([codes[v] for v in values], np.int32)


# Loading Arrow's functions takes longer than to number the few cells that a query returns.
_FEW = 1000


def encode_arrow(column: pa.ChunkedArray, edges: tuple[float, ...] | None) -> Coded:
    """Number the values of an Arrow column, in their own order: numbers by size."""
    import pyarrow as pa

    if pa.types.is_null(column.type) or not len(column):
        return (MISSING,), np.zeros(len(column), np.int32)
    plain = pa.types.is_string(column.type) or pa.types.is_integer(column.type)
    texts, codes = _encode_few(column) if plain and len(column) <= _FEW else _encode_many(column)
    if edges is not None:
        return _encode_bins(texts, codes, edges)
    return _one_code_a_text(texts, codes)


def _encode_few(column: pa.ChunkedArray) -> tuple[list[Value], NDArray[np.int32]]:
    values = column.to_pylist()
    distinct = sorted({value for value in values if value is not None})
    rank = {value: code for code, value in enumerate(distinct)}
    codes = [rank.get(value, len(distinct)) for value in values]  # a null is past the end
    texts = [as_value(value) for value in distinct]
    return [*texts, MISSING] if column.null_count else texts, np.array(codes, np.int32)


def _encode_many(column: pa.ChunkedArray) -> tuple[list[Value], NDArray[np.int32]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_coded = pa.types.is_dictionary(column.type)
    encoded = (column if is_coded else pc.dictionary_encode(column)).unify_dictionaries()
    encoded = encoded.combine_chunks()
    dictionary, indices = encoded.dictionary, encoded.indices.cast(pa.int32())
    if pa.types.is_string_view(dictionary.type):  # Arrow cannot sort these
        dictionary = dictionary.cast(pa.large_string())
    codes = indices.fill_null(len(dictionary)).to_numpy()  # nulls get the code after the last value
    order = pc.array_sort_indices(dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    rank[-1] = len(order)
    texts = values_in(dictionary.take(pa.array(order)))
    if column.null_count:
        texts.append(MISSING)
    return texts, rank[codes]


def values_in(column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """Return the values of an Arrow column, each as :func:`~equipoise.values.as_value` does.

    >>> import pyarrow as pa
    >>> values_in(pa.array([1_500_000_001, 0, None], pa.timestamp("ns")))
    ['1970-01-01 00:00:01.500000001', '1970-01-01 00:00:00', MISSING]
    """
    import pyarrow as pa

    if not (pa.types.is_timestamp(column.type) and column.type.unit == "ns"):
        return [as_value(raw) for raw in column.to_pylist()]
    # Python has no nanoseconds, and Arrow would need pandas to represent them.
    zone = "" if column.type.tz is None else "+00"
    texts = column.cast(pa.int64()).cast(pa.timestamp("ns")).cast(pa.string()).to_pylist()
    return [MISSING if t is None else t.rstrip("0").rstrip(".") + zone for t in texts]


def encode_table(table: pa.Table, request: CountRequest) -> tuple[dict[str, Coded], CountRequest]:
    """Number the values of the counted columns; the request comes back with all bin edges."""
    import pyarrow as pa

    for name in (*request.columns, *filter(None, (request.count, request.weight))):
        kind = table.schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_interval(kind):
            raise nested_values(name, "the frame", str(kind))
    coded, edges = {}, {}
    for name in request.columns:
        if name in request.bins:
            numbers = numbers_in(name, table[name], request.na)
            spec = request.bins[name]
            edges[name] = quantile_edges(name, numbers, spec) if isinstance(spec, int) else spec
            coded[name] = bin_codes(numbers, edges[name])
        else:
            coded[name] = encode_arrow(table[name], None)
    return coded, request.with_edges(edges)


def _one_code_a_text(texts: Sequence[Value], codes: NDArray[np.int32]) -> Coded:
    distinct, number = encode_list(texts)
    return distinct, codes if len(distinct) == len(texts) else number[codes]


def _encode_bins(
    texts: Sequence[Value], codes: NDArray[np.int32], edges: tuple[float, ...]
) -> Coded:
    names = bin_names(edges)
    table = [len(names) if t is MISSING else int(t) for t in texts]
    return (*names, MISSING), take(table, codes)


# ------------------------------------------------------------------------------- bins


def numbers_in(
    name: str,
    column: pa.ChunkedArray,
    na: Sequence[str],
    refusal: Callable[[str, str], InputError] | None = None,
) -> NDArray[np.float64]:
    """Read a column as numbers, each distinct value once; a missing one is nan.

    ``refusal`` makes the error for a text that is no number.
    """
    import pyarrow as pa

    refusal = refusal or not_a_number

    as_is = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
    if pa.types.is_integer(as_is.type) or pa.types.is_floating(as_is.type):
        wide = np.asarray(as_is.cast(pa.float64(), safe=False).to_numpy())
        if not na:
            return wide
        texts, codes = encode_arrow(column, None)
        return np.where(np.array([t in na for t in texts])[codes], np.nan, wide)
    texts, codes = encode_arrow(column, None)
    numbers = [as_number(text, na) for text in texts]
    strange = [str(text) for text, n in zip(texts, numbers, strict=True) if n is None]
    if strange:
        raise refusal(name, min(strange))
    return np.array(numbers, np.float64)[codes]


def bin_codes(numbers: NDArray[np.float64], edges: tuple[float, ...]) -> Coded:
    """Number the bin each number falls in; nan is a missing value."""
    place = np.searchsorted(np.array(edges), numbers, side="right")
    place[np.isnan(numbers)] = len(edges) + 1
    return (*bin_names(edges), MISSING), place.astype(np.int32)


def as_number(raw: Any, na: Sequence[str] = ()) -> float | None:
    """Read a number; a missing value is nan, and anything else None.

    >>> as_number("1.5"), as_number(None), as_number("many")
    (1.5, nan, None)
    """
    value = as_value(raw)
    if value is MISSING or value in na:
        return math.nan
    try:
        # Python accepts digits of any script, which no database does.
        return float(raw if value.isascii() else "")
    except (TypeError, ValueError):
        return None


def quantile_edges(name: str, numbers: NDArray[np.float64], bins: int) -> tuple[float, ...]:
    """Edges between ``bins`` bins of about equal size; equal edges are one.

    An edge is the smallest number with at least the wanted share of numbers at or
    below it, so it is a number of the column.
    """
    rising = np.sort(numbers[~np.isnan(numbers)])
    if not len(rising):
        raise InputError(f"column {name!r} has no numbers to bin.")
    at = [-(-len(rising) * i // bins) - 1 for i in range(1, bins)]  # ceil, without rounding errors
    return distinct_edges(name, rising[at].tolist(), float(rising[0]))


def distinct_edges(name: str, edges: Iterable[float], least: float) -> tuple[float, ...]:
    """Leave out equal edges, infinity, and the least number, below which there is nothing."""
    kept = tuple(sorted({e + 0.0 for e in edges if least < e < math.inf}))  # −0.0 is 0.0
    if not kept:
        raise InputError(
            f"column {name!r} has too few different numbers for quantile bins; give edges, "
            f"as in `bins={{{name!r}: (25, 45, 65)}}`, or count it as it is."
        )
    return kept


# ------------------------------------------------------------------ counts and weights


def checked_counts(rows: Any) -> NDArray[np.int64]:
    """Take whole, non-negative numbers, or name the one that is not."""
    try:
        given = np.asarray(rows)
    except ValueError:  # lists of several lengths
        given = np.array(None)
    if given.dtype.kind not in "iuf" and given.size:
        raise CountsError("the counts are not all numbers; a count is a whole number of rows.")
    good = (given >= 0) & (given < LARGEST) & (given == np.floor(given))
    if not good.all():
        raise CountsError(
            f"{given[~good][0]!s} is not a count; counts are whole numbers of at least 0 "
            "(for fractional weights use `weight`)."
        )
    return given.astype(np.int64)


def counts_in(name: str, column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Read a column of counts, or name the value that is not one."""
    found = []
    for raw in column.to_pylist():
        number = raw if type(raw) is int else as_number(raw)
        if number is None or not (0 <= number < LARGEST and number == number // 1):
            raise not_a_count(name, as_value(raw))
        found.append(int(number))
    return np.array(found, np.int64)


def weights_in(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Read a column of weights, or return the number of values that are not weights."""
    found = [as_number(raw) for raw in column.to_pylist()]
    bad = sum(number is None or not 0 <= number < math.inf for number in found)
    if bad:
        raise not_weights(name, bad)
    return np.array(found, np.float64)


# ------------------------------------------------------------------------------ errors


def not_a_number(name: str, text: str) -> InputError:
    """Make the error for a column to bin that holds text."""
    return InputError(
        f"column {name!r} is to be binned but holds {text!r}, which is not a number; if that "
        f"means a missing value, name it, as in `na={text!r}`, and if the column is text, leave it "
        "out of `bins`."
    )


def not_numbers(name: str, text: str | None) -> InputError:
    """Make the error for a column of scores that holds a text, or no number at all."""
    if text is None:
        return InputError(f"column {name!r} has no numbers; a score is a number.")
    return InputError(
        f"column {name!r} holds {text!r}, which is not a number; a score is a number. If that means "
        f"a missing value, name it, as in `na={text!r}`."
    )


def not_a_count(name: str, value: Value) -> CountsError:
    """Make the error for a column of counts with a value that is not a count."""
    shown = "empty fields" if value is MISSING else f"{value!r}, which is not a count"
    return CountsError(
        f"column {name!r} holds {shown}; counts are whole numbers of at least 0 (for fractional "
        "weights use `weight`)."
    )


def not_weights(name: str, bad: int) -> CountsError:
    """Make the error for row weights that cannot be used."""
    return CountsError(
        f"column {name!r} has {bad:,} weights that are missing, negative or not finite numbers; "
        "weights are numbers of at least 0."
    )


def nested_values(name: str, table: str, kind: str) -> InputError:
    """Make the error for a column of lists or structures."""
    return InputError(
        f"column {name!r} of {table} holds nested values ({kind}); name a column of plain values, "
        "or take one out of them with `sql`."
    )
