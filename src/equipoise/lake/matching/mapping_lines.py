"""The lines of a mapping file, so that an answer changes one line and all others stay as written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Mark: TypeAlias = Literal["", "open", "confirmed", "refused", "missing"]
"""What the remark at the end of a line says about it."""

Part: TypeAlias = tuple[str, ...]
"""Part of a table: itself ``()``, ``("columns",)`` or ``("values", NAME)``."""

COLUMNS: Part = ("columns",)
CONFIRMED, REFUSED, MISSING_VALUE = "confirmed", "refused", "read as missing"

_STRING = r'"(?:[^"\\]|\\.)*"|' + r"'[^']*'"
_KEY = rf"[A-Za-z0-9_-]+|{_STRING}"
_TABLE = re.compile(r"\s*\[\[\s*tables\s*\]\]\s*(?:#.*)?")
_SECTION = re.compile(
    rf"\s*\[\s*tables\s*\.\s*(columns|values\s*\.\s*(?P<name>{_KEY}))\s*\]\s*(#.*)?"
)
_ENTRY = re.compile(
    rf"\s*(?P<asked>\#\?)?\s*(?P<key>{_KEY})\s*=\s*(?P<value>{_STRING}|true|false)"
    r"\s*(?:\#\s?(?P<remark>.*))?"
)
# Evidence that a proposal states; whatever else stands behind a line is a remark of a person.
_EVIDENCE = re.compile(r"(open: |same header|similar |little evidence|given in |read as missing)")
_SUMMARY = re.compile(
    r"# (all \d+ values |codes? |the (code|only value|codebook|source|base) |no (step|value) "
    r"|several values |given in |.* has more than )"
)


@dataclass(frozen=True)
class Line:
    """A line of a table: an entry with a key and a value, or a heading, a comment or a blank."""

    text: str
    part: Part = ()
    key: str | None = None
    value: str | bool = ""
    remark: str = ""
    asked: bool = False  # begins with "#?", and is not used as it stands

    @property
    def mark(self) -> Mark:
        """What the remark says."""
        first = self.remark.partition(";")[0].strip()
        if first.startswith("open:"):
            return "open"
        if first == MISSING_VALUE:
            return "missing"
        return first if first in (CONFIRMED, REFUSED) else ""  # type: ignore[return-value]

    @property
    def note(self) -> str:
        """The remark of a person, without what Equipoise wrote in front of it."""
        first, _, rest = self.remark.partition(";")
        told = rest.strip() if first.strip() in (CONFIRMED, REFUSED) else self.remark
        return "" if _EVIDENCE.match(told) else told.strip()


@dataclass
class Block:
    """The lines of one table, from its ``[[tables]]`` on."""

    lines: list[Line]
    is_regular: bool = True
    """Whether every entry is on a line of its own, as Equipoise writes it."""

    def entries(self, part: Part, *, asked: bool = False) -> dict[str, Line]:
        """Return the entries of a part by key; with ``asked``, those that begin with ``#?``."""
        return {
            line.key: line
            for line in self.lines
            if line.key is not None and line.part == part and line.asked is asked
        }

    def value_parts(self) -> Iterator[str]:
        """Return the columns whose values are mapped."""
        yield from dict.fromkeys(line.part[1] for line in self.lines if len(line.part) == 2)

    def put(self, part: Part, key: str, value: str | bool, remark: str = "") -> None:
        """Write an entry in place of the one with this key, or behind the last one of its part."""
        line = _entry(part, key, value, remark)
        for i, old in enumerate(self.lines):
            if old.part == part and old.key == key:
                self.lines[i] = line
                return
        self.lines.insert(self._end(part), line)

    def ask(self, key: str, value: str, remark: str) -> None:
        """Write a column that is not certain, and not used."""
        self.put(COLUMNS, key, value, remark)
        (i,) = [i for i, line in enumerate(self.lines) if (line.part, line.key) == (COLUMNS, key)]
        self.lines[i] = read_line(f"#? {self.lines[i].text}", COLUMNS)

    def remove(self, part: Part, key: str) -> None:
        """Remove an entry."""
        self.lines = [line for line in self.lines if (line.part, line.key) != (part, key)]

    def replace_part(self, part: Part, texts: Sequence[str]) -> None:
        """Write the lines below the heading of a part anew."""
        notes = self._notes(part)
        self.lines = [line for line in self.lines if line.part != part or _is_heading(line)]
        start = self._end(part)
        self.lines[start:start] = [read_line(text, part) for text in (*notes, *texts, "")]

    def _notes(self, part: Part) -> list[str]:
        """Return the comments of a person in a part."""
        mine = (line.text for line in self.lines if line.part == part and line.key is None)
        return [text for text in mine if text.startswith("#") and not _SUMMARY.match(text)]

    def remove_part(self, part: Part) -> None:
        """Remove a part with its heading, but not the comments of a person."""
        notes = [Line(text) for text in self._notes(part)]
        self.lines = [line for line in self.lines if line.part != part]
        self.lines[1:1] = notes

    def doubt(self, doubts: Iterable[str]) -> None:
        """Write what is open below ``use``, in place of what was."""
        self.lines = [
            line
            for line in self.lines
            if line.part or line.key or not line.text.startswith("# open: ")
        ]
        at = 1 + max(i for i, line in enumerate(self.lines) if line.part == () and line.key)
        self.lines[at:at] = [Line(one_line(f"# open: {doubt}")) for doubt in doubts]

    def _end(self, part: Part) -> int:
        """The place behind the last line of a part; the part is begun if there is none."""
        mine = [i for i, line in enumerate(self.lines) if line.part == part and line.text.strip()]
        if mine:
            return mine[-1] + 1
        while self.lines and not self.lines[-1].text.strip():
            self.lines.pop()
        self.lines += [Line("", self.lines[-1].part), Line(_heading(part), part)]
        return len(self.lines)


