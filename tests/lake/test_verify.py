"""Checking a finished repair: what is whole passes, and whatever is changed is found and named."""

from __future__ import annotations

import ast
import copy
import hmac
import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.counts import CountRequest, Counts
from equipoise.engines import engines
from equipoise.engines.base import Column
from equipoise.engines.sources import locate
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound
from equipoise.lake.verify import (
    checks,
    claims,
    columns,
    files,
    rows,
    tables,
    verification,
    views,
)
from equipoise.lake.verify.checks import _largest_ub, verify
from equipoise.lake.verify.rows import _surplus
from equipoise.lake.verify.tables import ListedRow
from equipoise.lake.verify.verification import CheckOutcome, Verification
from equipoise.lake.verify.views import ComparedRows, RowComparison
from equipoise.values import MISSING
from held_values import VALUES, readings
from written import write_rows

ENGINES = {name: engines()[name]() for name in ("duckdb", "memory")}
DUCKDB, MEMORY = ENGINES["duckdb"], ENGINES["memory"]
NAMES = ["plan", "base", "kept", "added", "cells", "certificate", "sources", "columns"]
COLUMNS = ["id", "sex", "hired", "hours", "note"]
NEW = {"tolerance": 0.1, "allow": "both", "cost_add": {"sex=m": 5}}
OPTIONS = {**NEW, "reference": "original"}  # of which plans are made in no time
HEADER = ",".join(files.LEDGER_COLUMNS) + "\n"
SIZES = {("m", "yes"): 8, ("m", "no"): 4, ("w", "yes"): 2, ("w", "no"): 6}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def person(number, sex, hired):
    return {
        "id": number,
        "sex": sex,
        "hired": hired,
        "hours": 20 + number / 4,
        "note": None if number % 3 else f"note, {number}",
    }


def people(sizes=SIZES, first=0):
    cells = [cell for cell, n in sizes.items() for _ in range(n)]
    return [person(first + i, *cell) for i, cell in enumerate(cells)]


def table_of(rows):
    kinds = [pa.int64(), pa.string(), pa.string(), pa.float64(), pa.string()]
    return pa.table(
        {c: pa.array([r[c] for r in rows], k) for c, k in zip(COLUMNS, kinds, strict=True)}
    )


def hashes_of(path):
    none = Counts.from_mapping({}, sensitive=["sex"], label="hired")
    request = CountRequest(sensitive=("sex",), label="hired")
    engine = MEMORY if str(path).endswith(".csv") else DUCKDB
    found = engine.rows(locate(path), request, none, rest=True, located=True)
    return found.column(found.num_columns - 1).to_pylist()


PLANS = {}
BUILT = {}


def planned(counts, options):
    """A plan as text; each is made once."""
    key = (counts.to_json(), options)
    if key not in PLANS:
        PLANS[key] = eq.plan(counts, **json.loads(options)).to_json()
    return PLANS[key]


@dataclass
class Repair:
    """A repair written by hand: rows of the cells of a plan deleted, and others added."""

    ending: str = ".csv"
    base_ending: str = ".csv"
    ledger_name: str = "ledger.csv"
    key: bytes | None = None
    engine: object = None
    options: dict = field(default_factory=lambda: dict(OPTIONS))
    base: list = field(default_factory=people)
    skip: int = 0

    def __post_init__(self):
        if self.engine is None:  # the plain one is the faster for a few rows of CSV
            names = (self.ending, self.base_ending, self.ledger_name)
            self.engine = MEMORY if all(n.endswith(".csv") for n in names) else DUCKDB
        key = repr({**vars(self), "engine": None})
        if key not in BUILT:
            self.build()
            files = {p.name: p.read_bytes() for p in Path().iterdir()}
            BUILT[key] = files, copy.deepcopy({**vars(self), "engine": None})
        files, state = BUILT[key]
        for name, content in files.items():
            Path(name).write_bytes(content)
        vars(self).update({**copy.deepcopy(state), "engine": self.engine})

    def build(self):
        write_rows(DUCKDB, table_of(self.base), f"base{self.base_ending}")
        counts = eq.count(f"base{self.base_ending}", sensitive_features=["sex"], label="hired")
        Path("plan.json").write_text(planned(counts, json.dumps(self.options)))
        self.plan = json.loads(Path("plan.json").read_text())
        self.rows, self.gone, self.came = list(self.base), [], []
        skip = self.skip
        for cell in self.plan["cells"]:
            values = (cell["group"]["sex"], cell["label"])
            ours = [r for r in self.base if (r["sex"], r["hired"]) == values]
            self.gone += ours[: cell["delete"]]
            for _ in range(cell["add"]):
                if skip:
                    skip -= 1
                    continue
                self.came.append(person(100 + len(self.came), *values))
        self.rows = [r for r in self.base if r not in self.gone] + self.came
        self.write_rows()
        self.entries = [*self.removals(), *self.additions()]
        self.write_ledger()

    def write_rows(self):
        write_rows(self.engine, table_of(self.rows), f"repaired{self.ending}")

    def hashed(self, md5):
        return md5 if self.key is None else hmac.digest(self.key, md5.encode(), "sha256").hex()

    def entry(self, action, row, source, place, md5, person):
        cell = {"sex": person["sex"], "hired": person["hired"]}
        return {
            "action": action,
            "row": row,
            "source": source,
            "snapshot": "0" * 64,
            "place": place,
            "source_hash": self.hashed(md5),
            "hash": self.hashed(md5),
            "cell": json.dumps(cell),
            "mapping": "{}",
            "cost": 1.0,
            "licence": None,
            "consent": None,
        }

    def removals(self):
        hashes = hashes_of(f"base{self.base_ending}")
        places = [self.base.index(r) for r in self.gone]
        return [self.entry("remove", None, "base", p, hashes[p], self.base[p]) for p in places]

    def additions(self):
        hashes = hashes_of(f"repaired{self.ending}")
        first = len(self.rows) - len(self.came)
        return [
            self.entry("add", first + i, "more.csv", 7 * i, hashes[first + i], r)
            for i, r in enumerate(self.came)
        ]

    def write_ledger(self):
        if not self.entries:
            return
        table = pa.Table.from_pylist(self.entries)
        for i, name in enumerate(table.column_names):  # DuckDB writes no columns of nulls
            if pa.types.is_null(table.schema.field(name).type):
                table = table.set_column(i, name, table[name].cast(pa.string()))
        write_rows(self.engine, table, self.ledger_name)

    def write_plan(self):
        Path("plan.json").write_text(json.dumps(self.plan))

    def verified(self, **options):
        return verify(
            locate(f"repaired{self.ending}"),
            locate(f"base{self.base_ending}"),
            "plan.json",
            self.ledger_name,
            engine=DUCKDB,
            hash_key=self.key,
            **options,
        )

    @property
    def added(self):
        """The number of the first entry of an added row, and the place of its row."""
        number = len(self.gone)
        return number, self.entries[number]["row"]


