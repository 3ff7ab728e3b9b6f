"""Rows of a lake are held to the condition of the base, as the base understands it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import equipoise as eq
from equipoise.errors import InputError
from equipoise.lake.lake import Lake
from lakes import ledger, mapping_file, read, write

HEADER = ("id", "sex", "hired", "age", "dept", "inside")
ASKED = {"sensitive_features": ["sex"], "label": "hired"}


def people(n, seed, start=0, depts=("Sales", "Ops", "Law"), rate=0.5):
    draw = random.Random(seed)
    return [
        (
            i,
            draw.choice(["Female", "Male"]),
            "yes" if draw.random() < rate else "no",
            draw.choice([9, 25, 31, 44, 100, "", "31.0", "unknown"] if start else [9, 31, 44, 100]),
            draw.choice(depts),
            draw.choice("xyz"),
        )
        for i in range(start, start + n)
    ]


@pytest.fixture(autouse=True)
def _tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [r for r in people(160, 1) if r[1:3] != ("Female", "yes") or r[0] % 2]
    write("people.csv", HEADER, rows)


def plan(where, **options):
    return eq.plan("people.csv", **ASKED, where=where, **options)


def number(text):
    return float(text) if text.replace(".", "", 1).isdigit() else None


MEANT = {
    "age > 30": lambda r: (number(r["age"]) or 0) > 30,
    "age > 30 AND inside <> 'x'": lambda r: (number(r["age"]) or 0) > 30 and r["inside"] != "x",
    "sex = 'Female' OR dept = 'Ops'": lambda r: r["sex"] == "Female" or r["dept"] == "Ops",
    "dept IN ('Ops', 'Law') AND age IS NOT NULL": lambda r: (
        r["dept"] in ("Ops", "Law") and number(r["age"]) is not None
    ),
}


@pytest.mark.parametrize("where", MEANT)
def test_a_table_offers_just_the_rows_that_satisfy_the_condition(where):
    write("lake/a.csv", HEADER, people(300, 2, 1000))
    need = plan(where)
    found = Lake("lake").find(need)
    there = Counter((row["sex"], row["hired"]) for row in read("lake/a.csv") if MEANT[where](row))
    (ranked,) = found.offers
    offered = {
        tuple(found.need.named(i).values()): n for i, n in enumerate(ranked.offer.rows.tolist())
    }
    assert offered
    assert offered == {cell: there[cell] for cell in offered}
    assert ranked.offer.failed == 0  # an unknown age is a missing one
    assert ranked.offer.outside + sum(there.values()) == 300


@pytest.mark.slow
@pytest.mark.parametrize("where", MEANT)
def test_rows_that_are_taken_satisfy_it_and_stand_where_the_ledger_says(where):
    write("lake/a.csv", HEADER, people(300, 2, 1000))
    done = Lake("lake").acquire(plan(where), "out.csv")
    rows = read("out.csv")
    assert done.as_planned
    assert done.added
    assert all(map(MEANT[where], rows))
    source = read("lake/a.csv")
    for line in ledger():
        assert source[line["place"]]["id"] == rows[line["row"]]["id"]
    assert Lake("lake").replay("out.csv.ledger.parquet", repaired=eq_located("out.csv")).ok


def eq_located(path):
    from equipoise.engines.sources import locate

    return locate(path)


@pytest.mark.slow
def test_a_value_the_base_does_not_know_is_not_taken_for_another():
    """SALES may be Sales: where the condition rules out Sales, nobody knows of VERKAUF."""
    others = ("Ops", "VERKAUF", "sales ")
    write("lake/a.csv", HEADER, people(900, 2, 1000, others))
    Lake("lake").acquire(plan("dept <> 'Sales'"), "out.csv")
    added = [row for row in read("out.csv") if int(row["id"]) >= 1000]
    assert {row["dept"] for row in added} == {"Ops"}
    columns = {name: name for name in HEADER}
    values = {"sex": {v: v for v in ("Female", "Male")}, "hired": {v: v for v in ("yes", "no")}}
    told = {"name": "a.csv", "use": True, "columns": columns}
    mapping_file("m.toml", [{**told, "values": {**values, "dept": {"VERKAUF": "Law"}}}])
    found = Lake("lake").find(plan("dept = 'Law'"), mapping="m.toml")
    assert found.offers[0].offer.rows.sum() > 0
    # A value that the condition names itself is known, though the base has it not.
    write("lake/a.csv", HEADER, people(300, 2, 1000, ("Ops", "Tax", "Law")))
    found = Lake("lake").find(plan("dept IN ('Tax', 'Ops')"))
    kept = [r for r in read("lake/a.csv") if r["dept"] in ("Tax", "Ops")]
    (ranked,) = found.offers
    cells = {tuple(found.need.named(i).values()) for i in range(len(found.need.rows))}
    assert ranked.offer.rows.sum() == sum((r["sex"], r["hired"]) in cells for r in kept)


@pytest.mark.slow
def test_a_table_without_a_column_of_the_condition_is_not_used_and_said_to_be():
    rows = people(300, 2, 1000)
    write("lake/a.csv", HEADER[:3], [row[:3] for row in rows])
    found = Lake("lake").find(plan("age > 30 AND dept <> 'Ops'"))
    assert not found.offers
    (candidate,) = found.survey.barred
    why = "none of its columns is certain to be 'age' and 'dept', which the condition names"
    assert candidate.barred == why
    assert f"The condition cannot be checked in a.csv ({why})." in found.sentences
    assert found.to_dict()["not_used"] == [{"table": "a.csv", "why": why}]
    (_, lack), *_ = found.lacks
    assert lack.reasons == {"at most in tables that lack a column of the condition": lack.missing}
    with pytest.raises(eq.errors.PoolTooSmall, match="lack a column of the condition"):
        Lake("lake").acquire(plan("age > 30 AND dept <> 'Ops'"), "out.csv")
    assert Lake("lake").find(plan("sex IS NOT NULL")).offers


@pytest.mark.slow
def test_what_lacks_is_put_down_to_the_condition():
    young = [9, 10, 11, 25, 29, 30]
    rows = [(*r[:3], young[r[0] % 6], *r[4:]) for r in people(300, 2, 1000)]
    write("lake/a.csv", HEADER, rows)
    found = Lake("lake").find(plan("age > 30"))
    assert found.outside == 300
    (_, lack), *_ = found.lacks
    assert lack.reasons == {"at most outside the condition": lack.missing}


def test_without_the_base_nobody_knows_what_the_condition_means():
    write("lake/a.csv", HEADER, people(300, 2, 1000))
    frame = {name: [row[name] for row in read("people.csv")] for name in HEADER}
    made = eq.plan(frame, **ASKED, where="age > 30")
    with pytest.raises(InputError, match=r"rows where age > 30, .* pass that as `base`"):
        Lake("lake").find(made)
    assert Lake("lake").find(made, base=frame).offers


@pytest.mark.slow
def test_frames_and_types_of_their_own_are_held_to_it_too(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write("lake/a.csv", HEADER, people(300, 2, 1000))
    rows = read("people.csv")
    table = pa.table({n: [row[n] for row in rows] for n in HEADER})
    table = table.set_column(3, "age", pa.array([int(row["age"]) for row in rows], pa.int32()))
    pq.write_table(table, tmp_path / "people.parquet")
    for base in (table, "people.parquet"):
        done = eq.repair(base, "lake", "out.csv", **ASKED, where="age > 30")
        assert done.reached
        assert done.verification.ok
        assert done.acquired.added
        assert all(float(row["age"]) > 30 for row in read("out.csv"))


@pytest.mark.slow
def test_columns_are_matched_by_all_rows_of_the_base():
    rows = [(*row, 2020 + row[0] % 6) for row in people(300, 1)]
    write("people.csv", (*HEADER, "year"), rows)
    theirs = [(*row, 2018 + row[0] % 6) for row in people(600, 2, 1000)]
    write("lake/a.csv", (*HEADER, "year"), theirs)
    found = Lake("lake").find(plan("year = 2021"))
    (year,) = (column for column in found.survey.want.columns if column.name == "year")
    assert set(year.values) == {str(2020 + i) for i in range(6)}
    Lake("lake").acquire(plan("year = 2021"), "out.csv")
    assert {row["year"] for row in read("out.csv")} == {"2021"}
    assert any(int(row["id"]) >= 1000 for row in read("out.csv"))


@pytest.mark.slow
def test_values_that_the_condition_rules_out_are_still_values_of_the_base():
    """Or a table that has them would be open: nobody would know what they mean."""
    asked = {"sensitive_features": ["dept"], "label": "hired"}
    write("lake/a.csv", HEADER, people(600, 2, 1000))
    made = eq.plan("people.csv", **asked, where="dept <> 'Law'")
    assert "Law" not in made.counts.axis("dept").values
    found = Lake("lake").find(made)
    assert not found.survey.open
    assert not found.lacks
    Lake("lake").acquire(made, "out.csv")
    assert {row["dept"] for row in read("out.csv")} == {"Sales", "Ops"}


@pytest.mark.slow
def test_values_that_look_like_sql_are_values():
    strange = (";--", "'); DROP TABLE x; --", "Sales")
    write("people.csv", HEADER, people(160, 1, depts=strange))
    write("lake/a.csv", HEADER, people(600, 2, 1000, depts=strange))
    where = "dept <> 'Sales' AND dept NOT LIKE ';%' -- and no more"
    Lake("lake").acquire(plan(where), "out.csv")
    assert {row["dept"] for row in read("out.csv")} == {strange[1]}
    assert any(int(row["id"]) >= 1000 for row in read("out.csv"))


def test_the_plan_from_a_lake_counts_only_such_rows():
    write("lake/a.csv", HEADER, people(300, 2, 1000))
    made = plan("age > 30", lake="lake", allow="both")
    kept = [r for r in read("lake/a.csv") if MEANT["age > 30"](r)]
    assert made.request.pool.n == len(kept)


@pytest.mark.slow
def test_columns_that_must_be_read_are_read_whatever_the_condition_names():
    """Profiles do not hold all values of a column with many; it is read again."""
    header = (*HEADER, "pay")
    rows = [(*row, f"{1000 + 7 * row[0]}.5") for row in people(1500, 1)]
    write(
        "people.csv", header, [row for row in rows if row[1:3] != ("Female", "yes") or row[0] % 2]
    )
    more = [(*row, f"{1000 + 7 * row[0]},5") for row in people(1500, 2, 5000)]
    write("lake/a.csv", header, more, delimiter=";")
    done = Lake("lake").acquire(plan("dept = 'Ops'"), "out.csv")
    added = [row for row in read("out.csv") if int(row["id"]) >= 5000]
    assert added
    assert {row["dept"] for row in added} == {"Ops"}
    assert all(row["pay"].endswith(".5") for row in added)
    assert done.as_planned


def test_weights_of_rows_that_satisfy_a_condition():
    asked = {"sensitive_features": ["sex"], "label": "hired", "where": "dept = 'Ops'"}
    rows = [row for row in read("people.csv") if row["dept"] == "Ops"]
    columns = {"sex": [row["sex"] for row in rows]}
    expected = eq.sample_weight(y=[row["hired"] for row in rows], sensitive_features=columns)
    assert eq.sample_weight("people.csv", **asked).tolist() == expected.tolist()


@pytest.mark.slow
def test_rows_are_compared_by_what_is_left_missing_where_a_condition_holds():
    """A day that may be read in two ways is left missing, and still tells duplicates."""
    header = (*HEADER, "day")
    days = ["2021-03-04", "2021-05-06", "2021-07-08"]
    base = [(*row, days[row[0] % 3]) for row in people(160, 1)]
    kept = [row for row in base if row[1:3] != ("Female", "yes") or row[0] % 2]
    write("people.csv", header, kept)
    more = [(*row, ["03/04/2021", "05/06/2021"][row[0] % 2]) for row in people(300, 2, 1000)]
    write("lake/a.csv", header, more)
    done = Lake("lake").acquire(plan("dept = 'Ops'"), "out.csv")
    added = [row for row in read("out.csv") if int(row["id"]) >= 1000]
    assert len(added) == done.added > 0
    assert {(row["dept"], row["day"]) for row in added} == {("Ops", "")}


@pytest.mark.slow
def test_columns_of_very_many_values_are_read_whatever_the_condition():
    """They are not known by their profile, so that the base is read once more."""
    names = (*HEADER, "pay")
    rows = [(*row, f"{row[0] + 0.25}") for row in people(3000, 1, rate=0.4)]
    write("people.csv", names, rows)
    others = [(*row, f"{row[0] - 5000}.5") for row in people(3000, 2, 5000)]
    write("lake/a.csv", names, others)
    done = Lake("lake").acquire(plan("age > 30"), "out.csv")
    assert done.added > 0
    added = read("out.csv")[-done.added :]
    assert all(row["pay"].endswith(".5") for row in added)


@pytest.mark.slow
def test_a_repair_says_where_the_condition_cannot_be_checked():
    write("lake/a.csv", HEADER[:3], [row[:3] for row in people(300, 2, 1000)])
    done = eq.repair("people.csv", "lake", "out.csv", **ASKED, where="age > 30", tolerance=0.01)
    assert done.acquired.added == 0
    said = "The condition cannot be checked in a.csv (none of its columns is certain to be 'age'"
    assert any(sentence.startswith(said) for sentence in done.sentences)
    assert done.acquired.to_dict()["unchecked"] == {
        "a.csv": "none of its columns is certain to be 'age', which the condition names"
    }
