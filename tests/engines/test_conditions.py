"""Conditions on rows: the same rows from every kind of table, and clear words where there are none."""

from __future__ import annotations

import csv
import json
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
from equipoise.counts import Condition, CountRequest, Counts, Reading
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError, Unsupported

ENGINE = shared_engine()
REQUEST = CountRequest(sensitive=("sex",), label="hired")
NAMES = ("sex", "hired", "age", "pay", "since", "dept", "code")


def people(n=60, seed=1):
    draw = random.Random(seed)
    return [
        (
            draw.choice(["w", "m"]),
            draw.choice(["yes", "no"]),
            draw.choice([9, 30, 31, 100, None]),
            draw.choice([1.5, 9.25, 30.75, 100.0]),
            f"20{draw.choice([9, 10, 24]):02}-0{draw.randint(1, 9)}-11",
            draw.choice(["Sales", "Ops", None]),
            draw.choice(["007", "012", "900"]),
        )
        for _ in range(n)
    ]


def as_table(rows):
    columns = zip(*rows, strict=True)
    return pa.table({n: list(column) for n, column in zip(NAMES, columns, strict=True)})


def as_csv(path, rows, **how):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", **how)
        writer.writerow(NAMES)
        writer.writerows(rows)
    return path


def written(kind, folder, rows):
    table = as_table(rows)
    if kind == "csv":
        return as_csv(folder / "p.csv", rows)
    if kind == "folder":
        (folder / "parts").mkdir()
        as_csv(folder / "parts" / "a.csv", rows[:20])
        as_csv(folder / "parts" / "b.csv", rows[20:], delimiter=";")
        return folder / "parts"
    if kind == "parquet":
        pq.write_table(table, folder / "p.parquet")
        return folder / "p.parquet"
    if kind == "jsonl":
        lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
        (folder / "p.jsonl").write_text("\n".join(lines), "utf-8")
        return folder / "p.jsonl"
    if kind == "duckdb":
        with duckdb.connect(str(folder / "p.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS FROM given")
        return f"{folder / 'p.duckdb'}::people"
    return table if kind == "frame" else duckdb.from_arrow(table)


MEANT = {
    "age > 30": lambda r: r[2] is not None and r[2] > 30,
    "AGE >= 31 -- of age": lambda r: r[2] is not None and r[2] >= 31,
    "age IS NULL": lambda r: r[2] is None,
    "pay < 30 AND dept = 'Sales'": lambda r: r[3] < 30 and r[5] == "Sales",
    "since >= '2010-01-01'": lambda r: r[4] >= "2010-01-01",
    "year(CAST(since AS DATE)) = 2009": lambda r: r[4].startswith("2009"),
    "input.dept <> 'Sales' OR age = 9": lambda r: (
        (r[5] is not None and r[5] != "Sales") or r[2] == 9
    ),
    "code = '007'": lambda r: r[6] == "007",
    "code LIKE '0%'": lambda r: r[6].startswith("0"),
    "pay > age": lambda r: r[2] is not None and r[3] > r[2],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["csv", "folder", "parquet", "jsonl", "duckdb", "frame", "relation"]
)
def test_every_kind_of_table_gives_the_rows_that_are_meant(kind, tmp_path):
    rows = people()
    data = written(kind, tmp_path, rows)
    for where, is_meant in MEANT.items():
        kept = [row for row in rows if is_meant(row)]
        source = ENGINE.settled(locate(data, where=where))
        counts = ENGINE.counts(source, REQUEST)
        assert counts == Counts.from_arrow(as_table(kept), REQUEST), where
        given = ENGINE.rows(source, REQUEST, counts - counts, rest=True, located=True)
        assert given["place"].to_pylist() == list(range(len(kept))), where
        # The columns keep their own types, whatever they are compared as.
        assert ENGINE.schema(source) == ENGINE.schema(locate(data)), where
        assert [str(v) for v in given["age"].to_pylist()] == [str(r[2]) for r in kept], where
        assert given["code"].to_pylist() == [r[6] for r in kept], where


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["9", "30", "-4", "+7", ""], "BIGINT"),
        (["9", "30", "?", "NA", " 7 "], "BIGINT"),
        (["9", "30.50", ".5", "1e3"], "DOUBLE"),
        (["12345678901234567890"], "HUGEINT"),
        (["007", "12"], "VARCHAR"),
        (["9", "x"], "VARCHAR"),
        (["", "?"], "VARCHAR"),
        (["2024-02-29", "1999-12-31"], "DATE"),
        (["2024-02-30", "1999-12-31"], "VARCHAR"),
        (["2024-02-29T10:11", "1999-12-31 01:02:03.5"], "TIMESTAMP"),
        (["true", "False"], "BOOLEAN"),
    ],
)
def test_texts_are_compared_as_the_narrowest_type_that_all_present_ones_have(texts, kind):
    data = {"sex": ["w"] * len(texts), "hired": ["y"] * len(texts), "x": texts}
    source = ENGINE.settled(locate(data, where="x IS NULL OR x IS NOT NULL"))
    assert source.where.types == {"x": kind}
    assert ENGINE.counts(source, REQUEST).n == len(texts)


