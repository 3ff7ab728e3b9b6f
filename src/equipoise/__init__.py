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
    from equipoise.api import check, count, diff, measure, report
    from equipoise.counts import CountRequest, Counts
    from equipoise.errors import EquipoiseError
    from equipoise.lattice import Group
    from equipoise.measures.change import BiasChange
    from equipoise.measures.policy import Check, Policy, Rule
    from equipoise.measures.table import BiasTable
    from equipoise.values import ANY, MISSING

_HOMES = {
    "ANY": "values",
    "BiasChange": "measures.change",
    "BiasTable": "measures.table",
    "Check": "measures.policy",
    "CountRequest": "counts",
    "Counts": "counts",
    "EquipoiseError": "errors",
    "Group": "lattice",
    "MISSING": "values",
    "Policy": "measures.policy",
    "Rule": "measures.policy",
    "check": "api",
    "count": "api",
    "diff": "api",
    "measure": "api",
    "report": "api",
}

__all__ = [
    "ANY",
    "MISSING",
    "BiasChange",
    "BiasTable",
    "Check",
    "CountRequest",
    "Counts",
    "EquipoiseError",
    "Group",
    "Policy",
    "Rule",
    "check",
    "count",
    "diff",
    "measure",
    "report",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package is quick."""
    if name == "__version__":
        from equipoise.version import __version__

        return __version__
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"equipoise.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
