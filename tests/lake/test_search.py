"""Union search: what can be put below a table is found, whatever files and columns are called."""

from __future__ import annotations

import csv
import os
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.profiling import Profile, Profiler
from equipoise.errors import InputError
from equipoise.lake.tables import _candidates
from equipoise.lake.tables._similarity import Parts, Rarity, SearchColumns, compare, value_overlap
from equipoise.lake.tables._terms import MOST_WORDS, TOKEN, WORD, column_terms, term_number, words
from equipoise.lake.tables.index import Index, refresh
from equipoise.lake.tables.search import search

PLANTS = ["apple", "pear", "cherry", "plum", "quince", "medlar", "fig", "walnut"]
SOILS = ["loam", "clay", "sand", "peat"]
CITIES = ["Oslo", "Lima", "Quito", "Dakar", "Hanoi", "Perth", "Turin", "Ghent"]
TRADES = ["baker", "smith", "weaver", "mason", "cooper"]


def orchard(seed, rows=20):
    rng = random.Random(seed)
    return {
        "Plant": rng.choices(PLANTS, k=rows),
        "Soil": rng.choices(SOILS, k=rows),
        "Height": [f"{rng.gauss(4, 1):.2f}" for _ in range(rows)],
    }


def people(seed, rows=20):
    rng = random.Random(seed)
    return {
        "City": rng.choices(CITIES, k=rows),
        "Trade": rng.choices(TRADES, k=rows),
        "Income": [str(rng.randint(10_000, 90_000)) for _ in range(rows)],
    }


def diseases(seed, rows=20):
    """About plants too, but of other columns."""
    rng = random.Random(seed)
    return {
        "Plant": rng.choices(PLANTS, k=rows),
        "Pathogen": rng.choices(["scab", "rust", "mildew", "canker"], k=rows),
        "Remedy": rng.choices(["copper", "sulphur", "pruning"], k=rows),
        "Season": rng.choices(["spring", "autumn"], k=rows),
    }


TABLES = {
    **{f"orchard{i}": orchard(i) for i in range(4)},
    **{f"diseases{i}": diseases(i) for i in range(4)},
    **{f"people{i}": people(i) for i in range(12)},
}
QUERY = orchard(99)


def profile(table):
    profiler = Profiler(list(table), ["VARCHAR"] * len(table))
    profiler.add([pa.array(values, pa.string()) for values in table.values()])
    return profiler.profile()


def parts(ours, theirs, rarity=None) -> Parts:
    """Compare every two columns; by default no word is rarer than another."""
    rarity = rarity or Rarity(0, np.empty(0, np.uint64), np.empty(0, np.int64))
    return compare(SearchColumns.of(ours), SearchColumns.of(theirs), rarity)


def write(folder, tables):
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    return folder


def indexed(folder):
    path = folder.parent / f"{folder.name}.duckdb"
    refresh(path, [str(folder)], engine=DuckDBEngine())
    return Index(path, [str(folder)])


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    index = indexed(write(tmp_path_factory.mktemp("lakes") / "lake", TABLES))
    yield index
    index.close()


def names(hits):
    return [hit.table.name.removesuffix(".csv") for hit in hits]


# ----------------------------------------------------------------------------- what is found


def test_unionable_tables_come_before_those_of_the_same_topic_and_the_rest(lake):
    found = names(search(lake, profile(QUERY), top=20))
    assert {name[:-1] for name in found[:4]} == {"orchard"}
    assert {name[:-1] for name in found[4:8]} == {"diseases"}


def test_scores_are_shares_and_fall(lake):
    hits = search(lake, profile(QUERY), top=20)
    scores = [hit.score for hit in hits]
    assert all(0 < score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= match.similarity <= 1 for hit in hits for match in hit.columns)


def test_a_table_is_its_own_best_match(lake):
    (hit,) = search(lake, profile(TABLES["people3"]), top=1)
    assert names([hit]) == ["people3"]
    assert hit.score == pytest.approx(1)


