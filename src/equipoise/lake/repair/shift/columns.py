"""Interpretation of a column: numbers, categories, or nothing to compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from equipoise.counts.columns import as_number, encode_arrow
from equipoise.lake.repair.shift.chance import Real, Whole
from equipoise.lake.repair.shift.shift import Kind
from equipoise.values import MISSING, Value

_Texts: TypeAlias = tuple[Sequence[Value], Whole]
"""Distinct texts of a column, and the index of that of each row."""

_NUMERIC_SHARE = 0.95
"""Minimum share of numbers in a text column that is treated as numeric."""

_IDENTIFIER_SHARE = 0.9
"""Minimum share of distinct texts in a column that identifies rows."""

_FEW = 50
"""Maximum number of distinct values in a date column that is treated as categorical."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True, eq=False)
class ComparedColumn:
    """Value numbers of both samples of a column, -1 for missing values."""

    kind: Kind
    values: Any
    codes: tuple[Whole, Whole]

    @classmethod
    def read(cls, base: pa.ChunkedArray, added: pa.ChunkedArray) -> ComparedColumn | str:
        """Interpret a column, or return the reason why it is not compared."""
        types = (base.type, added.type)
        if any(pa.types.is_nested(t) for t in types):
            return "it holds nested values"
        if all(_is_number(t) or pa.types.is_null(t) for t in types):
            return cls._of_numbers(_coded_numbers(base), _coded_numbers(added))
        sides = (_coded_texts(base), _coded_texts(added))
        # A text that is not a number becomes nan.
        numbers = [np.array([as_number(t) for t in texts], np.float64) for texts, _ in sides]
        if _numeric_share(sides, numbers) >= _NUMERIC_SHARE:
            (_, ours), (_, theirs) = sides
            return cls._of_numbers((numbers[0], ours), (numbers[1], theirs))
        return cls._of_texts(*sides, dated=any(pa.types.is_temporal(t) for t in types))

    @classmethod
    def _of_numbers(
        cls, base: tuple[Real, Whole], added: tuple[Real, Whole]
    ) -> ComparedColumn | str:
        finite = [values[np.isfinite(values)] for values, _ in (base, added)]
        distinct = np.unique(np.concatenate(finite))
        codes = []
        for values, old in (base, added):
            table = np.full(len(values) + 1, -1, np.int64)  # the last entry is for missing values
            good = np.isfinite(values)
            table[:-1][good] = np.searchsorted(distinct, values[good])
            codes.append(table[old])
        if _numbers_the_rows(distinct, codes[0]):
            return "it numbers the rows"
        return cls("number", distinct, (codes[0], codes[1]))

    @classmethod
    def _of_texts(cls, base: _Texts, added: _Texts, *, dated: bool) -> ComparedColumn | str:
        texts = tuple(t for t in dict.fromkeys((*base[0], *added[0])) if t is not MISSING and t)
        number: dict[Value, int] = {t: i for i, t in enumerate(texts)}
        codes = [
            np.array([*(number.get(t, -1) for t in x), -1], np.int64)[c] for x, c in (base, added)
        ]
        if len(texts) > _FEW:
            if dated or sum(bool(_DATE.fullmatch(t)) for t in texts) >= _NUMERIC_SHARE * len(texts):
                return f"it holds dates, {len(texts):,} different ones"
            if any(_names_rows(c) for c in codes):
                return "nearly all values are different, as in an identifier"
        return cls("category", texts, (codes[0], codes[1]))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _coded_numbers(column: pa.ChunkedArray) -> tuple[Real, Whole]:
    """Return the distinct numbers of a column, and the index for each row, -1 for none."""
    if pa.types.is_null(column.type):
        return np.zeros(0), np.full(len(column), -1, np.int64)
    coded = column.cast(pa.float64(), safe=False).combine_chunks().dictionary_encode()
    codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return np.asarray(coded.dictionary.to_numpy()), np.asarray(codes)


def _coded_texts(column: pa.ChunkedArray) -> _Texts:
    texts, codes = encode_arrow(column, None)
    return texts, codes.astype(np.int64)


def _numeric_share(sides: Sequence[_Texts], values: Sequence[Real]) -> float:
    """Share of rows with a number among those with any value."""
    fine = every = 0
    for (texts, codes), numbers in zip(sides, values, strict=True):
        rows = np.bincount(codes, minlength=len(texts))
        has = np.array([t is not MISSING and bool(t) for t in texts], np.bool_)
        fine += int(rows[has & np.isfinite(numbers)].sum())
        every += int(rows[has].sum())
    return fine / every if every else 0.0


def _numbers_the_rows(distinct: Real, codes: Whole) -> bool:
    """Whether integers are so dense that some should be equal by chance, but none are."""
    used = codes[codes >= 0]
    if len(used) <= _FEW or len(np.unique(used)) < len(used):
        return False
    values = distinct[used]
    # Among n random integers of a range r, about n²/2r pairs are equal: here more than ten.
    return bool((values == np.floor(values)).all() and 20 * np.ptp(values) < len(values) ** 2)


def _names_rows(codes: Whole) -> bool:
    used = codes[codes >= 0]
    return len(used) > _FEW and len(np.unique(used)) >= _IDENTIFIER_SHARE * len(used)
