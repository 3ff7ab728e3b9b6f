"""Repairs inside scikit-learn: real rows only, of the types given, and what is promised measured."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from collections import Counter
from typing import ClassVar

import imblearn.utils.estimator_checks as imblearn_checks
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from fairlearn.metrics import MetricFrame, selection_rate
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from imblearn.pipeline import Pipeline
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import _num_samples

import equipoise as eq
from equipoise import estimators
from equipoise.errors import InputError, MissingDependency, PoolTooSmall
from equipoise.estimators import (
    RowsDeletedWarning,
    UniformBiasSampler,
    UniformBiasWeights,
    make_uniform_bias_scorer,
    uniform_bias_score,
)
from equipoise.frames import feature_columns

QUICKLY = {"tolerance": 0.01, "reference": "original", "random_state": 0}
"""As good as zero bias for the data here, and much quicker to plan."""

# ---------------------------------------------------------------- the checks of others

EXPECTED_FAILURES: dict[str, str] = {}
"""Checks that do not pass, each with its reason; there is none."""


def no_change(_):
    """A strategy that asks for nothing; it needs no sensitive features."""
    return {}


class InTurn(UniformBiasSampler):
    """Has sensitive features where a check gives none: every other row is of one group."""

    def _fit_resample(self, X, y, *, sensitive_features=None):
        if sensitive_features is None:
            sensitive_features = np.arange(_num_samples(X)) % 2
        return super()._fit_resample(X, y, sensitive_features=sensitive_features)


# The checks fit without sensitive features, which the sampler refuses unless it was told what to do
# without. So one sampler was told, and one finds groups in any data.
CHECKED = (
    UniformBiasSampler(sampling_strategy=no_change),
    InTurn(allow="delete", tolerance=5, random_state=0),
    UniformBiasWeights(),
)


def _checks():
    for estimator in CHECKED:
        for generator in (estimator_checks_generator, imblearn_checks.estimator_checks_generator):
            for each, check in generator(estimator, expected_failed_checks=EXPECTED_FAILURES):
                name = f"{type(each).__name__}-{check.func.__module__}-{check.func.__name__}"
                yield pytest.param(each, check, id=name)


@pytest.mark.parametrize(("estimator", "check"), list(_checks()))
def test_estimators_pass_the_checks_of_scikit_learn_and_imbalanced_learn(
    estimator, check, monkeypatch
):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or those of the array API would be skipped
    check(estimator)


@pytest.mark.parametrize("estimator", CHECKED, ids=lambda each: type(each).__name__)
def test_parameters_and_names_of_columns_are_checked_as_imbalanced_learn_does(estimator):
    name = type(estimator).__name__
    imblearn_checks.check_param_validation(name, estimator)
    imblearn_checks.check_dataframe_column_names_consistency(name, estimator)


# ------------------------------------------------------------------------- small worlds

HIRED = {("m", "yes"): 6, ("m", "no"): 6, ("w", "yes"): 2, ("w", "no"): 10}
OTHERS = dict.fromkeys(HIRED, 30)


def rows(cells):
    """The sex and the label of each row."""
    listed = [cell for cell, n in cells.items() for _ in range(n)]
    return np.array([sex for sex, _ in listed]), np.array([label for _, label in listed])


def people(cells=HIRED, first=0):
    """A frame with a number that names each row, and labels."""
    sex, label = rows(cells)
    number = np.arange(first, first + len(sex))
    return pd.DataFrame({"id": number, "age": number * 0.5, "sex": sex}), label


def world(**options):
    """A frame, its labels, and a sampler with a pool."""
    X, y = people()
    return X, y, UniformBiasSampler(pool=people(OTHERS, 1000), **QUICKLY | options)


def measured(sex, y):
    """The largest |UB|, by the front door."""
    table = eq.measure(y=list(y), sensitive_features={"sex": list(sex)}, uncertainty=False)
    return max(abs(row.ub) for row in table)


# ---------------------------------------------------------------------------- the sampler

cells_of_two = st.fixed_dictionaries(
    {(sex, label): st.integers(1, 12) for sex in "mw" for label in ("no", "yes", "?")}
)


@pytest.mark.slow
@given(cells_of_two, st.integers(0, 3))
@settings(max_examples=6)
def test_rows_are_real_and_in_order_and_what_is_promised_is_measured(cells, seed):
    X, y = people(cells)
    Xp, yp = people(dict.fromkeys(cells, 150), 1000)
    sampler = UniformBiasSampler(pool=(Xp, yp), random_state=seed)
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    both, labels = pd.concat([X, Xp]), np.concatenate([y, yp])
    assert X2.equals(both.iloc[sampler.sample_indices_])
    assert y2.tolist() == labels[sampler.sample_indices_].tolist()
    assert len(set(sampler.sample_indices_)) == len(X2)
    assert X2["id"].tolist() == sorted(X2["id"])  # those given first, each in its order
    assert X2["id"].tolist()[: len(X)] == X["id"].tolist()
    assert measured(X2["sex"], y2) == pytest.approx(sampler.max_abs_ub_)
    assert sampler.max_abs_ub_ == pytest.approx(sampler.plan_.certificate.max_abs_ub_after)
    assert len(X2) == len(X) + sampler.plan_.additions
    assert sampler.resampled_counts_ == sampler.plan_.after()


@pytest.mark.slow
@given(cells_of_two)
@settings(max_examples=5)
def test_without_a_pool_rows_are_left_out(cells):
    X, y = people({cell: 20 * n for cell, n in cells.items()})
    sampler = UniformBiasSampler(allow="delete", random_state=0)
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert X2.equals(X.iloc[sampler.sample_indices_])
    assert len(X) - len(X2) == sampler.plan_.deletions
    assert X2["id"].is_monotonic_increasing
    assert measured(X2["sex"], y2) == pytest.approx(sampler.max_abs_ub_)
    assert sampler.resampled_counts_ == sampler.plan_.after()


@pytest.mark.parametrize(("tolerance", "rows_added"), [(0.2, 4), (0.5, 0), (7, 0)])
def test_a_tolerance_is_kept_with_no_more_rows_than_needed(tolerance, rows_added):
    X, y, sampler = world(tolerance=tolerance, reference=None)
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert len(X2) == 24 + rows_added
    assert measured(X2["sex"], y2) <= tolerance


@pytest.mark.parametrize("method", ["fit", "fit_resample"])
def test_rows_deleted_for_want_of_a_pool_are_told(method):
    X, y = people()
    sampler = UniformBiasSampler(random_state=0)
    with pytest.warns(RowsDeletedWarning) as caught:
        getattr(sampler, method)(X, y, sensitive_features=X["sex"])
    deleted = sampler.plan_.deletions
    assert deleted > 0
    (warning,) = caught
    assert f"so {deleted} of 24 rows ({deleted / 24:.1%}) were deleted" in str(warning.message)
    assert "provide `pool=(X, y)`, or set `allow='delete'`" in str(warning.message)
    assert warning.filename == __file__


def test_deletions_that_were_asked_for_are_no_surprise():
    X, y, pooled = world(allow="both", tolerance=0)
    asked = UniformBiasSampler(sampling_strategy={("m", "yes"): 3})
    for sampler in (UniformBiasSampler(allow="delete"), asked, pooled):  # warnings are errors here
        assert len(sampler.fit_resample(X, y, sensitive_features=X["sex"])[0]) < 24 + 9
    same = UniformBiasSampler(tolerance=5).fit(X, y, sensitive_features=X["sex"])
    assert len(same.sample_indices_) == 24


@pytest.mark.parametrize("allow", ["add", "delete", "both", None])
@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("labels", ["keep", "free"])
def test_without_sensitive_features_there_is_nothing_to_repair(allow, pooled, labels):
    X, y = people()
    pool = people(OTHERS, 1000) if pooled else None
    sampler = UniformBiasSampler(allow=allow, pool=pool, labels=labels)
    with pytest.raises(InputError, match=r"no sensitive features were given.*sensitive_columns"):
        sampler.fit_resample(X, y)


def test_a_pipeline_that_does_not_route_sensitive_features_is_told_how():
    X, y = data_for_models()
    A = X.pop("sex").to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        silent = UniformBiasSampler().set_fit_resample_request(sensitive_features=False)
        with pytest.raises(InputError, match="set_fit_resample_request"):
            pipeline(silent).fit(X, y)
        routed = UniformBiasSampler(allow="delete").set_fit_resample_request(
            sensitive_features=True
        )
        assert pipeline(routed).fit(X, y, sensitive_features=A).predict(X).shape == y.shape


def test_what_was_done_can_be_read():
    X, y, sampler = world()
    X2, _ = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert measured(X["sex"], y) == pytest.approx(0.5)
    assert sampler.max_abs_ub_ == 0
    assert sampler.counts_.of("sex=w, label=yes") == 2
    assert sampler.resampled_counts_.of("sex=w, label=yes") == 5
    assert sampler.sampling_strategy_ == {
        ("m", "yes"): 6, ("m", "no"): 12, ("w", "yes"): 5, ("w", "no"): 10,
    }  # fmt: skip
    assert sampler.plan_.additions == 9
    source, row = sampler.provenance_["source"], sampler.provenance_["row"]
    assert Counter(source.tolist()) == {"given": 24, "pool": 9}
    assert X2["id"].tolist() == np.where(source == "pool", row + 1000, row).tolist()


def test_a_random_state_decides_which_rows():
    X, y, sampler = world()
    A = X["sex"]
    sampler.fit(X, y, sensitive_features=A)
    first = sampler.sample_indices_
    again = clone(sampler).fit(X, y, sensitive_features=A).sample_indices_
    other = clone(sampler).set_params(random_state=1).fit(X, y, sensitive_features=A)
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.sample_indices_.tolist()
    assert len(first) == len(other.sample_indices_)
    kept = pickle.loads(pickle.dumps(sampler))
    assert kept.sample_indices_.tolist() == first.tolist()
    assert kept.plan_.additions == 9
    assert sampler.get_params()["pool"] is sampler.pool


def test_deletions_and_additions_go_together():
    X, y, sampler = world(allow="both", tolerance=0)
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert (sampler.plan_.additions, sampler.plan_.deletions) == (3, 3)
    assert Counter(sampler.provenance_["source"].tolist()) == {"given": 21, "pool": 3}
    assert measured(X2["sex"], y2) == 0


def test_a_distribution_of_labels_can_be_asked_for():
    X, y = people()
    sampler = UniformBiasSampler(pool=people(OTHERS, 1000), labels={"yes": 0.5, "no": 0.5})
    _, y2 = sampler.fit_resample(X, y)
    assert Counter(y2.tolist()) == {"no": 16, "yes": 16}


@pytest.mark.parametrize("reference", [None, "new", "original"])
def test_the_reference_is_that_of_the_plan(reference):
    X, y, sampler = world(tolerance=0, reference=reference)
    sampler.fit(X, y, sensitive_features=X["sex"])
    assert sampler.plan_.request.reference == reference
    assert sampler.plan_.certificate.reference == (reference or "new")
    assert sampler.get_params()["reference"] == reference


def test_a_reference_that_there_is_not_is_refused():
    X, y, sampler = world(reference="old")
    with pytest.raises(
        InvalidParameterError, match=r"'reference' parameter .*'original'.* Got 'old'"
    ):
        sampler.fit(X, y, sensitive_features=X["sex"])


def test_a_pool_that_lacks_rows_is_refused_with_what_it_lacks():
    X, y = people()
    pool = people({("m", "no"): 9, ("w", "yes"): 1, ("x", "yes"): 9, ("w", "maybe"): 9}, 1000)
    sampler = UniformBiasSampler(pool=pool, **QUICKLY)
    with pytest.raises(PoolTooSmall, match="sex=w, label=yes needs 3 and has 1; provide a larger"):
        sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert not [name for name in vars(sampler) if name.endswith("_") and "_in_" not in name]


def test_a_partial_repair_comes_nearer_and_says_what_was_reached():
    X, y = people()
    pool = people({("m", "no"): 9, ("w", "yes"): 1}, 1000)
    sampler = UniformBiasSampler(pool=pool, partial=True, reference="original")
    with pytest.warns(UserWarning, match="needs 3 and has 1; with the rows") as caught:
        X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert Counter(sampler.provenance_["source"].tolist())["pool"] == sampler.plan_.additions > 0
    assert X2["id"][X2["id"] >= 1000].is_unique
    reached = measured(X2["sex"], y2)
    assert reached < 0.5
    assert f"the largest |UB| is {reached:.3f}, and was 0.500." in str(caught[0].message)
    assert caught[0].filename == __file__
    assert sampler.max_abs_ub_ == pytest.approx(reached)
    assert sampler.resampled_counts_ == sampler.plan_.after()


def test_a_partial_repair_with_nothing_to_take_leaves_the_data_as_it_is():
    X, y, sampler = world(partial=True)
    Xp, yp = sampler.pool
    sampler.set_params(pool=(Xp[:0], yp[:0]))
    with pytest.warns(UserWarning, match=r"\|UB\| is 0.500, and was 0.500"):
        X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert X2.equals(X)
    assert y2.tolist() == y.tolist()
    assert sampler.plan_.additions == 0


@pytest.mark.parametrize("allow", ["add", "both"])
def test_additions_need_a_pool(allow):
    X, y = people()
    with pytest.raises(InputError, match=r"rows must be added .* `pool=\(X, y\)`, or .*'delete'"):
        UniformBiasSampler(allow=allow, **QUICKLY).fit(X, y, sensitive_features=X["sex"])
    same = UniformBiasSampler(allow=allow, tolerance=5).fit(X, y, sensitive_features=X["sex"])
    assert same.sample_indices_.tolist() == list(range(24))


def test_rows_without_a_sensitive_value_stay_as_they_are():
    X, y, sampler = world(allow="both")
    X.loc[[0, 1, 23], "sex"] = None
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    assert sampler.plan_.deletions > 0
    assert X2["id"].isin([0, 1, 23]).sum() == 3
    known = X2["sex"].notna()
    assert sampler.max_abs_ub_ == pytest.approx(measured(X2["sex"][known], y2[known]))
    assert set(sampler.sampling_strategy_) == set(HIRED)


# ------------------------------------------------------------------------ a mapping of rows


def test_a_mapping_says_how_many_rows_each_cell_gets():
    X, y, sampler = world(sampling_strategy={("w", "yes"): 10, ("m", "no"): 2, ("m", "yes"): 0})
    X2, y2 = sampler.fit_resample(X, y, sensitive_features=X["sex"])
    found = Counter(zip(X2["sex"], y2.tolist(), strict=True))
    assert found == {("w", "yes"): 10, ("w", "no"): 10, ("m", "no"): 2}
    assert sampler.plan_ is None
    assert sampler.sampling_strategy_ == {**found, ("m", "yes"): 0}
    again = clone(sampler).set_params(sampling_strategy=sampler.sampling_strategy_)
    assert again.fit_resample(X, y, sensitive_features=X["sex"])[0].equals(X2)


def test_a_mapping_names_groups_of_several_features_by_tuples_and_numbers_by_value():
    X, y, _ = world()
    A = pd.DataFrame({"sex": X["sex"] == "w", "old": (X["id"] % 2).astype(float)})
    hired = (y == "yes").astype(float)
    for key in [((True, 1), 0), ((np.True_, 1.0), False), (("true", "1.0"), "0.0"), ((1, True), 0)]:
        sampler = UniformBiasSampler(sampling_strategy={key: 1}, random_state=0)
        X2, y2 = sampler.fit_resample(X, hired, sensitive_features=A)
        assert len(X2) == 24 - 4
        assert ((X2["sex"] == "w") & (X2["id"] % 2 == 1) & (y2 == 0)).sum() == 1
        assert (("true", "1.0"), "0.0") in sampler.sampling_strategy_


@pytest.mark.parametrize("features", [None, ["a"] * 24])
def test_labels_alone_are_enough_where_there_is_one_group(features):
    X, y, sampler = world()
    pool = (*sampler.pool, ["a"] * 120)
    sampler.set_params(sampling_strategy={"yes": 12, "no": 3}, pool=pool)
    _, y2 = sampler.fit_resample(X, y, sensitive_features=features)
    assert Counter(y2.tolist()) == {"yes": 12, "no": 3}


def test_a_function_may_make_the_mapping_from_the_labels():
    X, y, sampler = world()
    sampler.set_params(sampling_strategy=lambda y: {"yes": (y == "no").sum()})
    assert Counter(sampler.fit_resample(X, y)[1].tolist()) == {"yes": 16, "no": 16}
    sampler.set_params(sampling_strategy=lambda _: 7)
    with pytest.raises(InputError, match=r"mapping \{\(group, label\): rows\}, not 7"):
        sampler.fit(X, y)


def test_a_mapping_of_more_rows_than_the_pool_has_is_refused_or_done_in_part():
    X, y, sampler = world(sampling_strategy={("w", "yes"): 40})
    with pytest.raises(PoolTooSmall, match="sex=w, label=yes needs 38 and has 30"):
        sampler.fit(X, y, sensitive_features=X["sex"])
    with pytest.warns(UserWarning, match="needs 38 and has 30; with the rows available"):
        sampler.set_params(partial=True).fit(X, y, sensitive_features=X["sex"])
    assert sampler.sampling_strategy_["w", "yes"] == 32


# --------------------------------------------------------------------------- types and frames


def test_pandas_keeps_dtypes_columns_and_index():
    X, y = people()
    X = X.assign(
        job=pd.Categorical(["a", "b", None] * 8),
        when=pd.date_range("2020", periods=24),
        maybe=pd.array([1, None] * 12, dtype="Int64"),
        note=["x", None, 1] * 8,
        old=[True, False] * 12,
    ).set_axis([7] * 24)
    Xp, yp = people(OTHERS, 1000)
    Xp = Xp.assign(
        job=pd.Categorical(["b", "c"] * 60),
        when=pd.date_range("2021", periods=120),
        maybe=2.0,
        note="z",
        old=False,
        more=1,
    )[["more", "old", "job", "maybe", "sex", "note", "when", "age", "id"]]
    hired = pd.Series(y, name="hired", index=range(24)).astype("category")
    sampler = UniformBiasSampler(pool=(Xp, yp), **QUICKLY)
    X2, y2 = sampler.fit_resample(X, hired, sensitive_features=X["sex"])
    assert list(X2.columns) == list(X.columns)
    kept = X2.dtypes.drop("job")
    assert kept.equals(X.dtypes.drop("job"))
    assert X2["job"].dtype == pd.CategoricalDtype(["a", "b", "c"])  # whose last X did not have
    assert X2[:24].astype({"job": X["job"].dtype}).equals(X)
    place = sampler.sample_indices_[24:] - 24
    assert X2.index.tolist() == [7] * 24 + place.tolist()
    assert X2["job"].tolist()[24:] == Xp["job"].iloc[place].tolist()
    assert y2.index.equals(X2.index)
    assert (y2.dtype, y2.name) == (hired.dtype, "hired")
    assert sampler.counts_.label.name == "hired"


def test_polars_keeps_its_schema():
    X, y = people()
    Xp, yp = people(OTHERS, 1000)
    kinds = {"sex": pl.Categorical, "id": pl.Int32}
    X, Xp = pl.from_pandas(X).cast(kinds), pl.from_pandas(Xp).select("sex", "age", "id")
    sampler = UniformBiasSampler(pool=(Xp, yp), sensitive_columns="sex", **QUICKLY)
    X2, y2 = sampler.fit_resample(X, pl.Series("hired", y, dtype=pl.Enum(["yes", "no"])))
    assert X2.schema == X.schema
    assert X2[:24].equals(X)
    assert X2["id"].to_list()[24:] == (sampler.provenance_["row"][24:] + 1000).tolist()
    assert y2.dtype == pl.Enum(["yes", "no"])
    assert measured(X2["sex"], y2) == 0


def test_arrow_keeps_its_schema():
    X, y = people()
    X, Xp = (pa.Table.from_pandas(f, preserve_index=False) for f in (X, people(OTHERS, 1000)[0]))
    sampler = UniformBiasSampler(pool=(Xp, people(OTHERS)[1]), **QUICKLY)
    X2, y2 = sampler.fit_resample(X, pa.array(y), sensitive_features=X.select(["sex"]))
    assert X2.schema.equals(X.schema)
    assert X2[:24].equals(X)
    assert measured(X2["sex"].to_pylist(), y2.to_pylist()) == 0
    sampler.set_params(sensitive_columns=["sex"])
    assert sampler.fit_resample(X, pa.chunked_array([y]))[0].equals(X2)


def as_list(numbers):
    return numbers.tolist()


@pytest.mark.parametrize(
    ("kind", "pooled"),
    [
        (np.asarray, sparse.csr_matrix),
        (as_list, np.asarray),
        (sparse.csr_matrix, sparse.csr_matrix),
        (sparse.coo_array, as_list),
    ],
)
def test_what_has_no_names_comes_back_as_it_came(kind, pooled):
    sex, y = rows(HIRED)
    others, yp = rows(OTHERS)
    numbers = np.arange(24)[:, None] * [1, 2] + 1
    more = np.arange(120)[:, None] * [1, 2] + 1000
    sampler = UniformBiasSampler(pool=(pooled(more), yp, others), **QUICKLY)
    X2, y2 = sampler.fit_resample(kind(numbers), y, sensitive_features=sex)
    assert isinstance(X2, type(kind(numbers)))
    assert isinstance(y2, np.ndarray)
    dense = np.asarray(X2.toarray() if sparse.issparse(X2) else X2)
    assert dense.dtype == numbers.dtype
    assert dense.tolist() == np.concatenate([numbers, more])[sampler.sample_indices_].tolist()


@pytest.mark.parametrize("kind", [np.asarray, as_list, sparse.csr_matrix, sparse.coo_matrix])
def test_sensitive_columns_of_arrays_are_named_by_position(kind):
    sex, y = rows(HIRED)
    others, yp = rows(OTHERS)
    X = np.column_stack([np.arange(24), sex == "w"])
    Xp = np.column_stack([np.arange(120), others == "w"])
    for position in (1, [-1]):
        sampler = UniformBiasSampler(pool=(kind(Xp), yp), sensitive_columns=position, **QUICKLY)
        sampler.fit(kind(X), y)
        assert sampler.plan_.additions == 9
        assert [axis.name for axis in sampler.counts_.sensitive] == ["x1"]


def test_features_of_any_kind_pass_untouched():
    sex, y = rows(HIRED)
    others, yp = rows(OTHERS)
    X = np.array([["a", None], [np.nan, 1.5], [b"x", {"k": 1}]] * 8, dtype=object)
    pool = np.array([["pool", 2], [None, "q"]] * 60, dtype=object)
    sampler = UniformBiasSampler(pool=(pool, yp, others), **QUICKLY)
    X2, _ = sampler.fit_resample(X, y, sensitive_features=sex)
    assert X2.dtype == object
    both = [*X, *pool]
    for row, place in zip(X2, sampler.sample_indices_, strict=True):
        assert all(a is b for a, b in zip(row, both[place], strict=True))


@pytest.mark.parametrize(
    ("y", "yp"),
    [
        (lambda y: (y == "yes").astype(int), lambda y: (y == "yes").astype(float)),
        (lambda y: (y == "yes").astype(float), lambda y: (y == "yes").astype(np.int8)),
        (lambda y: (y == "yes").astype(int), lambda y: np.where(y == "yes", "1", "0")),
        (lambda y: y == "yes", lambda y: np.where(y == "yes", "true", "false")),
        (lambda y: y == "yes", lambda y: (y == "yes").astype(int)),
        (lambda y: (y == "yes").astype(np.uint8), lambda y: y == "yes"),
        (lambda y: y.astype(object), pl.Series),
        (list, lambda y: pd.Series(y, dtype="category")),
        (lambda y: pd.Series(y == "yes", dtype="Int64"), lambda y: (y == "yes").astype(int)),
        (lambda y: y[:, None], lambda y: pd.DataFrame({"y": y})),
        (lambda y: pd.DataFrame({"y": y}), lambda y: y[:, None]),
        (lambda y: np.eye(3, dtype=int)[np.r_[2, (y == "yes")[1:]]],
         lambda y: np.eye(3, dtype=int)[np.where(np.arange(120) % 9, y == "yes", 2)]),
    ],
)  # fmt: skip
def test_labels_of_the_pool_are_written_as_those_given(y, yp):
    sex, labels = rows(HIRED)
    others, more = rows(OTHERS)
    given_labels = y(labels)
    pool = (np.zeros((120, 1)), yp(more), others)
    sampler = UniformBiasSampler(pool=pool, **QUICKLY)
    _, y2 = sampler.fit_resample(np.zeros((24, 1)), given_labels, sensitive_features=sex)
    assert type(y2) is type(given_labels)
    assert len(y2) > 24
    assert np.array_equal(np.asarray(y2)[:24], np.asarray(given_labels))
    assert np.asarray(y2).dtype == np.asarray(given_labels).dtype
    flat = np.asarray(y2)
    flat = flat.argmax(axis=1) if flat.ndim == 2 and flat.shape[1] > 1 else flat.ravel()
    both = np.concatenate([sex, others])[sampler.sample_indices_]
    assert measured(both, flat.tolist()) == pytest.approx(sampler.max_abs_ub_)
    assert sampler.plan_.reached


@pytest.mark.parametrize(
    "kind",
    [
        lambda a: a,
        list,
        lambda a: a == "w",
        lambda a: (a == "w").astype(int),
        lambda a: pd.Series(a, index=range(len(a))[::-1]),  # by position, not by index
        lambda a: pd.Series(a, dtype="category"),
        lambda a: pl.Series("sex", a),
        lambda a: a[:, None],
        lambda a: {"sex": a},
        lambda a: [a, np.arange(len(a)) // 1000],
        lambda a: pd.DataFrame({0: a, "same": "x"}),
        lambda a: pl.DataFrame({"sex": a}),
    ],
)
def test_sensitive_features_come_as_many_kinds(kind):
    sex, y = rows(HIRED)
    others, yp = rows(OTHERS)
    sampler = UniformBiasSampler(pool=(np.zeros((120, 1)), yp, kind(others)), **QUICKLY)
    sampler.fit(np.zeros((24, 1)), y, sensitive_features=kind(sex))
    assert sampler.plan_.additions == 9
    assert sampler.max_abs_ub_ == 0


@pytest.mark.parametrize("n", [0, 1])
def test_a_pool_of_hardly_any_rows_lacks_the_rest(n):
    X, y, sampler = world()
    Xp, yp = sampler.pool
    sampler.set_params(pool=(Xp[:n], yp[:n]))
    with pytest.raises(PoolTooSmall, match="sex=m, label=no needs 6 and has 0"):
        sampler.fit(X, y, sensitive_features=X["sex"])


@pytest.mark.parametrize(
    ("features", "columns", "words"),
    [
        (["m"] * 23, None, "'feature_0' has 23 rows and the data has 24"),
        ("sex", None, r"use `sensitive_columns=\['sex'\]"),
        (["m"] * 24, ["sex"], "either `sensitive_features` or `sensitive_columns`"),
        (None, ["gender"], "column 'gender' not found in X; it has: id, age, sex"),
        (None, [3], "column '3' not found in X"),
        (None, [], "the sensitive features have no column"),
        (pd.DataFrame(index=range(24)), None, "the sensitive features have no column"),
        ([pd.Series(["m"] * 24, name="a")] * 2, None, "2 sensitive features are called 'a'"),
    ],
)
@pytest.mark.parametrize("kind", [UniformBiasSampler, UniformBiasWeights])
def test_sensitive_features_that_cannot_be_used_are_refused(kind, features, columns, words):
    X, y = people()
    with pytest.raises(InputError, match=words):
        kind(sensitive_columns=columns).fit(X, y, sensitive_features=features)
    if columns == ["gender"]:
        with pytest.raises(
            InputError, match="'gender', because X has no column names; use positions from 0 to"
        ):
            kind(sensitive_columns=columns).fit(X.to_numpy(), y)


@pytest.mark.parametrize("kind", [UniformBiasSampler, UniformBiasWeights])
@pytest.mark.parametrize("label", [None, np.nan, pd.NA])
def test_labels_that_are_missing_are_refused(kind, label):
    X, y = people()
    y = y.astype(object)
    y[3] = label
    with pytest.raises(InputError, match="Input y contains NaN or None in 1 row"):
        kind().fit(X, y, sensitive_features=X["sex"])


def test_one_class_is_refused_and_an_unreachable_tolerance_explained():
    X, _, sampler = world()
    with pytest.raises(InputError, match="y has only 1 class, yes, so there is no bias"):
        sampler.fit(X, np.full(24, "yes"), sensitive_features=X["sex"])
    never = people({("m", "yes"): 5, ("m", "no"): 5, ("w", "no"): 5})
    with pytest.raises(eq.Infeasible, match="If additions are allowed as well, there is a plan"):
        UniformBiasSampler(tolerance=0.5).fit(*never, sensitive_features=never[0]["sex"])


def test_names_that_frames_use_themselves_are_names_like_others():
    X, y = people()
    X.columns = Xp_columns = ["type", "column_names", "sex"]
    Xp, yp = people(OTHERS, 1000)
    Xp.columns = Xp_columns
    sampler = UniformBiasSampler(pool=(Xp.set_axis(["type"] * 120), yp), **QUICKLY)
    X2, y2 = sampler.fit_resample(X, pd.DataFrame({"name": y}), sensitive_features=X[["sex"]])
    assert list(X2.columns) == Xp_columns
    assert list(y2.columns) == ["name"]
    assert len(X2) == 33


class Table(pd.DataFrame):
    """A frame of pandas by another name."""

    @property
    def _constructor(self):
        return Table


def test_kinds_of_pandas_frames_stay_what_they_are():
    X, y, sampler = world()
    X2, _ = sampler.fit_resample(Table(X), y, sensitive_features=X["sex"])
    assert isinstance(X2, Table)
    assert len(X2) == 33


def test_the_label_may_be_called_like_a_feature():
    X, y = people()
    for taken in ("sex", "SEX"):
        weighed = UniformBiasWeights().fit(X, pd.Series(y, name=taken), sensitive_features=X["sex"])
        assert [axis.name for axis in weighed.counts_.axes] == ["sex", f"{taken}_"]


# ------------------------------------------------------------------------------- pipelines


def data_for_models(n=240):
    generator = np.random.default_rng(0)
    sex = generator.choice(["m", "w"], n)
    X = pd.DataFrame({"skill": generator.normal(size=n), "sex": sex})
    y = (X["skill"] + (sex == "m") + generator.normal(size=n) > 0.5).astype(int).to_numpy()
    return X, y


def pipeline(sampler):
    # One step more than the sampler, so that its place at the front is not the end.
    return Pipeline(
        [("repair", sampler), ("encode", OneHotEncoder(handle_unknown="ignore", max_categories=9)),
         ("model", LogisticRegression())]
    )  # fmt: skip


class Spy(UniformBiasSampler):
    """Keeps how biased the labels of each fit were before and after."""

    seen: ClassVar[list[tuple[float, float]]] = []

    def fit_resample(self, X, y, *, sensitive_features=None):
        result = super().fit_resample(X, y, sensitive_features=sensitive_features)
        before = eq.measure(self.counts_, uncertainty=False)
        self.seen.append((max(abs(row.ub) for row in before), self.max_abs_ub_))
        return result


def spied(pipe, X, y, **params):
    Spy.seen.clear()
    scores = cross_validate(pipe, X, y, cv=3, **params)
    assert np.isfinite(scores["test_score"]).all()
    return Spy.seen


@pytest.mark.slow
def test_sensitive_features_are_routed_through_a_pipeline():
    X, y = data_for_models()
    A = X.pop("sex").to_numpy()
    more, yp = data_for_models(2000)
    with sklearn.config_context(enable_metadata_routing=True):
        sampler = Spy(pool=(more[["skill"]], yp, more["sex"].to_numpy()))
        pipe = pipeline(sampler.set_fit_resample_request(sensitive_features=True))
        seen = spied(pipe, X, y, params={"sensitive_features": A})
    assert len(seen) == 3
    assert all(before > 0.1 and after < 0.01 for before, after in seen)


@pytest.mark.slow
def test_a_pipeline_without_routing_finds_the_columns_itself():
    X, y = data_for_models()
    sampler = Spy(pool=data_for_models(2000), sensitive_columns=["sex"])
    seen = spied(pipeline(sampler), X, y)
    assert len(seen) == 3
    assert all(before > 0.1 and after < 0.01 for before, after in seen)


def test_a_model_can_be_selected_by_the_bias_of_its_predictions():
    X, y = data_for_models()
    A = X["sex"].to_numpy()
    features = np.column_stack([X["skill"], A == "m"])
    with sklearn.config_context(enable_metadata_routing=True):
        scoring = {"accuracy": "accuracy", "bias": make_uniform_bias_scorer(label=1)}
        search = GridSearchCV(
            LogisticRegression(), {"C": [1e-2, 1.0]}, scoring=scoring, refit="bias", cv=3
        )
        search.fit(features, y, sensitive_features=A)
        direct = make_uniform_bias_scorer(label=1)(search, features, y, sensitive_features=A)
    predicted = search.predict(features)
    assert direct == -uniform_bias_score(y, predicted, sensitive_features=A, label=1)
    bias = search.cv_results_["mean_test_bias"]
    assert (bias <= 0).all()
    assert search.best_index_ == bias.argmax()
    assert bias[0] != bias[1]


def test_a_scorer_can_be_made_without_routing_enabled():
    assert not sklearn.get_config()["enable_metadata_routing"]
    request = make_uniform_bias_scorer().get_metadata_routing()
    assert request.score.requests == {"sensitive_features": True}


# ---------------------------------------------------------------------------------- weights


@given(cells_of_two)
@settings(max_examples=10)
def test_weights_are_those_of_the_library_and_bring_bias_to_zero(cells):
    X, y = people(cells)
    weighed = UniformBiasWeights().fit(X, y, sensitive_features=X["sex"])
    weights = weighed.sample_weight_
    assert weights.tolist() == eq.sample_weight(y=y, sensitive_features=X[["sex"]]).tolist()
    assert weights.sum() == pytest.approx(len(X))
    score = uniform_bias_score(y, y, sensitive_features=X["sex"], sample_weight=weights)
    assert score == pytest.approx(0, abs=1e-9)
    by_columns = UniformBiasWeights(sensitive_columns="sex").fit(X, y)
    assert by_columns.sample_weight_.tolist() == weights.tolist()


def test_weights_without_sensitive_features_are_one_and_empty_cells_are_told():
    X, y = people({("m", "yes"): 5, ("m", "no"): 3, ("w", "no"): 5})
    assert UniformBiasWeights().fit(X, y).sample_weight_.tolist() == [1.0] * 13
    weighed = UniformBiasWeights().fit(X, y, sensitive_features=X["sex"])
    assert "no rows to weigh, such as sex=w, label=yes" in weighed.sentences_[1]
    assert weighed.counts_.n == 13


# ------------------------------------------------------------------------------- the score

predictions = st.integers(4, 60).flatmap(
    lambda n: st.tuples(
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.lists(st.sampled_from("mw"), min_size=n, max_size=n),
        st.lists(st.sampled_from("abc"), min_size=n, max_size=n),
    )
)


@pytest.mark.slow
@given(predictions)
@settings(max_examples=8)
def test_selection_rates_of_fairlearn_give_the_same_bias(drawn):
    y_pred, A = np.array(drawn[0]).astype(int), pd.DataFrame({"s": drawn[1], "r": drawn[2]})
    assume(y_pred.any())
    table = eq.measure(y=y_pred, sensitive_features=A, uncertainty=False)
    largest = 0.0
    for names in (["s"], ["r"], ["s", "r"]):
        frame = MetricFrame(
            metrics=selection_rate, y_true=y_pred, y_pred=y_pred, sensitive_features=A[names]
        )
        for group, rate in frame.by_group.dropna().items():
            values = dict(zip(names, np.atleast_1d(np.array(group, object)), strict=True))
            ratio = rate / frame.overall
            assert 1 - table[eq.Group(values), "1"].ub == pytest.approx(ratio)
            largest = max(largest, abs(1 - ratio))
    score = uniform_bias_score(y_pred, y_pred, sensitive_features=A, label=1)
    assert score == pytest.approx(largest)


@given(predictions)
@settings(max_examples=5)
def test_the_score_can_stand_in_a_metric_frame(drawn):
    y_pred, sex, race = np.array(drawn[0]).astype(int), np.array(drawn[1]), np.array(drawn[2])
    frame = MetricFrame(
        metrics=uniform_bias_score,
        y_true=y_pred,
        y_pred=y_pred,
        sensitive_features=sex,
        sample_params={"sensitive_features": race},
    )
    assert frame.overall == uniform_bias_score(y_pred, y_pred, sensitive_features=race)
    for group, score in frame.by_group.items():
        inside = sex == group
        alone = uniform_bias_score(y_pred[inside], y_pred[inside], sensitive_features=race[inside])
        assert score == alone


def test_the_score_weighs_rows_and_leaves_out_small_groups():
    sex = ["m", "m", "w", "w", "x"]
    y_pred = [1, 0, 1, 0, 1]
    assert uniform_bias_score(y_pred, y_pred, sensitive_features=sex) == pytest.approx(1)
    larger = uniform_bias_score(y_pred, y_pred, sensitive_features=sex, min_count=2)
    assert larger == pytest.approx(0.25)  # 0: one half of the groups against 2/5
    weights = [1, 1, 1, 1, 0]
    weighed = uniform_bias_score(
        y_pred, y_pred, sensitive_features=sex, min_count=2, sample_weight=weights
    )
    assert weighed == 0
    twice = uniform_bias_score(
        y_pred * 2, y_pred * 2, sensitive_features=sex * 2, min_count=4, label=1.0
    )
    assert twice == pytest.approx(1 / 6)


@pytest.mark.parametrize("options", [{"label": 1}, {"min_count": 9}])
def test_an_undefined_score_is_not_a_number_and_warns(options):
    with pytest.warns(
        UndefinedMetricWarning, match="undefined and set to nan: the predicted labels are 0"
    ):
        score = uniform_bias_score([1, 0], [0, 0], sensitive_features=["m", "w"], **options)
    assert np.isnan(score)


def test_a_score_of_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        uniform_bias_score([1], [0, 1], sensitive_features=["m", "w"])
    with pytest.raises(InputError, match="'feature_0' has 1 row and the data has 2"):
        uniform_bias_score([1, 0], [0, 1], sensitive_features=["m"])
    with pytest.raises(InputError, match="provide the `sensitive_features`"):
        uniform_bias_score([1, 0], [0, 1], sensitive_features=None)
    with pytest.raises(ValueError, match="Unknown label type"):
        uniform_bias_score([1, 0], [0.3, 0.7], sensitive_features=["m", "w"])


# -------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize(
    ("package", "module"), [("scikit-learn", "sklearn"), ("imbalanced-learn", "imblearn")]
)
def test_a_missing_package_is_named(package, module, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    found = importlib.util.spec_from_file_location("fresh_estimators", estimators.__file__)
    fresh = importlib.util.module_from_spec(found)
    with pytest.raises(MissingDependency, match=rf"'{package}'.*equipoise\[models\]"):
        found.loader.exec_module(fresh)


def test_feature_columns_have_names_of_their_own():
    series = pd.Series([1, 2], name="a")
    assert list(feature_columns([series, [1, 2]])) == ["a", "feature_1"]
    assert list(feature_columns(np.zeros((2, 2)))) == ["feature_0", "feature_1"]
    assert feature_columns(pa.table({"a": [1, 2]}))["a"].to_pylist() == [1, 2]
    for same in ([series, series], {1: [1], "1": [1]}, pd.concat([series, series], axis=1)):
        with pytest.raises(InputError, match="2 sensitive features are called"):
            feature_columns(same)
