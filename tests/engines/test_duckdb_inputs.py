"""Everything DuckDB is given: each kind of input, the rules of text, and bad input."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.counts import CountRequest, Counts
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import (
    ColumnNotFound,
    CountsError,
    EquipoiseError,
    InputError,
    SourceNotFound,
)
from equipoise.lattice import Group
from equipoise.scratch import LOCK
from equipoise.values import MISSING, as_value
from strategies import NASTY
from written import write_rows

ENGINE = DuckDBEngine(in_place=0)  # so that frames are queried, too
REQUEST = CountRequest(sensitive=("sex",), label="hired")
EXPECTED = Counts.from_mapping(
    {("m", "yes"): 1, ("w", "no"): 2, ("w", "yes"): 1, (MISSING, "no"): 1},
    sensitive=["sex"],
    label="hired",
)
PEOPLE = {
    "sex": ["m", "w", "w", "w", None, "m"],
    "hired": ["yes", "no", "no", "yes", "no", None],
    "age": [31, 25, 45, 60, 25, 18],
}
CSV = "sex,hired,age\nm,yes,31\nw,no,25\nw,no,45\nw,yes,60\n,no,25\nm,,18\n"


def count(data, request=REQUEST, **options) -> Counts:
    return ENGINE.counts(locate(data, **options), request)


def refusal(data, request=REQUEST, kind=InputError, **options) -> str:
    """The one sentence that says why an input cannot be used."""
    with pytest.raises(EquipoiseError) as caught:
        count(data, request, **options)
    assert isinstance(caught.value, kind), repr(caught.value)
    return sentence(caught.value)


def sentence(error: BaseException) -> str:
    text = str(error)
    assert text == text.strip()
    assert text.isprintable(), repr(text)
    assert text.endswith((".", "?"))
    assert not text.endswith("..")
    return text


def rows_of(data, **options) -> Counter:
    """All rows of a table, as text."""
    source = locate(data, **options)
    names = [c.name for c in ENGINE.schema(source)]
    request = CountRequest(sensitive=tuple(names[:-1]), label=names[-1], missing_label="group")
    found = ENGINE.rows(source, request, ENGINE.counts(source, request))
    return Counter(zip(*(map(as_value, c.to_pylist()) for c in found.columns), strict=True))


# --------------------------------------------------------------------- kinds of input


def written(folder: Path, ending: str) -> Path:
    """Write the same people in the way an ending says."""
    path = folder / f"people{ending}"
    plain = ending.removesuffix(".gz")
    if plain in (".csv", ".txt"):
        content = CSV
    elif plain in (".tsv", ".tab"):
        content = CSV.replace(",", "\t")
    elif plain in (".jsonl", ".ndjson", ".json"):
        lines = zip(*PEOPLE.values(), strict=True)
        content = "".join(json.dumps(dict(zip(PEOPLE, line, strict=True))) + "\n" for line in lines)
    elif plain in (".parquet", ".pq"):
        pq.write_table(pa.table(PEOPLE), path)
        return path
    else:
        with duckdb.connect(path) as database:
            people = pa.table(PEOPLE)
            database.register("arrow", people)
            database.execute("CREATE TABLE people AS FROM arrow")
            database.unregister("arrow")
        return path
    opener = gzip.open if ending.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(content)
    return path


ENDINGS = [
    ".csv", ".csv.gz", ".txt", ".tsv", ".tsv.gz", ".tab", ".parquet", ".pq",
    ".jsonl", ".jsonl.gz", ".ndjson", ".json", ".duckdb", ".db",
]  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_of_file_gives_the_same_counts(tmp_path, ending):
    path = written(tmp_path, ending)
    counts = count(path)
    assert counts == EXPECTED
    assert counts.missing_values == {"sex": 1, "hired": 1}
    assert count(str(path)) == EXPECTED


@pytest.mark.parametrize("ending", ENDINGS)
def test_sql_runs_over_every_kind_of_file(tmp_path, ending):
    path = written(tmp_path, ending)
    counts = count(path, sql="SELECT * FROM input WHERE CAST(age AS INTEGER) >= 30")
    assert counts.n == 3
    assert counts.of("sex=w") == 2


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(lambda: PEOPLE, id="mapping of lists"),
        pytest.param(
            lambda: {"sex": np.array(["m", "w"]), "hired": ("yes", "no")}, id="mapping of arrays"
        ),
        pytest.param(lambda: pd.DataFrame(PEOPLE), id="pandas"),
        pytest.param(lambda: pd.DataFrame(PEOPLE, dtype="object"), id="pandas objects"),
        pytest.param(lambda: pd.DataFrame(PEOPLE).astype("category"), id="pandas categories"),
        pytest.param(lambda: pd.DataFrame(PEOPLE).sort_values("age").iloc[:4], id="pandas index"),
        pytest.param(lambda: pl.DataFrame(PEOPLE), id="polars"),
        pytest.param(
            lambda: pl.DataFrame(PEOPLE).with_columns(pl.col("sex").cast(pl.Categorical)),
            id="polars categories",
        ),
        pytest.param(lambda: pa.table(PEOPLE), id="Arrow table"),
        pytest.param(lambda: pa.table(PEOPLE).to_reader(), id="Arrow stream"),
        pytest.param(lambda: pa.RecordBatch.from_pydict(PEOPLE), id="Arrow batch"),
    ],
)
def test_frames(frame):
    data = frame()
    source = locate(data)
    counts = ENGINE.counts(source, REQUEST)
    assert counts.n >= 2
    if len(source.data) == 6:
        assert counts == EXPECTED
    assert ENGINE.counts(source, REQUEST) == counts  # a second time, also of a stream
    assert {c.name for c in ENGINE.schema(source)} >= {"sex", "hired"}


def test_values_of_pandas_that_are_no_text():
    frame = pd.DataFrame(
        {
            "cut": pd.cut(pd.Series([1, 20, 30]), [0, 10, 40]),
            "mixed": [1, "1", None],
            "nullable": pd.array([True, None, False], dtype="boolean"),
            0: ["a", "b", "c"],
        }
    )
    assert ENGINE.distinct(locate(frame), "cut") == {"(10, 40]": 2, "(0, 10]": 1}
    assert ENGINE.distinct(locate(frame), "mixed") == {"1": 2, MISSING: 1}
    assert ENGINE.distinct(locate(frame), "nullable") == {"false": 1, "true": 1, MISSING: 1}
    assert ENGINE.distinct(locate(frame), "0") == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    "data",
    [5, [1, 2], None, pd.Series([1]), pl.Series([1]), b"bytes", {}, pd.DataFrame()],
    ids=lambda data: type(data).__name__,
)
def test_what_is_no_table(data):
    with pytest.raises(InputError) as caught:
        locate(data)
    sentence(caught.value)


def test_columns_of_several_lengths():
    assert "expected length 2" in refusal({"sex": ["m", "w"], "hired": ["yes"]})


def test_a_relation_is_counted_on_its_own_connection():
    with duckdb.connect() as connection:
        connection.register("arrow", pa.table(PEOPLE))
        connection.execute("CREATE TABLE people AS FROM arrow")
        relation = connection.sql("SELECT * FROM people")
        assert count(relation) == EXPECTED
        assert count(relation, sql="SELECT * FROM input WHERE age > 30").n == 3
        request = CountRequest(sensitive=("age",), label="hired", bins={"age": 2})
        assert count(relation, request).bins == count(PEOPLE, request).bins
        assert ENGINE.distinct(locate(relation), "sex") == {"w": 3, "m": 2, MISSING: 1}
        chosen = [
            ENGINE.rows(locate(data), REQUEST, EXPECTED, seed=3).to_pylist()
            for data in (relation, PEOPLE)
        ]
        assert chosen[0] == chosen[1]
        assert len(chosen[0]) == 5
        assert connection.sql("SELECT count(*) FROM people").fetchall() == [(6,)]
        assert ENGINE.profile(locate(relation)).rows == 6
        assert "it has: sex, hired, age" in refusal(
            relation, CountRequest(sensitive=("nope",), label="hired"), ColumnNotFound
        )


# -------------------------------------------------------------------- folders and globs


def test_a_folder_is_one_table_however_deep(tmp_path):
    for place in ("a.csv", "year=2020/b.csv", "deep/er/c.CSV", ".hidden/d.csv", "_temporary/e.csv"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(CSV, "utf-8")
    (tmp_path / "notes.md").write_text("no table", "utf-8")
    counts = count(tmp_path)
    assert counts == EXPECTED + EXPECTED + EXPECTED
    names = [c.name for c in ENGINE.schema(locate(tmp_path))]
    assert names == ["sex", "hired", "age"]  # folder names are no columns


def test_a_folder_of_parquet_is_read_by_column_names(tmp_path):
    pq.write_table(pa.table(PEOPLE), tmp_path / "a.parquet")
    (tmp_path / "year=2020").mkdir()
    pq.write_table(pa.table(PEOPLE).select(["age", "hired", "sex"]), tmp_path / "year=2020/b.pq")
    assert count(tmp_path) == EXPECTED + EXPECTED
    assert "year" not in [c.name for c in ENGINE.schema(locate(tmp_path))]


def test_a_folder_of_json_lines(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, ".jsonl")
    assert count(tmp_path) == EXPECTED + EXPECTED


def test_a_glob(tmp_path):
    for name in ("a1.csv", "a2.csv", "b1.csv"):
        (tmp_path / name).write_text(CSV, "utf-8")
    assert count(f"{tmp_path}/a*.csv") == EXPECTED + EXPECTED
    assert count(f"{tmp_path}/**/*.csv").n == 3 * EXPECTED.n
    assert ENGINE.tables(locate(f"{tmp_path}/?1.csv")) == (
        f"{tmp_path}/a1.csv",
        f"{tmp_path}/b1.csv",
    )


def test_files_of_several_dialects_are_one_table(tmp_path):
    (tmp_path / "a.csv").write_text(CSV, "utf-8")
    (tmp_path / "b.csv").write_text(CSV.replace(",", ";"), "utf-8")
    (tmp_path / "c.csv").write_text("hired|age|sex\nyes|1|m\n", "utf-8")
    assert count(tmp_path).n == 2 * EXPECTED.n + 1
    assert count(tmp_path).of("sex=m, hired=yes") == 3


@pytest.mark.parametrize(
    "name",
    [
        "[a].csv", "a'b.csv", 'a"b.csv', "a b.csv", "a*b?.csv", "it's [1] {x}.csv", "ümlaut 👩.csv",
        "a;b--c.csv", "::.csv", "a::b.csv", "%20.csv", "$HOME.csv", "~.csv",
    ],
)  # fmt: skip
def test_file_names_mean_what_they_say(tmp_path, name):
    (tmp_path / name).write_text(CSV, "utf-8")
    (tmp_path / "a.csv").write_text("sex,hired\nx,x\n", "utf-8")  # what [a].csv would match
    assert count(tmp_path / name) == EXPECTED
    pq.write_table(pa.table(PEOPLE), (tmp_path / name).with_suffix(".parquet"))
    assert count((tmp_path / name).with_suffix(".parquet")) == EXPECTED


def test_folders_and_globs_that_hold_no_table(tmp_path):
    assert "holds no table" in refusal(tmp_path, kind=SourceNotFound)
    assert "holds no table" in refusal(f"{tmp_path}/*.csv", kind=SourceNotFound)


def test_files_of_several_kinds(tmp_path):
    written(tmp_path, ".csv")
    written(tmp_path, ".parquet")
    assert "files of several kinds (csv, parquet)" in refusal(tmp_path)


def test_files_of_other_columns(tmp_path):
    (tmp_path / "a.csv").write_text(CSV, "utf-8")
    (tmp_path / "b.csv").write_text("sex,hired\nm,yes\n", "utf-8")
    assert "b.csv has different columns from" in refusal(tmp_path)


# ---------------------------------------------------------------------- DuckDB files


@pytest.fixture
def database(tmp_path) -> Path:
    path = tmp_path / "lake's.duckdb"
    with duckdb.connect(path) as connection:
        people = pa.table(PEOPLE)
        connection.register("arrow", people)
        connection.execute("CREATE TABLE people AS FROM arrow")
        connection.execute("CREATE VIEW adults AS FROM people WHERE age >= 25")
        connection.execute("CREATE SCHEMA hr")
        connection.execute("CREATE TABLE hr.people AS FROM arrow LIMIT 1")
        connection.execute('CREATE TABLE "odd ""name"" :: x.y; --" AS FROM arrow LIMIT 2')
        connection.unregister("arrow")
    return path


def test_tables_of_a_database_are_those_that_hold_rows(database):
    names = ENGINE.tables(locate(database))
    assert set(names) == {"people", "hr.people", 'odd "name" :: x.y; --'}


@pytest.mark.parametrize(
    ("table", "n"),
    [
        ("people", 5),
        ("main.people", 5),
        ("hr.people", 1),
        ("adults", 5),
        ('odd "name" :: x.y; --', 2),
    ],
)
def test_a_table_of_a_database(database, table, n):
    assert count(f"{database}::{table}").n == n


def test_the_only_table_of_a_database_need_not_be_named(tmp_path):
    path = written(tmp_path, ".duckdb")
    assert count(path) == count(f"{path}::people") == count(f"{path}::") == EXPECTED


def test_several_tables_and_none_named(database):
    assert "has several tables; name one as" in refusal(database)


def test_a_table_that_is_not_there(database):
    assert "Did you mean 'people'?" in refusal(f"{database}::peple")


def test_a_database_without_tables(tmp_path):
    duckdb.connect(tmp_path / "empty.duckdb").close()
    assert "has no tables" in refusal(tmp_path / "empty.duckdb")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "a.duckdb").write_bytes(b"no database" * 1000)
    assert "cannot be opened as a DuckDB database" in refusal(tmp_path / "a.duckdb")
    assert "does not exist" in refusal(f"{tmp_path}/b.duckdb::t", kind=SourceNotFound)


def test_a_database_is_never_written_to(database):
    before = database.read_bytes()
    assert count(f"{database}::people").n == 5
    assert database.read_bytes() == before
    assert [p.name for p in database.parent.iterdir()] == [database.name]


def test_a_database_that_somebody_else_has_open(database):
    program = f"import duckdb; c = duckdb.connect({str(database)!r}); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        text = refusal(f"{database}::people")
        other.communicate(b"\n")
    assert "cannot be opened as a DuckDB database" in text
    assert count(f"{database}::people").n == 5


# ------------------------------------------------------------------------------- SQL


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM input",
        "select sex, hired from input;",
        "FROM input",
        "TABLE input",
        "WITH x AS (SELECT * FROM input) SELECT * FROM x",
        "SELECT * FROM input -- all of it",
        "SELECT * FROM input /* ) */",
        "\n\tSELECT sex, hired\nFROM input\n;\n",
        "SELECT * FROM input UNION ALL SELECT * FROM input WHERE false",
        "SELECT 'a;b' AS c, * FROM input ORDER BY ALL",
    ],
)
def test_queries(query):
    assert count(PEOPLE, sql=query) == EXPECTED


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; SELECT 2",
        "SELECT * FROM input; DROP TABLE x",
        "CREATE TABLE x AS SELECT 1",
        "DROP TABLE input",
        "INSERT INTO input VALUES (1)",
        "DELETE FROM input",
        "UPDATE input SET sex = 'x'",
        "COPY input TO '/tmp/equipoise-must-not-exist.csv'",
        "ATTACH '/tmp/equipoise-must-not-exist.duckdb'",
        "PRAGMA database_list",
        "SET threads = 1",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "EXPORT DATABASE '/tmp/equipoise-must-not-exist'",
        "",
        "   ",
        "-- nothing",
    ],
)
def test_statements_that_are_no_query(query):
    # Some versions of DuckDB take a PRAGMA for a query, which then cannot stand in another.
    assert refusal(PEOPLE, sql=query).startswith(("`sql` takes one SELECT", "the SQL over"))
    assert not list(Path("/tmp").glob("equipoise-must-not-exist*"))


@pytest.mark.parametrize(
    "query",
    [
        "SELEC * FROM input",
        "SELECT (* FROM input",
        "SELECT * FROM input) UNION ALL (SELECT 1, 2, 3",
        "SELECT nope FROM input",
        "SELECT * FROM other",
        "SELECT * FROM input WHERE age = ?",
        "SELECT *, CAST(sex AS INTEGER) AS z FROM input",
        "SELECT * FROM 'https://example.org/x.parquet'",
        "WITH d AS (DELETE FROM input RETURNING *) SELECT * FROM d",
    ],
)
def test_queries_that_fail(query):
    text = refusal(PEOPLE, CountRequest(sensitive=("sex",), label="hired", count="z"), sql=query)
    assert "SQL" in text


def test_a_query_that_finds_nothing():
    assert "has no rows" in refusal(PEOPLE, sql="SELECT * FROM input WHERE false")


# --------------------------------------------------------------------- rules of text


def test_every_field_of_csv_is_text(tmp_path):
    path = tmp_path / "a.csv"
    fields = ["01", "1", "1.0", "NULL", "null", "nan", "NaN", "*", "<missing>", "true", "TRUE"]
    fields += ["2020-01-01", "2020-1-1", " x ", "x", "1e3", "1000", "-0", "'quoted'", "N/A", "\\n"]
    path.write_text("a,b\n" + "".join(f"{f},y\n" for f in fields), "utf-8")
    assert rows_of(path) == Counter((f, "y") for f in fields)
    counts = count(path, CountRequest(sensitive=("a",), label="b"))
    assert {v: counts.of(Group({"a": v})) for v in counts.axis("a").values} == dict.fromkeys(
        fields, 1
    )


def test_an_empty_field_is_missing_quoted_or_not(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n"",y\n,y\n" ",y\n"""",y\n', "utf-8")
    assert rows_of(path) == Counter({(MISSING, "y"): 2, (" ", "y"): 1, ('"', "y"): 1})


