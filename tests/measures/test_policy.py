"""Agreed limits: which rule decides a row, and what is said of it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.cli.commands.check import command
from equipoise.counts import Counts
from equipoise.errors import InputError, PatternError, SourceNotFound, UnknownName
from equipoise.measures import policy as policy_module
from equipoise.measures.configuration import read_config
from equipoise.measures.policy import EXIT_CODES, Check, Policy
from equipoise.measures.request import MeasureRequest
from equipoise.measures.rules import Rule
from equipoise.measures.table import bias_table

COMPAS = Counts.from_mapping(
    {
        ("m", "o", "L"): 19489,
        ("m", "o", "M"): 7143,
        ("m", "o", "H"): 4510,
        ("m", "c", "L"): 12202,
        ("m", "c", "M"): 2862,
        ("m", "c", "H"): 1273,
        ("w", "o", "L"): 5637,
        ("w", "o", "M"): 1589,
        ("w", "o", "H"): 665,
        ("w", "c", "L"): 4159,
        ("w", "c", "M"): 894,
        ("w", "c", "H"): 375,
    },
    sensitive=["sex", "race"],
    label="risk",
)
TABLE = bias_table(COMPAS)


def hiring(women: int, men: int = 0) -> Counts:
    """Of 100 women so many hired, of 900 men so many that 250 are hired in all."""
    men = men or 250 - women
    cells = {("w", "y"): women, ("w", "n"): 100 - women, ("m", "y"): men, ("m", "n"): 900 - men}
    return Counts.from_mapping(cells, sensitive=["sex"], label="hired")


def found(check: Check) -> dict[tuple[str, str], str]:
    return {(str(f.row.group), str(f.row.label)): f.status for f in check.findings()}


# --- which rule decides --------------------------------------------------------------------------


def test_one_limit_for_all_finds_every_row_beyond_it() -> None:
    check = Policy(rules=(Rule(max_abs=0.1),)).check(TABLE)
    expected = {(str(r.group), r.label) for r in TABLE if abs(r.ub) > 0.1}
    assert set(found(check)) == expected
    assert set(found(check).values()) == {"outside"}
    assert check.rows_checked == len(TABLE) == 24
    assert len(check.outside) == len(expected)
    assert [str(f.row.group) for f in check.findings(2)] == ["sex=w, race=c", "race=c"]
    worst_first = [abs(f.value) for f in check.findings()]
    assert worst_first == sorted(worst_first, reverse=True)


@given(st.lists(st.tuples(st.sampled_from(range(4)), st.floats(0, 0.5)), min_size=1, max_size=6))
def test_the_last_rule_that_fits_decides(given_rules) -> None:
    patterns = ["*", "sex=w", "sex=w, race=c", "race=o"]
    rules = [Rule(group=patterns[i], max_abs=limit) for i, limit in given_rules]
    check = Policy(rules=tuple(rules)).check(TABLE)
    outside, decided = set(), 0
    for row in TABLE:
        fitting = [r for r in rules if r.group.matches(row.group)]
        decided += bool(fitting)
        if fitting and abs(row.ub) > fitting[-1].max_abs:
            outside.add((str(row.group), row.label))
    assert set(found(check)) == outside
    assert check.rows_checked == decided


def test_rules_on_other_measures_stand_beside_each_other() -> None:
    rules = (
        Rule(max_abs=0.1),
        Rule(measure="impact_ratio", min=0.8, label="H"),
        Rule(max_abs=1.0),
    )
    check = Policy(rules=rules).check(TABLE)
    ratios = TABLE.measure("impact_ratio")[:, COMPAS.label.code("H")]
    assert {f.rule.measure for f in check.findings()} == {"impact_ratio"}
    assert len(check.outside) == int((ratios < 0.8).sum()) > 0
    assert check.rows_checked == 24 + 8


def test_a_rule_for_a_label_overrides_only_that_label() -> None:
    policy = Policy.from_dict(
        {"max-abs-ub": 0.1, "rules": [{"group": "sex=w", "label": "H", "max-abs-ub": 0.4}]}
    )
    before, after = found(eq.check(TABLE, max_abs_ub=0.1)), found(policy.check(TABLE))
    assert before.keys() - after.keys() == {
        ("sex=w", "H"),
        ("sex=w, race=o", "H"),
        ("sex=w, race=c", "H"),
    }
    assert ("sex=w, race=c", "L") in after


def test_a_rule_holds_for_every_group_inside_its_own_and_for_no_other() -> None:
    check = Policy(rules=(Rule(group="race=c", max_abs=0),)).check(TABLE)
    assert {str(f.row.group) for f in check.findings()} == {
        "race=c",
        "sex=m, race=c",
        "sex=w, race=c",
    }


@pytest.mark.parametrize(
    ("limits", "outside"),
    [
        ({"max_abs": 0.2}, {"w"}),
        ({"max_abs": 0.5}, set()),
        ({"max": 0.2}, {"w"}),
        ({"max": 0.5}, set()),
        ({"min": 0}, {"m"}),
        ({"min": -0.1, "max": 0.45}, set()),
        ({"min": -0.1, "max": 0.35}, {"w"}),
        ({"max_abs": 0.45, "max": 0.3}, {"w"}),
    ],
)
def test_limits_from_above_from_below_and_on_the_size(limits, outside) -> None:
    """UB of hired is 0.4 for the women and −0.0444 for the men."""
    check = Policy(rules=(Rule(label="y", **limits),)).check(bias_table(hiring(15)))
    assert {f.row.group["sex"] for f in check.outside} == outside


@pytest.mark.parametrize("women", [20, 25, 30])
def test_a_bias_of_exactly_the_limit_is_inside(women: int) -> None:
    """20 or 30 of 100 where 25 are expected: UB is exactly 1/5 or −1/5."""
    table = bias_table(hiring(women))
    assert eq.check(table, max_abs_ub=abs(25 - women) / 25).status == "inside"
    assert abs(table["sex=w", "y"].ub) == abs(25 - women) / 25


def test_k_moves_what_counts_as_parity() -> None:
    """With K the bias is 1 − f_gy/(K·f_y)."""
    table = bias_table(hiring(15))  # f_gy/f_y = 0.6

    def women(k: float):
        check = Policy(rules=(Rule(group="sex=w", label="y", max_abs=0, k=k),)).check(table)
        return [f.value for f in check.findings()]

    assert women(1) == [0.4]
    assert women(0.8) == [pytest.approx(0.25)]
    assert women(1.2) == [pytest.approx(0.5)]
    inside = Policy(rules=(Rule(group="sex=w", label="y", max_abs=1e-9, k=0.6),)).check(table)
    assert inside.status == "inside"


def test_small_groups_are_not_looked_at() -> None:
    policy = Policy.from_dict({"max-abs-ub": 0.0, "min-count": 10_000})
    check = policy.check(TABLE)
    assert check.rows_checked == 3 * sum(n >= 10_000 for n in (31142, 16337, 7891, 5428)) + 12
    assert all(f.row.n_group >= 10_000 for f in check.findings())


def test_a_rule_has_its_own_least_size() -> None:
    """A group below it is not looked at: the rule before it does not step in."""
    rules = (Rule(max_abs=0), Rule(group="sex=w, race=c", max_abs=0, min_count=6_000))
    check = Policy(rules=rules).check(TABLE)
    assert "sex=w, race=c" not in {str(f.row.group) for f in check.findings()}
    assert check.rows_checked == 21


# --- evidence and exit codes ---------------------------------------------------------------------


def test_exit_codes() -> None:
    assert dict(EXIT_CODES) == {"inside": 0, "outside": 1, "undecided": 3}
    table = bias_table(hiring(15))
    assert eq.check(table, max_abs_ub=0.5).exit_code == 0
    assert eq.check(table, max_abs_ub=0.3).exit_code == 1


@pytest.mark.parametrize(
    ("limit", "status"),
    [(0.9, "inside"), (0.4, "undecided"), (0.05, "outside")],
)
def test_an_interval_must_be_all_inside_or_all_outside(limit: float, status: str) -> None:
    table = bias_table(hiring(15))
    row = table["sex=w", "y"]
    assert 0.05 < row.ub_low < 0.4 < row.ub_high < 0.9
    rule = Rule(group="sex=w", label="y", max_abs=limit)
    check = Policy(rules=(rule,), evidence="interval").check(table)
    assert (check.status, check.exit_code) == (status, EXIT_CODES[status])
    assert [f.value for f in check.findings()] == ([] if status == "inside" else [0.4])


@given(st.integers(0, 100), st.floats(0, 1), st.sampled_from([0.5, 1.0, 1.5]))
def test_evidence_by_interval_is_the_estimate_where_it_decides(women, limit, k) -> None:
    table = bias_table(hiring(women))
    rules = (Rule(max_abs=limit, k=k),)
    by_estimate = found(Policy(rules=rules).check(table))
    by_interval = found(Policy(rules=rules, evidence="interval").check(table))
    for row in table:
        key = str(row.group), row.label
        low, high = (1 - (1 - end) / k for end in (row.ub_low, row.ub_high))
        if low > limit or high < -limit:
            assert by_interval[key] == by_estimate[key] == "outside"
        elif low >= -limit and high <= limit:
            assert key not in by_interval
        else:
            assert by_interval[key] == "undecided"


def test_a_row_too_small_to_say_anything_is_undecided_not_outside() -> None:
    tiny = Counts.from_mapping({("x", "n"): 1}, sensitive=["sex"], label="hired")
    check = eq.check(bias_table(hiring(25) + tiny), max_abs_ub=0.1)
    assert found(check) == {("sex=x", "y"): "undecided", ("sex=x", "n"): "undecided"}
    assert (check.status, check.exit_code) == ("undecided", 3)
    assert len(check.undecided) == 2
    assert check.outside == ()
    assert "2 of 6 group and label pairs checked cannot be decided" in check.sentence


def test_nothing_to_check_is_not_a_pass() -> None:
    check = eq.check(TABLE, policy={"max-abs-ub": 0.1, "min-count": 10**6})
    assert (check.status, check.exit_code, check.rows_checked) == ("undecided", 3, 0)
    assert check.sentence == "No group was large enough to be checked."


def test_an_undefined_measure_cannot_be_decided() -> None:
    """No man was hired, so there is no ratio to the men's rate."""
    cells = {("w", "y"): 50, ("w", "n"): 50, ("m", "n"): 900}
    table = bias_table(Counts.from_mapping(cells, sensitive=["sex"], label="hired"))
    check = Policy(rules=(Rule(measure="impact_ratio", min=0.8),)).check(table)
    assert found(check) == {
        ("sex=w", "y"): "undecided",
        ("sex=m", "y"): "outside",
        ("sex=w", "n"): "outside",
    }
    assert [f.status for f in check.findings()] == ["outside", "outside", "undecided"]
    assert math.isnan(check.undecided[0].value)
    assert check.undecided[0].to_dict()["value"] is None


