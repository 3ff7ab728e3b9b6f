"""Columns of texts that read as numbers, dates or nothing, for tests of what verification reads."""

from __future__ import annotations

import pyarrow as pa

COLUMNS = {
    "plain": ["1.5", "-2e3", " 7 ", ".5", "7."],
    "own": ["17", "18", "19", "20", "+21"],
    "comma": ["1.234,5", "7", "1,25", "12.000", "3"],
    "grouped": ["1,234.5", "7", "1,250", "12,000,000", "3"],
    "days": ["2024-01-31", "2023-12-01", "2020-02-29", "1999-01-13", "2024-01-31"],
    "moments": [
        "31/01/2024 10:00",
        "01/12/2023 23:59:59",
        "02/02/2020 1:05 pm",
        "31/01/2024 9:30",
        "",
    ],
    "mixed": ["2024-01-31", "31/01/2024", "2020-02-29", "1999-01-13", "2001-01-01"],
    "marked": ["2024-01/31", "2023-12-01", "2020-02-29", "1999-01-13", "2001-01-01"],
    "named": ["3 May 2024", "4 June 2024", "5 July 2024", "6 May 2024", "nan"],
    "words": ["a", "b c", "", "1", "x\ny"],
}
PROBES = [
    *("12", "1.5", "1,5", "1.234,5", "1,234.5", "x", "2024-01-31", "2024-13-01", "31/01/2024"),
    *("31/01/2024 08:00", "13/13/2024 08:00", "7 June 2024", "June 7 2024", "1e5", "12."),
]
VALUES = pa.table({name: pa.array(values, pa.string()) for name, values in COLUMNS.items()})


def readings(held) -> list[object]:
    """What a column holds, and which of the probes read as that."""
    kind, reads = held.kind
    return [kind if reads else "", None if reads is None else [reads(probe) for probe in PROBES]]