def test_more_texts_that_mean_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n?,y\nN/A,y\nn/a,y\n,y\nit's,y\n", "utf-8")
    request = CountRequest(sensitive=("a",), label="b", na=("?", "N/A", "it's", '"'))
    counts = count(path, request)
    assert counts.of("a=<missing>") == 4
    assert counts.axis("a").values == ("n/a", MISSING)
    assert counts.missing_values["a"] == 4


def test_texts_of_json_lines_stay_as_they_are(tmp_path):
    path = tmp_path / "a.jsonl"
    texts = ["2020-01-01", "2020-1-1", "2020-01-01T00:00:00Z", "12:00", "01", "1.0", "", "null"]
    texts += ["b1d6b6d4-1f43-4a4a-9f4b-0123456789AB"]
    for text in texts:  # one by one, since a type is guessed for the whole column
        path.write_text(json.dumps({"a": text, "b": "y"}) + "\n", "utf-8")
        assert rows_of(path) == Counter([(text, "y")])


def test_numbers_and_nulls_of_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":1,"b":true}\n{"b":false}\n{"a":null,"b":true}\n', "utf-8")
    assert rows_of(path) == Counter([("1", "true"), (MISSING, "false"), (MISSING, "true")])


def test_a_column_that_json_lines_name_late(tmp_path):
    path = tmp_path / "a.jsonl"
    late = '{"b":"y"}\n' * 30_000 + '{"a":"x","b":"y"}\n'
    path.write_text(late, "utf-8")
    assert rows_of(path) == Counter({("y", MISSING): 30_000, ("y", "x"): 1})


