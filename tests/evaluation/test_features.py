"""Columns as models take them, and what is refused."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.training.features import read_features, refuse_missing
from equipoise.evaluation.training.models import choose_models
from equipoise.options.evaluation import FeatureOptions

N = 60
LABEL = np.arange(N) % 2


def features(columns, **how):
    return read_features(pa.table(columns), LABEL, FeatureOptions(**how), name="people")


def test_numbers_of_any_type_and_texts_of_numbers_are_numbers():
    columns = {
        "whole": pa.array(range(N), pa.int8()),
        "text": [f"{i}.5" for i in range(N)],
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(N)],
        "clock": pa.array([i * 60 for i in range(N)], pa.time32("s")),
        "truth": [i % 3 == 0 for i in range(N)],
        "name": [f"n{i % 3}" for i in range(N)],
    }
    found = features(columns)
    assert found.numeric.tolist() == [True, True, True, True, False, False]
    assert found.values[1, 1] == 1.5
    assert found.values[1, 2] - found.values[0, 2] == 86_400_000_000
    assert found.values[1, 3] - found.values[0, 3] == 60


def test_names_are_spread_and_numbers_scaled_by_the_rows_trained_on():
    found = features({"x": [float(i) for i in range(N)], "name": [f"n{i % 3}" for i in range(N)]})
    train = np.arange(0, N, 2)
    seen = found.transformer().fit_transform(found.values[train])
    assert seen.shape == (30, 4)
    assert seen[:, 0].mean() == pytest.approx(0)
    assert seen[:, 0].std() == pytest.approx(1)
    assert seen[:, 1:].sum(axis=1).tolist() == [1.0] * 30


def test_a_name_that_was_not_trained_on_is_none_of_those_known():
    found = features({"x": range(N), "name": ["a"] * 30 + ["b"] * 20 + ["new"] * 10})
    transformer = found.transformer().fit(found.values[:50])
    assert transformer.transform(found.values[50:])[:, 1:].sum() == 0


def test_missing_numbers_are_filled_from_the_rows_trained_on():
    numbers = [1.0] * 20 + [5.0] * 20 + [None] * 20
    found = features({"x": numbers, "z": range(N)}, impute="median")
    transformer = found.transformer().fit(found.values[:40])
    filled = transformer.transform(found.values[40:])[:, 0]
    assert np.allclose(filled, transformer.transform(np.array([[3.0, 0]]))[0, 0])


def test_what_means_missing_is_missing():
    found = features(
        {"x": ["?", *map(str, range(N - 1))], "name": ["?"] * 5 + ["a"] * 55}, na=("?",)
    )
    assert found.lacking == {"x": 1}
    assert found.numeric.tolist() == [True, False]


def test_constant_columns_are_left_out_and_told():
    found = features({"one": ["same"] * N, "none": [None] * N, "x": range(N)})
    assert found.constant == ("one", "none")
    assert found.names == ("x",)


def test_a_column_that_gives_the_label_away_is_told():
    found = features({"score": LABEL * 10, "x": range(N), "name": ["a", "b", "b"] * 20})
    assert found.telling == ("score",)


def test_numbers_can_be_names():
    assert not features({"code": [i % 4 for i in range(N)]}, categorical=("code",)).numeric.any()


@pytest.mark.parametrize(
    ("columns", "how", "words"),
    [
        ({"one": ["same"] * N}, {}, "no feature to learn from"),
        ({"x": range(N)}, {"drop": ("x",)}, "all columns are left out"),
        ({"x": [[1]] * N}, {}, r"`drop=\['x'\]`"),
        ({"x": [float("inf")] + [1.0] * (N - 1)}, {}, "infinite"),
        (
            {"age": [*map(str, range(N - 2)), "unknown", "old"]},
            {},
            "numbers in 58 rows and texts in 2",
        ),
    ],
)
def test_what_models_cannot_take_is_refused(columns, how, words):
    with pytest.raises(InputError, match=words):
        features(columns, **how)


def test_texts_among_numbers_can_be_missing_or_names():
    column = {"age": [*map(str, range(N - 1)), "unknown"]}
    assert features(column, na=("unknown",)).lacking == {"age": 1}
    assert not features(column, categorical=("age",)).numeric.any()


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ColumnNotFound, match="Did you mean 'age'"):
        features({"age": range(N)}, drop=("agee",))


def test_models_that_cannot_take_missing_numbers_say_so():
    found = features({"x": [None, *range(N - 1)]})
    refuse_missing(found, choose_models("random_forest,extra_trees"))
    with pytest.raises(
        InputError, match=r"'x' in 1 rows.*logistic cannot handle.*`impute='median'`"
    ):
        refuse_missing(found, choose_models("random_forest,logistic"))
    refuse_missing(features({"x": [None, *range(N - 1)]}, impute="mean"), choose_models("all"))
