"""Charts of commands as PNG and SVG files, and text in narrow terminals."""

from __future__ import annotations

import builtins
import struct
from xml.etree import ElementTree

import pytest

from equipoise.cli import terminal
from equipoise.cli.app import run
from equipoise.plain import terminal_width, width_of

NAME = "Persons who live in the northern part of the town"
COMMANDS = {
    "measure": [],
    "plan": ["--tolerance", "0.1"],
    "frontier": ["--points", "3"],
    "map": ["--x", "add sex=m, hired=no", "--y", f"add sex={NAME}, hired=yes"],
    "missing": ["--methods", "group,drop"],
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("m", "yes")] * 60 + [("m", "no")] * 40 + [(NAME, "yes")] * 30 + [(NAME, "no")] * 70
    lines = [f"{sex},{hired}" for sex, hired in [*rows, ("", "no"), ("", "yes")]]
    (tmp_path / "people.csv").write_text("\n".join(["sex,hired", *lines]), encoding="utf-8")
    return ["people.csv", "-s", "sex", "-l", "hired", "--quiet"]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_charts_writes_them_as_pictures(command, table, tmp_path, capsys):
    pytest.importorskip("vl_convert")
    for name in ("x.png", "x.svg"):
        assert run([command, *table, *COMMANDS[command], "-o", name]) == 0
    assert capsys.readouterr().out == ""
    png = (tmp_path / "x.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert min(struct.unpack(">II", png[16:24])) > 100
    drawn = ElementTree.parse(tmp_path / "x.svg").getroot()
    words = " ".join(node.text for node in drawn.iter() if node.text)
    shown = {"frontier": "least cost", "missing": "drop"}.get(command, NAME)
    assert shown.split()[-1] in words
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.csv", "x.png", "x.svg"]


def test_what_draws_nothing_refuses_pictures_and_writes_no_file(table, tmp_path, capsys):
    assert run(["check", *table, "--max-abs-ub", "0.1", "-o", "x.png"]) == 2
    assert "use .txt, .json, .csv, .md" in capsys.readouterr().err
    assert run(["measure", *table, "--json", "-o", "x.svg"]) == 2
    assert "contradict each other" in capsys.readouterr().err
    assert not list(tmp_path.glob("x.*"))


def test_what_lacks_for_pictures_is_said_before_anything_is_counted(table, monkeypatch, capsys):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name == "vl_convert":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert run(["measure", "no-such-file.csv", *table[1:], "-o", "x.png"]) == 2
    assert "equipoise[charts]" in capsys.readouterr().err


@pytest.mark.parametrize("command", [*COMMANDS, "check", "diff"])
def test_text_fits_a_narrow_terminal(command, table, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "width", lambda: 50)
    more = {"check": ["--max-abs-ub", "0.1"], "diff": []}.get(command) or COMMANDS.get(command, [])
    data = ["people.csv", *table] if command == "diff" else table
    try:
        assert run([command, *data, *more]) in (0, 1)
    finally:
        terminal_width.set(None)
    printed = capsys.readouterr().out
    assert printed
    assert max(map(width_of, printed.split("\n"))) <= 50


def test_a_file_is_not_cut_to_the_terminal(table, monkeypatch, tmp_path):
    monkeypatch.setattr(terminal, "width", lambda: 40)
    try:
        assert run(["plan", *table, "-o", "plan.txt"]) == 0
    finally:
        terminal_width.set(None)
    lines = (tmp_path / "plan.txt").read_text(encoding="utf-8").split("\n")
    assert any(f"sex={NAME}" in line for line in lines)
