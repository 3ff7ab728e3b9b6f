"""A table as models take it: numbers as they are, names as numbers, and what was left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts.columns import as_number, encode_arrow, take
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.request import FeatureOptions, Impute
from equipoise.plain import sentences
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.evaluation.training.models import Model

MAX_CATEGORIES = 100
"""So many names of a column are told apart, the last of them being all that are rarer."""

_MOSTLY, _SEVERAL = 0.5, 10
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Features:
    """What models learn from: a column a feature, names by their numbers.

    Attributes
    ----------
    values
        One line a row. Missing numbers are nan; missing names have a number of their own.
    names, numeric
        What each column is called, and whether it holds numbers.
    constant
        The columns left out since they have one value.
    telling
        The columns that give away the label of every row.
    impute
        What stands for missing numbers.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    numeric: NDArray[np.bool_]
    constant: tuple[str, ...] = ()
    telling: tuple[str, ...] = ()
    impute: Impute = "none"

    @property
    def lacking(self) -> dict[str, int]:
        """How many rows lack a number, by column."""
        absent = np.isnan(self.values).sum(axis=0)
        return {name: int(n) for name, n in zip(self.names, absent, strict=True) if n}

    def transformer(self) -> Any:
        """Make what scales numbers and spreads names, to be fitted to rows trained on."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        scale: Any = StandardScaler()
        if self.impute != "none":
            known = SimpleImputer(strategy=self.impute, keep_empty_features=True)
            scale = make_pipeline(known, scale)
        spread = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
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

    >>> import pyarrow as pa
    >>> people = pa.table({"age": ["39", "50", "?"], "job": ["a", "b", "a"], "one": [1, 1, 1]})
    >>> features = read_features(
    ...     people, np.array([0, 1, 1]), FeatureOptions(na=("?",)), name="people"
    ... )
    >>> features.names, features.numeric.tolist(), features.constant
    (('age', 'job'), [True, False], ('one',))
    >>> features.lacking
    {'age': 1}
    """
    for asked in (*options.drop, *options.categorical):
        if asked not in table.column_names:
            raise ColumnNotFound(asked, table=name, columns=table.column_names)
    columns, names, numeric, constant = [], [], [], []
    for column in table.column_names:
        if column in options.drop:
            continue
        values, is_number = _feature(column, table[column], options)
        _refuse_infinite(column, values)
        if _is_constant(values):
            constant.append(column)
            continue
        columns.append(values)
        names.append(column)
        numeric.append(is_number)
    if not columns:
        raise InputError(
            f"{name} has no feature to learn from: "
            + (f"{sentences(constant)} have one value" if constant else "all columns are left out")
            + "; name a table with more columns."
        )
    values = np.column_stack(columns)
    telling = tuple(n for n, c in zip(names, columns, strict=True) if _tells(c, label))
    return Features(
        values, tuple(names), np.array(numeric), tuple(constant), telling, options.impute
    )


def _feature(
    name: str, column: pa.ChunkedArray, options: FeatureOptions
) -> tuple[NDArray[np.float64], bool]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_binary(kind):
        raise InputError(
            f"column {name!r} holds {kind} values, which models do not take; leave it out with "
            f"--drop {name}."
        )
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        days = column.cast(pa.timestamp("us"), safe=False) if not pa.types.is_time(kind) else column
        return _floats(days.cast(pa.int64())), True
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if plain and name not in options.categorical and not options.na:
        return _floats(column), True
    values, codes = encode_arrow(column, None)
    known = tuple(MISSING if v in options.na else v for v in values)
    are_names = pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)
    numbers = None if name in options.categorical or are_names else _numbers(name, known, codes)
    if numbers is not None:
        return numbers, True
    order = {v: i for i, v in enumerate(dict.fromkeys(known))}
    return take([order[v] for v in known], codes).astype(np.float64), False


def _floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def _numbers(
    name: str, values: Sequence[Value], codes: NDArray[np.int32]
) -> NDArray[np.float64] | None:
    """Read texts as numbers if all are; refuse a column in which nearly all are."""
    read = [None if v is MISSING else as_number(v) for v in values]
    rows = np.bincount(codes, minlength=len(values))
    known = np.array([v is not MISSING for v in values])
    good = np.array([r is not None for r in read])
    strange = known & ~good
    if not strange.any():
        table = np.array([np.nan if r is None else r for r in read])
        return table[codes] if good.any() else None
    mostly = rows[good].sum() >= _MOSTLY * rows[known].sum() and good.sum() >= _SEVERAL
    if mostly:
        texts = [repr(v) for v, bad in zip(values, strange, strict=True) if bad]
        more = ", …" if len(texts) > _SHOWN else ""
        raise InputError(
            f"column {name!r} has numbers in {int(rows[good].sum()):,} rows and texts in "
            f"{int(rows[strange].sum()):,} ({', '.join(texts[:_SHOWN])}{more}); say that these mean "
            f"a missing value with --na, that its values are names with --categorical {name}, or "
            f"leave it out with --drop {name}."
        )
    return None


def _refuse_infinite(name: str, values: NDArray[np.float64]) -> None:
    if rows := int(np.isinf(values).sum()):
        raise InputError(
            f"column {name!r} has infinite numbers in {rows:,} rows, which models do not take; "
            f"mend them, or leave it out with --drop {name}."
        )


def _is_constant(values: NDArray[np.float64]) -> bool:
    first = values[:1]
    return bool(((values == first) | (np.isnan(values) & np.isnan(first))).all())


def _tells(values: NDArray[np.float64], label: NDArray[np.int64]) -> bool:
    """Tell whether every value comes with one label only, though it comes often."""
    _, value = np.unique(values, return_inverse=True)
    different = int(value.max()) + 1
    if different > len(values) // 4:
        return False
    pairs = np.unique(value.astype(np.int64) * (int(label.max()) + 1) + label)
    return len(pairs) == different


def refuse_missing(features: Features, models: Collection[Model]) -> None:
    """Refuse models that cannot take missing numbers where some lack, and say what to do."""
    unable = [m.name for m in models if not m.takes_missing]
    lacking = features.lacking
    if features.impute != "none" or not lacking or not unable:
        return
    listed = [f"{name!r} in {n:,} rows" for name, n in list(lacking.items())[:_SHOWN]]
    more = f" and {len(lacking) - _SHOWN} more columns" if len(lacking) > _SHOWN else ""
    able = [m.name for m in models if m.takes_missing]
    raise InputError(
        f"numbers lack ({', '.join(listed)}{more}), which {sentences(unable)} cannot take; fill "
        "them with --impute median, leave the columns out with --drop, or ask only for models "
        f"that can: {', '.join(able or ['random_forest', 'extra_trees'])}."
    )
