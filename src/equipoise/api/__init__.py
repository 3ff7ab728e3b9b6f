"""The few functions people call."""

from __future__ import annotations

from equipoise.api import evaluations, measurement, plans, repairs
from equipoise.api.keywords import answering
from equipoise.api.measurement import lattice_memory
from equipoise.api.reports import report

_REQUEST = "equipoise.plans.request:PlanRequest"
_LOOKING = "equipoise.options.search:SearchRequest"
_LIMITS = "equipoise.options.search:AcquisitionLimits"
_EVALUATION = "equipoise.evaluation.request:EvaluationRequest"

count = answering(measurement.count)
measure = answering(measurement.measure, count)
check = answering(measurement.check, measure)
diff = answering(measurement.diff, measure, "equipoise.measures.request:MeasureRequest")
sample_weight = answering(measurement.sample_weight, count)

plan = answering(plans.plan, count, _REQUEST, _LOOKING)
frontier = answering(plans.frontier, plan)
policy_map = answering(plans.policy_map, count)

apply = repairs.apply
repair = answering(repairs.repair, plan, _LIMITS)
verify = repairs.verify

evaluate = answering(evaluations.evaluate, count, _EVALUATION)
evaluate_paper = answering(evaluations.evaluate_paper, count, _EVALUATION)
compare_missing = answering(evaluations.compare_missing, count)
simulate_missing = answering(evaluations.simulate_missing, count)

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