def test_an_undefined_bias_is_not_checked() -> None:
    women = hiring(15).select("sex=w")
    none = women - Counts.from_mapping({("w", "y"): 15}, sensitive=["sex"], label="hired")
    assert none.n == 85
    assert eq.check(bias_table(none), max_abs_ub=0.1).rows_checked == 1


def test_intervals_are_needed_to_judge_by_intervals() -> None:
    bare = bias_table(COMPAS, MeasureRequest(uncertainty=False))
    assert eq.check(bare, max_abs_ub=0.1).status == "outside"
    with pytest.raises(InputError, match="measure with `uncertainty=True`"):
        eq.check(bare, max_abs_ub=0.1, evidence="interval")
    with pytest.raises(InputError, match="which lift does not have"):
        Policy(rules=(Rule(measure="lift", min=0.8),), evidence="interval")


# --- reading policies ----------------------------------------------------------------------------

TOML = """
[{section}]
sensitive = ["sex", "race"]
max-abs-ub = 0.1
evidence = "interval"
min-count = 30

[[{section}.rules]]
group = "sex=w"
label = "H"
max-abs-ub = 0.2
k = 0.7

[[{section}.rules]]
measure = "impact-ratio"
min = 0.8
min-count = 100
"""


@pytest.mark.parametrize(
    ("name", "section"),
    [("equipoise.toml", "check"), ("pyproject.toml", "tool.equipoise.check")],
)
def test_a_policy_is_read_from_toml(tmp_path, name: str, section: str) -> None:
    file = tmp_path / name
    file.write_text(TOML.format(section=section).replace('evidence = "interval"', ""))
    policy = Policy.of(file)
    assert policy == Policy.of(str(file)) == Policy.from_dict(read_config(file)["check"])
    assert policy.rules == (
        Rule(max_abs=0.1, min_count=30),
        Rule(group="sex=w", label="H", max_abs=0.2, k=0.7, min_count=30),
        Rule(measure="impact_ratio", min=0.8, min_count=100),
    )
    assert policy.measures == ("uniform_bias", "impact_ratio")
    assert eq.check(TABLE, policy=file).policy == policy


