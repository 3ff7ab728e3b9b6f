"""The four-fifths rule: whom it compares, what it says, and how a policy holds data to it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.counts import Counts
from equipoise.errors import InputError, PatternError
from equipoise.measures.policy import Policy
from equipoise.measures.request import MeasureRequest
from equipoise.measures.rules import Rule
from equipoise.measures.suppression import suppress
from equipoise.measures.table import bias_table
from equipoise.measures.uncertainty.intervals import ratio_interval, ub_interval
from equipoise.reports.bias.data import summarize

ADULT = {"sensitive_features": ["sex", "race"], "label": "income", "favourable": ">50K"}


@pytest.fixture(scope="module")
def adult():
    return eq.measure("adult", **ADULT)


def one(**rates: tuple[int, int]) -> Counts:
    """A table of one attribute from group=(good, bad)."""
    cells = {(g, y): n for g, pair in rates.items() for y, n in zip("+-", pair, strict=True)}
    return Counts.from_mapping(cells, sensitive=["g"], label="y")


def ratios(table) -> dict[str, float]:
    return {g["pattern"]: g["impact_ratio"] for g in table.to_dict()["four_fifths"]["groups"]}


# --- whom it compares ----------------------------------------------------------------------------


def views(table):
    return {
        "group": table.filter(group="sex=Female"),
        "other label": table.filter(label_value="<=50K"),
        "both": table.filter(group="sex=Female", label_value="<=50K"),
        "top": table.top(3),
        "sorted top": table.sort("p").top(5),
        "hidden": table.filter(hidden=True),
        "by group": table.sort("group"),
    }


@pytest.mark.parametrize("view", ["group", "other label", "both", "top", "sorted top", "by group"])
def test_the_best_off_group_is_that_of_all_groups_whatever_is_shown(adult, view: str) -> None:
    everything, shown = ratios(adult), views(adult)[view]
    assert everything["sex=Female"] == pytest.approx(0.358, abs=5e-4)
    found = ratios(shown)
    assert found == {g: everything[g] for g in found}
    assert set(found) == {str(row.group) for row in shown}
    rule = shown.to_dict()["four_fifths"]
    assert rule["measured"] == adult.to_dict()["four_fifths"]["measured"]


def test_all_women_are_below_the_rule_when_only_they_are_shown(adult) -> None:
    rule = adult.filter(group="sex=Female").to_dict()["four_fifths"]
    assert rule["shown"] == {"groups": 6, "compared": 6, "below": 6, "without_verdict": 0}
    assert {g["best"] for g in rule["groups"]} == {"sex=Male", "sex=Male, race=Asian-Pac-Islander"}


def test_json_has_the_rule_as_data(adult) -> None:
    rule = json.loads(adult.to_json())["four_fifths"]
    assert (rule["label"], rule["favourable"], rule["threshold"]) == ("income", ">50K", 0.8)
    best = {b["pattern"]: b for b in rule["best"]}
    assert best["sex=Male"]["rate"] == pytest.approx(6662 / 21790)
    assert (best["sex=Male"]["n_group"], best["sex=Male"]["n_favourable"]) == (21790, 6662)
    women = next(g for g in rule["groups"] if g["group"] == {"sex": "Female"})
    assert (women["best"], women["below"], women["too_small"]) == ("sex=Male", True, False)
    assert women["impact_ratio"] == pytest.approx((1179 / 10771) / (6662 / 21790))
    assert women["impact_ratio_low"] < women["impact_ratio"] < women["impact_ratio_high"]
    assert sum(g["below"] is True for g in rule["groups"]) == rule["measured"]["below"] == 12
    assert (
        eq.measure("adult", sensitive_features="sex", label="income").to_dict()["four_fifths"]
        is None
    )


CELLS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("+-")),
    st.integers(0, 60),
    min_size=3,
)


@pytest.mark.slow
@given(CELLS)
@settings(max_examples=80)
def test_ratios_are_those_of_a_plain_search(cells) -> None:
    if not any(n for (*_, y), n in cells.items() if y == "+"):
        cells = {**cells, ("a", "x", "+"): 5}
    counts = Counts.from_mapping(cells, sensitive=["s", "t"], label="l")
    table = bias_table(counts, MeasureRequest(favourable="+"))
    rows = {row.group: row for row in table if row.label == "+"}
    found = table.to_dict()["four_fifths"]["groups"]
    assert len(found) == sum(not math.isnan(r.ub) for r in rows.values())
    for group in found:
        own = next(r for g, r in rows.items() if str(g) == group["pattern"])
        family = [r for g, r in rows.items() if g.keys() == own.group.keys()]
        best = max((r.note is None, r.rate) for r in family)
        expected = own.rate / best[1] if best[1] else None
        assert group["impact_ratio"] == (None if expected is None else pytest.approx(expected))
        small = own.note not in (None, "all rows")
        assert group["too_small"] == small
        verdict = None if small or expected is None else expected < 0.8 - 1e-12
        assert group["below"] == verdict


def test_exactly_four_fifths_is_not_below() -> None:
    for good in range(5, 100, 5):  # 0.8 times as many of as many rows
        table = bias_table(
            one(a=(10 * good, 1000 - 10 * good), b=(8 * good, 1000 - 8 * good)),
            MeasureRequest(favourable="+"),
        )
        assert table.to_dict()["four_fifths"]["measured"]["below"] == 0
        assert eq.check(table, four_fifths=True).status == "inside"


def test_a_group_too_small_is_nobodys_best_and_has_no_verdict() -> None:
    table = bias_table(one(a=(300, 700), b=(290, 710), c=(1, 0)), MeasureRequest(favourable="+"))
    groups = {g["pattern"]: g for g in table.to_dict()["four_fifths"]["groups"]}
    assert {g["best"] for g in groups.values()} == {"g=a"}
    assert (groups["g=c"]["below"], groups["g=c"]["too_small"]) == (None, True)


def test_groups_without_a_verdict_come_last() -> None:
    counts = one(a=(300, 700), b=(290, 710), c=(0, 2), d=(1, 0))
    table = bias_table(counts, MeasureRequest(favourable="+"))
    found = [g["pattern"] for g in table.to_dict()["four_fifths"]["groups"]]
    assert found[:2] == ["g=b", "g=a"]
    rule = summarize(table)["four_fifths"]
    assert rule["table"]["line"] == [2, "too small for a verdict"]


def test_a_least_size_leaves_groups_out_as_best_too() -> None:
    counts = one(a=(300, 700), b=(200, 800), c=(40, 0))
    loose = bias_table(counts, MeasureRequest(favourable="+"))
    strict = bias_table(counts, MeasureRequest(favourable="+", min_count=100))
    assert ratios(loose)["g=b"] == pytest.approx(0.2)
    assert ratios(strict)["g=b"] == pytest.approx(2 / 3)


def test_a_suppressed_group_is_not_told_as_best() -> None:
    counts = one(a=(300, 700), b=(200, 800), c=(9, 2), d=(8, 3))
    table = suppress(bias_table(counts, MeasureRequest(favourable="+")), 5)
    rule = table.to_dict()["four_fifths"]
    hidden = {str(r.group) for r in table if r.note == "suppressed"}
    assert hidden
    assert not hidden & {g["pattern"] for g in (*rule["groups"], *rule["best"])}
    assert not hidden & {g["best"] for g in rule["groups"]}


# --- intervals -----------------------------------------------------------------------------------


@given(st.integers(1, 49), st.integers(1, 99))
def test_the_ratio_to_the_rest_has_the_interval_that_ub_has(x: int, others: int) -> None:
    """UB is 1 − 1/(P + (1−P)/r), where r is the ratio of the group's rate to that of the rest."""
    low, high = ratio_interval(x / 50, 50, others / 100, 100)
    share = 50 / 150
    least, most = ub_interval(x, 50, x + others, 150, sampling="groups")
    assert 1 - 1 / (share + (1 - share) / high) == pytest.approx(float(least), abs=1e-9)
    assert 1 - 1 / (share + (1 - share) / low) == pytest.approx(float(most), abs=1e-9)


