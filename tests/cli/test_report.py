"""``equipoise report``: forms as files of every kind, and errors in one sentence."""

from __future__ import annotations

import json

import pytest

from equipoise.cli.app import run
from equipoise.options.audit import FORMS
from hires import write_hires

COLUMNS = ["--sex", "sex", "--race", "race"]


@pytest.fixture
def table(tmp_path):
    write_hires(tmp_path / "hires.csv")
    return str(tmp_path / "hires.csv")


def test_the_forms_are_listed_with_a_line_each(capsys):
    assert run(["report", "--list"]) == 0
    listed = capsys.readouterr().out
    assert run(["report", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for name, what in FORMS.items():
        assert f"{name} " in listed
        assert what in listed
        assert f"{name} {what}" in told


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_written_by_the_extension_of_its_file(form, table, tmp_path, capsys):
    pytest.importorskip("vl_convert")
    asked = ["report", table, "--form", form, *COLUMNS, "--selected", "hired", "-q"]
    begins = {
        "html": b"<!doctype html>",
        "md": b"# ",
        "json": b"{",
        "png": b"\x89PNG",
        "svg": b"<svg",
    }
    for extension, begin in begins.items():
        assert run([*asked, "-o", str(tmp_path / f"x.{extension}")]) == 0
        assert (tmp_path / f"x.{extension}").read_bytes().startswith(begin), extension
    assert run([*asked, "-o", str(tmp_path / "x.csv")]) == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "What this form does not cover" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    capsys.readouterr()
    assert run([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["form"] == form
    assert run(asked) == 0
    assert "What this form does not cover" in capsys.readouterr().out


def test_scores_unknown_values_and_small_categories_are_options(table, capsys):
    asked = [
        "report",
        table,
        "--form",
        "local-law-144",
        *COLUMNS,
        "--score",
        "score",
        "-q",
        "--json",
    ]
    assert run([*asked, "--unknown", "Unknown", "--exclude-below", "0.2"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["parameters"]["unknown"] == ["Unknown"]
    assert data["numbers"]["median"]["rows"] == 540
    marked = [c["category"] for c in data["numbers"]["tables"][1]["categories"] if c["below_share"]]
    assert marked == ["race=Asian", "race=Two or more"]


def test_sensitive_and_label_are_the_same_columns(table, capsys):
    asked = ["report", table, "--form", "uniform-guidelines", "-q", "--json"]
    assert run([*asked, *COLUMNS, "--selected", "hired"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert run([*asked, "-s", "sex,race", "-l", "hired", "--favourable", "yes"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert first["numbers"] == second["numbers"]


def test_a_bundled_data_set_names_its_columns(capsys):
    assert run(["report", "adult", "--form", "datasheet", "--markdown", "-q"]) == 0
    assert capsys.readouterr().out.startswith("# Data sheet: income, 32,561 rows")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (["--selected", "hired"], "--form is missing; there are: local-law-144"),
        (["--form", "datasheet"], "--label is missing"),
        (["--form", "datasheet", "--selected", "hird"], "column 'hird' not found"),
        (["--form", "local-law-144", "--selected", "hired", "--score", "score"], "name several"),
        (["--form", "datasheet", "--score", "score"], "--score is for the form local-law-144"),
        (["--form", "local-law-144", "--selected", "race"], "as in --selected-value Asian"),
        (["--form", "datasheet", "--selected", "hired", "--lake", "."], "only the form eu-ai-act"),
        (
            ["--form", "datasheet", "--selected", "hired", "--mapping", "m"],
            "name the lake with --lake",
        ),
        (
            ["--form", "datasheet", "--selected", "hired", "--exclude-below", "2"],
            "--exclude-below must",
        ),
        (["--form", "datasheet", "--selected", "hired", "-o", "x.pdf"], "no known extension"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(more, error, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    race = [] if "race" in more else ["--race", "race"]
    assert run(["report", table, "--sex", "sex", *race, *more]) == 2
    said = capsys.readouterr().err
    assert error in said
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hires.csv"]


def test_options_may_be_in_the_configuration(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "equipoise.toml").write_text(
        '[report]\nform = "local-law-144"\nsex = "sex"\nselected = "hired"\nunknown = ["Unknown"]\n',
        encoding="utf-8",
    )
    assert run(["report", table, "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["form"] == "local-law-144"
