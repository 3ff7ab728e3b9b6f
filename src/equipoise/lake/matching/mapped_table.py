"""A table of a lake with the columns and values of the base, as a query over the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from equipoise.engines.column_types import is_text
from equipoise.engines.dialect import Dialect
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.engines.sources import Source
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.conversions import (
    Decision,
    as_type,
    known_texts,
    may_be_names,
    renamed,
    respelled,
)
from equipoise.lake.matching.notations import without_absent

_NUMBERS = 0.99  # share of numbers in the base from which on no other texts can be added


# Prefix of the number of a column; the number alone might be a text for missing values.
_FAILED = "failed column "


def failed_column(want: Wanted) -> str:
    """Name the column that says which value of a row cannot be converted to the base's type."""
    return _free_name("equipoise_failed", want)


def _free_name(name: str, want: Wanted) -> str:
    """Append underscores to a name until no column of the base has it."""
    taken = {name.casefold() for name in (*want.required, *(c.name for c in want.columns))}
    while name in taken:
        name += "_"
    return name


def failed_text(place: int) -> str:
    """Write the place of a column of the base into a text in :func:`failed_column`."""
    return f"{_FAILED}{place}"


def number_of_failed(text: str) -> int:
    """Read the place of the column of the base from a text in :func:`failed_column`."""
    return int(text.removeprefix(_FAILED))


def mapped_source(source: Source, table: Profile, alignment: Alignment, want: Wanted) -> Source:
    """Return a table with the base's column names, values and types."""
    return replace(source, view=MappedView(table, alignment, want))


@dataclass(frozen=True)
class MappedView:
    """A view of a table with the base's column names, values and types.

    Rows keep their places. A value that is not mapped is missing. If some value of a row cannot be
    converted to the base's type, the required values of the row are missing, so that it is in no cell
    and is never taken; :func:`failed_column` then holds the place of the first such column.
    """

    table: Profile
    alignment: Alignment
    want: Wanted
    with_copy: bool = False
    """Whether the columns of the table follow, as they are, under names that do not matter."""

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        alignment, want = self.alignment, self.want
        columns = {column.name: column for column in self.table.columns}
        texts, reads, values, final, checked = [], ["*"], [], [], []
        compared = said_columns(want, alignment)
        for i, base in enumerate(want.columns):
            if base.name in alignment.unseen:
                # Left missing, but rows are still compared by what the values mean.
                source_column, decision = alignment.unseen[base.name]
                text = f"trim({d.text(d.identifier(source_column), columns[source_column].type)})"
                texts.append(f"{_meant(d, text, decision)} AS {compared[base.name]}")
                final.append(compared[base.name])
            if base.name not in alignment.columns:
                continue
            column = columns[alignment.columns[base.name].source]
            text = d.text(d.identifier(column.name), column.type)
            name = d.identifier(base.name)
            if base.name in want.vocabularies:
                texts.append(f"{text} AS t{i}")
                values.append(f"{renamed(d, f't{i}', alignment.values[base.name].values)} AS v{i}")
                final.append(f"CASE WHEN failed IS NULL THEN v{i} END AS {name}")
                continue
            spelled = _plain(respelled(d, text, alignment.spellings.get(base.name)), base)
            present = without_absent(d, spelled) if base.name in alignment.absent else spelled
            texts.append(f"{present} AS t{i}")
            is_number = _is_number(base, want, alignment)
            read = alignment.conversions.get(base.name)
            if read is not None:
                reads.append(f"{read.sql(d, f't{i}')} AS r{i}")
            said = f"t{i}" if read is None else f"r{i}"
            values.append(f"{_converted(d, said, base, is_number=is_number)} AS v{i}")
            final.append(f"v{i} AS {name}")
            if base.name in compared:
                meant = _meant(d, f"t{i}", alignment.kept[base.name])
                final.append(f"{meant} AS {compared[base.name]}")
            if is_number or read is not None or not is_text(base.type):
                checked.append(f"WHEN t{i} IS NOT NULL AND v{i} IS NULL THEN '{failed_text(i)}'")
        beside = [d.identifier(name) for name in carried]
        texts += beside
        if self.with_copy:
            copies = [_free_name(f"equipoise_copy_{i}", want) for i in range(len(columns))]
            texts += [f"{d.identifier(n)} AS {c}" for n, c in zip(columns, copies, strict=True)]
            beside += copies
        last = [f"failed AS {d.identifier(failed_column(want))}", *beside]
        failed = f"CASE {' '.join(checked)} END" if checked else f"CAST(NULL AS {d.text_type})"
        # Nested, so that no expression is written, parsed and bound more than once. On lines of their
        # own, since a value such as ";--" must not look like a comment that ends the query.
        return (
            f"SELECT {', '.join([*final, *last])}\nFROM ("
            f"SELECT *, {failed} AS failed FROM (SELECT *, {', '.join(values)}\nFROM ("
            f"SELECT {', '.join(reads)}\nFROM (SELECT {', '.join(texts)} FROM input) AS texts) AS reads) AS mapped) AS checked"
        )


def said_columns(want: Wanted, alignment: Alignment) -> dict[str, str]:
    """Name the columns with the meaning of values that are kept as written or left missing."""
    compared = alignment.compared
    return {
        base.name: _free_name(f"equipoise_said_{i}", want)
        for i, base in enumerate(want.columns)
        if base.name in compared
    }


def _meant(d: Dialect, text: str, decision: Decision) -> str:
    if decision.conversion is not None:
        return decision.conversion.sql(d, text)
    return respelled(d, text, decision.spellings)


def _is_number(base: ColumnProfile, want: Wanted, alignment: Alignment) -> bool:
    """Whether a text that is no number fails its row; columns that are kept may have any text."""
    if base.name in alignment.kept or base.name in alignment.conversions:
        return False
    if base.name in want.bins:
        return True
    # Whole numbers may be identifiers, and other identifiers need not be numbers.
    is_named = may_be_names(base) and not any("." in value for value in known_texts(base))
    return base.numeric >= _NUMBERS and not is_named


def _plain(text: str, base: ColumnProfile) -> str:
    """SQL for a text without surrounding blanks, unless the base has them; null if it is empty."""
    keep = is_text(base.type) and any(value != value.strip() for value in known_texts(base))
    return f"nullif({text if keep else f'trim({text})'}, '')"


def _converted(d: Dialect, text: str, base: ColumnProfile, *, is_number: bool) -> str:
    """SQL for a text converted to the base's type; null if that is impossible."""
    if not is_text(base.type):
        return as_type(d, text, base.type)
    written = _as_written(d, text, base)
    return f"CASE WHEN {d.is_number(text)} THEN {written} END" if is_number else written


def _as_written(d: Dialect, text: str, base: ColumnProfile) -> str:
    """SQL for a number as the base writes it: whole numbers without a decimal point."""
    if base.numeric < 0.9 or any("." in value for value in known_texts(base)):
        return text
    # As text, since a leading zero may be part of a code.
    return d.without_zeros(text)
