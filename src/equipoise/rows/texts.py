"""Arrow columns as plain values, and as the texts that counts know them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.counts.columns import encode_arrow
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa


def without_categories(table: pa.Table) -> pa.Table:
    """Replace categories by the values they stand for, since another table may have others.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"sex": pa.array(["w", "m", "w"]).dictionary_encode()})
    >>> without_categories(table).schema.field("sex").type
    DataType(string)
    """
    import pyarrow as pa

    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            plain_column = column.cast(column.type.value_type)
            table = table.set_column(i, table.column_names[i], plain_column)
    return table


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is one of Arrow's text types.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_text(pa.large_string()), is_text(pa.int64())
    (True, False)
    """
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def as_texts(column: pa.ChunkedArray) -> pa.Array:
    """Write the values of a column as the texts that counts know them by.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_texts(pa.chunked_array([[1.5, None]])).to_pylist()
    ['1.5', None]
    """
    import pyarrow as pa

    values, codes = encode_arrow(column, None)
    texts = pa.array([None if v is MISSING else v for v in values], pa.string())
    return texts.take(pa.array(codes))
