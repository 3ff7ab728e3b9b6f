"""Arrow columns as plain values, and as the texts that counts use for them."""

from __future__ import annotations

import pyarrow as pa

from equipoise.counts.columns import encode_arrow
from equipoise.values import MISSING


def without_categories(table: pa.Table) -> pa.Table:
    """Replace categories by the values they stand for, since another table may have others.

    >>> table = pa.table({"sex": pa.array(["w", "m", "w"]).dictionary_encode()})
    >>> without_categories(table).schema.field("sex").type
    DataType(string)
    """
    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            plain_column = column.cast(column.type.value_type)
            table = table.set_column(i, table.column_names[i], plain_column)
    return table


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's text types.

    >>> is_text(pa.large_string()), is_text(pa.int64())
    (True, False)
    """
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def as_texts(column: pa.ChunkedArray) -> pa.Array:
    """Convert the values of a column to the texts that counts use for them.

    >>> as_texts(pa.chunked_array([[1.5, None]])).to_pylist()
    ['1.5', None]
    """
    values, codes = encode_arrow(column, None)
    texts = pa.array([None if v is MISSING else v for v in values], pa.string())
    return texts.take(pa.array(codes))
