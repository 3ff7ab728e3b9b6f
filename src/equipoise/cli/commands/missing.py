"""``equipoise missing``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.errors import InputError
from equipoise.options.evaluation import EvaluationOptions, RunningOptions
from equipoise.options.measure import MeasureOptions

_HERE = {"group": "Missing values"}


@click.command(
    "missing",
    cls=Command,
    epilog="""\b
Examples:
  equipoise missing adult --sensitive workclass --label income --na '?' -o missing.html
  equipoise missing adult -s sex -l income --take-away 0.2 --mechanism by_label

Methods: group (a separate value), drop (rows are left out), and imputation by scikit-learn:
most_frequent, knn, iterative, iterative_drawn (drawn from the predicted probabilities) and
iterative_blind (without using the label). With --take-away the true values are known, and errors
are reported. Rows without a label are left out, unless --missing-label or --treat-label is given.""",
)
@click.argument("data")
@options.table
@options.option(
    "--methods",
    cls=options.NameList,
    group="Missing values",
    common=True,
    help="Methods to compare. By default all.",
)
@options.option(
    "--take-away",
    "share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    group="Missing values",
    common=True,
    help="Share of values to remove, so that the methods can be compared with the truth.",
)
@options.option(
    "--mechanism",
    type=click.Choice(["random", "by_label", "by_value"]),
    default="random",
    show_default=True,
    group="Missing values",
    help="Whether values are removed at random, or more often from rows of one label or value.",
)
@options.option(
    "--treat-label",
    is_flag=True,
    group="Missing values",
    help="Let the methods treat missing labels, too, in place of `missing_label`.",
)
@options.option(
    "--column",
    metavar="COLUMN",
    group="Missing values",
    help="Column that values are removed from. By default the first sensitive attribute.",
)
@options.request(
    RunningOptions,
    only=("repeats",),
    repeats={**_HERE, "default": 5, "help": "Number of repeats.", "common": False},
)
@options.request(MeasureOptions, only=("min_count",), min_count={"default": 30, "common": False})
@options.request(EvaluationOptions, only=("seed", "max_rows"), seed=_HERE, max_rows=_HERE)
@output_options("text", "json", "html", *PICTURES)
def command(
    data: str,
    output: Output,
    methods: tuple[str, ...],
    share: float | None,
    max_rows: int | None,
    **given: Any,
) -> int:
    """Compare how methods of treating the missing values of DATA change Uniform Bias."""
    if share is not None and given.pop("treat_label"):
        raise InputError(
            "--treat-label cannot be combined with --take-away: missing labels have no true value to "
            "compare with. To remove labels, give the label as --column."
        )
    simulating = {name: given.pop(name) for name in ("mechanism", "column", "repeats")}
    # The default of the library differs between the two functions.
    most = {} if max_rows is None else {"max_rows": max_rows}
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.evaluations import compare_missing, simulate_missing

        keywords |= {"methods": methods or "all", **most}
        found: Any
        if share is None:
            found = compare_missing(data, **keywords)
        else:
            found = simulate_missing(data, share=share, **simulating, **keywords)
    arguments.report_skipped(data, keywords, quiet=output.quiet)
    return output.show(found, said=found.sentences, page={"source": data})
