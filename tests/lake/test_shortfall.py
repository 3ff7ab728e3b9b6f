"""Shortfall: every missing row is put down to one reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.offers.shortfall import NO_TABLE, Lack, explain_shortfall


@given(st.data())
def test_every_missing_row_has_one_reason(data):
    def numbers():
        return data.draw(st.lists(st.integers(0, 9), min_size=3, max_size=3))

    need, found = numbers(), numbers()
    lost = {"unmapped values": numbers(), "duplicates": numbers()}
    lacks = {lack.cell: lack for lack in explain_shortfall(need, found, lost)}
    assert set(lacks) == {i for i in range(3) if need[i] > found[i]}
    for i, lack in lacks.items():
        assert lack.missing == need[i] - found[i] == sum(lack.reasons.values())
        first = min(lack.missing, lost["unmapped values"][i])
        second = min(lack.missing - first, lost["duplicates"][i])
        wanted = {"unmapped values": first, "duplicates": second}
        wanted[NO_TABLE] = lack.missing - first - second
        assert lack.reasons == {reason: n for reason, n in wanted.items() if n}


def test_a_lack_is_a_sentence():
    (lack,) = explain_shortfall([10], [3], {"duplicates": [5]})
    assert lack == Lack(0, 10, 3, 7, {"duplicates": 5, NO_TABLE: 2})
    assert lack.sentence("sex=w") == (
        "sex=w: 3 of 10 rows found; 7 missing (5: duplicates; 2: no table offers them)."
    )


def test_numbers_of_rows_are_written_for_people():
    (lack,) = explain_shortfall([32_825], [1_000], {"duplicates": [5_000]})
    assert lack.sentence("sex=w") == (
        "sex=w: 1,000 of 32,825 rows found; 31,825 missing (5,000: duplicates; 26,825: no table offers them)."
    )


def test_reasons_of_other_cells_are_refused():
    with pytest.raises(InputError, match="'duplicates' has 2 cells but need has 1"):
        explain_shortfall([10], [3], {"duplicates": [5, 6]})