@pytest.mark.parametrize("kind", ["text", "float64", "float32", "parquet"])
def test_not_a_number_is_greater_than_none(kind, tmp_path):
    numbers = [1.5, float("nan"), -2.5, None, 3.0]
    x = pa.array([None if v is None else str(v) for v in numbers])
    if kind != "text":
        x = pa.array(numbers, pa.float32() if kind == "float32" else pa.float64())
    data = pa.table({"sex": list("wmwmw"), "hired": list("ynyny"), "x": x})
    if kind == "parquet":
        pq.write_table(data, tmp_path / "a.parquet")
        data = tmp_path / "a.parquet"
    for where, rows in {"x > 0": 2, "x <> 3": 2, "x IS NULL": 2}.items():
        source = ENGINE.settled(locate(data, where=where))
        assert ENGINE.counts(source, REQUEST).n == rows, where
        assert ENGINE.schema(source) == ENGINE.schema(locate(data))


def test_long_numbers_are_told_apart_to_the_last_digit():
    first = 12345678901234567890
    texts = [str(first + i) for i in range(9)]
    data = {"sex": list("wmw") * 3, "hired": list("yny") * 3, "id": texts}
    for where, rows in {
        f"id = {first}": 1,
        f"id = '{first + 1}'": 1,
        f"id > {first + 1}": 7,
        f"id IN ({first}, {first + 8})": 2,
    }.items():
        source = ENGINE.settled(locate(data, where=where))
        assert ENGINE.counts(source, REQUEST).n == rows, where
    assert source.reading.sentences[0].endswith("(id as whole numbers).")


@pytest.mark.parametrize(
    "where",
    [
        "nullif(dept, 'Sales') IS NOT NULL",
        "split_part(dept, 'a', 1) <> 'S'",
        "if(dept = 'Sales', false, true)",
        "list_max(['A', dept]) <> 'Sales'",
    ],
)
def test_functions_that_are_written_by_means_of_others_are_steady(where):
    rows = [row for row in people() if row[5] is not None]
    counts = eq.count(as_table(rows), sensitive_features=["sex"], label="hired", where=where)
    assert counts.n == sum(row[5] != "Sales" for row in rows)


def test_a_column_of_numbers_may_be_asked_about_as_text():
    data = {
        "sex": list("wmw"),
        "hired": list("yny"),
        "phone": ["5512", "12", "1255"],
        "n": list("123"),
    }
    source = ENGINE.settled(locate(data, where="phone LIKE '%55%' AND n >= 2"))
    assert source.where.types == {"phone": "VARCHAR", "n": "BIGINT"}
    assert ENGINE.counts(source, REQUEST).n == 1


def test_as_what_it_compares_is_decided_once_and_holds_for_other_tables():
    first = {"sex": list("wm"), "hired": list("yn"), "age": ["9", "30"]}
    second = {"sex": list("wmw"), "hired": list("ynn"), "age": ["9.5", "unknown", "30.0"]}
    settled = ENGINE.settled(locate(first, where="age > 9")).where
    assert ENGINE.counts(locate(second, where=settled), REQUEST).n == 1
    stored = {**second, "age": [9, 31, 4]}
    assert ENGINE.counts(locate(stored, where=settled), REQUEST).n == 1
    as_text = ENGINE.settled(locate(second, where="age > '4'")).where
    assert as_text.types == {"age": "VARCHAR"}
    assert ENGINE.counts(locate(stored, where=as_text), REQUEST).n == 1  # 31 < '4' as text


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("", "it is empty"),
        ("age >", "syntax error"),
        ("age > 3; DROP TABLE x", "without a semicolon"),
        ("age > 3;", "without a semicolon"),
        ("WHERE age > 3", "without WHERE"),
        ("SELECT * FROM input WHERE age > 3", "Give a whole query as `sql`."),
        ("1 = 1) GROUP BY (age", "it contains more than a condition"),
        ("1 = 1) UNION SELECT 1 --", "syntax error"),
        ("age > (SELECT avg(age) FROM input)", "a subquery"),
        ("EXISTS (FROM read_text('/etc/hostname'))", "a subquery"),
        ("row_number() OVER () < 3", "a window function"),
        ("sum(age) > 3", "sum() aggregates many rows"),
        ("random() < 0.5", "the value of random may change"),
        ("since < current_date", "the value of current_date may change"),
        ("now() > since", "the value of now may change"),
        ("since < ago('1 day')", "the value of ago may change"),
        ("COLUMNS(*) IS NOT NULL", "a star, for all columns"),
        ("age > $1", "a parameter without a value"),
        ("age + 1", "its type is BIGINT, not BOOLEAN"),
        ("ag > 3", "has no column 'ag', which the condition 'ag > 3' names; it has: sex,"),
        ("ag > 3", "Did you mean 'age'?"),
        ('dept = "Sales"', "Text is written in single quotes"),
        ("rowid < 3", "has no column 'rowid'"),
        ("dept > 3", "it compares dept as text"),
        ("age > 1000", "no row of the frame satisfies the condition age > 1000"),
    ],
)
def test_what_is_no_condition_is_refused_in_words(where, says):
    texts = [tuple(None if v is None else str(v) for v in row) for row in people()]
    with pytest.raises(InputError) as caught:
        eq.count(as_table(texts), sensitive_features=["sex"], label="hired", where=where)
    assert says in str(caught.value)
    assert "Binder Error" not in str(caught.value)


