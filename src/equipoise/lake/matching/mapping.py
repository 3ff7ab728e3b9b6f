"""The mapping file: what the columns and values of each table mean, for a person to confirm."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise.engines.profiling import Profile
from equipoise.errors import InputError, did_you_mean
from equipoise.lake.matching.columns.alignment import Alignment, ColumnMatch, spellings
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.values.vocabulary import ValueMap, name_some
from equipoise.lake.tables.conditions import read_toml

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


def write_mapping(
    proposals: Iterable[tuple[str, Alignment]],
    want: Wanted,
    *,
    base: str = "the base",
    file: str = "mapping.toml",
) -> str:
    """Write a mapping file for some tables and their alignments, as text."""
    lines = [_HEADER.format(base=_one_line(base), file=_one_line(file))]
    for name, alignment in proposals:
        lines += ["", "[[tables]]", f"name = {_text(name)}"]
        lines.append(f"use = {'true' if alignment.certain else 'false'}")
        lines += [_one_line(f"# open: {name}: {why}") for name, why in alignment.doubts.items()]
        lines += ["", "[tables.columns]"]
        lines += [
            f"{_key(match.base)} = {_text(match.source)}  # {_one_line(match.why)}"
            for match in _in_order(alignment, want)
        ]
        lines += [
            f"#? {_key(match.base)} = {_text(match.source)}  # open: {_one_line(match.doubt or '')}"
            for match in alignment.proposed.values()
        ]
        for column, values in alignment.values.items():
            lines += ["", f"[tables.values.{_key(column)}]", _one_line(f"# {values.why}")]
            lines += _value_lines(values)
    return "\n".join(lines) + "\n"


def _in_order(alignment: Alignment, want: Wanted) -> list[ColumnMatch]:
    """The required columns first."""
    others = [name for name in alignment.columns if name not in want.required]
    return [alignment.columns[n] for n in (*want.required, *others) if n in alignment.columns]


def _value_lines(values: ValueMap) -> list[str]:
    lines = [f"{_text(source)} = {_text(base)}" for source, base in values.values.items()]
    for source in values.unmapped:
        guess = values.proposals.get(source)
        hint = f"{guess.value}? {guess.why}" if guess else "no value is known for it"
        lines.append(f'{_text(source)} = ""  # open: {_one_line(hint)}')
    lines += [f'{_text(source)} = ""  # read as missing' for source in values.missing]
    return lines


def _text(text: str) -> str:
    """Write a text in TOML; JSON strings are valid TOML, except for the character DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


# ----------------------------------------------------------------------------- reading


def read_mapping(path: str | os.PathLike[str]) -> dict[str, Confirmed]:
    """Read a mapping file; :func:`confirmed_alignment` checks it against the tables."""
    file = Path(path)
    raw = read_toml(file)
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
    return found


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


def _confirmed(file: Path, table: Mapping[str, Any]) -> Confirmed:
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
    return Confirmed(name, table.get("use", True), chosen, values)


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