def broken(found):
    return [f.name for f in found.findings if not f.holds]


def sentence(found, name):
    return next(f for f in found.findings if f.name == name).sentence


# --------------------------------------------------------------------- what is as it should be


@pytest.mark.slow
def test_an_honest_repair_passes_every_check():
    repair = Repair(options=NEW)
    found = repair.verified()
    assert [f.name for f in found.findings] == NAMES
    assert broken(found) == []
    assert len(repair.gone) > 0
    assert len(repair.came) > 0
    assert (found.ok, found.exit_code, found.sentences[0]) == (True, 0, "All 8 checks hold.")
    assert "its tolerance is 0.1" in sentence(found, "certificate")


@pytest.mark.parametrize(
    ("ending", "ledger"),
    [(".csv", "ledger.parquet"), (".parquet", "ledger.jsonl"), (".jsonl", "ledger.csv")],
)
def test_ledger_and_tables_may_be_files_of_any_kind(ending, ledger):
    assert broken(Repair(ending=ending, base_ending=ending, ledger_name=ledger).verified()) == []


@pytest.mark.parametrize(
    ("base_ending", "ending"),
    [(".csv", ".parquet"), (".csv", ".jsonl"), (".parquet", ".csv"), (".jsonl", ".parquet")],
)
def test_the_repaired_table_may_be_a_file_of_another_kind_than_the_base(base_ending, ending):
    base = people()
    base[0] |= {"note": "", "hours": -0.0}
    base[1] |= {"hours": math.nan}
    base[9] |= {"hours": 1e20, "note": " "}
    options = {"tolerance": 0.3, "reference": "original"}
    repair = Repair(ending=ending, base_ending=base_ending, base=base, options=options)
    if base_ending == ".csv" and ending != ".csv":
        # The rows of a base of text stay text; here they were written with their types.
        repair.rows = [r | {"note": r["note"] or None} for r in repair.rows]
        repair.write_rows()
        repair.entries = [*repair.removals(), *repair.additions()]
        repair.write_ledger()
    assert broken(repair.verified()) == []


@pytest.mark.slow
def test_a_value_changed_in_a_file_of_another_kind_is_found():
    repair = Repair(ending=".csv", base_ending=".parquet")
    text = Path("repaired.csv").read_text()
    for was, becomes in [("21.25", "21.5"), ("21.25", "21.25_0"), ("21.25", ""), (",m,", ", m,")]:
        assert was in text
        Path("repaired.csv").write_text(text.replace(was, becomes, 1))
        assert {"kept", "added"} <= set(broken(repair.verified()))


def test_an_empty_text_is_no_missing_value_where_both_files_can_tell():
    base = people()
    base[-1] |= {"note": ""}
    repair = Repair(ending=".parquet", base_ending=".parquet", base=base)
    assert broken(repair.verified()) == []
    repair.rows = [r | {"note": r["note"] or None} for r in repair.rows]
    repair.write_rows()
    assert broken(repair.verified()) == ["kept", "added"]


def test_hashes_with_a_key_need_that_key():
    repair = Repair(key=b"secret")
    assert broken(repair.verified()) == []
    other = replace_key(repair, b"other")
    assert broken(other.verified()) == ["kept", "added"]
    assert "another table or key" in sentence(other.verified(), "added")
    with pytest.raises(InputError, match="were made with a key; give it as `hash_key`"):
        replace_key(repair, None).verified()


def replace_key(repair, key):
    other = Repair.__new__(Repair)
    other.__dict__.update({**repair.__dict__, "key": key})
    return other


def test_a_key_that_was_not_used_is_refused():
    with pytest.raises(InputError, match="made without a key; leave out `hash_key`"):
        replace_key(Repair(), b"secret").verified()


def test_a_plan_that_changes_nothing_passes_with_an_empty_ledger():
    sizes = dict.fromkeys(SIZES, 3)
    repair = Repair(base=people(sizes))
    lines = {name: pa.array([], pa.string()) for name in files.LEDGER_COLUMNS}
    pq.write_table(pa.table(lines), "ledger.parquet")
    repair.ledger_name, repair.engine = "ledger.parquet", DUCKDB
    assert broken(repair.verified()) == []
    for name in ("ledger.jsonl", "ledger.csv"):
        header = HEADER if name.endswith(".csv") else ""
        Path(name).write_text(header)
        repair.ledger_name = name
        assert broken(repair.verified()) == []


