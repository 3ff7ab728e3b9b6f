"""Conditions on rows of tables of databases: what they compare, and the rows that satisfy them."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.counts import Condition
from equipoise.engines.base import Column, require_names
from equipoise.engines.column_types import is_text
from equipoise.engines.comparisons import WHOLE, compared, trimmed
from equipoise.engines.conditions import (
    KINDS,
    Meaningless,
    columns_named,
    how_compared,
    not_a_condition,
    not_evaluated,
    parser,
    typings,
)
from equipoise.engines.dialect import PartsDialect
from equipoise.engines.translation import translated
from equipoise.errors import InputError
from equipoise.values import MISSING_MARKS

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.engines.dialect import Dialect
    from equipoise.engines.sources import Source


class Filtering(abc.ABC):
    """The part of a database that opens tables and applies conditions to them."""

    dialect: Dialect

    # ---------------------------------------------------- what an engine provides

    @abc.abstractmethod
    def _opened(
        self, source: Source, *, carried: str = ""
    ) -> contextlib.AbstractContextManager[tuple[str, tuple[Column, ...]]]:
        """Yield the SQL text of a table, and its columns, while it can be read.

        A view has one more column of the name ``carried``, if one is given: see :class:`Identity`.
        """

    @abc.abstractmethod
    def _arrow(self, source: Source, query: str, title: str) -> pa.Table:
        """Run a query, and explain errors."""

    def _dialect(self, source: Source) -> Dialect:  # noqa: ARG002
        """Return the SQL of the database that a source is in."""
        return self.dialect

    # -------------------------------------------------------------------- verbs

    def settled(self, source: Source) -> Source:
        """The same source with its condition settled; see :class:`~equipoise.engines.base.Engine`."""
        if source.where is None or source.where.types is not None:
            return source
        with self._opened(replace(source, where=None)) as (table, columns):
            return replace(source, where=self._settle(source, table, columns))

    # --------------------------------------------------------------- conditions

    def _restricted(self, source: Source, table: str, columns: tuple[Column, ...]) -> str:
        """Return the text of the rows of a table that satisfy the source's condition."""
        if source.sql is None:  # a query may leave columns out, which only those who need them miss
            require_names([c.name for c in columns], source.key, source.name)
        where = source.where
        if where is None:
            return table
        if where.types is None:
            where = self._settle(source, table, columns)
        else:  # a plan's file may have been edited, and names columns of another table
            columns_named(where.text, columns, source.name, parser())
        types = {c.name: c.type for c in columns}
        d = self._dialect(source)
        expression = d.attempted(where, types)
        return restricted(d, table, columns, where, expression)

    def _settle(self, source: Source, table: str, columns: tuple[Column, ...]) -> Condition:
        """Decide the types that a condition compares columns as; refuse one that no row satisfies."""
        text = "" if source.where is None else source.where.text.strip()
        if not text:
            raise not_a_condition(text, "it is empty")
        named = columns_named(text, columns, source.name, parser())
        natural = {c.name: self._natural_type(source, table, c) for c in named if is_text(c.type)}
        possible = typings(named, natural)
        why = ""
        for types in possible:
            condition = Condition(text, types)
            try:
                kept = self._count_satisfying(source, table, columns, condition)
            except Meaningless as error:
                why = why or str(error)
                continue
            if not kept:
                raise InputError(
                    f"no row of {source.name} satisfies the condition {condition.one_line}; "
                    f"{how_compared(condition)}."
                )
            return condition
        raise not_evaluated(Condition(text, possible[0]), source.name, why)

    def _natural_type(self, source: Source, table: str, column: Column) -> str:
        query = natural_type(self._dialect(source), table, column, KINDS)
        told = self._arrow(source, query, "reading values").columns
        return next((k for k, fits in zip(KINDS, told, strict=True) if fits[0].as_py()), "VARCHAR")

    def _count_satisfying(
        self, source: Source, table: str, columns: tuple[Column, ...], condition: Condition
    ) -> int:
        d = self._dialect(source)
        if not isinstance(d, PartsDialect):  # DuckDB evaluates conditions itself
            raise NotImplementedError
        written = translated(d, condition, {c.name: c.type for c in columns})
        expression = written.write()
        query = satisfying(d, table, columns, condition, expression, written.strict)
        found = self._arrow(source, query, f"reading {source.name}")
        if found["failed"][0].as_py():
            raise Meaningless("a value of a row cannot be converted")
        return int(found["n"][0].as_py())


def restricted(
    d: Dialect, table: str, columns: Sequence[Column], condition: Condition, expression: str
) -> str:
    """Select the rows that satisfy a condition, with the columns and types of the table."""
    inner, own = compared(d, table, columns, condition)
    return f"(SELECT {', '.join(own)} FROM {inner} WHERE {expression})"


def satisfying(
    d: Dialect,
    table: str,
    columns: Sequence[Column],
    condition: Condition,
    expression: str,
    failing: Sequence[str],
) -> str:
    """Count the rows that satisfy a condition as ``n``, and those with a value that fails."""
    inner, _ = compared(d, table, columns, condition)
    fails = " OR ".join(failing) or "false"
    return (
        f"SELECT count(*) FILTER (WHERE {expression}) AS n, count(*) FILTER (WHERE {fails}) AS failed "
        f"FROM {inner}"
    )


def natural_type(d: Dialect, table: str, column: Column, kinds: Mapping[str, str]) -> str:
    """Ask for each type whether all texts of a column that are present match its pattern and have it."""
    absent = d.texts(("", *sorted(MISSING_MARKS)))
    answers = []
    for i, (kind, pattern) in enumerate(kinds.items()):
        reads = d.matches("t", pattern)
        if kind not in ("BOOLEAN", *WHOLE):
            reads += f" AND {d.tried('t', kind)} IS NOT NULL"
        present = f"FILTER (WHERE lower(t) NOT IN ({absent}))"
        answers.append(f"coalesce(bool_and({reads}) {present}, false) AS a{i}")
    # Each value once: most columns have few values, and matching a pattern is slow.
    values = f"SELECT DISTINCT {trimmed(d, column)} AS t FROM {table} AS input"
    return f"SELECT {', '.join(answers)} FROM ({values}) AS different"
