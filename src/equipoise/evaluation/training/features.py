"""A table as models take it: numbers as they are, categories as codes, and what was left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts.columns import as_number, encode_arrow, take
from equipoise.errors import ColumnNotFound, InputError
from equipoise.options.evaluation import FeatureOptions, Impute
from equipoise.plain import in_words
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.evaluation.training.models import Model

    Floats = NDArray[np.float64]

# One-hot columns of a feature at most; the last stands for all rarer categories. Without a bound, a
# column of names would give a column for nearly every row.
_MAX_CATEGORIES = 100
# A text column with at least this share of numbers, and this many distinct ones, was probably meant
# to hold numbers: then the other texts are an error instead of categories.
_MOSTLY_NUMBERS, _DISTINCT_NUMBERS = 0.5, 10
_SHOWN = 3  # examples in a message


@dataclass(frozen=True, eq=False)
class Features:
    """What models learn from, one column per feature."""

    values: Floats  # missing numbers are nan; a missing category has its own code
    names: tuple[str, ...]
    numeric: NDArray[np.bool_]
    constant: tuple[str, ...] = ()  # left out because they have a single value
    telling: tuple[str, ...] = ()  # reveal the label of every row
    impute: Impute = "none"

    @property
    def lacking(self) -> dict[str, int]:
        """Number of rows without a number, by column."""
        absent = np.isnan(self.values).sum(axis=0)
        return {name: int(n) for name, n in zip(self.names, absent, strict=True) if n}

    def transformer(self) -> Any:
        """Make the preprocessing step, to be fitted to training rows: scaling and one-hot encoding."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        scale: Any = StandardScaler()
        if self.impute != "none":
            known = SimpleImputer(strategy=self.impute, keep_empty_features=True)
            scale = make_pipeline(known, scale)
        spread = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=_MAX_CATEGORIES,
            sparse_output=False,
        )
        return ColumnTransformer(
            [
                ("numbers", scale, np.flatnonzero(self.numeric)),
                ("names", spread, np.flatnonzero(~self.numeric)),
            ]
        )


def read_features(
    table: pa.Table, label: NDArray[np.int64], options: FeatureOptions, *, name: str
) -> Features:
    """Turn columns into features; the label itself must be among those to drop.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"age": ["39", "50", "?"], "job": ["a", "b", "a"], "one": [1, 1, 1]})
    >>> options = FeatureOptions(na=("?",))
    >>> features = read_features(people, np.array([0, 1, 1]), options, name="people")
    >>> features.names, features.numeric.tolist(), features.constant
    (('age', 'job'), [True, False], ('one',))
    >>> features.lacking
    {'age': 1}
    """
    for asked in (*options.drop, *options.categorical):
        if asked not in table.column_names:
            raise ColumnNotFound(asked, table=name, columns=table.column_names)
    read = {
        column: _feature(column, table[column], options)
        for column in table.column_names
        if column not in options.drop
    }
    constant = tuple(column for column, (values, _) in read.items() if _is_constant(values))
    used = {column: feature for column, feature in read.items() if column not in constant}
    if not used:
        raise InputError(
            f"{name} has no feature to learn from: "
            + (f"{in_words(constant)} have one value" if constant else "all columns are left out")
            + "; use a table with more columns."
        )
    return Features(
        np.column_stack([values for values, _ in used.values()]),
        tuple(used),
        np.array([are_numbers for _, are_numbers in used.values()]),
        constant,
        tuple(column for column, (values, _) in used.items() if _reveals(values, label)),
        options.impute,
    )


def _feature(name: str, column: pa.ChunkedArray, options: FeatureOptions) -> tuple[Floats, bool]:
    """Read a column as numbers or as codes of categories, and tell which."""
    values, are_numbers = _numbers_or_codes(name, column, options)
    if rows := int(np.isinf(values).sum()):
        raise InputError(
            f"column {name!r} has infinite numbers in {rows:,} rows, which models cannot use; fix "
            f"them, or leave the column out with `drop={[name]!r}`."
        )
    return values, are_numbers