def test_the_order_of_the_rows_that_stay_is_free():
    repair = Repair()
    stay = len(repair.rows) - len(repair.came)
    repair.rows[:stay] = repair.rows[:stay][::-1]
    repair.write_rows()
    assert broken(repair.verified()) == []


def test_progress_is_told_and_rises():
    told = []
    Repair().verified(progress=lambda title, share: told.append((title, share)))
    assert [t for t, _ in told][:2] == ["reading plan.json", "reading ledger.csv"]
    assert [s for _, s in told] == sorted(s for _, s in told)


# ------------------------------------------------------------------------- the repaired table


@pytest.mark.parametrize("column", ["id", "hours", "note"])
def test_a_value_changed_in_a_row_that_stayed_is_named(column):
    repair = Repair()
    repair.rows[3] = repair.rows[3] | {column: "changed" if column == "note" else 77}
    repair.write_rows()
    found = repair.verified()
    place = repair.base.index(
        next(r for r in repair.base if r not in repair.gone and r["id"] == ids(repair)[3])
    )
    assert broken(found) == ["kept", "added"]
    assert f"Row {place} of base.csv" in sentence(found, "kept")
    assert sentence(found, "added") == "Row 3 of repaired.csv is neither in base.csv nor listed."


def ids(repair):
    return [r["id"] for r in repair.base if r not in repair.gone]


def test_a_value_changed_in_an_added_row_is_named():
    repair = Repair()
    number, place = repair.added
    repair.rows[place] = repair.rows[place] | {"hours": 1.5}
    repair.write_rows()
    found = repair.verified()
    assert broken(found) == ["added"]
    assert sentence(found, "added") == (
        f"Entry {number} of ledger.csv states row {place} of repaired.csv, which has another hash."
    )


def test_a_changed_label_is_found_in_rows_cells_and_bias():
    repair = Repair()
    repair.rows[0] = repair.rows[0] | {"hired": "no"}
    repair.write_rows()
    found = repair.verified()
    assert broken(found)[:3] == ["kept", "added", "cells"]
    assert "sex=m, hired=yes has" in sentence(found, "cells")
    assert "(short by 1)" in sentence(found, "cells")
    assert "(1 too many)" in found.findings[4].examples[1]


def test_an_added_row_swapped_with_one_that_stayed_is_named():
    repair = Repair()
    number, place = repair.added
    repair.rows[place], repair.rows[0] = repair.rows[0], repair.rows[place]
    repair.write_rows()
    found = repair.verified()
    assert "added" in broken(found)
    assert "kept" not in broken(found)
    assert found.findings[3].examples == (
        "row 0 of repaired.csv is neither in base.csv nor listed",
        f"entry {number} of ledger.csv states row {place} of repaired.csv, which has another hash",
    )


def test_a_dropped_base_row_is_named():
    repair = Repair()
    lost = repair.rows.pop(len(repair.rows) - len(repair.came) - 1)
    repair.write_rows()
    found = repair.verified()
    assert {"kept", "cells"} <= set(broken(found))
    assert sentence(found, "kept") == (
        f"Row {repair.base.index(lost)} of base.csv is neither in repaired.csv nor listed as removed."
    )


def test_a_dropped_added_row_is_named():
    repair = Repair()
    repair.rows.pop()
    repair.write_rows()
    found = repair.verified()
    assert broken(found)[:2] == ["added", "cells"]
    last = len(repair.entries) - 1
    assert f"Entry {last} of ledger.csv states row {len(repair.rows)} of repaired.csv" in sentence(
        found, "added"
    )


@pytest.mark.parametrize("what", ["extra", "duplicate of the base", "duplicate of an added row"])
def test_a_row_too_many_is_named(what):
    repair = Repair()
    extra = {"extra": person(55, "w", "yes"), "duplicate of the base": repair.rows[2]}
    repair.rows.append(extra.get(what, repair.came[0]))
    repair.write_rows()
    found = repair.verified()
    assert {"added", "cells"} <= set(broken(found))
    assert "kept" not in broken(found)
    assert sentence(found, "added") == (
        f"Row {len(repair.rows) - 1} of repaired.csv is neither in base.csv nor listed."
    )


def test_a_row_put_before_all_others_is_named_beside_the_moved_ones():
    repair = Repair()
    repair.rows.insert(0, person(55, "w", "yes"))
    repair.write_rows()
    found = repair.verified()
    finding = next(f for f in found.findings if f.name == "added")
    assert "Row 0 of repaired.csv is neither" in finding.sentence
    assert "which has another hash" in finding.examples[-1]


def test_a_table_with_other_columns_is_told_apart_by_them():
    repair = Repair()
    table = table_of(repair.rows).drop_columns("hours")
    write_rows(DUCKDB, table, "repaired.csv")
    found = repair.verified()
    assert sentence(found, "kept") == (
        "repaired.csv has different columns from base.csv: only one of them has 'hours', and "
        f"{len(repair.rows) - len(repair.came)} more."
    )
    assert "added" in broken(found)


def test_columns_that_exchanged_their_names_are_found_and_those_that_moved_are_the_same():
    repair = Repair(ending=".parquet", base_ending=".parquet")
    table = pq.read_table("repaired.parquet")
    pq.write_table(table.rename_columns(["hours", *COLUMNS[1:3], "id", "note"]), "repaired.parquet")
    assert {"kept", "added"} <= set(broken(repair.verified()))
    pq.write_table(table.select(COLUMNS[::-1]), "repaired.parquet")
    assert broken(repair.verified()) == ["added"]  # their hashes are of the columns in order


def test_a_table_without_a_counted_column_cannot_be_verified():
    repair = Repair()
    write_rows(DUCKDB, table_of(repair.rows).drop_columns("hired"), "repaired.csv")
    with pytest.raises(ColumnNotFound, match=r"column 'hired' not found in repaired\.csv"):
        repair.verified()


