"""Example data sets, each with a card: source, licence and known harms.

>>> from equipoise import datasets
>>> datasets.names()
('adult', 'compas', 'compas-two-years', 'credit')
>>> datasets.card("adult").label
'income'
"""

from __future__ import annotations

from equipoise.datasets.cards import Card, Origin, card, names
from equipoise.datasets.downloads import fetch
from equipoise.datasets.storage import data_directory, is_available, path

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
