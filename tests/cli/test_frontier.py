"""``equipoise frontier``: formats, options, and bad input."""

from __future__ import annotations

import csv
import io
import json

import pytest

from equipoise.cli.app import run

COMPAS = ["frontier", "compas", "-s", "sex,race", "-l", "risk", "--count", "n", "--allow", "both"]
THREE = ["--tolerance", "0.2", "--tolerance", "0.05", "--tolerance", "0.01"]


def output(arguments, capsys, code=0):
    assert run(arguments) == code, capsys.readouterr().err
    return capsys.readouterr().out


def test_json(capsys):
    data = json.loads(output([*COMPAS, *THREE, "--budget", "2000", "--json"], capsys))
    assert [p["cost"] for p in data["points"]] == [4885, 3769, 776]
    assert data["exact"] is True
    (bought,) = data["budgets"]
    assert 0.05 < bought["tolerance"] < 0.2
    assert bought["cost"] <= 2000


def test_csv(capsys):
    rows = list(csv.DictReader(io.StringIO(output([*COMPAS, *THREE, "--csv"], capsys))))
    assert [float(r["tolerance"]) for r in rows] == [0.01, 0.05, 0.2]
    assert [float(r["cost"]) for r in rows] == [4885, 3769, 776]


@pytest.mark.parametrize("flag", [[], ["--markdown"]])
def test_text_and_markdown(flag, capsys):
    text = output([*COMPAS, *THREE, *flag], capsys)
    assert "3,769" in text
    assert "Every cost is proved to be the lowest" in text


@pytest.mark.parametrize("ending", ["json", "csv", "md", "txt"])
def test_files(ending, capsys, tmp_path):
    file = tmp_path / f"frontier.{ending}"
    assert run([*COMPAS, *THREE, "-o", str(file)]) == 0
    assert file.read_text().strip()
    assert capsys.readouterr().out == ""


def test_the_frontier_of_adult(capsys):
    command = ["frontier", "adult", "--sensitive", "sex,race", "--label", "income"]
    points = json.loads(output([*command, "--points", "5", "--json"], capsys))["points"]
    costs = [p["cost"] for p in points]
    assert len(costs) == 5
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0


def test_rates(capsys):
    options = ["--tolerance-on", "rate", "--tolerance", "0.05", "--tolerance", "0.1", "--json"]
    points = json.loads(output([*COMPAS, *options], capsys))["points"]
    assert [p["cost"] for p in points] == [899, 0]


BAD = {
    "negative tolerance": ["--tolerance", "-0.1"],
    "zero tolerance": ["--tolerance", "0"],
    "tolerance nan": ["--tolerance", "nan"],
    "negative budget": ["--budget", "-1"],
    "unknown value": ["--available", "sex=x", "3"],
    "negative cost": ["--cost-delete", "sex=w", "-2"],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_exit_2(name, capsys, tmp_path):
    file = tmp_path / "frontier.json"
    assert run([*COMPAS, *BAD[name], "-o", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert not file.exists()
