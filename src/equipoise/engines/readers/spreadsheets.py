"""Sheets of Excel files, copied to Parquet. Needs the extra ``excel``."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.engines.column_names import numbered
from equipoise.errors import InputError, MissingDependency

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_OLE = b"\xd0\xcf\x11\xe0"
"""First bytes of a file that is encrypted with a password, or of Excel before 2007."""
_EXACT = 1 << 53
_MIDNIGHT = datetime.time()
_ERRORS = frozenset(
    {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA", "#SPILL!"}
    | {"#CALC!", "#DATA!"}
)
_LOOKED_AT = 50


def sheets(path: Path) -> tuple[str, ...]:
    """Names of the sheets of a workbook that are visible and not empty."""
    with _opened(path) as book:
        return tuple(name for name in _visible(book) if _cells(book.get_sheet_by_name(name)))


def copy_sheet(path: Path, sheet: str, target: Path, *, header: bool) -> None:
    """Copy a sheet to a Parquet file.

    Rows above the header that are empty or hold only a title are skipped, and so are empty rows
    below it. Cells merged over rows have their value in each row. Errors and blanks are missing.
    """
    import pyarrow.parquet as pq

    with _opened(path) as book:
        rows = _cells(book.get_sheet_by_name(sheet))
    if not rows:
        raise InputError(f"the sheet {sheet!r} of {path} is empty; there is nothing to measure.")
    first = _header_row(rows) if header else 0
    names, places = _columns(rows[first:], header=header)
    below = [row for row in rows[first + header :] if any(row[i] is not None for i in places)]
    arrays = [_array([row[i] for row in below]) for i in places]
    pq.write_table(pa.table(arrays, names=list(names)), target, compression="zstd")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[CalamineWorkbook]:
    try:
        import python_calamine
    except ImportError:
        raise MissingDependency(
            "python-calamine", extra="excel", purpose=f"reading {path}, an Excel file,"
        ) from None
    try:
        with path.open("rb") as file:
            start = file.read(len(_OLE))
        if start == _OLE:
            raise InputError(
                f"{path} is protected by a password, or in the format of Excel before 2007; save "
                "it without a password as .xlsx."
            )
        with python_calamine.CalamineWorkbook.from_path(path) as book:
            yield book
    except python_calamine.PasswordError:
        raise InputError(f"{path} is protected by a password; save it without one.") from None
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "broken"
        raise InputError(
            f"{path} cannot be read as an Excel file: {reason}; it is damaged, or in another "
            "format."
        ) from None


def _visible(book: CalamineWorkbook) -> list[str]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    return [
        about.name
        for about in book.sheets_metadata
        if about.typ == SheetTypeEnum.WorkSheet and about.visible == SheetVisibleEnum.Visible
    ]


def _cells(sheet: CalamineSheet) -> list[list[Any]]:
    """Return the rows of a sheet from its first cell, with merged cells filled down."""
    rows = [[_value(cell) for cell in row] for row in sheet.to_python(skip_empty_area=False)]
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        if top >= len(rows) or left >= len(rows[top]):
            continue
        # A cell merged across columns is a title, and not a value of each of them.
        for row in rows[top + 1 : bottom + 1]:
            if left == right and row[left] is None:
                row[left] = rows[top][left]
    while rows and all(value is None for value in rows[-1]):
        rows.pop()
    return rows


def _value(cell: Any) -> Any:
    """Convert a cell to a number, boolean, date or text; errors and blanks are missing."""
    if isinstance(cell, str):
        return None if not cell.strip() or cell in _ERRORS else cell
    if isinstance(cell, float):
        if cell != cell:
            return None
        return int(cell) if cell.is_integer() and abs(cell) <= _EXACT else cell
    if isinstance(cell, datetime.datetime) and cell.time() == _MIDNIGHT:
        return cell.date()
    return cell


def _header_row(rows: Sequence[Sequence[Any]]) -> int:
    """Find the header: the first row with several cells, since a title has only one."""
    filled = [sum(value is not None for value in row) for row in rows[:_LOOKED_AT]]
    least = 2 if max(filled) > 1 else 1
    return next(i for i, n in enumerate(filled) if n >= least)


def _columns(rows: Sequence[Sequence[Any]], *, header: bool) -> tuple[tuple[str, ...], list[int]]:
    """Return the names and places of the columns that are not empty."""
    places = [i for i in range(len(rows[0])) if any(row[i] is not None for row in rows)]
    if not header:
        return tuple(f"column_{i}" for i in range(1, len(places) + 1)), places
    named = [_text(rows[0][i]) for i in places]
    return numbered(
        [(name or "").strip() or f"unnamed_{i}" for i, name in enumerate(named, start=1)]
    ), places


def _array(values: list[Any]) -> pa.Array:
    """Make a column of the type that all its values have, or else of text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        exact = all(abs(v) <= _EXACT for v in values if isinstance(v, int))
        return pa.array([None if v is None else float(v) if exact else v for v in values])
    if kinds == {datetime.date, datetime.datetime}:
        return pa.array([_moment(v) for v in values], pa.timestamp("us"))
    if len(kinds) == 1 and kinds <= {int, float, bool, str, datetime.date, datetime.datetime}:
        return pa.array(values)
    return pa.array([_text(value) for value in values], pa.string())


def _moment(value: Any) -> datetime.datetime | None:
    if value is None or isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, _MIDNIGHT)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return str(value)