def test_a_value_that_changes_its_kind_late(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":1,"b":"y"}\n' * 30_000 + '{"a":"x","b":"y"}\n', "utf-8")
    assert rows_of(path) == Counter({("1", "y"): 30_000, ("x", "y"): 1})


def test_values_as_parquet_stores_them(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["01", "", None, "nan"], "b": [1.5, 2.0, float("nan"), 3]}), path)
    assert rows_of(path) == Counter(
        [("01", "1.5"), ("", "2.0"), (MISSING, MISSING), ("nan", "3.0")]
    )


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".tsv", ".csv.gz", ".ndjson"])
@settings(max_examples=15)
@given(values=st.lists(st.sampled_from(NASTY), min_size=1, max_size=6), names=st.data())
def test_hostile_names_and_values_do_nothing(tmp_path_factory, ending, values, names):
    hostile = [n for n in NASTY if n.strip() == n and n and "\x00" not in n and n != "\ufeff"]
    picked = names.draw(
        st.lists(st.sampled_from(hostile), min_size=2, max_size=3, unique_by=lambda n: n.casefold())
    )
    if ".csv" in ending or ending == ".tsv":
        values = [v for v in values if v and "\x00" not in v] or ["x"]
    table = pa.table([values] * len(picked), names=picked)
    path = tmp_path_factory.mktemp("hostile") / f"a{ending}"
    write_rows(ENGINE, table, path)
    delimiter = "," if "csv" in ending else None  # a name such as |;, would mislead the guess
    assert rows_of(path, delimiter=delimiter) == Counter((v,) * len(picked) for v in values)
    request = CountRequest(
        sensitive=tuple(picked[:-1]), label=picked[-1], na=tuple(values[:1]), missing_label="group"
    )
    assert count(path, request, delimiter=delimiter).missing_values == dict.fromkeys(
        picked, values.count(values[0])
    )