def test_an_excluded_file_is_not_found(lake):
    own = next(t.snapshot for t in lake.tables() if t.name == "people3.csv")
    found = names(search(lake, profile(TABLES["people3"]), top=30, exclude=[own]))
    assert "people3" not in found
    assert found[0].startswith("people")


def test_columns_are_paired_one_to_one_and_say_why(lake):
    (hit, *_) = search(lake, profile(QUERY), top=1)
    assert {(m.query, m.table) for m in hit.columns} == {(name, name) for name in QUERY}
    why = {m.query: m.why for m in hit.columns}
    assert why["Soil"] == "same header, values overlap 1.00"
    assert why["Height"].startswith("same header, similar numbers 0.")


def test_as_many_as_asked_for_come_and_the_best_stay_the_best(lake):
    everything = names(search(lake, profile(QUERY), top=8))
    assert names(search(lake, profile(QUERY), top=3)) == everything[:3]
    with pytest.raises(InputError, match="`top` is 0"):
        search(lake, profile(QUERY), top=0)


@pytest.mark.parametrize("most", [1, 30, 100])
def test_of_a_large_lake_the_postings_of_the_rarest_terms_are_read(lake, most, monkeypatch):
    whole = names(search(lake, profile(QUERY), top=4))
    monkeypatch.setattr(_candidates, "MOST_POSTINGS", most)
    read = []

    def noted(text, asked, parameters=()):
        if "FROM postings" in text:
            read.append(asked["term"])
        return Index.given(lake, text, asked, parameters)

    monkeypatch.setattr(lake, "given", noted)
    assert set(names(search(lake, profile(QUERY), top=4))) == set(whole)
    asked = np.unique(SearchColumns.of(profile(QUERY)).terms.terms)
    known = dict(zip(*(a.tolist() for a in lake.frequencies(asked)), strict=True))
    frequencies = sorted(known[int(term)] for term in read[0])
    assert frequencies == sorted(known.values())[: len(frequencies)]
    assert sum(frequencies[:-1]) < most <= sum(frequencies)


def test_nothing_is_found_for_a_query_that_has_nothing_in_common(lake):
    assert search(lake, profile({"Verb": ["gehen", "kommen"]})) == []


@pytest.mark.parametrize("table", [{}, {"Plant": []}, {"Plant": [None, None]}])
def test_a_query_without_values_finds_nothing(lake, table):
    assert search(lake, profile(table) if table else Profile(0, ())) == []


def test_an_empty_lake_has_nothing(tmp_path):
    index = indexed(write(tmp_path / "lake", {}))
    assert search(index, profile(QUERY)) == []


# ----------------------------------------------------------------------------- what does not matter


def test_renaming_all_files_at_random_leaves_the_ranking(lake, tmp_path):
    order = list(TABLES)
    random.Random(1).shuffle(order)
    renamed = {f"{i:03d}": TABLES[name] for i, name in enumerate(order)}
    other = indexed(write(tmp_path / "renamed", renamed))
    for query in (QUERY, people(98), diseases(97)):
        ours, theirs = (search(index, profile(query), top=20) for index in (lake, other))
        assert [(h.table.snapshot, h.score) for h in ours] == [
            (h.table.snapshot, h.score) for h in theirs
        ]


def test_tables_that_score_the_same_are_ordered_by_content_and_not_by_name(tmp_path):
    # Numbers are no words, so the three differ in their files but not in what is compared.
    tables = [{"Plant": ["apple"], "Height": [str(i)]} for i in range(3)]
    orders = []
    for i, order in enumerate([tables, tables[::-1], tables[1:] + tables[:1]]):
        index = indexed(write(tmp_path / f"lake{i}", dict(zip("abc", order, strict=True))))
        hits = search(index, profile({"Plant": ["apple"], "Height": ["7"]}))
        assert len({hit.score for hit in hits}) == 1
        orders.append([hit.table.snapshot for hit in hits])
    assert all(order == orders[0] for order in orders)


