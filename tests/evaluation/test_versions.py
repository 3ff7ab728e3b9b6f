"""Versions of a sample: what they add and delete is what the plan says, and UB is measured."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from equipoise.errors import InputError
from equipoise.evaluation.training.job import Job, _weights, run_job
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.models import choose_models
from equipoise.evaluation.training.versions import make_version, split
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from people import asked, people


def made(version, *, table=None, size=20.0, **options):
    request = asked(**options)
    material = prepare(people(2000) if table is None else table, request, name="people")
    parts = split(material, request, 0, size)
    return material, parts, make_version(material, request, version, parts)


def is_rare(table):
    """Whether a row is of a hired woman."""
    sex, hired = (table[c].to_pylist() for c in ("sex", "hired"))
    return np.array([s == "w" and h == "yes" for s, h in zip(sex, hired, strict=True)])


def largest_ub(material, cells):
    return np.nanmax(
        np.abs(bias_table(material.as_counts(cells), MeasureRequest(uncertainty=False)).measured.ub)
    )


@pytest.mark.parametrize("version", ["p", "n", "deleted", "duplicated"])
def test_a_repair_leaves_no_more_bias_than_rounding_does(version):
    material, parts, done = made(version)
    assert largest_ub(material, np.bincount(material.cells[parts.sample])) > 0.1
    assert largest_ub(material, done.cells) < 0.02
    assert done.found == done.need > 0


def test_p_and_n_add_real_rows_of_the_pool_and_keep_the_size():
    for version in ("p", "n"):
        _, parts, done = made(version)
        assert len(done.rows) == len(parts.sample) == len(set(done.rows.tolist()))
        new = set(done.rows.tolist()) - set(parts.sample.tolist())
        assert new
        assert new <= set(parts.pool.tolist())
        assert done.cells.sum() == len(parts.sample) + done.found


def test_p_keeps_label_frequencies_and_n_does_not():
    shares = {}
    for version in ("u", "p", "n"):
        material, _, done = made(version)
        label = material.counts.codes[:, 1]
        shares[version] = np.bincount(label, done.cells) / done.cells.sum()
    assert np.abs(shares["p"] - shares["u"]).max() < 0.005
    assert np.abs(shares["n"] - shares["u"]).max() > 0.02


def test_deleting_takes_rows_of_the_sample_away_only():
    _, parts, done = made("deleted")
    assert set(done.rows.tolist()) < set(parts.sample.tolist())
    assert len(done.rows) == len(parts.sample) - done.found


def test_duplicating_needs_no_pool():
    _, parts, done = made("duplicated")
    assert set(done.rows.tolist()) <= set(parts.sample.tolist())


@pytest.mark.slow
def test_a_tolerance_needs_fewer_rows():
    assert made("p", tolerance=0.1)[2].need < made("p")[2].need


def test_where_the_pool_lacks_rows_what_comes_nearest_is_made_and_told():
    table = people(2000)
    rare = is_rare(table)
    keep = np.flatnonzero(~rare).tolist() + np.flatnonzero(rare)[:8].tolist()
    material, parts, done = made("p", table=table.take(keep), size=30.0)
    (told,) = [lack for lack in done.lacks if lack[0] == "sex=w, hired=yes"]
    inside = material.counts.codes[material.cells[parts.pool]]
    assert told[2] == ((inside[:, 0] == 1) & (inside[:, 1] == 1)).sum() < told[1]
    before = largest_ub(material, np.bincount(material.cells[parts.sample]))
    assert 0.1 < largest_ub(material, done.cells) < before


def test_a_group_that_lacks_rows_does_not_hold_back_the_others():
    table = people(3000)
    rare = is_rare(table)
    keep = np.flatnonzero(~rare).tolist() + np.flatnonzero(rare)[:10].tolist()
    material, parts, done = made("p", table=table.take(keep), size=20.0)
    assert done.lacks
    counts = material.as_counts(done.cells)
    before = material.count(parts.sample)
    assert counts.of("sex=m") > before.of("sex=m")
    rate = counts.of("sex=m, hired=yes") / counts.of("sex=m")
    overall = before.of("hired=yes") / before.n
    assert abs(rate / overall - 1) < 0.02


def test_where_rows_and_a_label_lack_groups_come_near_to_the_right_label():
    """A label that only other samples have must not shift the shares of the others."""
    table = people(3000)
    rare = is_rare(table)
    keep = np.flatnonzero(~rare).tolist() + np.flatnonzero(rare)[:10].tolist()
    table = table.take(keep)
    hired = ["absent" if i == 0 else h for i, h in enumerate(table["hired"].to_pylist())]
    table = table.set_column(5, "hired", pa.array(hired))
    request = asked()
    material = prepare(table, request, name="people")
    seen = 0
    for repeat in range(4):
        parts = split(material, request, repeat, 20.0)
        if (material.label[parts.sample] == material.labels.index("absent")).any():
            continue
        seen += 1
        done = make_version(material, request, "p", parts)
        before = largest_ub(
            material, np.bincount(material.cells[parts.sample], minlength=len(done.cells))
        )
        assert done.lacks
        assert largest_ub(material, done.cells) < before
        there = material.count(np.concatenate([parts.sample, parts.pool]))
        cell = "sex=w, hired=yes"  # too few, so all there are come near by being taken
        assert material.as_counts(done.cells).of(cell) == there.of(cell)
    assert seen


@pytest.mark.slow
def test_a_label_that_the_sample_lacks_is_left_out_of_the_plan():
    table = people(600)
    hired = ["rare" if i < 3 else h for i, h in enumerate(table["hired"].to_pylist())]
    table = table.set_column(5, "hired", pa.array(hired))
    request = asked(repeats=6)
    material = prepare(table, request, name="people")
    rare = material.labels.index("rare")
    lacking = 0
    for repeat in range(6):
        parts = split(material, request, repeat, 20.0)
        lacking += not (material.label[parts.sample] == rare).any()
        records = run_job(material, request, Job(repeat, 20.0, "p", choose_models("logistic")))
        assert records[0]["failed"] is None
    assert lacking


def test_empty_parts_are_told():
    table = people(60)
    for options, words in (
        ({"test": 0.5}, "the test set has no rows"),
        ({"keep_together": "sex"}, "leave none"),
    ):
        request = asked(**options)
        material = prepare(table, request, name="people")
        jobs = [Job(repeat, 20.0, "u", choose_models("logistic")) for repeat in range(3)]
        with pytest.raises(InputError, match=words):
            [run_job(material, request, job) for job in jobs]


def test_a_cell_that_no_row_has_is_refused():
    table = people(400)
    keep = ~is_rare(table)
    with pytest.raises(InputError, match=r"no row of sex=w, hired=yes at all.*`min_group`"):
        made("p", table=table.filter(pa.array(keep)))


@pytest.mark.slow
def test_a_version_that_no_plan_makes_is_told_and_the_rest_goes_on():
    table = people(400)
    keep = ~is_rare(table)
    request = asked(tolerance=0.05)
    material = prepare(table.filter(pa.array(keep)), request, name="people")
    (record,) = run_job(material, request, Job(0, 20.0, "deleted", choose_models("logistic")))
    assert record["failed"].startswith("No plan meets all limits of the request")


def test_outcomes_count_every_tested_row_once():
    request = asked(also=("race",))
    material = prepare(people(), request, name="people")
    version, fit = run_job(material, request, Job(0, 20.0, "p", choose_models("logistic")))
    assert sum(n for *_, n in fit["untouched"]) == version["test"] == 120
    assert sum(n for *_, n in fit["own"]) == version["own"] == 24
    assert sum(n for _, n in version["train"]) == 96


def test_reweighed_rows_have_the_weights_of_the_rows_trained_on():
    request = asked()
    material = prepare(people(), request, name="people")
    plain = run_job(material, request, Job(0, 20.0, "u", choose_models("logistic")))
    weighed = run_job(material, request, Job(0, 20.0, "reweighed", choose_models("logistic")))
    assert plain[0]["train"] == weighed[0]["train"]
    assert plain[1]["untouched"] != weighed[1]["untouched"]


def test_weights_belong_to_their_cells_though_the_rows_trained_on_lack_a_label():
    table = people(900, labels=("a", "b", "c"))
    material = prepare(table, asked(), name="people")
    train = np.flatnonzero(material.label != 0)
    sex, label = (np.array(table[c].to_pylist())[train] for c in ("sex", "hired"))
    for place, weight in enumerate(_weights(material, train).tolist()):
        group, own = sex == sex[place], label == label[place]
        expected = group.sum() * own.sum() / len(train)
        assert weight == pytest.approx(expected / (group & own).sum())


def test_rows_that_lack_a_sensitive_value_are_kept_and_not_repaired():
    table = people(1000)
    sex = [None if i % 10 == 0 else s for i, s in enumerate(table["sex"].to_pylist())]
    table = table.set_column(0, "sex", pa.array(sex))
    material, _, done = made("p", table=table)
    assert material.n == 1000
    assert done.need == done.found
    records = run_job(material, asked(), Job(0, 20.0, "reweighed", choose_models("logistic")))
    assert len(records) == 2
