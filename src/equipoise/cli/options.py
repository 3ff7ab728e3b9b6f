"""The options of requests as options of commands, and those that only commands have."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import click

from equipoise.cli.command import GroupedOption
from equipoise.cli.flags import with_flags
from equipoise.errors import InputError
from equipoise.options import Option, options_of
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.options.texts import bin_text, parse_bins

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]


# --- how text becomes values ----------------------------------------------------------------------


_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^,]*)),')


class Names(click.ParamType[tuple[str, ...]]):
    """A list of names: ``sex,race``; a name with a comma is in double quotes."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Split at commas."""
        if isinstance(value, (list, tuple)):
            return tuple(str(v) for v in value)
        found = _NAME.finditer(f"{value},") if value else ()
        # Blanks around a name are not part of it, unless they are in its quotes.
        return tuple(n[2].strip() if n[1] is None else n[1].replace('""', '"') for n in found)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """Its placeholder in help."""
        return "NAME,…"


class Repeatable(GroupedOption):
    """An option that may be repeated; a configuration file gives one text or a list."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, multiple=True, **options)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take one text or a list."""
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


class NameList(Repeatable):
    """Lists of names, joined to one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, type=Names(), **options)

    def process_value(self, ctx: click.Context, value: Any) -> tuple[str, ...]:
        """Join the lists."""
        lists = super().process_value(ctx, value)
        return tuple(n for names in lists for n in ((names,) if isinstance(names, str) else names))


class Bins(Repeatable):
    """Bins by column; in a configuration file, a table of them."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take texts, or a table from column to edges or a number of quantiles."""
        if isinstance(value, dict):
            value = tuple(f"{name}={bin_text(edges)}" for name, edges in value.items())
        return super().type_cast_value(ctx, value)

    def process_value(self, ctx: click.Context, value: Any) -> dict[str, Any]:
        """Read the edges."""
        try:
            return parse_bins(super().process_value(ctx, value))
        except InputError as error:
            raise InputError(with_flags(str(error), ctx.command.params)) from None


class PatternNumbers(Repeatable):
    """Patterns, each with a number; in a configuration file, a table of them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, type=(str, float), **options)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take pairs, or a table from pattern to number."""
        return super().type_cast_value(
            ctx, tuple(value.items()) if isinstance(value, dict) else value
        )


class SignedRows(click.ParamType[int]):
    """A whole number of rows with its sign: ``+3000`` are added, ``-500`` deleted."""

    name = "rows"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:  # noqa: ARG002
        """Read the number; a sign may be a minus of typography, and digits may be grouped."""
        text = str(value).strip().replace("\N{MINUS SIGN}", "-")
        if not re.fullmatch(r"[+-]?\d+([,_]\d+)*", text) or not int(re.sub("[,_]", "", text)):
            raise InputError(
                f"--move takes a pattern and the rows to add or delete, as in 'sex=Female' +3000 or "
                f"'sex=Male' -500, not {value!r}."
            )
        return int(re.sub("[,_]", "", text))


class Moves(Repeatable):
    """Patterns, each with the rows to add or delete; in a configuration file, a table of them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, type=(str, SignedRows()), **options)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take pairs, or a table from pattern to rows."""
        return super().type_cast_value(
            ctx, tuple(value.items()) if isinstance(value, dict) else value
        )


class SwitchOff(GroupedOption):
    """A flag that sets its parameter to False; without it the parameter has its default."""

    switches_off = True

    def __init__(self, *args: Any, otherwise: bool | None, **options: Any) -> None:
        self.otherwise = otherwise
        super().__init__(*args, is_flag=True, **options)

    def process_value(self, ctx: click.Context, value: Any) -> bool | None:
        """Invert the flag."""
        return False if super().process_value(ctx, value) else self.otherwise


class KeyFile(GroupedOption):
    """The file of a secret key; the library takes the key itself."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Read the key."""
        path = super().process_value(ctx, value)
        if not isinstance(path, str):  # click represents a missing value by a special object
            return path
        try:
            key = Path(path).read_bytes().strip()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        if not key:
            raise InputError(f"{path} is empty; a key is any secret text.")
        return key


_FORMS: dict[str | None, type[GroupedOption]] = {
    "names": NameList,
    "texts": Repeatable,
    "numbers": Repeatable,
    "pattern numbers": PatternNumbers,
    "bins": Bins,
}


# --- options of requests --------------------------------------------------------------------------


def option(*flags: str, **said: Any) -> Decorator:
    """Declare an option that no request has; takes what a GroupedOption takes."""
    return click.option(*flags, cls=said.pop("cls", GroupedOption), **said)


def request(
    *requests: type,
    only: Collection[str] | None = None,
    but: Collection[str] = (),
    **changes: dict[str, Any],
) -> Callable[[F], F]:
    """Declare the options of request classes.

    Only some keywords, or all but some. ``changes`` gives, by keyword, what a command declares
    differently, such as a default.
    """
    listed: list[Decorator] = []
    for each in (o for request in requests for o in options_of(request)):
        chosen = each.keyword in only if only is not None else each.keyword not in but
        if chosen and each.flags is not None:
            listed.append(_flag(dataclasses.replace(each, **changes.get(each.keyword, {}))))
    return stacked(*listed)


