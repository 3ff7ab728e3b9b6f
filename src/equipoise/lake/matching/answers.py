"""Answers of a person to what is open about tables, written into the mapping file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from equipoise.errors import InputError, did_you_mean
from equipoise.lake.matching.mapping import (
    parse_mapping,
    read_block,
    say_asked,
    say_open,
    value_lines,
    write_table,
)
from equipoise.lake.matching.mapping_lines import (
    COLUMNS,
    CONFIRMED,
    MISSING_VALUE,
    REFUSED,
    Block,
    MappingLines,
    toml_text,
)
from equipoise.lake.matching.questions import TableMeaning
from equipoise.lake.matching.values.vocabulary import name_some

_KEYS = ("table", "column", "source", "value", "means", "use", "take_back")


@dataclass(frozen=True)
class TableAnswer:
    """One answer; the fields that it does not have are not in ``given``."""

    table: str
    given: Mapping[str, Any]

    @classmethod
    def of(cls, given: object) -> TableAnswer:
        """Check the form of an answer."""
        if not isinstance(given, Mapping):
            raise InputError(f"an answer must be a dictionary, not {given!r}.")
        for key in given:
            if key not in _KEYS:
                raise InputError(
                    f"an answer has an unknown key {key!r}; allowed are: {', '.join(_KEYS)}."
                    f"{did_you_mean(str(key), _KEYS)}"
                )
        for key in ("table", "column", "source", "value", "means"):
            may_be_none = key in ("source", "means")
            said = given.get(key, "")
            if not isinstance(said, str) and not (said is None and may_be_none):
                raise InputError(f"`{key}` of an answer must be a text, not {said!r}.")
        for key in ("use", "take_back"):
            if not isinstance(given.get(key, True), bool):
                raise InputError(f"`{key}` of an answer must be true or false, not {given[key]!r}.")
        if "table" not in given:
            raise InputError(f"an answer needs a `table`: {dict(given)!r}.")
        found = cls(str(given["table"]), {k: v for k, v in given.items() if k != "table"})
        found._require_sense()
        return found

    def _require_sense(self) -> None:
        """Refuse answers that say nothing, or two things at once."""
        shape = {key for key in self.given if key != "take_back" or self.given[key]}
        allowed = (
            {"use"},
            {"take_back"},
            {"column", "source"},
            {"column", "take_back"},
            {"column", "value", "means"},
            {"column", "value", "take_back"},
        )
        if shape not in allowed:
            raise InputError(
                f"the answer about {self.table!r} cannot be understood; besides `table` it needs "
                "`use`, or `column` and `source`, or `column`, `value` and `means`; `take_back` "
                "replaces the last of these."
            )


def write_answers(
    text: str, tables: Mapping[str, Callable[[], TableMeaning]], answers: Iterable[object]
) -> str:
    """Write answers into the text of a mapping file, which may have no table yet."""
    found = [TableAnswer.of(answer) for answer in answers]
    lines, blocks = MappingLines.of(text), dict[str, Block]()
    if lines.blocks:
        file = parse_mapping(text, "the mapping")
        lines, blocks = file.lines, dict(zip(file.tables, file.lines.blocks, strict=True))
    for table in dict.fromkeys(answer.table for answer in found):
        if table not in tables:
            known = list(tables)
            raise InputError(
                f"the lake has no table {table!r} whose columns are known; it has: "
                f"{name_some(known, 20)}.{did_you_mean(table, known)}"
            )
        meaning = tables[table]()
        block = blocks.get(table) or lines.add(_new_block(meaning))
        sheet = _Sheet(meaning, block)
        sheet.write([answer for answer in found if answer.table == table])
    written = lines.text()
    if lines.blocks:
        parse_mapping(written, "the mapping")  # refuses a column that is assigned twice
    return written


def _new_block(meaning: TableMeaning) -> str:
    if meaning.own is not None:
        return write_table(meaning.name, meaning.own, meaning.want)
    return f"[[tables]]\nname = {toml_text(meaning.name)}\nuse = false\n\n[tables.columns]\n"


@dataclass
class _Sheet:
    """The lines of a table, and what they mean."""

    meaning: TableMeaning
    block: Block

    def write(self, answers: Iterable[TableAnswer]) -> None:
        """Write answers, and whether the table is used."""
        before = self._now()
        if before.said is not None and not before.said.use:
            self._complete()
        for answer in answers:
            self._write_one(answer.given)
        self._settle(before)

    def _write_one(self, given: Mapping[str, Any]) -> None:
        takes_back = bool(given.get("take_back"))
        if "column" not in given:
            self._use_table(None if takes_back else given["use"])
            return
        column = given["column"]
        self._require_column(column)
        if "value" in given:
            self._require_value(column, given["value"])
            if takes_back:
                self._restore_value(column, given["value"])
            else:
                self._write_value(column, given["value"], given["means"])
        elif takes_back:
            self._restore_column(column)
        elif given["source"] is None:
            self._refuse_column(column)
        else:
            self._choose_column(column, given["source"])

    def _now(self) -> TableMeaning:
        return replace(self.meaning, said=read_block(self.block))

    def _complete(self) -> None:
        """Write what is known about the counted columns, as far as the lines do not say it."""
        for name in self.meaning.want.required:
            match = self.meaning.own_match(name)
            if name not in self.block.entries(COLUMNS) and match is not None:
                self.block.put(COLUMNS, name, match.source, match.why)
            source = self._source(name)
            if source is None or name not in self.meaning.want.vocabularies:
                continue
            if name not in self.block.value_parts():
                self._write_values(name, source)
            found = self.meaning.own_values(name, source)
            written = self.block.entries(("values", name))
            for value in (*found.values, *found.unmapped, *found.missing):
                if value not in written:
                    self._restore_value(name, value)

    def _settle(self, before: TableMeaning) -> None:
        """Use a table that leaves nothing open; one that is used stays so unless more is open."""
        now = self._now()
        is_refused = now.said is not None and now.said.refused
        was_used = before.said is not None and before.said.use
        as_before = was_used and now.open <= before.open and not self._lacks_column(now)
        use = not is_refused and (now.is_settled or as_before)
        if now.said is None or use is not now.said.use:
            self.block.put((), "use", use, self._note((), "use"))
        self.block.doubt(() if use or is_refused else now.doubts())

    @staticmethod
    def _lacks_column(now: TableMeaning) -> bool:
        return any(c.counted and c.source is None for c in now.columns())

    # --------------------------------------------------------------------- table

    def _use_table(self, use: bool | None) -> None:
        """Refuse a table, confirm all of it, or (None) take a refusal back."""
        if use is False:
            self.block.put((), "use", False, self._remark(REFUSED, (), "use"))
            return
        if self.block.entries(()).get("use"):
            self.block.put((), "use", False, self._note((), "use"))
        if use is None:
            return
        for column in (c for c in self._now().columns() if c.counted):
            if column.source is None:
                raise InputError(
                    f"{self.meaning.name} cannot be used yet: say first which of its columns is "
                    f"{column.column!r}."
                )
            if column.status == "open":
                self._choose_column(column.column, column.source)
        for column in (c for c in self._now().columns() if c.counted and c.open):
            values = [repr(v.value) for v in column.values if v.status == "open"]
            raise InputError(
                f"{self.meaning.name} cannot be used yet: say first what these values of "
                f"{column.source} mean: {name_some(values, 10)}."
            )

    # ------------------------------------------------------------------- columns

    def _require_column(self, column: str) -> None:
        known = [c.name for c in self.meaning.want.columns]
        if column not in known:
            raise InputError(
                f"the base has no column {column!r}; it has: {', '.join(known)}."
                f"{did_you_mean(column, known)}"
            )

    def _source(self, column: str) -> str | None:
        line = self.block.entries(COLUMNS).get(column)
        return str(line.value) if line and line.value else None

    def _choose_column(self, column: str, source: str) -> None:
        have = [c.name for c in self.meaning.evidence.table.columns]
        if source not in have:
            raise InputError(
                f"{self.meaning.name} has no column {source!r}; it has: {', '.join(have)}."
                f"{did_you_mean(source, have)}"
            )
        for name, line in self.block.entries(COLUMNS).items():
            is_free = name not in self.meaning.want.required
            if line.value == source and name != column and is_free:
                self.block.remove(COLUMNS, name)
        is_same = self._source(column) == source
        self.block.put(COLUMNS, column, source, self._remark(CONFIRMED, COLUMNS, column))
        is_mapped = column in self.block.value_parts()
        if column in self.meaning.want.vocabularies and not (is_same and is_mapped):
            self._write_values(column, source)

    def _write_values(self, column: str, source: str) -> None:
        found = self.meaning.own_values(column, source)
        self.block.replace_part(("values", column), value_lines(found))

    def _refuse_column(self, column: str) -> None:
        self.block.put(COLUMNS, column, "", self._remark(REFUSED, COLUMNS, column))
        self.block.remove_part(("values", column))

    def _restore_column(self, column: str) -> None:
        match, was = self.meaning.own_match(column), self._source(column)
        if match is None:
            self.block.remove(COLUMNS, column)
            self.block.remove_part(("values", column))
        elif self.meaning.own is not None and column in self.meaning.own.columns:
            note = self._note(COLUMNS, column)
            self.block.put(
                COLUMNS, column, match.source, "; ".join(filter(None, (match.why, note)))
            )
            if column in self.meaning.want.vocabularies and was != match.source:
                self._write_values(column, match.source)
        else:
            self.block.ask(column, match.source, say_asked(match))

    # -------------------------------------------------------------------- values

    def _require_value(self, column: str, value: str) -> None:
        want, name = self.meaning.want, self.meaning.name
        if column not in want.vocabularies:
            why = "its numbers are put into bins" if column in want.bins else "it is not counted"
            raise InputError(
                f"the values of {column!r} need no answer: {why}; only the values of "
                f"{', '.join(want.vocabularies)} do."
            )
        source = self._source(column)
        if source is None:
            raise InputError(
                f"say first which column of {name} is {column!r}, and then what its values mean."
            )
        known = self.meaning.evidence.profile(source).values
        if known is not None and value not in known:
            raise InputError(
                f"{value!r} is not a value of {source} in {name}; it has: "
                f"{name_some(list(known), 20)}.{did_you_mean(value, known)}"
            )

    def _write_value(self, column: str, value: str, means: str | None) -> None:
        known = self.meaning.want.vocabularies[column]
        if means is not None and means not in known:
            raise InputError(
                f"{means!r} is not a value of {column} in the base; it has: "
                f"{name_some(list(known), 20)}.{did_you_mean(means, known)}"
            )
        source = self._source(column)
        if source is not None and column not in self.block.value_parts():
            self._write_values(column, source)
        part = ("values", column)
        mark = REFUSED if means is None else CONFIRMED
        self.block.put(part, value, means or "", self._remark(mark, part, value))

    def _restore_value(self, column: str, value: str) -> None:
        found = self.meaning.own_values(column, str(self._source(column)))
        part = ("values", column)
        if value in found.values:
            self.block.put(part, value, found.values[value], self._note(part, value))
        elif value in found.missing:
            self.block.put(part, value, "", MISSING_VALUE)
        else:
            self.block.put(part, value, "", say_open(found, value))

    # ------------------------------------------------------------------- remarks

    def _note(self, part: tuple[str, ...], key: str) -> str:
        """Return what a person remarked on a line."""
        line = self.block.entries(part).get(key)
        return "" if line is None else line.note

    def _remark(self, mark: str, part: tuple[str, ...], key: str) -> str:
        return "; ".join(filter(None, (mark, self._note(part, key))))
