"""``equipoise monitor``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from equipoise.cli import options, terminal
from equipoise.cli.command import CommandGroup
from equipoise.cli.output import PICTURES, Output, output_options, print_result
from equipoise.errors import InputError
from equipoise.options.count import CountRequest, ReadOptions
from equipoise.options.monitor import BatchOptions, WatchOptions, WindowOptions, ZoneOptions
from equipoise.options.plan import PlanOptions

if TYPE_CHECKING:
    from equipoise.api.monitors import Monitor
    from equipoise.errors import EquipoiseError
    from equipoise.monitoring.check import StreamCheck


@click.group("monitor", cls=CommandGroup)
def command() -> None:
    """Watch bias over time: keep a history of counts, and check it every day.

    A store is a SQLite file or a PostgreSQL database. It contains the number of rows in each cell
    of each batch, and never a row. You can check a stream as often as you like: the probability
    that a stream inside its limits ever raises an alert is at most --alpha.
    """


store = options.option(
    "--store",
    required=True,
    metavar="STORE",
    group="Data",
    common=True,
    help="File of the store, such as bias.sqlite, or postgresql://user@host/db?schema=monitoring.",
)
stream = options.option(
    "--name",
    "-n",
    required=True,
    metavar="NAME",
    group="Data",
    common=True,
    help="Name of the stream.",
)
policy = options.file(
    "--policy",
    group="What is allowed",
    common=True,
    help="File with a table [check] of rules, as for equipoise check. By default the rules in "
    "equipoise.toml, if this file exists.",
)
watched = options.stacked(
    stream, store, policy, options.request(WatchOptions), options.request(ZoneOptions)
)
reason = options.option(
    "--reason", default="", metavar="TEXT", group="Output", help="Reason, which the history shows."
)


@command.command(
    epilog="""\b
Examples:
  equipoise monitor add day.parquet --store bias.sqlite --name loans \\
    --sensitive sex,race --label approved --at 2026-11-15
  equipoise monitor add day.csv --store bias.sqlite --name loans --tag region=north
  equipoise monitor add year.parquet --store bias.sqlite --name loans -s sex -l approved \\
    --time-column decided --every week
  equipoise monitor add march.csv --store bias.sqlite --name loans --time-column decided --id march.csv
  equipoise monitor add fixed.csv --store bias.sqlite --name loans --id 2026-11-15 --replace

Name the columns with the first batch of a stream. Later batches use the same columns. Adding a batch
that is already there changes nothing. Exit codes: 0 added or already there, 2 bad input, nothing
added.""",
)
@click.argument("data")
@stream
@store
@options.request(BatchOptions)
@options.request(ZoneOptions)
@options.request(
    CountRequest,
    ReadOptions,
    sensitive_features={"help": "Sensitive attributes. Name them with the first batch."},
    label={"help": "Label column. Name it with the first batch."},
    weight={"help": "Not for streams, which contain numbers of rows; see --count."},
)
@options.run
@options.json
@click.pass_context
def add(ctx: click.Context, /, data: str, name: str, as_json: bool, **given: Any) -> None:
    """Add the counts of DATA to a stream, as a batch."""
    chosen = ctx.get_parameter_source
    # What is not given is counted as in the first batch.
    for key in [k for k in given if chosen(k) is ParameterSource.DEFAULT]:
        if key not in ("quiet", "timezone", "replace"):
            del given[key]
    if "time_column" not in given:
        _leave_out_every(given, chosen("every"))
    quiet, monitor = given.pop("quiet"), _open(given.pop("store"))
    if given.get("sensitive_features") == ():
        del given["sensitive_features"]
    with terminal.progress(quiet=quiet) as report:
        added = monitor.add(data, name=name, progress=report, **given)
    with terminal.uninterrupted():
        print_result(added, as_json=as_json)


def _leave_out_every(given: dict[str, Any], source: ParameterSource | None) -> None:
    """Refuse --every without times; a default of a configuration is meant for other commands and tables."""
    if source is ParameterSource.COMMANDLINE:
        raise InputError(
            "--every sets the length of the batches of --time-column; add --time-column, or leave out --every."
        )
    given.pop("every", None)


@command.command(
    epilog="""\b
