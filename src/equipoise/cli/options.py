"""Options that several commands share, and how their text becomes Python values."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from equipoise.errors import InputError
from equipoise.plain import terminal_width

F = TypeVar("F", bound=Callable[..., Any])


class Names(click.ParamType[tuple[str, ...]]):
    """A list of names: ``sex,race``; a name with a comma stands in double quotes."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Split at commas."""
        if isinstance(value, (list, tuple)):
            return tuple(str(v) for v in value)
        return tuple(n.strip() for n in next(csv.reader([str(value)], skipinitialspace=True)))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """How it shows in help."""
        return "TEXT,…" if param.name == "na" else "NAME,…"


def flatten(_: click.Context, __: click.Parameter, value: Iterable[Any]) -> tuple[str, ...]:
    """Join the lists of a repeated option."""
    return tuple(
        name for names in value for name in ((names,) if isinstance(names, str) else names)
    )


class Repeatable(click.Option):
    """A repeatable option whose default in a configuration file may be one text or a list."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take one text, a list, or a table of bins."""
        if isinstance(value, str):
            value = (value,)
        elif isinstance(value, dict):
            value = tuple(f"{k}={_bin_text(v)}" for k, v in value.items())
        return super().type_cast_value(ctx, value)


def _bin_text(edges: Any) -> str:
    if isinstance(edges, (list, tuple)):
        return ",".join(map(str, edges))
    return f"quantiles:{edges}"


def names_option(*flags: str, help: str) -> Callable[[F], F]:  # noqa: A002
    """An option that takes a list of names, and may be repeated."""
    return click.option(
        *flags, type=Names(), multiple=True, cls=Repeatable, callback=flatten, help=help
    )


class PatternNumbers(click.Option):
    """A repeatable option that takes a pattern and a number; in a file, a table of them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options |= {"type": (str, float), "multiple": True}
        super().__init__(*args, **options)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take pairs, or a table from pattern to number."""
        if isinstance(value, dict):
            value = tuple(value.items())
        return super().type_cast_value(ctx, value)


def parse_bins(texts: Iterable[str]) -> dict[str, Any]:
    """Read ``age=25,45,65`` or ``age=quantiles:4``.

    >>> parse_bins(["age=25,45,65", "income=quantiles:4"])
    {'age': (25.0, 45.0, 65.0), 'income': 4}
    """
    bins: dict[str, Any] = {}
    for text in texts:
        name, separator, spec = text.rpartition("=")
        kind, colon, n = spec.partition(":")
        quantiles = bool(colon) and kind.strip() in ("quantiles", "quantile", "q")
        try:
            bins[name] = int(n) if quantiles else tuple(float(e) for e in spec.split(","))
        except ValueError:
            separator = ""
        if not separator:
            raise InputError(
                f"--bin {text!r} cannot be read; write NAME=EDGES, as in age=25,45,65, or "
                "NAME=quantiles:4."
            )
    return bins


_COUNTING = (
    names_option("--sensitive", "-s", help="The sensitive attributes: columns, as in sex,race."),
    click.option("--label", "-l", metavar="COLUMN", help="The label column."),
    click.option("--count", metavar="COLUMN", help="The table holds counts, in this column."),
    click.option("--weight", metavar="COLUMN", help="Row weights, in this column."),
    click.option(
        "--bin",
        "bins",
        multiple=True,
        cls=Repeatable,
        metavar="NAME=EDGES",
        help="Bin a number: age=25,45,65, or age=quantiles:4. Repeatable.",
    ),
    names_option("--na", help="Texts that mean a missing value, beside empty fields: '?,NA'."),
    click.option(
        "--missing",
        type=click.Choice(["group", "drop", "raise"]),
        default="group",
        show_default=True,
        help="Rows that lack a sensitive value: a group of their own, left out, or refused.",
    ),
    click.option(
        "--missing-label",
        type=click.Choice(["group", "drop", "raise"]),
        default="drop",
        show_default=True,
        help="Rows that lack the label.",
    ),
    click.option(
        "--where",
        metavar="CONDITION",
        help="Only rows that satisfy a condition over the columns: \"age >= 18 AND state = 'CA'\".",
    ),
    click.option("--sql", metavar="QUERY", help="A SELECT over the table, which is called input."),
    click.option(
        "--encoding", metavar="NAME", help="Of CSV files, as utf-8, latin-1, cp1252 or utf-16."
    ),
    click.option("--delimiter", metavar="CHARACTER", help="Of CSV files; found if not given."),
    click.option(
        "--no-header",
        is_flag=True,
        help="The first line of a CSV file or sheet is a row; columns are column_1, column_2, ….",
    ),
    click.option(
        "--lenient",
        is_flag=True,
        help="Skip and count lines of CSV files that are no rows, such as those with too many "
        "fields.",
    ),
    click.option("--threads", type=click.IntRange(1, 1024), help="How many cores to use."),
    click.option("--memory", metavar="SIZE", help="How much memory to use, as in 2GB."),
    click.option("--quiet", "-q", is_flag=True, help="No progress and no hints on stderr."),
)