# --------------------------------------------------------------------------------- the base


def test_a_value_changed_in_the_base_is_named():
    repair = Repair()
    place = repair.base.index(repair.rows[2])
    repair.base[place] = repair.base[place] | {"hours": 3.25}
    write_rows(MEMORY, table_of(repair.base), "base.csv")
    found = repair.verified()
    assert broken(found) == ["kept", "added"]
    assert f"Row {place} of base.csv" in sentence(found, "kept")


def test_a_removed_row_changed_in_the_base_is_named():
    repair = Repair()
    place = repair.base.index(repair.gone[0])
    repair.base[place] = repair.base[place] | {"hours": 3.25}
    write_rows(MEMORY, table_of(repair.base), "base.csv")
    found = repair.verified()
    assert broken(found) == ["kept"]
    assert f"Row {place} of base.csv" in sentence(found, "kept")


def test_another_base_is_told_by_its_counts():
    repair = Repair()
    repair.base.append(person(50, "w", "no"))
    write_rows(MEMORY, table_of(repair.base), "base.csv")
    found = repair.verified()
    assert broken(found) == ["base", "kept"]
    assert sentence(found, "base") == "sex=w, hired=no has 7 rows of 6 in base.csv (1 too many)."


# ------------------------------------------------------------------------------- the ledger


def test_a_changed_hash_of_an_added_row_is_named():
    repair = Repair()
    number, place = repair.added
    repair.entries[number]["hash"] = "f" * 32
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["added"]
    assert sentence(found, "added") == (
        f"Entry {number} of ledger.csv states row {place} of repaired.csv, which has another hash."
    )


def test_a_changed_hash_of_a_removed_row_is_named():
    repair = Repair()
    repair.entries[0]["hash"] = "f" * 32
    repair.write_ledger()
    found = repair.verified()
    place = repair.entries[0]["place"]
    assert broken(found) == ["kept"]
    finding = found.findings[2]
    assert f"Row {place} of base.csv" in finding.sentence
    assert f"entry 0 of ledger.csv removes row {place} of base.csv" in finding.examples[1]


def test_a_changed_cell_is_named_with_the_true_one():
    repair = Repair()
    number, place = repair.added
    cell = json.loads(repair.entries[number]["cell"])
    repair.entries[number]["cell"] = json.dumps({**cell, "sex": "x"})
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["cells"]
    assert sentence(found, "cells") == (
        f"Entry {number} of ledger.csv states the cell sex=x, hired={cell['hired']}, but row {place} "
        f"of repaired.csv is of sex={cell['sex']}, hired={cell['hired']}."
    )


@pytest.mark.parametrize("cell", ["", "no JSON", "[]", '{"sex": "w"}', '{"sex": "w", "hired": {}}'])
def test_an_unreadable_cell_is_named(cell):
    repair = Repair()
    number, _ = repair.added
    repair.entries[number]["cell"] = cell
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["cells"]
    assert f"Entry {number} of ledger.csv states" in sentence(found, "cells")


def test_the_cell_of_a_removed_row_is_checked_in_the_base():
    repair = Repair()
    repair.entries[0]["cell"] = '{"sex": "w", "hired": null}'
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["cells"]
    assert "states the cell sex=w, hired=<missing>, but row" in sentence(found, "cells")
    assert "of base.csv is of sex=m" in sentence(found, "cells")


def test_a_row_taken_twice_from_a_source_is_named():
    repair = Repair()
    number, _ = repair.added
    repair.entries[number + 1]["place"] = repair.entries[number]["place"] = 3
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["sources"]
    assert sentence(found, "sources") == (
        f"Entry {number + 1} of ledger.csv takes row 3 of more.csv, which entry {number} takes as well."
    )
    repair.entries[number + 1]["source"] = "other.csv"
    repair.write_ledger()
    assert repair.verified().ok


@pytest.mark.parametrize("name", ["place", "source", "snapshot", "source_hash"])
def test_an_added_row_whose_source_is_not_told_is_named(name):
    repair = Repair()
    number, _ = repair.added
    repair.entries[number][name] = None
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["sources"]
    assert sentence(found, "sources") == (
        f"Entry {number} of ledger.csv does not say which row of which source it is."
    )


def test_an_entry_left_out_leaves_a_row_without_origin():
    repair = Repair()
    number, place = repair.added
    del repair.entries[number]
    repair.write_ledger()
    found = repair.verified()
    assert "added" in broken(found)
    assert f"Row {place} of repaired.csv is neither" in sentence(found, "added")


def test_a_removal_left_out_leaves_a_row_lost():
    repair = Repair()
    place = repair.entries.pop(0)["place"]
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["kept"]
    assert f"Row {place} of base.csv" in sentence(found, "kept")


@pytest.mark.parametrize("action", ["add", "remove"])
def test_an_entry_that_stands_twice_is_found(action):
    repair = Repair()
    number = 0 if action == "remove" else repair.added[0]
    repair.entries.append(
        {**repair.entries[number], "source": "again", "place": repair.entries[number]["place"]}
    )
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["kept" if action == "remove" else "added"]
    assert f"Entry {len(repair.entries) - 1} of ledger.csv" in found.sentences[1]
    assert f"as does entry {number}." in found.sentences[1]


@pytest.mark.parametrize("row", [None, -5, 10_000])
def test_an_entry_that_names_no_row_is_found(row):
    repair = Repair()
    number, place = repair.added
    repair.entries[number]["row"] = row
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["added"]
    assert f"Row {place} of repaired.csv is neither" in sentence(found, "added")
    last = found.findings[3].examples[-1]
    assert last.startswith(f"entry {number} of ledger.csv")
    assert last.endswith("which is not there")


