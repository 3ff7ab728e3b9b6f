"""``equipoise missing``: formats and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from equipoise.cli.app import run
from people import people

ASK = ["-s", "sex", "-l", "hired"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = people(600).to_pydict()
    pa_csv.write_csv(pa.table(columns), "whole.csv")
    columns["sex"] = ["?" if i % 6 == 0 else s for i, s in enumerate(columns["sex"])]
    pa_csv.write_csv(pa.table(columns), "people.csv")
    return tmp_path


@pytest.mark.slow
def test_real_gaps_in_text(capsys):
    assert run(["missing", "people.csv", *ASK, "--na", "?"]) == 0
    out = capsys.readouterr().out
    assert "100 of them (16.7%) have a missing value: sex in 100" in out
    for method in ("group", "drop", "most_frequent", "knn", "iterative_blind"):
        assert method in out


def test_values_taken_away_as_json(capsys):
    line = ["missing", "whole.csv", *ASK, "--take-away", "0.25", "--mechanism", "by_label"]
    assert run([*line, "--methods", "drop,group", "--repeats", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["taken"] == 150
    assert [m["method"] for m in found["methods"]] == ["drop", "group"]


def test_a_page(capsys):
    assert (
        run(["missing", "people.csv", *ASK, "--na", "?", "--methods", "drop,knn", "-o", "m.html"])
        == 0
    )
    assert "knn" in Path("m.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["whole.csv", *ASK], "--na"),
        (["people.csv", *ASK, "--na", "?", "--methods", "magic"], "there are: group, drop"),
        (["whole.csv", *ASK, "--take-away", "0.2", "--column", "age"], "age"),
        (["people.csv", "-s", "sx", "-l", "hired"], "Did you mean 'sex'"),
        (["whole.csv", *ASK, "--take-away", "2"], "0<x<1"),
        (["whole.csv", *ASK, "--count", "years"], "give the rows themselves"),
    ],
)
def test_bad_usage_is_one_sentence(arguments, words, capsys):
    assert run(["missing", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert "Traceback" not in captured.err
