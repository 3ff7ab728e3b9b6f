"""Values of options as texts, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.options import options_of
from equipoise.options.count import CountRequest
from equipoise.options.map import MapOptions
from equipoise.options.plan import PlanOptions
from equipoise.options.texts import number_text, parse_bins, read_texts, write_texts

KNOWN = {o.name: o for kind in (CountRequest, PlanOptions, MapOptions) for o in options_of(kind)}
numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers)
def test_a_number_is_read_as_it_was(number):
    assert float(number_text(number)) == number


@given(st.lists(st.tuples(st.text("abc =,'>", min_size=1).filter(str.strip), numbers)))
def test_patterns_with_numbers_are_read_as_they_were(pairs):
    texts = write_texts(KNOWN["cost_add"], pairs)
    assert read_texts(KNOWN["cost_add"], texts) == [(p.strip(), n) for p, n in pairs]


@given(
    st.dictionaries(
        st.text("ab=c d", min_size=1),
        st.one_of(st.integers(2, 99), st.lists(numbers, min_size=1).map(tuple)),
    )
)
def test_bins_are_read_as_they_were(bins):
    assert parse_bins(write_texts(KNOWN["bins"], bins)) == bins


@pytest.mark.parametrize(
    ("name", "value", "texts"),
    [
        ("na", ("?", "NA"), ["?", "NA"]),
        ("tolerance", 0.05, ["0.05"]),
        ("exact", True, ["true"]),
        ("budget", None, []),
        ("limits", ("x<=3",), ["x<=3"]),
    ],
)
def test_other_values_are_written(name, value, texts):
    assert write_texts(KNOWN[name], value) == texts


@pytest.mark.parametrize("text", ["2", "sex=w", "sex=w two", ""])
def test_a_pattern_without_a_number_is_refused(text):
    with pytest.raises(InputError, match="`cost_add` takes"):
        read_texts(KNOWN["cost_add"], [text])
