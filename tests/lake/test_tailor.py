"""Buying rows by the draw: enough and no more, within the budget, near the least cost."""

from __future__ import annotations

import collections
import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.sampling.policies import POLICIES
from equipoise.lake.sampling.sources import TableSource
from equipoise.lake.sampling.tailoring import lower_bound, tailor

PATH = Path(__file__).parents[2] / "benchmarks" / "simulated_sources.py"


def loaded():
    spec = importlib.util.spec_from_file_location("simulated_sources", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


simulated = loaded()
simulate = simulated.simulate

W, M, X = ("w",), ("m",), ("x",)


def table(name, cost=1.0, seed=0, *, tells=True, **rows):
    """A source from ``w=80, m=20``; its rows are their names and numbers."""
    cells = [((cell,), f"{name}-{cell}-{i}") for cell, n in rows.items() for i in range(n)]
    return TableSource(name, cells, cost=cost, seed=seed, tells=tells)


class Endless:
    """A source without an end that gives the same rows over and over, and tells what it likes."""

    def __init__(self, name, cells, cost=1.0, mix=None):
        self.name, self.cost, self.mix, self.size = name, cost, mix, None
        self._cells, self.asked = cells, []
        self._next = 0

    def draw(self, n, /):
        self.asked.append(n)
        for _ in range(n):
            self._next += 1
            yield self._cells[self._next % len(self._cells)], self._next


def bought_again(kind="skewed", sources=10, seed=1, **options):
    lake = simulate(kind, sources, seed=seed, tells=options.pop("tells", True))
    return tailor(lake.sources, lake.need, **options)


# ------------------------------------------------------------------------- what is kept


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.booleans()),
        min_size=1,
        max_size=4,
    ),
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
    st.none() | st.floats(0, 80),
    st.sampled_from(("auto", "unknown", "random")),
    st.none() | st.integers(1, 7),
)
@settings(max_examples=40, deadline=None)
def test_keeps_real_rows_once_and_never_more_than_needed_nor_paid_for(
    tables, need, budget, policy, batch
):
    sources = [
        table(f"s{i}", cost=0.1 * (i + 1), w=w, m=m, x=x, tells=tells)
        for i, (w, m, x, tells) in enumerate(tables)
    ]
    need = dict(zip((W, M), need, strict=True))
    got = tailor(sources, need, budget=budget, policy=policy, batch=batch, min_rate=0)
    for cell, rows in got.rows.items():
        assert len(rows) + got.missing.get(cell, 0) == need[cell]
        assert len({kept.row for kept in rows}) == len(rows)
        assert all(kept.row.startswith(f"{kept.source}-{cell[0]}-") for kept in rows)
    assert got.cost == pytest.approx(
        sum(p.draws * s.cost for p, s in zip(got.purchases, sources, strict=True))
    )
    assert budget is None or got.cost <= budget
    if budget is None:
        there = {W: sum(t[0] for t in tables), M: sum(t[1] for t in tables)}
        lacks = {cell: n - there[cell] for cell, n in need.items() if n > there[cell]}
        assert got.missing == lacks
        assert (got.stopped == "met") == (not lacks)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_buys_the_same_rows(policy):
    first, again = (bought_again(policy=policy, seed=3) for _ in range(2))
    assert first.rows == again.rows
    assert first.purchases == again.purchases
    assert first.to_dict() == again.to_dict()


def test_another_seed_chooses_otherwise_where_mixes_are_unknown():
    lakes = [simulate("skewed", 10, seed=3, tells=False) for _ in range(2)]
    one, two = (tailor(lake.sources, lake.need, seed=i) for i, lake in enumerate(lakes))
    assert one.purchases != two.purchases


def test_every_row_is_handed_over_as_it_is_kept():
    handed = []
    got = tailor([table("a", w=50, m=50)], {W: 5}, keep=lambda *row: handed.append(row))
    assert handed == [("a", W, kept.row) for kept in got.rows[W]]
    assert len(handed) == 5


# ----------------------------------------------------------------------- when it stops


@pytest.mark.parametrize("policy", POLICIES)
def test_exhausted_sources_end_it_and_tell_what_is_missing(policy):
    got = tailor([table("a", w=3, m=9), table("b", w=2)], {W: 9, M: 4}, policy=policy)
    assert got.missing == {W: 4}
    assert got.kept == 9
    assert got.stopped in {"exhausted", "no progress"}  # known mixes need not draw the rest
    assert got.reasons == {W: "no source has any more"}
    assert got.bound is None


def test_a_source_that_does_not_tell_its_size_is_exhausted_when_it_gives_fewer():
    got = tailor([table("a", w=3, m=5, tells=False)], {W: 9})
    assert got.stopped == "exhausted"
    assert got.purchases[0] == ("a", 8, 3, 8.0, True)


