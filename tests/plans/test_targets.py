"""Targets K: what is asked of each group, and what cannot be asked."""

from __future__ import annotations

from fractions import Fraction

import pytest

import equipoise as eq
from equipoise.errors import InputError
from strategies import rows_of

CELLS = {
    ("m", "x", "L"): 300,
    ("m", "x", "M"): 120,
    ("m", "x", "H"): 80,
    ("m", "z", "L"): 200,
    ("m", "z", "M"): 60,
    ("m", "z", "H"): 40,
    ("w", "x", "L"): 100,
    ("w", "x", "M"): 20,
    ("w", "x", "H"): 20,
    ("w", "z", "L"): 50,
    ("w", "z", "M"): 5,
    ("w", "z", "H"): 5,
}
LABELS = "LMH"
F = {y: Fraction(sum(n for c, n in CELLS.items() if c[2] == y), 1000) for y in LABELS}


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex", "race"], label="risk")


def rate(cells, label, **fixed):
    names = ("sex", "race", "risk")
    inside = {
        c: n for c, n in cells.items() if all(c[names.index(k)] == v for k, v in fixed.items())
    }
    return Fraction(sum(n for c, n in inside.items() if c[2] == label), sum(inside.values()))


def k_of(cells, label, **fixed):
    return float(rate(cells, label, **fixed) / F[label])


# --- what comes out -------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_a_group_gets_its_ratio(counts, tolerance):
    target = {"sex=w, race=x": {"L": 1, "M": 1.2, "H": 0.7}}
    k = {"L": 1.0, "M": 1.2}
    k["H"] = (1 - float(F["L"]) - 1.2 * float(F["M"])) / float(F["H"])
    target["sex=w, race=x"]["H"] = k["H"]
    plan = eq.plan(counts, target=target, tolerance=tolerance, reference="original")
    after = rows_of(plan.after())
    assert plan.reached
    for label in LABELS:
        off = tolerance * k[label] + plan.certificate.off_after
        assert k_of(after, label, sex="w", race="x") == pytest.approx(k[label], abs=off + 0.01)
        assert k_of(after, label, sex="m", race="x") == pytest.approx(1, abs=off + 0.01)


def test_labels_left_out_share_what_is_left(counts):
    plan = eq.plan(counts, target={"sex=w, race=x": {"H": 0.5}}, allow="both")
    after = rows_of(plan.after())
    others = float((1 - F["H"] / 2) / (1 - F["H"]))
    assert k_of(after, "H", sex="w", race="x") == pytest.approx(0.5, abs=0.1)
    assert k_of(after, "L", sex="w", race="x") == pytest.approx(others, abs=0.02)


def test_a_marginal_gets_its_ratio_as_a_whole(counts):
    plan = eq.plan(counts, target={"sex=w": {"H": 1.2}}, tolerance=0.02, allow="both")
    after = rows_of(plan.after())
    assert plan.certificate.reference == "original"
    assert abs(rate(after, "H", sex="w") / (Fraction(6, 5) * F["H"]) - 1) <= Fraction(1, 50)
    for race in "xz":  # groups that have no K are held to 1, but for the parts of one that has
        assert abs(rate(after, "H", sex="m", race=race) / F["H"] - 1) <= Fraction(1, 50)


def test_each_group_inside_gets_the_ratio(counts):
    target = {"targets": [{"group": "sex=w", "inside": True, "k": {"H": 1.2}}]}
    plan = eq.plan(counts, target=target, tolerance=0.02, allow="both", reference="original")
    after = rows_of(plan.after())
    for race in "xz":
        off = abs(rate(after, "H", sex="w", race=race) / (Fraction(6, 5) * F["H"]) - 1)
        assert off <= Fraction(1, 50) + Fraction(1, 10**9)


def test_a_file_says_the_same_as_a_mapping(counts, tmp_path):
    file = tmp_path / "targets.toml"
    file.write_text('[[targets]]\ngroup = "sex=w, race=x"\nk = { H = 0.5 }\n')
    from_file = eq.plan(counts, target=str(file))
    assert from_file.cells == eq.plan(counts, target={"sex=w, race=x": {"H": 0.5}}).cells
    file.write_text('keep-rates-of = "sex"\n')
    rule = eq.plan(counts, target="keep rates of: sex")
    assert eq.plan(counts, target=str(file)).cells == rule.cells
    assert eq.plan(counts, target="keep-rates-of: sex").cells == rule.cells