# ------------------------------------------------------------------------ CSV dialects


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    path.write_text(CSV.replace(",", delimiter), "utf-8")
    assert count(path) == EXPECTED


@pytest.mark.parametrize("delimiter", [":", "~", "^", "§", " "])
def test_a_delimiter_that_is_named(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    path.write_text(CSV.replace(",", delimiter), "utf-8")
    assert count(path, delimiter=delimiter) == EXPECTED


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_a_delimiter_that_is_none(tmp_path, delimiter):
    path = written(tmp_path, ".csv")
    assert "a delimiter is one character" in refusal(path, delimiter=delimiter)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda b: b"\xef\xbb\xbf" + b, "byte-order mark"),
        (lambda b: b.replace(b"\n", b"\r\n"), "CRLF"),
        (lambda b: b.replace(b"\n", b"\r"), "CR"),
        (lambda b: b.rstrip(b"\n"), "no line end at the end"),
        (lambda b: b + b"\n\n", "empty lines at the end"),
        (lambda b: b.replace(b"\n", b"\n\n"), "empty lines between"),
        (lambda b: b"\n\n" + b, "empty lines at the start"),
        (lambda b: b"\xef\xbb\xbf\r\n" + b.replace(b"\n", b"\r\n"), "BOM and an empty line"),
        (lambda b: b.replace(b"sex,hired,age", b" sex ,hired , age"), "spaces in the header"),
        (lambda b: b.replace(b"m", b'"m"').replace(b"w", b'"w"'), "quotes"),
    ],
)
def test_ways_to_write_the_same_csv(tmp_path, change, why):
    path = tmp_path / "a.csv"
    path.write_bytes(change(CSV.encode()))
    assert count(path) == EXPECTED, why


