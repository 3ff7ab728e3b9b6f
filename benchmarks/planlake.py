"""PlanLake: table lakes of which everything is known, to measure how a lake is searched.

`generate` cuts a bundled data set into a biased base table and a lake. Shards of the lake hold
the remaining rows under other headers, spellings, formats and orders, mixed with copies of base
rows; between them lie decoys (the same headers with another meaning) and unrelated tables. What
was done to each table is kept, so that every answer of a tool can be held against it::

    truth = generate(folder, seed=7, dataset="adult", tables=100)

    folder/base.csv            the biased base table, headers and values as bundled
    folder/lake/table_0007.gz  ... tables; their names tell nothing of what they are
    folder/lake/sources.toml   per table: table_cost, row_cost, licence, consent
    folder/truth.json          the truth, read back by `Truth.load(path)`

The same seed and arguments give the same bytes. `Options` holds the shares of all
transformations; `PLAIN` switches all of them off, so that
``replace(PLAIN, headers=(0, 1, 0))`` is a lake with renamed headers and nothing else.

A cell is a tuple of the base's values, ``(sensitive..., label)``. Rows are known by their number
in the bundled table, so copies are copies whatever they look like:

=========================================  ==================================================
``truth.tables[name]``                     a `TableTruth`: unionable, columns, values, ...
``truth.cells(name)``                      rows per cell that are not copies of base rows
``truth.distinct_cells(names)``            the same over several tables, each row once
``truth.exact_duplicates(name)``           {position in the table: position in the base}
``least_cost(truth, need, usable)``        what the needed rows cost at least
``alignment_scores(true, found)``          precision, recall and F1 over the columns of tables
``value_map_verdict(true, found)``         "right", "wrong" or "open"
``vocabularies()``, ``traps()``,           the entries of vocabularies.toml, which were held
``tricky()``                               out from the library's own synonyms
=========================================  ==================================================

Copies of base rows are exact (but for headers, spellings and left-out columns), or noisy: a
blank, the case of letters, or one digit of a column that is neither sensitive nor the label is
changed. No exact rule finds a changed digit, so `cells` can count these rows either way. Where
columns were left out, different people may look alike; `TableTruth.lookalikes` says how many
new rows a rule on the remaining columns would take for base rows.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import tomllib
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError

Cell: TypeAlias = tuple[str, ...]
Value: TypeAlias = str | int | None
Columns: TypeAlias = dict[str, list[Value]]
Recoding: TypeAlias = Literal["identity", "ordinary", "opaque"]
Verdict: TypeAlias = Literal["right", "wrong", "open"]

LISTS = Path(__file__).resolve().parent / "vocabularies.toml"
SENSITIVE = {"adult": ("sex", "race"), "credit": ("sex", "marriage")}
LABEL = {"adult": "income", "credit": "default"}
CONCEPTS = {
    "adult": {
        "sex": "sex",
        "race": "race",
        "marital-status": "marital_status",
        "education": "education",
        "income": "income",
    },
    "credit": {
        "sex": "sex_small",
        "marriage": "marriage",
        "education": "schooling",
        "default": "yes_no",
    },
}
HEADERS = ("kept", "renamed", "opaque")
FORMATS = {  # name: how often
    "comma": 0.30,
    "semicolon": 0.12,
    "pipe": 0.08,
    "tab": 0.10,
    "quoted": 0.08,
    "bom": 0.04,
    "latin-1": 0.06,
    "utf-16": 0.03,
    "gzip": 0.06,
    "parquet": 0.09,
    "jsonl": 0.04,
}
DELIMITERS = {"semicolon": ";", "pipe": "|", "tab": "\t"}
ENCODINGS = {"bom": "utf-8-sig", "latin-1": "latin-1", "utf-16": "utf-16"}
SUFFIXES = {"tab": ".tsv", "gzip": ".csv.gz", "parquet": ".parquet", "jsonl": ".jsonl"}
MISSING_TEXTS = ("?", "NA", "", "null", "N/A")
LICENCES = ("CC-BY-4.0", "CC0-1.0", "ODbL-1.0", "OGL-UK-3.0")
LEAST_ROWS = 20  # a shard is never smaller, however many share the rows


# --- what can be asked for --------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """How often each transformation is met; shares and chances are between 0 and 1.

    `headers` weighs kept, renamed and opaque headers. `permute`, `drop`, `extra`,
    `exact_duplicates`, `noisy_duplicates`, `shared_rows` and `missing` are the chances that a
    shard has it at all; `recode` is the chance of each sensitive column and label in each
    shard. `decoys` and `unrelated` are shares of all tables, `refusals` of those without consent.
    """

    headers: tuple[float, float, float] = (0.4, 0.4, 0.2)
    permute: float = 0.5
    drop: float = 0.5
    extra: float = 0.5
    recode: float = 0.5
    opaque_share: float = 0.5  # of the recodings, rounded up
    swapped_pairs: int = 2  # pairs of shards with one header and the same codes, swapped
    formats: tuple[str, ...] = tuple(FORMATS)
    exact_duplicates: float = 0.4
    noisy_duplicates: float = 0.3
    shared_rows: float = 0.3
    missing: float = 0.3
    decoys: float = 0.1
    unrelated: float = 0.3
    refusals: float = 0.0
    base_share: float = 0.3
    base_format: Literal["csv", "parquet"] = "csv"
    concentration: float = 3.0  # of the Dirichlet mix of cells: small is skewed
    shard_rows: tuple[int, int] = (50, 3000)  # log-uniform; less where the rows do not suffice


PLAIN = Options(
    headers=(1, 0, 0),
    permute=0,
    drop=0,
    extra=0,
    recode=0,
    swapped_pairs=0,
    formats=("comma",),
    exact_duplicates=0,
    noisy_duplicates=0,
    shared_rows=0,
    missing=0,
    decoys=0,
    unrelated=0,
)


# --- what is known ----------------------------------------------------------------------------


@dataclass
class TableTruth:
    """What one table of the lake is and what was done to it."""

    name: str
    kind: Literal["shard", "decoy", "unrelated"]
    unionable: bool = False
    header: str = "kept"  # kept, renamed, opaque
    columns: dict[str, str] = field(default_factory=dict)  # base column: its header here
    values: dict[str, dict[str, str]] = field(default_factory=dict)  # column: {here: in the base}
    recoding: dict[str, Recoding] = field(default_factory=dict)  # sensitive columns and label
    rows: list[int] = field(default_factory=list)  # per row its number in the data set; -1: none
    noisy: dict[int, str] = field(default_factory=dict)  # position: what was changed
    blank: list[int] = field(default_factory=list)  # positions without a label or an attribute
    missing_text: str | None = None
    lookalikes: int = 0  # new rows that equal a base row in all columns that are here
    dropped: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    permuted: bool = False
    format: str = "comma"
    decoy: str | None = None
    swapped_with: str | None = None  # the table with the same codes the other way round
    table_cost: float = 0.0
    row_cost: float = 0.0
    licence: str = ""
    consent: bool = True

    @property
    def hardest(self) -> Recoding:
        """The hardest recoding of the columns that a plan needs."""
        order: tuple[Recoding, ...] = ("identity", "ordinary", "opaque")
        return max(self.recoding.values(), key=order.index, default="identity")


@dataclass
class Truth:
    """All that is known of a lake."""

    dataset: str
    seed: int
    sensitive: tuple[str, ...]
    label: str
    base: list[int]  # per base row its number in the data set
    undersampled: list[Cell]
    cell_names: list[Cell]
    cell_of: list[int]  # per row of the data set, a position in cell_names
    tables: dict[str, TableTruth]

    def __post_init__(self) -> None:
        self._position = {row: position for position, row in enumerate(self.base)}

    @property
    def required(self) -> tuple[str, ...]:
        return (*self.sensitive, self.label)

    @property
    def unionable(self) -> list[str]:
        return [name for name, table in self.tables.items() if table.unionable]

    def base_cells(self) -> dict[Cell, int]:
        return self._count(self.base)

    def new_rows(self, name: str, *, noisy: bool = False) -> set[int]:
        """Rows with all required values that are no copies of base rows.

        With `noisy`, a copy with a changed digit counts as new: no exact rule can tell.
        """
        table = self.tables[name]
        if not table.unionable:
            return set()
        blank = set(table.blank)
        return {
            row
            for position, row in enumerate(table.rows)
            if position not in blank
            and (row not in self._position or (noisy and table.noisy.get(position) == "digit"))
        }

    def cells(self, name: str, *, noisy: bool = False) -> dict[Cell, int]:
        return self._count(self.new_rows(name, noisy=noisy))

    def distinct_cells(self, names: Iterable[str], *, noisy: bool = False) -> dict[Cell, int]:
        """Rows per cell of several tables, a row that several have counted once."""
        return self._count(set().union(*(self.new_rows(name, noisy=noisy) for name in names)))

    def exact_duplicates(self, name: str) -> dict[int, int]:
        table = self.tables[name]
        return {
            position: self._position[row]
            for position, row in enumerate(table.rows)
            if row in self._position and position not in table.noisy
        }

    def shared_rows(self) -> dict[int, list[str]]:
        """Rows that are not in the base and in more than one table, with these tables."""
        found = self.holders(self.unionable)
        return {row: names for row, names in found.items() if len(names) > 1}

    def holders(self, names: Iterable[str], *, noisy: bool = False) -> dict[int, list[str]]:
        found: dict[int, list[str]] = defaultdict(list)
        for name in names:
            for row in sorted(self.new_rows(name, noisy=noisy)):
                found[row].append(name)
        return dict(found)

    def cell(self, row: int) -> Cell:
        return self.cell_names[self.cell_of[row]]

    def _count(self, rows: Iterable[int]) -> dict[Cell, int]:
        counted = Counter(self.cell_of[row] for row in rows)
        return {self.cell_names[code]: counted[code] for code in sorted(counted)}

    def save(self, path: Path) -> None:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["tables"] = [self._readable(name) for name in self.tables]
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text.replace('{"name":', '\n{"name":'), encoding="utf-8")

    def _readable(self, name: str) -> dict[str, Any]:
        cells = [[*cell, n] for cell, n in self.cells(name).items()]
        return {
            **asdict(self.tables[name]),
            "cells": cells,
            "exact_duplicates": len(self.exact_duplicates(name)),
        }

    @classmethod
    def load(cls, path: Path) -> Truth:
        plain = json.loads(path.read_text(encoding="utf-8"))
        plain["sensitive"] = tuple(plain["sensitive"])
        for key in ("undersampled", "cell_names"):
            plain[key] = [tuple(cell) for cell in plain[key]]
        plain["tables"] = {table["name"]: _table_truth(table) for table in plain["tables"]}
        return cls(**plain)


def _table_truth(plain: dict[str, Any]) -> TableTruth:
    known = {f.name for f in fields(TableTruth)}
    table = TableTruth(**{key: value for key, value in plain.items() if key in known})
    table.noisy = {int(position): change for position, change in table.noisy.items()}
    return table


# --- vocabularies -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Vocabulary:
    """A spelling of a concept; `source` and `base` are in the same order."""

    concept: str
    base: tuple[str, ...]
    source: tuple[str, ...]
    kind: Literal["ordinary", "opaque"]
    why: str

    @property
    def right(self) -> dict[str, str]:
        return dict(zip(self.source, self.base, strict=True))


@dataclass(frozen=True)
class Trap:
    """Vocabularies without a map that is right; the values in `open` must stay unmapped."""

    concept: str
    base: tuple[str, ...]
    source: tuple[str, ...]
    open: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Tricky:
    """Vocabularies with one right map and a tempting wrong one."""

    concept: str
    base: tuple[str, ...]
    right: dict[str, str]
    tempting: dict[str, str]
    why: str


def vocabularies(concept: str | None = None, *, kind: str | None = None) -> list[Vocabulary]:
    lists = {k: v for k, v in _lists().items() if k not in {"traps", "tricky", "headers"}}
    found = [
        Vocabulary(name, tuple(section["base"]), tuple(e["source"]), e["kind"], e["why"])
        for name, section in lists.items()
        for e in section["entries"]
    ]
    return [v for v in found if concept in {None, v.concept} and kind in {None, v.kind}]


def traps() -> list[Trap]:
    return [
        Trap(
            e["concept"],
            tuple(e["base"]),
            tuple(e["source"]),
            tuple(e.get("open", e["source"])),
            e["why"],
        )
        for e in _lists()["traps"]["entries"]
    ]


def tricky() -> list[Tricky]:
    return [
        Tricky(
            e["concept"],
            tuple(e["base"]),
            dict(zip(e["source"], e["right"], strict=True)),
            dict(zip(e["source"], e["tempting"], strict=True)),
            e["why"],
        )
        for e in _lists()["tricky"]["entries"]
    ]


def other_headers(dataset: str, column: str) -> list[str]:
    """Plausible other names of a base column."""
    known = _lists()["headers"][dataset]
    if column in known:
        return list(known[column])
    stem, number = re.fullmatch(r"(.*?)(\d+)", column).groups()
    # pay_0 is the repayment in September, pay_2 that in August: there is no pay_1
    month = max(int(number), 1) - 1
    names = ("september", "august", "july", "june", "may", "april")
    return [
        text.format(n=number, month=names[month], mon=names[month][:3])
        for text in known[stem + "{n}"]
    ]


_READ: dict[Path, dict[str, Any]] = {}


def _lists() -> dict[str, Any]:
    if LISTS not in _READ:
        _READ[LISTS] = tomllib.loads(LISTS.read_text(encoding="utf-8"))
    return _READ[LISTS]


# --- scores -----------------------------------------------------------------------------------


def alignment_scores(
    truth_map: Mapping[str, Mapping[str, str]], found_map: Mapping[str, Mapping[str, str]]
) -> tuple[float, float, float]:
    """Precision, recall and F1 of the column maps of all tables together.

    Both are ``{table: {base column: source column}}``; what is not defined is nan.

    >>> alignment_scores({"a": {"sex": "g", "age": "y"}}, {"a": {"sex": "g"}})
    (1.0, 0.5, 0.6666666666666666)
    """
    wanted = {(t, *pair) for t, columns in truth_map.items() for pair in columns.items()}
    found = {(t, *pair) for t, columns in found_map.items() for pair in columns.items()}
    right = len(wanted & found)
    return (
        _ratio(right, len(found)),
        _ratio(right, len(wanted)),
        _ratio(2 * right, len(found) + len(wanted)),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def value_map_verdict(
    truth_values: Mapping[str, str], found_values: Mapping[str, str | None] | None
) -> Verdict:
    """Whether a map of source values to base values is right, wrong or (partly) left open.

    One wrong value makes a map wrong, and so does a value that truly has no counterpart. Blanks
    around source values do not count. An empty truth (a decoy, a trap) can only be left open.

    >>> value_map_verdict({"1": "Male", "2": "Female"}, {"1": "Female", "2": "Male"})
    'wrong'
    >>> value_map_verdict({"1": "Male", "2": "Female"}, {"1": "Male"})
    'open'
    """
    wanted = {source.strip(): base for source, base in truth_values.items()}
    found = {
        source.strip(): base for source, base in (found_values or {}).items() if base is not None
    }
    if any(wanted.get(source) != base for source, base in found.items()):
        return "wrong"
    return "right" if wanted and found.keys() == wanted.keys() else "open"


# --- the least cost ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LeastCost:
    """What the needed rows cost at least, and a choice of tables that was found for it."""

    bound: float  # no choice costs less; equal to `cost` where the search came to its end
    cost: float | None
    tables: tuple[str, ...]
    taken: dict[tuple[str, Cell], int]
    shortfall: dict[Cell, int]  # rows that no usable table has; the rest is costed without them


def least_cost(
    truth: Truth,
    need: Mapping[Cell, int],
    usable: Collection[str] | None = None,
    *,
    noisy: bool = False,
    most: Mapping[str, Mapping[Cell, int]] | None = None,
    time_limit: float = 60.0,
) -> LeastCost:
    """The least cost of `need` new rows per cell from the `usable` tables (all unionable ones).

    Rows that several tables hold can be taken once: rows of one cell in the same set of tables
    are one kind, of which no more can be taken in all than there are. `most` limits what a table
    gives of a cell, where a rule about duplicates leaves out rows that only look like others.
    """
    names = truth.unionable if usable is None else sorted(usable)
    kinds = _kinds(truth, need, names, noisy=noisy)
    there: Counter[Cell] = Counter()
    for (cell, _), size in kinds.items():
        there[cell] += size
    asked = {cell: min(n, there[cell]) for cell, n in need.items() if min(n, there[cell]) > 0}
    shortfall = {cell: n - there[cell] for cell, n in need.items() if n > there[cell]}
    if not asked:
        return LeastCost(0.0, 0.0, (), {}, shortfall)
    takes = [(kind, name) for kind in kinds if kind[0] in asked for name in kind[1]]
    result = _solve(truth, asked, kinds, takes, names, time_limit, most)
    return _least_cost(truth, result, takes, names, shortfall)


def _kinds(truth, need, names, *, noisy):
    sizes: Counter[tuple[Cell, tuple[str, ...]]] = Counter()
    for row, holders in truth.holders(names, noisy=noisy).items():
        if need.get(truth.cell(row), 0) > 0:
            sizes[truth.cell(row), tuple(holders)] += 1
    return dict(sorted(sizes.items()))


def _solve(truth, asked, kinds, takes, names, time_limit, caps=None):
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    open_at = {name: len(takes) + i for i, name in enumerate(names)}
    most = [min(kinds[kind], asked[kind[0]]) for kind, _ in takes]
    entries: list[tuple[int, int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def constrain(terms: Iterable[tuple[int, float]], least: float, largest: float) -> None:
        entries.extend((len(low), variable, factor) for variable, factor in terms)
        low.append(least)
        high.append(largest)

    for cell, n in asked.items():
        constrain([(i, 1) for i, (kind, _) in enumerate(takes) if kind[0] == cell], n, np.inf)
    of_kind = defaultdict(list)
    for i, (kind, name) in enumerate(takes):
        of_kind[kind].append((i, 1))
        constrain([(i, 1), (open_at[name], -most[i])], -np.inf, 0)
    for kind, terms in of_kind.items():
        if len(terms) > 1:
            constrain(terms, -np.inf, kinds[kind])
    if caps is not None:
        of_table = defaultdict(list)
        for i, (kind, name) in enumerate(takes):
            of_table[name, kind[0]].append((i, 1))
        for (name, cell), terms in of_table.items():
            constrain(terms, -np.inf, caps.get(name, {}).get(cell, 0))
    rows, columns, factors = zip(*entries, strict=True)
    size = len(takes) + len(names)
    matrix = coo_array((factors, (rows, columns)), shape=(len(low), size)).tocsr()
    costs = [truth.tables[name].row_cost for _, name in takes]
    return milp(
        costs + [truth.tables[name].table_cost for name in names],
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(0, [*most, *[1] * len(names)]),
        integrality=1,  # rows too: of equal prices the solver may halve them
        options={"time_limit": time_limit, "mip_rel_gap": 1e-6},
    )


def _least_cost(truth, result, takes, names, shortfall):
    if result.x is None:
        bound = result.mip_dual_bound
        bound = 0.0 if bound is None or not math.isfinite(bound) else float(bound)
        return LeastCost(max(bound, 0.0), None, (), {}, shortfall)
    chosen = tuple(n for n, y in zip(names, result.x[len(takes) :], strict=True) if y > 0.5)
    taken: Counter[tuple[str, Cell]] = Counter()
    for (kind, name), x in zip(takes, result.x, strict=False):
        if round(x) > 0:
            taken[name, kind[0]] += round(x)
    paid = sum(truth.tables[name].table_cost for name in chosen)
    paid += sum(truth.tables[name].row_cost * n for (name, _), n in taken.items())
    return LeastCost(min(float(result.mip_dual_bound), paid), paid, chosen, dict(taken), shortfall)


# --- the data set, its base and its rest ------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    dataset: str
    sensitive: tuple[str, ...]
    label: str
    table: Any  # as Arrow, to write the base with its types
    values: dict[str, list[Value]]
    cell_names: list[Cell]
    cell_of: np.ndarray
    rows: np.ndarray  # each different row once
    keys: dict[str, np.ndarray]  # per column a random number for each value

    @property
    def required(self) -> tuple[str, ...]:
        return (*self.sensitive, self.label)

    def alike(self, columns: Iterable[str], rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """A number per row that is equal where the rows are equal in these columns."""
        picked = np.asarray(rows, dtype=np.int64)
        return sum((self.keys[c][picked] for c in columns), np.zeros(len(picked), dtype=np.uint64))


def _load(dataset: str, sensitive: Sequence[str] | None) -> _Source:
    import pyarrow.parquet as pq

    from equipoise import datasets

    if dataset not in LABEL:
        raise InputError(f"no lake can be made of {dataset!r}; choose one of: {', '.join(LABEL)}.")
    chosen = tuple(sensitive or SENSITIVE[dataset])
    possible = [c for c in CONCEPTS[dataset] if c != LABEL[dataset]]
    if odd := [c for c in chosen if c not in possible]:
        raise InputError(
            f"no vocabularies for sensitive column {odd[0]!r}; choose from: {', '.join(possible)}."
        )
    table = pq.read_table(datasets.path(dataset))
    values = {c: table[c].to_pylist() for c in table.column_names}
    cells = list(zip(*(values[c] for c in (*chosen, LABEL[dataset])), strict=True))
    names = sorted(set(cells))
    codes = {cell: code for code, cell in enumerate(names)}
    keys = {c: _numbered(values[c], _rng(0, "keys", i)) for i, c in enumerate(values)}
    first = np.unique(sum(keys.values(), np.zeros(len(cells), np.uint64)), return_index=True)[1]
    cell_of = np.array([codes[cell] for cell in cells])
    return _Source(
        dataset, chosen, LABEL[dataset], table, values, names, cell_of, np.sort(first), keys
    )


def _numbered(values: list[Value], rng: np.random.Generator) -> np.ndarray:
    unique, codes = np.unique(np.array(values), return_inverse=True)
    return rng.integers(1, 2**63, size=len(unique), dtype=np.uint64)[codes]


def _rng(seed: int, purpose: str, index: int = 0) -> np.random.Generator:
    # One stream for each purpose and table: switching one thing off leaves the others as they are.
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), index])


def _draw_base(source: _Source, options: Options, seed: int) -> tuple[np.ndarray, list[int]]:
    rng = _rng(seed, "base")
    by_cell = _by_cell(source, source.rows)
    large = [code for code, rows in by_cell.items() if len(rows) >= 60]
    few = sorted(rng.choice(large, size=math.ceil(len(large) / 3), replace=False).tolist())
    chosen = []
    for code, rows in by_cell.items():
        share = options.base_share * (rng.uniform(0.1, 0.35) if code in few else 1)
        # Every cell keeps a row or two, so that the base knows all values there are.
        n = max(round(share * len(rows)), min(2, len(rows)))
        chosen.append(rng.choice(rows, size=n, replace=False))
    return rng.permutation(np.concatenate(chosen)), few


def _by_cell(source: _Source, rows: np.ndarray) -> dict[int, np.ndarray]:
    codes = source.cell_of[rows]
    return {int(code): rows[codes == code] for code in np.unique(codes)}


def _sizes(shards: int, rows: int, options: Options, seed: int) -> list[int]:
    """Log-uniform sizes, with as high a limit as the rows allow."""
    place = _rng(seed, "sizes").uniform(size=shards)
    low, high = options.shard_rows
    if low * shards > 0.9 * rows:
        low = LEAST_ROWS
    if low * shards > rows:
        raise InputError(
            f"{shards} shards of {low} rows or more were asked for, {rows} rows are left beside "
            "the base; ask for fewer tables."
        )
    sizes = np.full(shards, low)
    for limit in np.geomspace(max(low, high), low, num=60):
        sizes = np.floor(low * (limit / low) ** place).astype(int)
        if sizes.sum() <= 0.95 * rows:
            break
    return [int(n) for n in sizes]


def _deal(source: _Source, pool: np.ndarray, sizes: list[int], options: Options, seed: int):
    """Disjoint sets of rows, each with its own skewed mix of cells."""
    rng = _rng(seed, "deal")
    left = {code: list(rng.permutation(rows)) for code, rows in _by_cell(source, pool).items()}
    codes = sorted(left)
    share = np.array([len(left[code]) for code in codes]) / len(pool)
    for size in sizes:
        mix = rng.dirichlet(np.maximum(options.concentration * share, 0.02))
        there = np.array([len(left[code]) for code in codes])
        take = np.minimum(rng.multinomial(size, mix), there)
        lacking = min(size, int(there.sum())) - int(take.sum())
        if lacking > 0:
            take += rng.multivariate_hypergeometric(there - take, lacking, method="marginals")
        yield [int(left[code].pop()) for code, n in zip(codes, take, strict=True) for _ in range(n)]


# --- shards -----------------------------------------------------------------------------------


@dataclass
class _Draft:
    truth: TableTruth
    columns: Columns = field(default_factory=dict)
    raw: bytes | None = None  # a file that is taken over as it is


def _shards(source, base, dealt, options, seed):
    """Drafts of all shards; copies and recodings are decided for all of them together."""
    vocabulary, pairs = _recodings(source, len(dealt), options, seed)
    partner = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    drafts = []
    for index, own in enumerate(dealt):
        rng = _rng(seed, "rows", index)
        truth = TableTruth(name=str(index), kind="shard", unionable=True)
        rows = [(row, False) for row in own + _borrowed(dealt, index, options, rng)]
        rows += _copies(base, len(own), options, rng)
        rows = [rows[i] for i in rng.permutation(len(rows))]
        truth.rows = [int(row) for row, _ in rows]
        draft = _Draft(truth)
        _choose_columns(source, draft, options, _rng(seed, "columns", index))
        noisy = [position for position, (_, is_noisy) in enumerate(rows) if is_noisy]
        _add_noise(source, draft, noisy, _rng(seed, "noise", index))
        spellings = {c: v for (i, c), v in vocabulary.items() if i == index}
        _recode(source, draft, spellings)
        truth.format = _format(options, _rng(seed, "format", index))
        _leave_blank(source, draft, base, options, _rng(seed, "missing", index))
        _add_columns(draft, options, _rng(seed, "extra", index))
        swapped = index in partner
        truth.header = "kept" if swapped else _header_kind(options, _rng(seed, "headers", index))
        truth.swapped_with = str(partner[index]) if swapped else None
        _permute(draft, options, _rng(seed, "order", index))
        _rename(source.dataset, draft, source.required, _rng(seed, "names", index))
        _count_lookalikes(source, draft, base)
        drafts.append(draft)
    return drafts


def _borrowed(dealt, index, options, rng):
    """Rows of other shards that this one has as well."""
    if rng.random() >= options.shared_rows or len(dealt) < 2:
        return []
    other = dealt[(index + 1 + int(rng.integers(len(dealt) - 1))) % len(dealt)]
    n = min(len(other), max(1, round(rng.uniform(0.02, 0.2) * len(dealt[index]))))
    return [int(row) for row in rng.choice(other, size=n, replace=False)]


def _copies(base, size, options, rng):
    """Base rows to mix in, each with whether it is changed a little."""
    exact = rng.random() < options.exact_duplicates
    noisy = rng.random() < options.noisy_duplicates
    numbers = [max(1, round(rng.uniform(0.02, 0.25) * size)) * wanted for wanted in (exact, noisy)]
    total = min(sum(numbers), len(base))
    rows = rng.choice(base, size=total, replace=False)
    return [(int(row), i >= numbers[0]) for i, row in enumerate(rows)]


def _choose_columns(source, draft, options, rng):
    names = list(source.values)
    free = [c for c in names if c not in source.required]
    if rng.random() < options.drop:
        n = int(rng.integers(1, max(2, round(0.4 * len(free)))))
        gone = set(rng.choice(free, size=n, replace=False).tolist())
        draft.truth.dropped = [c for c in names if c in gone]
        names = [c for c in names if c not in gone]
    for name in names:
        column = source.values[name]
        draft.columns[name] = [column[row] for row in draft.truth.rows]


def _add_noise(source, draft, positions, rng):
    free = [c for c in draft.columns if c not in source.required]
    texts = [c for c in free if isinstance(source.values[c][0], str)]
    digits = [c for c in free if c not in texts]
    for position in positions:
        change = str(rng.choice(["digit", "blank", "case"])) if texts else "digit"
        column = draft.columns[str(rng.choice(digits if change == "digit" else texts))]
        value = column[position]
        changed = {
            "digit": lambda v: _other_digit(int(v), rng),
            "blank": lambda v: f"{v} ",
            "case": lambda v: v.upper() if v.upper() != v else v.lower(),
        }[change](value)
        if changed == value:  # '?' has no case
            change, changed = "blank", f"{value} "
        column[position] = changed
        draft.truth.noisy[position] = change


def _other_digit(number: int, rng: np.random.Generator) -> int:
    text = str(abs(number))
    at = int(rng.integers(len(text)))
    digits = [d for d in "0123456789" if d != text[at] and (d != "0" or at > 0 or len(text) == 1)]
    changed = int(text[:at] + str(rng.choice(digits)) + text[at + 1 :])
    return -changed if number < 0 else changed


def _recodings(source, shards, options, seed):
    """Spellings by (shard, column), and the pairs of shards with swapped codes."""
    rng = _rng(seed, "recodings")
    concepts = {c: CONCEPTS[source.dataset][c] for c in source.required}
    swaps = _swaps(concepts[source.sensitive[0]])
    free = rng.permutation(shards)
    number = min(options.swapped_pairs, shards // 2) if swaps else 0
    pairs = [(int(free[2 * i]), int(free[2 * i + 1])) for i in range(number)]
    slots = [(i, c) for i in range(shards) for c in concepts if rng.random() < options.recode]
    chosen = {}
    for k, pair in enumerate(pairs):
        for shard, vocabulary in zip(pair, swaps[k % len(swaps)], strict=True):
            chosen[shard, source.sensitive[0]] = vocabulary
    rest = [slot for slot in slots if slot not in chosen]
    opaque = math.ceil(options.opaque_share * (len(rest) + len(chosen))) - len(chosen)
    for k, at in enumerate(rng.permutation(len(rest))):
        kind = "opaque" if k < opaque else "ordinary"
        possible = vocabularies(concepts[rest[at][1]], kind=kind)
        chosen[rest[at]] = possible[int(rng.integers(len(possible)))]
    return chosen, pairs


def _swaps(concept: str) -> list[tuple[Vocabulary, Vocabulary]]:
    codes = vocabularies(concept, kind="opaque")
    return [
        (a, b)
        for i, a in enumerate(codes)
        for b in codes[i + 1 :]
        if a.source == b.source[::-1] and len(a.source) == 2
    ]


def _recode(source, draft, spellings):
    truth = draft.truth
    for name in source.required:
        column = draft.columns[name]
        chosen = spellings.get(name)
        truth.recoding[name] = chosen.kind if chosen else "identity"
        to = (
            dict(zip(chosen.base, chosen.source, strict=True))
            if chosen
            else {value: value for value in set(column)}
        )
        draft.columns[name] = [to[value] for value in column]


def _leave_blank(source, draft, base, options, rng):
    """Blank some required values of new rows, and note the maps of the values that remain."""
    truth = draft.truth
    if rng.random() < options.missing:
        truth.missing_text = str(rng.choice(MISSING_TEXTS))
        known = set(base.tolist())
        new = [position for position, row in enumerate(truth.rows) if row not in known]
        n = max(1, round(rng.uniform(0.01, 0.1) * len(new)))
        truth.blank = sorted(rng.choice(new, size=min(n, len(new)), replace=False).tolist())
        for position in truth.blank:
            label = rng.random() < 0.7
            name = source.label if label else str(rng.choice(source.sensitive))
            # What holds no texts for missing values holds nulls.
            typed = truth.format in {"parquet", "jsonl"}
            draft.columns[name][position] = (
                (truth.missing_text or None) if typed else truth.missing_text
            )
    for name in source.required:
        original = source.values[name]
        pairs = zip(draft.columns[name], truth.rows, strict=True)
        seen = {value: original[row] for value, row in pairs if value != truth.missing_text}
        seen.pop(None, None)
        truth.values[name] = {value: seen[value] for value in sorted(seen)}
        if all(value == seen[value] for value in seen):  # the spellings that differ are not here
            truth.recoding[name] = "identity"


def _permute(draft, options, rng):
    names = list(draft.columns)
    if rng.random() < options.permute:
        order = [names[i] for i in rng.permutation(len(names))]
        draft.truth.permuted = order != names
        draft.columns = {name: draft.columns[name] for name in order}


def _count_lookalikes(source, draft, base):
    truth = draft.truth
    known, blank = set(base.tolist()), set(truth.blank)
    new = [r for i, r in enumerate(truth.rows) if r not in known and i not in blank]
    columns = list(truth.columns)
    alike = np.isin(source.alike(columns, new), source.alike(columns, base))
    truth.lookalikes = int(alike.sum())


def _format(options: Options, rng: np.random.Generator) -> str:
    weights = np.array([FORMATS[name] for name in options.formats])
    return str(rng.choice(options.formats, p=weights / weights.sum()))


# --- headers and columns beside ---------------------------------------------------------------

PREFIXES = ("", "", "", "emp_", "person_", "t_", "src_", "p_")
STYLES: dict[str, Callable[[list[str]], str]] = {
    "snake": "_".join,
    "camel": lambda words: words[0] + "".join(w.capitalize() for w in words[1:]),
    "pascal": lambda words: "".join(w.capitalize() for w in words),
    "upper": lambda words: "_".join(words).upper(),
    "title": lambda words: " ".join(w.capitalize() for w in words),
    "kebab": "-".join,
    "dotted": ".".join,
}
OPAQUE = ("c{0}", "col_{0:02d}", "X{0}", "field{0}", "V{0:03d}", "attr_{0}", "F{0:02d}")


def _header_kind(options: Options, rng: np.random.Generator) -> str:
    weights = np.array(options.headers, dtype=float)
    return str(rng.choice(HEADERS, p=weights / weights.sum()))


def _rename(dataset, draft, required, rng):
    """Give the columns the names that the table's kind of header asks for."""
    truth = draft.truth
    names = list(draft.columns)
    if truth.header == "opaque":
        pattern = str(rng.choice(OPAQUE))
        new = {name: pattern.format(i) for i, name in enumerate(names, start=1)}
    elif truth.header == "renamed":
        new = _renamed(dataset, names, set(truth.extra), required, rng)
    else:
        new = {name: name for name in names}
    draft.columns = {new[name]: column for name, column in draft.columns.items()}
    truth.columns = {name: new[name] for name in names if name not in truth.extra}
    truth.extra = [new[name] for name in truth.extra]


