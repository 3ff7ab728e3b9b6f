"""Write the parts of the documentation that are read off the program itself.

python tools/build_docs.py            write them
python tools/build_docs.py --check    only say whether they are up to date
python tools/build_docs.py --picture  draw the pictures, docs/*.svg, again, too
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import evaluation_docs
import options_docs

from equipoise import count, frontier, measure, plan
from equipoise.cli.app import cli
from equipoise.engines import declarations
from equipoise.measures.registry import measures
from equipoise.plain import Grid
from equipoise.reports.bias.charts import heat_map
from equipoise.reports.bias.data import summarize
from equipoise.reports.charts.before_after import bias_chart
from equipoise.reports.charts.vega import to_svg
from equipoise.reports.frontier.charts import step_chart
from equipoise.reports.frontier.data import steps
from equipoise.reports.plan.charts import change_chart
from equipoise.reports.plan.data import biases, changes

DOCS = Path(__file__).parent.parent / "docs"


def main() -> int:
    """Write or check every generated page."""
    pages = {
        "cli.md": command_line(),
        "options.md": options_docs.page(),
        "measures.md": measures_page(),
        "evaluation.md": evaluation_docs.page(),
    }
    stale = [n for n, text in pages.items() if not _same(DOCS / n, text)]
    if "--check" in sys.argv:
        for name in stale:
            print(f"docs/{name} is not up to date; run make docs")
        return 1 if stale else 0
    if "--picture" in sys.argv:
        drawn = pictures()
        pages |= drawn
        stale += drawn
    for name in stale:
        (DOCS / name).write_text(pages[name], encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def command_line() -> str:
    """Give the help of every command."""
    parts = [
        "# The command line",
        (
            "Results go to stdout, progress and hints to stderr. Exit codes: 0 success, 1 a check "
            "failed or a plan falls short, 2 bad usage or input, 3 not enough evidence, 130 interrupted. Defaults of "
            "every option can stand in `equipoise.toml`, in a table with the command's name. The "
            "[options](options.md) are also listed with their Python keywords."
        ),
    ]
    for path, command in _commands(cli, "equipoise"):
        with click.Context(command, info_name=path, max_content_width=98, terminal_width=98) as ctx:
            parts += [f"## `{path}`", f"```text\n{command.get_help(ctx)}\n```"]
    parts += ["## What can be read and written", _support()]
    return "\n\n".join(parts) + "\n"


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                if found is not None:
                    yield from _commands(found, f"{path} {name}")


def _support() -> str:
    return Grid(("engine", "", "what", "how"), tuple(declarations())).markdown()


def measures_page() -> str:
    """Describe every registered measure."""
    rows = tuple(
        (
            f"`{m.name}`",
            m.symbol,
            m.formula,
            f"{m.low:g} … {m.high:g}".replace("inf", "∞").replace("-", "−"),
            "–" if m.neutral is None else f"{m.neutral:g}",
            m.against or "–",
            "rises" if m.more_is_more else "falls",
        )
        for m in measures()
    )
    headers = ("name", "symbol", "formula", "range", "neutral", "compared with")
    table = Grid((*headers, "with the group's rate it"), rows).markdown()
    parts = [
        "# Measures",
        (
            "All are functions of the same counts. n is the number of rows, n_y of rows with label "
            "y, n_g of rows of group g, n_gy of both; f_y = n_y/n, f_gy = n_gy/n_g; r is the "
            "reference that `--reference` names: the rest of the table, the best-off group of the "
            "same attributes, or any group. Show further ones with `--measures impact_ratio,lift`."
        ),
        table,
    ]
    for m in measures():
        what = (m.function.__doc__ or "").split(">>>")[0].strip()
        text = " ".join(line.strip() for line in what.splitlines())
        parts += [f"## {m.title}", text]
    return "\n\n".join(parts) + "\n"


def pictures() -> dict[str, str]:
    """Draw every picture of the pages; the bytes depend on the drawing library's version."""
    table = measure("adult", sensitive_features=["sex", "race"], label="income")
    compas = count("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    repair = plan(compas, tolerance=0.05, allow="both", reference="original")
    front = frontier(compas, allow="both", points=50, budget=2000)
    drawn = {
        "adult.svg": heat_map(summarize(table)["charts"]["matrices"][0]),
        "plan-changes.svg": change_chart(changes(repair)),
        "plan-biases.svg": bias_chart(biases(repair)),
        "frontier.svg": step_chart(steps(front)),
        **evaluation_docs.pictures(),
    }
    look = {"background": "white", "padding": 16}
    return {name: to_svg({**spec, **look}) for name, spec in drawn.items()}


if __name__ == "__main__":
    sys.exit(main())
