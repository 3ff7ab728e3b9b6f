"""``equipoise demo``."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_SEED = 2024  # so that the demo shows the same numbers everywhere
_ASKED = "--sensitive sex,race --label income"
_HOW = "--tolerance 0.1"
_BASE_ROWS = 3000
# Share of women above 50K that stay in the base, which gives it more bias than Adult has.
_KEPT = 0.4
# Share of the other rows that are in the lake; a smaller lake is quicker.
_USED = 0.4


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
    """Run a complete repair on bundled data: measure, plan, find rows, add them and verify.

    A biased part of the Adult table is repaired with rows of a small lake. The lake is made of
    other parts of the table, with other headers, spellings and formats.
    """
    output.mkdir(parents=True, exist_ok=True)
    people, lake = output / "people.parquet", output / "lake"
    tables = _build(people, lake)
    click.echo(
        f"{people}: rows of the census table Adult, without most of the women above 50K.\n"
        f"{lake}: {tables} undocumented tables. Many hold other rows of Adult, with other headers,\n"
        "spellings and formats; some are unrelated.\n"
    )
    _measure_and_plan(output, people)
    _find(output, people, lake)
    _repair(output, people, lake)
    _say(f"Pages: {output / 'people.html'}, {output / 'plan.html'}, {output / 'repair.html'}")


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


def _q(path: Path) -> str:
    return shlex.quote(str(path))


def _say(sentence: str) -> None:
    click.secho(f"{sentence}\n", bold=True)


def _run(line: str, *, lines: int | None = None, code: int = 0) -> None:
    """Show a command, run it, and show the first lines of its output."""
    program = click.get_current_context().find_root().command
    click.echo(f"$ equipoise {line}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        got: Any = program.main([*shlex.split(line), "--quiet"], "equipoise", standalone_mode=False)
    shown = printed.getvalue().rstrip().splitlines()
    more = [f"… and {len(shown) - lines} more lines"] if lines and len(shown) > lines else []
    click.echo("".join(f"{text}\n" for text in [*shown[:lines], *more]))
    if (got or 0) != code:
        raise InputError(f"the demo expects the exit code {code} of the command above, not {got}.")


# ---------------------------------------------------------------------------- the lake


@dataclass(frozen=True)
class _Table:
    """A table of the demo's lake: its share of the rows, and what was done to them."""

    path: str
    share: float
    women: float  # its share of women above 50K, who are rare in most tables of the lake
    headers: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    without: Sequence[str] = ()
    copies: int = 0  # rows of the base, which must not be taken again


_LETTERS = {"sex": {"Female": "F", "Male": "M"}}
_WORDS = {"sex": {"Female": "woman", "Male": "man"}}
_CODES = {"sex": {"Female": "2", "Male": "1"}}
_LOWER = {"income": {"<=50K": "<=50k", ">50K": ">50k"}, "sex": {"Female": "female", "Male": "male"}}
_WORK = ("capital-gain", "capital-loss", "fnlwgt")

_TABLES = (
    _Table("census/sample_a.parquet", 0.12, 0.05),
    _Table("census/sample_b.jsonl.gz", 0.12, 0.06, {"sex": "Gender", "race": "Ethnicity"}),
    _Table("hr/payroll_2019.csv", 0.14, 0.1, {"sex": "gender", "income": "salary_class"}, _LETTERS),
    _Table("hr/payroll_2020.tsv", 0.14, 0.08, {"sex": "SEX", "race": "RACE"}, _LOWER),
    _Table("hr/contractors.csv", 0.08, 0.05, {"income": "annual income"}, _LETTERS, _WORK),
    _Table("partners/agency.csv", 0.1, 0.08, {"sex": "Gender", "race": "ethnicity"}, _WORDS),
    _Table("partners/registry.csv", 0.06, 0.5, {"sex": "gender", "income": "earnings"}, _CODES),
    _Table("partners/panel.csv", 0.08, 0.05, {"sex": "gender"}, _LETTERS),
    _Table("archive/backup.csv", 0.02, 0.02, {}, {}, (), 800),
    _Table("archive/without_income.csv", 0.14, 0.04, {"sex": "gender"}, _LETTERS, ("income",)),
)
"""Where the rows of Adult go that are not in the base."""

_WEATHER = "day,town,rain_mm\n" + "".join(
    f"2024-05-{d:02},Ulm,{d * 7 % 11}\n" for d in range(1, 31)
)
_ORDERS = "order;item;price\n" + "".join(f"{n};bolt M{n % 9};{n % 17}.50\n" for n in range(400))
_SOURCES = """\
# What it costs to open a table and to take a row of it, and on what terms.
[default]
licence = "CC-BY-4.0"

[tables."hr/*"]
table_cost = 5
licence = "internal"

[tables."partners/*"]
table_cost = 2
row_cost = 0.05
licence = "by contract"

[tables."partners/panel.csv"]
consent = false
"""


def _build(people: Path, lake: Path) -> int:
    """Cut Adult into a base and a lake, the same on every machine; return its number of files."""
    import numpy as np
    import pyarrow.parquet as pq

    from equipoise import atomic, datasets

    chance = np.random.default_rng(_SEED)
    adult = pq.read_table(datasets.path("adult"))
    adult = adult.take(chance.permutation(len(adult)))
    women = np.logical_and(
        adult["sex"].to_numpy() == "Female", adult["income"].to_numpy() == ">50K"
    )
    there = np.arange(len(adult)) < _BASE_ROWS
    kept = ~women | (chance.random(len(adult)) < _KEPT)
    base = adult.filter(there & kept)
    with atomic.atomic_path(people) as place:
        pq.write_table(base, place)
    where = [
        chance.choice(len(_TABLES), len(adult), p=_shares([t.share for t in _TABLES])),
        chance.choice(len(_TABLES), len(adult), p=_shares([t.women for t in _TABLES])),
    ]
    left_out = there | (~women & (chance.random(len(adult)) > _USED))
    owner = np.where(left_out, -1, np.where(women, where[1], where[0]))
    for i, table in enumerate(_TABLES):
        _write(table, adult.filter(owner == i), base, lake / table.path)
    others = {"weather.csv": _WEATHER, "shop/orders.csv": _ORDERS, "sources.toml": _SOURCES}
    for name, text in {**others, "archive/broken.parquet": "this is no Parquet"}.items():
        (lake / name).parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(lake / name, text)
    return len(_TABLES) + 3


def _shares(weights: Sequence[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def _write(table: _Table, rows: pa.Table, base: pa.Table, path: Path) -> None:
    """Write a table as someone else would have."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    rows = pa.concat_tables([rows, base.slice(0, table.copies)]).drop_columns(table.without)
    if not table.path.endswith((".parquet", ".jsonl.gz")):
        rows = _respelled(rows, table.values)
    rows = rows.rename_columns([table.headers.get(n, n) for n in rows.column_names])
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
    elif path.suffix == ".gz":
        lines = (json.dumps(row) for row in rows.to_pylist())
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    else:
        delimiter = {".tsv": "\t"}.get(path.suffix, ";" if "hr" in table.path else ",")
        csv.write_csv(rows, path, csv.WriteOptions(delimiter=delimiter, quoting_style="needed"))


def _respelled(rows: pa.Table, values: Mapping[str, Mapping[str, str]]) -> pa.Table:
    import pyarrow as pa

    for name in set(values) & set(rows.column_names):
        column = [values[name].get(v, v) for v in rows[name].to_pylist()]
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(column))
    return rows


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
