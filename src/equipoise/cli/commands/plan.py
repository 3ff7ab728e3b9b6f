"""``equipoise plan``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.errors import InputError
from equipoise.options import options_of
from equipoise.options.plan import MEASURED, PlanOptions
from equipoise.options.search import SearchRequest

if TYPE_CHECKING:
    from equipoise.plans.plan import Plan


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
  equipoise plan adult -s sex -l income --policy equipoise.toml
  equipoise plan compas --labels free
  equipoise plan compas --target 'keep rates of: sex' --rounding floor
  equipoise plan adult -s sex -l income --tolerance 0.1 \\
    --move 'sex=Female, income=>50K' +3000 --move 'sex=Male, income=<=50K' -500 -o scenario.json

Every plan has a certificate: the repaired counts, measured again over all groups.

Exit codes: 0 the tolerance is reached (zero: up to rounding) or the policy is kept, 1 it is not or
no plan is possible, 2 bad input.""",
)
@click.argument("data")
@options.table
@options.request(PlanOptions)
@options.option(
    "--move",
    "moves",
    cls=options.Moves,
    metavar="PATTERN ±ROWS",
    group="What is allowed",
    common=True,
    help="Plan by hand: add (+) or delete (-) this many rows of a pattern, and measure the result "
    "instead of searching for the cheapest plan. Repeatable.",
)
@options.available_from
@options.option(
    "--lake",
    cls=options.Repeatable,
    metavar="LAKE",
    group="Finding rows",
    help="Lake whose tables have the only rows that can be added. Repeatable.",
)
@options.request(SearchRequest, only=("mapping",), mapping={"common": False})
@options.top("cells", "20 in text, 50 in HTML")
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
def command(data: str, output: Output, top: int | None, **given: Any) -> int:
    """Plan the smallest repair of DATA: how many rows to add to and delete from every cell.

    A pattern names cells by attributes and label, as in 'sex=Female, income=>50K'.
    """
    from equipoise.plans.infeasibility import Infeasible

    try:
        made = _drawn(data, given) if given["moves"] else _searched(data, given, output.path)
    # Programs that read JSON get the reasons as data, too, beside the error on stderr.
    except Infeasible as error:
        if output.kind == "json" and output.path is None:
            terminal.emit(json.dumps(error.to_dict(), ensure_ascii=False, indent=2), None)
        raise
    arguments.show_hints(made.counts, quiet=output.quiet)
    output.show(
        made,
        said=made.explanation,
        page={"source": data, "top": 50 if top is None else top},
        csv=lambda: made.to_csv(top),
        markdown=lambda: made.markdown(top),
        text=lambda: made.text(20 if top is None else top),
    )
    if output.path is not None and output.kind not in ("html", *PICTURES):
        terminal.say(made.explain(), quiet=output.quiet)
    return made.exit_code


def _searched(data: str, given: dict[str, Any], output: str | None) -> Plan:
    """Search for the cheapest plan."""
    del given["moves"]
    _take_lake(given, output)
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.plans import plan

        return plan(data, **keywords)


def _drawn(data: str, given: dict[str, Any]) -> Plan:
    """Make the plan that the moves are, measured by the options that were given."""
    moves = given.pop("moves")
    context = click.get_current_context()
    searching = {o.keyword for o in options_of(PlanOptions)} - set(MEASURED)
    for name in (*searching, "lake", "mapping"):
        del given[name]
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(_refusal(name))
    for name in MEASURED:
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            del given[name]
    signed = {"add": 1, "delete": -1}
    given |= {k: [(p, s * n) for p, n in moves if s * n > 0] for k, s in signed.items()}
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.plans import scenario

        return scenario(data, **keywords)


def _refusal(name: str) -> str:
    flag = f"--{name.replace('_', '-')}"
    if name in ("lake", "mapping"):
        return (
            f"{flag} limits a search to the rows of a lake, but --move sets the rows; write the plan "
            "with -o plan.json, and equipoise find shows which of them the lake has."
        )
    return (
        f"{flag} steers the search for the cheapest plan, but with --move the plan is the one you "
        "give; leave one of them out."
    )


def _take_lake(given: dict[str, Any], output: str | None) -> None:
    """Remove the options about a lake if there is none."""
    lake, mapping = given.pop("lake"), given.pop("mapping")
    if lake:
        from equipoise.lake.lake import Lake

        arguments.refuse_overwriting(Lake(lake), output)
        given |= {"lake": lake, "mapping": mapping}
    elif mapping is not None:
        raise InputError("--mapping describes tables of a lake; name the lake with --lake.")
