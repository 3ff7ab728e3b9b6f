"""Containers of every kind: rows and columns come out as the kind that went in."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from equipoise.errors import ColumnNotFound, InputError
from equipoise.frames import (
    align_columns,
    column_at,
    column_names,
    flat,
    indexable,
    pick_columns,
    row_count,
    stack_rows,
    take_rows,
    with_index_of,
)

NUMBERS = np.arange(12).reshape(6, 2) + 1
FRAME = pd.DataFrame({"id": range(6), "age": np.arange(6) * 0.5, "sex": list("mwmwmw")})


class Table(pd.DataFrame):
    """A frame of pandas by another name."""

    @property
    def _constructor(self):
        return Table


def as_list(numbers):
    return numbers.tolist()


def as_tuple(numbers):
    return tuple(map(tuple, numbers.tolist()))


def as_arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


MATRICES = [
    np.asarray,
    as_list,
    as_tuple,
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.csc_matrix,
    sparse.coo_array,
    sparse.lil_matrix,
    sparse.dok_array,
]
FRAMES = [pd.DataFrame, Table, pl.DataFrame, pa.table]


def dense(X):
    """What a container holds, as an array."""
    if isinstance(X, (pa.Table, pl.DataFrame)):
        return np.column_stack([X[name].to_numpy() for name in column_names(X)])
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def framed(kind, numbers):
    return kind({"a": numbers[:, 0], "b": numbers[:, 1]})


# --------------------------------------------------------------------------------------- rows


@given(st.lists(st.integers(0, 5)), st.sampled_from(MATRICES + FRAMES))
def test_rows_are_those_asked_for_in_order_and_of_the_kind_they_were(places, kind):
    X = framed(kind, NUMBERS) if kind in FRAMES else kind(NUMBERS)
    rows = np.array(places, np.int64)
    taken = take_rows(X, rows)
    assert type(taken) is (list if kind is as_tuple else type(X))
    assert dense(taken).reshape(-1, 2).tolist() == NUMBERS[rows].tolist()
    assert row_count(taken) == len(rows)
    if sparse.issparse(X):
        assert (taken.format, taken.dtype) == (X.format, X.dtype)


@pytest.mark.parametrize(
    "kind",
    [
        np.array,
        list,
        pd.Series,
        pd.Categorical,
        pd.Index,
        pl.Series,
        pa.array,
        lambda values: pa.chunked_array([values[:2], values[2:]]),
    ],
)
def test_values_of_a_column_are_taken_like_rows(kind):
    column = kind(["a", "b", "c", "d"])
    taken = take_rows(column, np.array([3, 1]))
    assert type(taken) is type(column)
    assert [str(value) for value in taken] == ["d", "b"]


@pytest.mark.parametrize(
    ("kind", "pooled"),
    [
        (np.asarray, as_list),
        (np.asarray, sparse.csr_matrix),
        (as_list, np.asarray),
        (as_list, as_list),
        (as_list, as_tuple),
        (sparse.csr_matrix, sparse.csr_matrix),
        (sparse.csr_array, as_list),
        (sparse.csc_matrix, np.asarray),
        (sparse.coo_array, sparse.coo_matrix),
        (sparse.lil_matrix, sparse.csr_array),
        *((lambda n, k=k: framed(k, n),) * 2 for k in FRAMES),
    ],
)
def test_rows_of_a_pool_stand_behind_those_given_in_the_kind_of_those_given(kind, pooled):
    more = NUMBERS[:4] + 1000
    both = stack_rows(kind(NUMBERS), pooled(more))
    assert type(both) is type(kind(NUMBERS))
    assert dense(both).dtype == NUMBERS.dtype
    assert dense(both).tolist() == [*NUMBERS.tolist(), *more.tolist()]


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (FRAME, FRAME.assign(id=FRAME["id"] + 0.5), "'id' has the type int64 in the data and float64"),
        (FRAME, FRAME.assign(id="7"), "'id' has the type int64"),
        (FRAME.assign(sex=pd.Categorical(FRAME["sex"], ["m", "w"], ordered=True)), FRAME.assign(sex="x"), "'sex'"),
        (FRAME, FRAME.assign(age="x"), "'age'"),
        (pl.from_pandas(FRAME), pl.from_pandas(FRAME.assign(id=FRAME["id"] + 0.5)), "'id'"),
        (as_arrow(FRAME), as_arrow(FRAME.assign(id=FRAME["id"] + 0.5)), "'id'"),
        (NUMBERS, NUMBERS + 0.5, "'X' has the type int64"),
        (NUMBERS, NUMBERS * np.nan, "'X' has the type int64"),
        (NUMBERS.astype("f4"), NUMBERS * 1e300, "'X' has the type float32"),
        (NUMBERS.astype(bool), NUMBERS, "'X' has the type bool"),
        (NUMBERS, NUMBERS.astype(str), "'X' has the type int64"),
        (sparse.csr_matrix(NUMBERS), sparse.csr_matrix(NUMBERS + 0.5), "'X' has the type"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_the_type_of_the_data_are_refused(mine, theirs, words):
    with pytest.raises(InputError, match=words):
        stack_rows(mine, theirs)


def test_values_that_fit_take_the_type_of_the_data():
    both = stack_rows(FRAME.astype({"age": "f4"}), FRAME.astype({"id": float}))
    assert both.dtypes.tolist() == FRAME.astype({"age": "f4"}).dtypes.tolist()
    assert both["id"].tolist() == [*range(6), *range(6)]
    small = stack_rows(pl.from_pandas(FRAME).cast({"id": pl.Int8}), pl.from_pandas(FRAME))
    assert small.schema["id"] == pl.Int8
    half = as_arrow(FRAME).cast(as_arrow(FRAME.astype({"age": "f4"})).schema)
    assert stack_rows(half, as_arrow(FRAME)).schema.field("age").type == pa.float32()
    assert stack_rows(np.array([["ab"]]), np.array([["abcdef"]])).tolist() == [["ab"], ["abcdef"]]
    assert stack_rows(NUMBERS[:1], np.array([[1, 2]], object)).dtype == NUMBERS.dtype


def test_missing_values_stay_missing_and_categories_grow():
    mine = pd.DataFrame({"job": pd.Categorical(["a", None]), "n": pd.array([1, None], "Int64")})
    theirs = pd.DataFrame({"job": ["b", None], "n": [2.0, np.nan]})
    before = mine.copy(), theirs.copy()
    both = stack_rows(mine, theirs)
    assert both["job"].dtype == pd.CategoricalDtype(["a", "b"])
    assert both["n"].dtype == "Int64"
    assert both.isna().to_numpy().tolist() == [[False] * 2, [True] * 2] * 2
    assert mine.equals(before[0])
    assert theirs.equals(before[1])


def test_objects_are_the_same_objects_afterwards():
    mine = np.array([["a", None], [np.nan, {"k": 1}]], dtype=object)
    theirs = [[b"x", 2]]
    both = stack_rows(mine, theirs)
    assert all(a is b for a, b in zip(both.ravel(), [*mine.ravel(), *theirs[0]], strict=True))


def test_labels_of_pandas_take_the_index_of_their_features():
    y = pd.Series([1, 0], index=[5, 5])
    assert with_index_of(y, FRAME[3:5]).index.tolist() == [3, 4]
    assert with_index_of(y, NUMBERS).index.tolist() == [0, 1]
    assert with_index_of(y.to_frame(), FRAME[3:5]).index.tolist() == [3, 4]
    assert with_index_of("ab", FRAME) == "ab"


# ------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_frames_have_names_or_else_positions(kind):
    X = framed(kind, NUMBERS)
    assert column_names(X) == ["a", "b"]
    for wanted in ("b", ["b"], 1, -1, np.int8(1)):
        (found,) = pick_columns(X, wanted).items()
        assert found[0] == "b"
        assert np.asarray(found[1]).tolist() == NUMBERS[:, 1].tolist()
    assert list(pick_columns(X, ("b", "a"))) == ["b", "a"]
    for wrong in ("c", 2, True, 0.0):
        with pytest.raises(ColumnNotFound, match=f"column '{wrong}' not found in X; it has: a, b"):
            pick_columns(X, [wrong])


def test_a_number_that_is_a_name_is_a_name():
    assert list(pick_columns(FRAME.set_axis([2, 1, 0], axis=1), 0)) == ["0"]
    assert pick_columns(FRAME.set_axis([2, 1, 0], axis=1), 0)["0"].tolist() == list("mwmwmw")


@pytest.mark.parametrize("kind", MATRICES)
def test_columns_without_names_go_by_position(kind):
    X = kind(NUMBERS)
    assert column_names(X) == []
    assert np.asarray(column_at(X, 1)).tolist() == NUMBERS[:, 1].tolist()
    assert list(pick_columns(X, [-1, 0])) == ["x1", "x0"]
    for wrong in ("a", 2, True):
        with pytest.raises(
            InputError, match="because X has no column names; use positions from 0 to 1"
        ):
            pick_columns(X, wrong)


def test_columns_of_a_pool_come_in_the_order_of_the_data():
    more = FRAME[["sex", "id", "age"]].assign(more=1)
    for kind in (pd.DataFrame, pl.from_pandas, as_arrow):
        assert column_names(align_columns(kind(more), kind(FRAME))) == ["id", "age", "sex"]
    assert align_columns(FRAME, FRAME) is FRAME
    twice = FRAME[["id", "id"]]
    assert align_columns(twice, twice) is twice


@pytest.mark.parametrize(
    ("theirs", "X", "words"),
    [
        (FRAME.drop(columns="age"), FRAME, "the pool does not have 'age' of X; it has: id, sex"),
        (NUMBERS, FRAME, "X is a frame of pandas, but the X of the pool is a ndarray"),
        (pl.from_pandas(FRAME), FRAME, "X is a frame of pandas, but the X of the pool is a frame of polars"),
        (FRAME[["sex", "sex", "id", "age"]], FRAME, "columns with the same name"),
        (NUMBERS[:, :1], NUMBERS, "X has 2 columns, but the X of the pool has 1"),
        (NUMBERS[:, 0], NUMBERS, "a ndarray of 1D has no columns; use a 2D table"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_aligned_are_refused(theirs, X, words):
    with pytest.raises(InputError, match=words):
        align_columns(theirs, X)


# --------------------------------------------------------------------------------------- kinds


def test_what_is_of_no_known_kind_becomes_an_array():
    class Numbers:
        def __array__(self, dtype=None, copy=None):
            return NUMBERS

    assert indexable(Numbers()) is NUMBERS
    assert take_rows(Numbers(), np.array([1])).tolist() == [[3, 4]]
    for known in (NUMBERS, [[1]], ((1,),), FRAME, sparse.csr_array(NUMBERS)):
        assert indexable(known) is known


@pytest.mark.parametrize("single", [5, None, np.array(5)])
def test_a_single_value_has_no_rows(single):
    with pytest.raises(InputError, match="is a single value and has no rows"):
        row_count(single)


def test_labels_with_a_column_each_become_one_column():
    assert flat(pd.DataFrame({"y": ["a", "b"]})).tolist() == ["a", "b"]
    assert flat(np.eye(3)[[2, 0]]).tolist() == [2, 0]
    for plain in (["a", "b"], pl.Series(["a"]), np.array(["a"])):
        assert flat(plain) is plain


def test_importing_it_loads_no_library_of_frames():
    program = "import sys, equipoise.frames; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "equipoise.frames" in run.stdout.split()
    assert {"pandas", "polars", "pyarrow", "scipy", "sklearn"}.isdisjoint(run.stdout.split())
