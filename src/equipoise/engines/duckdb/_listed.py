"""Lists of Parquet files as tables that DuckDB can query, in parallel and without a copy."""

from __future__ import annotations

from equipoise.engines.duckdb._window import path_in_sql
from equipoise.engines.sql import identifier, literal
from equipoise.engines.stores.file_lists import FileList, ListedColumn


def listed_table(listed: FileList) -> str:
    """Write the SQL text of a table; its rows have the order of the files."""
    stored = [column for column in listed.columns if column.key is not None]
    if not listed.files:
        nothing = ", ".join(
            f"CAST(NULL AS {c.type}) AS {identifier(c.name)}" for c in listed.columns
        )
        return f"(SELECT {nothing} WHERE false)"
    names = ", ".join(_value(column) for column in listed.columns)
    # A table may consist of values that the log holds, but a file is read by a column at least.
    schema = f", schema = MAP {{{', '.join(map(_field, stored))}}}" if stored else ""
    files = ", ".join(literal(path_in_sql(f)) for f in listed.files)
    return f"(SELECT {names} FROM read_parquet([{files}], can_have_nan = true{schema}))"


def _field(column: ListedColumn) -> str:
    """Say where the column is in the files; a file that does not have it has the default."""
    key = column.key if isinstance(column.key, int) else literal(str(column.key))
    default = "NULL" if column.default is None else literal(column.default)
    return (
        f"{key}: {{name: {literal(column.name)}, type: {literal(column.type)}, "
        f"default_value: {default}}}"
    )


def _value(column: ListedColumn) -> str:
    name = identifier(column.name)
    if column.constants is None:
        return name
    texts = ", ".join("NULL" if text is None else literal(text) for text in column.constants)
    value = f"(CAST([{texts}] AS {column.type}[]))[CAST(file_index AS BIGINT) + 1]"
    return f"{value} AS {name}" if column.key is None else f"coalesce({name}, {value}) AS {name}"
