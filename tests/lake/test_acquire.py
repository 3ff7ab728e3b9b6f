"""Rows taken from a lake: the base in order, real rows behind it, and a line for each."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.counts import CountRequest
from equipoise.errors import InputError, PoolTooSmall, ShiftTooLarge
from equipoise.lake.lake import Lake
from lakes import (
    HEADER,
    OTHERS,
    PEOPLE,
    acquired,
    found,
    ledger,
    mapping_file,
    more,
    planned,
    read,
    share,
    write,
)

NEED = {("Female", "yes"): 3}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("people.csv", HEADER, PEOPLE)


def there():
    return {str(p): p.read_bytes() for p in Path().rglob("*") if p.is_file()}


def refused(*arguments, kind=InputError, **options):
    """Nothing is written; give the sentence."""
    Lake("lake").refresh()
    before = there()
    with pytest.raises(kind) as error:
        acquired(*arguments, **options)
    assert {k: v for k, v in there().items() if ".equipoise-index" not in k} == {
        k: v for k, v in before.items() if ".equipoise-index" not in k
    }
    assert str(error.value).endswith((".", "?"))
    assert "\n" not in str(error.value)
    return str(error.value)


# -------------------------------------------------------------------------- what is written


def test_base_rows_stay_in_order_and_real_rows_stand_behind():
    share("lake/a.csv", more(100, 9))
    plan = planned("people.csv", NEED, {("Male", "yes"): 1})
    done = acquired(plan)
    lines = read("out.csv")
    base = [
        dict(zip(HEADER, ("" if v is None else str(v) for v in r), strict=True)) for r in PEOPLE
    ]
    stay = lines[: len(base) - 1]
    assert [r for r in base if r in stay] == stay
    (gone,) = [r for r in base if r not in stay]
    assert (gone["sex"], gone["hired"]) == ("Male", "yes")
    source = read("lake/a.csv")
    assert [r["sex"] + r["hired"] for r in lines[len(base) - 1 :]] == ["Femaleyes"] * 3
    assert all(r in source for r in lines[len(base) - 1 :])
    assert (done.added, done.removed, done.as_planned, done.exit_code) == (3, 1, True, 0)

    told = ledger()
    assert [line["action"] for line in told] == ["remove", "add", "add", "add"]
    assert told[0]["source"] == "people.csv"
    assert base[told[0]["place"]] == gone
    for line in told[1:]:
        assert lines[line["row"]] == source[line["place"]]
        assert json.loads(line["cell"]) == {"sex": "Female", "hired": "yes"}
        assert line["source"] == "a.csv"
        assert len(line["snapshot"]) == 64
        assert line["cost"] == pytest.approx(1 / 3)
    about = json.loads(pq.read_schema("out.csv.ledger.parquet").metadata[b"equipoise"])
    assert (about["base"], about["output"], about["seed"]) == ("people.csv", "out.csv", 0)


@pytest.mark.slow
def test_the_choice_depends_on_the_seed_alone():
    rows = more(100, 30)
    share("lake/a.csv", rows[:20])
    share("lake/b.csv", rows[10:])
    plan = planned("people.csv", {("Female", "yes"): 25})
    acquired(plan)
    first = Path("out.csv").read_bytes()
    acquired(plan)
    assert Path("out.csv").read_bytes() == first
    random.Random(1).shuffle(rows)
    write("lake/a.csv", HEADER, [*OTHERS, *(r for r in rows if r[0] < 120)])
    write("lake/b.csv", HEADER, [*OTHERS, *(r for r in rows if r[0] >= 110)])
    acquired(plan, ["lake/b.csv", "lake/a.csv"])
    assert Path("out.csv").read_bytes() == first
    acquired(plan, seed=1)
    assert Path("out.csv").read_bytes() != first


@pytest.mark.slow
def test_many_tables_that_share_most_rows_give_all_they_have():
    shared = more(100, 30)
    for i in range(12):
        share(f"lake/t{i:02}.csv", [*shared, *more(1000 + i, 1)])
    done = acquired(planned("people.csv", {("Female", "yes"): 42}))
    assert done.added == 42
    assert done.as_planned
    assert len({r["id"] for r in read("out.csv")}) == len(PEOPLE) + 42


def test_tables_are_chosen_for_what_they_have_beside_others():
    rows = more(100, 15)
    share("lake/a.csv", rows[:10])
    share("lake/b.csv", rows[5:])
    share("lake/c.csv", more(300, 10))
    Path("lake/sources.toml").write_text('[tables."c.csv"]\ntable_cost = 1.2\n')
    done = acquired(planned("people.csv", {("Female", "yes"): 20}), output=None)
    assert len(done.shares) == 2  # a and b would be cheaper, had they no rows in common
    assert (done.cost, done.bound) == (pytest.approx(2.2), pytest.approx(2.2))


@pytest.mark.parametrize("limits", [{}, {"max_tables": 9}, {"budget": 100.0}])
def test_limits_that_bind_nothing_change_nothing(limits):
    one, other = more(101, 1), more(102, 1)
    for name, rows in (("a", one), ("b", one), ("c", other)):
        share(f"lake/{name}.csv", rows)
    costs = {"a.csv": 1, "b.csv": 0.5, "c.csv": 10}
    said = [f'[tables."{name}"]\ntable_cost = {cost}\n' for name, cost in costs.items()]
    Path("lake/sources.toml").write_text("".join(said))
    done = acquired(planned("people.csv", {("Female", "yes"): 2}), output=None, **limits)
    assert (done.cost, done.bound) == (pytest.approx(10.5), pytest.approx(10.5))


@pytest.mark.parametrize(
    "limits",
    [{"max_share_per_source": 2}, {"max_share_per_source": 0}, {"max_tables": 0}, {"budget": -1}],
)
def test_limits_that_are_none_are_refused(limits):
    share("lake/a.csv", more(100, 4))
    (name,) = limits
    wrong = refused(planned("people.csv", {("Female", "yes"): 2}), **limits)
    assert name.removesuffix("_per_source") in wrong


def test_limits_that_bind_leave_a_bound_that_holds():
    share("lake/a.csv", more(100, 4))
    share("lake/b.csv", [*more(100, 4), *more(200, 2)])
    plan = planned("people.csv", {("Female", "yes"): 6})
    done = acquired(plan, output=None, max_share_per_source=0.67)
    assert (done.added, done.cost) == (6, 2)
    assert done.bound <= 2


@pytest.mark.slow
def test_what_lacks_is_looked_for_in_tables_that_share_rows_as_well():
    rows = more(100, 60)
    for i in range(10):  # each has half of the rows of the next
        share(f"lake/t{i}.csv", rows[5 * i : 5 * i + 10])
    share("lake/dear.csv", rows)
    Path("lake/sources.toml").write_text('[tables."dear.csv"]\ntable_cost = 99\n')
    done = acquired(planned("people.csv", {("Female", "yes"): 55}), output=None)
    assert (done.added, done.cost, done.bound) == (55, 6, 6)
    some = acquired(planned("people.csv", {("Female", "yes"): 55}), output=None, time_limit=0)
    assert some.added == 55
    assert some.cost <= 10


def test_a_key_that_two_tables_have_in_different_cells_is_left_to_that_which_needs_it():
    write("lake/a.csv", HEADER[:3], [(104, "Female", "yes"), (900, "Male", "no")])
    share("lake/b.csv", [(104, "Male", "yes", 30), (103, "Male", "yes", 31)])
    plan = planned("people.csv", {("Female", "yes"): 1, ("Male", "yes"): 1})
    done = acquired(plan, output=None, dedupe="key", key=("id",))
    assert (done.added, done.as_planned) == (2, True)


def test_a_row_that_says_little_does_not_shut_out_two_that_say_more():
    wide = [(i, "Female", "yes", 77) for i in (101, 102)]
    share("lake/wide.csv", wide)
    write("lake/narrow.csv", HEADER[1:], [row[1:] for row in [wide[0], *OTHERS]])
    Path("lake/sources.toml").write_text('[tables."wide.csv"]\nrow_cost = 1\n')
    done = acquired(planned("people.csv", {("Female", "yes"): 2}), output=None)
    assert [(s.name, s.rows) for s in done.shares] == [("wide.csv", 2)]


@pytest.mark.slow
def test_text_becomes_the_types_of_the_base():
    base = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int64()),
            "sex": ["Female", "Female", "Male", "Male"],
            "hired": pa.array([True, False, True, False]),
            "when": pa.array([0, 0, 0, 0], pa.date32()),
            "pay": pa.array([1.5, None, 2.0, 3.25]),
        }
    )
    pq.write_table(base, "people.parquet")
    lines = [
        ("9007199254740993", "Female", "true", "2024-02-29", "10"),
        ("12.0", "Female", "true", "2024-01-01", "1e3"),
        ("13", "Female", "true", "", ""),
        ("1e3", "Female", "true", "2024-01-01", "7"),
        ("14.5", "Female", "true", "2024-01-01", "1"),  # no whole number
        ("15", "Female", "true", "2024-13-01", "1"),  # no date
        ("16", "Female", "true", "2024-01-01", "much"),  # no number
        ("17", "Male", "false", "2024-01-01", "1"),
    ]
    write("lake/a.csv", ("id", "sex", "hired", "when", "pay"), lines)
    plan = planned("people.parquet", {("Female", "true"): 4})
    done = acquired(plan, base="people.parquet", output="out.parquet")
    assert done.failed == 3
    assert done.failures == {"a.csv": {"id": 1, "when": 1, "pay": 1}}
    out = pq.read_table("out.parquet")
    assert out.schema.types == base.schema.types
    assert sorted(out["id"].to_pylist()[4:]) == [12, 13, 1000, 9007199254740993]
    told = acquired(
        planned("people.parquet", {("Female", "true"): 5}),
        base="people.parquet",
        output=None,
        partial=True,
    )
    assert (
        "3 rows have values that cannot be converted to the types of the base: id of a.csv (1), pay of a.csv (1) "
        "and when of a.csv (1)."
    ) in told.sentences
    lake = Lake("lake")
    assert lake.replay("out.parquet.ledger.parquet", repaired="out.parquet").ok


def test_rows_that_fail_are_told_of_whatever_stands_for_missing_values():
    people = [(i, "fm"[i % 2], "yes" if i % 3 else "no", 20 + i % 30) for i in range(60)]
    write("people.csv", HEADER, people)
    write("lake/a.csv", HEADER, [(500, "f", "yes", "x"), *((i + 100, *r) for i, *r in people)])
    request = CountRequest(sensitive=("sex",), label="hired", na=("3",))  # the place of age
    plan = planned("people.csv", {("f", "yes"): 2}, request=request)
    done = acquired(plan, output=None, partial=True)
    assert done.failures == {"a.csv": {"age": 1}}


def test_codes_keep_the_zeros_in_front():
    write(
        "people.csv", ("zip", "sex", "hired"), [("01234", "Female", "no"), ("00501", "Male", "yes")]
    )
    rows = [("07030", "Female", "yes"), ("10001.0", "Female", "yes"), ("2", "Male", "no")]
    write("lake/a.csv", ("zip", "sex", "hired"), rows)
    acquired(planned("people.csv", {("Female", "yes"): 2}))
    assert {r["zip"] for r in read("out.csv")} == {"01234", "00501", "07030", "10001"}


def test_columns_that_lack_are_empty_or_bar_the_table():
    write("lake/a.csv", HEADER[:3], [r[:3] for r in [*more(100, 5), *OTHERS]])
    plan = planned("people.csv", NEED)
    done = acquired(plan)
    assert [r["age"] for r in read("out.csv")[-3:]] == ["", "", ""]
    assert done.shares[0].lacking == ("age",)
    assert "Some sources do not have 'age', which stay empty in their rows." in done.sentences
    said = refused(plan, require_columns=True, kind=PoolTooSmall)
    assert "3: tables that may not be used" in said


def test_a_column_that_is_not_certain_is_not_said_to_lack():
    share("lake/a.csv", more(100, 20))
    done = acquired(planned("people.csv", NEED))
    (own,) = done.shares
    told = replace(own, lacking=("age", "town"), uncertain={"age": "years"})
    unsure = replace(done, shares=(told,))
    assert "Some sources do not have 'town', which stay empty in their rows." in unsure.sentences
    assert any("stay empty in added rows: age of a.csv. Confirm" in s for s in unsure.sentences)
    assert unsure.to_dict()["sources"][0]["uncertain"] == {"age": "years"}
    assert not any("not certain" in sentence for sentence in done.sentences)


def test_a_row_that_lacks_a_required_value_is_never_taken():
    rows = [(100, None, "yes", 1), (101, "Female", None, 1), (102, "Female", "yes", 1)]
    share("lake/a.csv", rows)
    done = acquired(planned("people.csv", NEED), partial=True)
    assert [r["id"] for r in read("out.csv")[len(PEOPLE) :]] == ["102"]
    assert (done.as_planned, done.exit_code) == (False, 1)
    assert any(s.startswith("This is not as planned") for s in done.sentences)


# ------------------------------------------------------------------------------ what may be


@pytest.mark.slow
def test_limits_are_kept():
    for name, start in (("a", 100), ("b", 200), ("c", 300)):
        share(f"lake/{name}.csv", more(start, 6))
    write("lake/sources.toml", ["[default]"], [["row_cost = 0.5"]])
    plan = planned("people.csv", {("Female", "yes"): 6})
    done = acquired(plan, output=None)
    assert (len(done.shares), done.cost) == (1, 4.0)
    shared = acquired(plan, output=None, max_share_per_source=0.5)
    assert max(s.rows for s in shared.shares) == 3
    assert "3 of 6" in refused(plan, budget=2.5, kind=PoolTooSmall)
    assert "over the budget" in refused(plan, budget=2.5, kind=PoolTooSmall)
    less = acquired(plan, output=None, budget=2.5, partial=True)
    assert (less.added, less.cost) == (3, 2.5)
    many = planned("people.csv", {("Female", "yes"): 13})
    assert acquired(many, output=None).added == 13
    assert acquired(many, output=None, max_tables=2, partial=True).added == 12


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"deny": ["a.*"]}, "it is denied by 'a.*'"),
        ({"deny": ["a.csv"]}, "it is denied by 'a.csv'"),
        ({"sources": "no.toml"}, "the people in it gave no consent"),
        ({"min_confidence": 0.99}, "its columns are matched with a confidence of"),
    ],
)
def test_tables_that_may_not_be_used_are_not(how, why):
    share("lake/a.csv", more(100, 5))
    Path("no.toml").write_text('[tables."a.csv"]\nconsent = false\n', "utf-8")
    plan = planned("people.csv", NEED)
    assert "3: tables that may not be used" in refused(plan, kind=PoolTooSmall, **how)
    ((barred),) = found(plan, **how).survey.barred
    assert barred.barred.startswith(why)


def test_a_denied_table_that_is_not_there_is_a_mistake():
    share("lake/staff.csv", more(100, 5))
    said = refused(planned("people.csv", NEED), deny=["staf.csv"])
    assert said == "the lake has no table 'staf.csv' to deny. Did you mean 'staff.csv'?"


@pytest.mark.slow
def test_the_base_is_no_source_of_itself():
    share("lake/a.csv", more(100, 2))
    write("lake/people.csv", HEADER, PEOPLE)
    plan = planned("lake/people.csv", {("Female", "yes"): 2})
    for policy in ("strict", "multiset"):
        done = acquired(plan, base="lake/people.csv", output=None, dedupe=policy)
        assert [s.name for s in done.shares] == ["a.csv"]
    result = found(plan, base="lake/people.csv")
    assert [c.barred for c in result.survey.barred] == ["it is the base itself"]


@pytest.mark.slow
def test_a_shift_beyond_the_limit_stops_it():
    base = [(i, "Female", "yes" if i % 2 else "no", 30 + i % 3) for i in range(40)]
    write("people.csv", HEADER, [*base, (50, "Male", "yes", 31), (51, "Male", "no", 31)])
    share("lake/a.csv", [(i, "Female", "yes", 80 + i % 3) for i in range(100, 140)])
    plan = planned("people.csv", {("Female", "yes"): 20})
    assert acquired(plan, output=None).shift is not None
    assert "'age'" in refused(plan, max_shift=0.1, kind=ShiftTooLarge) or "age" in refused(
        plan, max_shift=0.1, kind=ShiftTooLarge
    )


def test_another_base_is_refused_unless_forced():
    share("lake/a.csv", more(100, 5))
    plan = planned("people.csv", NEED)
    write("people.csv", HEADER, PEOPLE[:-2])
    assert "differ from those the plan was made for" in refused(plan)
    assert acquired(plan, force=True).added == 3


# ----------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    "places",
    [
        {"output": "people.csv"},
        {"output": "lake/a.csv"},
        {"ledger": "people.csv"},
        {"ledger": "lake/a.csv"},
        {"output": "same.csv", "ledger": "./same.csv"},
        {"output": "linked.csv"},
        {"output": "out.xlsx"},
        {"ledger": "ledger.txt"},
        {"output": "nowhere/out.csv"},
    ],
)
def test_what_is_read_is_never_written_to(places):
    share("lake/a.csv", more(100, 5))
    Path("linked.csv").symlink_to("people.csv")
    refused(planned("people.csv", NEED), **places)


@pytest.mark.slow
def test_a_dry_run_writes_nothing_and_tells_the_same():
    share("lake/a.csv", more(100, 5))
    plan = planned("people.csv", NEED)
    Lake("lake").refresh()
    before = there()
    dry = acquired(plan, output=None)
    assert there() == before
    wet = acquired(plan)
    assert dry.after == wet.after
    assert dry.max_abs_ub_after == wet.max_abs_ub_after
    assert (dry.output, dry.ledger) == (None, None)
    assert dry.sentences[0].startswith("Would write")


@pytest.mark.slow
def test_too_few_rows_write_nothing_unless_some_are_enough():
    share("lake/a.csv", more(100, 2))
    plan = planned("people.csv", NEED)
    said = refused(plan, kind=PoolTooSmall)
    assert "sex=Female, hired=yes: 2 of 3 rows found; 1 missing" in said
    assert acquired(plan, partial=True).added == 2


# ---------------------------------------------------------------------------- changed files


def stale_lake():
    """A lake that was looked at, and keeps what it saw."""
    lake = Lake("lake")
    assert lake.tables
    return lake


@pytest.mark.parametrize("secretly", [False, True])
def test_a_table_that_changes_meanwhile_is_refused(secretly):
    import os

    file = share("lake/a.csv", more(100, 5))
    lake = stale_lake()
    status = file.stat()
    share("lake/a.csv", more(105, 5))  # of the same length
    if secretly:
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    for output in ("out.csv", None):
        with pytest.raises(
            InputError, match=r"a\.csv has changed since the lake was indexed; index"
        ):
            acquired(planned("people.csv", NEED), lake, output=output)
    assert not list(Path().glob("out*"))


def test_a_table_that_vanishes_meanwhile_is_refused():
    file = share("lake/a.csv", more(100, 5))
    lake = stale_lake()
    file.unlink()
    with pytest.raises(InputError, match=r"a\.csv can no longer be read"):
        acquired(planned("people.csv", NEED), lake)


def test_a_table_that_was_only_touched_is_taken():
    file = share("lake/a.csv", more(100, 5))
    lake = stale_lake()
    file.touch()
    assert acquired(planned("people.csv", NEED), lake).added == 3


# ---------------------------------------------------------------------------- kinds of files


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_text_of_any_dialect_is_taken(delimiter, encoding):
    rows = [
        (f"Zoë, „{i}“" if encoding != "latin-1" else f"Zoë, {i}", *r[1:])
        for i, r in enumerate(more(100, 4))
    ]
    share("lake/a.csv", rows, delimiter=delimiter, encoding=encoding)
    acquired(planned("people.csv", NEED))
    added = [r["id"] for r in read("out.csv")[len(PEOPLE) :]]
    assert set(added) <= {r[0] for r in rows}
    assert len(added) == 3
    assert Lake("lake").replay("out.csv.ledger.parquet", repaired="out.csv").ok


@pytest.mark.slow
def test_every_kind_of_file_is_a_source():
    rows = [dict(zip(HEADER, r, strict=True)) for r in [*more(100, 2), *OTHERS]]
    Path("lake").mkdir()
    Path("lake/a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    text = share("b.csv", more(200, 2)).read_bytes()
    Path("lake/b.csv.gz").write_bytes(gzip.compress(text, mtime=0))
    pq.write_table(
        pa.Table.from_pylist([dict(zip(HEADER, r, strict=True)) for r in [*more(300, 2), *OTHERS]]),
        "lake/c.parquet",
    )
    with duckdb.connect("lake/d.duckdb") as database:
        database.execute("CREATE TABLE staff (id INT, sex VARCHAR, hired VARCHAR, age SMALLINT)")
        database.executemany("INSERT INTO staff VALUES (?, ?, ?, ?)", [*more(400, 2), *OTHERS])
    done = acquired(planned("people.csv", {("Female", "yes"): 8}))
    shares = {"a.jsonl": 2, "b.csv.gz": 2, "c.parquet": 2, "d.duckdb::staff": 2}
    assert {s.name: s.rows for s in done.shares} == shares
    assert Counter(line["source"] for line in ledger()) == shares
    assert Lake("lake").replay("out.csv.ledger.parquet", repaired="out.csv").ok


def test_other_tables_of_the_database_of_the_base_are_sources():
    Path("lake").mkdir()
    with duckdb.connect("lake/d.duckdb") as database:
        for table, rows in (("people", PEOPLE), ("staff", [*more(400, 3), *OTHERS])):
            database.execute(f"CREATE TABLE {table} (id INT, sex VARCHAR, hired VARCHAR, age INT)")
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
    base = "lake/d.duckdb::people"
    done = acquired(planned(base, NEED), base=base)
    assert [s.name for s in done.shares] == ["d.duckdb::staff"]


# ------------------------------------------------------------------------------- odd names

ODD = ['a "b" c', "place", "md5", "input", "equipoise_failed", "größe 'x'", "want", "cell", "line_"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_may_be_called_anything(kind):
    names = (*ODD[1:], ODD[0], "sex", "hired")
    fill = lambda i: tuple(f"{n}{i}" for n in range(len(ODD)))  # noqa: E731
    rows = [
        (*fill(i), s, h) for i, (s, h) in enumerate([("f'", 'y"'), ("m;--", "no"), ("f'", "no")])
    ]
    more_rows = [(*fill(100 + i), "f'", 'y"') for i in range(4)] + [(*fill(200), "m;--", "no")]
    if kind == "csv":
        write("people.csv", names, rows)
        write("lake/a.csv", names, more_rows)
    else:
        Path("lake").mkdir()
        for path, lines in (("people.parquet", rows), ("lake/a.parquet", more_rows)):
            columns = zip(*lines, strict=True)
            pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)
    base, out = f"people.{kind}", f"out.{kind}"
    said = {
        "name": f"a.{kind}",
        "columns": {n: n for n in names},
        "values": {"sex": {"f'": "f'", "m;--": "m;--"}, "hired": {'y"': 'y"', "no": "no"}},
    }
    how = mapping_file("mapping.toml", [said])
    done = acquired(planned(base, {("f'", 'y"'): 4}), base=base, output=out, mapping=how)
    assert (done.added, done.as_planned, done.failed) == (4, True, 0)
    assert Lake("lake").replay(f"{out}.ledger.parquet", repaired=out).ok


@pytest.mark.slow
def test_required_columns_may_be_called_anything():
    for name in ODD:
        write(
            "people.csv",
            ("id", name, "hired"),
            [(1, "north", "yes"), (2, "south", "no"), (3, "north", "no")],
        )
        write(
            "lake/a.csv",
            ("id", name, "hired"),
            [*((i, "north", "yes") for i in (7, 8)), (9, "south", "no")],
        )
        plan = planned(
            "people.csv",
            {("north", "yes"): 2},
            request=CountRequest(sensitive=(name,), label="hired"),
        )
        done = acquired(plan)
        assert (done.added, done.as_planned) == (2, True), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", ["*", "<missing>", "nan", "O'Brien", '"', "é # =", "NULL", "a\nb"]
)
def test_values_may_be_anything(value):
    write("people.csv", HEADER, [(1, value, "yes", 3), (2, "other", "no", 4), (3, value, "no", 5)])
    write("lake/a.csv", HEADER, [*((i, value, "yes", 1) for i in (7, 8)), (9, "other", "no", 1)])
    how = mapping_file(
        "mapping.toml",
        [
            {
                "name": "a.csv",
                "columns": {n: n for n in HEADER},
                "values": {
                    "sex": {value: value, "other": "other"},
                    "hired": {"yes": "yes", "no": "no"},
                },
            }
        ],
    )
    done = acquired(planned("people.csv", {(value, "yes"): 2}), mapping=how)
    assert (done.added, done.as_planned) == (2, True)
    assert Counter(r["sex"] for r in read("out.csv"))[value] == 4


def test_cells_that_lack_a_value_get_no_rows_and_keep_their_own():
    share("lake/a.csv", [*more(100, 3), (200, None, "no", 5)])
    done = acquired(planned("people.csv", NEED))
    assert done.as_planned
    assert [r["sex"] for r in read("out.csv")].count("") == 1


def test_columns_may_change_places():
    write("people.csv", ("a", "b", "sex", "hired"), [(1, 2, "f", "yes"), (3, 4, "m", "no")])
    write("lake/a.csv", ("a", "b", "hired", "sex"), [(5, 6, "f", "yes"), (7, 8, "m", "no")])
    values = {"sex": {"f": "f", "m": "m"}, "hired": {"yes": "yes", "no": "no"}}
    columns = {"a": "b", "b": "a", "sex": "hired", "hired": "sex"}
    how = mapping_file("m.toml", [{"name": "a.csv", "columns": columns, "values": values}])
    acquired(planned("people.csv", {("f", "yes"): 1}), mapping=how)
    assert read("out.csv")[-1] == {"a": "6", "b": "5", "sex": "f", "hired": "yes"}
