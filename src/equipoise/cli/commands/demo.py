"""``equipoise demo``."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path
from typing import Any

import click

from equipoise.datasets.example import build_example, draw_days
from equipoise.errors import InputError

_ASKED = "--sensitive sex,race --label income"
_HOW = "--tolerance 0.1"


@click.command("demo", epilog="Example: equipoise demo --output demo")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder to write to.",
)
def command(output: Path) -> None:
    """Run a complete repair on bundled data: measure, plan, find rows, add them, verify and monitor.

    A biased part of the Adult table is repaired with rows of a small lake. The lake is made of
    other parts of the table, with other headers, spellings and formats.
    """
    output.mkdir(parents=True, exist_ok=True)
    people, lake = output / "people.parquet", output / "lake"
    tables = build_example(people, lake)
    click.echo(
        f"{people}: rows of the census table Adult, without most of the women above 50K.\n"
        f"{lake}: {tables} undocumented tables. Many hold other rows of Adult, with other headers,\n"
        "spellings and formats; some are unrelated.\n"
    )
    _measure_and_plan(output, people)
    _find(output, people, lake)
    _repair(output, people, lake)
    _watch(output)
    pages = ("people.html", "plan.html", "repair.html", "history.html")
    _say(f"Pages: {', '.join(str(output / page) for page in pages)}")


def _measure_and_plan(output: Path, people: Path) -> None:
    plan = output / "plan.json"
    _say("1. Measure: which rows is each group missing?")
    _run(f"measure {_q(people)} {_ASKED} --label-value '>50K' --top 6", lines=13)
    _run(f"measure {_q(people)} {_ASKED} -o {_q(output / 'people.html')}")
    _say("2. Plan: the smallest number of rows to add, whether or not such rows exist.")
    _run(f"plan {_q(people)} {_ASKED} {_HOW} -o {_q(plan)}")
    _show_plan(plan, output / "plan.html", str(people))


def _show_plan(file: Path, page: Path, source: str) -> None:
    """Show a plan and write its page, without solving it again."""
    from equipoise.plans.plan import Plan
    from equipoise.reports.pages import write_page

    plan = Plan.read(file)
    left = len(plan.moves) - 6
    click.echo(
        "\n".join([*plan.explanation[:2], "", plan.grid(6).text(), f"… and {left} more", ""])
    )
    write_page(plan, page, source=source)


def _find(output: Path, people: Path, lake: Path) -> None:
    plan, mapping = output / "plan.json", output / "mapping.toml"
    where = f"{_q(plan)} {_q(lake)} --base {_q(people)}"
    _say("3. Find: the tables of the lake, ranked by how many needed rows they offer.")
    _run(f"lake index {_q(lake)}")
    _run(f"find {where}", code=1)
    _say("4. Confirm: one table codes sex as 1 and 2, and codes are never guessed.")
    _run(f"lake mapping {where} -o {_q(mapping)}")
    _confirm(mapping)


def _repair(output: Path, people: Path, lake: Path) -> None:
    repaired, mapping = output / "repaired.parquet", output / "mapping.toml"
    ledger, plan = (output / f"repaired.parquet.{n}" for n in ("ledger.parquet", "plan.json"))
    files = f"-o {_q(repaired)} --report {_q(output / 'repair.html')}"
    _say("5. Repair: plan, add the rows, count the new table and verify it, in one command.")
    _run(f"repair {_q(people)} {_q(lake)} {_ASKED} {_HOW} --mapping {_q(mapping)} {files}")
    _say("6. Verify: from the files alone, then by reading each added row from its source again.")
    _run(f"verify {_q(repaired)} --base {_q(people)} --plan {_q(plan)} --ledger {_q(ledger)}")
    _run(f"lake replay {_q(ledger)} {_q(lake)} --repaired {_q(repaired)}")
    _run(f"measure {_q(repaired)} {_ASKED} --label-value '>50K' --top 3", lines=10)


_STREAM = "--name people"
_LIMITS = "--max-abs-ub 0.25 --max-order 1 --min-count 100"


def _watch(output: Path) -> None:
    """Watch two weeks of the repaired table, in which an alert is raised, and show its page."""
    store = output / "bias.sqlite"
    for file in (store, store.with_name(f"{store.name}-wal"), store.with_name(f"{store.name}-shm")):
        file.unlink(missing_ok=True)
    days = draw_days(output / "repaired.parquet", output / "days")
    where = f"--store {_q(store)} {_STREAM}"
    _say(
        "7. Monitor: the table in use, two weeks of 400 rows a day. From the sixth day on, a form loses\n"
        "most of the women above 50K. Each day is added and checked, without a row being kept."
    )
    alert = None
    for number, (day, file) in enumerate(days):
        added = f"monitor add {_q(file)} {where} --at {day}" + (f" {_ASKED}" if not number else "")
        check = f"monitor check {where} {_LIMITS}"
        if not number:
            _run(added)
            _run(check)
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            _typed(added)
            code = _typed(check)
        if code == 1 and alert is None:
            alert = day
            click.echo(f"{number - 1} more days: no alert. On {day}, the next:\n")
            _run(check, code=1)
    _run(f"monitor show {where} {_LIMITS} -o {_q(output / 'history.html')}")


def _q(path: Path) -> str:
    return shlex.quote(str(path))


def _say(sentence: str) -> None:
    click.secho(f"{sentence}\n", bold=True)


def _run(line: str, *, lines: int | None = None, code: int = 0) -> None:
    """Show a command, run it, and show the first lines of its output."""
    click.echo(f"$ equipoise {line}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        got = _typed(line)
    shown = printed.getvalue().rstrip().splitlines()
    more = [f"… and {len(shown) - lines} more lines"] if lines and len(shown) > lines else []
    click.echo("".join(f"{text}\n" for text in [*shown[:lines], *more]))
    if got != code:
        raise InputError(f"the demo expects the exit code {code} of the command above, not {got}.")


def _typed(line: str) -> int:
    """Run a command, and return its exit code."""
    program = click.get_current_context().find_root().command
    code: Any = program.main([*shlex.split(line), "--quiet"], "equipoise", standalone_mode=False)
    return code or 0


_KNOWN = (
    ("use = false\n", "use = true\n"),
    ('"1" = ""  # open: no value is known for it', '"1" = "Male"'),
    ('"2" = ""  # open: no value is known for it', '"2" = "Female"'),
)
"""What the owners of the registry know about its codes."""


def _confirm(mapping: Path) -> None:
    """Edit the mapping as a person would who knows what the codes mean."""
    from equipoise import atomic

    before, name, after = mapping.read_text(encoding="utf-8").partition('"partners/registry.csv"')
    click.echo(f"# {mapping}, edited by the demo in place of a person who knows the registry:")
    for old, new in _KNOWN:
        click.echo(f"-  {old.strip()}\n+  {new.strip()}")
        after = after.replace(old, new, 1)
    atomic.write_text(mapping, before + name + after)
    click.echo()