def _renamed(dataset, names, extra, required, rng):
    style = str(rng.choice(list(STYLES)))
    prefix = str(rng.choice(PREFIXES)) if style in {"snake", "upper"} else ""
    new: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        others = [] if name in extra else other_headers(dataset, name)
        chance = 0.85 if name in required else 0.65
        text = str(rng.choice(others)) if others and rng.random() < chance else name
        styled = _styled(text, style, prefix)
        for other in (name, *others):  # one word in small letters may not change; two may clash
            if styled.lower() not in taken and (styled != name or not others):
                break
            styled = _styled(other, style, prefix)
        new[name] = styled
        taken.add(styled.lower())
    return new


def _styled(text: str, style: str, prefix: str) -> str:
    words = [word.lower() for word in re.split(r"[-_ ]", text)]
    styled = STYLES[style](words)
    return (prefix.upper() if style == "upper" else prefix) + styled


SURNAMES = ("Müller", "García", "Dupré", "Søndergaard", "Nuñez", "Böhm", "O'Neil", "Castañeda")
REMARKS = (
    "called twice; no answer",
    'said "later", see file',
    "moved | new address",
    "complete, checked",
    "",
    "waiting for papers\tsince May",
)


def _add_columns(draft, options, rng):
    """Columns that have nothing to do with the base."""
    truth = draft.truth
    if rng.random() >= options.extra:
        return
    rows = len(truth.rows)
    start = int(rng.integers(1000, 900_000))
    possible: dict[str, Callable[[], list[Value]]] = {
        "record_id": lambda: list(range(start, start + rows)),
        "surname": lambda: rng.choice(SURNAMES, size=rows).tolist(),
        "remarks": lambda: rng.choice(REMARKS, size=rows).tolist(),
        "batch": lambda: [f"B{start % 97:02d}"] * rows,
        "score": lambda: [f"{x:.3f}" for x in rng.normal(size=rows)],
        "branch": lambda: [f"branch {i}" for i in rng.integers(1, 30, size=rows)],
        "entered_on": lambda: [f"20{y:02d}-03-{y:02d}" for y in rng.integers(10, 24, size=rows)],
    }
    names = [str(n) for n in rng.choice(list(possible), size=rng.integers(1, 5), replace=False)]
    if truth.format in {"latin-1", "utf-16"} and "surname" not in names:
        names.append("surname")  # an encoding shows only in letters beyond ASCII
    for name in names:
        draft.columns[name] = possible[name]()
        truth.extra.append(name)


