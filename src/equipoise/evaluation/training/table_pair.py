"""Two tables as one, in the columns they share and types that let equal values compare as equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.counts.columns import as_number, encode_arrow
from equipoise.errors import InputError
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.features import is_number
from equipoise.rows.texts import as_texts, is_text, without_categories
from equipoise.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import pyarrow as pa

_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


def stack_tables(first: pa.Table, second: pa.Table, request: EvaluationRequest) -> pa.Table:
    """Append the second table to the first, in the columns and types they share.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from equipoise.counts import CountRequest
    >>> request = EvaluationRequest(counting=CountRequest(sensitive=("sex",), label="y"))
    >>> one = pa.table({"sex": ["w", "m"], "y": [1, 0], "id": [7, 8]})
    >>> two = pa.table({"sex": ["m"], "y": ["1"]})
    >>> stack_tables(one, two, request).to_pydict()
    {'sex': ['w', 'm', 'm'], 'y': [1.0, 0.0, 1.0]}
    """
    import pyarrow as pa

    # A counted column may be dropped as a feature, but is needed all the same.
    used = {*request.counting.columns, *request.also, request.keep_together}
    left_out = {*request.reading.drop} - used
    shared = [c for c in first.column_names if c in second.column_names and c not in left_out]
    first, second = (without_categories(table.select(shared)) for table in (first, second))
    columns = []
    for name in shared:
        one, other = _with_common_type(first[name], second[name], request.counting.na)
        if name in request.counting.columns:
            _require_common_values(name, one, other, is_label=name == request.counting.label)
        columns.append(pa.chunked_array([*one.chunks, *other.chunks], one.type))
    return pa.table(columns, names=shared)


def _require_common_values(
    name: str, first: pa.ChunkedArray, second: pa.ChunkedArray, *, is_label: bool
) -> None:
    one, other = ({*encode_arrow(c, None)[0]} - {MISSING} for c in (first, second))
    if not one & other or (is_label and other - one):
        shown = [", ".join(sorted(map(str, values))[:5]) for values in (one, other)]
        raise InputError(
            f"column {name!r} has different values in the second table ({shown[1]}) than in the first "
            f"({shown[0]}); write them the same way, for example with `sql`."
        )


def _with_common_type(
    first: pa.ChunkedArray, second: pa.ChunkedArray, na: tuple[str, ...]
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Convert two columns to a common type: their own, times, booleans, numbers or texts.

    Empty texts, and texts that mean a missing value, become missing.
    """
    import pyarrow as pa

    if first.type == second.type and not is_text(first.type):
        return first, second
    if pa.types.is_nested(first.type) or pa.types.is_nested(second.type):
        raise InputError(
            f"a column holds {first.type} values in one table and {second.type} values in the other; "
            "leave it out with `drop`."
        )
    first, second = both = _without_na(first, na), _without_na(second, na)
    for is_kind, convert in ((_is_time, _times), (pa.types.is_boolean, _truths)):
        if (is_kind(first.type) or is_kind(second.type)) and (found := _each(convert, *both)):
            return found
    numbers = _each(_numbers, *both)
    # Where both files are without types, columns are read as numbers only if they share no text:
    # a code such as 007 is not a number.
    typed = is_number(first.type) or is_number(second.type)
    if numbers and (
        typed or not {*encode_arrow(first, None)[0]} & {*encode_arrow(second, None)[0]}
    ):
        return numbers
    return pa.chunked_array([as_texts(first)]), pa.chunked_array([as_texts(second)])


def _each(
    convert: Callable[[Any], Any], first: pa.ChunkedArray, second: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """Convert both columns, or neither."""
    one, other = convert(first), convert(second)
    return None if one is None or other is None else (one, other)


def _without_na(column: pa.ChunkedArray, na: tuple[str, ...]) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(column.type):
        return column
    texts = column.cast(pa.string())
    empty = pc.is_in(texts, pa.array(["", *na], pa.string()))
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts)


def _is_time(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    try:
        if getattr(column.type, "tz", None) is not None:
            column = column.cast(pa.timestamp("us", "UTC"), safe=False)
        return column.cast(pa.timestamp("us"), safe=False)
    except pa.ArrowException:
        return None


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    if is_number(column.type):
        return column.cast(pa.float64(), safe=False)
    return _read(column, as_number, pa.float64())


def _truths(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    return _read(column, lambda value: _TRUTHS.get(str(value).strip().lower()), pa.bool_())


def _read(
    column: pa.ChunkedArray, read: Callable[[Any], Any], kind: pa.DataType
) -> pa.ChunkedArray | None:
    """Read every value, or return None if one cannot be read."""
    import pyarrow as pa

    values, codes = encode_arrow(column, None)
    found = [None if v is MISSING else read(v) for v in values]
    if any(f is None and v is not MISSING for f, v in zip(found, values, strict=True)):
        return None
    return pa.chunked_array([pa.array(found, kind).take(pa.array(codes))])
