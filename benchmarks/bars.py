"""What a section of the benchmarks hands back: Markdown for people, bars for the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass(frozen=True)
class Bar:
    """A number we promised, and the number measured."""

    name: str
    measured: float
    limit: float
    sense: Literal["at most", "at least"] = "at most"
    unit: str = "×"

    @property
    def met(self) -> bool:
        # Written so that nan, a number we failed to measure, never meets a bar.
        if self.sense == "at most":
            return self.measured <= self.limit
        return self.measured >= self.limit

    def __str__(self) -> str:
        verdict = "PASS" if self.met else "MISS"
        measured, limit = (f"{_short(x)}{self.unit}" for x in (self.measured, self.limit))
        return f"{verdict}  {self.name}: {measured} ({self.sense} {limit})"


@dataclass(frozen=True)
class Section:
    """One part of RESULTS.md."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)

    def markdown(self) -> str:
        parts = [f"## {self.title}", *self.paragraphs]
        if self.bars:
            parts.append(_bar_table(self.bars))
        return "\n\n".join(parts)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers are expected to come already formatted."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write_into(page: Path, parts: Sequence[str]) -> None:
    """Put what was measured into a page of the documentation, between its two marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    written = "\n\n".join(parts)
    page.write_text(f"{before}{BEGIN}\n{written}\n\n{END}{after}", encoding="utf-8")


def _bar_table(bars: Sequence[Bar]) -> str:
    rows = [
        (
            bar.name,
            f"{_short(bar.measured)}{bar.unit}",
            f"{bar.sense} {_short(bar.limit)}{bar.unit}",
            "PASS" if bar.met else "**MISS**",
        )
        for bar in bars
    ]
    return markdown_table(["bar", "measured", "promised", ""], rows)


def _short(number: float) -> str:
    whole = abs(number) >= 10 or number % 1 == 0
    return f"{number:,.0f}" if whole else f"{number:.3f}"
