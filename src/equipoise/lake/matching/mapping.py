"""The mapping file: what the columns and values of each table mean, for a person to confirm."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from equipoise.engines.profiling import Profile
from equipoise.errors import InputError, did_you_mean
from equipoise.lake.matching.columns.alignment import Alignment, ColumnMatch, spellings
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.mapping_lines import (
    MISSING_VALUE,
    Block,
    Line,
    MappingLines,
    Mark,
    bare_key,
    marks_of,
    one_line,
    toml_text,
)
from equipoise.lake.matching.values.vocabulary import ValueMap, name_some
from equipoise.lake.tables.conditions import parse_toml, read_toml

_HEADER = """\
# What the columns and values of each table mean in {base}. Check this file, correct it, and use it:
#   equipoise acquire PLAN LAKE --mapping {file} -o OUTPUT
# A table with use = true is used. A table with use = false needs a decision: complete the lines
# marked "open", and set use = true.
#   [tables.columns]       column of {base} = "column of the table"; leave out columns that the table
#                          does not have. A line that begins with "#?" is not certain and is not
#                          used; if it is right, remove the "#?".
#   [tables.values.NAME]   "value of the table" = "value of {base}"; "" leaves its rows out. Values
#                          of other columns may be mapped as well; otherwise they stay as they are.
"""


@dataclass(frozen=True)
class Confirmed:
    """What a mapping file says about one table."""

    name: str
    use: bool
    columns: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    """Columns of the base that the table does not have, according to the file."""
    marks: Mapping[tuple[str, ...], Mark] = field(default_factory=dict)
    """Remarks on single lines: which of them are open, confirmed or refused."""

    @property
    def refused(self) -> bool:
        """Whether a person decided not to use the table, which need not be so if it is open."""
        return not self.use and self.marks.get(("use",)) == "refused"


def write_mapping(
    proposals: Iterable[tuple[str, Alignment]],
    want: Wanted,
    *,
    base: str = "the base",
    file: str = "mapping.toml",
) -> str:
    """Write a mapping file for some tables and their alignments, as text."""
    tables = [line for name, found in proposals for line in ("", *_table_lines(name, found, want))]
    return "\n".join([write_header(base, file), *tables]) + "\n"


def write_header(base: str, file: str) -> str:
    """Write the comments that explain a mapping file."""
    return _HEADER.format(base=one_line(base), file=one_line(file))


def write_table(name: str, alignment: Alignment, want: Wanted) -> str:
    """Write what a mapping file says about one table."""
    return "\n".join(_table_lines(name, alignment, want)) + "\n"


def _table_lines(name: str, alignment: Alignment, want: Wanted) -> list[str]:
    lines = ["[[tables]]", f"name = {toml_text(name)}"]
    lines.append(f"use = {'true' if alignment.certain else 'false'}")
    lines += [one_line(f"# open: {column}: {why}") for column, why in alignment.doubts.items()]
    lines += ["", "[tables.columns]"]
    lines += [
        f"{bare_key(match.base)} = {toml_text(match.source)}  # {one_line(match.why)}"
        for match in _in_order(alignment, want)
    ]
    lines += [
        f"#? {bare_key(match.base)} = {toml_text(match.source)}  # {say_asked(match)}"
        for match in alignment.proposed.values()
    ]
    for column, values in alignment.values.items():
        lines += ["", f"[tables.values.{bare_key(column)}]", *value_lines(values)]
    return lines


def say_asked(match: ColumnMatch) -> str:
    """Say in a remark why a column is not certain."""
    return one_line(f"open: {match.doubt or ''}")


def _in_order(alignment: Alignment, want: Wanted) -> list[ColumnMatch]:
    """The required columns first."""
    others = [name for name in alignment.columns if name not in want.required]
    return [alignment.columns[n] for n in (*want.required, *others) if n in alignment.columns]


def value_lines(values: ValueMap) -> list[str]:
    """Write the lines below a heading that map the values of a column."""
    lines = [one_line(f"# {values.why}")]
    lines += [f"{toml_text(source)} = {toml_text(base)}" for source, base in values.values.items()]
    lines += [f'{toml_text(s)} = ""  # {say_open(values, s)}' for s in values.unmapped]
    lines += [f'{toml_text(source)} = ""  # {MISSING_VALUE}' for source in values.missing]
    return lines


def say_open(values: ValueMap, source: str) -> str:
    """Say in a remark that the meaning of a value is open, with a guess if there is one."""
    guess = values.proposals.get(source)
    hint = f"{guess.value}? {guess.why}" if guess else "no value is known for it"
    return one_line(f"open: {hint}")


# ----------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class MappingFile:
    """A mapping file that was read: its lines, and what they say about each table."""

    name: str
    lines: MappingLines
    tables: Mapping[str, Confirmed]

    def block(self, table: str) -> Block | None:
        """Return the lines of a table."""
        places = {name: i for i, name in enumerate(self.tables)}
        return self.lines.blocks[places[table]] if table in places else None


def read_mapping(mapping: str | os.PathLike[str]) -> Mapping[str, Confirmed]:
    """Read what a mapping file, or its text, says; :func:`confirmed_alignment` checks it."""
    return open_mapping(mapping).tables


def open_mapping(mapping: str | os.PathLike[str]) -> MappingFile:
    """Read a mapping file, or its text, with its lines."""
    if isinstance(mapping, str) and is_mapping_text(mapping):
        return parse_mapping(mapping, "the mapping")
    file = Path(mapping)
    raw = read_toml(file)
    return _read(raw, file.read_text("utf-8"), str(file))


def is_mapping_text(mapping: str | os.PathLike[str]) -> bool:
    r"""Whether a text is a mapping itself, and not the name of a file.

    >>> is_mapping_text("mapping.toml"), is_mapping_text("[[tables]]\nname = 'a.csv'")
    (False, True)
    """
    return isinstance(mapping, str) and "\n" in mapping


def mapping_name(mapping: str | os.PathLike[str]) -> str:
    """Name a mapping in a message."""
    is_text = isinstance(mapping, str) and is_mapping_text(mapping)
    return "the mapping" if is_text else os.fspath(mapping)


def parse_mapping(text: str, name: str) -> MappingFile:
    """Read the text of a mapping file."""
    return _read(parse_toml(text, name), text, name)


def _read(raw: Mapping[str, Any], text: str, file: str) -> MappingFile:
    listed = raw.get("tables")
    if not isinstance(listed, list) or not all(isinstance(t, dict) for t in listed):
        raise InputError(
            f"{file} has no [[tables]]; create a mapping file with equipoise lake mapping."
        )
    found: dict[str, Confirmed] = {}
    for table in listed:
        confirmed = _confirmed(file, table)
        if confirmed.name in found:
            raise InputError(f"{file} has {confirmed.name!r} twice; remove one.")
        found[confirmed.name] = confirmed
    lines = _in_lines(text, found)
    blocks = zip(found.items(), lines.blocks, strict=True)
    marked = {name: replace(said, marks=marks_of(block)) for (name, said), block in blocks}
    return MappingFile(file, lines, marked)


def _in_lines(text: str, tables: Mapping[str, Confirmed]) -> MappingLines:
    """Split a file into lines; tables that are written in another way are written as usual."""
    lines = MappingLines.of(text)
    if len(lines.blocks) != len(tables):
        comments = [line for line in text.split("\n") if line.startswith("#")]
        lines = MappingLines(comments, [_as_usual(said, []) for said in tables.values()])
    for i, said in enumerate(tables.values()):
        block = lines.blocks[i]
        if not block.is_regular or read_block(block, marked=False) != said:
            lines.blocks[i] = _as_usual(said, block.lines)
    return lines


def read_block(block: Block, *, marked: bool = True) -> Confirmed | None:
    """Read the lines of one table; None if they are not one table."""
    text = "\n".join(line.text for line in block.lines)
    try:
        (table,) = tomllib.loads(text)["tables"]
    except (tomllib.TOMLDecodeError, KeyError, ValueError):
        return None
    return replace(_confirmed("the mapping", table), marks=marks_of(block) if marked else {})


def _as_usual(said: Confirmed, lines: Iterable[Line]) -> Block:
    """Write a table with an entry in each line, and its comments above it."""
    comments = [line.text for line in lines if line.text.lstrip().startswith("#")]
    columns = {**said.columns, **dict.fromkeys(said.without, "")}
    written = ["[[tables]]", *comments, f"name = {toml_text(said.name)}"]
    written += [f"use = {str(said.use).lower()}", "", "[tables.columns]"]
    written += [f"{bare_key(name)} = {toml_text(source)}" for name, source in columns.items()]
    for name, values in said.values.items():
        written += ["", f"[tables.values.{bare_key(name)}]"]
        written += [f"{toml_text(source)} = {toml_text(base)}" for source, base in values.items()]
    (block,) = MappingLines.of("\n".join([*written, ""])).blocks
    return block


def read_codebook(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Read a codebook: by attribute, the value of the base for each value of a source.

    A codebook is a TOML file with a section per attribute, such as ``[sex]`` with ``"1" = "Male"``.
    """
    file = Path(path)
    raw = read_toml(file)
    for name, values in raw.items():
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            raise InputError(
                f"{name} in {file} must be a section of texts: write [{name}], and below it lines "
                'such as "1" = "Male".'
            )
    return raw