# --- decoys and unrelated tables --------------------------------------------------------------

REGIONS = ("North", "South", "East", "West", "Centre")
PARTLY = {
    "adult": ("<=50K", "50K-75K", "75K-100K", ">100K"),
    "credit": ("yes", "no", "disputed", "written off"),
}
SIZES = ("M", "F", "XL", "S", "K2", "Male plug", "Female plug")
CONTESTS = ("White", "Black", "married", "single", "Rock 10K", "Forest run", "Harbour mile")


def _decoys(source, number, seed, options):
    kinds = ("region", "amount", "partly", "products", "without label")
    for index in range(number):
        rng = _rng(seed, "decoys", index)
        truth = TableTruth(name=f"decoy {index}", kind="decoy", decoy=kinds[index % len(kinds)])
        truth.format = _format(options, rng)
        rows = rng.choice(source.rows, size=int(rng.integers(60, 600)), replace=False)
        truth.rows = [-1] * len(rows)
        draft = _Draft(truth)
        if truth.decoy == "products":
            draft.columns = _products(source, len(rows), rng)
        else:
            _misleading(source, draft, rows, rng)
        yield draft


def _misleading(source, draft, rows, rng):
    """Real rows whose label is something else, or not there."""
    truth = draft.truth
    label = source.label
    draft.columns = {c: [values[row] for row in rows] for c, values in source.values.items()}
    if truth.decoy == "region":
        draft.columns[label] = rng.choice(REGIONS, size=len(rows)).tolist()
    elif truth.decoy == "amount":
        draft.columns[label] = rng.integers(8_000, 180_000, size=len(rows)).tolist()
    elif truth.decoy == "partly":
        draft.columns[label] = rng.choice(PARTLY[source.dataset], size=len(rows)).tolist()
    else:
        del draft.columns[label]
        truth.dropped = [label]
    truth.columns = {c: c for c in source.values if c != label}
    for name in source.sensitive:
        truth.recoding[name] = "identity"
        truth.values[name] = {value: value for value in sorted(set(draft.columns[name]))}


