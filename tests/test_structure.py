"""Rules about the sources that no linter knows: sizes, names, and words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "equipoise"
MODULES = {path.relative_to(SRC).as_posix(): path for path in sorted(SRC.rglob("*.py"))}
MOST_LINES = 500
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

REFUSED_WORDS = {
    "acquired",
    "acquiring",
    "asked",
    "checking",
    "choosing",
    "chosen",
    "closing",
    "counted",
    "counting",
    "drawn",
    "filling",
    "imputing",
    "looking",
    "mapped",
    "measured",
    "naming",
    "placing",
    "planned",
    "questioned",
    "repaired",
    "repairing",
    "spooling",
    "studying",
    "tailored",
    "taken",
    "taking",
    "telling",
    "tidying",
    "writing",
    "common",
    "helpers",
    "misc",
    "utils",
}
"""Module names that do not say what is inside: a module is a noun."""

WHOLE_COMMANDS = {
    "datasets/downloads.py",
    "lake/matching/mapping.py",
    "reports/repair/data.py",
    *(
        f"web/rooms/{room}.py"
        for room in ("audit", "bias", "compare", "lake", "map", "monitor", "plan")
    ),
    "web/twins.py",
}
"""Modules that write whole commands, of pip or for readers to type, and therefore flags."""

DECLARATIONS = "options/"
"""Where flags are declared."""


def words(path):
    return [part.removesuffix(".py").strip("_") for part in path.split("/")]


def is_private(path):
    return any(part.startswith("_") and not part.startswith("__") for part in path.split("/"))


def public_classes(path):
    tree = ast.parse(MODULES[path].read_text(encoding="utf-8"))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def flags(text):
    """Flags in the strings of a module, without its docstrings."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        flag
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in docstrings
        for flag in FLAG.findall(node.value)
    ]


def test_files_fit_in_the_head():
    lengths = {
        path: len(file.read_text(encoding="utf-8").splitlines()) for path, file in MODULES.items()
    }
    assert {path: n for path, n in lengths.items() if n > MOST_LINES} == {}


def test_modules_are_nouns():
    assert [path for path in MODULES if REFUSED_WORDS.intersection(words(path))] == []


def test_no_two_public_classes_have_one_name():
    places = defaultdict(list)
    for path in MODULES:
        if not is_private(path):
            for name in public_classes(path):
                places[name].append(path)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice == {}


def test_only_the_command_line_writes_flags():
    found = {
        path: flags(file.read_text(encoding="utf-8"))
        for path, file in MODULES.items()
        if not path.startswith(("cli/", DECLARATIONS)) and path not in WHOLE_COMMANDS
    }
    assert {path: said for path, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('x = "use --min-rows"', ["--min-rows"]),
        ('x = f"use --allow {y}"', ["--allow"]),
        ('def f():\n    """As --top does."""', []),
        ("x = '`min_rows` -- a dash, ---- a line'", []),
    ],
)
def test_flags_are_seen(text, found):
    assert flags(text) == found