_MEASURING = (
    click.option(
        "--min-count",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Leave out groups with fewer rows.",
    ),
    click.option(
        "--max-order", type=click.IntRange(min=1), help="Leave out groups of more attributes."
    ),
    click.option(
        "--limit",
        type=click.FloatRange(min=0),
        default=0.1,
        show_default=True,
        help="The |UB| up to which a group counts as inside, for hidden groups.",
    ),
    click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        help="Of the intervals.",
    ),
    click.option(
        "--sampling",
        type=click.Choice(["rows", "groups"]),
        default="rows",
        show_default=True,
        help="What chance decided: all of a row, or only its label (group sizes fixed).",
    ),
    click.option(
        "--adjust",
        type=click.Choice(["bh", "by"]),
        default="bh",
        show_default=True,
        help="q-values: Benjamini–Hochberg, or Benjamini–Yekutieli (valid under any dependence).",
    ),
)


_PLANNING = (
    click.option(
        "--tolerance-on",
        type=click.Choice(["ub", "rate"]),
        default="ub",
        show_default=True,
        help="What is held to the tolerance: |UB|, or the difference of rates |f_gy − f_y|.",
    ),
    click.option(
        "--allow",
        type=click.Choice(["add", "delete", "both"]),
        default="add",
        show_default=True,
        help="Whether rows may be added, deleted, or both.",
    ),
    click.option(
        "--labels",
        default="keep",
        show_default=True,
        metavar="keep|free|FILE",
        help="Keep label frequencies within the tolerance, choose the cheapest, or take them from "
        "a TOML or JSON file.",
    ),
    click.option(
        "--label-drift",
        type=click.FloatRange(min=0),
        metavar="D",
        help="Let no label frequency move by more than this share of itself.",
    ),
    click.option(
        "--target",
        metavar="FILE|RULE",
        help="Ratios K per group and label, from a TOML file, or 'keep rates of: sex'.",
    ),
    click.option(
        "--cost-add",
        cls=PatternNumbers,
        metavar="PATTERN COST",
        help="What adding a row of a pattern costs, instead of 1. Repeatable; the last decides.",
    ),
    click.option(
        "--cost-delete",
        cls=PatternNumbers,
        metavar="PATTERN COST",
        help="What deleting a row of a pattern costs, instead of 1. Repeatable.",
    ),
    click.option(
        "--available",
        cls=PatternNumbers,
        metavar="PATTERN ROWS",
        help="At most so many rows of a pattern can be added, in all. Repeatable.",
    ),
    click.option(
        "--available-from",
        metavar="DATA",
        help="Only rows of this table can be added; it is counted like DATA.",
    ),
    click.option(
        "--at-least",
        cls=PatternNumbers,
        metavar="PATTERN ROWS",
        help="The repaired table has at least so many rows of a pattern. Repeatable.",
    ),
    click.option("--min-rows", type=click.IntRange(min=0), help="It has at least so many in all."),
    click.option("--max-rows", type=click.IntRange(min=0), help="It has at most so many in all."),
    click.option(
        "--deletable",
        multiple=True,
        cls=Repeatable,
        metavar="PATTERN",
        help="Only rows of this pattern may be deleted. Repeatable.",
    ),
    click.option(
        "--constrain",
        multiple=True,
        cls=Repeatable,
        metavar="all|marginals|PATTERN",
        help="Which groups count: all (default), those of one attribute, or a group and all "
        "inside it. Repeatable.",
    ),
    click.option(
        "--min-group",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Groups with fewer rows do not count.",
    ),
    click.option(
        "--plan-missing",
        is_flag=True,
        help="Take missing values for values, instead of leaving such rows as they are.",
    ),
    click.option("--may-vanish", is_flag=True, help="A group may lose all its rows."),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Take the best plan found by then.",
    ),
    click.option(
        "--gap",
        type=click.FloatRange(min=0),
        help="Search until no plan can be cheaper by more than this share of the cost, or time is "
        "up. If not given, a search ends after a fixed amount of work.",
    ),
)