def test_a_cell_no_source_tells_of_costs_nothing():
    got = tailor([table("a", w=90)], {W: 5, X: 2})
    assert (got.stopped, got.draws, got.missing) == ("no progress", 5, {X: 2})
    assert got.reasons == {X: "no source has it"}


@pytest.mark.parametrize("policy", ["unknown", "random"])
def test_a_cell_nobody_has_is_given_up_by_its_bound_and_the_others_are_not(policy):
    sources = [Endless(name, [W, M]) for name in "ab"]
    got = tailor(sources, {W: 40, X: 1}, min_rate=0.02, policy=policy)
    assert (got.stopped, got.missing) == ("no progress", {X: 1})
    assert got.reasons == {X: "no source is likely to have it at a rate of 0.02 or more"}
    # Some 150 draws without one are a rate below 2 % at 95 %.
    assert all(149 <= purchase.draws < 400 for purchase in got.purchases)


def test_a_source_that_tells_of_rows_it_does_not_have_is_given_up():
    liar = Endless("liar", [M], mix={W: 0.5, M: 0.5})
    got = tailor([liar, Endless("true", [W], cost=5, mix={W: 1.0})], {W: 10}, min_rate=0.01)
    assert got.stopped == "met"
    assert got.purchases[1].kept == 10
    assert got.purchases[0].draws < 1000


@pytest.mark.parametrize("budget", [0, 0.3, 1, 7.7])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_budget_is_used_and_not_exceeded(budget, policy):
    got = tailor([table("a", cost=0.1, w=500, m=500)], {W: 400}, budget=budget, policy=policy)
    assert got.stopped == "budget"
    assert budget - 0.1 - 1e-9 <= got.cost <= budget
    assert got.reasons == {W: "the budget does not pay for another draw"}


@pytest.mark.parametrize("tells", [True, False])
def test_a_budget_that_is_too_small_goes_where_it_gives_the_most_rows(tells):
    easy, hard = table("easy", w=900, x=100, tells=tells), table("hard", m=50, x=950, tells=tells)
    got = tailor([hard, easy], {W: 100, M: 100}, budget=150)
    assert got.stopped == "budget"
    assert len(got.rows[W]) >= 95


def test_draws_and_batches_are_limited():
    source = Endless("a", [W, M])
    got = tailor([source], {W: 100}, max_draws=23, batch=5)
    assert (got.stopped, got.draws) == ("max_draws", 23)
    assert max(source.asked) <= 5


def test_a_rule_of_ones_own_ends_it():
    got = tailor([table("a", w=500)], {W: 400}, batch=10, stop=lambda now: now.missing[W] <= 350)
    assert (got.stopped, got.missing) == ("asked", {W: 350})


class Failing(Endless):
    def __init__(self, error, after):
        super().__init__("failing", [W])
        self._error, self._after = error, after

    def draw(self, n, /):
        for pair in super().draw(n):
            if self._next > self._after:
                raise self._error
            yield pair


def test_what_was_paid_for_is_not_lost_when_a_source_fails():
    got = tailor([Failing(OSError("line cut"), 12)], {W: 100})
    assert (got.stopped, got.kept, got.draws) == ("failed", 12, 12)
    assert "OSError: line cut" in got.text()
    assert got.to_dict()["error"] == "line cut"


def test_what_was_paid_for_is_not_lost_when_it_is_interrupted():
    got = tailor([Failing(KeyboardInterrupt(), 12)], {W: 100})
    assert (got.stopped, got.kept) == ("interrupted", 12)
    rest = tailor([Endless("other", [W])], got.missing)
    assert (rest.kept, rest.stopped) == (88, "met")


def test_a_source_that_gives_more_than_asked_ends_it():
    class Generous(Endless):
        def draw(self, n, /):
            return list(super().draw(n + 1))

    got = tailor([Generous("generous", [W])], {W: 50})
    assert got.stopped == "failed"
    assert "returned more than" in str(got.error)


# ------------------------------------------------------------------------- what it costs


@given(st.integers(1, 12), st.data())
@settings(max_examples=40, deadline=None)
def test_the_bound_is_what_one_cell_of_one_source_costs_on_average(population, data):
    rows = data.draw(st.integers(1, population))
    need = data.draw(st.integers(1, rows))
    too_few = (
        math.comb(rows, x) * math.comb(population - rows, n - x) / math.comb(population, n)
        for n in range(population)
        for x in range(min(need, n + 1))
    )
    source = table("a", w=rows, m=population - rows)
    assert lower_bound([source], {W: need}) == pytest.approx(sum(too_few))


def test_the_bound_is_the_best_of_fractional_draws():
    a = Endless("a", [W], cost=1, mix={W: 0.5, M: 0.5})
    b = Endless("b", [W], cost=1, mix={W: 0.1, M: 0.9})
    assert lower_bound([a, b], {W: 20}) == pytest.approx(40)
    assert lower_bound([a, b], {W: 20, M: 20}) == pytest.approx(40)
    # 0.5 a + 0.1 b = 20 and 0.5 a + 0.9 b = 60: 30 draws of a, and 50 of b.
    assert lower_bound([a, b], {W: 20, M: 60}) == pytest.approx(80)
    assert lower_bound([a], {X: 1}) == math.inf
    assert lower_bound([a], {}) == 0


