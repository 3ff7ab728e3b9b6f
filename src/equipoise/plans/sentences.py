"""Plans in sentences: the changes, the reasons for them, the result, and warnings."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from equipoise.lattice import format_value
from equipoise.measures.display import number
from equipoise.measures.uniform_bias import ub_of
from equipoise.plain import in_words, rows_text
from equipoise.plans.judgement import check_rules, compared_with, off_target
from equipoise.plans.prices import price_sentences
from equipoise.plans.solvers.incumbent import CLOSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from equipoise.plans.budget import Spent
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.certificate import Certificate
    from equipoise.plans.moves import Move
    from equipoise.plans.objectives import Optimum
    from equipoise.plans.problem import Problem
    from equipoise.plans.solution import Solution

SMALL_GROUP = 30
"""Groups with fewer rows have rates too uncertain to justify large changes, so a warning names them."""

SHOWN = 3
"""Number of changed groups whose reasons are in the text; the others are in JSON and on the page."""

RESIDUAL = 0.05
"""Remaining bias at zero tolerance above which a sentence explains the effect of rounding."""


def explain(
    problem: Problem,
    spent: Spent,
    certificate: Certificate,
    price: Mapping[str, float] | None,
    reasons: Sequence[str],
    prices: Mapping[str, float] = MappingProxyType({}),
    optimum: Optimum | None = None,
    rounded: float | None = None,
) -> tuple[str, ...]:
    """Explain what a plan does and why; ``reasons`` are those of :func:`explain_groups`.

    ``rounded`` is the cost of zero bias up to rounding.
    """
    solution, rows = spent.solution, spent.rows
    sure = certificate.reached and spent.in_full
    return tuple(
        s
        for part in (
            _headline(problem, rows, certificate),
            _outcome(certificate),
            _rules(problem, rows),
            _small_groups(problem, solution, rows, certificate),
            _exactness(problem, solution, rows, certificate, rounded),
            _first(reasons),
            _budget(problem, certificate, spent),
            _labels(problem, solution, certificate, price),
            price_sentences(prices, problem.cells.total_cost(rows)),
            (s for lacking in problem.lacking for s in lacking.sentences),
            _new_groups(problem),
            _certainty(problem, solution, rows, optimum) if sure else (),
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
    broken = [h.constraint for h in c.constraints if not h.holds]
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
    elif not c.reached and not c.has_tolerance:
        yield f"Violated constraints: {in_words(broken)}."
    elif not c.reached:
        if c.policy:
            yield f"This plan does NOT meet the request. Violated: {in_words(broken) or 'the check'}."
            return
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


def _rules(problem: Problem, rows: Whole) -> Iterator[str]:
    """What each rule of a policy demands, and how many pairs it concerns."""
    if problem.ruled is None:
        return
    before, after = (check_rules(problem, table) for table in (problem.have, rows))
    for place, rule in enumerate(after.policy.rules):
        failed, left = (int((c.found.rule == place).sum()) for c in (before, after))
        size = f", for groups of at least {rule.min_count:,} rows" if rule.min_count > 1 else ""
        yield (
            f"Rule {place + 1}, {rule.words}{size}: pairs of a group and a label that do not pass: "
            f"{failed:,} now, {left:,} after the repair."
        )
    yield f"Check of the repaired table: {after.outcome}"


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


def explain_groups(
    problem: Problem, solution: Solution, rows: Whole, certificate: Certificate
) -> tuple[str, ...]:
    """Say of every group that changes what changes and why, the largest changes first."""
    base = solution.base
    if certificate.tolerance and certificate.reference == "new":
        base = np.array(certificate.labels_after)
    return tuple(
        f"{said}{_because(problem, solution, rows, base, line)}"
        for line, said in _changes(problem, rows)
    )


def _changes(problem: Problem, rows: Whole) -> Iterator[tuple[int, str]]:
    """The lines that change, the largest changes first, with their moves in words."""
    moved = rows - problem.have
    change = np.abs(moved).sum(axis=1)
    names = [format_value(value) for value in problem.counts.label.values]
    for line in np.argsort(-change, kind="stable")[: np.count_nonzero(change)].tolist():
        moves = []
        for word, sign in (("add", 1), ("delete", -1)):
            some = [
                f"{sign * d:,} {names[y]}"
                for y, d in enumerate(moved[line].tolist())
                if sign * d > 0
            ]
            moves += [f"{word} {in_words(some)}"] * bool(some)
        yield line, f"{problem.group(line)}: {'; '.join(moves)}"


def _first(reasons: Sequence[str]) -> Iterator[str]:
    """The first reasons, and how many more there are."""
    yield from reasons[:SHOWN]
    if left := len(reasons[SHOWN:]):
        yield f"… and {left:,} more group{' changes' if left == 1 else 's change'}."


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
    shares = request.group_shares or request.target_shares is not None
    sizes = request.at_least or request.at_least_each or request.min_rows is not None
    if sizes or shares or request.extra or request.objective != "cost":
        return "."
    held_to = "the target is" if problem.ruled is None else "of all rows after the repair"
    return f"; {have[free] / have.sum():.2%} of its rows are {label}, {held_to} {target[free]:.2%}."


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
    goal = "the policy" if certificate.policy else goal
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
    yield from _moved_labels(problem, certificate)
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


def _moved_labels(problem: Problem, certificate: Certificate) -> Iterator[str]:
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


def _certainty(
    problem: Problem, solution: Solution, rows: Whole, optimum: Optimum | None
) -> Iterator[str]:
    if optimum is not None and optimum.value is not None:
        yield from optimum.sentences(problem.cells.total_cost(rows))
        return
    cost = problem.cells.total_cost(rows)
    gap = max(cost - solution.bound, 0.0) / cost if cost else 0.0
    if solution.inside is not None and cost:
        yield (
            f"It costs {cost:,.6g} and keeps the rates of all compared groups within one range; no plan "
            f"that does so costs less than {solution.inside:,.6g}. Plans that do not may be cheaper, "
            "because the rule on the best-off group does not apply to every group, or because some "
            "groups are too small to be compared with"
            + (f"; no plan costs less than {solution.bound:,.6g}." if solution.bound > 0 else ".")
        )
    elif solution.stopped is not None and cost:
        yield (
            f"It costs {cost:,.6g}; no plan costs less than {solution.bound:,.6g}, a gap of {gap:.2%}: "
            f"{_stopped(problem, solution, gap)}."
        )
    elif solution.timed_out:
        yield f"The time limit was reached: a plan could be cheaper by up to {gap:.2%}."
    elif solution.method == "separated":
        yield "No plan for this request costs less."
    elif solution.method == "solver" and gap > 5e-5:
        yield f"No plan is cheaper by more than {gap:.2%}."


def _stopped(problem: Problem, solution: Solution, gap: float) -> str:
    asked = problem.request.gap
    if gap <= CLOSED:
        return "this is the cheapest"
    if solution.stopped == "gap" and asked is None:
        return f"the search ends at {problem.request.solver_gap:g}, or at the `gap` that is set"
    if solution.stopped == "gap":
        return f"the gap of {asked:g} is reached"
    if solution.stopped == "time":
        early = "" if asked is None else f" before the gap of {asked:g} was reached"
        return f"the time limit of {problem.request.time_limit:g} seconds ended the search{early}"
    if asked is not None:
        return f"the search cannot prove a gap of {asked:g}"
    return "the search reached its limit of work; it continues with a `gap`, such as `gap=0.001`"


def _new_groups(problem: Problem) -> Iterator[str]:
    """Groups that get their first rows, because every group must have some."""
    new = int((problem.have.sum(axis=1) == 0).sum())
    if new and problem.request.at_least_each:
        many = (
            "1 group without rows gets its first ones"
            if new == 1
            else f"{new:,} groups without rows get their first ones"
        )
        yield f"{many}, so that every group has its minimum."


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
    yield from _set_aside(problem)


def _set_aside(problem: Problem) -> Iterator[str]:
    """Rows of the table that no plan changes."""
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


# ---------------------------------------------------------------------------- made by hand


def explain_scenario(
    problem: Problem,
    rows: Whole,
    certificate: Certificate,
    moves: Sequence[Move],
    reasons: Sequence[str],
) -> tuple[str, ...]:
    """Explain a plan that was made by hand; ``reasons`` are those of :func:`explain_moves`."""
    return tuple(
        s
        for part in (
            _headline(problem, rows, certificate),
            _made_by_hand(certificate),
            _outcome(certificate),
            _first(reasons),
            (move.split for move in moves if move.split is not None),
            _moved_labels(problem, certificate),
            _set_aside(problem),
            problem.counts.reading.sentences,
        )
        for s in part
    )


def explain_moves(problem: Problem, rows: Whole) -> tuple[str, ...]:
    """Say of every group that a scenario changes what changes, and what that does to its UB."""
    return tuple(f"{said}; {_ub_moves(problem, rows, i)}." for i, said in _changes(problem, rows))


def _ub_moves(problem: Problem, rows: Whole, line: int) -> str:
    have = problem.have
    y = int(np.abs(rows[line] - have[line]).argmax())
    label = format_value(problem.counts.label.values[y])
    before, after = (
        float(
            ub_of(n=t.sum(), n_y=t[:, y].sum(), n_g=t[line].sum(), n_gy=t[line, y])
            if t[line].sum() and t[:, y].sum()
            else math.nan
        )
        for t in (have, rows)
    )
    if math.isnan(after):
        return f"its UB for {label} is undefined then"
    if math.isnan(before):
        return f"its UB for {label} is {number(after)} then"
    return f"its UB for {label} goes from {number(before)} to {number(after)}"


def _made_by_hand(certificate: Certificate) -> Iterator[str]:
    c = certificate
    yield (
        "This plan was made by hand and is not optimised: a cheaper one may lead to as little bias."
    )
    if c.has_tolerance and c.reached and c.tolerance:
        yield (
            f"It reaches the tolerance of {c.tolerance:g}: the largest {c.kind} of a judged group is "
            f"{c.off_after:.4g}."
        )
