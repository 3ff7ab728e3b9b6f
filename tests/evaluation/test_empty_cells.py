"""What no repair can do is said before any model is trained, with advice that works."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import equipoise as eq
from equipoise.errors import InputError
from people import people


class Untrainable(ClassifierMixin, BaseEstimator):
    """A classifier that must never be trained."""

    def fit(self, X, y):
        """Fail."""
        pytest.fail("a model was trained before what was asked for was checked")


def with_a_small_group(n=2000, share=0.02):
    """A town whose few people were never hired."""
    table = people(n)
    small = np.random.default_rng(1).random(n) < share
    town = np.where(small, "tiny", table["town"].to_pylist())
    hired = np.where(small, "no", table["hired"].to_pylist())
    table = table.set_column(4, "town", pa.array(town))
    return table.set_column(5, "hired", pa.array(hired))


def tried(table, *, models=None, repeats=2, sensitive=("town", "sex"), **options):
    return eq.evaluate(
        table, sensitive_features=list(sensitive), label="hired", repeats=repeats, jobs=1,
        models={"none": Untrainable()} if models is None else models, **options,
    )  # fmt: skip


def refused(table, **options):
    with pytest.raises(InputError) as error:
        tried(table, **options)
    return str(error.value)


@pytest.mark.parametrize("min_group", [1, 3])
def test_a_group_no_repair_can_reach_is_refused_before_training(min_group):
    message = refused(with_a_small_group(), min_group=min_group)
    assert "has no row of town=tiny, hired=yes at all" in message
    assert (
        "`min_group` counts the rows of a group in the initial sample (20 % of the table)"
        in message
    )


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "is_tried"), [(20, True), ([10, 30], False)])
def test_the_advice_works(sample, is_tried):
    table = with_a_small_group()
    message = refused(table, sample=sample)
    (advised,) = re.findall(r"with `min_group=(\d+)`", message)
    (most,) = re.findall(r"has up to (\d+) rows there", message)
    assert int(advised) == int(most) + 1
    assert "at all" in refused(table, sample=sample, min_group=int(most))
    if is_tried:  # planning for each of the samples takes half a minute
        done = tried(table, sample=sample, models="logistic", min_group=int(advised))
        (study,) = done.studies
        assert all(made["failures"] == 0 for made in study["tables"])


@pytest.mark.slow
def test_a_larger_least_size_than_advised_works_too():
    """Plans may add rows to any cell of a group that is not judged; those without rows are avoided."""
    done = tried(with_a_small_group(), models="logistic", min_group=100)
    made = {t["version"]: t for t in done.studies[0]["tables"]}
    for version in ("p", "n"):
        assert made[version]["failures"] == 0
        assert made[version]["ub"][0] < made["u"]["ub"][0]


def test_advice_that_would_not_work_is_not_given():
    table = people(600)
    keep = [s == "m" or h == "no" for s, h in zip(*table.select(["sex", "hired"]).to_pydict().values(), strict=True)]  # fmt: skip
    message = refused(table.filter(pa.array(keep)), sensitive=("sex",))
    assert "no row of sex=w, hired=yes at all" in message
    assert "No `min_group` leaves two or more groups" in message
    assert "`versions=['u', 'reweighed']`" in message
    done = tried(
        table.filter(pa.array(keep)), sensitive=("sex",), models="logistic",
        versions=["u", "reweighed"],
    )  # fmt: skip
    assert done.studies[0]["fits"] == 4


@pytest.mark.slow
def test_a_least_size_that_no_group_has_is_refused_before_training():
    message = refused(people(600), sensitive=("sex",), min_group=500)
    assert "`min_group=500` leaves no group to repair" in message
    (most,) = re.findall(r"Use `min_group=(\d+)` or less", message)
    assert tried(people(600), sensitive=("sex",), models="logistic", min_group=int(most))
