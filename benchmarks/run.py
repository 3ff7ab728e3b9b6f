"""Run the benchmarks, print what was measured, and say which promises hold.

    python benchmarks/run.py                        all sections
    python benchmarks/run.py --only startup         one of them
    python benchmarks/run.py --rows 100000000       another size of the large table
    python benchmarks/run.py --write                and write them into RESULTS.md

MILLION_TABLES=100000 makes the index of `million` smaller.
SCALE_SHARE=0.1 makes the tables of `scale` ten times smaller.
QUICK_PLANS=ours leaves the other contestants of `quick_plans` out, which take three quarters of an hour.

The exit code is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import datetime
import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

import contestants
import engine_repairs
import explore
import lake_felt
import lake_scale
import lattice
import machine
import monitor
import quick_plans
import quiet_streams
import scale
import startup
import tailoring
import ugen
from bars import Bar, Section
from data import HERE

import engines
import evaluation
import lake
import plans

RESULTS = HERE / "RESULTS.md"


def _coverage(_: argparse.Namespace) -> Section:
    # By path: it prints a page of its own, of which this is a section.
    command = [sys.executable, str(HERE / "coverage.py")]
    page = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"Outside their target: \d+ \((\d+) below", page)
    below = float(found[1]) if found else math.nan  # nan meets no bar
    body = page.partition("\n")[2]  # without its title
    body = re.sub(r"^## ", "### ", body.strip(), flags=re.MULTILINE)
    bar = Bar("settings whose coverage is below its target", below, 0, unit="")
    return Section("Coverage of the 95 % interval of UB", [body], [bar])


# A new capability adds a module with a `section` and a line here.
SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "lattice": lambda asked: lattice.section(asked.rows, asked.repeats),
    "contestants": lambda asked: contestants.section(asked.repeats),
    "plans": lambda asked: plans.section(asked.repeats),
    "quick_plans": lambda _: quick_plans.section(),
    "ugen": lambda _: ugen.section(),
    "lake": lambda _: lake.section(),
    "lake_scale": lambda _: lake_scale.section(),
    "lake_felt": lambda _: lake_felt.section(),
    "million": lambda _: lake_felt.million_section(),
    "engines": lambda _: engines.section(),
    "engine_repairs": lambda _: engine_repairs.section(),
    "scale": lambda asked: scale.section(write=asked.write),
    "tailoring": lambda _: tailoring.section(),
    "evaluation": lambda _: evaluation.section(),
    "quiet_streams": lambda asked: quiet_streams.section(write=asked.write),
    "explore": lambda _: explore.section(),
    "monitor": lambda _: monitor.section(),
    "startup": lambda asked: startup.section(asked.repeats),
    "coverage": _coverage,
}


def main(argv: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(argv)
    done = []
    for name in asked.only:
        section = SECTIONS[name](asked)
        done.append(section)
        print(section.markdown(), end="\n\n", flush=True)
    if asked.write:
        RESULTS.write_text(_document(done, _written()), encoding="utf-8")
    bars = [bar for section in done for bar in section.bars]
    print(*bars, sep="\n")
    missed = sum(not bar.met for bar in bars)
    print(f"{len(bars) - missed} of {len(bars)} bars met")
    return 1 if missed else 0


def _document(done: Sequence[Section], written: dict[str, str]) -> str:
    """All sections; those not run stay as they were, and each says when it was measured."""
    title = "# Benchmark results\n\nWritten by `make bench ARGS=--write`; not edited by hand."
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for section in done:
        heading, _, body = section.markdown().partition("\n")
        written[heading] = f"{heading}\n\nMeasured on {today}.\n{body}".rstrip()
    return "\n\n".join([title, machine.description(), *written.values()]) + "\n"


def _written() -> dict[str, str]:
    """The sections there are, by their headings."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.rstrip() for part in parts}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure speed, memory and start-up.")
    parser.add_argument("--rows", type=_numbers, default=[1_000_000, 10_000_000], metavar="N,N")
    parser.add_argument("--only", type=_sections, default=list(SECTIONS), metavar="NAME,NAME")
    parser.add_argument("--repeats", type=_positive, default=7)
    parser.add_argument(
        "--write", action="store_true", help=f"write the sections run into {RESULTS.name}"
    )
    return parser


def _sections(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in SECTIONS:
            raise argparse.ArgumentTypeError(
                f"no section {name!r}; there are: {', '.join(SECTIONS)}"
            )
    return names


def _numbers(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
