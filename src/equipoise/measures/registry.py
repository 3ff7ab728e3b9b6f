"""All measures by name.

The command line, reports, documentation and tests read the registry, so a new measure is one
function with one entry.
"""

from __future__ import annotations

from equipoise.errors import UnknownName
from equipoise.measures import classic, uniform_bias  # noqa: F401 (loading them makes the entries)
from equipoise.measures.measure import MEASURES, Measure


def measures() -> tuple[Measure, ...]:
    """Every registered measure, in the order of entry."""
    return tuple(MEASURES.values())


def measure_named(name: str) -> Measure:
    """Find a measure by its name; dashes and underscores are the same."""
    try:
        return MEASURES[name.replace("-", "_")]
    except KeyError:
        raise UnknownName("measure", name, MEASURES) from None