def test_the_order_of_rows_and_columns_leaves_the_scores(lake, tmp_path):
    def mixed(table, seed):
        rows = list(zip(*table.values(), strict=True))
        random.Random(seed).shuffle(rows)
        columns = dict(zip(table, zip(*rows, strict=True), strict=True))
        return {name: columns[name] for name in reversed(columns)}

    other = indexed(
        write(tmp_path / "mixed", {name: mixed(t, i) for i, (name, t) in enumerate(TABLES.items())})
    )
    ours, theirs = (
        {h.table.name: h.score for h in search(index, profile(query), top=20)}
        for index, query in ((lake, QUERY), (other, mixed(QUERY, 50)))
    )
    assert ours == pytest.approx(theirs, abs=1e-8)


# ----------------------------------------------------------------------------- headers that say nothing


def test_numbers_find_a_table_whose_headers_say_nothing(tmp_path):
    rng = np.random.default_rng(0)

    def measured(names, centres):
        return {
            name: [f"{x:.3f}" for x in rng.normal(centre, centre / 10, 60)]
            for name, centre in zip(names, centres, strict=True)
        }

    tables = {f"other{i}": measured(["V1", "V2", "V3"], [3 + i, 900 + i, 7e4]) for i in range(8)}
    tables["same"] = measured(["c1", "c2", "c3"], [5000, 0.2, 40])
    index = indexed(write(tmp_path / "lake", tables))
    hits = search(index, profile(measured(["weight", "ratio", "age"], [5000, 0.2, 40])))
    assert names(hits)[0] == "same"
    assert {(m.query, m.table) for m in hits[0].columns} == {
        ("weight", "c1"), ("ratio", "c2"), ("age", "c3"),
    }  # fmt: skip
    assert all(m.why.startswith("similar numbers") for m in hits[0].columns)


def test_of_many_columns_with_like_numbers_the_nearest_are_compared(tmp_path, monkeypatch):
    tables = {f"table{i}": {"V1": [str(100 * i + k) for k in range(5)]} for i in range(9)}
    index = indexed(write(tmp_path / "lake", tables))
    query = profile({"weight": [str(k) for k in range(0, 1000, 10)]})  # its median is near table5's
    assert len(search(index, query)) > 3
    monkeypatch.setattr(_candidates, "MOST_NUMBERS", 1)
    assert names(search(index, query)) == ["table5"]


def test_numbers_alone_do_not_make_named_columns_alike():
    ours, theirs = profile({"weight": ["1", "2", "3"]}), profile({"price": ["1", "2", "3"]})
    found = parts(ours, theirs)
    assert found.numbers[0, 0] == 1
    assert found.similarity()[0, 0] == 0


# ----------------------------------------------------------------------------- the index


def counted(index, text, *parameters):
    ((n,),) = index.query(text, parameters)
    return n


def test_terms_come_change_and_go_with_their_tables(tmp_path):
    folder = write(tmp_path / "lake", {"a": orchard(1), "b": people(1)})
    scab, trade = term_number(WORD, "scab"), term_number(TOKEN, "trade")
    index = indexed(folder)
    assert counted(index, "SELECT count(*) FROM postings WHERE term = ?", trade) == 1
    assert counted(index, "SELECT count(*) FROM postings WHERE term = ?", scab) == 0
    index.close()
    write(folder, {"a": diseases(1)})
    (folder / "b.csv").unlink()
    index = indexed(folder)
    assert counted(index, "SELECT count(*) FROM postings WHERE term = ?", trade) == 0
    assert counted(index, "SELECT count(*) FROM postings WHERE term = ?", scab) == 1
    (table,) = index.tables()
    terms = sum(len(column_terms(column)) for column in profile(diseases(1)).columns)
    assert counted(index, "SELECT sum(n) FROM postings WHERE id = ?", table.id) == terms
    assert counted(index, "SELECT sum(n) FROM frequencies") == terms
    assert names(search(index, profile(diseases(2)))) == ["a"]


def test_uneven_files_are_searched_and_unreadable_ones_passed_over(tmp_path):
    folder = write(tmp_path / "lake", {"a": people(1)})
    (folder / "uneven.csv").write_text("Plant,Soil\napple,loam\npear,clay,9\nfig\n")
    (folder / "broken.parquet").write_bytes(b"no parquet")
    index = indexed(folder)
    hits = search(index, profile(QUERY))
    assert names(hits) == ["uneven"]
    assert hits[0].table.problem is not None