def test_more_removals_than_planned_are_named_by_their_cell():
    repair = Repair()
    row = next(r for r in repair.rows if (r["sex"], r["hired"]) == ("w", "no"))
    repair.rows.remove(row)
    repair.gone.append(row)
    repair.write_rows()
    repair.entries = [*repair.removals(), *repair.additions()]
    repair.write_ledger()
    found = repair.verified()
    assert broken(found)[:2] == ["kept", "cells"]
    planned = next(
        c for c in repair.plan["cells"] if c["group"]["sex"] == "w" and c["label"] == "no"
    )
    n = planned["delete"] + 1
    assert f"sex=w, hired=no has {n} rows removed, {n - 1} planned" in sentence(found, "kept")


def test_a_partial_repair_says_which_cells_are_short_by_how_many():
    repair = Repair(skip=1)
    found = repair.verified()
    assert broken(found)[0] == "cells"
    assert not {"plan", "base", "kept", "added", "sources"} & set(broken(found))
    cell = next(c for c in repair.plan["cells"] if c["add"])
    assert sentence(found, "cells") == (
        f"sex={cell['group']['sex']}, hired={cell['label']} has {cell['after'] - 1} rows of "
        f"{cell['after']} in repaired.csv (short by 1)."
    )
    assert found.exit_code == 1


def test_a_row_replaced_by_another_of_its_cell_is_found_though_all_counts_agree():
    repair = Repair()
    row = next(r for r in repair.rows if (r["sex"], r["hired"]) == ("w", "no"))
    repair.rows.remove(row)
    repair.gone.append(row)
    repair.came.append(person(300, "w", "no"))
    repair.rows.append(repair.came[-1])
    repair.write_rows()
    repair.entries = [*repair.removals(), *repair.additions()]
    repair.write_ledger()
    assert broken(repair.verified()) == ["kept"]


def test_the_bias_of_a_partial_repair_is_held_against_the_tolerance():
    found = Repair(skip=1).verified()
    assert broken(found) == ["cells", "certificate"]
    assert "where the plan leads to" in sentence(found, "certificate")
    found = Repair(options=NEW, skip=1).verified()
    assert broken(found) == ["cells", "certificate"]
    assert "beyond the tolerance of 0.1" in sentence(found, "certificate")


def test_rows_beyond_the_plan_may_leave_the_bias_within_what_it_states():
    repair = Repair(options=NEW)
    repair.came.append(person(200, "w", "yes"))
    repair.rows.append(repair.came[-1])
    repair.write_rows()
    repair.entries = [*repair.removals(), *repair.additions()]
    repair.write_ledger()
    found = repair.verified()
    assert broken(found) == ["cells"]
    stated = repair.plan["certificate"]["max_abs_ub_after"]
    assert f"the plan states {stated:.4g}, its tolerance is 0.1" in sentence(found, "certificate")


# --------------------------------------------------------------------------------- the plan


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("additions", "additions is"),
        ("deletions", "deletions is"),
        ("n_before", "n_before is"),
        ("n_after", "n_after is"),
    ],
)
def test_changed_totals_of_a_plan_are_named(name, says):
    repair = Repair()
    repair.plan[name] += 1
    repair.write_plan()
    found = repair.verified()
    assert broken(found) == ["plan"]
    assert says in sentence(found, "plan")


@pytest.mark.parametrize("name", ["before", "add", "delete", "after"])
def test_changed_numbers_of_a_cell_are_named(name):
    repair = Repair()
    cell = repair.plan["cells"][1]
    cell[name] += 1
    repair.write_plan()
    found = repair.verified()
    assert "plan" in broken(found)
    assert f"sex={cell['group']['sex']}, hired={cell['label']}" in sentence(found, "plan")


def test_a_cell_that_adds_up_from_other_rows_than_were_counted_is_named():
    repair = Repair()
    cell = repair.plan["cells"][1]
    cell["before"] += 1
    cell["after"] += 1
    repair.write_plan()
    found = repair.verified()
    assert broken(found) == ["plan"]
    assert f"counted {cell['before'] - 1}." in sentence(found, "plan")


@pytest.mark.parametrize(("add", "delete"), [(-1, 0), (0, -1), (100, 100)])
def test_numbers_that_cannot_be_are_named_even_if_they_add_up(add, delete):
    repair = Repair()
    cell, totals = repair.plan["cells"][0], repair.plan
    totals["additions"] += add - cell["add"]
    totals["deletions"] += delete - cell["delete"]
    n_after = totals["n_after"] + (add - cell["add"]) - (delete - cell["delete"])
    totals["n_after"] = totals["certificate"]["n_after"] = n_after
    cell |= {"add": add, "delete": delete, "after": cell["before"] + add - delete}
    repair.write_plan()
    said = sentence(repair.verified(), "plan")
    assert f"adds {add} and deletes {delete} of {cell['before']} rows." in said


def test_a_cell_added_twice_or_left_out_of_a_plan_is_named():
    repair = Repair()
    cell = repair.plan["cells"].pop(0)
    repair.write_plan()
    assert "is in its counts, but not among its cells" in repair.verified().text()
    repair.plan["cells"] += [cell, cell]
    repair.write_plan()
    assert "is listed twice" in sentence(repair.verified(), "plan")


def test_a_changed_fingerprint_or_changed_counts_are_found():
    repair = Repair()
    repair.plan["fingerprint"] = "0" * 64
    repair.write_plan()
    assert "fingerprint" in sentence(repair.verified(), "plan")
    repair = Repair()
    repair.plan["counts"]["rows"][0] += 1
    repair.write_plan()
    assert {"plan", "base"} <= set(broken(repair.verified()))


