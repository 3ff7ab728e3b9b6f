"""Copies of a row stay in one part; rows that are equal by chance are rows of their own."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.counts import CountRequest
from equipoise.datasets import path
from equipoise.errors import InputError
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.units import find_copies
from equipoise.evaluation.training.versions import make_version, part_for_test, split
from people import asked, people


def narrow(n=4000, seed=0):
    """A table whose few columns make nearly every row equal to another by chance."""
    return people(n, seed).drop_columns(["skill"])


def said(table, **options):
    """What each row says, as texts; and the material of the table."""
    rows = np.array([repr(row) for row in table.to_pylist()])
    return rows, prepare(table, asked(**options), name="people")


@pytest.mark.parametrize("version", ["u", "p", "duplicated"])
def test_no_copy_of_a_trained_row_is_tested_on(version):
    rows, material = said(pa.concat_tables([people(400)] * 6))
    for repeat in range(3):
        parts = split(material, asked(), repeat, 20.0)
        made = make_version(material, asked(), version, parts)
        train, own = part_for_test(material, asked(), made, parts)
        told = [set(rows[part].tolist()) for part in (parts.test, train, own)]
        assert not told[0] & (told[1] | told[2])
        assert not told[1] & told[2]
        assert abs(len(parts.test) - 480) <= 6  # nothing is left out
        assert sum(map(len, (parts.test, parts.sample, parts.pool))) == 2400


def test_some_rows_that_were_copied_are_found():
    table = people(3000)
    rows, material = said(pa.concat_tables([table, table.slice(0, 300)]))
    parts = split(material, asked(), 0, 20.0)
    assert material.copies.held == material.copies.equal >= 300
    aside = set(rows[parts.test].tolist())
    assert not aside & set(rows[np.concatenate([parts.sample, parts.pool])].tolist())


@pytest.mark.parametrize("columns", [("race", "town"), ("race", "town", "years"), ("town",)])
def test_rows_equal_by_chance_are_rows_of_their_own(columns):
    table = people(4000).select(["sex", *columns, "hired"])
    _, material = said(table)
    assert material.copies.equal > 2000
    assert material.copies.held == 0
    assert material.unit.tolist() == list(range(4000))


def test_a_narrow_table_that_was_repeated_has_the_units_of_one():
    table = narrow(1000)
    _, once = said(table)
    _, often = said(pa.concat_tables([table] * 3))
    assert once.copies.held == 0
    assert often.copies.held == 2000
    assert sorted(np.unique(often.unit, return_counts=True)[1].tolist()) == [3] * 1000


@given(st.integers(0, 20), st.integers(2, 5))
def test_chance_is_estimated_about_right(seed, columns):
    generator = np.random.default_rng(seed)
    seen = generator.integers(0, generator.integers(2, 12, columns + 1), (2000, columns + 1))
    copies = find_copies(seen.astype(float))
    assert copies.held == 0
    if copies.pairs > 500:
        assert 0.7 < copies.by_chance / copies.pairs < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "left_out"), [("adult", []), ("adult", ["fnlwgt", "age"]), ("credit", [])]
)
def test_real_tables_are_not_taken_for_copies(data, left_out):
    table = pq.read_table(path(data)).drop_columns(left_out)
    label = {"adult": "income", "credit": "default"}[data]
    counting = CountRequest(sensitive=("sex",), label=label, na=("?",))
    once = prepare(table, EvaluationRequest(counting=counting), name=data)
    assert once.copies.equal > 0
    assert once.copies.held == 0
    twice = prepare(pa.concat_tables([table] * 2), EvaluationRequest(counting=counting), name=data)
    assert twice.copies.held == len(table)


def test_what_is_asked_for_decides():
    table = narrow(600)
    rows, together = said(table, equal_rows="together")
    assert len(set(together.unit.tolist())) == len(set(rows.tolist())) < 600
    _, apart = said(pa.concat_tables([table] * 2), equal_rows="apart")
    assert apart.unit.tolist() == list(range(1200))
    with pytest.raises(InputError, match="`equal_rows` must be one of 'auto', 'together', 'apart'"):
        asked(equal_rows="none")
    with pytest.raises(InputError, match="equal rows must count as one row"):
        asked(versions=("before", "after"), equal_rows="apart")


def test_people_stay_together_beside_copies():
    table = people(300).append_column("person", pa.array([i // 3 for i in range(300)]))
    twice = pa.concat_tables([table, table.set_column(6, "person", pa.array(range(1000, 1300)))])
    _, material = said(twice, keep_together="person")
    assert len(set(material.unit.tolist())) == 100


@pytest.mark.slow
def test_copies_do_not_raise_scores():
    """Repeating a table must not make models look better, as it does where copies leak."""
    table = people(1500)

    def accuracy(rows, **options):
        found = eq.evaluate(
            rows, sensitive_features=["sex"], label="hired", models="random_forest",
            versions=["u"], repeats=3, sample=30, jobs=1, **options,
        )  # fmt: skip
        return next(r["accuracy"] for r in found.rows() if r["test"] == "untouched")

    once, often = accuracy(table), accuracy(pa.concat_tables([table] * 6))
    leaky = accuracy(pa.concat_tables([table] * 6), equal_rows="apart")
    assert abs(once - often) < 0.03
    assert leaky > once + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        (
            pa.concat_tables([people(300)] * 2),
            {},
            "300 of them count as duplicates and are always in the same",
        ),
        (
            narrow(600),
            {},
            "they count as separate rows, since chance explains about as many",
        ),
        (
            narrow(600),
            {"equal_rows": "together"},
            "as requested, equal rows are always in the same part",
        ),
        (
            narrow(600),
            {"equal_rows": "apart"},
            "as requested, they count as separate rows, so duplicates may be",
        ),
    ],
)
def test_equal_rows_are_told_everywhere(tmp_path, table, options, words):
    found = eq.evaluate(
        table, sensitive_features=["sex"], label="hired", models="logistic", versions=["u"],
        repeats=1, jobs=1, **options,
    )  # fmt: skip
    eq.report(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert words in found.text()
    assert words in page
    plain = json.loads(found.to_json())["studies"][0]["equal_rows"]
    assert plain["asked"] == options.get("equal_rows", "auto")
    assert f"{plain['equal']:,} of {len(table):,} rows equal an earlier row" in found.text()


def test_nothing_is_told_where_no_rows_are_equal():
    found = eq.evaluate(
        people(300), sensitive_features=["sex"], label="hired", models="logistic", versions=["u"],
        repeats=1, jobs=1,
    )  # fmt: skip
    assert "earlier row" not in found.text()
    assert found.studies[0]["equal_rows"]["equal"] == 0
