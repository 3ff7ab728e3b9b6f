"""Whatever a user gets wrong: one sentence, exit code 2, no traceback, nothing on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from equipoise.cli.app import run

GOOD = "sex,race,income\nw,black,low\nm,white,high\nw,white,high\n"


def refused(arguments, capsys, code=2):
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert lines[0].endswith((".", "?")), lines[0]
    return lines[0]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(content, name="people.csv"):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return name

    return write


COLUMNS = ["--sensitive", "sex,race", "--label", "income"]
CASES = {
    "missing column": (GOOD, ["-s", "gender", "-l", "income"], "it has: sex, race, income"),
    "misspelt column": (GOOD, ["-s", "sx", "-l", "income"], "Did you mean 'sex'?"),
    "empty file": ("", COLUMNS, "is empty"),
    "header only": ("sex,race,income\n", COLUMNS, "has no rows"),
    "all labels missing": ("sex,race,income\nw,a,\nm,b,\n", COLUMNS, "has a missing value"),
    "duplicate columns": ("sex,sex,income\nw,w,low\n", COLUMNS, "more than one column named 'sex'"),
    "both sensitive and label": (GOOD, ["-s", "sex,income", "-l", "income"], "given twice"),
    "not UTF-8": ("sex,race,income\nw,Jos\xe9,low\n".encode("latin-1"), COLUMNS, "--encoding"),
    "ragged": ("sex,race,income\nw,a,low\nm,b\n", COLUMNS, "line 3"),
    "no label option": (GOOD, ["-s", "sex"], "--label is missing"),
    "no sensitive option": (GOOD, ["-l", "income"], "--sensitive is missing"),
    "unknown label value": (GOOD, [*COLUMNS, "--label-value", "hgih"], "Did you mean 'high'?"),
    "unknown group": (GOOD, [*COLUMNS, "--group", "sex=x"], "it has: m, w"),
    "not a pattern": (GOOD, [*COLUMNS, "--group", "sex"], "name=value is expected"),
    "unknown measure": (GOOD, [*COLUMNS, "--measures", "impact"], "unknown measure 'impact'"),
    "unknown favourable": (GOOD, [*COLUMNS, "--favourable", "rich"], "it has: high, low"),
    "bad bins": (GOOD, [*COLUMNS, "--bin", "sex"], "NAME=EDGES"),
    "falling edges": (GOOD, [*COLUMNS, "--bin", "race=5,3"], "rising numbers"),
    "bins of text": (GOOD, [*COLUMNS, "--bin", "race=1,2"], "is not a number"),
    "bad memory": (GOOD, [*COLUMNS, "--memory", "lots"], "2GB"),
    "bad encoding": (GOOD, [*COLUMNS, "--encoding", "ebcdic"], "latin-1"),
    "two statements": (GOOD, [*COLUMNS, "--sql", "SELECT 1; DROP TABLE x"], "one SELECT"),
    "SQL that fails": (GOOD, [*COLUMNS, "--sql", "SELECT nope FROM input"], "nope"),
    "refused missing values": (
        "sex,race,income\nw,,low\n",
        [*COLUMNS, "--missing", "raise"],
        "has no value in 1 rows",
    ),
    "negative count": ("sex,y,n\nw,a,-1\n", ["-s", "sex", "-l", "y", "--count", "n"], "'-1'"),
    "fractional count": ("sex,y,n\nw,a,1.5\n", ["-s", "sex", "-l", "y", "--count", "n"], "'1.5'"),
    "text for a count": ("sex,y,n\nw,a,x\n", ["-s", "sex", "-l", "y", "--count", "n"], "'x'"),
    "bad weight": ("sex,y,w\nw,a,-1\n", ["-s", "sex", "-l", "y", "--weight", "w"], "weights"),
    "unknown ending": (GOOD, [*COLUMNS, "-o", "out.xyz"], ".json"),
    "two formats": (GOOD, [*COLUMNS, "--json", "-o", "out.html"], "contradict each other"),
    "folder that is not there": (GOOD, [*COLUMNS, "-o", "none/out.json"], "does not exist"),
}


@pytest.mark.parametrize("case", CASES)
def test_measure_refuses(case, table, tmp_path, capsys):
    content, options, expected = CASES[case]
    name = table(content)
    assert expected in refused(["measure", name, "-q", *options], capsys)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_no_such_file_names_the_nearest(table, capsys):
    table(GOOD)
    assert "Did you mean 'people.csv'?" in refused(["measure", "peple.csv", *COLUMNS], capsys)


def test_a_lattice_too_large_says_how_large_and_what_to_do(table, tmp_path, capsys):
    names = [f"a{i}" for i in range(16)]
    lines = [",".join(str((r * (i + 3) + r // 7) % 9) for i in range(16)) for r in range(2000)]
    content = "\n".join([",".join([*names, "y"]), *(f"{x},{i % 2}" for i, x in enumerate(lines))])
    options = ["-s", ",".join(names), "-l", "y", "--memory", "300MB", "-q"]
    sentence = refused(["measure", table(content + "\n"), *options], capsys)
    assert "16 attributes" in sentence
    assert "GB" in sentence
    assert "--max-order" in sentence
    assert "--min-count" in sentence
    assert run(["measure", "people.csv", *options, "--max-order", "1", "--json"]) == 0


def test_an_output_file_survives_a_failed_run(table, tmp_path, capsys):
    table(GOOD)
    (tmp_path / "out.json").write_text("precious")
    refused(["measure", "people.csv", "-s", "nope", "-l", "income", "-o", "out.json"], capsys)
    assert (tmp_path / "out.json").read_text() == "precious"


def test_unreadable_file(table, capsys, monkeypatch):
    name = table(GOOD)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything
    assert "permissions" in refused(["measure", name, *COLUMNS], capsys)


def test_check_without_a_limit(table, capsys):
    assert "--max-abs-ub" in refused(["check", table(GOOD), *COLUMNS, "-q"], capsys)


def test_configuration_that_is_not_toml(table, capsys):
    table("[check", "equipoise.toml")
    assert "is not TOML" in refused(["check", table(GOOD)], capsys)


def test_configuration_with_an_unknown_key(table, capsys):
    table("[[check.rules]]\nmax-abs-bu = 0.1\n", "equipoise.toml")
    sentence = refused(["check", table(GOOD), *COLUMNS, "-q"], capsys)
    assert "Did you mean 'max_abs_ub'?" in sentence
    table("[check]\nmax-abs-bu = 0.1\n", "equipoise.toml")
    sentence = refused(["check", table(GOOD), *COLUMNS, "-q"], capsys)
    assert "Did you mean 'max-abs-ub'?" in sentence


def test_an_unknown_command_names_the_nearest(capsys):
    assert run(["mesure"]) == 2
    assert "Did you mean 'measure'?" in capsys.readouterr().err


def test_an_unknown_option_is_bad_usage(table, capsys):
    assert run(["measure", table(GOOD), "--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err


def test_a_misspelt_data_set_is_named(capsys):
    assert "Did you mean 'adult'?" in refused(["measure", "adlt", *COLUMNS], capsys)


def test_an_unknown_data_set(capsys):
    assert "adult" in refused(["data", "show", "adlt"], capsys)


@pytest.mark.slow
def test_ctrl_c_exits_with_130_and_leaves_nothing(tmp_path):
    (tmp_path / "people.csv").write_text("sex,income\n" + "w,low\nm,high\n" * 10)
    slow = "SELECT i.* FROM input i, range(3000000) a, range(3000000) b WHERE hash(a, b) % 2 = 3"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "equipoise", "measure", "people.csv", "-s", "sex"),
            *("-l", "income", "--sql", slow, "-o", "out.json"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2.5)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert out == ""
    assert err.strip() == "error: interrupted; nothing was written."
    assert [p.name for p in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    command = (
        f"{sys.executable} -m equipoise measure adult -s education,occupation -l income --json -q"
    )
    done = subprocess.run(
        f"{command} | head -c 100", shell=True, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_a_pipe_is_not_replaced_by_a_file(table, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.json")
    sentence = refused(["measure", table(GOOD), *COLUMNS, "-q", "-o", "pipe.json"], capsys)
    assert "not a regular file" in sentence
    assert (tmp_path / "pipe.json").is_fifo()


def test_a_link_stays_a_link(table, tmp_path, capsys):
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to("real.json")
    assert run(["measure", table(GOOD), *COLUMNS, "-q", "-o", "link.json"]) == 0
    assert (tmp_path / "link.json").is_symlink()
    assert '"rows"' in (tmp_path / "real.json").read_text(encoding="utf-8")


def test_a_fault_of_ours_is_not_taken_for_a_failed_check(table, capsys, monkeypatch):
    monkeypatch.delenv("EQUIPOISE_DEBUG", raising=False)
    monkeypatch.setattr("equipoise.api.measurement.measure", lambda *_, **__: 1 / 0)
    sentence = refused(["check", table(GOOD), *COLUMNS, "--max-abs-ub", "0.1", "-q"], capsys)
    assert "ZeroDivisionError" in sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[mesure]\n", "Did you mean 'measure'?"),
        ("check = 5\n", "must contain tables"),
        ("[check]\nrules = 5\n", "list of tables"),
        ("[[check.rules]]\ngroup = 5\nmax = 1\n", "group must be text"),
        ("[[check.rules]]\nmin = 1\nmax = 0\n", "no value can be inside"),
        ("[[check.rules]]\nmax-abs = 1\nmax-abs-ub = 1\n", "not both"),
        ("[check]\nmax-abs-ub = [1]\n", "takes one value"),
    ],
)
def test_a_broken_configuration_is_refused(text, expected, table, capsys):
    table(text, "equipoise.toml")
    assert expected in refused(["check", table(GOOD), *COLUMNS, "-q"], capsys)


def test_asked_to_stop_it_leaves_no_temporary_files(tmp_path):
    (tmp_path / "people.csv").write_text("sex,income\n" + "w,low\nm,high\n" * 10)
    (tmp_path / "spill").mkdir()
    slow = "SELECT i.* FROM input i, range(3000000) a, range(3000000) b WHERE hash(a, b) % 2 = 3"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "equipoise", "measure", "people.csv", "-s", "sex"),
            *("-l", "income", "--sql", slow, "-q"),
        ],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "spill")},
    )
    try:
        until = time.monotonic() + 60
        while not list((tmp_path / "spill").iterdir()) and time.monotonic() < until:
            time.sleep(0.1)
        assert list((tmp_path / "spill").iterdir())
        time.sleep(1)  # the folder comes first, the query after it
        process.terminate()
        assert process.wait(timeout=60) == 143
    finally:
        process.kill()
    assert list((tmp_path / "spill").iterdir()) == []