def _products(source, rows, rng):
    """A catalogue under the base's headers; no column means what the base means."""
    texts = {source.sensitive[0]: SIZES, source.sensitive[-1]: CONTESTS}
    columns: Columns = {}
    for name, values in source.values.items():
        if name == source.label:
            columns[name] = [f"{x:.2f}" for x in rng.uniform(1, 90, size=rows)]
        elif isinstance(values[0], str):
            columns[name] = rng.choice(texts.get(name, _words(rng, 8)), size=rows).tolist()
        else:
            columns[name] = rng.integers(0, 10_000, size=rows).tolist()
    return columns


TOPICS = {
    "rivers": ("river", "length_km", "mouth", "basin", "gauge"),
    "recipes": ("dish", "minutes", "main_ingredient", "course", "portions"),
    "stars": ("star", "magnitude", "constellation", "distance_ly", "spectrum"),
    "ships": ("vessel", "tonnage", "port", "built", "flag"),
    "bridges": ("bridge", "span_m", "type", "opened", "crossing"),
    "songs": ("title", "length_s", "artist", "released", "genre"),
    "crops": ("crop", "yield_t", "soil", "season", "field"),
    "parts": ("part_no", "weight_g", "material", "supplier", "stock"),
}
SYLLABLES = ("ba", "den", "kor", "li", "mas", "no", "per", "qui", "ro", "sal", "tun", "vel", "zo")


