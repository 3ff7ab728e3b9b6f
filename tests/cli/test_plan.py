"""``equipoise plan``: the commands of the documentation, formats, exit codes, and bad input."""

from __future__ import annotations

import csv
import io
import json

import pytest

import equipoise as eq
from equipoise.cli.app import run

COMPAS = ["compas", "-s", "sex,race", "-l", "risk", "--count", "n"]
FIXED = ["--reference", "original", "--allow", "both", "--tolerance", "0.05"]
CELLS = "sex,race,risk,n\n" + "".join(
    f"{s},{r},{y},{n}\n"
    for s, r, y, n in [
        ("m", "o", "L", 30),
        ("m", "o", "H", 50),
        ("m", "c", "L", 20),
        ("m", "c", "H", 60),
        ("w", "o", "L", 10),
        ("w", "o", "H", 40),
        ("w", "c", "L", 5),
        ("w", "c", "H", 45),
    ]
)


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.csv").write_text(CELLS)
    return ["cells.csv", "--count", "n", "--sensitive", "sex,race", "--label", "risk"]


def output(arguments, capsys, code=0):
    assert run(arguments) == code, capsys.readouterr().err
    return capsys.readouterr().out


def refused(arguments, capsys, code=2):
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    lines = [x for x in err.strip().splitlines() if not x.startswith("hint: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert lines[0].endswith((".", "?"))
    return lines[0]


# --- commands as people type them ------------------------------------------------------------------


def test_zero_bias(cells, capsys):
    text = output(["plan", *cells], capsys)
    assert "Add " in text
    assert "Certificate" in text
    assert "\x1b" not in text


@pytest.mark.slow
def test_everything_together(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["plan", "adult", "--sensitive", "sex", "--label", "income", "--tolerance", "0.05"]
    command += ["--allow", "both", "--min-rows", "30000", "--time-limit", "5"]
    command += ["--available", "sex=Female, income=>50K", "3000"]
    command += ["--cost-add", "sex=Female", "2", "--budget", "7500", "-o", "plan.json"]
    assert run(command) == 0
    plan = eq.Plan.read("plan.json")
    assert plan.reached
    assert plan.cost <= 7500
    assert plan.add.of("sex=Female, income=>50K") <= 3000
    assert plan.after().n >= 30_000
    assert "Add" in capsys.readouterr().err


def test_targets(cells, capsys, tmp_path):
    (tmp_path / "targets.toml").write_text('keep-rates-of = ["sex"]\n')
    by_file = json.loads(output(["plan", *cells, "--target", "targets.toml", "--json"], capsys))
    by_rule = json.loads(
        output(["plan", *cells, "--target", "keep rates of: sex", "--json"], capsys)
    )
    assert by_file["cells"] == by_rule["cells"]


def test_labels_free(cells, capsys):
    text = output(["plan", *cells, "--labels", "free"], capsys)
    assert "price of keeping them" in text


def test_labels_from_a_file(cells, capsys, tmp_path):
    (tmp_path / "labels.toml").write_text("L = 0.4\nH = 0.6\n")
    data = json.loads(output(["plan", *cells, "--labels", "labels.toml", "--json"], capsys))
    after = {c["label"]: 0 for c in data["cells"]}
    for cell in data["cells"]:
        after[cell["label"]] += cell["after"]
    assert after["L"] / data["n_after"] == pytest.approx(0.4, abs=0.01)


def test_available_from_a_table(cells, capsys, tmp_path):
    rows = "sex,race,risk\n" + "w,c,L\n" * 40 + "w,o,L\n" * 40 + "m,c,L\n" * 40 + "m,o,H\n" * 40
    (tmp_path / "pool.csv").write_text(rows)
    data = json.loads(output(["plan", *cells, "--available-from", "pool.csv", "--json"], capsys))
    assert all(c["add"] <= 40 for c in data["cells"])
    assert data["certificate"]["reached"]


# --- formats --------------------------------------------------------------------------------------


def test_formats_say_the_same(capsys):
    command = ["plan", *COMPAS, *FIXED]
    data = json.loads(output([*command, "--json"], capsys))
    assert data["additions"] + data["deletions"] == 3769
    rows = list(csv.DictReader(io.StringIO(output([*command, "--csv"], capsys))))
    assert sum(int(r["add"]) + int(r["delete"]) for r in rows) == 3769
    markdown = output([*command, "--markdown"], capsys)
    assert "| group" in markdown
    text = output(command, capsys)
    assert "1,866" in text
    assert "1,866" in markdown


@pytest.mark.parametrize("ending", ["json", "csv", "md", "txt"])
def test_files(ending, capsys, tmp_path):
    file = tmp_path / f"plan.{ending}"
    assert run(["plan", *COMPAS, *FIXED, "-o", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert file.read_text().strip()
    assert "1,866" in err


def test_top_limits_what_is_shown(capsys):
    text = output(["plan", *COMPAS, *FIXED, "--top", "1", "--csv"], capsys)
    assert len(text.strip().splitlines()) == 2


def test_quiet_says_nothing_beside(capsys, tmp_path):
    assert run(["plan", *COMPAS, *FIXED, "-q", "-o", str(tmp_path / "p.json")]) == 0
    assert capsys.readouterr() == ("", "")


# --- exit codes -----------------------------------------------------------------------------------


def test_a_plan_that_does_not_reach_is_written_and_exits_1(cells, capsys, tmp_path):
    command = ["plan", *cells, *FIXED, "--budget", "5", "-o", "plan.json"]
    assert run(command) == 1
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data["certificate"]["reached"] is False
    assert data["cost"] <= 5


INFEASIBLE = [*FIXED[:2], "--tolerance", "0.05", "--available", "sex=w, race=c, risk=L", "2"]


def test_an_infeasible_request_exits_1_and_writes_nothing(cells, capsys, tmp_path):
    line = refused(["plan", *cells, *INFEASIBLE, "-o", "plan.json"], capsys, code=1)
    assert "2 of the" in line
    assert "can be reached" in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cells.csv"]


def test_an_infeasible_request_as_json(cells, capsys):
    assert run(["plan", *cells, *INFEASIBLE, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["feasible"] is False
    assert {r["option"] for r in data["relaxations"]} >= {"available", "tolerance"}


def test_no_time_gives_a_plan_that_says_so(capsys, tmp_path):
    """The best found with its proven gap, or that nothing was found."""
    command = ["plan", "adult", "-s", "sex,race,education", "-l", "income", "--min-group", "30"]
    command += ["--tolerance", "0.02", "--allow", "both", "--reference", "original", "--gap", "0"]
    code = run([*command, "--time-limit", "0.05", "--json"])
    out, err = capsys.readouterr()
    data = json.loads(out)
    if "cells" not in data:
        assert code == 1
        assert "does not prove that there is none" in err
    else:
        assert data["timed_out"] or data["gap"] < 1e-3
        assert 0 <= data["gap"] <= 1
        assert data["lower_bound"] <= data["cost"]


# --- bad input ------------------------------------------------------------------------------------

BAD = {
    "unknown attribute": (["--available", "sx=w", "3"], "Did you mean 'sex'?"),
    "unknown value": (["--cost-add", "race=oo", "3"], "Did you mean 'o'?"),
    "unknown label value": (["--at-least", "risk=LL", "3"], "Did you mean 'L'?"),
    "unknown in deletable": (["--deletable", "sex=x", "--allow", "both"], "it has: m, w"),
    "unknown in constrain": (["--constrain", "sex=x"], "it has: m, w"),
    "unknown in priority": (["--priority", "sex=x", "--budget", "1"], "it has: m, w"),
    "not a pattern": (["--available", "women", "3"], "name=value"),
    "negative cost": (["--cost-add", "sex=w", "-1"], "at least 0"),
    "cost nan": (["--cost-delete", "sex=w", "nan"], "must be a finite number"),
    "negative budget": (["--budget", "-1"], "budget"),
    "budget nan": (["--budget", "nan"], "budget"),
    "negative tolerance": (["--tolerance", "-0.1"], "tolerance"),
    "tolerance nan": (["--tolerance", "nan"], "tolerance"),
    "tolerance inf": (["--tolerance", "inf"], "tolerance"),
    "half a row": (["--available", "sex=w", "2.5"], "whole number"),
    "priority alone": (["--priority", "sex=w"], "--budget"),
    "no such target file": (["--target", "none.toml"], "none.toml"),
    "no such labels file": (["--labels", "none.toml"], "none.toml"),
    "sizes that cross": (["--min-rows", "5", "--max-rows", "4"], "--min-rows"),
    "extra and tolerance": (["--extra", "sex=w", "4", "--tolerance", "0.1"], "--tolerance 0"),
    "unknown ending": (["-o", "plan.xyz"], "extension"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_exit_2(cells, capsys, tmp_path, name):
    options, message = BAD[name]
    arguments = ["plan", *cells, *options]
    arguments += [] if "-o" in options else ["-o", "plan.json"]
    assert message in refused(arguments, capsys)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cells.csv"]


def test_k_sums_are_said_and_mended(cells, capsys, tmp_path):
    text = '[[targets]]\ngroup = "sex=w"\nk = { L = 1.5, H = 1.5 }\n'
    (tmp_path / "targets.toml").write_text(text)
    line = refused(["plan", *cells, "--target", "targets.toml"], capsys)
    assert "is 1.5, not 1" in line
    assert "L = 1" in line


def test_a_label_without_rows(capsys, tmp_path):
    (tmp_path / "c.csv").write_text("sex,y,n\nm,a,3\nm,b,0\nw,a,4\nw,b,0\n")
    line = refused(
        ["plan", str(tmp_path / "c.csv"), "-s", "sex", "-l", "y", "--count", "n"], capsys
    )
    assert "label" in line


def test_an_empty_target_group(capsys, tmp_path):
    (tmp_path / "c.csv").write_text("s,r,y,n\nm,x,a,3\nm,x,b,5\nw,z,a,4\nw,z,b,2\n")
    (tmp_path / "t.toml").write_text('[[targets]]\ngroup = "s=m, r=z"\nk = { a = 0.9 }\n')
    command = ["plan", str(tmp_path / "c.csv"), "-s", "s,r", "-l", "y", "--count", "n"]
    assert "has no rows" in refused([*command, "--target", str(tmp_path / "t.toml")], capsys)


def test_weights_are_refused(capsys, tmp_path):
    (tmp_path / "c.csv").write_text("s,y,w\nm,a,1.5\nm,b,1\nw,a,1\nw,b,2\n")
    command = ["plan", str(tmp_path / "c.csv"), "-s", "s", "-l", "y", "--weight", "w"]
    assert "weighted" in refused(command, capsys)


def test_a_pool_without_the_columns(cells, capsys, tmp_path):
    (tmp_path / "pool.csv").write_text("sex,risk\nw,L\n")
    assert "'race'" in refused(["plan", *cells, "--available-from", "pool.csv"], capsys)


# --- defaults from a file -------------------------------------------------------------------------


def test_costs_from_a_configuration_file(cells, capsys, tmp_path):
    options = ["--cost-add", "sex=w", "2", "--cost-add", "race=c", "3"]
    given = json.loads(output(["plan", *cells, *FIXED, *options, "--json"], capsys))
    (tmp_path / "equipoise.toml").write_text(
        '[plan]\ntolerance = 0.05\nallow = "both"\nreference = "original"\n\n'
        '[plan.cost-add]\n"sex=w" = 2\n"race=c" = 3\n'
    )
    data = json.loads(output(["plan", *cells, "--json"], capsys))
    assert data["cells"] == given["cells"]
    assert data["cost"] == given["cost"]
    assert data["cost"] != data["additions"] + data["deletions"]
