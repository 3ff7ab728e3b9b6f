"""An example to try everything on: a biased part of Adult, and a lake of undocumented tables."""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise import atomic
from equipoise.datasets.storage import path

if TYPE_CHECKING:
    import pyarrow as pa

_SEED = 2024  # so that the example shows the same numbers everywhere
_BASE_ROWS = 3000
# Share of women above 50K that stay in the base, which gives it more bias than Adult has.
_KEPT = 0.4
# Share of the other rows that are in the lake; a smaller lake is quicker.
_USED = 0.4


@dataclass(frozen=True)
class _Table:
    """A table of the example's lake: its share of the rows, and what was done to them."""

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


def build_example(people: Path, lake: Path) -> int:
    """Cut Adult into a biased table and a lake with other rows, the same on every machine.

    Parameters
    ----------
    people, lake
        File of the table, and folder of the lake.

    Returns
    -------
    int
        Number of tables of the lake.
    """
    import numpy as np
    import pyarrow.parquet as pq

    chance = np.random.default_rng(_SEED)
    adult = pq.read_table(path("adult"))
    adult = adult.take(chance.permutation(len(adult)))
    women = np.logical_and(
        adult["sex"].to_numpy() == "Female", adult["income"].to_numpy() == ">50K"
    )
    there = np.arange(len(adult)) < _BASE_ROWS
    kept = ~women | (chance.random(len(adult)) < _KEPT)
    base = adult.filter(there & kept)
    people.parent.mkdir(parents=True, exist_ok=True)
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


FIRST_DAY = datetime.date(2026, 11, 2)
_DAYS, _DAY_ROWS, _LOST_FROM = 14, 400, 5
# Share of women above 50K that still arrive once the form loses them.
_ARRIVE = 0.2


def draw_days(table: Path, folder: Path) -> list[tuple[datetime.date, Path]]:
    """Write two weeks of days, each a random draw of a table, the same on every machine.

    From the sixth day on, most of the women above 50K do not arrive, as if a form lost them.

    Parameters
    ----------
    table
        Parquet file of the table.
    folder
        Folder to write to.

    Returns
    -------
    list[tuple[datetime.date, Path]]
        The days, and their files.
    """
    import numpy as np
    import pyarrow.parquet as pq

    chance = np.random.default_rng(_SEED)
    people = pq.read_table(table)
    women = np.logical_and(
        people["sex"].to_numpy() == "Female", people["income"].to_numpy() == ">50K"
    )
    folder.mkdir(parents=True, exist_ok=True)
    days = []
    for number in range(_DAYS):
        drawn = chance.integers(len(people), size=_DAY_ROWS)
        arrives = ~women[drawn] | (chance.random(_DAY_ROWS) < _ARRIVE)
        kept = drawn if number < _LOST_FROM else drawn[arrives]
        day = FIRST_DAY + datetime.timedelta(days=number)
        file = folder / f"{day}.parquet"
        with atomic.atomic_path(file) as place:
            pq.write_table(people.take(kept), place)
        days.append((day, file))
    return days


def _shares(weights: Sequence[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def _write(table: _Table, rows: pa.Table, base: pa.Table, file: Path) -> None:
    """Write a table as someone else would have."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    rows = pa.concat_tables([rows, base.slice(0, table.copies)]).drop_columns(table.without)
    if not table.path.endswith((".parquet", ".jsonl.gz")):
        rows = _respelled(rows, table.values)
    rows = rows.rename_columns([table.headers.get(n, n) for n in rows.column_names])
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(rows, file)
    elif file.suffix == ".gz":
        lines = (json.dumps(row) for row in rows.to_pylist())
        file.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    else:
        delimiter = {".tsv": "\t"}.get(file.suffix, ";" if "hr" in table.path else ",")
        csv.write_csv(rows, file, csv.WriteOptions(delimiter=delimiter, quoting_style="needed"))


def _respelled(rows: pa.Table, values: Mapping[str, Mapping[str, str]]) -> pa.Table:
    import pyarrow as pa

    for name in set(values) & set(rows.column_names):
        column = [values[name].get(v, v) for v in rows[name].to_pylist()]
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(column))
    return rows