def test_lines_that_are_no_rows_still_say_what_a_table_is_about(tmp_path):
    folder = write(tmp_path / "lake", {"a": people(1)})
    (folder / "broken.csv").write_text("x,y\nfig,2\nscab\nplum,4\npear,6\n")
    words = "SELECT count(*) FROM postings WHERE term = ?", term_number(WORD, "scab")
    index = indexed(folder)
    table = next(table for table in index.tables() if table.name == "broken.csv")
    assert table.rows == 3
    assert table.skipped.first == ("line 3",)
    assert set(index.profiles([table.id])[table.id].columns[0].values) == {"fig", "plum", "pear"}
    assert counted(index, *words) == 1
    index.close()
    os.utime(folder / "broken.csv", (1, 1))
    assert counted(indexed(folder), *words) == 1


# ----------------------------------------------------------------------------- similarities

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=8) | st.none(), max_size=6)
TABLE = st.dictionaries(st.text(max_size=6), st.just(0), max_size=4).flatmap(
    lambda names: st.integers(0, 6).flatmap(
        lambda n: st.fixed_dictionaries(
            {
                name: st.lists(
                    st.sampled_from(["1", "2.5", "-7", "red fox", "Fox", "", None]),
                    min_size=n,
                    max_size=n,
                )
                for name in names
            }
        )
    )
)


@pytest.mark.slow
@given(TABLE, TABLE)
def test_similarities_are_shares_and_the_same_both_ways(ours, theirs):
    ours, theirs = profile(ours), profile(theirs)
    forth, back = parts(ours, theirs).similarity(), parts(theirs, ours).similarity()
    assert forth.shape == (len(ours.columns), len(theirs.columns))
    assert ((forth >= 0) & (forth <= 1)).all()
    assert forth == pytest.approx(back.T, abs=0.08)  # quantiles are steps: each side's its own


@given(TEXTS)
def test_a_column_is_as_like_itself_as_can_be(texts):
    column = profile({"fruit": texts})
    assert parts(column, column).similarity()[0, 0] == pytest.approx(1)


def test_headers_are_alike_whatever_their_case_and_number():
    ours = profile({"plant": ["apple", "pear"], "height": ["3", "4"]})
    theirs = profile({"Height": ["3", "5"], "Plants": ["pear", "plum"]})
    assert parts(ours, theirs).header == pytest.approx(np.array([[0, 1], [1, 0]]))


def test_rare_words_count_more():
    ours, theirs = profile({"a name": ["red fox"]}), profile({"a name": ["red hen"]})
    red = np.array([term_number(WORD, "red")], np.uint64)
    common, rare = (Rarity(1000, red, np.array([n])) for n in (900, 2))
    assert parts(ours, theirs, rare).words > parts(ours, theirs, common).words


def test_overlap_is_the_share_of_the_smaller_and_estimated_for_many_values():
    few = profile({"x": ["A ", "b", "c", "d"]}).columns[0]
    more = profile({"x": [*"abc", *"xyz"]}).columns[0]
    assert value_overlap(few, more) == value_overlap(more, few) == 0.75
    many, half = (
        profile({"x": [f"v{i}" for i in range(a, b)]}).columns[0]
        for a, b in ((0, 4000), (2000, 6000))
    )
    assert many.values is None
    assert value_overlap(many, half) == pytest.approx(0.5, abs=0.15)
    assert value_overlap(few, replace(few, values={})) == 0


def test_the_most_frequent_words_stand_for_a_column():
    texts = [f"word{i}" for i in range(MOST_WORDS + 50)]
    often = texts[-10:]
    (column,) = profile({"c1": [*texts, *often]}).columns
    terms = column_terms(column)
    assert len(terms) == MOST_WORDS
    assert {term_number(WORD, text) for text in often} <= set(terms)


def test_words_know_no_case_plural_or_punctuation():
    assert words("Fire-Blights; cities, glass (UK)") == ["fire", "blight", "city", "glass", "uk"]
