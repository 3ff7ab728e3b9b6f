"""``equipoise evaluate``."""

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
PAPER_ONLY = ("studies", "compas")
_PAPER_TAKES = (
    *("models", "sample", "repeats", "quick", "jobs", "seed", "test", "tolerance", "positive"),
    *("max_rows", "confidence", "without_sensitive", "min_group", "versions", "equal_rows"),
)


@click.command(
    "evaluate",
    cls=Command,
    epilog="""\b
Examples:
  equipoise evaluate adult --sensitive sex --label income --models gbdt,logistic --repeats 20 \\
      -o evaluation.html
  equipoise evaluate adult -s sex -l income --quick
  equipoise evaluate before.parquet after.parquet --sensitive sex,race --label income
  equipoise evaluate --paper -o paper-evaluation.html

A table is split at random into rows set aside for the test, an initial sample and a pool. Models
are trained on the sample as it is (u) and on versions repaired with real rows of the pool, label
frequencies kept (p) or free (n), and for two models on baselines: reweighed, deleted, duplicated.
Finished work is kept beside the output (or in --runs), and the same command goes on from there.

Exit codes: 0 fine, 2 bad input, 130 interrupted.""",
)
@click.argument("data", required=False)
@click.argument("after", required=False)
@counting_options
@names_option(
    "--models",
    help="random_forest, gbdt, extra_trees, adaboost, mlp, logistic, or all; gbdt,logistic if not "
    "given, and all with --paper.",
)
@names_option(
    "--versions", help="What to train on beside u: p, n, reweighed, deleted, duplicated; all."
)
@click.option(
    "--repeats", type=click.IntRange(min=1), help="How often all is done anew; 20, or 3 if quick."
)
@click.option(
    "--sample",
    type=float,
    multiple=True,
    metavar="PERCENT",
    help="The initial sample, in percent of the table; 20. Repeatable.",
)
@click.option(
    "--test",
    type=float,
    default=20.0,
    show_default=True,
    metavar="PERCENT",
    help="How much of the table is set aside for the test.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="The largest |UB| a repair leaves to any group.",
)
@click.option(
    "--min-group",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Groups with fewer rows in the initial sample are not repaired.",
)
@click.option("--positive", metavar="VALUE", help="The label that precision and recall are about.")
@names_option("--also", help="Further attributes to give results by; not repaired.")
@names_option("--drop", help="Columns that are no features.")
@names_option("--categorical", help="Columns of numbers that are names.")
@click.option(
    "--impute",
    type=click.Choice(["none", "median", "mean", "most_frequent"]),
    default="none",
    show_default=True,
    help="What stands for a missing number, taken from the rows trained on.",
)
@click.option("--without-sensitive", is_flag=True, help="Models do not see sensitive attributes.")
@click.option(
    "--keep-together",
    metavar="COLUMN",
    help="Rows with one value here, such as a person, are never in two parts.",
)
@click.option(
    "--equal-rows",
    type=click.Choice(["auto", "together", "apart"]),
    default="auto",
    show_default=True,
    help="One table: keep rows that are equal in one part, take them for separate rows, or decide by "
    "whether chance explains them.",
)
@click.option("--own-size", is_flag=True, help="Two tables: train on all rows of each.")
@click.option("--max-rows", type=click.IntRange(min=10), help="Sample a larger table down to this.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)
@click.option("--quick", is_flag=True, help="A first look: 3 repeats, at most 10,000 rows.")
@click.option(
    "--jobs", type=click.IntRange(1, 1024), help="How many models to train at once; one a core."
)
@click.option("--runs", type=click.Path(), metavar="FILE", help="Keeps finished work.")
@click.option("--paper", is_flag=True, help="The paper's evaluation: three data sets, six models.")
@names_option("--studies", help="With --paper: adult, credit, compas; all.")
@click.option(
    "--compas",
    type=click.Path(),
    metavar="FILE",
    help="With --paper: the raw scores, compas-scores-raw.csv.",
)
@output_options(*FORMATS)
def command(
    data: str | None,
    after: str | None,
    format_: str | None,
    output: str | None,
    paper: bool,
    **options: Any,
) -> None:
    """Train and test models on DATA as it is and repaired, or on DATA and AFTER."""
    kind = output_format(format_, output, FORMATS)
    quiet = options["quiet"]
    if options["runs"] is None and output is not None:
        options["runs"] = f"{output}.runs.jsonl"
    if options["runs"] is not None and options["runs"] == output:
        raise InputError("--runs and -o name one file; the finished work needs a file of its own.")
    found = _paper(data, options) if paper else _tables(data, after, options)
    if kind in PICTURES:
        terminal.draw(found, output, found.sentences, quiet=quiet)
        return
    if kind == "html":
        from equipoise.reports.evaluation.page import write_evaluation

        write_evaluation(found, str(output))
        terminal.wrote(output, quiet=quiet)
        terminal.say("\n".join(found.sentences), quiet=quiet)
        return
    text = found.to_json() if kind == "json" else found.text()
    terminal.emit(text, output, quiet=quiet, sentences=kind == "text")


def _tables(data: str | None, after: str | None, options: dict[str, Any]) -> Any:
    if data is None:
        raise InputError("name a table, or --paper for the paper's data sets.")
    for name in PAPER_ONLY:
        if options.pop(name):
            raise InputError(f"--{name} goes with --paper.")
    asked = {**options, "same_size": not options["own_size"]}
    del asked["own_size"]
    for name in ("models", "versions", "sample"):
        if not asked[name]:
            del asked[name]
    with arguments.library_arguments(data, asked) as given:
        from equipoise.api import evaluate

        found = evaluate(data, after, **given)
    for table in filter(None, (data, after)):
        arguments.report_skipped(table, given, quiet=options["quiet"])
    return found


def _paper(data: str | None, options: dict[str, Any]) -> Any:
    if data is not None:
        raise InputError(f"--paper has its own data; leave out {data!r}.")
    context = click.get_current_context()
    for name in options:
        source = context.get_parameter_source(name)
        typed = source is click.core.ParameterSource.COMMANDLINE
        if typed and name not in (*_PAPER_TAKES, *PAPER_ONLY, "runs", "quiet", "threads", "memory"):
            raise InputError(
                f"--{name.replace('_', '-')} does not go with --paper, which has its own columns."
            )
    given = {name: options[name] for name in _PAPER_TAKES if options[name] not in (None, ())}
    given |= {name: options[name] for name in PAPER_ONLY if options[name]}
    given |= {name: options[name] for name in ("runs", "threads", "memory")}
    with terminal.progress(quiet=options["quiet"]) as report:
        from equipoise.api import evaluate_paper

        return evaluate_paper(**given, progress=report)