def test_keeping_the_rates_of_all_attributes_changes_nothing(counts):
    assert eq.plan(counts, target="keep rates of: sex, race").cost == 0


def test_ratios_of_one_are_no_targets(counts):
    ones = dict.fromkeys(LABELS, 1.0)
    plan = eq.plan(counts, target={"sex=w, race=x": ones})
    assert plan.cells == eq.plan(counts).cells


# --- what cannot be -------------------------------------------------------------------------------


def test_the_sum_is_said_and_the_ratios_rescaled(counts):
    k = {"L": 1.0, "M": 1.0, "H": 2.0}
    total = sum(k[y] * F[y] for y in LABELS)
    with pytest.raises(InputError) as caught:
        eq.plan(counts, target={"sex=w, race=x": k})
    text = str(caught.value)
    assert f"{float(total):.6g}" in text
    for label in LABELS:
        assert f"{label} = {k[label] / float(total):.6g}" in text
    rescaled = {y: k[y] / float(total) for y in LABELS}
    assert eq.plan(counts, target={"sex=w, race=x": rescaled}).reached


REFUSED = {
    "more than all": ({"sex=w": {"L": 2}}, "more than"),
    "unknown label": ({"sex=w": {"Hh": 1.1}}, "Did you mean 'H'"),
    "nearest value": ({"race=zz": {"H": 1.1}}, "Did you mean 'z'"),
    "nearest attribute": ({"sx=w": {"H": 1.1}}, "Did you mean 'sex'"),
    "the label as an attribute": ({"risk=H": {"H": 1.1}}, "label"),
    "not above zero": ({"sex=w": {"H": 0}}, "above 0"),
    "negative": ({"sex=w": {"H": -1}}, "above 0"),
    "nan": ({"sex=w": {"H": float("nan")}}, "must be a number"),
    "text": ({"sex=w": {"H": "much"}}, "must be a number"),
    "no labels": ({"sex=w": {}}, "by label"),
    "not by label": ({"sex=w": 1.1}, "by label"),
    "unknown key": ({"targets": [{"group": "sex=w", "k": {"H": 1.1}, "inner": 1}]}, "inner"),
    "misspelt key": ({"keep-rate-of": ["sex"], "targets": []}, "Did you mean 'keep-rates-of'"),
    "not a list": ({"targets": {"group": "sex=w"}}, "list"),
    "unknown attribute to keep": ("keep rates of: sx", "Did you mean 'sex'"),
    "keep rates of the label": ("keep rates of: risk", "is the label"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_refused(counts, name):
    target, message = REFUSED[name]
    with pytest.raises(InputError) as caught:
        eq.plan(counts, target=target)
    assert message in str(caught.value)


def test_a_file_that_is_not_there(counts, tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        eq.plan(counts, target=str(tmp_path / "none.toml"))


def test_a_file_that_is_not_toml(counts, tmp_path):
    (tmp_path / "bad.toml").write_text("[[targets\n")
    with pytest.raises(InputError, match="cannot be read"):
        eq.plan(counts, target=str(tmp_path / "bad.toml"))


def test_an_empty_group_has_no_target():
    cells = {c: n for c, n in CELLS.items() if c[:2] != ("w", "z")}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex", "race"], label="risk")
    with pytest.raises(InputError, match="has no rows"):
        eq.plan(counts, target={"sex=w, race=z": {"H": 1.1}})


def test_a_target_that_its_parts_contradict_is_named(counts):
    target = {"sex=w": {"H": 1.2}, "sex=w, race=x": {"H": 0.8}, "sex=w, race=z": {"H": 0.9}}
    with pytest.raises(InputError, match="contradict") as caught:
        eq.plan(counts, target=target)
    assert "sex=w" in str(caught.value)


def test_marginals_that_contradict_each_other_are_named(counts):
    """Both sexes at 1.2 make the whole table 1.2; both races at 0.8 make it 0.8."""
    target = {f"sex={s}": {"H": 1.2} for s in "mw"} | {f"race={r}": {"H": 0.8} for r in "xz"}
    with pytest.raises((InputError, eq.Infeasible)) as caught:
        eq.plan(counts, target=target, tolerance=0.01, allow="both", time_limit=1)
    assert "contradict" in str(caught.value)
    assert "sex=" in str(caught.value)
    assert "race=" in str(caught.value)
