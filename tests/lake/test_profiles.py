"""One table of a lake, however it is written: a profile, a sentence why not, or both."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from equipoise.counts.skipped import Skipped
from equipoise.engines import engines, profiling
from equipoise.engines.csv import dialects, encodings, records
from equipoise.engines.profiling import Profiler
from equipoise.engines.routing import shared_engine
from equipoise.errors import EquipoiseError
from equipoise.lake.tables import catalog, profiles
from equipoise.lake.tables.profiles import profile_table
from strategies import NASTY

TEXT = "sex,hired\nw,yes\nm,no\n"
ENGINES = {name: engines()[name]() for name in ("duckdb", "memory")}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def looked_at(name, content=TEXT, engine=None):
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return looked_at_file(name, engine)


def looked_at_file(name, engine=None):
    (entry,) = catalog.files([name]).values()
    return profile_table(entry, engine or shared_engine())


def table(profiled):
    """The columns of a profile with their values."""
    return {c.name: list(c.values) for c in profiled.profile.columns}


# --------------------------------------------------------------------- what can be read


@pytest.mark.parametrize("name", ENGINES)
def test_a_table_is_known_by_its_hash_and_what_it_holds(name):
    found = looked_at("a.csv", engine=ENGINES[name])
    assert found.problem is None
    assert found.snapshot == hashlib.sha256(TEXT.encode()).hexdigest()
    assert found.profile.rows == 2
    assert table(found) == {"sex": ["w", "m"], "hired": ["yes", "no"]}


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("latin-1", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
def test_the_encoding_is_found(encoding, told):
    found = looked_at("a.csv", "nom,ville\nRené,Orléans\n".encode(encoding))
    assert (found.problem, found.source.encoding) == (None, told)
    assert table(found) == {"nom": ["René"], "ville": ["Orléans"]}


def test_utf16_of_both_orders_with_its_mark():
    for mark, codec in ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le")):
        found = looked_at("a.csv", mark + "nom,x\nRené,1\n".encode(codec))
        assert table(found) == {"nom": ["René"], "x": ["1"]}


def test_bytes_that_windows_does_not_know_are_latin1():
    assert looked_at("a.csv", b"a,b\n\xe9\x81,1\n").source.encoding == "latin-1"


def test_an_encoding_that_shows_late_is_found(monkeypatch):
    monkeypatch.setattr(encodings, "_BLOCK", 1 << 10)
    monkeypatch.setattr(profiles, "_SMALL", 0)
    content = ("nom,ville\n" + "a,b\n" * 1000 + "René,Orléans\n").encode("latin-1")
    found = looked_at("a.csv", content)
    assert (found.problem, found.source.encoding) == (None, "cp1252")
    assert table(found)["nom"] == ["a", "René"]


@pytest.mark.parametrize(
    "name", ["it's.csv", "new\nline.csv", "st*r[a].csv", "ünï✓.csv", "a::b.csv"]
)
@pytest.mark.parametrize("small", [0, 1 << 20])
def test_names_do_not_matter(name, small, monkeypatch):
    monkeypatch.setattr(profiles, "_SMALL", small)
    assert table(looked_at(name))["sex"] == ["w", "m"]


def test_packed_and_nested_tables():
    assert table(looked_at("a.csv.gz", gzip.compress(TEXT.encode())))["sex"] == ["w", "m"]
    assert looked_at("a.jsonl", '{"a": {"b": [1, 2]}}\n').profile.rows == 1
    assert table(looked_at("a.json", '[{"a": 1}, {"a": 2}]')) == {"a": ["1", "2"]}


# ------------------------------------------------------------------ what cannot be read


def parquet(**columns):
    pq.write_table(pa.table(columns), "whole.parquet")
    return Path("whole.parquet").read_bytes()


PACKED = gzip.compress(("sex,hired\n" + "w,yes\nm,no\n" * 9000).encode())
BROKEN = {
    "empty.csv": (b"", "empty.csv is empty; a table needs a header and rows."),
    "blank.csv": (b"\n \n\n", "blank.csv is empty; a table needs a header and rows."),
    "empty.csv.gz": (gzip.compress(b""), "empty.csv.gz is empty; a table needs a header and rows."),
    "header.csv": (b"sex,hired\n", "header.csv has no rows."),
    "bare.csv": (b"sex,hired", "bare.csv has no rows."),
    "binary.csv": (
        bytes(range(256)) * 9,
        "binary.csv is not text; it has the extension of a CSV file but binary content.",
    ),
    "ragged.csv": (
        b"a,b,c\n1,2,3\n4,5\n6,7\n",
        "ragged.csv is not a table of 3 columns: 2 lines have a different number of fields, and 1 have this",
    ),
    "wide.csv": (b"a,b\n1,2,3\n", "wide.csv is not a table of 2 columns: 1 lines have a different"),
    "plain.csv.gz": (TEXT.encode(), "plain.csv.gz cannot be read: Not a gzipped file (b'se')."),
    "cut.csv.gz": (
        PACKED[: len(PACKED) // 2],
        "cut.csv.gz cannot be read: Compressed file ended before the end-of-stream marker",
    ),
    "text.parquet": (
        TEXT.encode(),
        "text.parquet cannot be read: No magic bytes found at end of file 'text.parquet'.",
    ),
    "empty.parquet": (
        b"",
        "empty.parquet cannot be read: File 'empty.parquet' too small to be a Parquet file.",
    ),
    "bad.jsonl": (b'{"a": 1}\n{"a": \n{"a": 3}\n', "bad.jsonl cannot be read: Malformed JSON"),
    "empty.jsonl": (b"", "empty.jsonl has no rows."),
    "half.csv": ("nom,x\nRené,1\n".encode("utf-16")[:-1], "half.csv is not UTF-16 text;"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_told_in_a_sentence(name, engine, tmp_path):
    content, said = BROKEN[name]
    found = looked_at(str(tmp_path / name), content, ENGINES[engine])
    problem = found.problem.replace(str(tmp_path) + os.sep, "")
    assert problem.endswith(".")
    assert "Error" not in problem
    assert "\n" not in problem
    if engine == "duckdb":
        assert problem.startswith(said)
    assert found.snapshot == hashlib.sha256(content).hexdigest()


def test_a_table_is_called_by_its_name_in_the_lake(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.parquet").write_text(TEXT)
    (tmp_path / "lake" / "b.csv").write_text("a,a\n1,2,3\n")
    for entry in catalog.files([str(tmp_path / "lake")]).values():
        problem = profile_table(entry, shared_engine()).problem
        assert entry.name in problem
        assert str(tmp_path) not in problem


def test_parquet_cut_or_overwritten_or_without_rows():
    whole = parquet(a=list(range(10_000)))
    assert "No magic bytes" in looked_at("cut.parquet", whole[: len(whole) // 2]).problem
    spoilt = whole[:200] + bytes(1000) + whole[1200:]
    assert looked_at("spoilt.parquet", spoilt).problem.startswith("spoilt.parquet cannot be read: ")
    zero = looked_at("zero.parquet", parquet(a=pa.array([], pa.int64())))
    assert (zero.problem, zero.profile.rows) == ("zero.parquet has no rows.", 0)


def test_an_empty_table_leaves_the_others_of_its_database():
    with contextlib.closing(duckdb.connect("d.duckdb")) as connection:
        connection.execute("CREATE TABLE y AS SELECT 2 b; CREATE TABLE z (c INTEGER)")
    (entry,) = catalog.files(["d.duckdb"]).values()
    tables = catalog.tables(entry, shared_engine())
    said = {t.name: profile_table(t, shared_engine()).problem for t in tables}
    assert said == {"d.duckdb::y": None, "d.duckdb::z": "d.duckdb::z has no rows."}


def test_a_table_that_is_dropped_meanwhile_is_told_of():
    with contextlib.closing(duckdb.connect("d.duckdb")) as connection:
        connection.execute("CREATE TABLE y AS SELECT 2 b; CREATE TABLE z AS SELECT 3 c")
    (entry,) = catalog.files(["d.duckdb"]).values()
    _, gone = catalog.tables(entry, shared_engine())
    with contextlib.closing(duckdb.connect("d.duckdb")) as connection:
        connection.execute("DROP TABLE z")
    found = profile_table(gone, shared_engine())
    assert found.problem.startswith("d.duckdb has no table 'z'; it has: y.")
    assert found.profile is None


def test_a_file_that_vanishes_is_told_of():
    Path("a.csv").write_text(TEXT)
    (entry,) = catalog.files(["a.csv"]).values()
    Path("a.csv").unlink()
    found = profile_table(entry, shared_engine())
    assert (found.problem, found.profile) == (
        "a.csv cannot be read: No such file or directory.",
        None,
    )


# ------------------------------------------------------------------------------- lines


def test_a_file_without_a_line_break_is_no_table(monkeypatch):
    monkeypatch.setattr(dialects, "_LONGEST_LINE", 1000)
    found = looked_at("a.csv", "x," * 100_000)
    assert found.problem.startswith("a.csv has no line break in its first ")
    assert found.profile is None


def test_a_line_without_end_is_not_read_into_memory(monkeypatch):
    monkeypatch.setattr(records, "_LONGEST_RECORD", 1000)
    found = looked_at("a.csv", "a,b\n" + "1,2,3\n" + "x," * 100_000)
    assert "of a.csv has" in found.problem
    assert found.profile is None
    with pytest.raises(EquipoiseError, match="has a line that is too long for a table"):
        list(records.padded_records(Path("a.csv"), "utf-8")[1])


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_last_line_without_end_is_told_of_and_not_left_out(end, monkeypatch):
    monkeypatch.setattr(records, "_LONGEST_RECORD", 1000)
    monkeypatch.setattr(profiles, "_SMALL", 0)
    found = looked_at("a.csv", "a,b\n1,2\n3," + "x" * 5000 + end)
    assert found.problem == "a.csv has a line that is too long for a table."
    assert looked_at("a.csv", "a,b\n1,2\n3," + "x" * 900 + end).problem is None


def test_uneven_lines_still_tell_what_a_table_is_about():
    found = looked_at("a.csv", "a,b,a\n1,2,3\n4,5\n6,7,8,9\n")
    assert found.problem.startswith("a.csv is not a table of 3 columns")
    assert table(found) == {"a": ["1", "4", "6"], "b": ["2", "5", "7"], "a_2": ["3", "8"]}
    assert found.profile.columns[2].nulls == 1


UNTIDY = {
    "twice.csv": (b"a,a\n1,2\n", {"a": ["1"], "a_2": ["2"]}, Skipped()),
    "case.csv": (b"Age,age\n1,2\n", {"Age": ["1"], "age_2": ["2"]}, Skipped()),
    "ragged.csv": (
        b"a,b\n1,2\n4\n3,4\n1,2,3\n5,6\n",
        {"a": ["1", "3", "5"], "b": ["2", "4", "6"]},
        Skipped(2, ("line 3", "line 5")),
    ),
    "quoted.csv": (
        b'a,b\n1,2\n"4"x,5\n3,4\n',
        {"a": ["1", "3"], "b": ["2", "4"]},
        Skipped(1, ("line 3",)),
    ),
    "null.csv": (b"a,b\n\\N,2\n3,\\N\n", {"a": ["3"], "b": ["2"]}, Skipped()),
    "mixed.csv": (b"a,b\n1,2\r\n3,4\n", {"a": ["1", "3"], "b": ["2", "4"]}, Skipped()),
    "latin.csv": ("nom,b\nRené,1\nx\n".encode("cp1252"), {"nom": ["René"], "b": ["1"]}, None),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("name", UNTIDY)
def test_untidy_files_are_read_and_what_is_skipped_is_counted(name, small, engine, monkeypatch):
    monkeypatch.setattr(profiles, "_SMALL", small)
    content, expected, skipped = UNTIDY[name]
    found = looked_at(name, content, ENGINES[engine])
    assert found.problem is None
    assert table(found) == expected
    assert found.profile.skipped == (Skipped(1, ("line 3",)) if skipped is None else skipped)
    assert found.source.lenient == (name in ("twice.csv", "ragged.csv", "quoted.csv", "latin.csv"))


# ------------------------------------------------------ small files are read without a query

FIELD = st.one_of(
    st.sampled_from(
        ["", "a", " ", "0", "1.5", "nan", "NULL", "é", "a b", "'", "\\", "\\N", "#", "\t", "-"]
    ),
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)


@st.composite
def csv_files(draw):
    width = draw(st.integers(1, 4))
    names = [f"c{i}" for i in range(width)]
    rows = draw(st.lists(st.lists(FIELD, min_size=width, max_size=width), max_size=6))
    uneven = draw(st.lists(st.lists(FIELD, max_size=5), max_size=1))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    lines = [delimiter.join(line) for line in [names, *rows, *uneven]]
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    return (end.join(lines) + draw(st.sampled_from(["", end, end * 2]))).encode(encoding)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(content=csv_files())
@example(content=b"a\n1\n\n2\n")
@example(content=b"a,b\n1,2\n\n3,4")
@example(content=b"\n\na,b\n1,2\n")
@example(content=b"a,b\r\n1,2\n3,4\r\n")
@example(content=b"a,b\n1,x\ry\n")
@example(content=b"a,b\r1,2\r")
@example(content=b"a\n \n")
@example(content=b'a,b\n"1,2",3\n')
@example(content=b"a,b\n1,2\x00\n")
def test_what_is_read_here_is_what_the_engine_reads(content):
    Path("a.csv").write_bytes(content)
    (entry,) = catalog.files(["a.csv"]).values()
    source = catalog.opened(entry)
    try:
        here = profiles._quick(source)
    except EquipoiseError:
        return  # about which the engine says the same
    if here is not None:
        assert here == shared_engine().profile(source)


def test_most_plain_files_are_read_here(monkeypatch):
    monkeypatch.setattr(shared_engine(), "profile", None)
    for content in (TEXT, TEXT.replace("\n", "\r\n"), "a;b\n1;\n;2", "nom,x\nRené,1\n"):
        assert looked_at("a.csv", content).problem is None


def test_rows_in_batches_and_at_once_give_one_profile():
    rows = [[str(i % 700) if i % 5 else None, str(i % 7)] for i in range(5000)]
    columns = list(zip(*rows, strict=True))
    whole, parts, texts = (Profiler(["a", "b"], ["VARCHAR"] * 2) for _ in range(3))
    whole.add([pa.array(column, pa.string()) for column in columns])
    texts.add_texts(columns)
    for start in range(0, 5000, 300):
        piece = [pa.array(column[start : start + 300], pa.string()) for column in columns]
        parts.add(piece)
    assert whole.profile() == parts.profile() == texts.profile()
    a, b = whole.profile().columns
    assert (a.nulls, a.values, len(a.sketch)) == (1000, None, profiling.SKETCH)
    assert a.distinct == pytest.approx(560, rel=0.2)
    assert sum(b.values.values()) == 5000
