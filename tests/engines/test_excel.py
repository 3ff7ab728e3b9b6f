"""Excel files: what sheets mean as tables, and what cannot be read."""

from __future__ import annotations

import datetime
import sys

import pytest

import workbooks
from equipoise.counts import CountRequest
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError, MissingDependency

ENGINE = shared_engine()
PEOPLE = [["sex", "hired", "age"], ["m", "yes", 31], ["w", "no", 25], ["w", "no", None]]


def table(data, **options):
    """The rows of a table, in their order, as Python values."""
    source = locate(data, **options)
    found = ENGINE.fetch(source, range(1000))
    return found.select(range(found.num_columns - 2)).to_pydict()


def said(data, **options):
    with pytest.raises(InputError) as caught:
        table(data, **options)
    assert str(caught.value).endswith((".", "?"))
    return str(caught.value)


def test_a_sheet_is_a_table(tmp_path):
    path = workbooks.write(tmp_path / "a.xlsx", {"Staff": PEOPLE})
    assert table(path) == {
        "sex": ["m", "w", "w"],
        "hired": ["yes", "no", "no"],
        "age": [31, 25, None],
    }
    assert table(f"{path}::Staff") == table(path)
    counts = ENGINE.counts(locate(path), CountRequest(sensitive=("sex",), label="hired"))
    assert counts.of("sex=w, hired=no") == 2


def test_one_of_several_sheets_is_named_and_hidden_or_empty_ones_are_none(tmp_path):
    sheets = {"a b": PEOPLE, "Codes": [["x"], [1]], "Empty": [], "Notes": [["x"], [1]]}
    path = workbooks.write(tmp_path / "a.xlsx", sheets, hidden=["Notes"])
    assert ENGINE.tables(locate(path)) == ("a b", "Codes")
    assert said(path).endswith(f"name one as {path}::SHEET; it has: a b, Codes.")
    assert table(f"{path}::Codes") == {"x": [1]}
    assert "has no sheet 'code'" in said(f"{path}::code")
    assert "Did you mean 'Codes'?" in said(f"{path}::code")
    only = workbooks.write(tmp_path / "b.xlsx", {"Empty": [], "Staff": PEOPLE})
    assert table(only)["sex"] == ["m", "w", "w"]


def test_numbers_dates_truth_values_and_errors_keep_what_they_are(tmp_path):
    day = datetime.date(2024, 2, 29)
    midnight = datetime.datetime.combine(day, datetime.time())
    moment = datetime.datetime.combine(day, datetime.time(12, 30))
    rows = [
        ["whole", "part", "day", "moment", "true", "both", "mixed", "error"],
        [1.0, 0.5, day, moment, True, day, "x", workbooks.Error("#N/A")],
        [2, 1, None, moment, False, moment, 7, 3],
        [None, None, day, None, None, None, day, workbooks.Error("#DIV/0!")],
    ]
    found = table(workbooks.write(tmp_path / "a.xlsx", {"s": rows}))
    assert found["whole"] == [1, 2, None]
    assert [type(v) for v in found["whole"][:2]] == [int, int]
    assert found["part"] == [0.5, 1.0, None]
    assert found["day"] == [day, None, day]
    assert found["moment"] == [moment, moment, None]
    assert found["true"] == [True, False, None]
    assert found["both"] == [midnight, moment, None]
    assert found["mixed"] == ["x", "7", "2024-02-29"]
    assert found["error"] == [None, 3, None]


def test_dates_count_as_iso_dates(tmp_path):
    rows = [["day", "y"], [datetime.date(2024, 2, 29), "a"]]
    path = workbooks.write(tmp_path / "a.xlsx", {"s": rows})
    counts = ENGINE.counts(locate(path), CountRequest(sensitive=("day",), label="y"))
    assert counts.axis("day").values == ("2024-02-29",)


def test_titles_and_blank_rows_above_the_header_are_passed_over(tmp_path):
    rows = [[], ["Staff of 2024"], [], *PEOPLE[:2], [], [None, None, None], *PEOPLE[2:], []]
    path = workbooks.write(tmp_path / "a.xlsx", {"s": rows}, merged={"s": ["A2:C2"]})
    assert table(path)["sex"] == ["m", "w", "w"]
    moved = [[None, None, *row] for row in rows]
    assert table(workbooks.write(tmp_path / "b.xlsx", {"s": moved})) == table(path)


def test_a_cell_merged_over_rows_counts_for_each(tmp_path):
    rows = [["dept", "sex"], ["Sales", "w"], [None, "m"], [None, "w"], ["Law", "m"]]
    path = workbooks.write(tmp_path / "a.xlsx", {"s": rows}, merged={"s": ["A2:A4"]})
    assert table(path)["dept"] == ["Sales", "Sales", "Sales", "Law"]


def test_columns_without_a_name_or_of_one_name_are_told_apart(tmp_path):
    rows = [["x", None, "X", 2024], [1, 2, 3, 4]]
    path = workbooks.write(tmp_path / "a.xlsx", {"s": rows})
    assert list(table(path)) == ["x", "unnamed_2", "X_2", "2024"]


def test_a_sheet_without_a_header(tmp_path):
    path = workbooks.write(tmp_path / "a.xlsx", {"s": PEOPLE[1:]})
    found = table(path, header=False)
    assert list(found) == ["column_1", "column_2", "column_3"]
    assert found["column_1"] == ["m", "w", "w"]


def test_a_changed_file_is_read_again(tmp_path):
    path = workbooks.write(tmp_path / "a.xlsx", {"s": PEOPLE})
    assert len(table(path)["sex"]) == 3
    workbooks.write(path, {"s": [*PEOPLE, ["m", "no", 50]]})
    assert table(path)["sex"] == ["m", "w", "w", "m"]


def test_what_cannot_be_read_is_told(tmp_path):
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    assert "is protected by a password" in said(path)
    whole = workbooks.write(tmp_path / "b.xlsx", {"s": PEOPLE}).read_bytes()
    for content in (
        b"",
        b"sex,hired\nm,yes\n",
        whole[: len(whole) // 2],
        b"PK\x03\x04" + bytes(99),
    ):
        path.write_bytes(content)
        assert "cannot be read as an Excel file" in said(path)
    workbooks.write(path, {"s": []})
    assert said(path) == f"{path} has no sheets with data; there is nothing to measure."


def test_without_the_extra_it_is_said_how_to_install_it(tmp_path, monkeypatch):
    path = workbooks.write(tmp_path / "a.xlsx", {"s": PEOPLE})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingDependency, match=r"pip install 'equipoise\[excel\]'"):
        ENGINE.schema(locate(path))
