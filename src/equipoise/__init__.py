"""Equipoise measures bias in tabular data: Uniform Bias of every group and label.

>>> import equipoise as eq
>>> table = eq.measure("adult", sensitive_features=["sex"], label="income")
>>> round(table["sex=Female", ">50K"].ub, 3)
0.545
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.api import count, measure
    from equipoise.counts import CountRequest, Counts
    from equipoise.errors import EquipoiseError
    from equipoise.lattice import Group
    from equipoise.measures.table import BiasTable
    from equipoise.values import ANY, MISSING

_HOMES = {
    "ANY": "values",
    "BiasTable": "measures.table",
    "CountRequest": "counts",
    "Counts": "counts",
    "EquipoiseError": "errors",
    "Group": "lattice",
    "MISSING": "values",
    "count": "api",
    "measure": "api",
}

__all__ = [
    "ANY",
    "MISSING",
    "BiasTable",
    "CountRequest",
    "Counts",
    "EquipoiseError",
    "Group",
    "count",
    "measure",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package is quick."""
    if name == "__version__":
        from equipoise.version import version

        return version()
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"equipoise.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
