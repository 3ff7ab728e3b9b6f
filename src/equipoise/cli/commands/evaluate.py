"""``equipoise evaluate``."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import Command
from equipoise.cli.output import PICTURES, Output, output_options
from equipoise.errors import InputError
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions

_PAPER_ONLY = ("studies", "compas")
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
@options.table
@options.request(RunningOptions, FeatureOptions, EvaluationOptions)
@options.option(
    "--paper",
    is_flag=True,
    group="Models",
    help="Run the paper's evaluation of six models on three data sets.",
)
@options.option(
    "--studies",
    cls=options.NameList,
    group="Models",
    help="Data sets of `paper`: adult, credit, compas. By default all.",
)
@options.file(
    "--compas",
    group="Models",
    help="File compas-scores-raw.csv of raw scores, for `paper`.",
)
@output_options("text", "json", "html", *PICTURES)
def command(
    data: str | None,
    after: str | None,
    output: Output,
    paper: bool,
    **given: Any,
) -> None:
    """Train and test models on DATA and on repaired versions of it, or on DATA and AFTER."""
    # Training can take hours, so finished work is kept by default.
    if given["runs"] is None and output.path is not None:
        given["runs"] = f"{output.path}.runs.jsonl"
    if given["runs"] is not None and given["runs"] == output.path:
        raise InputError("--runs and -o name the same file; use another file for finished work.")
    found = _paper(data, given) if paper else _tables(data, after, given)
    output.show(found, said=found.sentences, json=found.to_json)


def _tables(data: str | None, after: str | None, given: dict[str, Any]) -> Any:
    if data is None:
        raise InputError("name a table, or --paper for the paper's data sets.")
    for name in _PAPER_ONLY:
        if given.pop(name):
            raise InputError(f"--{name} needs --paper.")
    with arguments.library_arguments(data, given) as keywords:
        from equipoise.api.evaluations import evaluate

        found = evaluate(data, after, **keywords)
    for table in filter(None, (data, after)):
        arguments.report_skipped(table, keywords, quiet=given["quiet"])
    return found


def _paper(data: str | None, given: dict[str, Any]) -> Any:
    if data is not None:
        raise InputError(f"--paper has its own data; leave out {data!r}.")
    context = click.get_current_context()
    for name in given:
        # Defaults of equipoise.toml may be for other tables, and are not refused.
        source = context.get_parameter_source(name)
        typed = source is click.core.ParameterSource.COMMANDLINE
        if typed and name not in (
            *_PAPER_TAKES,
            *_PAPER_ONLY,
            "runs",
            "quiet",
            "threads",
            "memory",
        ):
            raise InputError(
                f"--{name.replace('_', '-')} cannot be combined with --paper, which has its own columns."
            )
    keywords = {name: given[name] for name in _PAPER_TAKES if given[name] not in (None, ())}
    keywords |= {name: given[name] for name in _PAPER_ONLY if given[name]}
    keywords |= {name: given[name] for name in ("runs", "threads", "memory")}
    with terminal.progress(quiet=given["quiet"]) as report:
        from equipoise.api.evaluations import evaluate_paper

        return evaluate_paper(**keywords, progress=report)
