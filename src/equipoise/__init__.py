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
    from equipoise.api.audits import audit
    from equipoise.api.evaluations import (
        compare_missing,
        evaluate,
        evaluate_paper,
        simulate_missing,
    )
    from equipoise.api.measurement import (
        check,
        count,
        diff,
        measure,
        sample_weight,
        write_weights,
    )
    from equipoise.api.monitors import Monitor
    from equipoise.api.plans import compare, frontier, plan, policy_map, scenario
    from equipoise.api.repairs import apply, repair, verify
    from equipoise.api.reports import report
    from equipoise.audits.audit import Audit
    from equipoise.counts import CountRequest, Counts
    from equipoise.errors import EquipoiseError
    from equipoise.evaluation.evaluation import Evaluation
    from equipoise.lake.lake import Lake
    from equipoise.lake.loop import Repaired
    from equipoise.lake.offers.find import Found
    from equipoise.lake.offers.questions import Questions
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
    from equipoise.plans.comparison import PlanComparison
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.infeasibility import Infeasible
    from equipoise.plans.maps.policy_map import PolicyMap
    from equipoise.plans.plan import Plan
    from equipoise.plans.sweeps import Sweep
    from equipoise.values import ANY, MISSING

_NAMES = {
    "api.audits": "audit",
    "api.evaluations": "compare_missing evaluate evaluate_paper simulate_missing",
    "api.measurement": "check count diff measure sample_weight write_weights",
    "api.monitors": "Monitor",
    "api.plans": "compare frontier plan policy_map scenario",
    "api.repairs": "apply repair verify",
    "api.reports": "report",
    "audits.audit": "Audit",
    "counts": "CountRequest Counts",
    "errors": "EquipoiseError",
    "evaluation.evaluation": "Evaluation",
    "lake.lake": "Lake",
    "lake.loop": "Repaired",
    "lake.offers.find": "Found",
    "lake.offers.questions": "Questions",
    "lake.repair.acquisition": "Acquired",
    "lake.repair.apply": "Applied",
    "lake.sampling": "bounds",
    "lake.sampling.purchases": "Tailored",
    "lake.sampling.tailoring": "tailor",
    "lake.verify.verification": "Verification",
    "lattice": "Group",
    "measures.change": "BiasChange",
    "measures.policy": "Check Policy",
    "measures.rules": "Rule",
    "measures.table": "BiasTable",
    "plans.certificate": "Certificate",
    "plans.comparison": "PlanComparison",
    "plans.frontier": "Frontier",
    "plans.infeasibility": "Infeasible",
    "plans.maps.policy_map": "PolicyMap",
    "plans.plan": "Plan",
    "plans.sweeps": "Sweep",
    "values": "ANY MISSING",
}
"""The modules of the public names."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "ANY",
    "MISSING",
    "Acquired",
    "Applied",
    "Audit",
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
    "Monitor",
    "Plan",
    "PlanComparison",
    "Policy",
    "PolicyMap",
    "Questions",
    "Repaired",
    "Rule",
    "Sweep",
    "Tailored",
    "Verification",
    "apply",
    "audit",
    "bounds",
    "check",
    "compare",
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
    "scenario",
    "simulate_missing",
    "tailor",
    "verify",
    "write_weights",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package is quick."""
    place = "version" if name == "__version__" else _HOMES.get(name)
    if place is None:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    home = importlib.import_module(f"equipoise.{place}")
    # `bounds` is a module itself, which its package does not import.
    is_module = not hasattr(home, name)
    value = importlib.import_module(f".{name}", home.__name__) if is_module else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