Examples:
  equipoise monitor check --store bias.sqlite --name loans
  equipoise monitor check --store bias.sqlite --name loans --max-abs-ub 0.2 --min-count 500
  equipoise monitor check --store bias.sqlite --name loans --policy equipoise.toml --json
  equipoise monitor check --store bias.sqlite --name loans \\
    --webhook https://example.org/alerts --webhook-key-file key

Exit codes: 0 no alert, 1 an alert, 2 bad input, 3 a group has vanished or is too small to judge.""",
)
@watched
@options.option(
    "--webhook",
    metavar="URL",
    group="Output",
    help="Address to which an alert is posted, as JSON with a signature.",
)
@options.file(
    "--webhook-key-file",
    "webhook_key",
    cls=options.KeyFile,
    help="File with the secret key for the signature.",
)
@options.option(
    "--webhook-always",
    is_flag=True,
    group="Output",
    help="Post the result even if there is no alert.",
)
@options.top("findings", "20 in text")
@options.quiet
@output_options("text", "json", "markdown", "html")
@click.pass_obj
def check(
    config: dict[str, Any],
    /,
    output: Output,
    name: str,
    webhook: str | None,
    webhook_key: bytes | None,
    webhook_always: bool,
    top: int | None,
    **given: Any,
) -> int:
    """Check a stream against limits. You can do so as often as you like.

    The limits are set by --max-abs-ub, --four-fifths, a --policy, or the rules in equipoise.toml.
    """
    if (webhook is None) != (webhook_key is None):
        raise InputError("use --webhook and --webhook-key-file together.")
    if webhook_always and webhook is None:
        raise InputError("--webhook-always requires --webhook, the address to post to.")
    if webhook is not None and webhook_key is not None:
        _require_webhook(webhook, webhook_key)
    given.pop("quiet")
    monitor = _open(given.pop("store"))
    result = monitor.check(name, **_with_rules(given, config))
    code = output.show(
        result,
        text=lambda: _text(result, 20 if top is None else top),
        markdown=lambda: f"{result.markdown()}",
    )
    if webhook is not None and webhook_key is not None and (result.alerts or webhook_always):
        sent = monitor.notify(result, webhook, key=webhook_key)
        terminal.say(f"sent to {sent.address} ({sent.status})", quiet=output.quiet)
    return code


def _require_webhook(address: str, key: bytes) -> None:
    """Refuse a wrong address or key now, and not with the first alert."""
    from equipoise.monitoring.webhook import read_address, read_key

    read_address(address)
    read_key(key)


def _text(result: StreamCheck, top: int) -> str:
    from equipoise.monitoring.check import E_VALUE_TOLD, UB_TOLD

    grid = result.grid(top)
    more = sum(f.kind != "inside" or f.changed for f in result.findings) - len(grid.rows)
    table = [grid.text() + (f"\n… and {more:,} more" if more > 0 else "")] if grid.rows else []
    near = None if result.alerts else result.nearest()
    if near is not None and near.rows and top:
        first = math.ceil(len(result.findings) / result.watched.alpha)
        title = f"The largest e-values so far (the first alert requires {first:,}):"
        table.append(f"{title}\n\n{near.text()}")
    said = [f"{UB_TOLD}\n{E_VALUE_TOLD}"] * bool(table)
    return "\n\n".join(["\n".join([result.heading, *result.sentences]), *table, *said])


@command.command(
    epilog="""\b