_PARTS = ("name", "use", "columns", "values")


def _confirmed(file: str, table: Mapping[str, Any]) -> Confirmed:
    name = table.get("name")
    for key in table:
        if key not in _PARTS:
            raise InputError(
                f"{name or 'a table'} in {file} has an unknown key {key!r}; allowed are: {', '.join(_PARTS)}."
                f"{did_you_mean(key, _PARTS)}"
            )
    columns, values = table.get("columns", {}), table.get("values", {})
    well_formed = (
        isinstance(name, str)
        and isinstance(table.get("use", True), bool)
        and _are_texts(columns)
        and isinstance(values, dict)
        and all(_are_texts(vocabulary) for vocabulary in values.values())
    )
    if not well_formed or not isinstance(name, str):
        raise InputError(
            f"{name or 'a table without a name'} in {file} is not valid: a table needs a name, use = "
            "true or false, and texts in [tables.columns] and [tables.values.NAME]."
        )
    chosen = {base: source for base, source in columns.items() if source}
    twice = [s for s in chosen.values() if list(chosen.values()).count(s) > 1]
    if twice:
        raise InputError(
            f"{name} in {file} assigns the column {twice[0]!r} to two columns of the base."
        )
    without = frozenset(base for base, source in columns.items() if not source)
    return Confirmed(name, table.get("use", True), chosen, values, without)