@pytest.mark.slow
def test_a_consistently_forged_plan_does_not_fit_the_base():
    repair = Repair()
    forged = people({**SIZES, ("w", "yes"): 3})
    counts = eq.count(
        {k: [r[k] for r in forged] for k in COLUMNS}, sensitive_features=["sex"], label="hired"
    )
    Path("plan.json").write_text(planned(counts, json.dumps({"tolerance": 0})))
    found = repair.verified()
    assert "plan" not in broken(found)
    assert "base" in broken(found)


@pytest.mark.parametrize("stated", [0.0, 0.0999, math.nan])
def test_a_changed_certificate_is_found(stated):
    repair = Repair()
    repair.plan["certificate"]["max_abs_ub_after"] = stated
    repair.write_plan()
    found = repair.verified()
    assert broken(found) == ["certificate"]
    assert f"states a largest |UB| of {stated:.6g} after it, but its cells lead to" in sentence(
        found, "certificate"
    )


def test_a_changed_tolerance_contradicts_the_request():
    repair = Repair()
    repair.plan["certificate"]["tolerance"] = 0.5
    repair.write_plan()
    found = repair.verified()
    assert broken(found) == ["plan"]
    assert "tolerance is 0.5, its request's 0.1" in sentence(found, "plan")


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 0.0},
        {"tolerance": 0.05, "tolerance_on": "rate", "reference": "original"},
        {"tolerance": 0.1, "allow": "delete", "reference": "original"},
        {"tolerance": 0.3, "min_group": 10, "reference": "original"},
        {"tolerance": 0.1, "target": {"sex=w": {"yes": 0.8}}},
    ],
)
def test_plans_of_every_kind_are_held_to_what_they_state(options):
    repair = Repair(options=options)
    assert broken(repair.verified()) == []
    repair.plan["certificate"]["max_abs_ub_after"] += 1e-6
    repair.write_plan()
    assert broken(repair.verified()) == ["certificate"]


def test_a_changed_bias_before_is_found():
    repair = Repair()
    repair.plan["certificate"]["max_abs_ub_before"] -= 1e-6
    repair.write_plan()
    assert broken(repair.verified()) == ["certificate"]


@pytest.mark.parametrize(("plan_missing", "cells"), [(False, 4), (True, 6)])
def test_rows_that_lack_a_value_are_left_aside_unless_planned_for(plan_missing, cells):
    base = people({**SIZES, (None, "yes"): 1, (None, "no"): 3, ("m", None): 2})
    options = {"tolerance": 0.1, "plan_missing": plan_missing, "reference": "original"}
    repair = Repair(base=base, options=options)
    assert broken(repair.verified()) == []
    assert repair.plan["certificate"]["groups"] == cells // 2
    repair.rows[-1 - len(repair.came)] = repair.rows[-1 - len(repair.came)] | {"hours": 0.5}
    repair.write_rows()
    assert broken(repair.verified()) == ["kept", "added"]


def test_missing_values_that_were_refused_are_found_as_other_cells():
    repair = Repair()
    asked = repair.plan["counts"]["request"]
    asked["missing"] = asked["missing_label"] = "raise"
    repair.write_plan()
    assert broken(repair.verified()) == []
    repair.rows[0] = repair.rows[0] | {"hired": None}
    repair.write_rows()
    found = repair.verified()
    assert "sex=m, hired=<missing> has 1 rows of 0" in found.text()


def test_binned_attributes_are_counted_by_the_edges_of_the_plan():
    ages = {
        "age": [20, 30, 40, 50, 60, 70, 20, 30],
        "hired": ["y", "n", "y", "n", "y", "n", "n", "n"],
    }
    table = pa.table(ages)
    write_rows(DUCKDB, table, "base.csv")
    counts = eq.count("base.csv", sensitive_features=["age"], label="hired", bins={"age": 2})
    eq.plan(counts, tolerance=0.5).write("plan.json")
    Path("ledger.csv").write_text(HEADER)
    files = ("plan.json", "ledger.csv")
    plan = json.loads(Path("plan.json").read_text())
    assert plan["additions"] == 0
    assert verify(locate("base.csv"), locate("base.csv"), *files, engine=DUCKDB).ok
    write_rows(
        DUCKDB,
        pa.table({**ages, "age": [str(a) for a in ages["age"][:-1]] + ["old"]}),
        "repaired.csv",
    )
    found = verify(locate("repaired.csv"), locate("base.csv"), *files, engine=DUCKDB)
    assert broken(found) == ["kept", "added", "cells", "certificate"]
    assert "repaired.csv cannot be counted as the plan counts: column 'age'" in sentence(
        found, "cells"
    )


def test_rows_have_the_cells_they_are_counted_in():
    table = {
        "age": ["25", "?", None, "61"],
        "sex": ["?", "w", "w", None],
        "y": [1, 0, 1, 1],
    }
    counts = eq.count(
        table, sensitive_features=["age", "sex"], label="y", bins={"age": (30.0,)}, na=["?"]
    )
    eq.plan(counts, tolerance=5.0, plan_missing=True).write("plan.json")
    plan = files.read_plan(Path("plan.json"))
    found = claims.cells_of(pa.table(table).take(pa.array([0, 1, 2, 3, 1])), plan)
    lacking = [(MISSING, "w", "0"), (MISSING, "w", "1")]
    assert found == [("<30", MISSING, "1"), *lacking, (">=30", MISSING, "1"), lacking[0]]
    assert set(found) == set(counts.cells())


