"""Files of what a room shows."""

from __future__ import annotations

import csv
import io

import pytest

pytest.importorskip("fastapi", reason="the explorer needs the extra web: pip install '.[web]'")

from equipoise.web.exports import without_formulas


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-x", "@sum", "\ttab", "\rreturn"])
def test_no_cell_begins_with_a_formula(cell):
    text = io.StringIO(newline="")
    csv.writer(text).writerow([cell, "plain"])
    (row,) = csv.reader(io.StringIO(without_formulas(text.getvalue()), newline=""))
    assert row == [f"'{cell}", "plain"]


@pytest.mark.parametrize("cell", ["-2.5", "+3", "-1e-05", "0", "a=b", ""])
def test_numbers_and_other_cells_stay(cell):
    text = io.StringIO(newline="")
    csv.writer(text).writerow([cell, "x"])
    (row,) = csv.reader(io.StringIO(without_formulas(text.getvalue()), newline=""))
    assert row == [cell, "x"]