_LAKE = (
    click.option(
        "--index",
        type=click.Path(),
        metavar="FILE",
        help="The index; else in the lake's folder, or in the user's cache.",
    ),
    click.option("--no-refresh", is_flag=True, help="Take the index as it is, without looking."),
    click.option("--threads", type=click.IntRange(1, 1024), help="How many cores to use."),
    click.option("--memory", metavar="SIZE", help="How much memory to use, as in 2GB."),
    click.option("--quiet", "-q", is_flag=True, help="No progress and no hints on stderr."),
)

_LOOKING = (
    click.option(
        "--mapping",
        type=click.Path(),
        metavar="FILE",
        help="What columns and values mean, as equipoise lake mapping proposes and you confirm.",
    ),
    click.option(
        "--codebook",
        type=click.Path(),
        metavar="FILE",
        help="A TOML file: by attribute, which value of a source means which of the table's.",
    ),
    click.option(
        "--same-codes",
        is_flag=True,
        help="Codes such as 1 and 2 mean the same in all tables: you vouch for it.",
    ),
    click.option(
        "--second-opinion",
        is_flag=True,
        help="Ask Valentine too, and leave a table open where it prefers another column. Needs "
        "the extra valentine.",
    ),
    click.option(
        "--sources",
        type=click.Path(),
        metavar="FILE",
        help="Costs, licences and consent of sources; else sources.toml in the lake's folder.",
    ),
    click.option(
        "--deny",
        multiple=True,
        cls=Repeatable,
        metavar="NAME|GLOB",
        help="Take no rows from these tables. Repeatable.",
    ),
    click.option(
        "--min-confidence",
        type=click.FloatRange(0, 1),
        default=0.6,
        show_default=True,
        help="Take no rows from tables whose columns are matched less surely.",
    ),
    click.option(
        "--dedupe",
        type=click.Choice(["strict", "multiset", "key"]),
        default="strict",
        show_default=True,
        help="What is a duplicate: a row that says what another says; one more of such rows than "
        "any other table has; or one with the key of another.",
    ),
    names_option("--key", help="The columns of the key, for --dedupe key."),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Which rows of a cell are taken: for the same seed the same, on any machine.",
    ),
)

_LIMITS = (
    click.option("--budget", type=click.FloatRange(min=0), help="What all rows may cost."),
    click.option(
        "--max-share-per-source",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="SHARE",
        help="At most this share of the added rows comes from one table.",
    ),
    click.option(
        "--max-tables", type=click.IntRange(min=1), help="Take rows from at most so many tables."
    ),
    click.option(
        "--max-shift",
        type=click.FloatRange(0, 1),
        metavar="DISTANCE",
        help="Refuse added rows that differ by more from the table's rows of the same cells.",
    ),
    click.option(
        "--require-columns",
        is_flag=True,
        help="Leave out tables that lack a column; else it stays empty in their rows.",
    ),
)

other_columns_option = click.option(
    "--other-columns",
    type=click.Choice(["convert", "keep", "blank"]),
    default="convert",
    show_default=True,
    help="Values of columns that are not counted, where a source writes them otherwise: written as "
    "the table writes them where that is certain and left missing where not, kept as they are, or "
    "all left missing.",
)
"""What becomes of values that a source writes otherwise."""

_WRITING = (
    click.option(
        "--output",
        "-o",
        type=click.Path(),
        metavar="FILE",
        help="The repaired table, by its ending.",
    ),
    click.option(
        "--ledger",
        type=click.Path(),
        metavar="FILE",
        help="The list of changes; else OUTPUT.ledger.parquet.",
    ),
    click.option("--dry-run", is_flag=True, help="Say what would be taken, and write nothing."),
)

