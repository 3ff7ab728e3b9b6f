"""Rows without a label are left out, refused, kept with a label of their own, or treated if asked."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.counts import CountRequest, Counts
from equipoise.errors import InputError
from equipoise.evaluation.missing.comparison import compare_missing
from equipoise.evaluation.missing.simulation import simulate_missing
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.values import MISSING

N, LACKING = 900, 90
CALLS = [compare_missing, simulate_missing]
FEW = {"methods": ["drop", "group", "most_frequent", "knn"]}


@pytest.fixture(scope="module")
def table():
    chance = np.random.default_rng(3)
    sex = chance.choice(["w", "m"], N)
    hired = np.where(chance.random(N) < 0.3 + 0.3 * (sex == "m"), "yes", "no").tolist()
    columns = {"sex": sex.tolist(), "hired": hired, "age": chance.normal(40, 9, N)}
    for row in range(0, N, 10):
        columns["hired"][row] = None
    for row in range(3, N, 9):
        columns["sex"][row] = None
    return pa.table(columns)


def asked(policy):
    return CountRequest(sensitive=("sex",), label="hired", missing_label=policy)


def labelled(table):
    return table.filter(table["hired"].is_valid())


@pytest.mark.parametrize("call", CALLS)
def test_rows_without_a_label_are_left_out(call, table):
    found, without = call(table, asked("drop"), **FEW), call(labelled(table), asked("drop"), **FEW)
    assert (found.n, found.without_label) == (without.n, LACKING)
    assert found.labels == ("no", "yes")
    assert found.groups == without.groups
    assert found.incomplete == without.incomplete
    assert "90 rows of the table without hired were left out." in found.sentences


@pytest.mark.parametrize("call", CALLS)
def test_rows_without_a_label_are_refused(call, table):
    with pytest.raises(
        InputError, match=r"column 'hired' has no value in 90 rows.*`missing_label="
    ):
        call(table, asked("raise"), **FEW)
    assert call(labelled(table), asked("raise"), **FEW).without_label == 0
    none = table.set_column(1, "hired", pa.nulls(N, pa.string()))
    for policy in ("drop", "group"):
        with pytest.raises(InputError, match="column 'hired' has no value in any of 900 rows"):
            call(none, asked(policy), **FEW)


def test_rows_without_a_label_have_one_of_their_own_under_every_method(table):
    found = compare_missing(table, asked("group"), **FEW)
    assert found.labels == ("no", "yes", MISSING)
    assert "90 rows of the table without hired count as rows with a separate label." in (
        found.sentences
    )
    counted = CountRequest(sensitive=("sex",), label="hired", missing="drop", missing_label="group")
    truth = bias_table(Counts.from_arrow(table, counted), MeasureRequest(uncertainty=False))
    expected = {(row.group, row.label): row.ub for row in truth}
    assert {(e.group, e.label): e.ub["drop"] for e in found.groups} == pytest.approx(expected)
    assert MISSING in {label for _, label in expected}
    for treated in found.methods:  # no method fills a label, or leaves such a row out for it
        assert treated.label_frequencies[MISSING] == pytest.approx(LACKING / N, abs=0.02)
        assert sum(treated.label_frequencies.values()) == pytest.approx(1)
    plain = json.loads(found.to_json())
    assert plain["labels"] == ["no", "yes", None]
    assert None in {entry["label"] for entry in plain["groups"]}
    assert "<missing>" in plain["methods"][0]["label_frequencies"]
    assert "hired=<missing>" in found.text()


def test_values_are_taken_away_beside_a_label_of_its_own(table):
    found = simulate_missing(table, asked("group"), **FEW)
    assert found.n == N - found.incomplete
    assert {entry.label for entry in found.groups} == {"no", "yes", MISSING}
    with pytest.raises(InputError, match=r"values of 'hired' are removed.*`missing_label='drop'`"):
        simulate_missing(table, asked("group"), column="hired", **FEW)
    assert simulate_missing(table, asked("drop"), column="hired", **FEW).column == "hired"


def test_methods_treat_labels_if_asked(table):
    found = compare_missing(table, asked("drop"), treat_label=True, **FEW)
    assert found.without_label == 0
    assert found.missing_values["hired"] == LACKING
    assert found["knn"].rows == N
    only = pa.table({**table.to_pydict(), "sex": ["w", "m"] * (N // 2)})
    with pytest.raises(InputError, match=r"90 have no label 'hired'.*set `treat_label=True`"):
        compare_missing(only, asked("drop"), **FEW)
    assert compare_missing(only, asked("drop"), treat_label=True, **FEW).incomplete == LACKING


@pytest.mark.parametrize("call", [eq.compare_missing, eq.simulate_missing])
def test_it_is_the_same_from_python(call, table):
    how = {"sensitive_features": ["sex"], "label": "hired", "methods": "drop,group"}
    assert call(table, **how).labels == ("no", "yes")
    assert call(table, missing_label="group", **how).labels == ("no", "yes", MISSING)
    with pytest.raises(InputError, match="in 90 rows"):
        call(table, missing_label="raise", **how)


@pytest.mark.parametrize("more", [[], ["--take-away", "0.2", "--repeats", "2"]])
def test_it_is_the_same_from_the_command_line(more, table, tmp_path, capsys):
    import pyarrow.parquet as pq

    name = str(tmp_path / "people.parquet")
    pq.write_table(table, name)
    line = ["missing", name, "-s", "sex", "-l", "hired", "--methods", "drop,group", "--json", *more]
    for policy, labels in (("drop", ["no", "yes"]), ("group", ["no", "yes", None])):
        assert run([*line, "--missing-label", policy]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["labels"] == labels
        assert told["without_label"] == LACKING
    assert run([*line, "--missing-label", "raise"]) == 2
    assert "in 90 rows" in capsys.readouterr().err
    assert run([*line, "--treat-label"]) == (2 if more else 0)
    page = tmp_path / "page.html"
    assert run([*line[: -1 - len(more)], *more, "--missing-label", "group", "-o", str(page)]) == 0
    assert "&lt;missing&gt;" in page.read_text("utf-8")