def test_what_is_stated_comes_before_what_is_in_a_file(tmp_path) -> None:
    file = tmp_path / "equipoise.toml"
    file.write_text('[check]\nmax-abs-ub = 0.1\nevidence = "interval"\n')
    assert Policy.of(file).evidence == "interval"
    stated = Policy.of(file, max_abs_ub=0.3, evidence="estimate")
    assert stated == Policy(rules=(Rule(max_abs=0.3),))


def test_a_limit_is_put_before_the_rules_of_a_policy() -> None:
    policy = Policy(rules=(Rule(group="sex=w", max_abs=1),), evidence="interval")
    assert Policy.of(policy) == policy
    wider = Policy.of(policy, max_abs_ub=0.1)
    assert wider.rules == (Rule(max_abs=0.1), *policy.rules)
    assert wider.evidence == "interval"
    assert Policy.of(policy, evidence="estimate").evidence == "estimate"


def test_dashes_and_underscores_are_the_same() -> None:
    dashed = {"max-abs-ub": 0.1, "rules": [{"max-abs-ub": 0.2, "min-count": 5}]}
    lined = {"max_abs_ub": 0.1, "rules": [{"max_abs": 0.2, "min_count": 5}]}
    assert Policy.from_dict(dashed) == Policy.from_dict(lined)


