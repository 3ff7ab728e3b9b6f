"""``equipoise plan``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    PICTURES,
    Repeatable,
    available_from_option,
    option,
    output_format,
    output_options,
    request_options,
    table_options,
    top_option,
)
from equipoise.errors import InputError
from equipoise.options.plan import PlanOptions
from equipoise.options.search import SearchRequest

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

Every plan has a certificate: the repaired counts, measured again over all groups.

Exit codes: 0 the tolerance is reached (zero: up to rounding), 1 it is not reached or no plan is
possible, 2 bad input.""",
)
@click.argument("data")
@table_options
@request_options(PlanOptions)
@available_from_option
@option(
    "--lake",
    cls=Repeatable,
    metavar="LAKE",
    group="Finding rows",
    help="Lake whose tables have the only rows that can be added. Repeatable.",
)
@request_options(SearchRequest, only=("mapping",), mapping={"common": False})
@top_option("cells", "20 in text, 50 in HTML")
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
            from equipoise.api.plans import plan

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
        raise InputError("--mapping describes tables of a lake; name the lake with --lake.")


def _show(
    made: Plan, kind: str, output: str | None, top: int | None, *, quiet: bool, source: str
) -> None:
    page: dict[str, Any] = {"source": source, "top": 50 if top is None else top}
    if terminal.write_view(made, kind, output, made.explanation, quiet=quiet, **page):
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