def _numbers_or_codes(
    name: str, column: pa.ChunkedArray, options: FeatureOptions
) -> tuple[Floats, bool]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_binary(kind):
        raise InputError(
            f"column {name!r} holds {kind} values, which models cannot use; leave it out with "
            f"`drop={[name]!r}`."
        )
    if is_date_or_time(kind):
        times = column if pa.types.is_time(kind) else column.cast(pa.timestamp("us"), safe=False)
        return _floats(ticks_of(times)), True
    if is_number(kind) and name not in options.categorical and not options.na:
        return _floats(column), True
    values, codes = encode_arrow(column, None)
    known = tuple(MISSING if v in options.na else v for v in values)
    are_names = pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)
    numbers = None if name in options.categorical or are_names else _numbers(name, known, codes)
    if numbers is not None:
        return numbers, True
    order = {v: i for i, v in enumerate(dict.fromkeys(known))}
    return take([order[v] for v in known], codes).astype(np.float64), False


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's types of numbers."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_date_or_time(kind: pa.DataType) -> bool:
    """Return whether a type is one of Arrow's types of dates and times, other than a duration."""
    import pyarrow as pa

    return bool(pa.types.is_temporal(kind) and not pa.types.is_duration(kind))


def ticks_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give dates and times as whole numbers of their own unit."""
    import pyarrow as pa

    # Arrow converts between types of the same width only.
    is_short = pa.types.is_date32(column.type) or pa.types.is_time32(column.type)
    return column.cast(pa.int32() if is_short else pa.int64())


def _floats(column: pa.ChunkedArray) -> Floats:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def _numbers(name: str, values: Sequence[Value], codes: NDArray[np.int32]) -> Floats | None:
    """Read texts as numbers if all are; refuse a column in which most are."""
    read = [None if v is MISSING else as_number(v) for v in values]
    rows = np.bincount(codes, minlength=len(values))
    known = np.array([v is not MISSING for v in values])
    good = np.array([r is not None for r in read])
    strange = known & ~good
    if not strange.any():
        table = np.array([np.nan if r is None else r for r in read])
        return table[codes] if good.any() else None
    numeric_rows = rows[good].sum()
    if numeric_rows < _MOSTLY_NUMBERS * rows[known].sum() or good.sum() < _DISTINCT_NUMBERS:
        return None
    texts = [repr(v) for v, bad in zip(values, strange, strict=True) if bad]
    more = ", …" if len(texts) > _SHOWN else ""
    raise InputError(
        f"column {name!r} has numbers in {int(numeric_rows):,} rows and texts in "
        f"{int(rows[strange].sum()):,} ({', '.join(texts[:_SHOWN])}{more}); declare these texts as "
        f"missing values with `na`, declare the column as categorical with `categorical={[name]!r}`, "
        f"or leave it out with `drop={[name]!r}`."
    )


def _is_constant(values: Floats) -> bool:
    first = values[:1]
    return bool(((values == first) | (np.isnan(values) & np.isnan(first))).all())


def _reveals(values: Floats, label: NDArray[np.int64]) -> bool:
    """Return whether every value occurs with a single label.

    A column with more distinct values than a quarter of the rows does so by chance.
    """
    _, value = np.unique(values, return_inverse=True)
    different = int(value.max()) + 1
    if different > len(values) // 4:
        return False
    pairs = np.unique(value.astype(np.int64) * (int(label.max()) + 1) + label)
    return len(pairs) == different


def refuse_missing(features: Features, models: Collection[Model]) -> None:
    """Refuse models that cannot handle missing numbers if there are some."""
    unable = [m.name for m in models if not m.takes_missing]
    lacking = features.lacking
    if features.impute != "none" or not lacking or not unable:
        return
    listed = [f"{name!r} in {n:,} rows" for name, n in list(lacking.items())[:_SHOWN]]
    more = f" and {len(lacking) - _SHOWN} more columns" if len(lacking) > _SHOWN else ""
    able = [m.name for m in models if m.takes_missing] or ["random_forest", "extra_trees"]
    raise InputError(
        f"numbers are missing ({', '.join(listed)}{more}), which {in_words(unable)} cannot handle; "
        "impute them with `impute='median'`, leave the columns out with `drop`, or use only models "
        f"that can: {', '.join(able)}."
    )
