"""The few functions people call."""

from __future__ import annotations

from equipoise.api.evaluating import compare_missing, evaluate, evaluate_paper, simulate_missing
from equipoise.api.measuring import check, count, diff, lattice_memory, measure, sample_weight
from equipoise.api.planning import frontier, plan, policy_map
from equipoise.api.repairing import apply, repair, verify
from equipoise.api.reporting import report

__all__ = [
    "apply",
    "check",
    "compare_missing",
    "count",
    "diff",
    "evaluate",
    "evaluate_paper",
    "frontier",
    "lattice_memory",
    "measure",
    "plan",
    "policy_map",
    "repair",
    "report",
    "sample_weight",
    "simulate_missing",
    "verify",
]
