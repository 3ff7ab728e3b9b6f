"""PlanLake: what the truth says is what the files hold."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import itertools
import json
import math
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise import datasets
from equipoise.errors import InputError

PATH = Path(__file__).parents[2] / "benchmarks" / "planlake.py"


def loaded():
    spec = importlib.util.spec_from_file_location("planlake", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


planlake = loaded()
PLAIN = planlake.PLAIN
SMALL = planlake.Options(shard_rows=(30, 90), base_share=0.02)


@pytest.fixture(scope="module", params=["adult", "credit"])
def made(request, tmp_path_factory):
    """A small lake with everything in it: (folder, truth, rows of the data set)."""
    folder = tmp_path_factory.mktemp("lake")
    # Everything on, so that nothing is left to the luck of the seed.
    busy = replace(SMALL, missing=0.7, exact_duplicates=0.8, noisy_duplicates=0.8, shared_rows=0.8)
    truth = planlake.generate(folder, seed=5, dataset=request.param, tables=40, options=busy)
    return folder, truth, pq.read_table(datasets.path(request.param)).to_pylist()


def read(path, form):
    """Rows as texts, by plain means of the standard library."""
    data = path.read_bytes()
    if form == "parquet":
        rows = pq.read_table(io.BytesIO(data)).to_pylist()
    elif form == "jsonl":
        rows = [json.loads(line) for line in data.decode().splitlines()]
    else:
        data = gzip.decompress(data) if form == "gzip" else data
        encoding = {"bom": "utf-8-sig", "latin-1": "latin-1", "utf-16": "utf-16"}.get(form, "utf-8")
        delimiter = {"semicolon": ";", "pipe": "|", "tab": "\t"}.get(form, ",")
        text = io.StringIO(data.decode(encoding), newline="")
        rows = list(csv.DictReader(text, delimiter=delimiter))
    return [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def tiny(folder, *, distractors=None, **changes):
    options = replace(PLAIN, shard_rows=(30, 60), base_share=0.02, **changes)
    return planlake.generate(
        folder, seed=1, dataset="adult", tables=6, distractors=distractors, options=options
    )


# --- the truth is true ------------------------------------------------------------------------


def test_every_cell_of_every_shard_is_the_row_that_the_truth_names(made):
    folder, truth, original = made
    for name in truth.unionable:
        table = truth.tables[name]
        rows = read(folder / "lake" / name, table.format)
        assert len(rows) == len(table.rows)
        for position, (row, number) in enumerate(zip(rows, table.rows, strict=True)):
            back = {
                base: table.values[base].get(row[here]) if base in table.values else row[here]
                for base, here in table.columns.items()
            }
            wrong = {c for c, value in back.items() if value != str(original[number][c])}
            if position in table.noisy:
                assert len(wrong) == 1
                assert not wrong & set(truth.required)
            elif position in table.blank:
                assert len(wrong) == 1
                assert wrong <= set(truth.required)
                assert row[table.columns[wrong.pop()]] == table.missing_text
            else:
                assert not wrong


def test_every_kind_of_table_and_transformation_is_there(made):
    _, truth, _ = made
    shards = [truth.tables[name] for name in truth.unionable]
    assert Counter(t.kind for t in truth.tables.values()) == {
        "shard": 24,
        "decoy": 4,
        "unrelated": 12,
    }
    assert {t.header for t in shards} == {"kept", "renamed", "opaque"}
    assert {kind for t in shards for kind in t.recoding.values()} == {
        "identity",
        "ordinary",
        "opaque",
    }
    assert {change for t in shards for change in t.noisy.values()} == {"digit", "blank", "case"}
    for seen in ("dropped", "extra", "permuted", "blank", "swapped_with"):
        assert {bool(getattr(t, seen)) for t in shards} == {True, False}, seen
    assert len({t.format for t in shards}) >= 6
    assert truth.shared_rows()


def test_at_least_half_of_the_recodings_are_opaque(made):
    _, truth, _ = made
    kinds = Counter(k for t in truth.tables.values() if t.unionable for k in t.recoding.values())
    assert kinds["opaque"] >= kinds["ordinary"] > 0


def test_a_recoding_that_changes_no_value_here_is_none(made):
    _, truth, _ = made
    for table in (truth.tables[name] for name in truth.unionable):
        for column, values in table.values.items():
            changed = any(here != base for here, base in values.items())
            assert (table.recoding[column] != "identity") == changed


def test_headers_hold_each_column_once_and_are_what_the_table_says(made):
    folder, truth, _ = made
    for name in truth.unionable:
        table = truth.tables[name]
        here = list(read(folder / "lake" / name, table.format)[0])
        assert sorted(here) == sorted([*table.columns.values(), *table.extra])
        same = {base for base, header in table.columns.items() if base == header}
        if table.header == "kept":
            assert same == set(table.columns)
        else:
            assert not same


def test_swapped_tables_have_one_header_and_contrary_codes(made):
    _, truth, _ = made
    swapped = [table for table in truth.tables.values() if table.swapped_with]
    assert len(swapped) == 4
    for table in swapped:
        other = truth.tables[table.swapped_with]
        assert other.swapped_with == table.name
        assert table.columns["sex"] == other.columns["sex"] == "sex"
        assert table.recoding["sex"] == "opaque"
        one, two = table.values["sex"], other.values["sex"]
        assert one.keys() == two.keys()
        assert all(one[code] != two[code] for code in one)


def test_copies_of_base_rows_are_no_new_rows(made):
    folder, truth, _ = made
    base = read(folder / "base.csv", "comma")
    for name in truth.unionable:
        table = truth.tables[name]
        rows = read(folder / "lake" / name, table.format)
        exact = truth.exact_duplicates(name)
        for position, at in exact.items():
            free = [c for c in table.columns if c not in table.values]
            assert all(rows[position][table.columns[c]] == base[at][c] for c in free)
        new = len(rows) - len(exact) - len(table.noisy) - len(table.blank)
        assert sum(truth.cells(name).values()) == new
        digits = sum(change == "digit" for change in table.noisy.values())
        assert sum(truth.cells(name, noisy=True).values()) == new + digits


@pytest.mark.slow
def test_lookalikes_are_new_rows_that_equal_base_rows_in_the_columns_there(tmp_path):
    options = replace(PLAIN, drop=1, shard_rows=(200, 400), missing=1)
    truth = planlake.generate(tmp_path, seed=1, dataset="adult", tables=20, options=options)
    base = read(tmp_path / "base.csv", "comma")
    original = pq.read_table(datasets.path("adult")).to_pylist()
    narrow = sorted(truth.tables.values(), key=lambda table: -table.lookalikes)[:4]
    assert narrow[0].lookalikes > 0
    for table in narrow:
        known = {tuple(row[c] for c in table.columns) for row in base}
        new = truth.new_rows(table.name)
        found = sum(tuple(str(original[r][c]) for c in table.columns) in known for r in new)
        assert table.lookalikes == found


def test_shared_rows_are_counted_once_over_several_tables(made):
    _, truth, _ = made
    apart = sum(sum(truth.cells(name).values()) for name in truth.unionable)
    together = sum(truth.distinct_cells(truth.unionable).values())
    assert apart - together == sum(len(names) - 1 for names in truth.shared_rows().values()) > 0


def test_base_lacks_rows_where_it_says_and_knows_every_value(made):
    folder, truth, original = made
    base = read(folder / "base.csv", "comma")
    here = Counter(tuple(row[c] for c in truth.required) for row in base)
    assert here == truth.base_cells()
    whole = Counter(tuple(row[c] for c in truth.required) for row in original)
    shares = {cell: here[cell] / whole[cell] for cell in whole if whole[cell] >= 500}
    few = set(truth.undersampled) & shares.keys()
    assert max(shares[c] for c in few) < min(shares[c] for c in shares.keys() - few)
    for column in truth.required:
        assert {row[column] for row in base} == {row[column] for row in original}


def test_decoys_cannot_give_the_label(made):
    folder, truth, original = made
    labels = {row[truth.label] for row in original}
    decoys = [t for t in truth.tables.values() if t.kind == "decoy"]
    assert {t.decoy for t in decoys} == {"region", "amount", "partly", "products"}
    for table in decoys:
        values = {row[truth.label] for row in read(folder / "lake" / table.name, table.format)}
        assert truth.label not in table.columns
        assert not values <= labels
        assert truth.cells(table.name) == {}


def test_costs_in_the_lake_are_those_of_the_truth(made):
    folder, truth, _ = made
    lake = folder / "lake"
    written = tomllib.loads((lake / "sources.toml").read_text("utf-8"))["tables"]
    assert written.keys() == {p.name for p in lake.iterdir()} - {"sources.toml"}
    assert written == {
        name: {key: getattr(table, key) for key in ("table_cost", "row_cost", "licence", "consent")}
        for name, table in truth.tables.items()
    }


def test_truth_is_read_back_as_it_was(made):
    folder, truth, _ = made
    assert planlake.Truth.load(folder / "truth.json") == truth


# --- making lakes -----------------------------------------------------------------------------


@pytest.mark.slow
def test_same_seed_same_bytes_and_another_seed_another_lake(tmp_path):
    lakes = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        planlake.generate(tmp_path / folder, seed=seed, dataset="adult", tables=12, options=SMALL)
        lakes.append(files(tmp_path / folder))
    assert lakes[0] == lakes[1]
    assert lakes[0][Path("base.csv")] != lakes[2][Path("base.csv")]
    assert not {*lakes[0].values()} & {*lakes[2].values()}


def test_plain_lake_holds_the_rows_as_they_are(tmp_path):
    truth = tiny(tmp_path)
    assert len(truth.unionable) == 6
    for table in truth.tables.values():
        assert all(base == here for base, here in table.columns.items())
        assert set(table.recoding.values()) == {"identity"}
        assert [*table.dropped, *table.extra, *table.noisy, *table.blank] == []
        assert not truth.exact_duplicates(table.name)


def test_one_transformation_alone_leaves_the_rest_alone(tmp_path):
    plain = tiny(tmp_path / "plain")
    renamed = tiny(tmp_path / "renamed", headers=(0, 1, 0))
    assert {t.header for t in renamed.tables.values()} == {"renamed"}
    for name, table in renamed.tables.items():
        before = read(tmp_path / "plain" / "lake" / name, "comma")
        after = read(tmp_path / "renamed" / "lake" / name, "comma")
        assert plain.tables[name].rows == table.rows
        assert [[*row.values()] for row in before] == [[*row.values()] for row in after]


def test_without_switches_off_what_is_named():
    calm = planlake.without(SMALL, "recode", "swapped_pairs")
    assert (calm.recode, calm.swapped_pairs) == (0, 0)
    assert calm.drop == SMALL.drop


def test_unrelated_tables_are_taken_over_byte_by_byte(tmp_path):
    others = tmp_path / "others"
    others.mkdir()
    (others / "a.csv").write_bytes(b"star;mass\nvega;2\n")
    truth = tiny(tmp_path / "mixed", distractors=others, unrelated=0.34)
    unrelated = [t.name for t in truth.tables.values() if t.kind == "unrelated"]
    taken = [(tmp_path / "mixed" / "lake" / name).read_bytes() for name in unrelated]
    assert len(taken) == 2
    assert taken.count(b"star;mass\nvega;2\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "iris"}, "no lake can be made of 'iris'; choose one of: adult, credit."),
        ({"sensitive": ["age"]}, "no vocabularies for sensitive column 'age'"),
        ({"tables": 5000}, "ask for fewer tables"),
        ({"tables": 0}, "leave no room for shards"),
    ],
)
def test_what_cannot_be_made_says_why(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        planlake.generate(tmp_path, **{"seed": 1, "dataset": "adult", **arguments})
    assert files(tmp_path) == {}


def test_a_lake_is_not_written_over(tmp_path):
    tiny(tmp_path)
    before = files(tmp_path)
    with pytest.raises(InputError, match="holds a lake already"):
        tiny(tmp_path, headers=(0, 1, 0))
    assert files(tmp_path) == before


# --- the least cost ---------------------------------------------------------------------------


def priced(tables, cell_of):
    """A truth of bare tables: {name: (table cost, row cost, rows)}."""
    found = {
        name: planlake.TableTruth(
            name=name,
            kind="shard",
            unionable=True,
            rows=list(rows),
            table_cost=opening,
            row_cost=row,
        )
        for name, (opening, row, rows) in tables.items()
    }
    names = [("w", "yes"), ("m", "yes")]
    return planlake.Truth("adult", 0, ("sex",), "income", [], [], names, cell_of, found)


def cheapest_by_trying(truth, need):
    """Every choice of a table for each distinct row."""
    holders = truth.holders(truth.unionable)
    wanted = [row for row in holders if truth.cell(row) in need]
    best = math.inf
    for choice in itertools.product(*([None, *holders[row]] for row in wanted)):
        got = Counter(truth.cell(r) for r, t in zip(wanted, choice, strict=True) if t)
        if all(got[cell] >= n for cell, n in need.items()):
            rows = sum(truth.tables[t].row_cost for t in choice if t)
            opened = sum(truth.tables[t].table_cost for t in set(choice) - {None})
            best = min(best, rows + opened)
    return best


@given(
    tables=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 3), st.sets(st.integers(0, 4), max_size=4)),
        min_size=1,
        max_size=3,
    ),
    cell_of=st.lists(st.integers(0, 1), min_size=5, max_size=5),
    asked=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_least_cost_is_that_of_trying_everything(tables, cell_of, asked):
    truth = priced({f"t{i}": table for i, table in enumerate(tables)}, cell_of)
    there = truth.distinct_cells(truth.unionable)
    need = dict(zip(truth.cell_names, asked, strict=True))
    found = planlake.least_cost(truth, need)
    met = {cell: min(n, there.get(cell, 0)) for cell, n in need.items()}
    assert found.shortfall == {c: need[c] - met[c] for c in need if need[c] > met[c]}
    expected = cheapest_by_trying(truth, {c: n for c, n in met.items() if n})
    assert found.cost == pytest.approx(expected)
    assert found.bound == pytest.approx(expected)


def test_a_row_that_two_tables_hold_is_paid_once_and_counts_once():
    truth = priced({"a": (1, 1, [0, 1]), "b": (1, 1, [1, 2])}, [0, 0, 0])
    assert planlake.least_cost(truth, {("w", "yes"): 2}).cost == 3
    assert planlake.least_cost(truth, {("w", "yes"): 3}).cost == 5
    assert planlake.least_cost(truth, {("w", "yes"): 4}).shortfall == {("w", "yes"): 1}
    assert planlake.least_cost(truth, {("w", "yes"): 2}, ["b"]).tables == ("b",)
    copies = priced({"a": (1, 1, [0]), "b": (1, 1, [0]), "c": (9, 1, [1])}, [0, 0])
    assert planlake.least_cost(copies, {("w", "yes"): 2}).cost == 12


def test_least_cost_takes_what_is_asked_and_pays_for_it(made):
    _, truth, _ = made
    there = truth.distinct_cells(truth.unionable)
    need = {cell: math.ceil(there.get(cell, 0) / 2) for cell in truth.undersampled}
    found = planlake.least_cost(truth, need)
    got = Counter()
    for (name, cell), n in found.taken.items():
        assert n <= truth.cells(name)[cell]
        got[cell] += n
    assert got == Counter(need)
    assert found.bound <= found.cost
    assert found.cost <= planlake.least_cost(truth, {c: there.get(c, 0) for c in need}).cost


# --- scores -----------------------------------------------------------------------------------


def test_alignment_is_averaged_over_columns_not_tables():
    true = {"a": {"sex": "g", "age": "y", "race": "r"}, "b": {"sex": "s"}}
    found = {"a": {"sex": "g", "age": "r"}, "c": {"sex": "s"}}
    precision, recall, f1 = planlake.alignment_scores(true, found)
    assert (precision, recall) == (1 / 3, 1 / 4)
    assert f1 == pytest.approx(2 / (1 / precision + 1 / recall))


def test_nothing_found_has_no_precision():
    precision, recall, f1 = planlake.alignment_scores({"a": {"sex": "g"}}, {})
    assert math.isnan(precision)
    assert (recall, f1) == (0, 0)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({"M": "Male", "F": "Female"}, "right"),
        ({" M": "Male", "F ": "Female"}, "right"),
        ({"M": "Male", "F": "Male"}, "wrong"),
        ({"M": "Male", "F": "Female", "?": "Male"}, "wrong"),
        ({"M": "Female"}, "wrong"),
        ({"M": "Male"}, "open"),
        ({"M": "Male", "F": None}, "open"),
        ({}, "open"),
        (None, "open"),
    ],
)
def test_verdicts_on_value_maps(found, verdict):
    assert planlake.value_map_verdict({"M": "Male", "F": "Female"}, found) == verdict


def test_what_has_no_map_can_only_be_left_open():
    assert planlake.value_map_verdict({}, {}) == "open"
    assert planlake.value_map_verdict({}, {"M": "Male"}) == "wrong"


# --- the lists --------------------------------------------------------------------------------


def test_lists_are_as_long_as_promised():
    ordinary = planlake.vocabularies(kind="ordinary")
    assert len(ordinary) >= 60
    assert len({v.concept for v in ordinary}) >= 8
    assert len(planlake.traps()) >= 25


def test_vocabularies_are_one_to_one_and_none_stands_twice():
    every = planlake.vocabularies()
    assert len({(v.base, v.source) for v in every}) == len(every)
    for v in every:
        assert len({s.strip() for s in v.source}) == len(v.base) == len(v.right)
        assert v.source != v.base
        assert not {s.strip() for s in v.source} & set(planlake.MISSING_TEXTS)


def test_no_pair_is_both_ordinary_and_a_trap():
    ordinary = {(v.base, frozenset(v.source)) for v in planlake.vocabularies(kind="ordinary")}
    assert not ordinary & {(t.base, frozenset(t.source)) for t in planlake.traps()}


def test_traps_and_tricky_pairs_name_their_own_values():
    for trap in planlake.traps():
        assert set(trap.open) <= set(trap.source)
        assert trap.open
    for pair in planlake.tricky():
        assert pair.right != pair.tempting
        assert sorted(pair.right.values()) == sorted(pair.base)
        assert set(pair.tempting.values()) <= set(pair.base)


@pytest.mark.parametrize("dataset", ["adult", "credit"])
def test_base_vocabularies_are_those_of_the_bundled_tables(dataset):
    table = pq.read_table(datasets.path(dataset))
    for column, concept in planlake.CONCEPTS[dataset].items():
        for vocabulary in planlake.vocabularies(concept):
            assert set(vocabulary.base) == set(table[column].unique().to_pylist())
    for column in table.column_names:
        others = planlake.other_headers(dataset, column)
        assert len(set(others)) == len(others) >= 4
        assert column not in others
