"""Targets from another table: rates and shares, against all small tables and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from enumeration import all_tables, costs, within
from equipoise.errors import InputError
from equipoise.plans.request import request_from_dict

SMALL = st.lists(st.integers(1, 4), min_size=4, max_size=4).map(lambda n: np.reshape(n, (2, 2)))
CENSUS = pd.DataFrame(
    [("w", "L", 70), ("w", "M", 22), ("w", "H", 8), ("m", "L", 60), ("m", "M", 25), ("m", "H", 15)],
    columns=["sex", "risk", "n"],
)


@pytest.fixture(scope="module")
def compas():
    return eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")


def rates_after(plan, group):
    rows = {}
    for cell in plan.cells:
        if all(cell.group[name] == value for name, value in group.items()):
            rows[cell.label] = rows.get(cell.label, 0) + cell.after
    return {label: n / sum(rows.values()) for label, n in rows.items()}


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    have=SMALL,
    census=st.lists(st.integers(1, 9), min_size=4, max_size=4),
    tolerance=st.sampled_from([0.2, 0.5]),
    allow=st.sampled_from(["add", "both"]),
)
def test_groups_get_the_rates_of_the_table_at_the_least_cost(have, census, tolerance, allow):
    names = [(g, y) for g in ("m", "w") for y in ("n", "y")]
    cells = dict(zip(names, have.ravel().tolist(), strict=True))
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    other = eq.Counts.from_mapping(
        dict(zip(names, census, strict=True)), sensitive=["sex"], label="hired"
    )
    parts = np.reshape(census, (2, 2))
    wholes = np.broadcast_to(parts.sum(axis=1, keepdims=True), (2, 2))
    tables = all_tables(have, allow=allow, more=4)
    allowed = within(tables, have, tolerance, rates=np.stack([parts, wholes], axis=2))
    best = costs(tables[allowed], have).min(initial=10**9)
    plan = eq.plan(counts, tolerance=tolerance, allow=allow, target_rates=other)
    assert plan.reached
    assert plan.cost <= best
    assert plan.bound <= best
    if (plan.after().rows.reshape(2, 2) <= have + 4).all():
        assert plan.cost == best


def test_a_table_by_one_attribute_sets_the_rates_of_all_groups_inside(compas):
    plan = eq.plan(compas, target_rates=CENSUS, target_count="n", tolerance=0.02, allow="both")
    assert plan.reached
    for sex, high in (("w", 0.08), ("m", 0.15)):
        for race in ("c", "o"):
            got = rates_after(plan, {"sex": sex, "race": race})
            assert abs(got["H"] / high - 1) <= 0.02 + 1e-12
    assert plan.prices.keys() == {"target_rates"}
    assert any("equal rates for all groups would cost" in s for s in plan.explanation)


@pytest.mark.slow
def test_with_marginals_a_group_has_the_rates_as_a_whole(compas):
    asked = {"target_rates": CENSUS, "target_count": "n", "tolerance": 0.02, "allow": "both"}
    whole = eq.plan(compas, **asked, constrain="marginals")
    assert whole.reached
    assert abs(rates_after(whole, {"sex": "m"})["H"] / 0.15 - 1) <= 0.02 + 1e-12
    assert whole.cost < eq.plan(compas, **asked).cost


def test_rows_counts_rates_and_files_give_the_same_targets(compas, tmp_path):
    path = tmp_path / "census.csv"
    CENSUS.to_csv(path, index=False)
    rows = CENSUS.loc[CENSUS.index.repeat(CENSUS["n"]), ["sex", "risk"]]
    rates = CENSUS.assign(n=CENSUS["n"] / 100)
    finer = pd.concat([CENSUS.assign(race="c"), CENSUS.assign(race="x")])[["sex", "risk", "n"]]
    mapping = {
        f"sex={sex}": dict(zip(part["risk"], part["n"] / 100, strict=True))
        for sex, part in CENSUS.groupby("sex")
    }
    counted = eq.count(CENSUS, sensitive_features=["sex"], label="risk", count="n")
    how = {"tolerance": 0.1, "allow": "both"}
    plans = [
        eq.plan(compas, target_rates=table, target_count=column, **how)
        for table, column in [
            (path, "n"), (str(path), "n"), (rows, None), (rates, "n"), (finer, "n"),
            (mapping, None), (counted, None),
        ]
    ]  # fmt: skip
    assert len({plan.cost for plan in plans}) == 1
    assert plans[0].request.target_rates.source == str(path)


def test_groups_that_the_table_lacks_are_told_and_not_judged(compas):
    women = pd.concat([CENSUS[CENSUS["sex"] == "w"], CENSUS.iloc[:1].assign(sex="x")])
    plan = eq.plan(compas, target_rates=women, target_count="n", tolerance=0.05, allow="both")
    assert [str(g) for g in plan.lacking["target_rates"]] == ["sex=m, race=c", "sex=m, race=o"]
    assert plan.to_dict()["lacking"] == {"target_rates": ["sex=m, race=c", "sex=m, race=o"]}
    text = plan.explain()
    assert "lack (sex=m, race=c) and (sex=m, race=o); these groups have no target" in text
    assert "The target rates of (sex=x) are not used" in text
    assert {cell.group["sex"] for cell in plan.moves} == {"w"}


def test_a_group_whose_rate_is_0_has_no_target(compas):
    table = CENSUS[~((CENSUS["sex"] == "m") & (CENSUS["risk"] == "H"))]
    plan = eq.plan(compas, target_rates=table, target_count="n", tolerance=0.05, allow="both")
    assert [str(g) for g in plan.lacking["target_rates"]] == ["sex=m"]
    assert "are 0 for a label" in plan.explain()


@pytest.mark.slow
def test_shares_of_a_table_are_reached_and_what_it_lacks_keeps_its_share(compas):
    races = pd.DataFrame({"race": ["c", "o"], "n": [45, 55]})
    how = {"tolerance": 0.1, "allow": "both", "reference": "original"}
    plan = eq.plan(compas, target_shares=races, target_count="n", **how)
    white = sum(c.after for c in plan.cells if c.group["race"] == "c")
    assert plan.reached
    assert abs(white - 0.45 * plan.after().n) < 1
    assert plan.prices["group_shares"] < plan.cost
    more = {**compas.cells(), ("w", "x", "L"): 50, ("w", "x", "M"): 15, ("w", "x", "H"): 8}
    counts = eq.Counts.from_mapping(more, sensitive=["sex", "race"], label="risk")
    plan = eq.plan(counts, target_shares=races, target_count="n", share_tolerance=0.001, **how)
    assert [str(g) for g in plan.lacking["target_shares"]] == ["race=x"]
    after, room = plan.after().n, 1 - 73 / counts.n
    white = sum(c.after for c in plan.cells if c.group["race"] == "c")
    assert abs(white / after - 0.45 * room) <= 0.001 + 1e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_rates": CENSUS, "target": "keep rates of: sex"}, "either `target`"),
        ({"target_rates": CENSUS, "target_count": "rows"}, "no column 'rows'"),
        ({"target_rates": CENSUS.drop(columns="sex")}, "none of the sensitive attributes"),
        ({"target_rates": CENSUS.drop(columns="risk")}, "no column 'risk'"),
        ({"target_count": "n"}, "is a column of `target_rates`"),
        ({"target_rates": {"sex=w": {"L": 0.9, "M": 0.3, "H": 0.1}}}, "add up to 1.3"),
        ({"target_rates": {"sex=w": 3}}, "by label"),
        ({"target_rates": {"sex=q": {"H": 0.1}}}, "no group that the table has"),
        ({"target_shares": {"sex=w": 0.4, "race=c": 0.6}}, "same attributes"),
        ({"target_shares": {"sex=w": 0.4, "sex=q": 0.6}}, "at least 2"),
    ],
)
def test_tables_that_cannot_be_targets_are_refused_with_the_reason(compas, options, words):
    with pytest.raises(InputError, match=words):
        eq.plan(compas, **options)


def test_rates_of_finer_groups_are_not_added_up(compas):
    finer = pd.concat([CENSUS.assign(age="a"), CENSUS.assign(age="b")])
    finer["n"] /= 100
    with pytest.raises(InputError, match="rates of finer groups"):
        eq.plan(compas, target_rates=finer, target_count="n")


@pytest.mark.slow
def test_a_plan_with_targets_from_a_table_is_written_and_read_again(compas):
    plan = eq.plan(
        compas,
        target_rates=CENSUS,
        target_shares=CENSUS,
        target_count="n",
        tolerance=0.1,
        share_tolerance=0.05,
        allow="both",
    )
    assert plan.reached
    again = eq.Plan.from_json(plan.to_json())
    assert again.to_dict() == plan.to_dict()
    assert request_from_dict(plan.request.to_dict()) == plan.request