def test_ratio_intervals_at_the_ends() -> None:
    low, high = ratio_interval([0.0, 0.5], [10, 10], [0.5, 0.0], [10, 10])
    assert low[0] == 0
    assert 0 < high[0] < 1
    assert low[1] > 1
    assert high[1] == math.inf


# --- checking ------------------------------------------------------------------------------------


def test_check_finds_the_groups_that_the_rule_names(adult) -> None:
    check = eq.check(adult, four_fifths=True)
    rule = adult.to_dict()["four_fifths"]
    assert {str(f.row.group): (f.value, str(f.against)) for f in check.outside} == {
        g["pattern"]: (pytest.approx(g["impact_ratio"]), g["best"])
        for g in rule["groups"]
        if g["below"]
    }
    assert (check.exit_code, check.rows_checked) == (1, 17)
    assert {f.row.label for f in check.findings()} == {">50K"}
    first = check.to_dict()["findings"][0]
    assert (first["reference"], first["against"]) == ("best", "sex=Male, race=Asian-Pac-Islander")
    values = [f.value for f in check.outside]
    assert values == sorted(values)  # the lowest ratio first


def test_a_check_of_some_rows_compares_with_all(adult) -> None:
    check = eq.check(adult.filter(group="sex=Female"), four_fifths=True)
    assert (len(check.outside), check.rows_checked) == (6, 6)


