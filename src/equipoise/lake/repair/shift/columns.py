"""Interpretation of a column: numbers, categories, or nothing to compare."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.counts.columns import as_number, encode_arrow
from equipoise.lake.repair.shift.shift import Kind
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Whole: TypeAlias = NDArray[np.int64]
    Real: TypeAlias = NDArray[np.float64]

NUMERIC_SHARE = 0.95
"""Minimum share of numbers in a text column that is treated as numeric."""

IDENTIFIER_SHARE = 0.9
"""Minimum share of distinct texts in a column that identifies rows."""

FEW = 50
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
        """Interpret a column, or give the reason why it is not compared."""
        import pyarrow as pa

        types = (base.type, added.type)
        if any(pa.types.is_nested(t) for t in types):
            return "it holds nested values"
        if all(_is_number(t) or pa.types.is_null(t) for t in types):
            return cls._of_numbers(_coded_numbers(base), _coded_numbers(added))
        sides = (_coded_texts(base), _coded_texts(added))
        numbers = [np.array([_as_number(t) for t in texts], np.float64) for texts, _ in sides]
        if _share(np.isfinite, sides, numbers) >= NUMERIC_SHARE:
            (_, ours), (_, theirs) = sides
            return cls._of_numbers((numbers[0], ours), (numbers[1], theirs))
        return cls._of_texts(*sides, dated=any(pa.types.is_temporal(t) for t in types))

    @classmethod
    def _of_numbers(
        cls, base: tuple[Real, Whole], added: tuple[Real, Whole]
    ) -> ComparedColumn | str:
        finite = [np.isfinite(values) for values, _ in (base, added)]
        distinct, number = np.unique(
            np.concatenate([base[0][finite[0]], added[0][finite[1]]]), return_inverse=True
        )
        cut = int(finite[0].sum())
        codes = []
        for (_, old), good, new in zip(
            (base, added), finite, (number.reshape(-1)[:cut], number.reshape(-1)[cut:]), strict=True
        ):
            table = np.full(len(good) + 1, -1, np.int64)  # the last entry is for missing values
            table[:-1][good] = new
            codes.append(table[old])
        if _numbers_the_rows(distinct, codes[0]):
            return "it numbers the rows"
        return cls("number", distinct, (codes[0], codes[1]))

    @classmethod
    def _of_texts(
        cls,
        base: tuple[Sequence[Value], Whole],
        added: tuple[Sequence[Value], Whole],
        *,
        dated: bool,
    ) -> ComparedColumn | str:
        texts = tuple(t for t in dict.fromkeys((*base[0], *added[0])) if t is not MISSING and t)
        number: dict[Value, int] = {t: i for i, t in enumerate(texts)}
        codes = [
            np.array([*(number.get(t, -1) for t in x), -1], np.int64)[c] for x, c in (base, added)
        ]
        if len(texts) > FEW:
            if dated or sum(bool(_DATE.fullmatch(t)) for t in texts) >= NUMERIC_SHARE * len(texts):
                return f"it holds dates, {len(texts):,} different ones"
            if any(_names_rows(c) for c in codes):
                return "nearly every value is another, as of an identifier"
        return cls("category", texts, (codes[0], codes[1]))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _coded_numbers(column: pa.ChunkedArray) -> tuple[Real, Whole]:
    """Return the distinct numbers of a column, and the index for each row, -1 for none."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.zeros(0), np.full(len(column), -1, np.int64)
    coded = column.cast(pa.float64(), safe=False).combine_chunks().dictionary_encode()
    codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return np.asarray(coded.dictionary.to_numpy()), np.asarray(codes)


def _coded_texts(column: pa.ChunkedArray) -> tuple[Sequence[Value], Whole]:
    texts, codes = encode_arrow(column, None)
    return texts, codes.astype(np.int64)


def _as_number(text: Value) -> float:
    number = as_number(text)
    return math.nan if number is None else number


def _share(
    good: Any, sides: Iterable[tuple[Sequence[Value], Whole]], values: Iterable[Real]
) -> float:
    """Share of rows with a good value among those with any value."""
    fine = every = 0
    for (texts, codes), numbers in zip(sides, values, strict=True):
        rows = np.bincount(codes, minlength=len(texts))
        has = np.array([t is not MISSING and bool(t) for t in texts], np.bool_)
        fine += int(rows[has & good(numbers)].sum())
        every += int(rows[has].sum())
    return fine / every if every else 0.0


def _numbers_the_rows(distinct: Real, codes: Whole) -> bool:
    """Whether integers are so dense that some should be equal by chance, but none are."""
    used = codes[codes >= 0]
    if len(used) <= FEW or len(np.unique(used)) < len(used):
        return False
    values = distinct[used]
    return bool((values == np.floor(values)).all() and 20 * np.ptp(values) < len(values) ** 2)


def _names_rows(codes: Whole) -> bool:
    used = codes[codes >= 0]
    return len(used) > FEW and len(np.unique(used)) >= IDENTIFIER_SHARE * len(used)
