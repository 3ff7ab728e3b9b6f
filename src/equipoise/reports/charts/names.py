"""Long names on charts: wrapped over several lines, and no two that read the same."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.plain import whole_end, width_of, wrap

LINE = 14
"""Pixels from one line of a name to the next."""
_HAIR = 6
"""Characters kept before the place where names begin to differ."""


@dataclass(frozen=True)
class WrappedNames:
    """Names as a chart writes them: each over one or more lines.

    >>> names = WrappedNames.wrapped(["sex=w, race=b", "sex=m"], 8)
    >>> names.lines
    (('sex=w,', 'race=b'), ('sex=m',))
    """

    names: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]

    @classmethod
    def wrapped(
        cls,
        names: Sequence[str],
        letters: int,
        *,
        most: int = 6,
        shown: Mapping[str, str] | None = None,
    ) -> WrappedNames:
        """Wrap all names of an axis to at most ``most`` lines of ``letters`` letters.

        Names that are too long are shortened such that they stay distinct. ``shown`` are texts
        that replace some names.
        """
        written = [(shown or {}).get(name, name) for name in names]
        lines = [wrap(text, letters) for text in written]
        if any(len(found) > most for found in lines):
            # Lines are seldom full, so fewer letters are kept than would fit if they were.
            lines = [wrap(text, letters) for text in told_apart(written, most * letters * 2 // 3)]
        lines = [found if len(found) <= most else _filled(found, letters, most) for found in lines]
        texts = told_apart(["\n".join(found) for found in lines], None)
        return cls(tuple(names), tuple(tuple(text.split("\n")) for text in texts))

    @property
    def height(self) -> int:
        """The lines of the name that takes the most."""
        return max(map(len, self.lines), default=1)

    @property
    def letters(self) -> float:
        """The length of the longest line, in letters of ordinary width."""
        return max((width_of(line) for found in self.lines for line in found), default=0)

    def beside(self) -> dict[str, Any]:
        """Options of an axis that writes the names beside their lines or, turned, above columns."""
        # Vega places a label by its first line. All labels get the same number of half lines and
        # begin that much higher, so that the middle of each is at its mark.
        spread = [_halves(found) for found in self]
        most = 2 * self.height - 1
        padded = [_padded(found, most, (most - len(found)) // 2) for found in spread]
        shift = {"labelLineHeight": LINE / 2, "labelOffset": -LINE / 2 * (self.height - 1)}
        return {**self._options(padded), **shift}

    def above(self, padding: int) -> dict[str, Any]:
        """Options of an axis that writes the names level above columns, on a common last line."""
        padded = [_padded(found, self.height, self.height - len(found)) for found in self]
        return {**self._options(padded), "labelPadding": padding + LINE * (self.height - 1)}

    def keyed(self) -> dict[str, Any]:
        """Options of a legend, or of an axis with room for names of one line."""
        options = self._options(self.lines)
        return {name: options[name] for name in ("labelExpr", "labelLimit")}

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.lines)

    def _options(self, lines: Sequence[Sequence[str]]) -> dict[str, Any]:
        texts: list[Any] = [
            _kept(found[0]) if len(found) == 1 else [*map(_kept, found)] for found in lines
        ]
        found = f"{json.dumps(texts)}[indexof({json.dumps(list(self.names))}, datum.value)]"
        return {
            "labelExpr": found,
            "labelLimit": 0,
            "labelLineHeight": LINE,
            "labelOverlap": False,
            "maxExtent": 2000,
        }


def told_apart(texts: Sequence[str], most: int | None) -> list[str]:
    """Shorten long texts such that no two of them read the same.

    The middle is left out, or, if texts then look alike, what they have in common. Texts that
    still look alike are numbered.

    >>> told_apart(["the first of many names", "short"], 12)
    ['the fi… names', 'short']
    >>> told_apart([f"a name that differs at {i} in the long middle of it" for i in (1, 2)], 20)
    ['a nam…ffers at 1 in…', 'a nam…ffers at 2 in…']
    """
    found = list(texts)
    if most is not None:
        found = [_without_middle(text, most) for text in texts]
        for alike in _alike(found):
            start = _common([texts[i] for i in alike])
            for i in alike:
                if found[i] != texts[i]:
                    found[i] = _around(texts[i], start, most)
    taken = {_visible(text) for text in found}
    for alike in _alike(found):
        number = 1
        for i in alike[1:]:
            while _visible(f"{found[i]} ({number + 1})") in taken:
                number += 1
            number += 1
            found[i] = f"{found[i]} ({number})"
            taken.add(_visible(found[i]))
    return found


def _filled(lines: Sequence[str], letters: int, most: int) -> list[str]:
    """The first lines; the last of them ends with a mark that more follows."""
    last = lines[most - 1]
    return [*lines[: most - 1], f"{last[: whole_end(last, letters - 1)]}…"]


def _without_middle(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most + 1 else f"{text[: whole_end(text, half)]}…{text[-half:]}"


def _around(text: str, start: int, most: int) -> str:
    """The first letters of a text, and those where it begins to differ from others."""
    head = most // 4
    begin = max(start - _HAIR - 3, head)
    end = begin + most - head - 2
    return f"{text[:head]}…{text[begin:end]}{'…' if end < len(text) else ''}"


def _common(texts: Sequence[str]) -> int:
    """How many letters all texts begin with."""
    # All texts are between the first and the last in the alphabet, and share what these share.
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(last)))


def _alike(texts: Sequence[str]) -> list[list[int]]:
    """Places of texts that look the same, where there are several."""
    places: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        places.setdefault(_visible(text), []).append(i)
    return [found for found in places.values() if len(found) > 1]


def _visible(text: str) -> str:
    """A text without characters that cannot be seen."""
    kept = (c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf")
    return "".join(kept).replace("\n", " ").replace("\u00a0", " ").rstrip()


_BLANK = "\u200b"
"""An empty line; one without any character would take no space."""


def _halves(lines: Sequence[str]) -> list[str]:
    return [half for line in lines for half in (line, _BLANK)][:-1]


def _padded(lines: Sequence[str], height: int, before: int) -> list[str]:
    return [*[_BLANK] * before, *lines, *[_BLANK] * (height - before - len(lines))]


def _kept(line: str) -> str:
    """A line in which all spaces are drawn; SVG joins several spaces into one."""
    return line.replace("  ", "\u00a0\u00a0")