@pytest.mark.parametrize(
    "policy",
    [
        {"four-fifths": True, "favourable": ">50K"},
        {"rules": [{"min-impact-ratio": 0.8, "reference": "best", "label": ">50K"}]},
        {"rules": [{"measure": "impact_ratio", "min": 0.8, "reference": "best", "label": ">50K"}]},
        {"favourable": ">50K", "rules": [{"min-impact-ratio": 0.8, "reference": "best"}]},
    ],
)
def test_the_rule_has_several_spellings(policy) -> None:
    table = eq.measure("adult", **ADULT)
    assert [f.to_dict() for f in eq.check(table, policy=policy).findings()] == [
        f.to_dict() for f in eq.check(table, four_fifths=True).findings()
    ]


def test_the_rule_in_a_file(tmp_path) -> None:
    file = tmp_path / "equipoise.toml"
    file.write_text('[check]\nmax-abs-ub = 0.6\nfour-fifths = true\nfavourable = ">50K"\n')
    check = eq.check("adult", policy=file, sensitive_features=["sex"], label="income")
    assert [(str(f.row.group), f.rule.measure) for f in check.outside] == [
        ("sex=Female", "impact_ratio")
    ]
    assert check.rows_checked == 4 + 2  # each measure with its own rule


def test_ratios_to_different_references_are_different_rules() -> None:
    table = bias_table(
        one(a=(500, 500), b=(480, 520), c=(300, 700)), MeasureRequest(favourable="+")
    )
    rules = (
        Rule(measure="impact_ratio", min=0.9, reference="rest", label="+"),
        Rule(measure="impact_ratio", min=0.5, reference="best", label="+"),
        Rule(measure="impact_ratio", min=0.99, reference="g=a", label="+"),
    )
    check = Policy(rules=rules).check(table)
    assert {(str(f.row.group), f.rule.reference) for f in check.outside} == {
        ("g=c", "rest"),
        ("g=b", "g=a"),
        ("g=c", "g=a"),
    }
    assert check.rows_checked == 9


def test_exit_codes_of_the_rule() -> None:
    def status(counts, **options):
        table = bias_table(counts, MeasureRequest(favourable="+"))
        check = eq.check(table, four_fifths=True, **options)
        return check.status, check.exit_code

    assert status(one(a=(500, 500), b=(450, 550))) == ("inside", 0)
    assert status(one(a=(500, 500), b=(300, 700))) == ("outside", 1)
    assert status(one(a=(500, 500), b=(0, 1))) == ("undecided", 3)


@pytest.mark.parametrize(
    ("rates", "status"),
    [
        ({"a": (500, 500), "b": (490, 510)}, "inside"),
        ({"a": (500, 500), "b": (380, 620)}, "undecided"),
        ({"a": (500, 500), "b": (300, 700)}, "outside"),
    ],
)
def test_evidence_by_the_interval_of_the_ratio(rates, status: str) -> None:
    table = bias_table(one(**rates), MeasureRequest(favourable="+"))
    group = next(g for g in table.to_dict()["four_fifths"]["groups"] if g["pattern"] == "g=b")
    low, high = group["impact_ratio_low"], group["impact_ratio_high"]
    expected = "inside" if low >= 0.8 else "outside" if high < 0.8 else "undecided"
    assert eq.check(table, four_fifths=True, evidence="interval").status == expected == status


def test_a_rule_has_its_own_least_size_for_the_best_too() -> None:
    table = bias_table(one(a=(300, 700), b=(200, 800), c=(40, 0)), MeasureRequest(favourable="+"))
    rule = {"min-impact-ratio": 0.5, "reference": "best", "label": "+"}
    assert eq.check(table, policy={"rules": [rule]}).status == "outside"
    check = eq.check(table, policy={"rules": [{**rule, "min-count": 100}]})
    assert (check.status, check.rows_checked) == ("inside", 2)


def test_findings_with_enough_evidence_come_first() -> None:
    counts = one(a=(6000, 4000), b=(3000, 7000), c=(2, 9), d=(0, 6))
    check = eq.check(bias_table(counts), max_abs_ub=0.1)
    sure = [f.sure for f in check.outside]
    assert True in sure
    assert False in sure
    assert sure == sorted(sure, reverse=True)
    sizes = [abs(f.value) for f in check.outside]
    assert sizes != sorted(sizes, reverse=True)  # else the order would show nothing
    assert "outside, but too few rows to tell" in repr(check)


# --- bad input -----------------------------------------------------------------------------------


def test_no_favourable_label_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"`favourable` .*'y' has: \+, -") as refused:
        eq.check(bias_table(one(a=(5, 5), b=(5, 6))), four_fifths=True)
    assert "favourable" in str(refused.value)


