"""Plans in sentences: the changes, the reasons for them, the result, and warnings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.lattice import format_value
from equipoise.plain import in_words, rows_text
from equipoise.plans.judgement import compared_with, off_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from equipoise.plans.budget import Spent
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.certificate import Certificate
    from equipoise.plans.problem import Problem
    from equipoise.plans.solution import Solution

SMALL_GROUP = 30
"""Groups with fewer rows have rates too uncertain to justify large changes, so a warning names them."""

RESIDUAL = 0.05
"""Remaining bias at zero tolerance above which a sentence explains the effect of rounding."""


def explain(
    problem: Problem,
    spent: Spent,
    certificate: Certificate,
    price: Mapping[str, float] | None,
    rounded: float | None = None,
) -> tuple[str, ...]:
    """Explain what a plan does and why; ``rounded`` is the cost of zero bias up to rounding."""
    solution, rows = spent.solution, spent.rows
    sure = certificate.reached and spent.in_full
    return tuple(
        s
        for part in (
            _headline(problem, rows, certificate),
            _outcome(certificate),
            _small_groups(problem, solution, rows, certificate),
            _exactness(problem, solution, rows, certificate, rounded),
            _reasons(problem, solution, rows, certificate),
            _budget(problem, certificate, spent),
            _labels(problem, solution, certificate, price),
            _certainty(problem, solution, rows) if sure else (),
            _warnings(problem, rows),
            problem.counts.reading.sentences,
        )
        for s in part
    )


def _headline(problem: Problem, rows: Whole, certificate: Certificate) -> Iterator[str]:
    added = int((rows - problem.have).clip(0).sum())
    gone = int((problem.have - rows).clip(0).sum())
    parts = [f"add {rows_text(added)}"] * bool(added) + [f"delete {rows_text(gone)}"] * bool(gone)
    if not parts:
        yield "Nothing needs to change." if certificate.reached else "Nothing is changed."
        return
    cost = problem.cells.total_cost(rows)
    priced = f" at a cost of {cost:,.6g}" if cost != added + gone else ""
    yield (
        f"{in_words(parts).capitalize()}{priced}: the table goes from {certificate.n_before:,} to "
        f"{certificate.n_after:,} rows."
    )


def _outcome(certificate: Certificate) -> Iterator[str]:
    c = certificate
    before, after = c.worst_before, c.worst_after
    if before is not None and after == before:
        yield (
            f"The largest |UB| of all {c.groups:,} groups is {c.max_abs_ub_before:.3g} ({before})."
        )
    elif before is not None and after is not None:
        yield (
            f"The largest |UB| of all {c.groups:,} groups goes from {c.max_abs_ub_before:.3g} "
            f"({before}) to {c.max_abs_ub_after:.3g} ({after})."
        )
    if c.rounding_bound is not None and c.reached:
        goal = "Every target is" if c.targets else "Zero bias is"
        yield (
            f"{goal} reached up to rounding: every cell is within one row of its exact number. "
            f"The largest remaining bias is {c.off_after:.3g}; rounding can leave up to {c.rounding_bound:.3g}."
        )
    elif not c.reached:
        broken = [h.constraint for h in c.constraints if not h.holds]
        yield (
            f"This plan does NOT meet the request: the largest {c.kind} of a judged group is "
            f"{c.off_after:.4g}, and the tolerance is {c.tolerance:g}"
            + (f". Violated constraints: {in_words(broken)}." if broken else ".")
        )
    # Moving from the old to the new frequencies at most doubles a tolerance (and divides it by 1 − τ).
    # A larger |UB| belongs to a group that is not judged, which this sentence is not about.
    widest = 2 * c.tolerance / max(1 - c.tolerance, 1e-9)
    held = c.reference == "original" and c.kind == "|UB|" and c.max_abs_ub_after <= widest
    if held and c.tolerance and c.reached:
        yield (
            f"Groups stay within {c.tolerance:g} relative to the original label frequencies; relative "
            f"to those of the repaired table, the largest |UB| is {c.max_abs_ub_after:.3g}."
        )


def _small_groups(
    problem: Problem, solution: Solution, rows: Whole, certificate: Certificate
) -> Iterator[str]:
    """Warn about groups whose bias stays far from zero because of rounding."""
    c = certificate
    if c.rounding_bound is None or not c.reached or c.off_after <= RESIDUAL:
        return
    ratios = problem.ratios[problem.judged]
    rates = compared_with(problem, rows, solution.base).real
    off = off_target(rows[problem.judged], ratios, rates, c.tolerance_on)
    over = np.nan_to_num(off).max(axis=1, initial=0.0) > RESIDUAL
    if not over.any():
        return
    sizes = rows[problem.judged][over].sum(axis=1)
    many = "1 group is" if len(sizes) == 1 else f"{len(sizes):,} groups are"
    yield (
        f"{many} left with a bias above {RESIDUAL:g}; the smallest of them has {rows_text(sizes.min())} after the "
        "repair, too few for whole rows to come close to zero bias, so “reached” says little about "
        f"such groups. `tolerance={RESIDUAL:g}` limits the remaining bias of every group, at a higher cost; "
        "`min_group` leaves small groups out."
    )


def _exactness(
    problem: Problem,
    solution: Solution,
    rows: Whole,
    certificate: Certificate,
    rounded: float | None,
) -> Iterator[str]:
    """What it takes to leave no bias at all, and what that costs."""
    if solution.parts is None or not certificate.reached:
        return
    yield f"No bias is left: the rows of every judged group are a multiple of {_parts(problem, solution)}."
    if rounded is None:
        return
    cost = problem.cells.total_cost(rows)
    yield (
        f"This costs {cost:,.6g}; up to rounding, zero bias costs {rounded:,.6g}: the price of "
        f"leaving nothing is {cost - rounded:,.6g}."
    )


def _parts(problem: Problem, solution: Solution) -> str:
    assert solution.parts is not None  # noqa: S101 - only asked for plans without bias
    names = map(format_value, problem.counts.label.values)
    return in_words(
        [f"{p:,} {n}" for n, p in zip(names, solution.parts.tolist(), strict=True) if p]
    )


def why_not(problem: Problem, solution: Solution) -> str:
    """Why there is no plan for zero tolerance, as the end of a sentence."""
    if solution.parts is not None:
        return (
            "; without any bias the rows of every judged group are a multiple of "
            f"{_parts(problem, solution)}"
        )
    if solution.short:
        return f"; at zero bias they lack {rows_text(math.ceil(solution.short))}"
    if solution.held is not None:
        return "; no rounding of the exact numbers keeps them"
    return ""


def _reasons(
    problem: Problem, solution: Solution, rows: Whole, certificate: Certificate
) -> Iterator[str]:
    """The reasons for the largest changes."""
    change = np.abs(rows - problem.have).sum(axis=1)
    names = problem.counts.label.values
    base = solution.base
    if certificate.tolerance and certificate.reference == "new":
        base = np.array(certificate.labels_after)
    for line in np.argsort(-change, kind="stable")[:3].tolist():
        if not change[line]:
            return
        moves = []
        for word, sign in (("add", 1), ("delete", -1)):
            some = [
                f"{sign * d:,} {format_value(names[y])}"
                for y, d in enumerate((rows[line] - problem.have[line]).tolist())
                if sign * d > 0
            ]
            moves += [f"{word} {in_words(some)}"] * bool(some)
        yield f"{problem.group(line)}: {'; '.join(moves)}{_because(problem, solution, rows, base, line)}"


def _because(problem: Problem, solution: Solution, rows: Whole, base: Real, line: int) -> str:
    have, target = problem.have[line], problem.ratios[line] * base
    if not have.sum() or not problem.judged[line]:
        return "."
    free = int((have / np.maximum(target, 1e-300)).argmax())
    label = format_value(problem.counts.label.values[free])
    size = math.inf if solution.sizes is None else float(solution.sizes[line])
    if rows[line, free] == have[free] and abs(rows[line].sum() - size) < len(have):
        return (
            f"; its {have[free]:,} {label} rows stay and must be {target[free]:.2%} of the group, so it "
            f"grows to {size:,.1f} rows."
        )
    request = problem.request
    if request.at_least or request.min_rows is not None or request.extra:
        return "."
    return (
        f"; {have[free] / have.sum():.2%} of its rows are {label}, the target is "
        f"{target[free]:.2%}."
    )


def _budget(problem: Problem, certificate: Certificate, spent: Spent) -> Iterator[str]:
    budget = problem.request.budget
    if budget is None:
        return
    for step in spent.steps:
        part = "in part" if step.served else "not served"
        done = "in full" if not step.missing else f"{part}, {step.missing:,} missing"
        yield (
            f"{step.pattern}: {step.served:,} of {step.needed:,} changes, {done}; {step.left:,g} of "
            "the budget is left."
        )
    if spent.steps or spent.in_full:
        return
    asked, needed = certificate.tolerance, f"{spent.needed:,.6g}"
    goal = f"{asked:g}" if asked else "zero bias up to rounding"
    buys = (
        f"With the budget of {budget:,g}, the best plan found has a largest {certificate.kind} of "
        f"{certificate.off_after:.4g}"
    )
    yield f"{buys}; {goal} would cost {needed}."


def _labels(
    problem: Problem,
    solution: Solution,
    certificate: Certificate,
    price: Mapping[str, float] | None,
) -> Iterator[str]:
    names = [format_value(v) for v in problem.counts.label.values]
    moved = [
        f"{n} {f:.2%} → {g:.2%}"
        for n, f, g in zip(names, certificate.labels_before, certificate.labels_after, strict=True)
        if f"{f:.2%}" != f"{g:.2%}"
    ]
    if moved:
        yield f"Label frequencies move: {', '.join(moved)}."
    else:
        yield "Label frequencies stay the same, to a hundredth of a percent."
    if solution.chosen is not None and not solution.chosen.proved:
        yield "The label frequencies come from a search that does not prove that they are the cheapest."
    if price is not None:
        free = price["free"]
        keep = max(price["keep"], free)
        more = f", {keep / free:.2f} times as much" if free else ""
        yield (
            f"Keeping the label frequencies costs {keep:,.6g} and leaving them free {free:,.6g}: "
            f"the price of keeping them is {keep - free:,.6g}{more}."
        )


def _certainty(problem: Problem, solution: Solution, rows: Whole) -> Iterator[str]:
    cost = problem.cells.total_cost(rows)
    gap = max(cost - solution.bound, 0.0) / cost if cost else 0.0
    if solution.stopped is not None and cost:
        yield (
            f"It costs {cost:,.6g}; no plan costs less than {solution.bound:,.6g}, a gap of {gap:.2%}: "
            f"{_stopped(problem, solution)}."
        )
    elif solution.timed_out:
        yield f"The time limit was reached: a plan could be cheaper by up to {gap:.2%}."
    elif solution.method == "separated":
        yield "No plan for this request costs less."
    elif solution.method == "solver" and gap > 5e-5:
        yield f"No plan is cheaper by more than {gap:.2%}."


def _stopped(problem: Problem, solution: Solution) -> str:
    asked = problem.request.gap
    if solution.stopped == "gap":
        return "this is the cheapest" if asked is None else f"the gap of {asked:g} is reached"
    if solution.stopped == "time":
        early = "" if asked is None else f" before the gap of {asked:g} was reached"
        return f"the time limit of {problem.request.time_limit:g} seconds ended the search{early}"
    if asked is not None:
        return f"the search cannot prove a gap of {asked:g}"
    return "the search reached its limit of work; it continues with a `gap`, such as `gap=0.001`"


def _warnings(problem: Problem, rows: Whole) -> Iterator[str]:
    size = problem.have.sum(axis=1)
    change = np.abs(rows - problem.have).sum(axis=1)
    small = (size < SMALL_GROUP) & problem.judged & (change > size)
    if small.any():
        yield (
            f"{int(small.sum()):,} groups of fewer than {SMALL_GROUP} rows take {int(change[small].sum()):,} "
            f"of the {int(change.sum()):,} changes, more than they have rows; with "
            f"`min_group={SMALL_GROUP}` they would not be judged, though their rows could still change."
        )
    if problem.aside:
        yield (
            f"{problem.aside:,} rows have a missing value and stay unchanged; groups and frequencies are "
            "measured without them, as with `missing='drop'`."
        )
    if problem.counts.dropped:
        yield (
            f"{problem.counts.dropped:,} more rows of the table were not counted because of a missing "
            "value; they stay unchanged as well."
        )
    if problem.counts.skipped:
        yield f"{problem.counts.skipped}; they are not in the repaired table."