def _flag(declared: Option) -> Decorator:
    """Make the click option of a declared one."""
    flags = declared.spellings
    said: dict[str, Any] = {
        "group": declared.group,
        "common": declared.common,
        "help": _help(declared),
        "metavar": declared.metavar,
    }
    if declared.turns_off:
        return option(*flags, declared.keyword, cls=SwitchOff, otherwise=declared.default, **said)
    if declared.is_switch:
        return option(*flags, declared.keyword, is_flag=True, **said)
    if declared.form in _FORMS:
        if declared.form == "numbers":
            said["type"] = float
        return option(*flags, declared.keyword, cls=_FORMS[declared.form], **said)
    if not declared.is_required and isinstance(declared.default, (str, int, float)):
        said |= {"default": declared.default, "show_default": True}
    # The columns of a bundled table need not be named, and the library lists those of others.
    said["required"] = declared.is_required and declared.group != "Data"
    return option(*flags, declared.keyword, type=_type(declared), **said)


def _type(declared: Option) -> Any:
    if declared.choices:
        return click.Choice(declared.choices)
    if declared.form == "path":
        return click.Path()
    if not declared.is_number:
        return str
    if declared.is_unbounded:
        return declared.type
    return _Whole(declared) if declared.is_whole else _Number(declared)


class _Checked(click.ParamType[Any]):
    """A number that is checked by its declaration, so that an error is the same as in Python."""

    declared: Option

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read the number, and check it."""
        number = (click.INT if self.declared.is_whole else click.FLOAT).convert(value, param, ctx)
        try:
            self.declared.check(number)
        except InputError as error:
            parameters = ctx.command.params if ctx else ()
            raise InputError(with_flags(str(error), parameters)) from None
        return number


# The bounds given to click are only for help.
class _Number(_Checked, click.FloatRange):
    """A number within bounds."""

    def __init__(self, declared: Option) -> None:
        self.declared = declared
        # An infinite bound only excludes infinity, which help need not mention.
        low = declared.at_least if declared.above is None else declared.above
        high = declared.at_most if declared.below in (None, math.inf) else declared.below
        opened = high is not None and declared.at_most is None
        super().__init__(low, high, min_open=declared.above is not None, max_open=opened)


class _Whole(_Checked, click.IntRange):
    """A whole number within bounds."""

    def __init__(self, declared: Option) -> None:
        self.declared = declared
        low, high = declared.at_least, declared.at_most
        super().__init__(None if low is None else int(low), None if high is None else int(high))


def _help(declared: Option) -> str:
    said = [declared.flag_help or declared.help]
    if declared.example:
        said.append(f"Example: {declared.example}.")
    if declared.form in ("texts", "numbers", "pattern numbers", "bins"):
        said.append("Repeatable.")
    return " ".join(said)


def stacked(*options: Decorator) -> Callable[[F], F]:
    """Join decorators to one that keeps their order."""
    return lambda function: functools.reduce(lambda f, o: o(f), reversed(options), function)


# --- options that only commands have --------------------------------------------------------------


def file(*flags: str, **said: Any) -> Decorator:
    """Declare an option that is the path of a file; by default it is one of the output."""
    return option(*flags, type=click.Path(), metavar="FILE", **{"group": "Output", **said})


def top(what: str, usual: str = "", **said: Any) -> Decorator:
    """Declare the option that limits how many rows are shown."""
    shown = f"Maximum number of {what} to show.{usual and f' By default {usual}.'}"
    kind = click.IntRange(min=1 if "default" in said else 0)
    return option("--top", type=kind, group="Output", help=shown, **said)


quiet = option("--quiet", "-q", is_flag=True, help="Print no progress and no hints.")
run = stacked(request(RunOptions), quiet)
"""What a run may use, and whether it reports progress."""
table = stacked(request(CountRequest, ReadOptions), run)
"""Which columns of which table are counted, and how it is read."""
json = option("--json", "as_json", is_flag=True, group="Output", help="Print JSON.")

lake = stacked(
    file(
        "--index",
        group="Finding rows",
        help="Index of the lake. By default in the lake's folder, or in the user's cache.",
    ),
    option(
        "--no-refresh",
        "refresh",
        cls=SwitchOff,
        otherwise=True,
        group="Finding rows",
        help="Use the index as it is, without looking for new or changed tables.",
    ),
)
"""Where the index of a lake is, and whether it is updated."""


def reading(*, of: str, usual: str) -> Decorator:
    """Declare how CSV files are read, if not as when a plan was made."""
    said = {name: {"help": f"{name.capitalize()} of {of}. By default {usual}."} for name in _CSV}
    return request(ReadOptions, only=_CSV, **said)


_CSV = ("encoding", "delimiter")

base = reading(of="the base, if it is a CSV file", usual="that of the plan")
"""How the table of a plan is read, if it has changed since the plan was made."""

plan_base = stacked(
    option(
        "--base",
        metavar="DATA",
        group="Data",
        common=True,
        help="Table of the plan. By default the table it names.",
    ),
    base,
)

repaired = stacked(
    file(
        "--output",
        "-o",
        common=True,
        help="Repaired table to write: a file, whose extension sets the format, or the address of a table "
        "of PostgreSQL or Spark. An existing table of that name is replaced in PostgreSQL, unless it is the "
        "base or a table of the lake, and refused in Spark.",
    ),
    file(
        "--ledger",
        help="List of changes to write. By default OUTPUT.ledger.parquet, or the table OUTPUT_ledger.",
    ),
    option(
        "--dry-run",
        is_flag=True,
        group="Output",
        common=True,
        help="Report what would be taken, and write nothing.",
    ),
)
"""Where a repaired table goes, and the list of its changes."""

available_from = option(
    "--available-from",
    metavar="DATA",
    group="Costs and limits",
    help="Table of the only rows that can be added. It is counted like DATA.",
)

hash_key = file(
    "--hash-key-file",
    "hash_key",
    cls=KeyFile,
    help="File with a secret key for the ledger's hashes, so that rows cannot be guessed from them.",
)

suppress = option(
    "--suppress-below",
    type=click.IntRange(min=1),
    metavar="K",
    group="Output",
    help="Hide counts below K, and what they could be derived from.",
)
