"""``equipoise lake``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import arguments, options, terminal
from equipoise.cli.command import CommandGroup
from equipoise.cli.output import print_result
from equipoise.errors import InputError
from equipoise.options.count import ReadOptions
from equipoise.options.search import IndexOptions, SearchRequest
from equipoise.plain import Grid

if TYPE_CHECKING:
    from equipoise.lake.lake import Lake
    from equipoise.lake.tables.index import Refreshed

_SHOWN = 10


@click.group("lake", cls=CommandGroup)
def command() -> None:
    """Index, search and map a lake of tables, or replay a ledger.

    A lake consists of folders, globs and files: CSV (any dialect, gzipped or not), Parquet and
    JSON lines, DuckDB and SQLite databases, and Excel workbooks. The tables may be undocumented.
    """


@command.command(
    epilog="""\b
Examples:
  equipoise lake index ./lake
  equipoise lake index ./lake 'archive/*.parquet' warehouse.duckdb --index lake.duckdb
  equipoise lake index /shared/lake spark:warehouse --by spark

Only new and changed tables are read. An interrupted run is continued by the next one. Two runs
at the same time wait for each other.""",
)
@click.argument("lake", nargs=-1, required=True)
@options.lake
@options.request(IndexOptions)
@options.run
@options.json
def index(lake: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Read the tables of LAKE, and describe them in one index file."""
    given["refresh"] = True  # which is what this command is for
    with arguments.open_lake(lake, given) as opened:
        done = opened.refresh()
    remarked = opened.index.remarked()  # of a million tables, the others are not held in memory
    broken = [(t.name, t.problem) for t in remarked if t.problem]
    skipped = [(t.name, t.skipped) for t in remarked if t.skipped and not t.problem]
    if as_json:
        about = _index_dict(opened, done, broken)
        about["skipped"] = [{"table": name, **what.to_dict()} for name, what in skipped]
        click.echo(json.dumps(about, ensure_ascii=False, indent=2))
        return
    number, rows = opened.index.counts[0], opened.index.rows
    tables = "table" if number == 1 else "tables"
    click.echo(
        f"{number:,} {tables} with {rows:,} rows in {opened.index_path}; files: {done.new:,} "
        f"new, {done.changed:,} changed, {done.gone:,} gone, {done.same:,} unchanged."
    )
    _list(f"No rows can be taken from {len(broken):,} of them:", "why", broken)
    lines = [(name, str(what)) for name, what in skipped]
    _list(f"{len(skipped):,} of them are read without some lines:", "lines", lines)


def _list(title: str, what: str, tables: list[tuple[str, str]]) -> None:
    """List the first tables with a remark on each."""
    if tables:
        click.echo(f"\n{title}\n")
        click.echo(Grid(("table", what), tuple(tables[:_SHOWN])).text())
    if len(tables) > _SHOWN:
        click.echo(f"… and {len(tables) - _SHOWN:,} more; --json lists all")


def _index_dict(lake: Lake, done: Refreshed, broken: list[tuple[str, str]]) -> Any:
    return {
        "schema": "equipoise.index/1",
        "index": str(lake.index_path),
        "tables": lake.index.counts[0],
        "rows": lake.index.rows,
        **{name: getattr(done, name) for name in ("new", "changed", "gone", "same")},
        "problems": [{"table": name, "why": why} for name, why in broken],
    }


@command.command(
    epilog="""\b
Examples:
  equipoise lake search people.csv ./lake
  equipoise lake search people.csv ./lake --top 10 --json""",
)
@click.argument("data")
@click.argument("lake", nargs=-1, required=True)
@options.top("tables", default=10, show_default=True)
@options.request(ReadOptions, only=("encoding", "delimiter"))
@options.lake
@options.run
@options.json
def search(data: str, lake: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Find the tables of LAKE whose rows could be appended to DATA."""
    with arguments.open_lake(lake, given) as opened:
        found = opened.search(data, **given)
    print_result(found, as_json=as_json)


@command.command(
    epilog="""\b
Examples:
  equipoise lake mapping plan.json ./lake -o mapping.toml

Read the file, fill in what is open, and pass it to equipoise acquire with --mapping.""",
)
@click.argument("plan")
@click.argument("lake", nargs=-1, required=True)
@options.plan_base
@options.file(
    "--output",
    "-o",
    common=True,
    help="File to write.",
)
@options.request(SearchRequest, but=("other_columns",))
@options.lake
@options.run
def mapping(plan: str, lake: tuple[str, ...], output: str | None, **given: Any) -> None:
    """Propose what columns and values of LAKE mean for PLAN, for you to edit and confirm."""
    quiet = given["quiet"]
    with arguments.open_lake(lake, given) as opened:
        arguments.refuse_overwriting(opened, output)
        _keep_what_was_said(output, given["mapping"])
        text = opened.mapping(plan, file=output or "mapping.toml", **given)
    terminal.emit(text.rstrip("\n"), output, quiet=quiet)


def _keep_what_was_said(output: str | None, mapping: str | None) -> None:
    """Refuse to write over a mapping that someone may have edited, unless it is read first."""
    if output is None or not Path(output).exists():
        return
    if mapping is None or not Path(mapping).exists() or not Path(mapping).samefile(output):
        raise InputError(
            f"{output} exists and may hold your edits; keep them with --mapping {output}, or write "
            "to another file."
        )


@command.command(
    epilog="""\b
Examples:
  equipoise lake replay ledger.parquet ./lake
  equipoise lake replay ledger.parquet ./lake --repaired repaired.parquet
  equipoise lake replay 'postgresql://ann@host/db?table=people_repaired_ledger' ./lake

Exit codes: 0 all rows agree with the ledger, 1 some do not, 2 bad input.""",
)
@click.argument("ledger")
@click.argument("lake", nargs=-1, required=True)
@options.option(
    "--repaired",
    metavar="DATA",
    group="Data",
    common=True,
    help="Repaired table whose rows are also compared with the sources.",
)
@options.hash_key
@options.lake
@options.run
@options.json
def replay(
    ledger: str,
    lake: tuple[str, ...],
    repaired: str | None,
    hash_key: bytes | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Read every row that LEDGER lists from LAKE again, and compare it with the ledger."""
    with arguments.open_lake(lake, given) as opened:
        done = opened.replay(ledger, repaired=repaired, hash_key=hash_key)
    return print_result(done, as_json=as_json)