def test_labels_that_are_numbers_in_toml_are_those_in_the_data() -> None:
    assert Rule(label=1, max_abs=0.1).label == "1"
    assert Rule(label=True, max_abs=0.1).label == "true"


@pytest.mark.parametrize("policy", [None, {}, {"rules": []}, {"evidence": "interval"}])
def test_no_rule_at_all_is_refused(policy) -> None:
    with pytest.raises(InputError, match="there is no rule to check; give a limit"):
        Policy.of(policy)


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ({"max-abs-bu": 0.1}, InputError, "no key 'max_abs_bu'.*Did you mean 'max_abs_ub'"),
        ({"max-abs": 0.1, "gruop": "*"}, InputError, "no key 'gruop'.*Did you mean 'group'"),
        ({"group": "sex=w"}, InputError, "a rule needs a limit"),
        ({"max-abs": -0.1}, InputError, "max-abs must be a number of at least 0"),
        ({"max-abs-ub": "0.1"}, InputError, "max-abs must be a number, not '0.1'"),
        ({"max-abs-ub": True}, InputError, "max-abs must be a number, not True"),
        ({"min": math.nan}, InputError, "`min` must be a number, not nan"),
        ({"max": 1, "min-count": "30"}, InputError, "min-count must be a number, not '30'"),
        ({"max-abs": 0.1, "k": 0}, InputError, "k, .* must be above 0"),
        ({"min": 0.8, "measure": "lift", "k": 0.9}, InputError, "applies to uniform_bias only"),
        ({"min": 0.8, "measure": "lfit"}, UnknownName, "Did you mean 'lift'"),
        ({"max-abs": 0.1, "group": "sex"}, PatternError, "not a pattern"),
    ],
)
def test_a_wrong_rule_is_refused_with_what_to_do(rule, error, message: str) -> None:
    with pytest.raises(error, match=message):
        Policy.from_dict({"rules": [rule]})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"group": "sec=w"}, "there is no attribute 'sec'.*Did you mean 'sex'"),
        ({"group": "sex=women"}, "'sex' has no value women; it has: m, w"),
        ({"group": "risk=H"}, "names the label; use the key label"),
        ({"label": "X"}, "'risk' has no value X; it has: "),
    ],
)
def test_a_rule_that_fits_no_column_or_value_is_refused(rule, message: str) -> None:
    """A typing error must not pass as a rule that nothing breaks."""
    with pytest.raises(InputError, match=message):
        Policy.from_dict({"rules": [{"max-abs": 0.1, **rule}]}).check(TABLE)


def test_one_table_of_rules_instead_of_a_list_is_refused() -> None:
    with pytest.raises(InputError, match=r"rules must be a list of tables, \[\[check.rules\]\]"):
        Policy.from_dict({"rules": {"group": "sex=w", "max-abs": 0.1}})
    with pytest.raises(InputError, match=r"`evidence` must be one of .*Did you mean 'interval'"):
        Policy.from_dict({"max-abs-ub": 0.1, "evidence": "intervall"})


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(SourceNotFound, match=r"there is no file .*nowhere\.toml"):
        Policy.of(tmp_path / "nowhere.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[check\n")
    with pytest.raises(InputError, match=r"bad\.toml is not TOML"):
        Policy.of(bad)
    other = tmp_path / "pyproject.toml"
    other.write_text("[check]\nmax-abs-ub = 0.1\n")  # not ours: it has no tool.equipoise
    with pytest.raises(InputError, match="no rule to check"):
        Policy.of(other)


# --- saying --------------------------------------------------------------------------------------


def test_limits_are_written_out() -> None:
    rule = Rule(group="sex=w", label="H", max_abs=0.2, min=-0.1, max=0.15, k=0.9)
    assert repr(rule) == (
        "Rule(|uniform_bias| ≤ 0.2 and uniform_bias ≥ -0.1 and uniform_bias ≤ 0.15 at K = 0.9 "
        "for sex=w, label H)"
    )
    assert rule.bounds == (-0.1, 0.15)
    assert Rule(max_abs=0.2).bounds == (-0.2, 0.2)
    assert Rule(min=0.8).bounds == (0.8, math.inf)