def _words(rng: np.random.Generator, number: int) -> list[str]:
    return ["".join(rng.choice(SYLLABLES, size=rng.integers(2, 4))) for _ in range(number)]


def _unrelated(number, distractors, seed, options):
    files = _distractor_files(distractors)
    chosen = _rng(seed, "distractors").permutation(len(files))[:number]
    for at in chosen:
        name = f"unrelated {files[at].name}"
        truth = TableTruth(name=name, kind="unrelated", format="as found")
        yield _Draft(truth, raw=files[at].read_bytes())
    for index in range(number - len(chosen)):
        rng = _rng(seed, "unrelated", index)
        truth = TableTruth(name=f"unrelated {index}", kind="unrelated")
        truth.format = _format(options, rng)
        yield _Draft(truth, columns=_topic(rng))


def _distractor_files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise InputError(f"no CSV files in {folder.name!r} to mix in; name a folder that has some.")
    return files


def _topic(rng: np.random.Generator) -> Columns:
    rows = int(rng.integers(10, 300))
    columns: Columns = {}
    for name in TOPICS[str(rng.choice(list(TOPICS)))]:
        kind = rng.random()
        if kind < 0.4:
            columns[name] = rng.choice(_words(rng, 12), size=rows).tolist()
        elif kind < 0.7:
            columns[name] = rng.integers(0, 5000, size=rows).tolist()
        else:
            columns[name] = [f"{x:.2f}" for x in rng.lognormal(3, 1, size=rows)]
    return columns