def mean_ratio(kind, sources, policy, seeds=range(3)):
    ratios = []
    for seed in seeds:
        told = simulate(kind, sources, seed=seed)
        bound = lower_bound(told.sources, told.need)
        lake = told if policy == "known" else simulate(kind, sources, seed=seed, tells=False)
        got = tailor(lake.sources, lake.need, policy=policy, seed=seed)
        assert got.stopped == "met"
        ratios.append(got.cost / bound)
    return sum(ratios) / len(ratios)


@pytest.mark.parametrize("kind", simulated.KINDS)
def test_known_mixes_cost_a_few_per_cent_more_than_the_bound(kind):
    assert mean_ratio(kind, 10, "known") < 1.06


@pytest.mark.slow
@pytest.mark.parametrize("kind", simulated.KINDS)
def test_learning_mixes_costs_less_than_chance(kind):
    learned = mean_ratio(kind, 10, "unknown")
    assert learned < 1.4
    assert learned < 0.7 * mean_ratio(kind, 10, "random")


def test_a_cheap_source_is_preferred_when_mixes_are_alike():
    sources = [
        table(name, cost=cost, w=5000, m=5000, tells=False)
        for name, cost in (("dear", 3), ("cheap", 1))
    ]
    got = tailor(sources, {W: 1000})
    assert got.purchases[1].draws > 20 * got.purchases[0].draws


# ------------------------------------------------------------------------------- telling


def test_results_are_told_as_text_and_plain_data():
    got = tailor([table("a", w=60, m=40), table("b", m=9)], {W: 10, X: 3})
    assert json.loads(json.dumps(got.to_dict(), allow_nan=False)) == got.to_dict()
    assert got.to_dict()["cells"][1] == {
        "cell": ["x"],
        "need": 3,
        "kept": 0,
        "why_missing": "no source has it",
    }
    assert f"10 of 13 needed rows kept; {got.draws} draws cost {got.draws}." in got.text()
    assert "Missing because no source has it: 3 of x." in str(got)
    assert got.exit_code == 1


def test_progress_tells_the_source_and_the_share_met():
    told = []
    tailor([table("a", w=60)], {W: 30}, batch=10, progress=lambda *now: told.append(now))
    assert told[0] == ("drawing from a", 0)
    assert [share for _, share in told] == sorted(share for _, share in told)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tailor([], {W: 1}), "at least one"),
        (lambda: tailor([table("a"), table("a")], {W: 1}), "a different name"),
        (lambda: tailor([table("a", cost=0, w=1)], {W: 1}), "must be above 0"),
        (lambda: tailor([table("a", w=1)], {W: 1.5}), "the need of w must be a whole number"),
        (lambda: tailor([table("a", w=1)], {W: -1}), "at least 0"),
        (lambda: tailor([table("a", w=1)], {W: 1}, budget=-1), "budget"),
        (lambda: tailor([table("a", w=1)], {W: 1}, batch=0), "batch"),
        (lambda: tailor([table("a", w=1)], {W: 1}, policy="greedy"), "`policy` must be one of"),
        (
            lambda: tailor([table("a", tells=False)], {W: 1}, policy="known"),
            "does not state its mix",
        ),
        (lambda: lower_bound([table("a", tells=False)], {W: 1}), "does not state its mix"),
        (lambda: tailor([Endless("a", [W], mix={W: 1.2})], {W: 1}), "add up to at most 1"),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(InputError, match=told):
        call()


# ----------------------------------------------------------------------------- simulator


def test_a_skewed_lake_has_a_dominant_group_in_every_other_source():
    lake = simulate("skewed", 50, seed=5)
    largest = sorted(max(source.mix.values()) for source in lake.sources)
    assert largest[25] > 0.35
    smallest = sorted(min(source.mix.values()) for source in lake.sources)
    assert smallest[25] < 0.005


@pytest.mark.parametrize("sources", [10, 50])
def test_a_minority_lake_has_few_sources_for_a_cell_and_little_there(sources):
    lake = simulate("minority", sources, seed=5)
    for cell in lake.need:
        shares = [source.mix[cell] for source in lake.sources]
        assert sum(share > 0.01 for share in shares) == max(2, sources // 10)
        assert max(shares) <= 0.08
        assert sum(share == 0 for share in shares) >= sources // 2


def test_a_simulated_source_gives_all_its_rows_once():
    source = simulated.SimulatedSource("a", {W: 40, M: 7}, seed=2)
    drawn = [pair for _ in range(6) for pair in source.draw(10)]
    assert collections.Counter(cell for cell, _ in drawn) == {W: 40, M: 7}
    assert sorted(row for _, row in drawn) == list(range(47))