def test_an_unknown_favourable_label_is_refused() -> None:
    counts = one(a=(5, 5), b=(5, 6))
    with pytest.raises(PatternError, match="'y' has no value yes; it has: "):
        eq.check(counts, four_fifths=True, favourable="yes")
    with pytest.raises(PatternError, match="'y' has no value yes; it has: "):
        eq.check(counts, policy={"four-fifths": True, "favourable": "yes"})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"max-abs-ub": 0.1, "reference": "best"}, "uniform_bias takes no reference"),
        ({"min-impact-ratio": 0.8, "reference": "bset"}, "Did you mean .best"),
        ({"min-impact-ratio": 0.8, "reference": "*"}, "or a group such as"),
        ({"min-impact-ratio": 0.8, "reference": 3}, "reference must be text, not 3"),
        ({"min-impact-ratio": 0.8, "min": 0.7}, "leave these out"),
        ({"min-impact-ratio": "0.8"}, "min-impact-ratio must be a number"),
    ],
)
def test_a_wrong_reference_is_refused(rule, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Policy.from_dict({"rules": [rule]})


def test_four_fifths_is_yes_or_no() -> None:
    with pytest.raises(InputError, match=r"four-fifths must be true or false, not 0\.9"):
        Policy.from_dict({"four-fifths": 0.9})


def test_intervals_are_refused_where_there_are_none() -> None:
    rule = Rule(measure="impact_ratio", min=0.8, reference="rest")
    with pytest.raises(InputError, match="which impact_ratio does not have"):
        Policy(rules=(rule,), evidence="interval")
    assert bias_table(one(a=(5, 5), b=(5, 6))).four_fifths is None


@pytest.mark.parametrize("asked", ["bset", "*", "", "sex=*"])
def test_a_reference_that_names_nobody_is_answered_with_those_there_are(asked: str) -> None:
    for make in (
        lambda: MeasureRequest(reference=asked),
        lambda: Policy.from_dict({"rules": [{"min-impact-ratio": 0.9, "reference": asked}]}),
    ):
        with pytest.raises(InputError, match=r"or a group such as .sex=Male., not ") as caught:
            make()
        assert ("Did you mean 'best'?" in str(caught.value)) == (asked == "bset")


def test_a_limit_that_is_no_number_is_called_as_it_was_written() -> None:
    with pytest.raises(InputError, match=r"^min-impact-ratio must be a number"):
        Policy.from_dict({"rules": [{"min-impact-ratio": "x"}]})


def test_a_group_of_all_rows_is_not_too_small() -> None:
    cells = {("a", "us", "k"): 30, ("b", "us", "k"): 10, ("a", "us", "n"): 30, ("b", "us", "n"): 40}
    counts = Counts.from_mapping(cells, sensitive=["s", "t"], label="y")
    found = bias_table(counts, MeasureRequest(favourable="k")).to_dict()["four_fifths"]
    whole = next(group for group in found["groups"] if group["pattern"] == "t=us")
    assert whole["too_small"] is False
    assert whole["below"] is False
    assert found["measured"]["without_verdict"] == 0


def published(shift: int) -> dict[str, str]:
    """All that is given out of a table in which rows move between groups that stay hidden."""
    cells = {
        ("m", "a"): (300, 200),
        ("w", "a"): (250, 350),
        ("m", "b"): (90, 60),
        ("w", "b"): (50, 130),
        ("m", "c"): (4 + shift, 9 - shift),
        ("m", "d"): (9 - shift, 7 + shift),
        ("w", "c"): (6 - shift, 8 + shift),
        ("w", "d"): (8 + shift, 11 - shift),
    }
    rows = {(*g, y): n for g, both in cells.items() for y, n in zip("yn", both, strict=True)}
    counts = Counts.from_mapping(rows, sensitive=["sex", "race"], label="out")
    options = MeasureRequest(favourable="y", measures=("impact_ratio",))
    table = suppress(bias_table(counts, options), 5)
    data = table.to_dict()
    found = {
        "data": json.dumps({k: v for k, v in data.items() if k != "time"}),
        "frame": table.to_pandas().to_csv(),
        "html": table._repr_html_(),
        "text": repr(table),
        "picture": table.plot().to_svg(),
        "shown in part": json.dumps(table.filter(group="race=c").to_dict()["four_fifths"]),
        "charts": json.dumps(summarize(table)["charts"]),
    }
    for name in ({"four-fifths": True, "favourable": "y"}, {"max-abs-ub": 0.05}):
        check = Policy.of(name).check(table)
        found[str(name)] = check.to_csv() + check._repr_html_() + check.sentence
    assert sum(row["note"] == "suppressed" for row in data["rows"]) == 8
    return found


@pytest.mark.slow
def test_nothing_given_out_tells_of_hidden_groups() -> None:
    """Tables that differ in hidden groups alone give the same, whatever it is."""
    assert published(0) == published(2)
