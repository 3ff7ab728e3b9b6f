"""Parameters of the library in the words of the command line: ``min_rows`` is ``--min-rows``.

Messages of the library name a parameter as its Python keyword in backquotes, with or without a
value. Here they become what the user of a command types.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import click

from equipoise.options import options_of

_QUOTED = re.compile(r"(?<!`)`([a-z][a-z0-9_]*)(?:=([^`]*))?`(?!`)")


def with_flags(text: str, parameters: Iterable[click.Parameter] | None = None) -> str:
    """Replace the parameters in backquotes by the flags of a command, by default the running one.

    A parameter that the command does not have is spelled as other commands spell it. Words in
    backquotes that are no parameter stay as they are.

    >>> least = click.Option(["--min-rows"], type=int)
    >>> with_flags("lower `min_rows`, as in `min_rows=30`; see `max_rows`.", [least])
    'lower --min-rows, as in --min-rows 30; see --max-rows.'
    """
    if "`" not in text:
        return text
    if parameters is None:
        context = click.get_current_context(silent=True)
        parameters = context.command.params if context else ()
    known = {str(p.name): p for p in parameters}

    def spelled(found: re.Match[str]) -> str:
        if found[1] in known:
            return _typed(known[found[1]], found[2])
        flag = _flags_elsewhere().get(found[1])
        value = "" if found[2] is None else f" {shlex.quote(str(_read(found[2])))}"
        return found[0] if flag is None else flag + value

    return _QUOTED.sub(spelled, text)


@functools.cache
def _flags_elsewhere() -> Mapping[str, str]:
    """The flags of all declared options by their keywords, for what another command takes."""
    from equipoise.options.count import CountRequest, ReadOptions, RunOptions
    from equipoise.options.plan import PlanOptions
    from equipoise.options.search import AcquisitionLimits, SearchRequest

    requests = (
        CountRequest,
        ReadOptions,
        RunOptions,
        PlanOptions,
        SearchRequest,
        AcquisitionLimits,
    )
    # A function takes a whole table here, so no request declares it.
    return {"available_from": "--available-from"} | {
        each.keyword: each.spellings[0]
        for request in requests
        for each in options_of(request)
        if each.flags is not None
    }


def _typed(parameter: click.Parameter, value: str | None) -> str:
    """Spell a parameter as it is typed, with its value if one is given."""
    if not isinstance(parameter, click.Option):
        return parameter.human_readable_name if value is None else shlex.quote(str(_read(value)))
    flag = next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])
    if value is None:
        return flag
    given = _read(value)
    if parameter.is_flag:
        is_set = given is not getattr(parameter, "switches_off", False)
        return flag if is_set else f"no {flag}"
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
