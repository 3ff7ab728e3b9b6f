"""A second opinion on matched columns by Valentine, a library of schema matchers."""

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
_CLEARLY = 0.1  # margin by which another column must be ahead to count as a different opinion


def second_opinion(
    want: Wanted, table: Profile, matches: Iterable[ColumnMatch]
) -> dict[str, tuple[str, float]]:
    """Find the columns for which Valentine clearly prefers another column, with its similarity."""
    found = _similarities(_frame(want.columns), _frame(table.columns))
    other = {}
    for match in matches:
        own = found.get((match.base, match.source), 0.0)
        rivals = {t: s for (b, t), s in found.items() if b == match.base and t != match.source}
        best = max(rivals, key=lambda name: rivals[name], default=None)
        if best is not None and rivals[best] > own + _CLEARLY:
            other[match.base] = (best, rivals[best])
    return other


def _frame(columns: Iterable[ColumnProfile]) -> pd.DataFrame:
    """Return some values of columns as a frame."""
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
    # Headers, and the overlap of values: these two matchers need no model and no download.
    for matcher in (Coma(), JaccardDistanceMatcher()):
        for pair, similarity in valentine_match([ours, theirs], matcher).items():
            key = (pair.source_column, pair.target_column)
            found[key] = max(found.get(key, 0.0), float(similarity))
    return found
