"""Example data sets, each with a card: source, licence and known harms.

>>> from equipoise import datasets
>>> datasets.names()
('adult', 'compas', 'compas-days', 'compas-two-years', 'credit')
>>> datasets.card("adult").label
'income'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.datasets.cards import Card, Origin, card, names
from equipoise.datasets.storage import data_directory, is_available, path

if TYPE_CHECKING:
    from equipoise.datasets.downloads import fetch

__all__ = [
    "Card",
    "Origin",
    "card",
    "data_directory",
    "fetch",
    "is_available",
    "names",
    "path",
]


def __getattr__(name: str) -> Any:
    """Load what downloads only when it is used: most commands look for a data set's name."""
    if name != "fetch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from equipoise.datasets.downloads import fetch

    return fetch