def test_a_condition_is_about_the_result_of_a_query():
    query = "SELECT sex, hired, age * 2 AS twice FROM input"
    counts = eq.count(
        as_table(people()), sensitive_features="sex", label="hired", sql=query, where="twice > 60"
    )
    assert counts.n == sum(r[2] is not None and r[2] > 30 for r in people())
    assert counts.reading.sql == query
    assert "twice" in counts.reading.where.types


def test_counts_that_are_made_already_take_no_condition():
    counts = Counts.from_mapping({("w", "y"): 1, ("m", "n"): 2}, sensitive=["sex"], label="l")
    with pytest.raises(InputError, match="already counted"):
        eq.measure(counts, where="age > 3")


def test_rows_of_two_conditions_together_are_of_neither():
    old, young = (
        eq.count(as_table(people()), sensitive_features="sex", label="hired", where=where)
        for where in ("age > 30", "age <= 30")
    )
    assert (old + young).reading == Reading()
    assert (old + old).reading == old.reading
    told = eq.diff(old, young)
    assert "Before: Only rows where age > 30 are counted" in told.text()
    assert "After: Only rows where age <= 30 are counted" in told.text()
    assert told.to_dict()["reading_after"]["where"] == "age <= 30"


def test_a_broken_file_is_no_fault_of_the_condition(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("sex,hired,age\nw,yes,31\nm,no,9,8\n", "utf-8")
    with pytest.raises(InputError, match=r"line 3 of .* has 4 fields"):
        eq.count(path, sensitive_features="sex", label="hired", where="age > 30")
    with pytest.raises(InputError, match=r"cannot be evaluated on the frame: .*\["):
        eq.count(
            as_table(people()), sensitive_features="sex", label="hired", where="dept SIMILAR TO '['"
        )


def test_the_memory_engine_declares_that_it_cannot():
    source = locate(as_table(people()), where="age > 3")
    for verb in (MemoryEngine().settled, MemoryEngine().schema):
        with pytest.raises(Unsupported, match="cannot run SQL"):
            verb(source)
    plain = locate(as_table(people()))
    assert MemoryEngine().settled(plain) is plain


def test_weights_are_those_of_the_rows_of_the_condition(tmp_path):
    rows = people()
    kept = [r for r in rows if r[2] is not None and r[2] > 30]
    asked = {"sensitive_features": ["sex"], "label": "hired"}
    expected = eq.sample_weight(as_table(kept), **asked).tolist()
    for data in (as_table(rows), as_csv(tmp_path / "p.csv", rows)):
        assert eq.sample_weight(data, where="age > 30", **asked).tolist() == expected


def test_a_reading_survives_the_file_and_older_files_have_none():
    counts = eq.count(as_table(people()), sensitive_features="sex", label="hired", where="age > 30")
    again = Counts.from_json(counts.to_json())
    assert again.reading == counts.reading
    assert again.reading.where == Condition("age > 30", {"age": "BIGINT"})
    old = counts.to_dict()
    del old["reading"]
    assert Counts.from_dict(old).reading == Reading()
    for damaged in ({"where": 3}, {"where": "a", "where_types": {"a": 1}}, {"encoding": []}):
        with pytest.raises(InputError, match="damaged"):
            Counts.from_dict({**counts.to_dict(), "reading": damaged})
