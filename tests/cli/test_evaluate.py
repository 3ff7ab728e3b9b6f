"""``equipoise evaluate``: formats, options, going on after an interruption, and bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from equipoise.cli.app import run
from people import people

FEW = ["-s", "sex", "-l", "hired", "--repeats", "2", "--jobs", "1", "--models", "logistic"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(people(500), "people.csv")
    return tmp_path


def fails(arguments, capsys, code=2):
    assert run(["evaluate", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [
        x
        for x in captured.err.strip().splitlines()
        if not x.startswith(("training", "Usage", "Try"))
    ]
    message = lines[-1]
    assert "Traceback" not in captured.err
    return message


@pytest.mark.slow
def test_a_table_in_text(capsys):
    assert run(["evaluate", "people.csv", *FEW]) == 0
    out = capsys.readouterr().out
    assert "Scores on the held-out test set" in out
    assert "logistic regression" in out
    assert "p20% compared with u on the held-out test set" in out


@pytest.mark.slow
def test_json_and_going_on(capsys):
    line = ["evaluate", "people.csv", *FEW, "--versions", "p", "-o", "out.json"]
    assert run(line) == 0
    first = json.loads(Path("out.json").read_text(encoding="utf-8"))
    kept = Path("out.json.runs.jsonl").read_text(encoding="utf-8")
    assert run(line) == 0
    again = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert Path("out.json.runs.jsonl").read_text(encoding="utf-8") == kept
    for found in (first, again):
        del found["time"]
    assert first == again
    assert first["studies"][0]["versions"] == ["u", "p"]
    capsys.readouterr()
    assert run([*line[:-2], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    del printed["time"]
    assert printed == first


@pytest.mark.slow
def test_a_page(capsys):
    assert run(["evaluate", "people.csv", *FEW, "--also", "race", "-o", "out.html"]) == 0
    page = Path("out.html").read_text(encoding="utf-8")
    for part in ("Scores", "Differences", "Groups", "Bias and error", "<svg", "race=a"):
        assert part in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_two_tables(capsys):
    table = people(400)
    pq.write_table(table, "before.parquet")
    pq.write_table(pa.concat_tables([table, people(200, seed=3)]), "after.parquet")
    assert run(["evaluate", "before.parquet", "after.parquet", *FEW]) == 0
    out = capsys.readouterr().out
    assert "after compared with before on the held-out test set" in out


@pytest.mark.slow
def test_a_data_set_by_its_name_and_quick(capsys):
    line = ["evaluate", "adult", "-s", "sex", "-l", "income", "--quick", "--models", "logistic"]
    assert run([*line, "--max-rows", "1500", "--versions", "p", "--jobs", "1"]) == 0
    assert "32,561 rows; 1,500 were used" in capsys.readouterr().out


@pytest.mark.slow
def test_the_paper_with_raw_scores(capsys):
    """A made-up file with the columns of the raw one; three scores a person."""
    table = people(900, labels=("High", "Low", "Medium"))
    n = len(table)
    raw = {
        "Person_ID": [i // 3 for i in range(n)],
        "Agency_Text": ["PRETRIAL"] * n,
        "LastName": ["secret"] * n,
        "Sex_Code_Text": ["Male" if s == "m" else "Female" for s in table["sex"].to_pylist()],
        "Ethnic_Code_Text": [
            "Caucasian" if r == "a" else "African-American" for r in table["race"].to_pylist()
        ],
        "DateOfBirth": [f"12/05/{60 + i % 35}" for i in range(n)],
        "AssessmentReason": ["Intake"] * n,
        "Language": ["English"] * n,
        "LegalStatus": [("Pretrial", "Post Sentence")[i % 2] for i in range(n)],
        "CustodyStatus": table["town"].to_pylist(),
        "MaritalStatus": [("Single", "Married")[i % 2] for i in range(n)],
        "Screening_Date": ["1/1/13 0:00"] * n,
        "DisplayText": [("Risk of Violence", "Risk of Recidivism")[i % 2] for i in range(n)],
        "RawScore": [-1.0] * n,
        "DecileScore": [1] * n,
        "ScoreText": ["N/A" if i == 0 else s for i, s in enumerate(table["hired"].to_pylist())],
    }
    pa_csv.write_csv(pa.table(raw), "compas-scores-raw.csv")
    line = ["evaluate", "--paper", "--studies", "compas", "--compas", "compas-scores-raw.csv"]
    few = ["--models", "logistic", "--repeats", "2", "--sample", "30", "--versions", "p"]
    assert run([*line, *few, "--jobs", "1", "--json"]) == 0
    (study,) = json.loads(capsys.readouterr().out)["studies"]
    assert study["rows"] == n - 1
    assert study["labels"] == ["High", "Low", "Medium"]
    assert "age" in study["features"]
    assert not {"person", "LastName", "RawScore", "DecileScore"} & {*study["features"]}
    assert len([g for g in study["groups"] if g["sensitive"]]) == 8


@pytest.mark.slow
def test_the_paper_by_name(capsys):
    line = ["evaluate", "--paper", "--studies", "adult,credit", "--quick", "--models", "logistic"]
    few = ["--repeats", "1", "--max-rows", "1500", "--versions", "p", "--jobs", "1"]
    assert run([*line, *few, "-o", "paper.html"]) == 0
    page = Path("paper.html").read_text(encoding="utf-8")
    assert "Adult: claims of the paper, and results here" in page
    assert "Default of credit card clients: scores" in page


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done(folder):
    line = [sys.executable, "-m", "equipoise", "evaluate", "adult", "-s", "sex", "-l", "income"]
    work = subprocess.Popen(
        [*line, "--repeats", "50", "--jobs", "2", "-o", "out.json"],
        stderr=subprocess.PIPE,
        text=True,
    )
    runs = folder / "out.json.runs.jsonl"
    for _ in range(600):
        if runs.exists() and len(runs.read_text().splitlines()) >= 4:
            break
        time.sleep(0.1)
    work.send_signal(signal.SIGINT)
    _, said = work.communicate(timeout=60)
    assert work.returncode == 130, said
    assert "continues from there" in said
    assert not (folder / "out.json").exists()
    whole = [json.loads(x) for x in runs.read_text().splitlines()]
    assert sum(x["kind"] == "fit" for x in whole) >= 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["people.csv", *FEW, "--models", "gbd"], "unknown model 'gbd'; there are: random_forest"),
        (["people.csv", *FEW, "--versions", "q"], "unknown version 'q'; there are: u, p, n"),
        (["people.csv", *FEW, "--sample", "120"], "120 % is larger than the table"),
        (["people.csv", *FEW, "--sample", "85"], "leave no rows for the pool"),
        (["people.csv", *FEW, "--sample", "-1"], "has no rows"),
        (["people.csv", *FEW, "--drop", "skil"], "Did you mean 'skill'"),
        (["people.csv", *FEW, "--also", "sex"], "'sex' is a sensitive attribute"),
        (["people.csv", *FEW, "--also", "nothing"], "column 'nothing' not found"),
        (["people.csv", *FEW, "--positive", "maybe"], "it has: no, yes"),
        (["people.csv", "-s", "sx", "-l", "hired"], "Did you mean 'sex'"),
        (["nowhere.csv", *FEW], "nowhere.csv"),
        (["people.csv", *FEW, "--studies", "adult"], "--studies needs --paper"),
        (["people.csv", "--paper"], "--paper has its own data"),
        (["--paper", "--label", "x"], "--label cannot be combined with --paper"),
        (["--paper", "--studies", "adlut"], "Did you mean 'adult'"),
        (["--paper", "--studies", "compas", "--compas", "people.csv"], "not the raw file"),
        ([], "name a table"),
        (["people.csv", *FEW, "--runs", "no/where.jsonl"], "does not exist"),
        (["people.csv", *FEW, "-o", "z.json", "--runs", "z.json"], "name the same file"),
        (["people.csv", *FEW, "--versions", "before"], "unknown version 'before'"),
        (["people.csv", "people.csv", *FEW, "--sample", "10"], "compared as they are"),
        (["people.csv", "people.csv", *FEW, "--test", "99.9"], "no rows"),
        (["people.csv", *FEW, "--count", "years"], "give the rows themselves"),
    ],
)
def test_bad_usage_is_one_sentence(arguments, words, capsys):
    assert words in fails(arguments, capsys)


def write(columns, name="bad.csv"):
    pa_csv.write_csv(pa.table(columns), name)
    return name


def test_one_label(capsys):
    columns = people(100).to_pydict() | {"hired": ["no"] * 100}
    assert "one value only, 'no'" in fails([write(columns), *FEW], capsys)


def test_one_label_after_the_split(capsys):
    columns = people(200).to_pydict()
    columns["hired"] = ["yes" if i < 4 else "no" for i in range(200)]
    message = fails([write(columns), *FEW, "--sample", "2", "--versions", "u"], capsys)
    assert "after the split the training part has one label only (no)" in message
    assert "larger sample" in message


def test_a_cell_no_row_has(capsys):
    table = people(300).to_pydict()
    keep = [i for i in range(300) if table["sex"][i] == "m" or table["hired"][i] == "no"]
    columns = {k: [v[i] for i in keep] for k, v in table.items()}
    assert "no row of sex=w, hired=yes at all" in fails([write(columns), *FEW], capsys)


def test_nothing_to_learn_from(capsys):
    table = people(100)
    columns = {"sex": ["w", "m"] * 50, "hired": table["hired"].to_pylist(), "one": [1] * 100}
    message = fails([write(columns), *FEW, "--without-sensitive"], capsys)
    assert (
        "no feature to learn from: one have one value" in message or "one has one value" in message
    )


@pytest.mark.slow
def test_constant_features_are_left_out_and_told(capsys):
    columns = people(300).to_pydict() | {"one": [1] * 300}
    assert run(["evaluate", write(columns), *FEW]) == 0
    assert "Left out because they have a single value: one." in capsys.readouterr().out


@pytest.mark.slow
def test_missing_numbers(capsys):
    columns = people(300).to_pydict()
    columns["years"] = [None if i % 7 == 0 else y for i, y in enumerate(columns["years"])]
    name = write(columns)
    message = fails([name, *FEW], capsys)
    assert "'years' in 43 rows" in message
    assert "logistic cannot handle" in message
    assert "--impute median" in message
    assert run(["evaluate", name, *FEW, "--impute", "median"]) == 0
    assert run(["evaluate", name, *FEW[:-1], "extra_trees", "--versions", "p"]) == 0


@pytest.mark.slow
def test_strings_in_numeric_columns(capsys):
    columns = people(300).to_pydict()
    columns["skill"] = [("unknown" if i == 5 else str(s)) for i, s in enumerate(columns["skill"])]
    name = write(columns)
    message = fails([name, *FEW], capsys)
    assert "column 'skill' has numbers in 299 rows and texts in 1 ('unknown')" in message
    assert run(["evaluate", name, *FEW, "--na", "unknown", "--impute", "mean"]) == 0


def test_the_positive_label_is_looked_at_before_anything_is_trained(capsys, monkeypatch):
    monkeypatch.setattr("equipoise.evaluation.training.run.run_job", lambda *_: 1 / 0)
    assert "it has: no, yes" in fails(["people.csv", *FEW, "--positive", "maybe"], capsys)


@pytest.mark.slow
def test_groups_that_are_all_small(capsys):
    write(people(40).to_pydict(), "few.csv")
    line = ["few.csv", *FEW, "--sample", "50", "--versions", "u"]
    assert run(["evaluate", *line]) == 0
    assert run(["evaluate", *line, "-o", "few.html"]) == 0


@pytest.mark.slow
def test_a_table_called_like_one_of_the_paper_has_no_claims_of_it(capsys):
    pa_csv.write_csv(people(400), "Adult census.csv")
    assert run(["evaluate", "Adult census.csv", *FEW, "-o", "mine.html"]) == 0
    assert "Claims of the paper" not in Path("mine.html").read_text(encoding="utf-8")


def test_two_tables_with_other_columns(capsys):
    pa_csv.write_csv(people(100).drop_columns(["sex"]), "other.csv")
    assert "column 'sex' not found" in fails(["people.csv", "other.csv", *FEW], capsys)


@pytest.mark.slow
def test_without_scikit_learn_it_is_said_how_to_get_it(folder):
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from equipoise.cli.app import run; sys.exit(run(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", program, "evaluate", "people.csv", *FEW]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 2
    assert "pip install 'equipoise[models]'" in done.stderr
