"""``equipoise evaluate``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, terminal
from equipoise.cli.command import Command
from equipoise.cli.options import (
    PICTURES,
    NameList,
    option,
    output_format,
    output_options,
    request_options,
    table_options,
)
from equipoise.errors import InputError
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions

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

A table is split at random into a held-out test set, an initial sample and a pool. Models are
trained on the sample as it is (u) and on versions repaired with real rows of the pool, with label
frequencies kept (p) or free (n). Two models are also trained on baselines: reweighed, deleted and
duplicated. Finished work is kept next to the output (or in --runs), so that the same command can
continue after an interruption.

Exit codes: 0 success, 2 bad input, 130 interrupted.""",
)
@click.argument("data", required=False)
@click.argument("after", required=False)
@table_options
@request_options(RunningOptions, FeatureOptions, EvaluationOptions)
@option(
    "--paper",
    is_flag=True,
    group="Models",
    help="Run the paper's evaluation of six models on three data sets.",
)
@option(
    "--studies",
    cls=NameList,
    group="Models",
    help="Data sets of `paper`: adult, credit, compas. By default all.",
)
@option(
    "--compas",
    type=click.Path(),
    metavar="FILE",
    group="Models",
    help="File compas-scores-raw.csv of raw scores, for `paper`.",
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
    """Train and test models on DATA and on repaired versions of it, or on DATA and AFTER."""
    kind = output_format(format_, output, FORMATS)
    quiet = options["quiet"]
    if options["runs"] is None and output is not None:
        options["runs"] = f"{output}.runs.jsonl"
    if options["runs"] is not None and options["runs"] == output:
        raise InputError("--runs and -o name the same file; give finished work a file of its own.")
    found = _paper(data, options) if paper else _tables(data, after, options)
    if terminal.write_view(found, kind, output, found.sentences, quiet=quiet):
        return
    text = found.to_json() if kind == "json" else found.text()
    terminal.emit(text, output, quiet=quiet, sentences=kind == "text")


def _tables(data: str | None, after: str | None, options: dict[str, Any]) -> Any:
    if data is None:
        raise InputError("name a table, or --paper for the paper's data sets.")
    for name in PAPER_ONLY:
        if options.pop(name):
            raise InputError(f"--{name} needs --paper.")
    with arguments.library_arguments(data, options) as given:
        from equipoise.api.evaluations import evaluate

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
                f"--{name.replace('_', '-')} cannot be combined with --paper, which has its own columns."
            )
    given = {name: options[name] for name in _PAPER_TAKES if options[name] not in (None, ())}
    given |= {name: options[name] for name in PAPER_ONLY if options[name]}
    given |= {name: options[name] for name in ("runs", "threads", "memory")}
    with terminal.progress(quiet=options["quiet"]) as report:
        from equipoise.api.evaluations import evaluate_paper

        return evaluate_paper(**given, progress=report)
