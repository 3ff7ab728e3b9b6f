"""The shell command and the lines of Python that do the same as a room."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.options import Option
from equipoise.options.texts import number_text, write_texts

if TYPE_CHECKING:
    from equipoise.web.rooms.room import Ask, Room

_NUMBERED = ("pattern numbers",)


def twins_of(room: Room, ask: Ask) -> list[tuple[str, str]]:
    """The shell command and the lines of Python that do the same as a room, with their titles."""
    if (
        room.command is None
        or not ask.table.get("sensitive_features")
        or not ask.table.get("label")
    ):
        return []
    from equipoise.web.rooms.room import TABLE_OPTIONS

    data = _file_name(ask.data)
    options = (*TABLE_OPTIONS, *room.options)
    named = {
        k: v for k, v in {**ask.table, **ask.options, **ask.named}.items() if not _is_default(k, v)
    }
    words, calls = [data], [data]
    function, more = room.command, list[str]()
    keywords: dict[str, Any] = {}
    if room.name == "bias" and ask.view.get("label_value"):
        more = ["--label-value", _quoted(str(ask.view["label_value"]))]
    if room.name == "plan" and ask.view.get("move"):
        from equipoise.options.plan import MEASURED
        from equipoise.web.rooms.plan import read_moves

        drawn = read_moves([text for text in ask.view["move"] if text.strip()])
        named = {k: v for k, v in named.items() if k in MEASURED or k in ask.table}
        for kind, sign in (("add", "+"), ("delete", "-")):
            for pattern, rows in drawn[kind]:
                more += ["--move", _quoted(pattern), f"{sign}{rows}"]
        function, keywords = "scenario", {k: v for k, v in drawn.items() if v}
    if room.name == "map":
        function = "policy_map"
        if ask.view.get("at_x") or ask.view.get("at_y"):
            at = (ask.view.get("at_x") or 0, ask.view.get("at_y") or 0)
            more, keywords = ["--at", *map(str, at)], {"at": list(at)}
        if "x" not in named or "y" not in named:
            return []
    if room.name == "lake":
        if not ask.view.get("lake"):
            return []
        words = calls = [data, ask.view["lake"]]
        more, keywords = ["-o", "repaired.parquet"], {"output": "repaired.parquet"}
    if room.name == "compare":
        if not ask.view.get("other"):
            return []
        words = calls = [data, _file_name(ask.view["other"])]
    shell = " ".join([shell_command(room.command, words, named, options), *more])
    python = python_call(function, calls, {**named, **keywords})
    return [("shell", shell), ("Python", f"import equipoise as eq\n\n{python}\nprint(result)")]


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name == "draft")


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
    parts = ["equipoise", command, *map(_quoted, words)]
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
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if set(name) & set(',"') else name


def _quoted(word: str) -> str:
    # A word that begins with a dash would be an option.
    return shlex.quote(f"./{word}" if word.startswith("-") else word)


def python_call(
    function: str, words: Sequence[Any], given: Mapping[str, Any], result: str = "result"
) -> str:
    """Write a call of the library with some keywords.

    >>> print(python_call("plan", ["people.csv"], {"tolerance": 0.1, "label": "hired"}, "plan"))
    plan = eq.plan("people.csv", tolerance=0.1, label="hired")
    """
    arguments = [python_value(word) for word in words]
    arguments += [f"{name}={python_value(value)}" for name, value in given.items()]
    line = f"{result} = eq.{function}({', '.join(arguments)})"
    if len(line) <= 100:
        return line
    inside = ",\n    ".join(arguments)
    return f"{result} = eq.{function}(\n    {inside},\n)"


def python_value(value: Any) -> str:
    """Write a value as Python does, texts in double quotes."""
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