# --- files ------------------------------------------------------------------------------------


def _encoded(draft: _Draft) -> bytes:
    kind = draft.truth.format
    if kind == "parquet":
        return _parquet(draft.columns)
    if kind == "jsonl":
        return _json_lines(draft.columns)
    text = _delimited(draft.columns, DELIMITERS.get(kind, ","), quoted=kind == "quoted")
    try:
        data = text.encode(ENCODINGS.get(kind, "utf-8"))
    except UnicodeEncodeError:  # other scripts are not in Latin-1
        draft.truth.format = "comma"
        return text.encode()
    return gzip.compress(data, mtime=0) if kind == "gzip" else data


def _delimited(columns: Columns, delimiter: str, *, quoted: bool) -> str:
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _parquet(columns: Columns) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({name: _typed(column) for name, column in columns.items()}), out)
    return out.getvalue()


def _json_lines(columns: Columns) -> bytes:
    typed = [_typed(column) for column in columns.values()]
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*typed, strict=True))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _typed(column: list[Value]) -> list[Value]:
    """Whole numbers as such, also those written as text; columns of both as text."""
    if all(v is None or (str(v).isdecimal() and str(int(v)) == str(v)) for v in column):
        return [None if v is None else int(v) for v in column]
    if all(v is None or isinstance(v, int) for v in column):
        return column
    return [None if v is None else str(v) for v in column]