_BASE = (
    click.option(
        "--encoding",
        metavar="NAME",
        help="Of the base, if it is a CSV file; as when the plan was made unless given.",
    ),
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        help="Of the base, if it is a CSV file; as when the plan was made unless given.",
    ),
)

hash_key_option = click.option(
    "--hash-key-file",
    type=click.Path(),
    metavar="FILE",
    help="Key the ledger's hashes with what the file holds, so that rows cannot be guessed.",
)
"""A key for the hashes of a ledger."""


def lake_options(function: F) -> F:
    """Where the index is, and what it may use."""
    return _stacked(_LAKE)(function)


def base_options(function: F) -> F:
    """How the table of a plan is read, if otherwise than when the plan was made."""
    return _stacked(_BASE)(function)


def looking_options(function: F) -> F:
    """How rows are looked for in a lake."""
    return _stacked(_LOOKING)(function)


def limit_options(function: F) -> F:
    """Within what rows are taken from a lake."""
    return _stacked(_LIMITS)(function)


def writing_options(function: F) -> F:
    """Where a repaired table goes, and the list of its changes."""
    return _stacked(_WRITING)(function)


def require_output(output: str | None, *, dry_run: bool) -> None:
    """Refuse to do nothing, or to write in a dry run."""
    if (output is None) != dry_run:
        raise InputError("name the file to write with --output, or ask for a --dry-run.")


def hash_key(path: str | None) -> bytes | None:
    """Read the key for the hashes of a ledger."""
    if path is None:
        return None
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    if not key:
        raise InputError(f"{path} is empty; a key is any secret text.")
    return key


def planning_options(function: F) -> F:
    """What a plan may and must do."""
    return _stacked(_PLANNING)(function)


def _stacked(options: Iterable[Callable[[Any], Any]]) -> Callable[[F], F]:
    return lambda function: functools.reduce(lambda f, o: o(f), reversed(list(options)), function)


def counting_options(function: F) -> F:
    """Which columns of which table are counted, and how."""
    return _stacked(_COUNTING)(function)


def measuring_options(function: F) -> F:
    """Which groups are measured, and how surely."""
    return _stacked(_MEASURING)(function)


suppress_option = click.option(
    "--suppress-below",
    type=click.IntRange(min=1),
    metavar="K",
    help="Hide counts below K, and what they could be derived from.",
)
"""Hide small counts in output meant for others."""


def output_options(*formats: str) -> Callable[[F], F]:
    """Where the result goes, and as what."""
    flags = [
        click.option(f"--{name}", "format_", flag_value=name, help=f"Print {title}.")
        for name, title in (("json", "JSON"), ("csv", "CSV"), ("markdown", "Markdown"))
        if name in formats
    ]
    endings = ", ".join(f".{ENDINGS[f]}" for f in formats)
    pictures = "; .png and .svg hold its charts" if set(PICTURES) <= set(formats) else ""
    output = click.option(
        "--output",
        "-o",
        type=click.Path(),
        metavar="FILE",
        help=f"Write to a file; its ending ({endings}) says as what{pictures}.",
    )
    return _stacked([*flags, output])


ENDINGS = {
    "json": "json",
    "csv": "csv",
    "markdown": "md",
    "html": "html",
    "png": "png",
    "svg": "svg",
    "text": "txt",
}
PICTURES = ("png", "svg")


def output_format(format_: str | None, output: str | None, formats: Iterable[str]) -> str:
    """Choose the format: as asked, else by the file's ending, else text."""
    if output is not None and not Path(output).absolute().parent.is_dir():
        raise InputError(f"the folder {Path(output).parent} does not exist; make it first.")
    if output is not None:
        terminal_width.set(None)  # a file is as wide as its text
    by_ending = [n for n in ENDINGS if output and output.lower().endswith(f".{ENDINGS[n]}")]
    if format_ is not None:
        if by_ending and by_ending[0] not in (format_, "text"):
            raise InputError(
                f"--{format_} and the ending of {output} say different things; drop one of them."
            )
        return format_
    if output is None:
        return "text"
    for name in formats:
        if output.lower().endswith(f".{ENDINGS[name]}"):
            if name in PICTURES:
                from equipoise.reports.charts.vega import require_drawing

                require_drawing()
            return name
    endings = ", ".join(f".{ENDINGS[name]}" for name in formats)
    raise InputError(f"{output} has an ending that says nothing of its format; use {endings}.")
