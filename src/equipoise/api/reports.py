"""Results as pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.results import Result


def report(
    table: Result,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
) -> None:
    """Write a result as one self-contained HTML page with charts.

    Parameters
    ----------
    table
        Any result, such as those of :func:`measure`, :func:`plan`, :func:`repair` or
        :func:`evaluate`.
    path
        File to write; it is written atomically.
    source
        Name by which the reader knows the table that the page is about.
    top
        Maximum number of rows of a table to show.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from equipoise import measure
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "adult.html"
    >>> table = measure("adult", sensitive_features=["sex"], label="income")
    >>> report(table, page, source="adult")
    >>> "Uniform Bias" in page.read_text(encoding="utf-8")
    True
    """
    from equipoise.reports.pages import write_page

    write_page(table, path, source=source, top=top)
