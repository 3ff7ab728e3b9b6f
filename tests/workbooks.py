"""Excel files for tests, written by hand: what a spreadsheet program stores, and no more."""

from __future__ import annotations

import datetime
import zipfile
from xml.sax.saxutils import escape, quoteattr

DAY_ZERO = datetime.date(1899, 12, 30)
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KINDS = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_STYLES = (
    f"<styleSheet {_MAIN}><fonts count='1'><font/></fonts><fills count='1'><fill/></fills>"
    "<borders count='1'><border/></borders><cellStyleXfs count='1'><xf/></cellStyleXfs>"
    "<cellXfs count='3'><xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='22'/></cellXfs>"
    "</styleSheet>"
)


class Error(str):
    """A cell that shows an error, such as #N/A."""

    __slots__ = ()


def write(path, sheets, *, merged=None, hidden=()):
    """Write sheets: names to rows of texts, numbers, truth values, dates, errors and None."""
    names = list(sheets)
    rel = "http://schemas.openxmlformats.org/package/2006/relationships"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        parts = "".join(
            f"<Override PartName='/xl/worksheets/s{i}.xml' ContentType='{_KINDS}.worksheet+xml'/>"
            for i in range(len(names))
        )
        book.writestr(
            "[Content_Types].xml",
            "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'>"
            "<Default Extension='rels' ContentType='application/vnd.openxmlformats-package."
            "relationships+xml'/><Default Extension='xml' ContentType='application/xml'/>"
            f"<Override PartName='/xl/workbook.xml' ContentType='{_KINDS}.sheet.main+xml'/>{parts}"
            f"<Override PartName='/xl/styles.xml' ContentType='{_KINDS}.styles+xml'/></Types>",
        )
        book.writestr(
            "_rels/.rels",
            f"<Relationships xmlns='{rel}'><Relationship Id='r' Type='{_LINKS}/officeDocument' "
            "Target='xl/workbook.xml'/></Relationships>",
        )
        listed = "".join(
            f"<sheet name={quoteattr(name)} sheetId='{i + 1}' r:id='r{i}'"
            f"{' state=' + quoteattr('hidden') if name in hidden else ''}/>"
            for i, name in enumerate(names)
        )
        book.writestr(
            "xl/workbook.xml",
            f"<workbook {_MAIN} xmlns:r='{_LINKS}'><sheets>{listed}</sheets></workbook>",
        )
        links = "".join(
            f"<Relationship Id='r{i}' Type='{_LINKS}/worksheet' Target='worksheets/s{i}.xml'/>"
            for i in range(len(names))
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f"<Relationships xmlns='{rel}'>{links}<Relationship Id='s' Type='{_LINKS}/styles' "
            "Target='styles.xml'/></Relationships>",
        )
        book.writestr("xl/styles.xml", _STYLES)
        for i, rows in enumerate(sheets.values()):
            book.writestr(f"xl/worksheets/s{i}.xml", _sheet(rows, (merged or {}).get(names[i], ())))
    return path


def _sheet(rows, merged):
    lines = "".join(
        f"<row r='{y}'>{''.join(_cell(value, x, y) for x, value in enumerate(row))}</row>"
        for y, row in enumerate(rows, start=1)
    )
    ranges = "".join(f"<mergeCell ref='{ref}'/>" for ref in merged)
    cells = f"<mergeCells count='{len(merged)}'>{ranges}</mergeCells>" if merged else ""
    return f"<worksheet {_MAIN}><sheetData>{lines}</sheetData>{cells}</worksheet>"


def _cell(value, x, y):
    place = f"r='{chr(65 + x)}{y}'"
    if value is None:
        return ""
    if isinstance(value, Error):
        return f"<c {place} t='e'><v>{value}</v></c>"
    if isinstance(value, bool):
        return f"<c {place} t='b'><v>{int(value)}</v></c>"
    if isinstance(value, datetime.datetime):
        days = (
            value - datetime.datetime.combine(DAY_ZERO, datetime.time())
        ).total_seconds() / 86400
        return f"<c {place} s='2'><v>{days!r}</v></c>"
    if isinstance(value, datetime.date):
        return f"<c {place} s='1'><v>{(value - DAY_ZERO).days}</v></c>"
    if isinstance(value, (int, float)):
        return f"<c {place}><v>{value!r}</v></c>"
    text = f"<is><t xml:space='preserve'>{escape(value)}</t></is>"
    return f"<c {place} t='inlineStr'>{text}</c>"
