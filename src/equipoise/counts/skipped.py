"""Lines of a file that could not be read as rows, and were skipped at the user's request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHOWN = 5
"""Maximum number of lines that are named; all are counted."""


@dataclass(frozen=True)
class Skipped:
    """How many lines of a table were skipped, and the first of them.

    >>> print(Skipped(7, ("line 3", "line 9")))
    7 lines were skipped because they are not rows of the table (line 3, line 9, …)
    """

    lines: int = 0
    first: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.lines > 0

    def __add__(self, other: Skipped) -> Skipped:
        return Skipped(self.lines + other.lines, (self.first + other.first)[:SHOWN])

    def __str__(self) -> str:
        one = self.lines == 1
        were, why = ("line was", "it is not a row") if one else ("lines were", "they are not rows")
        return f"{self.lines:,} {were} skipped because {why} of the table ({self.named})"

    @property
    def named(self) -> str:
        """The first of the lines."""
        return ", ".join(self.first) + (", …" if self.lines > len(self.first) else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"lines": self.lines, "first": list(self.first)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Skipped:
        """Read what :meth:`to_dict` wrote; older files say nothing of skipped lines."""
        return cls() if data is None else cls(int(data["lines"]), tuple(data["first"]))


NOTHING = Skipped()
"""No skipped lines."""
