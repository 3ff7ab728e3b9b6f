"""A table of a lake with the columns and values of the base, as a query over the table."""

from __future__ import annotations

from dataclasses import replace

from equipoise.engines import sql
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.engines.sources import Source
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.conversions import (
    Decision,
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
    """Return a table with the base's column names, values and types.

    Rows keep their places. A value that is not mapped is missing. If some value of a row cannot be
    converted to the base's type, the required values of the row are missing, so that it is in no cell
    and is never taken; :func:`failed_column` then holds the place of the first such column.
    """
    columns = {column.name: column for column in table.columns}
    texts, reads, values, final, checked = [], ["*"], [], [], []
    compared = said_columns(want, alignment)
    for i, base in enumerate(want.columns):
        if base.name in alignment.unseen:
            # Left missing, but rows are still compared by what the values mean.
            source_column, decision = alignment.unseen[base.name]
            text = f"trim({sql.value_text(source_column, columns[source_column].type)})"
            texts.append(f"{_meant(text, decision)} AS {compared[base.name]}")
            final.append(compared[base.name])
        if base.name not in alignment.columns:
            continue
        column = columns[alignment.columns[base.name].source]
        text = sql.value_text(column.name, column.type)
        name = sql.identifier(base.name)
        if base.name in want.vocabularies:
            texts.append(f"{text} AS t{i}")
            values.append(f"{renamed(f't{i}', alignment.values[base.name].values)} AS v{i}")
            final.append(f"CASE WHEN failed IS NULL THEN v{i} END AS {name}")
            continue
        spelled = _plain(respelled(text, alignment.spellings.get(base.name)), base)
        present = without_absent(spelled) if base.name in alignment.absent else spelled
        texts.append(f"{present} AS t{i}")
        is_number = _is_number(base, want, alignment)
        read = alignment.conversions.get(base.name)
        if read is not None:
            reads.append(f"{read.sql(f't{i}')} AS r{i}")
        said = f"t{i}" if read is None else f"r{i}"
        values.append(f"{_converted(said, base, is_number=is_number)} AS v{i}")
        final.append(f"v{i} AS {name}")
        if base.name in compared:
            meant = _meant(f"t{i}", alignment.kept[base.name])
            final.append(f"{meant} AS {compared[base.name]}")
        if is_number or read is not None or not sql.is_text(base.type):
            checked.append(f"WHEN t{i} IS NOT NULL AND v{i} IS NULL THEN '{failed_text(i)}'")
    failed = f"CASE {' '.join(checked)} END" if checked else "CAST(NULL AS VARCHAR)"
    # Nested, so that no expression is written, parsed and bound more than once. On lines of their
    # own, since a value such as ";--" must not look like a comment that ends the query.
    query = (
        f"SELECT {', '.join(final)}, failed AS {sql.identifier(failed_column(want))}\nFROM ("
        f"SELECT *, {failed} AS failed FROM (SELECT *, {', '.join(values)}\nFROM ("
        f"SELECT {', '.join(reads)}\nFROM (SELECT {', '.join(texts)} FROM input))))"
    )
    return replace(source, sql=query)


def said_columns(want: Wanted, alignment: Alignment) -> dict[str, str]:
    """Name the columns with the meaning of values that are kept as written or left missing."""
    compared = alignment.compared
    return {
        base.name: _free_name(f"equipoise_said_{i}", want)
        for i, base in enumerate(want.columns)
        if base.name in compared
    }


def _meant(text: str, decision: Decision) -> str:
    if decision.conversion is not None:
        return decision.conversion.sql(text)
    return respelled(text, decision.spellings)


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
    keep = sql.is_text(base.type) and any(value != value.strip() for value in known_texts(base))
    return f"nullif({text if keep else f'trim({text})'}, '')"


def _converted(text: str, base: ColumnProfile, *, is_number: bool) -> str:
    """SQL for a text converted to the base's type; null if that is impossible."""
    if not sql.is_text(base.type):
        whole = sql.is_whole(base.type)
        return _whole(text, base.type) if whole else f"TRY_CAST({text} AS {base.type})"
    written = _as_written(text, base)
    return (
        f"CASE WHEN TRY_CAST({text} AS DOUBLE) IS NOT NULL THEN {written} END"
        if is_number
        else written
    )


def _whole(text: str, kind: str) -> str:
    """SQL that reads a whole number by its digits, and only others, such as 1e3, as a double."""
    digits = f"regexp_extract({text}, '^([+-]?[0-9]+)([.]0*)?$', 1)"
    number = f"TRY_CAST({text} AS DOUBLE)"
    exact = f"{number} = floor({number}) AND abs({number}) < {2**53}"
    return (
        f"coalesce(TRY_CAST({digits} AS {kind}), "
        f"CASE WHEN {exact} THEN TRY_CAST({number} AS {kind}) END)"
    )


def _as_written(text: str, base: ColumnProfile) -> str:
    """SQL for a number as the base writes it: whole numbers without a decimal point."""
    if base.numeric < 0.9 or any("." in value for value in known_texts(base)):
        return text
    # As text, since a leading zero may be part of a code.
    return rf"regexp_replace({text}, '^([+-]?[0-9]+)[.]0*$', '\1')"
