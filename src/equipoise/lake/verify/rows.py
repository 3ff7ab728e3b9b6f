"""Comparison of the rows of two tables, which may be in different kinds of files."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.counts.columns import encode_arrow
from equipoise.lake.verify.files import CheckedTable
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.int64]

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]{1,3})?", re.IGNORECASE)


def unmatched_rows(
    old: CheckedTable, new: CheckedTable, gone: Sequence[int], came: Sequence[int]
) -> tuple[Numbers, Numbers]:
    """Compare the rows not removed with those not added; return those that only one table has."""
    import pyarrow as pa

    stay, rest = (
        np.delete(np.arange(len(table.rows)), np.array(places, np.int64))
        for table, places in ((old, gone), (new, came))
    )
    ours, theirs = old.rows.schema, new.rows.schema
    if ours.names == theirs.names:
        md5s = pa.chunked_array([old.md5s.take(stay), new.md5s.take(rest)]).combine_chunks()
        a, b = np.split(md5s.dictionary_encode().indices.to_numpy(), [len(stay)])
        stay, rest = stay[_surplus(a, b)], rest[_surplus(b, a)]
    # Between files of different kinds or types, equal values can have different MD5s.
    same_format = old.kind == new.kind and ours == theirs
    if not same_format and set(ours.names) == set(theirs.names):
        a, b = _numbered(old.rows.take(stay), new.rows.take(rest))
        stay, rest = stay[_surplus(a, b)], rest[_surplus(b, a)]
    return stay, rest


def _surplus(mine: Numbers, theirs: Numbers) -> NDArray[np.bool_]:
    """Mark my numbers that the others do not have, or have fewer times."""
    order = np.argsort(mine, kind="stable")
    nth = np.empty(len(mine), np.int64)
    nth[order] = np.arange(len(mine)) - np.searchsorted(mine[order], mine[order])
    return np.asarray(nth >= np.bincount(theirs, minlength=int(mine.max(initial=0)) + 1)[mine])


def _numbered(a: pa.Table, b: pa.Table) -> tuple[Numbers, ...]:
    """Number the rows of two tables so that rows with the same values have the same number."""
    numbers = np.zeros(len(a) + len(b), np.int64)
    for name in a.column_names:
        kinds, known = (a[name].type, b[name].type), dict[Any, int]()
        codes = []
        for column in (a[name], b[name]):
            values, places = encode_arrow(_flat(column), None)
            table = [known.setdefault(_meaning(v, kinds), len(known)) for v in values]
            codes.append(np.array(table, np.int64)[places])
        joint = numbers * (len(known) + 1) + np.concatenate(codes)
        # Numbering again after each column keeps the products small, so that none overflows.
        numbers = np.unique(joint, return_inverse=True)[1].reshape(-1)
    return tuple(np.split(numbers, [len(a)]))


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([[str(value) for value in column.to_pylist()]])


def _meaning(text: Value, kinds: Sequence[pa.DataType]) -> Value | float | decimal.Decimal:
    """Return the meaning of a value: a CSV file has no null, and may write 39 as 39.0.

    Text is read as a number only if it is compared with a column of numbers, in its precision.
    """
    from pyarrow import types

    is_float = any(types.is_floating(kind) for kind in kinds)
    is_exact = any(types.is_integer(kind) or types.is_decimal(kind) for kind in kinds)
    if text is MISSING or not text or (is_float and text == "nan"):
        return MISSING
    if not (is_float or is_exact) or not _NUMBER.fullmatch(text):
        return text
    if any(types.is_float32(kind) for kind in kinds):
        with np.errstate(over="ignore"):
            return float(np.float32(text))
    return float(text) if is_float else decimal.Decimal(text)
