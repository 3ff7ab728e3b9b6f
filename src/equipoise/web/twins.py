"""The shell command and the lines of Python that do the same as a room."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.options import Option
from equipoise.options.texts import number_text, write_texts


@dataclass(frozen=True)
class Twin:
    """One step that does the same as a room: a command, and a call of the library."""

    command: str
    """Command of the command line."""
    function: str
    """Function of the library."""
    words: tuple[Any, ...]
    """Tables and files that both take."""
    given: Mapping[str, Any]
    """Options that both take, by keyword."""
    options: tuple[Option, ...]
    """How these options are declared."""
    flags: tuple[str, ...] = ()
    """What only the command takes, quoted."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """What only the function takes."""
    result: str = "result"
    after: str = ""
    """What is done with the result of the function, such as ``.sort("n")``."""

    def shell(self) -> str:
        """The command."""
        line = shell_command(self.command, self.words, self.given, self.options)
        return " ".join([line, *self.flags])

    def python(self) -> str:
        """The call."""
        call = python_call(self.function, self.words, {**self.given, **self.keywords}, self.result)
        return call + self.after


_DEMO = "equipoise demo --output demo   # writes the example"


def write_twins(steps: Sequence[Twin]) -> list[tuple[str, str]]:
    """The steps as text for the shell and for Python, each with its title; none without steps."""
    if not steps:
        return []
    shell = "\n".join(step.shell() for step in steps)
    if any(isinstance(word, OfExample) for step in steps for word in step.words):
        shell = f"{_DEMO}\n{shell}"
    python = "\n".join(step.python() for step in steps)
    return [("shell", shell), ("Python", f"import equipoise as eq\n\n{python}\nprint(result)")]


def outside_name(data: str) -> str:
    """The name of a table as it is called outside of the explorer.

    Uploads have the name of their file, and results that of their download. The example is what
    ``equipoise demo`` writes.

    >>> outside_name("uploads/0123456789-people.csv"), outside_name("example/adult.parquet")
    ('people.csv', 'demo/people.parquet')
    """
    folder, _, name = data.partition("/")
    if folder == "example":
        return OfExample(f"demo/{'people.parquet' if name == 'adult.parquet' else name}")
    if folder == "uploads":
        return name.partition("-")[2]
    return name if folder == "results" else data


class OfExample(str):
    """The name of a file of the example, outside of the explorer."""

    __slots__ = ()


class Expression(str):
    """A piece of Python that is written as it is, not as a text."""

    __slots__ = ()


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
    parts = ["equipoise", command, *(quoted(_path(word)) for word in words)]
    for option in options:
        if option.keyword in given and option.spellings:
            parts += _flags(option, given[option.keyword])
    return " ".join(parts)


def _flags(option: Option, value: Any) -> list[str]:
    flag = option.spellings[0]
    if option.is_switch:
        wanted = not value if option.turns_off or flag.startswith("--no-") else value
        return [flag] if wanted else []
    if option.form == "pattern numbers":
        pairs = value.items() if isinstance(value, Mapping) else value
        return [w for p, n in pairs for w in (flag, quoted(p), number_text(n))]
    if option.form == "names":
        names = [value] if isinstance(value, str) else value
        return [flag, quoted(",".join(_listed(name) for name in names))]
    return [word for text in write_texts(option, value) for word in (flag, quoted(text))]


def _listed(name: str) -> str:
    """A name in a list: in quotes if a comma, a quote or blanks at its ends would be lost."""
    plain = name and name == name.strip() and not set(name) & set(',"\r\n')
    return name if plain else f'"{name.replace(chr(34), chr(34) * 2)}"'


def quoted(word: str) -> str:
    """A word as the shell takes it."""
    return shlex.quote(word)


def _path(name: str) -> str:
    # A file that begins with a dash would be an option, and a dash alone standard input.
    return f"./{name}" if name.startswith("-") else name


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
    if isinstance(value, Expression):
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