# ------------------------------------------------------------------- what cannot be verified


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "the plan plan.json cannot be read"),
        ("[]", "is not a plan of the schema equipoise.plan/1 but None"),
        ('{"schema": "equipoise.plan/9"}', "but 'equipoise.plan/9'"),
        ('{"schema": "equipoise.plan/1"}', "is damaged"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_what_is_no_plan_is_refused(text, says):
    repair = Repair()
    Path("plan.json").write_text(text)
    with pytest.raises(InputError, match=says.replace(".", r"\.")):
        repair.verified()


@pytest.mark.parametrize(
    ("where", "value"),
    [("additions", 1.5), ("additions", None), ("cells", None), ("certificate", {}), ("request", 3)],
)
def test_a_plan_of_another_shape_is_refused(where, value):
    repair = Repair()
    repair.plan[where] = value
    repair.write_plan()
    with pytest.raises(InputError, match=r"plan\.json"):
        repair.verified()


def test_a_plan_whose_counts_ask_for_other_columns_is_refused():
    repair = Repair()
    repair.plan["counts"]["request"]["sensitive"] = ["hours"]
    repair.write_plan()
    with pytest.raises(
        InputError, match="counts are of sex and hired, but its request names other columns"
    ):
        repair.verified()


def test_files_that_are_not_there_are_named():
    repair = Repair()
    Path("plan.json").unlink()
    with pytest.raises(SourceNotFound, match=r"there is no file plan\.json"):
        repair.verified()
    repair = Repair()
    Path("ledger.csv").unlink()
    with pytest.raises(SourceNotFound, match=r"ledger\.csv does not exist"):
        repair.verified()


@pytest.mark.parametrize("column", files.LEDGER_COLUMNS)
def test_a_ledger_without_a_column_is_refused(column):
    repair = Repair()
    for entry in repair.entries:
        del entry[column]
    repair.write_ledger()
    with pytest.raises(ColumnNotFound, match=rf"column '{column}' not found in .*ledger\.csv"):
        repair.verified()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"action": "replace"}, "entry 1 of ledger.csv has the action 'replace'"),
        ({"action": None}, "entry 1 of ledger.csv has the action None"),
        ({"place": "first"}, "entry 1 of ledger.csv has the row None and the place 'first'"),
        ({"place": "1.5"}, "the place '1.5'; both must be whole numbers"),
    ],
)
def test_an_entry_of_another_shape_is_named(change, says):
    repair = Repair()
    for entry in repair.entries:
        entry["place"] = str(entry["place"])
    repair.entries[1] |= change
    repair.write_ledger()
    with pytest.raises(InputError, match=says.replace(".", r"\.")):
        repair.verified()


def test_a_place_between_two_rows_is_refused():
    repair = Repair(ledger_name="ledger.parquet")
    for entry in repair.entries:
        entry["place"] = float(entry["place"])
    repair.write_ledger()
    assert repair.verified().ok
    repair.entries[1]["place"] += 0.5
    repair.write_ledger()
    with pytest.raises(InputError, match=r"entry 1 of ledger\.parquet has the row None"):
        repair.verified()


def test_a_database_is_no_ledger():
    repair = Repair(ledger_name="ledger.csv")
    Path("ledger.duckdb").write_bytes(b"")
    repair.ledger_name = "ledger.duckdb"
    with pytest.raises(InputError, match="is not a ledger"):
        repair.verified()


# ------------------------------------------------------------------------------ the result


def test_the_result_says_the_same_in_every_form():
    repair = Repair()
    repair.rows[0] = repair.rows[0] | {"hours": 3.0}
    repair.write_rows()
    found = repair.verified()
    plain = json.loads(found.to_json())
    assert plain["ok"] is False
    assert plain["sentences"][0] == "2 of 8 checks do not hold."
    assert [f["name"] for f in plain["findings"]] == NAMES
    assert plain == found.to_dict()
    for finding in found.findings:
        assert finding.sentence in str(found)
        assert len(finding.examples) <= 10
        assert finding.sentence in found.sentences
    assert found.exit_code == 1


def test_what_does_not_hold_is_said_first():
    good, bad = CheckOutcome("a", True, "Fine."), CheckOutcome("b", False, "Not fine.")
    assert Verification((good, bad)).sentences[1:] == ("Not fine.", "Fine.")


def test_no_folder_of_this_machine_is_named(tmp_path):
    repair = Repair()
    repair.rows[0] = repair.rows[0] | {"hours": 3.0}
    repair.write_rows()
    tables = (locate(tmp_path / "repaired.csv"), locate(tmp_path / "base.csv"))
    files = (tmp_path / "plan.json", tmp_path / "ledger.csv")
    assert str(tmp_path) not in verify(*tables, *files, engine=DUCKDB).to_json()


def test_it_shares_no_code_with_the_planner_and_the_acquirer():
    used = set()
    for part in (checks, claims, columns, files, rows, tables, verification, views):
        for node in ast.walk(ast.parse(Path(part.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                used |= {start + name.name for name in node.names}
    others = ("equipoise.plans", "equipoise.lake", "equipoise.measures", "equipoise.api")
    shared = {name for name in used if name.startswith(others)}
    assert "equipoise.lake.verify.files" in shared
    assert all(name.startswith("equipoise.lake.verify") for name in shared)


# --------------------------------------------------------------------------------- algebra

CELLS = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["yes", "no", "?"])),
    st.integers(1, 9),
    min_size=1,
)


@settings(max_examples=30)
@given(cells=CELLS)
def test_the_largest_bias_is_that_of_the_library(cells):
    counts = Counts.from_mapping(cells, sensitive=["g", "h"], label="y")
    table = eq.measure(counts, uncertainty=False)
    largest, where = _largest_ub(cells, with_missing=False)
    assert largest == pytest.approx(np.nanmax(np.abs(table.measured.ub)), abs=1e-12)
    assert (where is None) == (largest == 0)


