"""Headers and notations, case by case."""

from __future__ import annotations

import pyarrow as pa
import pytest

from equipoise.lake.matching.columns.headers import (
    header_similarity,
    ordinal,
    other_referent,
    same_words,
)
from equipoise.lake.matching.columns.wording import _is_contracted, is_said_by
from equipoise.lake.matching.notations import (
    patterns_for,
    read_dates,
    read_numbers,
    tally_values,
)
from equipoise.lake.repair.output import cast


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [("hours-per-week", "HoursPerWeek", 0.97), ("sex", "gender", 0.93), ("sex", "c7", 0.0)],
)
def test_headers_are_similar_by_their_words(one, other, similarity):
    assert header_similarity(one, other) == similarity


def test_the_same_words_are_no_synonyms():
    assert same_words("hours-per-week", "HoursPerWeek")
    assert not same_words("sex", "gender")


@pytest.mark.parametrize(
    ("one", "other", "referent"),
    [
        ("sex", "spouse_gender", "spouse"),
        ("previous income", "income", "previous"),
        ("sex", "customer_sex", None),
        ("parent_age", "ParentAge", None),
    ],
)
def test_a_header_may_be_about_someone_else_or_another_time(one, other, referent):
    assert other_referent(one, other) == referent


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("bill_amt3", ("bill amt", 3)),
        ("Statement August", ("statement", 8)),
        ("age", None),
        ("c7", None),
    ],
)
def test_headers_are_numbered(header, found):
    assert ordinal(header) == found


def test_a_header_is_said_by_a_synonym_of_it():
    assert is_said_by("bill amt", "invoice")
    assert not is_said_by("pay amt", "previous payment")


@pytest.mark.parametrize(
    ("short", "long", "is_one"),
    [
        ("caploss", "capital_loss", True),
        ("fnlwgt", "final weight", True),
        ("hpw", "hours per week", True),
        ("age", "annual gross earnings", False),
    ],
)
def test_contracted_headers(short, long, is_one):
    assert _is_contracted(short, long) == is_one


def tally(*texts):
    return tally_values(dict.fromkeys(texts, 1), patterns_for(texts))


def test_dates_are_read_by_the_one_form_that_fits_all():
    assert read_dates(tally("03/25/2021", "04/01/2021")).form.name == "%m/%d/%Y"
    assert read_dates(tally("03/04/2021")).doubt == "day and month can be read both ways"


@pytest.mark.parametrize(
    ("texts", "notation"),
    [(("1.234,5", "12"), "comma"), (("1,234.5", "7"), "grouped"), (("3.5",), "plain")],
)
def test_numbers_are_read_by_the_one_notation_that_fits_all(texts, notation):
    assert read_numbers(tally(*texts)).notation == notation


def test_a_comma_before_three_digits_is_in_doubt():
    assert "1,234 may be more than a thousand" in read_numbers(tally("1,234", "2,500")).doubt


def test_texts_become_numbers_and_missing_values_stay():
    assert cast(pa.chunked_array([["39", None]]), pa.int64()).to_pylist() == [39, None]