Examples:
  equipoise monitor show --store bias.sqlite --name loans
  equipoise monitor show --store bias.sqlite --name loans -o history.html
  equipoise monitor show --store bias.sqlite --name loans --group 'sex=Female' -o female.html
  equipoise monitor show --store bias.sqlite --name loans --timezone Europe/Berlin --json""",
)
@watched
@options.option(
    "--group",
    metavar="PATTERN",
    group="Which groups",
    help="Group to draw, such as 'sex=Female', or a group and a label, such as 'sex=Female, approved=yes'. A "
    "label alone, such as 'approved=yes', draws its groups with alerts and the most evidence. By default the groups "
    "with alerts and the most evidence for any label.",
)
@options.top("periods", "12 in text, 50 in HTML")
@options.quiet
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
@click.pass_obj
def show(
    config: dict[str, Any], /, output: Output, name: str, top: int | None, **given: Any
) -> int:
    """Show the history of a stream.

    The history contains UB, evidence, alerts, group sizes and label rates over time.
    """
    given.pop("quiet")
    monitor = _open(given.pop("store"))
    history = monitor.history(name, **_with_rules(given, config))
    return output.show(
        history,
        said=history.sentences[:1],
        page={"top": 50 if top is None else top},
        csv=history.to_csv,
        markdown=lambda: history.markdown(top),
        text=lambda: history.text(top),
    )


@command.command(
    epilog="""\b
Examples:
  equipoise monitor metrics --store bias.sqlite
  equipoise monitor metrics --store bias.sqlite --name loans -o bias.prom

Exit codes: 0 written, 2 bad input, or a stream cannot be checked. The other streams are still
written.""",
)
@store
@options.option(
    "--name", "-n", metavar="NAME", group="Data", help="Name of one stream. By default all streams."
)
@policy
@options.request(WatchOptions)
@options.file(
    "--output", "-o", help="File to write, for example for the textfile collector of Prometheus."
)
@click.pass_obj
def metrics(config: dict[str, Any], /, name: str | None, output: str | None, **given: Any) -> int:
    """Write metrics for Prometheus.

    The output is OpenMetrics text with the state of all streams of a store.
    """
    monitor = _open(given.pop("store"))
    wrong: dict[str, EquipoiseError] = {}
    text = monitor.metrics(name, failed=wrong.__setitem__, **_with_rules(given, config))
    terminal.emit(text.rstrip("\n"), output, quiet=True)
    for stream, error in wrong.items():
        terminal.say(f"error: {stream} cannot be checked: {error}")
    return 2 if wrong else 0


@command.command(
    epilog="""\b
Examples:
  equipoise monitor plan --store bias.sqlite --name loans --window 30d
  equipoise monitor plan --store bias.sqlite --name loans --window 30d --tolerance 0.1 -o plan.json
  equipoise monitor plan --store bias.sqlite --name loans --since 2026-10-01 --until 2026-11-01

The exit codes are those of equipoise plan.""",
)
@stream
@store
@options.request(WindowOptions)
@options.request(ZoneOptions)
@options.request(PlanOptions)
@options.top("cells", "20 in text, 50 in HTML")
@options.quiet
@output_options("text", "json", "csv", "markdown", "html", *PICTURES)
def plan(output: Output, name: str, top: int | None, **given: Any) -> int:
    """Plan a repair of a stream or a window.

    The plan uses the stored counts only.
    """
    quiet, monitor = given.pop("quiet"), _open(given.pop("store"))
    kept = {key: value for key, value in given.items() if value != ()}
    with terminal.progress(quiet=quiet) as report:
        made = monitor.plan(name, progress=report, **kept)
    return output.show(
        made,
        said=made.explanation,
        page={"source": name, "top": 50 if top is None else top},
        csv=lambda: made.to_csv(top),
        markdown=lambda: made.markdown(top),
        text=lambda: made.text(20 if top is None else top),
    )


@command.command(
    "list",
    epilog="""\b
