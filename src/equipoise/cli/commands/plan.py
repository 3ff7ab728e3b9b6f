"""``equipoise plan``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.flags import Command
from equipoise.cli.options import (
    PICTURES,
    PatternNumbers,
    Repeatable,
    counting_options,
    output_format,
    output_options,
    planning_options,
)
from equipoise.errors import InputError

if TYPE_CHECKING:
    from equipoise.plans.plan import Plan

FORMATS = ("text", "json", "csv", "markdown", "html", *PICTURES)


@click.command(
    "plan",
    cls=Command,
    epilog="""\b
Examples:
  equipoise plan cells.csv --count n --sensitive sex,race --label risk
  equipoise plan adult -s sex -l income --tolerance 0.05 --allow both -o plan.json
  equipoise plan adult -s sex -l income --tolerance 0.05 --allow both --min-rows 30000 \\
    --available 'sex=Female, income=>50K' 3000 --cost-add 'sex=Female' 2 --budget 7500
  equipoise plan adult -s sex,race -l income --min-group 100 --available-from more.parquet
  equipoise plan compas --labels free
  equipoise plan compas --target 'keep rates of: sex' --rounding floor

Every plan carries a certificate: the repaired counts, measured again over all groups.

Exit codes: 0 the tolerance is reached (zero: up to rounding), 1 it is not, or no plan can do it, 2 bad input.""",
)
@click.argument("data")
@counting_options
@click.option(
    "--tolerance",
    type=float,
    default=0.0,
    show_default=True,
    help="The largest |UB| left to any group; 0 is zero bias, up to rounding.",
)
@click.option(
    "--reference",
    type=click.Choice(["new", "original"]),
    help="Held against the label frequencies of the repaired table (new, the default), or the "
    "present ones (the default with --target).",
)
@planning_options
@click.option(
    "--rounding",
    type=click.Choice(["floor", "nearest", "optimal"]),
    default="optimal",
    show_default=True,
    help="At zero tolerance: how exact numbers become whole rows, if the budget suffices.",
)
@click.option(
    "--extra",
    cls=PatternNumbers,
    metavar="PATTERN ROWS",
    help="At zero tolerance, additions only: rows of its free label a group gets beyond the "
    "least. Repeatable.",
)
@click.option(
    "--lake",
    multiple=True,
    cls=Repeatable,
    metavar="LAKE",
    help="Only rows that tables of this lake have can be added. Repeatable.",
)
@click.option(
    "--mapping",
    type=click.Path(),
    metavar="FILE",
    help="With --lake: what columns and values of its tables mean; see equipoise lake mapping.",
)
@click.option(
    "--budget",
    type=float,
    help="How much may be spent; buys the plan that leaves the least largest |UB|.",
)
@click.option(
    "--priority",
    multiple=True,
    cls=Repeatable,
    metavar="PATTERN",
    help="If the budget does not suffice: what is served first. Repeatable, in order.",
)
@click.option(
    "--top", type=click.IntRange(min=0), help="Show only so many cells; 20 in text, 50 in HTML."
)
@output_options(*FORMATS)
def command(
    data: str, format_: str | None, output: str | None, top: int | None, **options: Any
) -> int:
    """Plan the smallest repair of DATA: how many rows to add to and delete from every cell.

    A pattern names cells by attributes and label, as in 'sex=Female, income=>50K'.
    """
    kind = output_format(format_, output, FORMATS)
    quiet = options["quiet"]
    from equipoise.plans.infeasibility import Infeasible

    try:
        _take_lake(options, output)
        with arguments.library_arguments(data, options) as given:
            from equipoise.api import plan

            made = plan(data, **given)
    except Infeasible as error:
        if kind == "json" and output is None:
            terminal.emit(json.dumps(error.to_dict(), ensure_ascii=False, indent=2), None)
        raise
    arguments.show_hints(made.counts, quiet=quiet)
    _show(made, kind, output, top, quiet=quiet, source=data)
    return made.exit_code


def _take_lake(options: dict[str, Any], output: str | None) -> None:
    """Leave in the options what is about a lake only if there is one."""
    lake, mapping = options.pop("lake"), options.pop("mapping")
    if lake:
        from equipoise.cli import lake_access
        from equipoise.lake.lake import Lake

        lake_access.refuse_overwriting(Lake(lake), output)
        options |= {"lake": lake, "mapping": mapping}
    elif mapping is not None:
        raise InputError("--mapping says what tables of a lake mean; name it with --lake.")


def _show(
    made: Plan, kind: str, output: str | None, top: int | None, *, quiet: bool, source: str
) -> None:
    if kind in PICTURES:
        terminal.draw(made, output, made.explanation, quiet=quiet)
        return
    if kind == "html":
        from equipoise.reports.plan.page import write_plan

        write_plan(made, str(output), source=source, top=50 if top is None else top)
        terminal.wrote(output, quiet=quiet)
        terminal.say(made.explain(), quiet=quiet)
        return
    if kind == "json":
        text = made.to_json(indent=2)
    elif kind == "csv":
        text = made.to_csv(top).rstrip("\n")
    elif kind == "markdown":
        text = made.markdown(top)
    else:
        text = made.text(20 if top is None else top)
    terminal.emit(text, output, quiet=quiet, sentences=kind == "text")
    if output is not None:
        terminal.say(made.explain(), quiet=quiet)
