"""Reweighing brings every weighted UB to 0, where every cell has rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.counts import CountRequest, Counts
from equipoise.engines import engines
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.reweighing import Reweighing, cell_weights, row_weights
from strategies import counts as some_counts
from strategies import text_tables
from written import write_rows

SEX, HIRED = ["m", "m", "m", "w", "w", "w"], ["yes", "yes", "no", "yes", "no", "no"]


def largest(table):
    return max(abs(row.ub) for row in table)


@pytest.mark.slow
@given(counts=some_counts())
def test_the_weight_of_a_cell_is_one_over_one_less_its_bias(counts):
    weights = cell_weights(counts)
    table = eq.measure(counts, uncertainty=False)
    for weight, cell in zip(weights.tolist(), counts._cells(), strict=True):
        names = [a.name for a in counts.sensitive]
        ub = table[Group(dict(zip(names, cell[:-1], strict=True))), cell[-1]].ub
        assert weight == pytest.approx(1 / (1 - ub))


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(st.sampled_from("mwx"), st.sampled_from("ab"), st.sampled_from("01")), max_size=40
    )
)
def test_weighted_bias_is_zero_for_every_group_of_the_lattice(rows):
    rows += [(s, r, y) for s in "mwx" for r in "ab" for y in "01"]  # a row in every cell
    sex, race, y = (list(column) for column in zip(*rows, strict=True))
    weights = eq.sample_weight(y=y, sensitive_features={"sex": sex, "race": race})
    assert weights.sum() == pytest.approx(len(rows))
    frame = {"sex": sex, "race": race, "y": y, "w": weights}
    table = eq.measure(frame, sensitive_features=["sex", "race"], label="y", weight="w")
    assert len(table) == 2 * (3 + 2 + 6)
    assert largest(table) < 1e-9


@pytest.mark.slow
@given(table=text_tables())
def test_every_row_has_the_weight_of_its_cell(table):
    *sensitive, label = table.column_names
    request = CountRequest(sensitive=tuple(sensitive), label=label)
    counts = Counts.from_arrow(table, request)
    by_cell = dict(zip(counts._cells(), cell_weights(counts).tolist(), strict=True))
    lines = zip(*(c.to_pylist() for c in table.columns), strict=True)
    expected = [
        by_cell.get(tuple(eq.MISSING if v is None else v for v in line), 0.0) for line in lines
    ]
    assert row_weights(table, counts).tolist() == expected


def test_more_cells_than_numbers_are_told_apart():
    width = 80  # 3 to the power of 80 does not fit in 64 bits
    table = pa.table({f"a{i}": ["x", "y", "y", "x"] for i in range(width)})
    table = table.append_column("l", pa.array(["0", "0", "1", "1"]))
    counts = Counts.from_frame(table, sensitive=table.column_names[:-1], label="l")
    assert row_weights(table, counts).tolist() == [1.0] * 4
    other = table.set_column(0, "a0", pa.array(["x", "x", "y", "z"]))
    assert row_weights(other, counts).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_rows_left_out_weigh_nothing():
    weights = eq.sample_weight(
        {"sex": ["m", "m", "w", "w", "?"], "y": ["1", "0", "1", None, "0"]},
        sensitive_features="sex", label="y", na=["?"], missing="drop",
    )  # fmt: skip
    assert weights.tolist() == [2 * 2 / 3, 2 * 1 / 3, 1 * 2 / 3, 0.0, 0.0]


def test_bins():
    ages, hired = [20, 30, 40, 50, None], ["y", "n", "y", "y", "n"]
    by_bins = eq.sample_weight(y=hired, sensitive_features={"age": ages}, bins={"age": [35]})
    named = ["low", "low", "high", "high", None]
    assert by_bins.tolist() == eq.sample_weight(y=hired, sensitive_features=[named]).tolist()


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_weights_of_a_file_come_in_its_order(tmp_path, ending):
    many = pa.table({"beside": range(6000), "sex": SEX * 1000, "hired": HIRED * 1000})
    write_rows(engines()["duckdb"](), many, tmp_path / f"people{ending}")
    asked = {"sensitive_features": ["sex"], "label": "hired"}
    weights = eq.sample_weight(tmp_path / f"people{ending}", **asked)
    assert weights.dtype == np.float64
    assert weights.tolist() == [0.75, 0.75, 1.5, 1.5, 0.75, 0.75] * 1000
    assert eq.sample_weight(many, **asked).tolist() == weights.tolist()
    fewer = eq.sample_weight(
        tmp_path / f"people{ending}", **asked, sql="SELECT * FROM input WHERE sex = 'm'"
    )
    assert fewer.tolist() == [1.0] * 3000
    if ending == ".csv":
        plain = eq.sample_weight(tmp_path / "people.csv", **asked, engine=engines()["memory"]())
        assert plain.tolist() == weights.tolist()


def test_frames_and_arrays():
    import pandas as pd

    frame = pd.DataFrame({"sex": SEX, "hired": HIRED})
    expected = [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    assert eq.sample_weight(frame, sensitive_features="sex", label="hired").tolist() == expected
    by_columns = eq.sample_weight(y=np.array(HIRED), sensitive_features=frame["sex"])
    assert by_columns.tolist() == expected


def test_what_has_no_rows_to_weigh():
    table = {"sex": SEX, "hired": HIRED, "n": [1] * 6}
    asked = {"sensitive_features": ["sex"], "label": "hired"}
    for name in ("count", "weight"):
        with pytest.raises(InputError, match=f"the rows themselves, without {name}"):
            eq.sample_weight(table, **asked, **{name: "n"})
    with pytest.raises(InputError, match="weights are given to rows"):
        eq.sample_weight("compas", sensitive_features=["sex"], label="risk")
    counts = eq.count(table, **asked)
    with pytest.raises(InputError, match="weights are given to rows"):
        eq.sample_weight(counts, **asked)
    with pytest.raises(InputError, match="no rows to weigh"):
        cell_weights(counts - counts)
    with pytest.raises(InputError, match="have weights already"):
        cell_weights(eq.count(table, **asked, weight="n"))


def test_what_weights_cannot_do_is_said():
    cells = {("m", "1"): 5, ("m", "0"): 90, ("w", "0"): 5, ("x", "0"): 1}
    found = Reweighing.of(Counts.from_mapping(cells, sensitive=["sex"], label="y"))
    assert [str(g) for g in found.empty] == ["sex=w, y=1", "sex=x, y=1"]
    assert found.sentences[1] == (
        "2 cells have no rows to weigh, such as sex=w, y=1: UB is not 0 there, and rows must be "
        "added."
    )
    full = {("m", "1"): 90, ("m", "0"): 10, ("w", "1"): 1, ("w", "0"): 99}
    (only,) = Reweighing.of(Counts.from_mapping(full, sensitive=["sex"], label="y")).sentences
    assert only == "The largest weight is 45.50, of sex=w, y=1."
