"""Two columns in one type, so that equal values are equal however their files write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.counts.columns import as_number, encode_arrow
from equipoise.errors import InputError
from equipoise.rows.texts import as_texts, is_text
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa

_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


def with_common_type(
    first: pa.ChunkedArray, second: pa.ChunkedArray, na: tuple[str, ...] = ()
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Bring two columns to a type both have: theirs, numbers, truths, moments, or texts.

    Texts that mean a missing value, and empty ones, are missing.

    >>> import pyarrow as pa
    >>> texts, numbers = pa.chunked_array([["1", "2"]]), pa.chunked_array([[1.0, 3.0]])
    >>> [column.to_pylist() for column in with_common_type(texts, numbers)]
    [[1.0, 2.0], [1.0, 3.0]]
    >>> [column.to_pylist() for column in with_common_type(texts, pa.chunked_array([["a"]]))]
    [['1', '2'], ['a']]
    """
    import pyarrow as pa

    if first.type == second.type and not is_text(first.type):
        return first, second
    if any(pa.types.is_nested(c.type) for c in (first, second)):
        raise InputError(
            f"a column holds {first.type} values in one table and {second.type} in the other; leave "
            "it out with --drop."
        )
    first, second = either = tuple(_without(c, na) for c in (first, second))
    if any(pa.types.is_date(c.type) or pa.types.is_timestamp(c.type) for c in either):
        moments = [_moments(c) for c in either]
        if all(m is not None for m in moments):
            return moments[0], moments[1]
    if any(pa.types.is_boolean(c.type) for c in either):
        truths = [_truths(c) for c in either]
        if all(t is not None for t in truths):
            return truths[0], truths[1]
    numbers = [_numbers(c) for c in either]
    if any(_is_number(c) for c in either) and all(n is not None for n in numbers):
        return numbers[0], numbers[1]
    # Both may be files without types. Only if no text is in both they are read as numbers, since
    # a code such as 007 is none.
    apart = not {*encode_arrow(first, None)[0]} & {*encode_arrow(second, None)[0]}
    if apart and all(n is not None for n in numbers):
        return numbers[0], numbers[1]
    texts = (pa.chunked_array([as_texts(c)]) for c in either)
    return next(texts), next(texts)


def _without(column: pa.ChunkedArray, na: tuple[str, ...]) -> pa.ChunkedArray:
    """Take texts that mean nothing for missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(column.type):
        return column
    texts = column.cast(pa.string())
    empty = pc.is_in(texts, pa.array(["", *na], pa.string()))
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts)


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Days and moments as moments, those of a time zone in that of Greenwich; texts if they can."""
    import pyarrow as pa

    try:
        if getattr(column.type, "tz", None) is not None:
            column = column.cast(pa.timestamp("us", "UTC"), safe=False)
        return column.cast(pa.timestamp("us"), safe=False)
    except pa.ArrowException:
        return None


def _is_number(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    kind = column.type
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    if _is_number(column):
        return column.cast(pa.float64(), safe=False)
    values, codes = encode_arrow(column, None)
    read = [None if v is MISSING else as_number(v) for v in values]
    if any(r is None and v is not MISSING for r, v in zip(read, values, strict=True)):
        return None
    return pa.chunked_array([pa.array(read, pa.float64()).take(pa.array(codes))])


def _truths(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    values, codes = encode_arrow(column, None)
    read = [None if v is MISSING else _TRUTHS.get(str(v).strip().lower()) for v in values]
    if any(r is None and v is not MISSING for r, v in zip(read, values, strict=True)):
        return None
    return pa.chunked_array([pa.array(read, pa.bool_()).take(pa.array(codes))])