def _write_base(source: _Source, base: np.ndarray, folder: Path, kind: str) -> None:
    import pyarrow.parquet as pq

    if kind == "parquet":
        pq.write_table(source.table.take(base), folder / "base.parquet")
        return
    columns = {c: [values[row] for row in base] for c, values in source.values.items()}
    (folder / "base.csv").write_text(_delimited(columns, ",", quoted=False), encoding="utf-8")


def _write_lake(drafts: list[_Draft], lake: Path, seed: int) -> dict[str, TableTruth]:
    """Write the tables under names that tell nothing, in an order that tells nothing."""
    order = _rng(seed, "file names").permutation(len(drafts))
    names: dict[str, str] = {}
    tables = {}
    for number, at in enumerate(order):
        draft = drafts[at]
        data = _encoded(draft) if draft.raw is None else draft.raw
        old = draft.truth.name
        draft.truth.name = f"table_{number:04d}{SUFFIXES.get(draft.truth.format, '.csv')}"
        names[old] = draft.truth.name
        (lake / draft.truth.name).write_bytes(data)
        tables[draft.truth.name] = draft.truth
    for truth in tables.values():
        if truth.swapped_with is not None:
            truth.swapped_with = names[truth.swapped_with]
    return tables


def _price(tables: dict[str, TableTruth], options: Options, seed: int) -> None:
    rng = _rng(seed, "costs")
    for truth in tables.values():
        truth.table_cost = round(float(np.exp(rng.uniform(0, np.log(50)))), 2)
        truth.row_cost = round(float(rng.uniform(0.05, 2)), 2)
        truth.licence = str(rng.choice(LICENCES))
        truth.consent = bool(rng.random() >= options.refusals)


