"""Tables ranked by the needed rows they offer: the same as counting them one by one."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.counts import CountRequest
from equipoise.engines.sources import locate
from equipoise.lake.lake import Lake
from equipoise.lake.loop import all_available, available
from equipoise.lake.offers.find import find
from equipoise.lake.offers.need import need_of
from equipoise.lake.offers.prospect import explore
from equipoise.options.search import SearchRequest
from lakes import (
    HEADER,
    OTHERS,
    PEOPLE,
    Plain,
    acquired,
    found,
    mapping_file,
    more,
    planned,
    read,
    share,
    write,
)

SEXES, LABELS = ("w", "m"), ("yes", "no")
CELLS = [(s, h) for s in SEXES for h in LABELS]
CODES = {"w": "F-1", "m": 'it\'s "m"', "yes": "y#=", "no": "n\\o"}


@st.composite
def people(draw):
    """A row; a key belongs to one cell, or how many rows there are would be a matter of choice."""
    cell = draw(st.integers(0, len(CELLS) - 1))
    key = draw(st.integers(0, 9)) * len(CELLS) + cell
    return (*CELLS[cell], key, draw(st.sampled_from("abc")))


row = people()


@st.composite
def lakes(draw):
    """A base, tables that share rows with it and with each other, costs, and a need."""
    base = [(s, h, i, "a") for i, (s, h) in enumerate(CELLS)] + draw(st.lists(row, max_size=6))
    tables = draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=4))
    recoded = draw(st.lists(st.booleans(), min_size=len(tables), max_size=len(tables)))
    costs = draw(
        st.lists(
            st.tuples(st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([0.0, 0.25, 2.0])),
            min_size=len(tables),
            max_size=len(tables),
        )
    )
    need = draw(st.dictionaries(st.sampled_from(CELLS), st.integers(1, 6), min_size=1))
    return base, list(zip(tables, recoded, costs, strict=True)), need


def written(folder, base, tables):
    """Write a lake, with a mapping file and conditions."""
    write(folder / "people.csv", ("sex", "hired", "id", "note"), base)
    said, costs = [], []
    for i, (rows, recoded, (table_cost, row_cost)) in enumerate(tables):
        name = f"t{i}.csv"
        costs.append(f'[tables."{name}"]\ntable_cost = {table_cost}\nrow_cost = {row_cost}\n')
        code = CODES if recoded else {v: v for v in CODES}
        lines = [(n, code[h], k, code[s]) for s, h, k, n in rows]
        header = ("Remark", "job?", "nr", "gender") if recoded else ("note", "hired", "id", "sex")
        write(folder / "lake" / name, header, lines)
        there = {"sex": {s for s, *_ in rows}, "hired": {h for _, h, *_ in rows}}
        columns = dict(zip(("note", "hired", "id", "sex"), header, strict=True))
        values = {a: {code[v]: v for v in sorted(vs)} for a, vs in there.items()}
        said.append({"name": name, "columns": columns, "values": values})
    mapping = mapping_file(folder / "mapping.toml", said)
    (folder / "lake" / "sources.toml").write_text("\n".join(costs), "utf-8")
    return mapping


def as_rows(rows):
    return [((s, h), k, n) for s, h, k, n in rows]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["strict", "multiset", "key"])
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(made=lakes())
def test_offers_shortfall_and_rows_are_those_counted_one_by_one(policy, made):
    base, tables, need = made
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        how = {"mapping": written(folder, base, tables), "dedupe": policy}
        how |= {"key": ("id",)} if policy == "key" else {}
        lake = Lake(folder / "lake")
        plan = planned(folder / "people.csv", need)
        result = found(plan, lake, folder / "people.csv", **how)
        cells = [tuple(result.need.named(i).values()) for i in range(len(need))]
        wanted = [need[c] for c in cells]

        scores, each = {}, {}
        for i, (rows, _, (table_cost, row_cost)) in enumerate(tables):
            new = Plain(as_rows(base), policy).new(as_rows(rows), cells, keep=False)
            useful = sum(min(new[c], need[c]) for c in cells)
            each[f"t{i}.csv"] = [new[c] for c in cells]
            if useful:
                scores[f"t{i}.csv"] = useful / (table_cost + row_cost * useful)
        best = sorted(scores, key=lambda t: (-scores[t], t))
        assert [r.score for r in result.offers] == pytest.approx([scores[t] for t in best])
        assert sorted(r.offer.name for r in result.offers) == sorted(best)
        for ranked in result.offers:
            assert ranked.offer.rows.tolist() == each[ranked.offer.name]

        together, union = Plain(as_rows(base), policy), Counter()
        for rows, *_ in tables:
            union += together.new(as_rows(rows), cells, keep=True)
        lacks = {name: lack.missing for name, lack in result.lacks}
        assert lacks == {
            f"sex={s}, hired={h}": need[s, h] - union[s, h]
            for s, h in cells
            if union[s, h] < need[s, h]
        }
        assert result.exit_code == (1 if lacks else 0)
        assert all(sum(lack.reasons.values()) == lack.missing for _, lack in result.lacks)

        prospect = explore(plan.counts, locate(folder / "people.csv"), lake, SearchRequest(**how))
        every = need_of(plan.add, plan.counts.request_for_rows())
        enough = zip(available(every, prospect, lambda *_: None), cells, strict=True)
        assert all(n == union[c] or need[c] <= n < union[c] for n, c in enough)
        assert all_available(plan.counts, prospect).cells().items() >= union.items()

        done = acquired(plan, lake, folder / "people.csv", folder / "out.csv", partial=True, **how)
        assert done.added == sum(min(n, union[c]) for c, n in zip(cells, wanted, strict=True))
        lines = [
            ((r["sex"], r["hired"]), int(r["id"]), r["note"]) for r in read(folder / "out.csv")
        ]
        assert lines[: len(base)] == as_rows(base)
        added = lines[len(base) :]
        assert Counter(c for c, *_ in added) == Counter(
            {c: min(n, union[c]) for c, n in need.items() if union[c]}
        )
        known = [line for rows, *_ in tables for line in as_rows(rows)]
        assert set(added) <= set(known)
        if policy == "key":
            keys = [k for _, k, _ in lines[len(base) :]]
            assert len(set(keys)) == len(keys)
            assert not set(keys) & {k for _, k, _ in as_rows(base)}
        elif policy == "strict":
            assert len(set(added)) == len(added)
            assert not set(added) & set(as_rows(base))
        else:
            most = Counter()
            for rows, *_ in tables:
                most |= Counter(as_rows(rows))
            assert not Counter(lines) - (most | Counter(as_rows(base)))


# ------------------------------------------------------------------------- one by one


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, PEOPLE)
    return tmp_path


def test_rows_that_two_tables_share_are_found_once(here):
    for name in ("a", "b", "c"):
        share(f"lake/{name}.csv", more(100, 4))
    result = found(planned("people.csv", {("Female", "yes"): 6}))
    ((cell, lack),) = result.lacks
    assert (cell, lack.need, lack.found, lack.missing) == ("sex=Female, hired=yes", 6, 4, 2)
    assert lack.reasons == {"duplicates": 2}
    assert [ranked.offer.rows.tolist() for ranked in result.offers] == [[4]] * 3


def test_tables_that_cannot_be_among_the_best_are_not_opened(here):
    for i in range(6):
        share(f"lake/t{i}.csv", more(100 * i + 100, 5 - min(i, 4)))
    result = found(planned("people.csv", {("Female", "yes"): 5}), top=1)
    assert [ranked.offer.name for ranked in result.offers] == ["t0.csv"]
    assert result.scanned == 1
    assert not result.lacks


def test_progress_names_the_tables_that_are_scanned(here):
    plan = planned("people.csv", {("Female", "yes"): 5})
    for name in "ab":
        share(f"lake/{name}.csv", more(100, 3))
    told = []
    find(plan, Lake("lake"), base=locate("people.csv"), progress=lambda *now: told.append(now))
    scans = dict.fromkeys(now for now in told if now[0].startswith("scanning"))  # slow ones repeat
    assert [*scans][:2] == [
        ("scanning a.csv", 0.0),
        ("scanning b.csv", 0.5),
    ]


def test_a_plan_that_adds_nothing_needs_nothing(here):
    share("lake/a.csv", more(100, 4))
    result = found(planned("people.csv", {}))
    assert (result.offers, result.lacks, result.exit_code) == ((), (), 0)


def test_without_the_base_duplicates_count_and_it_is_said(here):
    share("lake/a.csv", [*PEOPLE, *more(100, 2)])
    plan = planned("people.csv", {("Female", "yes"): 3})
    assert [r.offer.rows.tolist() for r in found(plan).offers] == [[2]]
    alone = found(plan, base=None)
    assert [r.offer.rows.tolist() for r in alone.offers] == [[3]]
    assert "Without the base, duplicates" in alone.sentences[-1]


def test_without_the_base_a_mapping_file_may_name_its_other_columns(here):
    write("lake/a.csv", ("nr", "gender", "job", "years"), more(100, 3))
    columns = dict(zip(HEADER, ("nr", "gender", "job", "years"), strict=True))
    values = {"sex": {"Female": "Female"}, "hired": {"yes": "yes"}}
    said = [{"name": "a.csv", "columns": columns, "values": values}]
    how = {"mapping": mapping_file("mapping.toml", said)}
    result = found(planned("people.csv", {("Female", "yes"): 3}), base=None, **how)
    assert [r.offer.rows.tolist() for r in result.offers] == [[3]]


def test_it_tells_which_columns_come_nearest_if_none_will_do(here):
    write("lake/a.csv", ("hired",), [("yes",), ("no",)])
    result = found(planned("people.csv", {("Female", "yes"): 3}))
    assert result.nearest is not None
    assert "'hired' of a.csv" in result.nearest
    assert result.exit_code == 1
    assert "No table has all needed columns" in result.text()


def test_a_free_table_is_ahead_of_all_that_cost(here):
    share("lake/a.csv", more(100, 9))
    share("lake/b.csv", more(200, 1))
    Path("lake/sources.toml").write_text('[tables."b.csv"]\ntable_cost = 0\n', "utf-8")
    result = found(planned("people.csv", {("Female", "yes"): 9}))
    assert [r.offer.name for r in result.offers] == ["b.csv", "a.csv"]
    assert math.isfinite(result.offers[0].score)


@pytest.mark.parametrize("edges", [(30.0, 50.0), (35.0,)])
def test_binned_attributes_are_found_however_numbers_are_written(here, edges):
    people = [(100 + i, "Female", "yes", str(30 + i % 3)) for i in range(12)]
    ages = ["25", " 30", "30.0", "4.9e1", "+50", "abc", "", "nan", "1e3", "050"]
    people += [(200 + i, "Female", "yes", age) for i, age in enumerate(ages)]
    share("lake/a.csv", people)
    request = CountRequest(sensitive=("age",), label="hired", bins={"age": edges})
    counts = planned("people.csv", {}, request=request).counts
    names = [v for v in counts.axes[0].values if isinstance(v, str)]
    plan = planned("people.csv", {(n, "yes"): 99 for n in names}, request=request)
    numbers = [25, 30, 30, 49, 50, 1000, 50, *([30, 31, 32] * 4)]
    by_bin = Counter(int(np.searchsorted(edges, x, "right")) for x in numbers)
    result = found(plan)
    ((offer),) = [r.offer for r in result.offers]
    order = [result.need.named(i)["age"] for i in range(len(names))]
    in_order = sorted(names, key=counts.axes[0].values.index)
    assert dict(zip(order, offer.rows.tolist(), strict=True)) == {
        name: by_bin[i] for i, name in enumerate(in_order)
    }
    assert offer.failed == 1  # abc


def test_a_table_that_lacks_the_key_is_not_used_and_does_not_stop_the_others(here):
    write("lake/a.csv", HEADER[1:], [r[1:] for r in [*more(100, 3), *OTHERS]])
    share("lake/b.csv", more(200, 2))
    result = found(planned("people.csv", {("Female", "yes"): 4}), dedupe="key", key=("id",))
    assert [r.offer.name for r in result.offers] == ["b.csv"]
    assert [(c.name, c.barred) for c in result.survey.barred] == [
        ("a.csv", "it does not have 'id'")
    ]


def test_the_result_is_the_same_in_words_and_as_data(here):
    import json

    share("lake/a.csv", more(100, 3))
    write("lake/b.csv", ("sex", "hired"), [("1", "yes"), ("2", "no")])
    result = found(planned("people.csv", {("Female", "yes"): 5}))
    data = json.loads(result.to_json())
    assert data == json.loads(json.dumps(result.to_dict()))
    assert data["offers"][0]["rows"] == {"sex=Female, hired=yes": 3}
    assert data["need"] == [{"cell": {"sex": "Female", "hired": "yes"}, "rows": 5}]
    assert data["shortfall"][0]["missing"] == 2
    assert [o["table"] for o in data["open"]] == ["b.csv"]
    assert "1 more could be used if you confirm" in result.text()
