r"""CSV files as they are found: broken lines, mixed line endings, marks, \N, odd headers."""

from __future__ import annotations

import csv
import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.counts import CountRequest, Counts
from equipoise.counts.skipped import Skipped
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.readers import copies
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import ColumnNotFound, InputError
from equipoise.values import MISSING
from written import write_rows

ENGINES = {"duckdb": shared_engine(), "memory": MemoryEngine()}
REQUEST = CountRequest(sensitive=("a",), label="b")
HOW_TO = "fix the file, or skip such lines with `lenient=True`."


@pytest.fixture(params=list(ENGINES))
def engine(request):
    return ENGINES[request.param]


@pytest.fixture
def put(tmp_path):
    def write(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(engine, data, **options):
    """All rows of a table, in their order."""
    found = engine.fetch(locate(data, **options), range(10_000))
    assert found["place"].to_pylist() == list(range(len(found)))
    columns = found.select(range(found.num_columns - 2)).to_pydict()
    return list(zip(*columns.values(), strict=True))


def names(engine, data, **options):
    return [column.name for column in engine.schema(locate(data, **options))]


def said(engine, data, **options):
    with pytest.raises(InputError) as caught:
        rows(engine, data, **options)
    return str(caught.value)


# ---------------------------------------------------------------------- broken lines

BROKEN = st.sampled_from(["1", "1,2,3", '"x"y,2', "1,2,", ",,", 'x,"y" z'])
FIELD = st.one_of(
    st.sampled_from(["x", "", "y z", "\\N", '"', "a,b", "two\nlines", "é", "\\", "N"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
)


def line(record):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(record)
    return text.getvalue()


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_broken_lines_are_skipped_and_no_row_is_changed(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    good = data.draw(st.lists(st.tuples(FIELD, FIELD), min_size=3, max_size=9))
    bad = data.draw(st.lists(BROKEN, max_size=3))
    lines = [(line(record), True) for record in good] + [(text, False) for text in bad]
    lines = data.draw(st.permutations(lines))
    ends = [data.draw(st.sampled_from(["\n", "\r\n", "\r"])) for _ in range(len(lines) + 1)]
    text = "".join(t + e for t, e in zip(["a,b", *(t for t, _ in lines)], ends, strict=True))
    path.write_bytes(text.encode())
    in_order = [t for t, is_good in lines if is_good]
    expected = [next(csv.reader([t], strict=True)) for t in in_order if "\n" not in t]
    if len(expected) < len(in_order):  # the reader takes a record of two lines in two pieces
        expected = list(csv.reader(io.StringIO("\n".join(in_order), newline="")))
    expected = [tuple(value or None for value in record) for record in expected]
    for engine in ENGINES.values():
        assert rows(engine, path, lenient=True) == expected
        assert engine.profile(locate(path, lenient=True)).skipped.lines == len(bad)
        if not bad:
            assert rows(engine, path) == expected


def test_skipped_lines_are_counted_and_named(engine, put):
    path = put("a,b\nx,1\nx\n\nx,2,3\n" + "y,1\n" * 9 + 'z,"1"2\n')
    counts = engine.counts(locate(path, lenient=True), REQUEST)
    assert (counts.n, counts.skipped) == (10, Skipped(3, ("line 3", "line 5", "line 15")))
    assert Counts.from_json(counts.to_json()).skipped == counts.skipped
    assert engine.counts(locate(put("a,b\nx,1\n"), lenient=True), REQUEST).skipped == Skipped()


def test_broken_lines_are_an_error_that_offers_the_way(engine, put):
    path = put("a,b\nx,1\nx,2,3\n")
    assert said(engine, path) == (f"line 3 of {path} has 3 fields where 2 are expected; {HOW_TO}")
    assert said(engine, put('a,b\nx,1\nx,"1"2\n')).endswith(HOW_TO)
    mixed = said(engine, put("a,b\nx,1\r\nx,2,3\n"))
    assert "line 3 of" in mixed
    assert mixed.endswith(HOW_TO)


def test_a_quote_that_is_never_closed_takes_its_lines_with_it(engine, put):
    path = put("a,b\n" + "x,1\n" * 9 + 'x,"1\ny,2\ny,3\n')
    assert rows(engine, path, lenient=True) == [("x", "1")] * 9
    assert engine.profile(locate(path, lenient=True)).skipped == Skipped(3, ("line 11",))


def test_a_file_of_which_most_is_no_row_is_refused(engine, put):
    text = said(engine, put("a,b\nx,1\n1,2,3\n1,2,3\n"), lenient=True)
    assert (
        "is not a table of 2 columns: 2 lines have a different number of fields, and 1 have this"
        in text
    )


def test_of_several_files_each_broken_line_is_told_with_its_file(tmp_path):
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("a,b\nx,1\nx\n")
    (tmp_path / "two.csv").write_text("b,a\n1,x\n2,y\n1,2,3\n")
    source = locate(tmp_path, lenient=True)
    counts = shared_engine().counts(source, REQUEST)
    assert (counts.of("a=x"), counts.of("a=y")) == (2, 1)
    assert counts.skipped == Skipped(2, ("line 3 of one.csv", "line 4 of two.csv"))


def test_places_are_the_same_at_every_reading(put):
    path = put("a,b\n" + "".join(f"{i},x\n" if i % 7 else "broken\n" for i in range(500)))
    places = None
    for _ in range(2):
        engine = DuckDBEngine()
        source = locate(path, lenient=True)
        take = engine.counts(source, REQUEST)
        found = engine.rows(source, REQUEST, take, seed=3, located=True)
        told = dict(zip(found["place"].to_pylist(), found["a"].to_pylist(), strict=True))
        assert places in (None, told)
        places = told
        assert engine.fetch(source, [5])["a"].to_pylist() == [told[5]]
        engine.close()
    assert list(dict(sorted(places.items())).values()) == [str(i) for i in range(500) if i % 7]


def test_copies_are_few_and_are_made_again_when_a_file_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "KEPT", 2)
    engine = DuckDBEngine()
    for i in range(6):
        (tmp_path / f"{i}.csv").write_text(f"a,b\nx,{i}\nbroken\n")
        assert rows(engine, tmp_path / f"{i}.csv", lenient=True) == [("x", str(i))]
    folder = engine._session.folder
    assert len(list(folder.glob("*.parquet"))) == 2
    assert len(rows(engine, tmp_path, lenient=True)) == 6  # more than are kept, read at once
    assert len(list(folder.glob("*.parquet"))) == 2
    (tmp_path / "5.csv").write_text("a,b\nx,new\n")
    assert rows(engine, tmp_path / "5.csv", lenient=True) == [("x", "new")]
    engine.close()
    assert not folder.exists()


# ------------------------------------------------------------------------- line ends


@pytest.mark.parametrize("first", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("other", ["\n", "\r\n", "\r"])
def test_line_endings_may_be_mixed(engine, put, first, other):
    path = put(f'a,b{first}x,1{other}"y\n{first}z",2{first}{other}w,3')
    assert rows(engine, path) == [("x", "1"), (f"y\n{first}z", "2"), ("w", "3")]
    assert engine.counts(locate(path), REQUEST).n == 3


@pytest.mark.slow
def test_a_long_file_whose_line_ending_changes_late(put):
    text = "a,b\n" + "x,1\n" * 200_000 + "y,2\r\n" * 10
    counts = shared_engine().counts(locate(put(text)), REQUEST)
    assert (counts.of("a=x"), counts.of("a=y, b=2")) == (200_000, 10)


# ------------------------------------------------------------------------------ nulls


def test_a_bare_null_of_dumps_is_missing_and_text_in_quotes_is_text(engine, put):
    path = put('a\tb\n\\N\t1\n"\\N"\t\\N\n\\n\t\\N\\N\n"x\n\\N\ty"\t\\N', "x.tsv")
    expected = [(None, "1"), ("\\N", None), ("\\n", "\\N\\N"), ("x\n\\N\ty", None)]
    assert rows(engine, path) == expected
    assert rows(engine, path, lenient=True) == expected
    assert engine.distinct(locate(path), "a")[MISSING] == 1


@pytest.mark.slow
@settings(max_examples=25)
@given(values=st.lists(st.none() | st.sampled_from(["\\N", "N", "x"]), min_size=1, max_size=6))
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv"])
def test_the_text_is_written_such_that_it_is_read_again(tmp_path_factory, ending, values):
    path = tmp_path_factory.mktemp("csv") / f"x{ending}"
    table = pa.table({"a": pa.array(values, pa.string()), "b": ["1"] * len(values)})
    write_rows(shared_engine(), table, path)
    assert [a for a, _ in rows(shared_engine(), path)] == values
    coded = table.set_column(0, "a", table["a"].dictionary_encode())
    write_rows(shared_engine(), coded, path)
    assert [a for a, _ in rows(shared_engine(), path)] == values


def test_the_plain_engine_writes_it_likewise(tmp_path):
    table = pa.table({"a": ["\\N", None, "x"], "b": ["1", "2", "3"]})
    write_rows(MemoryEngine(), table, tmp_path / "x.csv")
    assert rows(shared_engine(), tmp_path / "x.csv") == [("\\N", "1"), (None, "2"), ("x", "3")]


# ---------------------------------------------------------------------------- headers


def test_columns_that_differ_only_in_case_are_numbered(engine, put):
    path = put("IOD,iod,b,Iod\n1,2,x,3\n")
    assert names(engine, path) == ["IOD", "iod_2", "b", "Iod_3"]
    assert rows(engine, path) == [("1", "2", "x", "3")]
    request = CountRequest(sensitive=("IOD", "iod_2"), label="b")
    assert engine.counts(locate(path), request).of("IOD=1, iod_2=2") == 1


def test_a_column_that_has_another_name_here_is_told_of(put):
    path = put("IOD,iod,b\n1,2,x\n")
    with pytest.raises(ColumnNotFound) as caught:
        shared_engine().counts(locate(path), CountRequest(sensitive=("iod",), label="b"))
    assert str(caught.value) == (
        f"column 'iod' of {path} is called 'iod_2' here, because another column has the same "
        "name except for case; use that name."
    )


def test_a_condition_is_not_held_against_the_other_of_two_columns_that_differ_in_case(put):
    path = put("a,b,IOD,iod\nx,1,k,l\ny,2,l,k\nx,2,k,k\n")
    with pytest.raises(InputError, match=r"names 'iod', which may be 'IOD' or 'iod_2' of"):
        shared_engine().counts(locate(path, where="iod = 'k'"), REQUEST)
    for where, rows in {"IOD = 'k'": 2, "iod_2 = 'l'": 1, "B = 2": 2}.items():
        assert shared_engine().counts(locate(path, where=where), REQUEST).n == rows


def test_columns_of_one_name_are_numbered_only_if_that_is_asked_for(engine, put):
    path = put("a,a_2,a,b\n1,2,3,x\n")
    assert "more than one column named 'a'; rename one, or number them" in said(engine, path)
    assert names(engine, path, lenient=True) == ["a", "a_2", "a_3", "b"]
    assert rows(engine, path, lenient=True) == [("1", "2", "3", "x")]


@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_without_a_header(engine, put, lenient):
    path = put("\nx,1\ny,2\n")
    assert names(engine, path, header=False, lenient=lenient) == ["column_1", "column_2"]
    assert rows(engine, path, header=False, lenient=lenient) == [("x", "1"), ("y", "2")]
    assert names(engine, path) == ["x", "1"]


def test_a_header_is_not_asked_about_where_names_are_stored(put, tmp_path):
    with pytest.raises(InputError, match="`header=False` is only for CSV and Excel"):
        locate({"a": [1]}, header=False)


# -------------------------------------------------------------------------- encodings


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize("lenient", [False, True])
def test_a_mark_tells_the_encoding(engine, put, encoding, lenient):
    path = put("größe,b\né,1\nü,2\n".encode(encoding))
    assert names(engine, path, lenient=lenient) == ["größe", "b"]
    assert rows(engine, path, lenient=lenient) == [("é", "1"), ("ü", "2")]
    packed = put(gzip.compress(path.read_bytes()), "x.csv.gz")
    assert rows(engine, packed, lenient=lenient) == [("é", "1"), ("ü", "2")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_mark_is_no_part_of_the_first_name_where_the_encoding_is_given(engine, put, encoding):
    for mark in ("\ufeff", ""):
        path = put(f"{mark}größe,b\né,1\n".encode(encoding))
        assert names(engine, path, encoding=encoding) == ["größe", "b"]
        assert rows(engine, path, encoding=encoding) == [("é", "1")]
    with pytest.raises(InputError, match="UTF-16 without a byte-order mark, set"):
        rows(engine, path)


def test_text_that_is_not_in_its_encoding_is_refused_leniently_too(engine, put):
    path = put(b"a,b\n\xff,1\n")
    assert "is not UTF-8 text" in said(engine, path, lenient=True)
