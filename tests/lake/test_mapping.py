"""The mapping file: what is proposed can be read back, and what is wrong in it is said."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.engines.sources import locate
from equipoise.errors import InputError, PoolTooSmall
from equipoise.lake.lake import Lake
from equipoise.lake.matching.columns.alignment import Alignment, ColumnMatch
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.mapping import confirmed_alignment, read_mapping, write_mapping
from equipoise.lake.matching.values.guesses import Proposal
from equipoise.lake.matching.values.vocabulary import ValueMap
from equipoise.lake.offers.survey import propose_mapping
from equipoise.options.search import SearchRequest
from lakes import (
    HEADER,
    OTHERS,
    PEOPLE,
    acquired,
    found,
    mapping_file,
    more,
    planned,
    read,
    share,
    write,
)
from strategies import column_names, texts

NEED = {("Female", "yes"): 3}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def column(name, values=None):
    counts = None if values is None else dict.fromkeys(values, 1)
    return ColumnProfile(name, "VARCHAR", 0, 1, counts, (), 0.0, None, ("x",))


@st.composite
def alignments(draw):
    """Any names and values, some of them without a meaning."""
    names = draw(column_names(3))
    sources = draw(column_names(3))
    base = draw(st.lists(texts(min_size=1), min_size=2, max_size=4, unique=True))
    theirs = draw(st.lists(texts(), min_size=3, max_size=6, unique=True))
    known = {v: draw(st.sampled_from(base)) for v in theirs[1:]}
    why = draw(texts())
    guess = {theirs[0]: Proposal(base[0], why)}
    values = ValueMap(known, (), (theirs[0],), guess, "fuzzy", False, why)
    match = {n: ColumnMatch(n, s, 0.9, why=why) for n, s in zip(names, sources, strict=True)}
    doubts = {names[0]: why} if draw(st.booleans()) else {}
    want = Wanted(tuple(map(column, names)), {names[0]: dict.fromkeys(base, 1)})
    table = Profile(9, (column(sources[0], theirs), *map(column, sources[1:])))
    return want, table, Alignment(columns=match, values={names[0]: values}, doubts=doubts)


@pytest.mark.slow
@given(made=alignments(), name=texts(min_size=1))
def test_whatever_is_proposed_is_read_back(tmp_path_factory, made, name):
    want, table, alignment = made
    file = tmp_path_factory.mktemp("m") / "mapping.toml"
    file.write_text(write_mapping([(name, alignment)], want, base=name, file=name), "utf-8")
    ((called, said),) = read_mapping(file).items()
    assert (called, said.use) == (name, alignment.certain)
    again = confirmed_alignment(said, want, table, "mapping.toml")
    assert {n: m.source for n, m in again.columns.items()} == {
        n: m.source for n, m in alignment.columns.items()
    }
    (before,), (after,) = alignment.values.values(), again.values.values()
    assert (after.values, after.unmapped) == (before.values, before.unmapped)
    assert again.certain


def proposal(plan, places="lake", base="people.csv", **how):
    located = None if base is None else locate(base)
    return propose_mapping(plan.counts, Lake(places), located, SearchRequest(**how))


@pytest.mark.slow
def test_a_proposed_file_leads_to_the_same_rows():
    write("people.csv", HEADER, PEOPLE)
    rows = [(i, {"Female": "F", "Male": "M"}[s], h, a) for i, s, h, a in [*more(100, 4), *OTHERS]]
    write("lake/a.csv", ("id", "gender", "hired", "age"), rows)
    plan = planned("people.csv", NEED)
    first = acquired(plan)
    before = Path("out.csv").read_bytes()
    Path("mapping.toml").write_text(proposal(plan), "utf-8")
    again = acquired(plan, mapping="mapping.toml")
    assert Path("out.csv").read_bytes() == before
    assert [s.columns for s in first.shares] == [s.columns for s in again.shares]


def test_an_open_table_is_used_once_it_is_confirmed():
    write("people.csv", HEADER, PEOPLE)
    rows = [(i, {"Female": "1", "Male": "2"}[s], h, a) for i, s, h, a in [*more(100, 4), *OTHERS]]
    write("lake/a.csv", HEADER, [*rows, (300, "9", "yes", 30)])
    plan = planned("people.csv", NEED)
    text = proposal(plan)
    assert "use = false" in text
    assert "# open: sex" in text
    Path("m.toml").write_text(text, "utf-8")
    with pytest.raises(PoolTooSmall, match="confirm what 1 more table"):
        acquired(plan, mapping="m.toml")
    said = text.replace("use = false", "use = true")
    for code, sex in (("1", "Female"), ("2", "Male")):
        said = said.replace(f'"{code}" = ""', f'"{code}" = "{sex}"')
    Path("m.toml").write_text(said, "utf-8")
    done = acquired(plan, mapping="m.toml")
    assert done.added == 3
    assert done.unmapped == 1
    assert "1 row has values without a counterpart in the base." in done.sentences
    assert {r["sex"] for r in read("out.csv")} == {"Female", "Male", ""}


def test_a_table_that_is_not_to_be_used_is_not():
    write("people.csv", HEADER, PEOPLE)
    share("lake/a.csv", more(100, 4))
    plan = planned("people.csv", NEED)
    Path("m.toml").write_text(proposal(plan).replace("use = true", "use = false"), "utf-8")
    ((barred),) = found(plan, mapping="m.toml").survey.barred
    assert barred.barred == "m.toml says not to use it"


def test_values_left_out_are_counted_whether_listed_or_not():
    write("people.csv", HEADER, PEOPLE)
    write("lake/a.csv", HEADER, [*more(100, 4), *OTHERS, (1, "Divers", "no", 3), (2, "X", "no", 3)])
    values = {
        "sex": {"Female": "Female", "Male": "", "Divers": ""},
        "hired": {"yes": "yes", "no": "no"},
    }
    said = {"name": "a.csv", "columns": {n: n for n in HEADER}, "values": values}
    done = acquired(planned("people.csv", NEED), mapping=mapping_file("m.toml", [said]))
    assert done.unmapped == 4
    assert "4 rows have values without a counterpart in the base." in done.sentences


GOOD = """
[[tables]]
name = "a.csv"
use = true
[tables.columns]
sex = "sex"
hired = "hired"
[tables.values.sex]
"Female" = "Female"
"Male" = "Male"
[tables.values.hired]
"yes" = "yes"
"no" = "no"
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no [[tables]]"),
        ("tables = 3", "has no [[tables]]"),
        ("[tables]\nname = 'a.csv'", "has no [[tables]]"),
        ("not toml", "is not valid TOML"),
        ("\udcff", "is not valid TOML"),
        (GOOD + GOOD, "has 'a.csv' twice"),
        (GOOD.replace("a.csv", "b.csv"), "names the table 'b.csv', which is not in the lake"),
        (GOOD.replace('name = "a.csv"', ""), "needs a name"),
        (GOOD.replace("use = true", 'use = "yes"'), "use = true or false"),
        (GOOD.replace("tables.columns", "tables.colums"), "Did you mean 'columns'?"),
        (GOOD.replace('sex = "sex"', 'sez = "sex"'), "'sez', which the base does not have"),
        (GOOD.replace('sex = "sex"', 'sex = "sez"'), "'sez', which the table does not have"),
        (GOOD.replace('sex = "sex"', "sex = 3"), "and texts in"),
        (GOOD.replace('sex = "sex"', 'sex = "hired"'), "assigns the column 'hired' to two"),
        (
            GOOD.replace('"Male" = "Male"', '"Male" = "Mail"'),
            "to 'Mail', which is not a value of sex",
        ),
        (
            GOOD.replace('"Male" = "Male"', '"Mael" = "Male"'),
            "maps 'Mael', which is not a value of",
        ),
        (GOOD.replace('"Male" = "Male"', '"Female" = "Male"'), "sets a key twice"),
        (GOOD.replace('"Male" = "Male"', '"Male" = 1'), "and texts in"),
        (GOOD.replace("values.sex", "values.age"), "maps values of 'age', but assigns no column"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_a_sentence(text, says):
    write("people.csv", HEADER, PEOPLE)
    share("lake/a.csv", more(100, 4))
    Path("m.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as error:
        found(planned("people.csv", NEED), mapping="m.toml")
    said = str(error.value)
    assert says in said
    assert "m.toml" in said
    assert said.endswith((".", "?"))
    assert "\n" not in said


def test_a_file_that_is_not_there_is_said():
    write("people.csv", HEADER, PEOPLE)
    share("lake/a.csv", more(100, 4))
    with pytest.raises(InputError, match=r"m\.toml cannot be read: No such file"):
        found(planned("people.csv", NEED), mapping="m.toml")


def test_names_with_line_ends_stay_in_their_comments():
    Path("lake").mkdir()
    values = {"a\nname = 1": "Female", "b\x7f": "Male"}
    pq.write_table(
        pa.table({"sex\n[[tables]]": [*values], "hired": ["yes", "no"], "id": [1, 2]}),
        "lake/a.parquet",
    )
    write("people.csv", HEADER, PEOPLE)
    text = proposal(planned("people.csv", NEED))
    assert [t["name"] for t in tomllib.loads(text)["tables"]] == ["a.parquet"]
