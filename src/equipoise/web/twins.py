"""The shell command and the lines of Python that do the same as a room."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.options import Option
from equipoise.options.texts import number_text, write_texts

if TYPE_CHECKING:
    from equipoise.web.rooms.room import Ask, Room

_NUMBERED = ("pattern numbers",)
_REPAIRED, _PLAN = "repaired.parquet", "plan.json"


@dataclass
class _Twin:
    """What is typed: the command and the function, their words, and their options."""

    command: str
    function: str
    words: list[str]
    """Names of tables and folders."""
    named: dict[str, Any]
    """Options that are declared, as keywords."""
    flags: list[str] = field(default_factory=list)
    """Further flags of the command, quoted."""
    keywords: dict[str, Any] = field(default_factory=dict)
    """Further keywords of the function."""
    then: str = ""
    """Lines of Python that follow."""

    def shell(self, options: Sequence[Option]) -> str:
        return " ".join([shell_command(self.command, self.words, self.named, options), *self.flags])

    def python(self, result: str = "result") -> str:
        given = {**self.named, **self.keywords}
        return python_call(self.function, self.words, given, result) + self.then


def twins_of(room: Room, ask: Ask) -> list[tuple[str, str]]:
    """The shell command and the lines of Python that do the same as a room, with their titles."""
    if room.command is None:
        return []
    if not ask.table.get("sensitive_features") or not ask.table.get("label"):
        return []
    from equipoise.web.rooms.room import TABLE_OPTIONS

    options = (*TABLE_OPTIONS, *room.options)
    named = {**ask.table, **ask.options, **ask.named}
    made = _Twin(room.command, room.command, [_file_name(ask.data)], named)
    parts = _PARTS.get(room.name, _same)(made, ask)
    if not parts:
        return []
    shell = "\n".join(each.shell(options) for each in parts)
    lines = [each.python("plan" if each is not parts[-1] else "result") for each in parts]
    python = "\n".join(["import equipoise as eq", "", *lines, "print(result)"])
    return [("shell", shell), ("Python", python)]


def _same(made: _Twin, _: Ask) -> list[_Twin]:
    return [made]


def _bias(made: _Twin, ask: Ask) -> list[_Twin]:
    """With what is shown of the bias: a label, groups inside a pattern, hidden ones, an order."""
    view, kept = ask.view, dict[str, Any]()
    for name, flag, keyword in (
        ("label_value", "--label-value", "label_value"),
        ("inside", "--group", "group"),
    ):
        if view.get(name):
            made.flags += [flag, _quoted(str(view[name]))]
            kept[keyword] = str(view[name])
    if view.get("evidence") == "hidden":
        made.flags.append("--hidden")
        kept["hidden"] = True
    if kept:
        arguments = ", ".join(f"{k}={python_value(v)}" for k, v in kept.items())
        made.then += f"\nresult = result.filter({arguments})"
    sort = view.get("sort") or "worst"
    made.then += f"\nresult = result.sort({python_value(sort)})"
    if sort != "worst":  # which is how the command sorts anyway
        made.flags += ["--sort", sort]
    return [made]


def _plan(made: _Twin, ask: Ask) -> list[_Twin]:
    """A plan, or one by hand."""
    from equipoise.options.plan import MEASURED
    from equipoise.web.rooms.plan import read_moves

    texts = [text for text in ask.view.get("move") or () if text.strip()]
    if not texts:
        return [made]
    drawn = read_moves(texts)
    made.named = {k: v for k, v in made.named.items() if k in MEASURED or k in ask.table}
    for kind, sign in (("add", "+"), ("delete", "-")):
        for pattern, rows in drawn[kind]:
            made.flags += ["--move", _quoted(pattern), f"{sign}{rows}"]
    made.function, made.keywords = "scenario", {k: v for k, v in drawn.items() if v}
    return [made]


def _map(made: _Twin, ask: Ask) -> list[_Twin]:
    """A map of two moves; without them nothing can be typed."""
    made.function = "policy_map"
    if "x" not in made.named or "y" not in made.named:
        return []
    at = [ask.view.get("at_x") or 0, ask.view.get("at_y") or 0]
    if any(at):
        made.flags, made.keywords = ["--at", *map(str, at)], {"at": at}
    return [made]


def _lake(made: _Twin, ask: Ask) -> list[_Twin]:
    """A repair; of a plan that a repair does not make itself, that plan first."""
    from equipoise.web.rooms.lake import PLAN, made_before

    if not ask.view.get("lake"):
        return []
    words = [*made.words, ask.view["lake"]]
    last = _Twin("repair", "repair", words, made.named, ["-o", _REPAIRED], {"output": _REPAIRED})
    if not made_before(ask):
        return [last]
    planned = {option.keyword for option in PLAN} | set(ask.table)
    last.named = {k: v for k, v in made.named.items() if k not in planned}
    last.flags = ["--plan", _PLAN, *last.flags]
    own = {k: v for k, v in made.named.items() if k in planned}
    (first,) = _plan(_Twin("plan", "plan", made.words, own), ask)
    first.flags += ["-o", _PLAN]
    first.then = ""
    last.keywords = {"plan": Name("plan"), **last.keywords}
    return [first, last]


def _compare(made: _Twin, ask: Ask) -> list[_Twin]:
    """Two tables."""
    if not ask.view.get("other"):
        return []
    made.words.append(_file_name(ask.view["other"]))
    return [made]


_PARTS: Mapping[str, Callable[[_Twin, Ask], list[_Twin]]] = {
    "bias": _bias,
    "plan": _plan,
    "map": _map,
    "lake": _lake,
    "compare": _compare,
}


def _file_name(data: str) -> str:
    """The name of a table as it is called outside of the explorer."""
    folder, _, name = data.rpartition("/")
    return name.partition("-")[2] if folder == "uploads" else data


def shell_command(
    command: str, words: Sequence[str], given: Mapping[str, Any], options: Sequence[Option]
) -> str:
    """Write the command that takes some options.

    >>> from equipoise.options import options_of
    >>> from equipoise.options.plan import PlanOptions
    >>> options = options_of(PlanOptions)
    >>> given = {"tolerance": 0.1, "cost_add": [("sex=Female", 2.0)], "may_vanish": True}
    >>> print(shell_command("plan", ["people.csv"], given, options))
    equipoise plan people.csv --tolerance 0.1 --cost-add sex=Female 2 --may-vanish
    """
    parts = ["equipoise", command, *(_quoted(_path(word)) for word in words)]
    for option in options:
        if option.keyword in given and option.spellings:
            parts += _flags(option, given[option.keyword])
    return " ".join(parts)


def _flags(option: Option, value: Any) -> list[str]:
    flag = option.spellings[0]
    if option.is_switch:
        wanted = not value if option.turns_off or flag.startswith("--no-") else value
        return [flag] if wanted else []
    if option.form in _NUMBERED:
        pairs = value.items() if isinstance(value, Mapping) else value
        return [w for p, n in pairs for w in (flag, _quoted(p), number_text(n))]
    if option.form == "names":
        names = [value] if isinstance(value, str) else value
        return [flag, _quoted(",".join(_listed(name) for name in names))]
    return [word for text in write_texts(option, value) for word in (flag, _quoted(text))]


def _listed(name: str) -> str:
    """A name in a list: in quotes if a comma, a quote or blanks at its ends would be lost."""
    plain = name and name == name.strip() and not set(name) & set(',"\r\n')
    return name if plain else f'"{name.replace(chr(34), chr(34) * 2)}"'


def _quoted(word: str) -> str:
    return shlex.quote(word)


def _path(name: str) -> str:
    # A file that begins with a dash would be an option, and a dash alone standard input.
    return f"./{name}" if name.startswith("-") else name


class Name(str):
    """The name of a variable of Python."""

    __slots__ = ()


def python_call(
    function: str, words: Sequence[Any], given: Mapping[str, Any], result: str = "result"
) -> str:
    """Write a call of the library with some keywords.

    >>> print(python_call("plan", ["people.csv"], {"tolerance": 0.1, "label": "hired"}, "plan"))
    plan = eq.plan("people.csv", tolerance=0.1, label="hired")
    """
    arguments = [python_value(_path(word) if isinstance(word, str) else word) for word in words]
    arguments += [f"{name}={python_value(value)}" for name, value in given.items()]
    line = f"{result} = eq.{function}({', '.join(arguments)})"
    if len(line) <= 100:
        return line
    inside = ",\n    ".join(arguments)
    return f"{result} = eq.{function}(\n    {inside},\n)"


def python_value(value: Any) -> str:
    """Write a value as Python does, texts in double quotes."""
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, str):
        plain = repr(value)
        if plain.startswith("'") and '"' not in plain and "\\'" not in plain:
            return f'"{plain[1:-1]}"'
        return plain
    if isinstance(value, Mapping):
        pairs = (f"{python_value(k)}: {python_value(v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):
            return (
                "[" + ", ".join(f"({python_value(a)}, {python_value(b)})" for a, b in value) + "]"
            )
        return "[" + ", ".join(map(python_value, value)) + "]"
    if isinstance(value, float) and not isinstance(value, bool):
        return number_text(value)
    return repr(value)
