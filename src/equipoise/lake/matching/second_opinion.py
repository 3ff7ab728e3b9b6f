"""What Valentine, a library of schema matchers, takes for which column: a second opinion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.errors import MissingDependency
from equipoise.lake.matching.columns.alignment import ColumnMatch
from equipoise.lake.matching.columns.target import Wanted

if TYPE_CHECKING:
    import pandas as pd

_VALUES = 200
_CLEARLY = 0.1
"""By how much another column must be ahead to be another opinion."""


def second_opinion(
    want: Wanted, table: Profile, matches: Iterable[ColumnMatch]
) -> dict[str, tuple[str, float]]:
    """Tell for which columns Valentine clearly prefers another column of a table.

    Two of its matchers are asked, that need no model and no download: Coma by the headers, and
    the overlap of values.

    Parameters
    ----------
    want
        The base's columns.
    table
        What is known of the table.
    matches
        Our opinion.

    Returns
    -------
    dict
        By the base's column: the column Valentine prefers, and how alike it finds them.
    """
    ours, theirs = _frame(want.columns), _frame(table.columns)
    found = _similarities(ours, theirs)
    other = {}
    for match in matches:
        own = found.get((match.base, match.source), 0.0)
        rivals = {t: s for (b, t), s in found.items() if b == match.base and t != match.source}
        best = max(rivals, key=lambda name: rivals[name], default=None)
        if best is not None and rivals[best] > own + _CLEARLY:
            other[match.base] = (best, rivals[best])
    return other


def _frame(columns: Iterable[ColumnProfile]) -> pd.DataFrame:
    """Give the values of columns, or some of them, as a frame."""
    import pandas as pd

    known = {
        c.name: list(c.values)[:_VALUES] if c.values is not None else list(c.sample)
        for c in columns
    }
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in known.items()})


def _similarities(ours: pd.DataFrame, theirs: pd.DataFrame) -> dict[tuple[str, str], float]:
    try:
        from valentine import valentine_match
        from valentine.algorithms import Coma, JaccardDistanceMatcher
    except ImportError:
        raise MissingDependency(
            "valentine", extra="valentine", purpose="A second opinion on columns"
        ) from None
    found: dict[tuple[str, str], float] = {}
    for matcher in (Coma(), JaccardDistanceMatcher()):
        for pair, similarity in valentine_match([ours, theirs], matcher).items():
            key = (pair.source_column, pair.target_column)
            found[key] = max(found.get(key, 0.0), float(similarity))
    return found