def _is_heading(line: Line) -> bool:
    return _SECTION.fullmatch(line.text) is not None


def _heading(part: Part) -> str:
    return f"[tables.{'.'.join((part[0], *map(bare_key, part[1:])))}]"


def _entry(part: Part, key: str, value: str | bool, remark: str) -> Line:
    written = toml_text(value) if isinstance(value, str) else str(value).lower()
    said = f"  # {one_line(remark)}" if remark else ""
    name = toml_text(key) if len(part) == 2 else bare_key(key)
    return read_line(f"{name} = {written}{said}", part)


def read_line(text: str, part: Part) -> Line:
    """Read a line of a part of a table."""
    found = _ENTRY.fullmatch(text)
    if found is None or (text.lstrip().startswith("#") and not found["asked"]):
        return Line(text, part)
    value = found["value"]
    said = value == "true" if value in ("true", "false") else _decoded(value)
    remark = (found["remark"] or "").strip()
    return Line(text, part, _decoded(found["key"]), said, remark, found["asked"] is not None)


def _decoded(text: str) -> str:
    return str(tomllib.loads(f"x = {text}")["x"]) if text[0] in "\"'" else text


@dataclass
class MappingLines:
    """A mapping file: what stands before the first table, and the tables."""

    preamble: list[str]
    blocks: list[Block] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> MappingLines:
        """Split a text that is valid TOML into tables."""
        found = cls([])
        part: Part = ()
        for raw in text.removesuffix("\n").split("\n"):
            line = raw.removesuffix("\r")
            if _TABLE.fullmatch(line):
                part = ()
                found.blocks.append(Block([Line(line)]))
            elif not found.blocks:
                found.preamble.append(line)
            else:
                part = found._add(line, part)
        return found

    def _add(self, text: str, part: Part) -> Part:
        """Add a line to the last table; return the part that the next line is in."""
        block = self.blocks[-1]
        if section := _SECTION.fullmatch(text):
            name = section["name"]
            part = COLUMNS if name is None else ("values", _decoded(name))
            block.lines.append(Line(text, part))
            return part
        try:
            line = read_line(text, part)
        except tomllib.TOMLDecodeError:  # a comment that only looks like an entry
            line = Line(text, part)
        is_other = line.key is None and text.strip() and not text.lstrip().startswith("#")
        block.is_regular &= not is_other
        block.lines.append(line)
        return part

    def text(self) -> str:
        """Return the file."""
        lines = [*self.preamble, *(line.text for block in self.blocks for line in block.lines)]
        return "\n".join(lines).rstrip("\n") + "\n"

    def add(self, text: str) -> Block:
        """Append the text of a table."""
        last = self.blocks[-1].lines[-1].text if self.blocks else (self.preamble or [""])[-1]
        if last.strip():
            (self.blocks[-1].lines.append(Line("")) if self.blocks else self.preamble.append(""))
        (block,) = MappingLines.of(text).blocks
        self.blocks.append(block)
        return block


def marks_of(block: Block) -> Mapping[tuple[str, ...], Mark]:
    """Return the marks of the entries of a table, by part and key."""
    return {
        (*line.part, line.key): line.mark
        for line in block.lines
        if line.key is not None and not line.asked and line.mark
    }


def toml_text(text: str) -> str:
    """Write a text in TOML; JSON strings are valid TOML, except for the character DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def bare_key(name: str) -> str:
    """Write a key in TOML, without quotes if it needs none."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def one_line(text: str) -> str:
    """Write a text in one line, for a comment."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