def test_a_table_of_one_column_and_missing_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\nx\n\nx\n", "utf-8")
    assert ENGINE.distinct(locate(path), "a") == {"x": 2, MISSING: 1}


def test_quoted_line_ends_over_many_blocks(tmp_path):
    path = tmp_path / "a.csv"
    line = '"one\ntwo, ""three""\n",y,' + "x" * 200 + "\n"
    path.write_text("a,b,c\n" + line * 50_000, "utf-8")
    assert ENGINE.distinct(locate(path), "a") == {'one\ntwo, "three"\n': 50_000}


@pytest.mark.slow
def test_a_header_of_very_many_columns(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"a rather long name of a column, number {i}" for i in range(3000)]
    path.write_text(",".join(f'"{n}"' for n in names) + "\n" + ",".join("x" * 3000) + "\n", "utf-8")
    assert len(ENGINE.schema(locate(path, delimiter=","))) == 3000


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [
        ("latin-1", "latin-1"),
        ("LATIN_1", "latin-1"),
        ("cp1252", "cp1252"),
        ("windows-1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("UTF-16", "utf-16"),
        ("utf-16-be", "utf-16-be"),
        ("shift_jis", "shift_jis"),
        ("utf8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
    ],
)
def test_encodings(tmp_path, encoding, codec):
    texts = {"shift_jis": "日本", "cp1252": "“café”"}.get(codec, "Müller")
    texts += "😀" if codec.startswith("utf") else ""
    for ending in (".csv", ".csv.gz"):
        content = f"sex,hired\n{texts},yes\n{'x' * 70_000},no\n".encode(codec)
        path = tmp_path / f"a{ending}"
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
        assert count(path, encoding=encoding).of(Group({"sex": texts})) == 1


def test_encodings_leave_no_files_behind(tmp_path):
    engine = DuckDBEngine()
    path = tmp_path / "a.csv"
    path.write_bytes(CSV.encode("utf-16"))
    assert engine.counts(locate(path, encoding="utf-16"), REQUEST) == EXPECTED
    assert [path.name for path in engine._session.folder.iterdir()] == [LOCK]
    engine.close()
    assert not engine._session.folder.exists()


@pytest.mark.parametrize("encoding", ["klingon", "zip", "rot13", ""])
def test_encodings_that_are_none(tmp_path, encoding):
    path = written(tmp_path, ".csv")
    if encoding:
        assert "is not known; use a name such as utf-8" in refusal(path, encoding=encoding)
    else:
        assert count(path, encoding=encoding) == EXPECTED


def test_a_file_in_another_encoding_than_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("sex,hired\nM\xfcller,yes\n".encode("latin-1"))
    assert "is not UTF-8 text" in refusal(path)
    assert "is not UTF-16" in refusal(path, encoding="utf-16")
    late = b"sex,hired\n" + b"x,yes\n" * 50_000 + b"M\xfcller,yes\n"
    path.write_bytes(late)
    assert "is not UTF-8 text" in refusal(path)


def test_a_replacement_character_is_a_character(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sex,hired\n\ufffd,yes\n", "utf-8")
    assert count(path).of("sex=\ufffd") == 1


# -------------------------------------------------------------------------- bad files


def bad(folder: Path, content: bytes, ending: str = ".csv") -> str:
    path = folder / f"bad{ending}"
    path.write_bytes(content)
    return refusal(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\n\n  \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"sex,hired\n", "has no rows"),
        (b"sex,hired", "has no rows"),
        (b"sex,hired,sex\nm,y,m\n", "more than one column named 'sex'"),
        (b"a,hired,a\nm,y,m\n", "more than one column named 'a'"),
        (b"sex,hired\nm,y\nm\n", "line 3 of .* has 1 fields where 2 are expected"),
        (b"sex,hired\nm,y,z\n", "line 2 of .* has 3 fields where 2 are expected"),
        (b'sex,hired\nm,"y\n', "line 2 of"),
        (b'sex,hired\nm,"y"z\n', "line 2 of"),
        (b"\x00\x01\x02PAR1\xff\xfe", "is not text"),
        (b"sex,hired\nm,\xff\xfe\n", "is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not"),
        ("sex,hired\nm,y\n".encode("utf-16-le"), "is not"),
    ],
)
def test_bad_csv(tmp_path, content, why):
    import re

    assert re.search(why, bad(tmp_path, content))