@settings(max_examples=30)
@given(cells=CELLS)
def test_groups_that_lack_a_value_count_only_if_planned_for(cells):
    lacking = {(MISSING, h, y): n for (_, h, y), n in cells.items()}
    assert _largest_ub(cells | lacking, with_missing=False) == _largest_ub(
        cells, with_missing=False
    )
    named = {("none", h, y): n for (_, h, y), n in lacking.items()}
    taken = _largest_ub(cells | lacking, with_missing=True)[0]
    assert taken == pytest.approx(_largest_ub(cells | named, with_missing=False)[0], abs=1e-12)


@given(a=st.lists(st.integers(0, 5)), b=st.lists(st.integers(0, 5)))
def test_the_surplus_is_that_of_multisets(a, b):
    mine, theirs = ([ListedRow(i, "", str(v)) for i, v in enumerate(some)] for some in (a, b))
    left = [a[row.place] for row in _surplus(mine, theirs)]
    assert Counter(left) == Counter(a) - Counter(b)


ALIKE = [
    ("VARCHAR", ["", None], ["7", "07", "7.0", "nan", "NaN"]),
    ("BIGINT", ["39", "39.0", "3.9e1", "+39", "039"], ["39_0", " 39", "40", "1/2", "", "39.4"]),
    ("DOUBLE", ["0.1", "1e-1", "00.1"], ["0.10000000149", "x", "3fb999999999999a"]),
    ("DOUBLE", ["0", "-0.0"], ["-1", "~0"]),
    ("FLOAT", ["0.1", "0.10000000149011612"], ["0.11", "1e99", "x", "-1e99"]),
    ("DOUBLE", ["nan", "", None], ["inf", "-inf", "0"]),
    ("BIGINT", ["9007199254740993"], ["9007199254740992", "9007199254740993.5"]),
    ("DECIMAL(9,2)", ["1.5", "1.50"], ["1.51", "1.5.0", "15"]),
    ("DECIMAL", [f"0.{'3' * 30}", f"+00.{'3' * 30}00"], [f"0.{'3' * 29}", f"-0.{'3' * 30}", "0.3"]),
    ("DECIMAL", ["0", "-0", "+0.00", "000", "0."], ["-", ".", "100", "-100", "1.001"]),
    ("DECIMAL", ["7" * 40, f"0{'7' * 40}.0"], [f"{'7' * 39}6", f"{'7' * 40}0", f"-{'7' * 40}"]),
]


@pytest.mark.parametrize(("kind", "alike", "apart"), ALIKE)
def test_texts_are_alike_when_they_say_the_same_as_a_column_of_another_type(kind, alike, apart):
    view = ComparedRows(RowComparison((Column("x", "VARCHAR"),), {"x": kind}))
    table = pa.table({"x": pa.array([*alike, *apart], pa.string())})
    hashes = DUCKDB.read(replace(locate(table), view=view))["compared"].to_pylist()
    assert len(set(hashes[: len(alike)])) == 1
    assert len(set(hashes)) == 1 + len(apart)


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([39, None, 2**53 + 1], pa.int64()), ["39.0", "", str(2**53 + 1)]),
        (pa.array([0.1, math.inf, math.nan, -0.0], pa.float64()), ["1e-1", "inf", "nan", "0"]),
        (pa.array([0.1, 1e30], pa.float32()), ["0.1", "1e30"]),
        (pa.array([Decimal("1.50"), Decimal("-2.00")], pa.decimal128(9, 2)), ["1.5", "-2"]),
        (pa.array([True, None], pa.bool_()), ["true", ""]),
    ],
)
def test_values_and_texts_of_them_have_one_hash(column, texts):
    typed, written = pa.table({"x": column}), pa.table({"x": texts})
    kinds = [DUCKDB.schema(locate(table))[0].type for table in (typed, written)]
    found = [
        DUCKDB.read(
            replace(locate(table), view=ComparedRows(RowComparison((Column("x", a),), {"x": b})))
        )
        for table, a, b in ((typed, *kinds), (written, *kinds[::-1]))
    ]
    assert found[0] == found[1]


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.integers(0, 21), column=st.sampled_from(COLUMNS), data=st.data())
def test_any_value_changed_anywhere_in_the_repaired_table_is_found(place, column, data):
    repair = Repair()
    place %= len(repair.rows)
    was = repair.rows[place][column]
    values = {"id": st.integers(-(2**31), 2**31), "hours": st.floats(allow_nan=False, width=32)}
    becomes = data.draw(values.get(column, st.sampled_from(["m", "w", "yes", "no", "x", " "])))
    repair.rows[place] = repair.rows[place] | {column: becomes}
    repair.write_rows()
    found = repair.verified()
    assert found.ok == (was == becomes)
    if not found.ok:
        assert f"ow {place} of repaired.csv" in sentence(found, "added")


def test_many_values_are_read_as_few_are(monkeypatch):
    base = tables.CheckedTable(
        "base", locate(VALUES), DUCKDB, DUCKDB.schema(locate(VALUES)), None, None, "", None
    )
    few = {c.name: readings(columns.HeldValues(base, c)) for c in base.columns}
    monkeypatch.setattr(columns, "_MANY", 0)
    many = {c.name: readings(columns.HeldValues(base, c)) for c in base.columns}
    assert many == few
    assert [name for name, (kind, _) in few.items() if not kind] == [
        "own",
        "mixed",
        "marked",
        "words",
    ]
    held = columns.HeldValues(base, base.columns[0])
    monkeypatch.setattr(columns, "_MANY", 10)
    assert held.known({"1.5": 1, "O'Brien": 2}) == {"1.5"}
