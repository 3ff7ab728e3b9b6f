"""The documentation is true: its commands run, and it names all there is."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import equipoise
from equipoise.cli.app import COMMANDS, cli, run

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def test_every_public_name_is_documented():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    missing = [n for n in equipoise.__all__ if f"eq.{n}" not in page]
    assert not missing


def test_every_public_name_can_be_loaded_and_nothing_else_is_promised():
    assert sorted(equipoise.__all__) == sorted(equipoise._HOMES)
    for name in equipoise.__all__:
        assert getattr(equipoise, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = equipoise.nonsense


def _options(command: click.Command, path: str):
    for option in command.params:
        if isinstance(option, click.Option):
            yield from ((path, flag) for flag in option.opts)
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                yield from _options(command.get_command(context, name), f"{path} {name}")


def test_every_command_and_option_is_in_the_reference():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = dict(
        re.findall(r"^## `(equipoise[^`]*)`\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    )
    assert {f"equipoise {name}" for name in COMMANDS} <= set(sections)
    for path, flag in _options(cli, "equipoise"):
        assert flag in sections[path], f"{path} {flag} is not in docs/cli.md; run make docs"


def test_every_command_has_help_with_an_example():
    with click.Context(cli) as context:
        for name in COMMANDS:
            command = cli.get_command(context, name)
            assert command.help
            if not isinstance(command, click.Group):
                assert "Example" in (command.epilog or ""), name


@pytest.mark.slow
def test_generated_pages_are_up_to_date():
    tool = ROOT / "tools" / "build_docs.py"
    done = subprocess.run(
        [sys.executable, tool, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


WALK = ROOT / "docs" / "lake.md"
"""A page whose commands are steps of one way."""


def _commands():
    for page in PAGES:
        if page == WALK:
            continue
        for block in re.findall(
            r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        ):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, *shown = part.rstrip().splitlines()
                yield pytest.param(line, shown, id=f"{page.name}: {line}")


HEADER = "sex,race,age,country,income\n"
PEOPLE = """\
w,black,34,US,low
w,white,51,US,low
w,white,23,FR,high
m,white,66,US,high
m,black,45,US,low
m,white,38,US,high
"""


@pytest.mark.parametrize(("line", "shown"), list(_commands()))
def test_commands_in_the_documentation_run(line, shown, tmp_path, monkeypatch, capsys):
    (tmp_path / "people.csv").write_text(HEADER + PEOPLE * 20, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)[1:]) == 0
    out = capsys.readouterr().out
    assert "UB" in out
    assert "\n".join(shown) in out  # what the page shows is what is printed


def _steps(page):
    """What a reader does on the way: programs to run, commands to type, lines to change."""
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if kind == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, *shown = part.rstrip().splitlines()
                yield kind, line, shown
        elif kind == "diff" or (kind == "python" and ">>>" not in block):
            yield kind, block, []


def _edit(file, changes):
    lines = file.read_text(encoding="utf-8").splitlines()
    for old, new in re.findall(r"^-(.*)\n\+(.*)$", changes, re.MULTILINE):
        assert lines.count(old) == 1, f"{old!r} is not a line to change"
        lines[lines.index(old)] = new
    file.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.slow
def test_the_walk_through_a_lake_can_be_walked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, typed = 0, 0
    for kind, step, shown in _steps(WALK.read_text(encoding="utf-8")):
        if kind == "python":
            exec(step, {})
        elif kind == "diff":
            _edit(tmp_path / "mapping.toml", step)
        elif step == "echo $?":
            assert shown == [str(code)]
            code = 0
        else:
            assert code == 0, "the page does not say that the command before it fails"
            code = run(shlex.split(step)[1:])
            assert "\n".join(shown) in capsys.readouterr().out, step
            typed += 1
    assert code == 0
    assert typed >= 9
    assert "<svg" in (tmp_path / "repair.html").read_text(encoding="utf-8")


def test_the_evaluation_page_has_the_numbers_of_its_run():
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    run = json.loads((ROOT / "docs" / "runs" / "evaluation.json").read_text(encoding="utf-8"))
    lines = {line for line in page.splitlines() if line.startswith("| ")}
    shown = 0
    for study in run["studies"]:
        assert study["repeats"] >= 20
        assert len(study["models"]) == 6
        size = max(study["sizes"])
        for model, title in study["models"].items():
            for version in ("u", "p", "n"):
                at = {"size": size, "model": model, "version": version}
                own, untouched = (
                    next(r for r in study["scores"] if {**at, "test": t}.items() <= r.items())
                    for t in ("own", "untouched")
                )
                cells = [
                    f"{r[m][0]:.3f} ± {(r[m][2] - r[m][1]) / 2:.3f}"
                    for r in (own, untouched)
                    for m in ("accuracy", "precision", "recall")
                ]
                assert f"| {title} | {version}{size:g}% | {' | '.join(cells)} |" in lines
                shown += 1
    assert shown == 54


def test_every_figure_of_the_pages_is_there():
    for page in PAGES:
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / name).is_file(), f"{page.name} shows {name}; run make figures"
