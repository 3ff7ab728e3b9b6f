"""Marks by which the state of a table is known again."""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """The state of a table, as its store knows it without reading it."""

    snapshot: str | None
    """Which state of which content this is; None if only the content says it."""
    size: int
    """In bytes."""
    changed: int
    """A date in nanoseconds, or a number that stands for the state."""