def test_json_of_a_check() -> None:
    check = eq.check(TABLE, max_abs_ub=0.3)
    data = json.loads(json.dumps(check.to_dict(), allow_nan=False))
    assert data["schema"] == "equipoise.check/1"
    assert (data["status"], data["exit_code"], data["evidence"]) == ("outside", 1, "estimate")
    assert (data["n"], data["rows_checked"], data["label"]) == (60798, 24, "risk")
    assert data["sentence"] == "4 of 24 group and label pairs checked are outside their limits."
    assert len(data["findings"]) == 4
    first = data["findings"][0]
    assert first["group"] == {"sex": "w", "race": "c"}
    assert (first["label"], first["status"], first["measure"]) == ("H", "outside", "uniform_bias")
    assert first["value"] == first["ub"] == pytest.approx(0.3843904471103255)
    assert first["limits"] == "|uniform_bias| ≤ 0.3"


def test_text_of_a_check() -> None:
    text = repr(eq.check(TABLE, max_abs_ub=0.38))
    assert "outside  sex=w, race=c  H     375 of 5,428  +0.384  |uniform_bias| ≤ 0.38" in text
    assert text.endswith("1 of 24 group and label pairs checked are outside their limits.")
    inside = repr(eq.check(TABLE, max_abs_ub=0.5))
    assert inside == "All 24 group and label pairs checked are inside their limits."


def test_a_policy_knows_every_option_of_the_command_that_reads_it() -> None:
    flags = {o.removeprefix("--").replace("-", "_") for p in command.params for o in p.opts}
    options = {f for f in flags if len(f) > 2} - {"json", "csv", "markdown", "data"}
    assert options <= {*policy_module._POLICY_KEYS, *policy_module._OPTION_KEYS}


# ---------------------------------------------------------------------- significance


FEW = {("m", "yes"): 6, ("m", "no"): 4, ("w", "yes"): 3, ("w", "no"): 7, ("d", "yes"): 20}
FEW |= {("d", "no"): 80}
BELOW = {"min-impact-ratio": 0.8, "reference": "best", "label": "yes"}


def test_a_rule_with_significance_needs_a_low_ratio_and_a_small_p():
    counts = Counts.from_mapping(FEW, sensitive=["sex"], label="hired")
    plain = eq.check(counts, policy={"rules": [BELOW]})
    assert {str(f.row.group) for f in plain.outside} == {"sex=d", "sex=w"}
    tested = eq.check(counts, policy={"rules": [{**BELOW, "significance": 0.05}]})
    # 20 of 100 against 6 of 10 has p = 0.010, and 3 of 10 against 6 of 10 has p = 0.370.
    assert [str(f.row.group) for f in tested.outside] == ["sex=d"]
    assert [str(f.row.group) for f in tested.undecided] == ["sex=w"]
    assert tested.exit_code == 1
    strict = eq.check(counts, policy={"rules": [{**BELOW, "significance": 0.001}]})
    assert not strict.outside
    assert strict.exit_code == 3
    assert "unless p > 0.05" in tested.text()
    rule = tested.policy.rules[0]
    assert Policy.from_dict({"rules": [rule.to_dict()]}).rules[0] == rule


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ({"max-abs-ub": 0.1, "significance": 0.05}, "a test against the best-off group"),
        ({"min-impact-ratio": 0.8, "significance": 0.05}, "a test against the best-off group"),
        ({**BELOW, "significance": 0}, "`significance` must be a number above 0 and below 1"),
        ({**BELOW, "significance": "small"}, "`significance` must be a number"),
    ],
)
def test_significance_is_a_level_of_a_rule_on_the_best_off_group(rule, error):
    with pytest.raises(InputError, match=error):
        Policy.from_dict({"rules": [rule]})


def test_significance_and_intervals_are_two_kinds_of_evidence():
    with pytest.raises(InputError, match="either a level of significance or whole intervals"):
        Policy.from_dict({"rules": [{**BELOW, "significance": 0.05}], "evidence": "interval"})


def test_a_plan_that_keeps_the_ratio_keeps_the_rule_with_significance():
    counts = Counts.from_mapping(FEW, sensitive=["sex"], label="hired")
    policy = Policy.from_dict({"rules": [{**BELOW, "significance": 0.05}]})
    plan = eq.plan(counts, policy=policy)
    assert plan.reached
    assert eq.check(plan.after(), policy=policy).exit_code == 0