def _sources_toml(tables: dict[str, TableTruth]) -> str:
    return "\n".join(
        f'[tables."{name}"]\n'
        f"table_cost = {truth.table_cost}\n"
        f"row_cost = {truth.row_cost}\n"
        f'licence = "{truth.licence}"\n'
        f"consent = {str(truth.consent).lower()}\n"
        for name, truth in tables.items()
    )


# --- all of it --------------------------------------------------------------------------------


def generate(
    folder: Path,
    *,
    seed: int,
    dataset: Literal["adult", "credit"],
    tables: int = 100,
    distractors: Path | None = None,
    sensitive: Sequence[str] | None = None,
    options: Options | None = None,
) -> Truth:
    """Write a base and a lake of `tables` tables into `folder` and say what they are.

    `distractors` is a folder of CSV files to take unrelated tables from; where it has too few,
    or none is named, they are made up. `sensitive` defaults to sex and race (Adult) or sex and
    marriage (Credit).
    """
    options = options or Options()
    decoys, unrelated = round(options.decoys * tables), round(options.unrelated * tables)
    shards = tables - decoys - unrelated
    if shards < 1:
        raise InputError(
            f"{tables} tables with {decoys} decoys and {unrelated} unrelated ones leave no room "
            "for shards; ask for more tables or smaller shares."
        )
    lake = folder / "lake"
    if lake.exists() and any(lake.iterdir()):
        raise InputError(f"{folder.name!r} holds a lake already; name a new or empty folder.")
    source = _load(dataset, sensitive)
    base, few = _draw_base(source, options, seed)
    pool = np.setdiff1d(source.rows, base)
    sizes = _sizes(shards, len(pool), options, seed)
    dealt = list(_deal(source, pool, sizes, options, seed))
    drafts = _shards(source, base, dealt, options, seed)
    drafts += _decoys(source, decoys, seed, options)
    drafts += _unrelated(unrelated, distractors, seed, options)
    lake.mkdir(parents=True, exist_ok=True)
    _write_base(source, base, folder, options.base_format)
    written = _write_lake(drafts, lake, seed)
    _price(written, options, seed)
    (lake / "sources.toml").write_text(_sources_toml(written), encoding="utf-8")
    truth = Truth(
        dataset=dataset,
        seed=seed,
        sensitive=source.sensitive,
        label=source.label,
        base=base.tolist(),
        undersampled=[source.cell_names[code] for code in few],
        cell_names=source.cell_names,
        cell_of=source.cell_of.tolist(),
        tables=written,
    )
    truth.save(folder / "truth.json")
    return truth


def without(options: Options, *transformations: str) -> Options:
    """The options with some transformations switched off, as `PLAIN` has them."""
    return replace(options, **{name: getattr(PLAIN, name) for name in transformations})