BAD_FILES = [
    (".parquet", b""),
    (".parquet", b"sex,hired\nm,y\n"),
    (".parquet", b"PAR1" + b"\0" * 100 + b"PAR1"),
    (".jsonl", b""),
    (".jsonl", b"not json\n"),
    (".jsonl", b'{"sex":"m","hired":"y"}\n{"sex":\n'),
    (".jsonl", b'{"sex":"m","hired":"y"}\n' * 30_000 + b'{"sex":\n'),
    (".jsonl", b"\xff\xfe\x00"),
    (".json", b"[1, 2"),
    (".csv.gz", b"sex,hired\nm,y\n"),
    (".csv.gz", gzip.compress(CSV.encode() * 100)[:-20]),
    (".csv.gz", b""),
    (".jsonl.gz", b"no gzip"),
    (".xlsx", b"PK"),
    ("", b"sex,hired\nm,y\n"),
    (".csv.zst", b"x"),
]


@pytest.mark.parametrize(("ending", "content"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_bad_files_of_other_kinds(tmp_path, ending, content):
    assert "bad" in bad(tmp_path, content, ending)


def test_columns_without_a_name_are_numbered(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",sex,hired,\n0,m,yes,x\n", "utf-8")
    assert [c.name for c in ENGINE.schema(locate(path))] == [
        "unnamed_1",
        "sex",
        "hired",
        "unnamed_4",
    ]
    assert count(path).n == 1


def test_a_json_file_may_be_an_array_of_objects(tmp_path):
    rows = [dict(zip(PEOPLE, line, strict=True)) for line in zip(*PEOPLE.values(), strict=True)]
    for name, text in (("a.json", json.dumps(rows)), ("b.json", json.dumps(rows, indent=2))):
        (tmp_path / name).write_text(text, "utf-8")
        assert count(tmp_path / name) == EXPECTED


def test_a_parquet_file_that_is_cut_short(tmp_path):
    path = written(tmp_path, ".parquet")
    path.write_bytes(path.read_bytes()[:-20])
    assert "people.parquet" in refusal(path)


def test_a_path_that_is_not_there(tmp_path):
    written(tmp_path, ".csv")
    assert "Did you mean 'people.csv'?" in refusal(tmp_path / "poeple.csv", kind=SourceNotFound)
    refusal(tmp_path / "no" / "where.csv", kind=SourceNotFound)
    refusal("", kind=SourceNotFound)
    refusal(f"{tmp_path}/line\nbreak\x1b.csv", kind=SourceNotFound)


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = written(tmp_path, ".csv")
    real = os.access
    # Not by chmod: root may read everything.
    monkeypatch.setattr(
        os, "access", lambda p, mode, **kw: False if str(p) == str(path) else real(p, mode, **kw)
    )
    assert "cannot be read; check its permissions" in refusal(path, kind=SourceNotFound)


def test_a_file_that_vanishes_between_finding_and_reading(tmp_path):
    for ending in (".csv", ".parquet", ".jsonl", ".duckdb"):
        path = written(tmp_path, ending)
        source = locate(path)
        path.unlink()
        with pytest.raises(InputError) as caught:
            ENGINE.counts(source, REQUEST)
        assert path.name in sentence(caught.value)


def test_missing_columns_are_named_with_the_nearest(tmp_path):
    path = written(tmp_path, ".csv")
    text = refusal(path, CountRequest(sensitive=("gender", "sxe"), label="hired"), ColumnNotFound)
    assert text.startswith(f"column 'gender' not found in {path}; it has: sex, hired, age.")
    text = refusal(path, CountRequest(sensitive=("sex",), label="Hired"), ColumnNotFound)
    assert text.endswith("Did you mean 'hired'?")
    text = refusal(path, CountRequest(sensitive=("sex",), label="hired", count="agee"))
    assert text.endswith("Did you mean 'age'?")
    text = refusal(path, CountRequest(sensitive=("sex",), label="hired", weight="a\nge\x1b"))
    assert "column 'a\\nge\\x1b' not found" in text


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
    ],
    ids=["list", "struct", "map", "array"],
)
def test_nested_columns_of_files(tmp_path, column):
    pq.write_table(pa.table({"sex": column, "hired": ["y", "n"]}), tmp_path / "a.parquet")
    assert "'sex' of" in refusal(tmp_path / "a.parquet")
    assert "holds nested values" in refusal(tmp_path / "a.parquet")
    request = CountRequest(sensitive=("hired",), label="sex")
    assert "'sex' of" in refusal(tmp_path / "a.parquet", request)
    assert ENGINE.profile(locate(tmp_path / "a.parquet")).rows == 2


