"""The few functions people call."""

from __future__ import annotations

from equipoise.api import evaluating, measuring, planning, repairing
from equipoise.api.keywords import answering
from equipoise.api.measuring import lattice_memory
from equipoise.api.reporting import report

_REQUEST = "equipoise.plans.request:PlanRequest"
_LOOKING = "equipoise.lake.offers.survey:Looking"
_LIMITS = "equipoise.lake.repair.fill:Limits"
_EVALUATION = "equipoise.evaluation.request:EvaluationRequest"

count = answering(measuring.count)
measure = answering(measuring.measure, count)
check = answering(measuring.check, measure)
diff = answering(measuring.diff, measure, "equipoise.measures.options:Options")
sample_weight = answering(measuring.sample_weight, count)

plan = answering(planning.plan, count, _REQUEST, _LOOKING)
frontier = answering(planning.frontier, plan)
policy_map = answering(planning.policy_map, count)

apply = repairing.apply
repair = answering(repairing.repair, plan, _LIMITS)
verify = repairing.verify

evaluate = answering(evaluating.evaluate, count, _EVALUATION)
evaluate_paper = answering(evaluating.evaluate_paper, count, _EVALUATION)
compare_missing = answering(evaluating.compare_missing, count)
simulate_missing = answering(evaluating.simulate_missing, count)

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
