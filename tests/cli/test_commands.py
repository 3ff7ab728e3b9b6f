"""The commands print what the library says."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.plans.plan import Plan

ADULT = ["adult", "--sensitive", "sex,race", "--label", "income"]


def output(arguments, capsys, code=0):
    assert run(arguments) == code
    return capsys.readouterr().out


def test_json_is_the_dict_the_library_gives(capsys):
    printed = json.loads(output(["measure", *ADULT, "--json", "--sort", "group"], capsys))
    table = eq.measure("adult", sensitive_features=["sex", "race"], label="income")
    expected = table.to_dict()
    assert printed.pop("time") <= eq.measure(table.counts).to_dict()["time"]
    expected.pop("time")
    assert printed == json.loads(json.dumps(expected))


def test_json_of_counts_has_the_promised_keys(capsys):
    command = ["measure", "compas", "-s", "sex,race", "-l", "risk", "--count", "n", "--json"]
    data = json.loads(output(command, capsys))
    assert data["n"] == 60798
    assert {"sensitive", "label", "labels", "missing_values", "bins", "rows"} <= set(data)
    assert len(data["rows"]) == 24
    keys = "group label n_group n_cell rate overall_rate ub ub_low ub_high p_value q_value"
    assert set(f"{keys} expected missing_rows note".split()) <= set(data["rows"][0])
    assert [row for row in data["rows"] if not row["group"]] == []


def test_the_worst_come_first_and_top_limits(capsys):
    rows = json.loads(output(["measure", *ADULT, "--json", "--top", "3"], capsys))["rows"]
    assert [round(r["ub"], 3) for r in rows] == [0.771, 0.760, 0.617]


def test_filters(capsys):
    command = ["measure", *ADULT, "--json", "--label-value", ">50K", "--group", "sex=Female"]
    rows = json.loads(output([*command, "--max-order", "1"], capsys))["rows"]
    assert [r["group"] for r in rows] == [{"sex": "Female"}]
    assert rows[0]["ub"] == pytest.approx(0.5454474906291085)


def test_hidden_lists_just_those(tmp_path, capsys):
    lines = "a,x,1\na,y,0\nb,x,0\nb,y,1\n" * 50
    (tmp_path / "xor.csv").write_text("p,q,l\n" + lines)
    command = ["measure", str(tmp_path / "xor.csv"), "-s", "p,q", "-l", "l", "--hidden", "--json"]
    rows = json.loads(output(command, capsys))["rows"]
    assert len(rows) == 8
    assert all(len(r["group"]) == 2 and r["hidden"] for r in rows)


def test_text_has_table_and_sentences_and_no_colour(capsys):
    text = output(["measure", *ADULT, "--top", "2"], capsys)
    assert "\x1b" not in text
    assert "sex=Female, race=Other" in text
    assert "+0.771" in text
    assert "not the" in text  # that missing rows are not the rows to add


def test_csv_reads_back_in_full_precision(capsys):
    rows = list(csv.DictReader(io.StringIO(output(["measure", *ADULT, "--csv"], capsys))))
    assert len(rows) == 34
    found = next(r for r in rows if r["group"] == "sex=Female" and r["income"] == ">50K")
    assert float(found["ub"]) == pytest.approx(0.5454474906291085, rel=1e-15)


@pytest.mark.parametrize("ending", ["json", "csv", "md", "txt", "html"])
def test_every_ending_is_written(ending, tmp_path, capsys):
    path = tmp_path / f"out.{ending}"
    assert output(["measure", *ADULT, "-o", str(path), "-q"], capsys) == ""
    assert "Female" in path.read_text(encoding="utf-8")


def test_a_hint_names_values_that_may_mean_missing(capsys):
    assert run(["measure", "adult", "-s", "workclass", "-l", "income", "--json"]) == 0
    assert "--na '?'" in capsys.readouterr().err
    quiet = ["measure", "adult", "-s", "workclass", "-l", "income", "--json", "--na", "?"]
    data = json.loads(output(quiet, capsys))
    assert data["missing_values"]["workclass"] == 1836
    assert any(r["group"] == {"workclass": None} for r in data["rows"])


def test_bins_are_printed(capsys):
    command = ["measure", "adult", "-s", "age", "-l", "income", "--bin", "age=25,45,65"]
    assert json.loads(output([*command, "--json"], capsys))["bins"] == {"age": [25, 45, 65]}
    assert "25 to <45" in output(command, capsys)


def test_suppression_hides_small_groups(capsys):
    command = ["measure", *ADULT, "--suppress-below", "20", "--json"]
    rows = json.loads(output(command, capsys))["rows"]
    hidden = [r for r in rows if r["note"] == "suppressed"]
    assert {"sex": "Female", "race": "Other"} in [r["group"] for r in hidden]
    assert all(r["n_cell"] is None and r["ub"] is None and r["rate"] is None for r in hidden)


@pytest.mark.parametrize(
    ("limit", "extra", "code"),
    [
        ("0.1", [], 1),
        ("0.9", [], 0),
        ("0.1", ["--min-count", "40000"], 3),
        ("0.771", ["--evidence", "interval"], 3),
    ],
)
def test_check_exit_codes(limit, extra, code, capsys):
    text = output(["check", *ADULT, "--max-abs-ub", limit, *extra], capsys, code)
    assert text.strip().endswith(".")
    data = json.loads(
        output(["check", *ADULT, "--max-abs-ub", limit, *extra, "--json"], capsys, code)
    )
    assert data["exit_code"] == code


def test_check_of_groups_too_small_to_say_is_undecided(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("s,y\n" + "a,1\na,0\n" * 500 + "b,1\n")
    command = ["check", str(tmp_path / "t.csv"), "-s", "s", "-l", "y", "--max-abs-ub", "0.1"]
    assert "cannot be decided" in output(command, capsys, 3)
    assert "inside" in output([*command, "--min-count", "2"], capsys, 0)


@pytest.mark.parametrize("name", ["equipoise.toml", "pyproject.toml"])
def test_check_reads_columns_and_rules_from_a_file(name, tmp_path, monkeypatch, capsys):
    table = "tool.equipoise.check" if name == "pyproject.toml" else "check"
    (tmp_path / name).write_text(
        f'[{table}]\nsensitive = ["sex"]\nlabel = "income"\nmax-abs-ub = 0.3\n'
        f'[[{table}.rules]]\ngroup = "sex=Female"\nlabel = ">50K"\nk = 0.5\nmax-abs-ub = 0.2\n'
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert "inside" in output(["check", "adult"], capsys, 0)
    assert "outside" in output(["check", "adult", "--max-abs-ub", "0.1"], capsys, 1)


def test_defaults_of_measure_from_a_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "equipoise.toml").write_text(
        '[measure]\nsensitive = ["sex", "age"]\nlabel = "income"\nmin-count = 100\n'
        'bin = {age = [30, 60]}\nna = "?"\n'
    )
    monkeypatch.chdir(tmp_path)
    data = json.loads(output(["measure", "adult", "--json"], capsys))
    assert data["sensitive"] == ["sex", "age"]
    assert data["parameters"]["min_count"] == 100
    assert data["parameters"]["na"] == ["?"]
    assert data["bins"] == {"age": [30, 60]}


def test_diff_shows_the_change(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("s,y\n" + "m,1\nm,0\n" * 100 + "w,0\n" * 150 + "w,1\n" * 50)
    (tmp_path / "b.csv").write_text("s,y\n" + "m,1\nm,0\n" * 100 + "w,0\nw,1\n" * 100)
    command = ["diff", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "-s", "s", "-l", "y"]
    data = json.loads(output([*command, "--json"], capsys))
    assert data["rows"][0]["label"] == "1"
    worst = next(r for r in data["rows"] if r["group"] == {"s": "w"} and r["label"] == "1")
    assert worst["ub_before"] == pytest.approx(1 / 3)
    assert worst["ub_after"] == pytest.approx(0)
    assert worst["change_low"] < worst["change"] < worst["change_high"] < 0
    assert "UB before" in output(command, capsys)


def test_findings_and_changes_as_csv_are_numbers(tmp_path, capsys):
    text = output(["check", *ADULT, "--max-abs-ub", "0.1", "--csv"], capsys, 1)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 29
    assert float(rows[0]["value"]) == pytest.approx(0.7714, abs=1e-4)
    assert int(rows[0]["n_group"]) == 109
    assert (float(rows[0]["least"]), float(rows[0]["most"])) == (-0.1, 0.1)
    text = output(["diff", "adult", *ADULT, "--csv"], capsys)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {float(r["change"]) for r in rows} == {0.0}
    assert "None of 34 group and label pairs changed." in output(["diff", "adult", *ADULT], capsys)


def test_suppressed_groups_are_neither_checked_nor_compared(capsys):
    command = ["check", *ADULT, "--max-abs-ub", "0.1", "--suppress-below", "20", "--json"]
    data = json.loads(output(command, capsys, 1))
    assert {"sex": "Female", "race": "Other"} not in [f["group"] for f in data["findings"]]
    command = ["diff", "adult", *ADULT, "--suppress-below", "20", "--json"]
    rows = json.loads(output(command, capsys))["rows"]
    assert {"sex": "Female"} in [r["group"] for r in rows]
    assert {"sex": "Female", "race": "Other"} not in [r["group"] for r in rows]
    assert all(r["n_before"] >= 20 for r in rows)


def test_counts_of_a_bundled_table_are_read_as_counts(capsys):
    command = ["measure", "compas", "-s", "sex", "-l", "risk", "--json"]
    assert json.loads(output(command, capsys))["n"] == 60798


def test_an_index_without_a_name_does_no_harm(tmp_path, capsys):
    (tmp_path / "r.csv").write_text(",s,y\n1,a,1\n2,b,0\n3,b,1\n")
    command = ["measure", str(tmp_path / "r.csv"), "-s", "s", "-l", "y", "--json"]
    assert json.loads(output(command, capsys))["n"] == 3


def test_an_array_of_objects_is_a_table(tmp_path, capsys):
    (tmp_path / "a.json").write_text('[{"s": "a", "y": 1}, {"s": "b", "y": 0}]')
    command = ["measure", str(tmp_path / "a.json"), "-s", "s", "-l", "y", "--json"]
    assert json.loads(output(command, capsys))["n"] == 2


def test_no_hidden_group_is_said(capsys):
    command = ["measure", "adult", "-s", "sex", "-l", "income", "--hidden"]
    assert output(command, capsys).startswith("No group is hidden")


def test_a_bundled_table_suggests_its_columns(capsys):
    data = json.loads(output(["measure", "compas", "--json"], capsys))
    assert data["n"] == 60798


def test_data_commands(capsys):
    assert "adult" in output(["data", "list"], capsys)
    assert "known harms" in output(["data", "show", "adult"], capsys)
    assert output(["data", "path", "adult"], capsys).strip().endswith("adult.parquet")
    assert json.loads(output(["data", "show", "credit", "--json"], capsys))["rows"] == 30000
    assert json.loads(output(["data", "list", "--json"], capsys))[0]["name"] == "adult"


def test_engines_prints_what_they_declare(capsys):
    text = output(["engines"], capsys)
    assert "Parquet" in text
    assert "memory" in text


@pytest.mark.slow
def test_demo_runs_the_whole_loop(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = output(["demo"], capsys)
    folder = tmp_path / "demo"
    for name in ("people.html", "plan.html", "repair.html", "history.html"):
        assert "<svg" in (folder / name).read_text(encoding="utf-8")
    how = {"sensitive_features": ["sex", "race"], "label": "income"}
    people, repaired = (eq.count(folder / f"{n}.parquet", **how) for n in ("people", "repaired"))
    planned = Plan.read(folder / "repaired.parquet.plan.json")
    assert repaired == planned.after(people)
    assert max(abs(row.ub) for row in eq.measure(repaired)) <= 0.1
    assert "partners/registry.csv" in text  # rows that only a confirmed mapping gives
    assert "All 8 checks hold." in text
    assert f"All {planned.additions} added rows were fetched again" in text
    assert "On 2026-11-11, the next:" in text
    assert [file.name for file in folder.glob("bias.*")] == ["bias.sqlite"]  # and no log
    check = eq.Monitor(folder / "bias.sqlite").check(
        "people", max_abs_ub=0.25, max_order=1, min_count=100
    )
    (alert,) = check.alerts
    assert (str(alert.group), alert.label) == ("sex=Female", ">50K")
    assert str(alert.since.date()) == "2026-11-07"  # the day on which the form begins to lose rows
    assert check.batches == 14


@pytest.mark.slow
def test_nothing_is_said_when_the_program_ends():
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "measure", *ADULT, "--json", "-q"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


def test_version(capsys):
    assert output(["--version"], capsys).startswith("equipoise 0.")


@pytest.mark.slow
def test_colour_only_on_a_terminal():
    script = (
        "import os, pty, sys\n"
        "def read(fd):\n"
        "    data = os.read(fd, 65536); chunks.append(data); return data\n"
        "chunks = []\n"
        f"pty.spawn([sys.executable, '-m', 'equipoise', 'measure', *{ADULT!r}], read)\n"
        "print('COLOUR' if b'\\x1b[' in b''.join(chunks) else 'PLAIN')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={"TERM": "xterm", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "COLUMNS": "200"},
    )
    assert done.stdout.rstrip().endswith("COLOUR")


# --- the four-fifths rule, order, and columns that are not named ------------------------------

RULE = ["--four-fifths", "--favourable", ">50K"]


@pytest.mark.parametrize(
    "shown",
    [["--group", "sex=Female"], ["--label-value", "<=50K"], ["--top", "2"], ["--sort", "n"]],
)
def test_the_four_fifths_rule_compares_with_all_groups(shown, capsys):
    command = ["measure", *ADULT, "--favourable", ">50K", *shown]
    rule = json.loads(output([*command, "--json"], capsys))["four_fifths"]
    assert rule["measured"]["below"] == 12
    women = [g for g in rule["groups"] if g["pattern"] == "sex=Female"]
    assert all(round(g["impact_ratio"], 3) == 0.358 for g in women)
    text = output([*command, "--top", "50"], capsys)
    line = next(x for x in text.splitlines() if x.startswith("sex=Female  ") and "0.358" in x)
    assert "no" in line.split()


def test_women_alone_are_all_below_the_rule(capsys):
    command = ["measure", *ADULT, "--favourable", ">50K", "--group", "sex=Female"]
    for form in ([], ["--markdown"]):
        text = " ".join(output([*command, *form], capsys).split()).replace("\\", "")
        assert "6 of 6 groups shown have an impact ratio below 0.8" in text
        assert "Of all 17 groups, 12 are below." in text


def test_check_holds_to_the_four_fifths_rule(capsys):
    assert run(["check", *ADULT, *RULE, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert len(data["findings"]) == 12
    assert {f["label"] for f in data["findings"]} == {">50K"}
    assert run(["check", *ADULT, *RULE, "--csv"]) == 1
    assert "impact_ratio" in capsys.readouterr().out
    assert run(["check", *ADULT, *RULE, "--evidence", "interval", "-q"]) == 1
    assert "compared with" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--four-fifths"], "--favourable"),
        (["--four-fifths"], "'income' has: <=50K, >50K"),
        (["--four-fifths", "--favourable", "much"], "'income' has no value much; it has: <=50K"),
    ],
)
def test_the_rule_asks_for_the_label_that_is_good_to_have(options, words, capsys):
    assert run(["check", *ADULT, "-q", *options]) == 2
    assert words in capsys.readouterr().err


def test_rules_of_the_configuration_have_a_reference(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rule = '[[check.rules]]\nmin-impact-ratio = 0.3\nreference = "best"\n'
    config = '[check]\nsensitive = ["sex"]\nlabel = "income"\nfavourable = ">50K"\n'
    Path("equipoise.toml").write_text(config + rule)
    assert run(["check", "adult", "-q"]) == 0
    Path("equipoise.toml").write_text(config + "four-fifths = true\n")
    assert run(["check", "adult", "-q"]) == 1
    capsys.readouterr()


def test_groups_with_too_few_rows_stand_below_a_line(tmp_path, capsys):
    path = tmp_path / "force.csv"
    rows = ["m,none"] * 1500 + ["m,force"] * 20 + ["w,none"] * 1000 + ["x,force"]
    path.write_text("sex,used\n" + "\n".join(rows) + "\n")
    command = ["measure", str(path), "-s", "sex", "-l", "used", "-q"]
    text = output(command, capsys).splitlines()
    line = next(i for i, x in enumerate(text) if "too few rows to tell" in x)
    assert any(x.startswith("sex=x") for x in text[line + 1 : line + 3])
    assert not any(x.startswith("sex=x") for x in text[:line])
    rows = json.loads(output([*command, "--json"], capsys))["rows"]
    assert rows[0]["evident"]
    assert [r["evident"] for r in rows] == sorted((r["evident"] for r in rows), reverse=True)
    assert rows[-1]["group"] == {"sex": "x"}
    assert max(rows, key=lambda r: abs(r["ub"]))["group"] == {"sex": "x"}
    markdown = output([*command, "--markdown"], capsys)
    assert "| — too few rows to tell" in markdown
    page = tmp_path / "page.html"
    output([*command, "-o", str(page)], capsys)
    html = page.read_text(encoding="utf-8")
    assert html.index('class="line">too few rows to tell') < html.index('<td class="text">sex=x')
    python = [str(r.group) for r in eq.measure(path, sensitive_features="sex", label="used").top(3)]
    assert python == [
        ",".join(f"{k}={v}" for k, v in r["group"].items())
        for r in json.loads(output([*command, "--json", "--top", "3"], capsys))["rows"]
    ]


def test_columns_that_are_not_named_are_listed(tmp_path, capsys):
    path = tmp_path / "people.csv"
    rows = [f"{i},{'wm'[i % 2]},r{i % 5},{i % 2}" for i in range(50)]
    path.write_text("id,sex,race,hired\n" + "\n".join(rows) + "\n")
    for command in ("measure", "plan", "frontier"):
        assert run([command, str(path), "--label", "hired"]) == 2
        error = capsys.readouterr().err
        assert "--sensitive is missing: name the sensitive attributes" in error
        assert (
            f"{path} has: id, sex, race, hired. Columns with few values: sex (2), race (5)."
            in error
        )
    assert run(["measure", str(path), "-s", "sex"]) == 2
    assert "--label is missing" in capsys.readouterr().err
