from __future__ import annotations

import json

import pytest

import equipoise as eq
from equipoise.cli.app import run

X, Y = "add sex=Male, income=<=50K", "add sex=Female, income=>50K"
ADULT = ["map", "adult", "--sensitive", "sex", "--label", "income", "--quiet"]
PAPER = [*ADULT, "--x", X, "--y", Y]


def output(arguments, capsys, code=0):
    assert run(arguments) == code
    return capsys.readouterr().out


def refused(arguments, capsys):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_text_is_what_the_library_says(capsys):
    limits = ["x<=4500", "y<=3000", "n>=30000"]
    printed = output([*PAPER, *(part for li in limits for part in ("--limit", li))], capsys)
    made = eq.policy_map(
        "adult", sensitive_features=["sex"], label="income", x=X, y=Y, limits=limits
    )
    assert printed == made.text() + "\n"
    assert "2,076.65" in printed


def test_json_is_the_dict_the_library_gives(capsys):
    options = ["--cost-x", "2", "--cost-y", "3", "--tolerance", "0.1", "--x-max", "500"]
    printed = json.loads(output([*PAPER, *options, "--y-max", "4000", "--json"], capsys))
    made = eq.policy_map(
        "adult",
        sensitive_features=["sex"],
        label="income",
        x=X,
        y=Y,
        cost_x=2,
        cost_y=3,
        tolerance=0.1,
        x_max=500,
        y_max=4000,
    )
    assert {**printed, "time": 0} == json.loads(json.dumps({**made.to_dict(), "time": 0}))
    assert printed["parameters"] == {"cost_x": 2, "cost_y": 3, "tolerance": 0.1}


def test_the_bias_of_another_pair_is_mapped(capsys):
    options = ["--group", "sex=Male", "--label-value", "<=50K", "--json"]
    printed = json.loads(output([*PAPER, *options], capsys))
    assert (printed["group"], printed["label_value"]) == ({"sex": "Male"}, "<=50K")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["txt", "json", "html"])
def test_every_ending_is_written(ending, tmp_path, capsys):
    file = tmp_path / f"map.{ending}"
    assert output([*PAPER, "--limit", "y<=3000", "-o", str(file)], capsys) == ""
    assert "3,045.08" in file.read_text(encoding="utf-8")


def test_the_exit_code_tells_whether_the_tolerance_can_be_reached(capsys):
    output([*PAPER, "--limit", "y<=3000"], capsys)
    output([*PAPER, "--limit", "y<=300", "--tolerance", "0.6"], capsys)
    said = output([*PAPER, "--limit", "x+y<=300"], capsys, code=1)
    assert "No point inside the limits has UB 0; the smallest |UB| is" in said
    said = output([*PAPER, "--limit", "x<=1", "--limit", "x>=2"], capsys, code=1)
    assert "No point is inside all limits" in said


def test_limits_may_stand_in_a_configuration_file(tmp_path, monkeypatch, capsys):
    lines = ["[map]", f"x = '{X}'", f"y = '{Y}'", "limit = ['y<=3000', 'x<=4500']"]
    (tmp_path / "equipoise.toml").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "limits: y<=3000, x<=4500" in output(ADULT, capsys)


BAD = {
    "no second move": (["--x", X], "Missing option '--y'"),
    "not a move": (["--x", "sex=Male", "--y", Y], "write add or delete and a pattern"),
    "unknown attribute": (["--x", "add sx=Male", "--y", Y], "Did you mean 'sex'?"),
    "unknown value": (["--x", "add sex=Mal", "--y", Y], "Did you mean 'Male'?"),
    "no group": (["--x", "add sex=Male", "--y", "add income=>50K"], "--group sex=Female"),
    "bad limit": (["--x", X, "--y", Y, "--limit", "x<5"], "as in x<=4500"),
    "no cost": (["--x", X, "--y", Y, "--cost-x", "0"], "--cost-x must be a number above 0"),
    "negative tolerance": (["--x", X, "--y", Y, "--tolerance", "-1"], "--tolerance"),
    "weights": (["--x", X, "--y", Y, "--weight", "fnlwgt"], "count them without weights"),
    "unknown ending": (["--x", X, "--y", Y, "-o", "map.csv"], "use .txt, .json, .html"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name, capsys):
    options, words = BAD[name]
    err = refused([*ADULT, *options], capsys)
    assert words in err
    assert "Traceback" not in err
