"""``equipoise check``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options
from equipoise.cli.command import Command
from equipoise.cli.output import Output, output_options
from equipoise.options.measure import MeasureOptions


@click.command(
    "check",
    cls=Command,
    epilog="""\b
Examples:
  equipoise check people.csv --sensitive sex,race --label income --max-abs-ub 0.1
  equipoise check people.csv -s sex,race -l income --max-abs-ub 0.1 --min-count 100
  equipoise check people.csv -s sex,race -l income --four-fifths --favourable '>50K'
  equipoise check people.csv            # columns and rules from equipoise.toml

\b
equipoise.toml (or [tool.equipoise.check] in pyproject.toml):
  [check]
  sensitive = ["sex", "race"]
  label = "income"
  max-abs-ub = 0.1
  [[check.rules]]                       # the last rule that matches a row decides
  group = "sex=Female"                  # this group and all groups inside it
  label = ">50K"
  max-abs-ub = 0.2
  k = 0.9                               # allowed ratio of rates, instead of 1
  [[check.rules]]                       # like --four-fifths, with another limit
  min-impact-ratio = 0.9
  reference = "best"                    # or "rest", or a group such as "sex=Male"
  label = ">50K"                        # the favourable label

Exit codes: 0 inside the limits, 1 outside, 2 bad input, 3 not enough evidence.""",
)
@click.argument("data")
@options.table
@options.request(
    MeasureOptions,
    but=("uncertainty", "reference", "measures"),
    favourable={
        "help": "Favourable label value, for `four_fifths`.",
        "group": "What is allowed",
    },
)
@options.option(
    "--max-abs-ub",
    type=click.FloatRange(min=0),
    group="What is allowed",
    common=True,
    help="Largest |UB| allowed.",
)
@options.option(
    "--four-fifths",
    is_flag=True,
    group="What is allowed",
    common=True,
    help="Require that every group's rate of the favourable label is at least 0.8 times that of "
    "the best-off group of the same attributes.",
)
@options.option(
    "--evidence",
    type=click.Choice(["estimate", "interval"]),
    group="What is allowed",
    help="Whether to judge the measured UB or ratio (the default), or to call a group inside or "
    "outside only if its whole interval is.",
)
@options.suppress
@options.top("findings", "20 in text, all in JSON")
@output_options("text", "json", "csv", "markdown")
@click.pass_obj
def command(
    config: dict[str, Any],
    /,
    data: str,
    output: Output,
    max_abs_ub: float | None,
    four_fifths: bool,
    evidence: Any,
    top: int | None,
    suppress_below: int | None,
    **given: Any,
) -> int:
    """Check DATA against limits: --max-abs-ub, --four-fifths, or rules in equipoise.toml.

    Suppressed groups are not checked.
    """
    from equipoise.measures.policy import Policy

    # Rules are a separate table of the file and not an option, so click does not read them.
    rules = {"rules": config.get("check", {}).get("rules", [])}
    policy = Policy.of(rules, max_abs_ub=max_abs_ub, four_fifths=four_fifths, evidence=evidence)
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.measurement import check, measure

        table = measure(data, **keywords)
    # Before the check, or its findings would reveal what the table hides.
    if suppress_below is not None:
        from equipoise.measures.suppression import suppress

        table = suppress(table, suppress_below)
    result = check(table, policy=policy)
    arguments.show_hints(result.table.counts, quiet=output.quiet)
    return output.show(
        result,
        csv=lambda: result.to_csv(top),
        markdown=lambda: f"{result.grid(top).markdown()}\n\n{result.sentence}",
        text=lambda: result.text(20 if top is None else top),
    )