@pytest.mark.parametrize(
    ("field", "shown"),
    [("-1", "'-1'"), ("1.5", "'1.5'"), ("ten", "'ten'"), ("", "empty fields"), ("inf", "'inf'")],
)
def test_bad_counts_in_a_file(tmp_path, field, shown):
    path = tmp_path / "a.csv"
    path.write_text(f"sex,hired,n\nm,y,2\nm,y,{field}\n", "utf-8")
    request = CountRequest(sensitive=("sex",), label="hired", count="n")
    text = refusal(path, request, CountsError)
    assert text.startswith(f"column 'n' holds {shown}")


@pytest.mark.parametrize("field", ["-0.1", "", "heavy", "inf", "nan"])
def test_bad_weights_in_a_file(tmp_path, field):
    path = tmp_path / "a.csv"
    path.write_text(f"sex,hired,w\nm,y,0.5\nm,y,{field}\n", "utf-8")
    request = CountRequest(sensitive=("sex",), label="hired", weight="w")
    assert "'w' has 1 weights that are missing" in refusal(path, request, CountsError)


def test_bins_of_text(tmp_path):
    path = written(tmp_path, ".csv")
    for bins in (3, (1, 2)):
        request = CountRequest(sensitive=("sex",), label="hired", bins={"sex": bins})
        assert refusal(path, request).startswith("column 'sex' is to be binned but holds 'm'")


