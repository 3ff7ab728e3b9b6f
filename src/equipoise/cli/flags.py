"""Parameters of the library in the words of the command line: ``min_rows`` is ``--min-rows``.

Messages of the library name a parameter as its Python keyword in backquotes, with or without a
value. Here they become what the user of a command types.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import click

_KEYWORDS: Mapping[str, str] = {
    "sensitive": "sensitive_features",
    "no_header": "header",
    "no_refresh": "refresh",
    "no_uncertainty": "uncertainty",
    "own_size": "same_size",
    "hash_key_file": "hash_key",
}
"""Options that are not called as their keyword is."""
_OPPOSITES = {"no_header", "no_refresh", "no_uncertainty", "own_size"}
"""Flags that set their keyword to False."""
_QUOTED = re.compile(r"(?<!`)`([a-z][a-z0-9_]*)(?:=([^`]*))?`(?!`)")


class Command(click.Command):
    """A command whose errors and hints name its own flags."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error on the way keeps its type, and names flags."""
        from equipoise.errors import EquipoiseError

        try:
            return super().invoke(ctx)
        except EquipoiseError as error:
            error.args = (with_flags(str(error), self.params),)
            raise


class CommandGroup(click.Group):
    """Commands of a family, whose errors and hints name their own flags."""

    command_class = Command


def with_flags(text: str, parameters: Iterable[click.Parameter] | None = None) -> str:
    """Replace the parameters in backquotes by the flags of a command.

    Parameters
    ----------
    text
        A message of the library. Words in backquotes that are no parameter stay as they are.
    parameters
        The command's own; by default those of the running command.

    Examples
    --------
    >>> least = click.Option(["--min-rows"], type=int)
    >>> with_flags("lower `min_rows`, as in `min_rows=30`; see `max_rows`.", [least])
    'lower --min-rows, as in --min-rows 30; see `max_rows`.'
    """
    if "`" not in text:
        return text
    if parameters is None:
        context = click.get_current_context(silent=True)
        parameters = context.command.params if context else ()
    known = {_KEYWORDS.get(str(p.name), str(p.name)): p for p in parameters}

    def spelt(found: re.Match[str]) -> str:
        parameter = known.get(found[1])
        return found[0] if parameter is None else _typed(parameter, found[2])

    return _QUOTED.sub(spelt, text)


def _typed(parameter: click.Parameter, value: str | None) -> str:
    """Spell a parameter as it is typed, with its value if one is given."""
    if not isinstance(parameter, click.Option):
        return parameter.human_readable_name if value is None else shlex.quote(str(_read(value)))
    flag = next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])
    if value is None:
        return flag
    given = _read(value)
    if parameter.is_flag:
        return flag if given is (parameter.name not in _OPPOSITES) else f"no {flag}"
    return " ".join(f"{flag} {text}" for text in _values(parameter, given))


def _read(value: str) -> Any:
    try:
        return ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return value


def _values(parameter: click.Option, given: Any) -> list[str]:
    """The texts of all values; one that takes names has them in one text."""
    if isinstance(given, Mapping):
        if parameter.nargs == 2:
            return [f"{shlex.quote(str(k))} {v}" for k, v in given.items()]
        return [shlex.quote(f"{name}={_edges(bins)}") for name, bins in given.items()]
    if not isinstance(given, (list, tuple)):
        return [shlex.quote(str(given))]
    if parameter.type.name == "names":
        return [shlex.quote(",".join(map(str, given)))]
    return [shlex.quote(str(each)) for each in given]


def _edges(bins: Any) -> str:
    return f"quantiles:{bins}" if isinstance(bins, int) else ",".join(f"{e:g}" for e in bins)
