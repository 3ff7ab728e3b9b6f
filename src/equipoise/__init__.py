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
    from equipoise.api import (
        apply,
        check,
        count,
        diff,
        frontier,
        measure,
        plan,
        policy_map,
        report,
        sample_weight,
    )
    from equipoise.counts import CountRequest, Counts
    from equipoise.errors import EquipoiseError
    from equipoise.lake.acquire import Acquired
    from equipoise.lattice import Group
    from equipoise.measures.change import BiasChange
    from equipoise.measures.policy import Check, Policy, Rule
    from equipoise.measures.table import BiasTable
    from equipoise.plans.certificate import Certificate
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.infeasible import Infeasible
    from equipoise.plans.maps.policy_map import PolicyMap
    from equipoise.plans.plan import Plan
    from equipoise.values import ANY, MISSING

_HOMES = {
    "ANY": "values",
    "Acquired": "lake.acquire",
    "BiasChange": "measures.change",
    "BiasTable": "measures.table",
    "Certificate": "plans.certificate",
    "Check": "measures.policy",
    "CountRequest": "counts",
    "Counts": "counts",
    "EquipoiseError": "errors",
    "Frontier": "plans.frontier",
    "Group": "lattice",
    "Infeasible": "plans.infeasible",
    "MISSING": "values",
    "Plan": "plans.plan",
    "Policy": "measures.policy",
    "PolicyMap": "plans.maps.policy_map",
    "Rule": "measures.policy",
    "apply": "api",
    "check": "api",
    "count": "api",
    "diff": "api",
    "frontier": "api",
    "measure": "api",
    "plan": "api",
    "policy_map": "api",
    "report": "api",
    "sample_weight": "api",
}

__all__ = [
    "ANY",
    "MISSING",
    "Acquired",
    "BiasChange",
    "BiasTable",
    "Certificate",
    "Check",
    "CountRequest",
    "Counts",
    "EquipoiseError",
    "Frontier",
    "Group",
    "Infeasible",
    "Plan",
    "Policy",
    "PolicyMap",
    "Rule",
    "apply",
    "check",
    "count",
    "diff",
    "frontier",
    "measure",
    "plan",
    "policy_map",
    "report",
    "sample_weight",
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