# ------------------------------------------------------------------ the engine itself


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 0}, {"threads": -1}, {"threads": "many"}, {"threads": 1.5}, {"threads": 10**30},
        {"memory": "lots"}, {"memory": ""}, {"memory": "-1GB"}, {"memory": "2 parsecs"},
        {"memory": 3},
    ],
)  # fmt: skip
def test_bad_settings(options):
    with pytest.raises(InputError) as caught:
        DuckDBEngine(**options)
    assert "threads is a whole number of at least 1" in sentence(caught.value)


def test_too_little_memory():
    engine = DuckDBEngine(threads=1, memory="1MB")
    with pytest.raises(InputError) as caught:
        engine.counts(
            locate(
                PEOPLE, sql="SELECT range AS sex, md5(range::VARCHAR) AS hired FROM range(9000000)"
            ),
            REQUEST,
        )
    assert "needs more memory than allowed" in sentence(caught.value)
    engine.close()


def test_settings_are_used():
    engine = DuckDBEngine(threads=1, memory="200MB")
    threads, memory, folder = engine._session.connection.sql(
        "SELECT current_setting('threads'), current_setting('memory_limit'), "
        "current_setting('temp_directory')"
    ).fetchall()[0]
    assert (threads, folder) == (1, str(engine._session.folder))
    assert memory.startswith("190.7")  # in units of 1024
    engine.close()


def test_nothing_is_fetched_from_outside():
    found = ENGINE._session.connection.sql(
        "SELECT value FROM duckdb_settings() WHERE name LIKE 'auto%_known_extensions'"
    ).fetchall()
    assert found == [("false",), ("false",)]


def test_engines_are_shared_by_their_settings():
    assert shared_engine() is shared_engine()
    assert shared_engine(threads=1) is not shared_engine()


def test_an_engine_serves_many_threads(tmp_path):
    paths = [written(tmp_path, ending) for ending in (".csv", ".parquet", ".duckdb", ".jsonl")]
    found: list[object] = []

    def work(path):
        try:
            found.extend(count(path) == EXPECTED for _ in range(5))
        except Exception as error:  # noqa: BLE001 (shown by the assertion)
            found.append(error)

    threads = [threading.Thread(target=work, args=(path,)) for path in paths * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


PROGRAMS = {
    "measure": "import equipoise as eq; eq.measure('adult', sensitive_features=['sex'], label='income')",
    "error": (
        "import equipoise as eq\n"
        "try: eq.measure('adult', sensitive_features=['sxe'], label='income')\n"
        "except eq.EquipoiseError: pass"
    ),
    "failed SQL": (
        "import equipoise as eq\n"
        "try: eq.count('adult', sensitive_features=['sex'], label='income', sql='SELECT nope FROM input')\n"
        "except eq.EquipoiseError: pass"
    ),
    "engine left open": (
        "from equipoise.engines.duckdb import DuckDBEngine\n"
        "from equipoise.engines.sources import locate\n"
        "engine = DuckDBEngine(); engine.distinct(locate({'a': [1]}), 'a')"
    ),
    "in a thread": (
        "import threading, equipoise as eq\n"
        "work = lambda: eq.count('adult', sensitive_features=['sex'], label='income')\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()"
    ),
    "relation": (
        "import duckdb, equipoise as eq\n"
        "relation = duckdb.sql(\"SELECT 'a' AS a, 'b' AS b\")\n"
        "eq.count(relation, sensitive_features=['a'], label='b')"
    ),
    "quantiles": (
        "import equipoise as eq\n"
        "eq.count('adult', sensitive_features=['age'], label='income', bins={'age': 4})"
    ),
    "exit": (
        "import sys, equipoise as eq\n"
        "eq.count('adult', sensitive_features=['sex'], label='income'); sys.exit(0)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_ends_silently_and_leaves_nothing(tmp_path, program):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAMS[program]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_uncaught_error_prints_its_traceback_and_no_more(tmp_path):
    program = (
        "import equipoise as eq; eq.count('adult', sensitive_features=['sxe'], label='income')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("equipoise.errors.ColumnNotFound: column 'sxe'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_interrupted_program_says_so_and_no_more(tmp_path):
    program = (
        "import equipoise as eq\n"
        "query = 'SELECT a.range % 2 AS s, b.range % 2 AS y FROM range(100000000) a, range(1000) b'\n"
        "def report(title, share):\n"
        "    print('running', flush=True)\n"
        "eq.count({'x': [1]}, sensitive_features=['s'], label='y', sql=query, progress=report)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "running\n"
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
    assert run.returncode == -signal.SIGINT
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert list(tmp_path.iterdir()) == []
