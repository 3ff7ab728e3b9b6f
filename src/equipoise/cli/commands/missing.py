"""``equipoise missing``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.flags import Command
from equipoise.cli.options import (
    PICTURES,
    counting_options,
    names_option,
    output_format,
    output_options,
)
from equipoise.errors import InputError

FORMATS = ("text", "json", "html", *PICTURES)


@click.command(
    "missing",
    cls=Command,
    epilog="""\b
Examples:
  equipoise missing adult --sensitive workclass --label income --na '?' -o missing.html
  equipoise missing adult -s sex -l income --take-away 0.2 --mechanism by_label

Ways: group (a value of its own), drop (rows are left out), and imputation by scikit-learn:
most_frequent, knn, iterative, iterative_drawn (drawn by their probabilities), iterative_blind
(without seeing the label). With --take-away the truth is known, and errors are given. Rows that
lack the label are left out, or treated as --missing-label or --treat-label say.""",
)
@click.argument("data")
@counting_options
@names_option("--methods", help="Which ways; all.")
@click.option(
    "--take-away",
    "share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Take this share of values away, and compare with the truth.",
)
@click.option(
    "--mechanism",
    type=click.Choice(["random", "by_label", "by_value"]),
    default="random",
    show_default=True,
    help="Which rows lose a value: any, or those of one label or value more often.",
)
@click.option(
    "--treat-label",
    is_flag=True,
    help="Ways treat missing labels as other missing values, in place of --missing-label.",
)
@click.option("--column", metavar="COLUMN", help="Which loses values; the first sensitive one.")
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Leave out groups with fewer rows.",
)
@click.option("--max-rows", type=click.IntRange(min=10), help="Sample a larger table down to this.")
@output_options(*FORMATS)
def command(
    data: str,
    format_: str | None,
    output: str | None,
    methods: tuple[str, ...],
    share: float | None,
    max_rows: int | None,
    **options: Any,
) -> None:
    """Compare ways to treat the missing values of DATA, on how they move Uniform Bias."""
    kind = output_format(format_, output, FORMATS)
    quiet = options["quiet"]
    if share is not None and options.pop("treat_label"):
        raise InputError(
            "--treat-label goes without --take-away: labels that are missing have no truth to compare "
            "with; to take labels away name the label as --column."
        )
    simulating = {name: options.pop(name) for name in ("mechanism", "column", "repeats")}
    most = {} if max_rows is None else {"max_rows": max_rows}
    with arguments.library_arguments(data, options) as given:
        from equipoise.api import compare_missing, simulate_missing

        given |= {"methods": methods or "all", **most}
        found: Any
        if share is None:
            found = compare_missing(data, **given)
        else:
            found = simulate_missing(data, share=share, **simulating, **given)
    arguments.report_skipped(data, given, quiet=quiet)
    if kind in PICTURES:
        terminal.draw(found, output, found.sentences, quiet=quiet)
        return
    if kind == "html":
        from equipoise.reports.missing.page import write_missing

        write_missing(found, str(output), source=data)
        terminal.wrote(output, quiet=quiet)
        terminal.say("\n".join(found.sentences), quiet=quiet)
        return
    terminal.emit(
        found.to_json(indent=2) if kind == "json" else found.text(),
        output,
        quiet=quiet,
        sentences=kind == "text",
    )