def _are_texts(mapping: object) -> bool:
    return isinstance(mapping, dict) and all(isinstance(v, str) for v in mapping.values())


def confirmed_alignment(
    confirmed: Confirmed, want: Wanted, table: Profile, mapping: str
) -> Alignment:
    """Make an alignment of what a mapping file says about a table, after checking it."""
    have = [column.name for column in table.columns]
    base = [column.name for column in want.columns]
    where = f"{confirmed.name} in {mapping}"
    for name, source in confirmed.columns.items():
        if name not in base and _is_of_base(want):
            raise InputError(
                f"{where} names the column {name!r}, which the base does not have; it has: "
                f"{', '.join(base)}.{did_you_mean(name, base)}"
            )
        if source not in have:
            raise InputError(
                f"{where} names the column {source!r}, which the table does not have; it has: "
                f"{', '.join(have)}.{did_you_mean(source, have)}"
            )
    for name in confirmed.values:
        if name not in confirmed.columns:
            raise InputError(
                f"{where} maps values of {name!r}, but assigns no column to {name!r}."
                f"{did_you_mean(name, confirmed.columns)}"
            )
    doubts = {
        name: f"{where} does not say which column is {name}"
        for name in want.required
        if name not in confirmed.columns
    }
    values = {
        name: _confirmed_values(confirmed, name, known, where)
        for name, known in want.vocabularies.items()
        if name in confirmed.columns
    }
    for name, vocabulary in values.items():
        _require_there(vocabulary, confirmed.columns[name], table, where)
    doubts |= {n: f"{where} maps no value of {n}" for n, v in values.items() if not v.values}
    columns = {
        name: ColumnMatch(name, source, 1.0, why=f"given in {mapping}")
        for name, source in confirmed.columns.items()
        if name in base
    }
    spelled = spellings(want, table, columns)
    for name in confirmed.values.keys() - want.vocabularies.keys() - want.bins.keys():
        told = {source: value for source, value in confirmed.values[name].items() if value}
        spelled[name] = spelled.get(name, {}) | told
    return Alignment(
        columns=columns, values=values, doubts=doubts, confirmed=True, spellings=spelled
    )


def _is_of_base(want: Wanted) -> bool:
    """Whether all columns of the base are known, not only those that a plan counts."""
    return any(column.sample for column in want.columns)


def _require_there(values: ValueMap, column: str, table: Profile, where: str) -> None:
    known = next(c.values for c in table.columns if c.name == column)
    for source in (*values.values, *values.unmapped):
        if known is not None and source not in known:
            raise InputError(
                f"{where} maps {source!r}, which is not a value of {column} in the table; it has: "
                f"{name_some(list(known), 20)}.{did_you_mean(source, known)}"
            )


def _confirmed_values(
    confirmed: Confirmed, name: str, known: Mapping[str, int], where: str
) -> ValueMap:
    given = confirmed.values.get(name, {})
    for source, value in given.items():
        if value and value not in known:
            raise InputError(
                f"{where} maps {source!r} to {value!r}, which is not a value of {name}; it has: "
                f"{', '.join(known)}.{did_you_mean(value, known)}"
            )
    return ValueMap(
        values={source: value for source, value in given.items() if value},
        missing=(),
        unmapped=tuple(source for source, value in given.items() if not value),
        proposals={},
        step="mapping",
        certain=True,
        why=f"given in {where}",
    )
