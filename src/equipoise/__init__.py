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
        compare_missing,
        count,
        diff,
        evaluate,
        evaluate_paper,
        frontier,
        measure,
        plan,
        policy_map,
        repair,
        report,
        sample_weight,
        simulate_missing,
        verify,
    )
    from equipoise.counts import CountRequest, Counts
    from equipoise.errors import EquipoiseError
    from equipoise.evaluation.evaluation import Evaluation
    from equipoise.lake.lake import Lake
    from equipoise.lake.loop import Repaired
    from equipoise.lake.offers.find import Found
    from equipoise.lake.repair.acquisition import Acquired
    from equipoise.lake.repair.apply import Applied
    from equipoise.lake.sampling import bounds
    from equipoise.lake.sampling.purchases import Tailored
    from equipoise.lake.sampling.tailoring import tailor
    from equipoise.lake.verify.verification import Verification
    from equipoise.lattice import Group
    from equipoise.measures.change import BiasChange
    from equipoise.measures.policy import Check, Policy
    from equipoise.measures.rules import Rule
    from equipoise.measures.table import BiasTable
    from equipoise.plans.certificate import Certificate
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.infeasibility import Infeasible
    from equipoise.plans.maps.policy_map import PolicyMap
    from equipoise.plans.plan import Plan
    from equipoise.values import ANY, MISSING

_HOMES = {
    "ANY": "values",
    "Acquired": "lake.repair.acquisition",
    "Applied": "lake.repair.apply",
    "BiasChange": "measures.change",
    "BiasTable": "measures.table",
    "Certificate": "plans.certificate",
    "Check": "measures.policy",
    "CountRequest": "counts",
    "Counts": "counts",
    "EquipoiseError": "errors",
    "Evaluation": "evaluation.evaluation",
    "Found": "lake.offers.find",
    "Frontier": "plans.frontier",
    "Group": "lattice",
    "Infeasible": "plans.infeasibility",
    "Lake": "lake.lake",
    "MISSING": "values",
    "Plan": "plans.plan",
    "Policy": "measures.policy",
    "PolicyMap": "plans.maps.policy_map",
    "Repaired": "lake.loop",
    "Rule": "measures.rules",
    "Tailored": "lake.sampling.purchases",
    "Verification": "lake.verify.verification",
    "apply": "api",
    "bounds": "lake.sampling",
    "check": "api",
    "compare_missing": "api",
    "count": "api",
    "diff": "api",
    "evaluate": "api",
    "evaluate_paper": "api",
    "frontier": "api",
    "measure": "api",
    "plan": "api",
    "policy_map": "api",
    "repair": "api",
    "report": "api",
    "sample_weight": "api",
    "simulate_missing": "api",
    "tailor": "lake.sampling.tailoring",
    "verify": "api",
}

__all__ = [
    "ANY",
    "MISSING",
    "Acquired",
    "Applied",
    "BiasChange",
    "BiasTable",
    "Certificate",
    "Check",
    "CountRequest",
    "Counts",
    "EquipoiseError",
    "Evaluation",
    "Found",
    "Frontier",
    "Group",
    "Infeasible",
    "Lake",
    "Plan",
    "Policy",
    "PolicyMap",
    "Repaired",
    "Rule",
    "Tailored",
    "Verification",
    "apply",
    "bounds",
    "check",
    "compare_missing",
    "count",
    "diff",
    "evaluate",
    "evaluate_paper",
    "frontier",
    "measure",
    "plan",
    "policy_map",
    "repair",
    "report",
    "sample_weight",
    "simulate_missing",
    "tailor",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package is quick."""
    if name == "__version__":
        from equipoise.version import __version__

        return __version__
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    home = importlib.import_module(f"equipoise.{_HOMES[name]}")
    value = (
        getattr(home, name)
        if hasattr(home, name)
        else importlib.import_module(f".{name}", home.__name__)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
