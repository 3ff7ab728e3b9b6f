"""What every result has in common.

A result describes itself in sentences and tables. This module turns these into text, Markdown, JSON,
frames and HTML for a notebook, and records when and by which version the result was made.
"""

from __future__ import annotations

import datetime
import html
import importlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from equipoise.errors import MissingDependency
from equipoise.plain import Grid
from equipoise.values import MISSING
from equipoise.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

FlatTable: TypeAlias = tuple[Sequence[str], Iterable[Sequence[Any]]]
"""Column names, and rows of values."""
SHOWN = 20
"""Maximum number of rows of a table that a notebook shows."""


def now() -> str:
    """The present time in UTC, to the second, in ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class Result:
    """Base of all results.

    Attributes
    ----------
    time
        When the result was made, in UTC.
    version
        Version of Equipoise that made it.
    """

    # Neither says anything about the data, so two equal results may differ in them.
    time: str = field(default_factory=now, compare=False, repr=False)
    version: str = field(default=__version__, compare=False, repr=False)

    # ------------------------------------------------------------------- what each result says

    @property
    def heading(self) -> str:
        """What the result is about, in one line; empty if the sentences say it."""
        return ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the result says, in sentences."""
        return ()

    @property
    def exit_code(self) -> int:
        """Exit code of the command that prints this result."""
        return 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        raise NotImplementedError

    def _table(self) -> FlatTable:
        """The table of this result, in full precision: what frames hold."""
        raise NotImplementedError

    def _said(self) -> Sequence[str]:
        """The text above the tables: by default the heading and the sentences."""
        return [*([self.heading] if self.heading else []), *self.sentences]

    _most: ClassVar[int | None] = SHOWN
    """Maximum number of rows that a notebook shows of each table; None for all."""

    def _grids(self) -> Sequence[Grid]:
        """The tables for people."""
        return [self.grid()]  # type: ignore[attr-defined]

    # ---------------------------------------------------------------------------- for all

    def grids(self) -> list[Grid]:
        """The tables for people, as other programs may show them."""
        return list(self._grids())

    def text(self) -> str:
        """The heading, the sentences and the tables as text."""
        said = "\n".join(self._said())
        return "\n\n".join([said, *(grid.text() for grid in self._grids() if grid.rows)])

    def markdown(self) -> str:
        """The heading, the sentences and the tables as Markdown."""
        said = "\n".join(f"- {sentence}" for sentence in self._said())
        return "\n\n".join([said, *(grid.markdown() for grid in self._grids() if grid.rows)])

    def __str__(self) -> str:
        return self.text()

    def to_json(self, indent: int | None = None) -> str:
        """The plain data of :meth:`to_dict` as one JSON document.

        Parameters
        ----------
        indent
            Number of spaces to indent by. By default, the document is a single line.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)

    def to_arrow(self) -> pa.Table:
        """The table of this result as an Arrow table, in full precision.

        What is missing or undefined is null.
        """
        return arrow_table(*self._table())

    def to_pandas(self) -> pd.DataFrame:
        """The table of this result as a pandas frame; the columns are those of :meth:`to_arrow`."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The table of this result as a polars frame; the columns are those of :meth:`to_arrow`."""
        return as_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        """What a notebook shows; everything that comes from data is escaped."""
        said = "".join(f"<p>{html.escape(str(sentence))}</p>" for sentence in self._said())
        return said + "".join(_shown(grid, self._most) for grid in self._grids())


class Drawing(Protocol):
    """A picture, as :mod:`equipoise.reports.pictures` makes it."""

    def to_svg(self) -> str:
        """The picture as SVG."""

    def to_png(self, *, scale: float = 2.0) -> bytes:
        """The picture as PNG."""

    def to_altair(self) -> Any:
        """A chart of Altair."""

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
        """Write the picture to a file."""


class Drawable(Result):
    """A result that has charts."""

    def plot(self) -> Drawing:
        """Draw this result.

        Returns
        -------
        Drawing
            Shows itself in a notebook; ``save("x.png")`` and ``save("x.svg")`` write it, and
            ``to_altair()`` returns an Altair chart.

        Raises
        ------
        MissingDependency
            If the extra ``charts`` is not installed.
        """
        # Drawing is in a layer above results, so it is looked up by name when it is needed.
        picture: Drawing = importlib.import_module(_DRAWING).draw_result(self)
        return picture

    def save_plot(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
        """Draw this result into a file.

        Parameters
        ----------
        path
            File to write; its extension, ``.png`` or ``.svg``, sets the format.
        scale
            Number of pixels of a PNG for each unit of the drawing.
        """
        self.plot().save(path, scale=scale)


_DRAWING = "equipoise.reports.pictures"


def arrow_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Make an Arrow table of rows; a column whose values are of several types becomes text."""
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([_column(values) for values in columns], names=list(names))


def column_names(own: Sequence[str], data: Sequence[str]) -> list[str]:
    """Names for columns of the data that do not collide with those of a result.

    >>> column_names(["rate", "ub"], ["sex", "rate"])
    ['sex', 'data.rate']
    """
    return [f"data.{name}" if name in own else name for name in data]


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert a table to a pandas frame."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependency("pandas", extra="frames", purpose="to_pandas()") from None
    return pd.DataFrame(table.to_pandas(), copy=False)


def as_polars(table: pa.Table) -> pl.DataFrame:
    """Convert a table to a polars frame."""
    try:
        import polars as pl
    except ImportError:
        raise MissingDependency("polars", extra="frames", purpose="to_polars()") from None
    return pl.DataFrame(table)


def _column(values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    found = [_value(value) for value in values]
    kinds = {type(value) for value in found if value is not None}
    if kinds - {str} and not (len(kinds) == 1 or kinds <= {int, float}):
        found = [None if value is None else str(value) for value in found]
        kinds = {str}
    return pa.array(found, pa.float64() if kinds == {int, float} else None)


def _value(value: Any) -> Any:
    """A value as Arrow takes it: null if it is missing or undefined, and text if it has parts."""
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if value is None or value is MISSING or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {part}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _shown(grid: Grid, most: int | None) -> str:
    most = len(grid.rows) if most is None else most
    more = len(grid.rows) - most
    line = grid.line if grid.line is not None and grid.line[0] < most else None
    first = Grid(grid.headers, grid.rows[:most], grid.numbers, line)
    return first.html() + (f"<p>… and {more:,} more rows</p>" if more > 0 else "")
