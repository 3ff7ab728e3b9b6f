"""A small table of applicants, of whom some are hired, for audit forms."""

from __future__ import annotations

HEADER = ("sex", "race", "hired", "score")
CELLS = (
    ("Female", "White", 120, 36),
    ("Male", "White", 180, 81),
    ("Female", "Black", 60, 12),
    ("Male", "Black", 70, 24),
    ("Female", "Asian", 40, 15),
    ("Male", "Asian", 45, 20),
    ("Female", "Two or more", 4, 1),
    ("Male", "Two or more", 3, 2),
    (None, "White", 6, 2),
    ("Female", "Unknown", 7, 3),
    ("Male", None, 5, 1),
)
"""Sex, race, applicants, and how many of these are hired."""


def hires() -> dict[str, list]:
    """The rows as columns; scores repeat, and the last row has no outcome."""
    rows = []
    for sex, race, n, hired in CELLS:
        for i in range(n):
            score = (len(rows) * 37 + (9 if i < hired else 0)) % 60
            rows.append((sex, race, "yes" if i < hired else "no", score))
    rows.append(("Male", "White", None, None))
    return {
        name: list(column) for name, column in zip(HEADER, zip(*rows, strict=True), strict=True)
    }


def write_hires(path) -> None:
    """Write the rows as a CSV file."""
    columns = hires()
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    lines.insert(0, ",".join(HEADER))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