Examples:
  equipoise monitor list --store bias.sqlite
  equipoise monitor list --store bias.sqlite --name loans --top 10""",
)
@store
@options.option(
    "--name", "-n", metavar="NAME", group="Data", help="Name of a stream, to list its batches."
)
@options.request(ZoneOptions)
@options.top("batches")
@options.json
def list_(name: str | None, top: int | None, as_json: bool, timezone: str, **given: Any) -> None:
    """List the streams of a store, or the batches of one."""
    monitor = _open(given["store"])
    if name is None:
        print_result(monitor.streams(timezone=timezone), as_json=as_json)
        return
    found = monitor.batches(name, timezone=timezone)
    if as_json:
        print_result(found, as_json=True)
    else:
        terminal.emit(f"{found.heading}\n\n{found.grid(top).text()}", None)


@command.command(
    epilog="""\b
Example:
  equipoise monitor withdraw --store bias.sqlite --name loans --id 2026-11-15 --reason 'a test run'"""
)
@stream
@store
@options.option("--id", "id_", required=True, metavar="TEXT", group="Data", help="Id of the batch.")
@reason
@options.quiet
def withdraw(store: str, name: str, id_: str, reason: str, quiet: bool) -> None:
    """Remove a batch from all sums and tests. The store keeps it, and the history shows why."""
    _open(store).withdraw(name, id=id_, reason=reason)
    terminal.say(f"withdrew the batch {id_} of {name}", quiet=quiet)


@command.command(
    epilog="""\b
Example:
  equipoise monitor acknowledge --store bias.sqlite --name loans --reason 'the form is fixed'"""
)
@stream
@store
@reason
@options.quiet
def acknowledge(store: str, name: str, reason: str, quiet: bool) -> None:
    """Restart all tests of a stream. Use it after you have fixed the cause of an alert."""
    _open(store).acknowledge(name, reason=reason)
    terminal.say(f"the tests of {name} restart with the next batch", quiet=quiet)


@command.command(
    epilog="""\b
Examples:
  equipoise monitor merge --store bias.sqlite --name loans
  equipoise monitor merge --store bias.sqlite --name loans --older-than 365d --every month

Merged batches can no longer be corrected. The totals stay the same. The evidence stays the same for
the rules of earlier checks, and for rules that you pass here with the options of equipoise monitor
check."""
)
@watched
@options.option(
    "--older-than",
    default="90d",
    show_default=True,
    metavar="SPAN",
    group="Which batches",
    help="Minimum age of the batches to merge, counted from the last batch that is not in the future.",
)
@options.option(
    "--every",
    type=click.Choice(["hour", "day", "week", "month"]),
    default="week",
    show_default=True,
    group="Which batches",
    help="Length of the merged batches.",
)
@options.quiet
@click.pass_obj
def merge(config: dict[str, Any], /, store: str, name: str, quiet: bool, **given: Any) -> None:
    """Merge old batches by week or month. This keeps the store small."""
    merged, into = _open(store).merge(name, **_with_rules(given, config))
    batches = "batch" if merged == 1 else "batches"
    terminal.say(f"merged {merged:,} {batches} of {name} into {into:,}", quiet=quiet)


def _open(place: str) -> Monitor:
    """A monitor of a store, which is closed at the end of the command."""
    return click.get_current_context().with_resource(_closing(place))


@contextlib.contextmanager
def _closing(place: str) -> Iterator[Monitor]:
    from equipoise.api.monitors import Monitor

    monitor = Monitor(place)
    try:
        yield monitor
    finally:
        with terminal.uninterrupted():
            monitor.close()


def _with_rules(given: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a check: without a policy, the rules are those of the configuration."""
    kept = {key: value for key, value in given.items() if value != ()}
    if kept.get("policy") is None:
        kept["policy"] = _rules(config)
    return kept


def _rules(config: dict[str, Any]) -> dict[str, Any] | None:
    """The limits of a [check] table; its other keys are about a table and not a stream."""
    table = {k.replace("-", "_"): v for k, v in config.get("check", {}).items()}
    kept = ("max_abs_ub", "four_fifths", "favourable", "min_count", "max_order", "rules")
    return {k: v for k, v in table.items() if k in kept} or None
