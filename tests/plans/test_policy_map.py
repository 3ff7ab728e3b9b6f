from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.counts import Counts
from equipoise.errors import InputError, PatternError
from equipoise.measures.table import bias_table
from equipoise.plans.maps.limits import MapLimit
from equipoise.plans.maps.policy_map import policy_map
from equipoise.plans.moves import Move

MEN = "add sex=Male, income=<=50K"
FEWER_MEN = "delete sex=Male, income=>50K"
WOMEN = "add sex=Female, income=>50K"


@pytest.fixture(scope="module")
def adult():
    return eq.count("adult", sensitive_features=["sex"], label="income")


def counts_of(men_yes=160, men_no=290, women_yes=40, women_no=110):
    cells = {("m", "y"): men_yes, ("m", "n"): men_no, ("w", "y"): women_yes, ("w", "n"): women_no}
    return Counts.from_mapping(cells, sensitive=["sex"], label="l")


# ------------------------------------------------------------------------------ the paper


def test_the_paper_s_first_map(adult):
    made = policy_map(adult, x=MEN, y=WOMEN, limits=["x<=4500", "y<=3000"])
    assert made.zero.name == "hyperbola"
    assert made.zero_y(0) == pytest.approx([3045.08], abs=1e-2)
    assert made.zero_y(4500) == pytest.approx([2076.65], abs=1e-2)
    assert made.feasible == ((0, 0), (4500, 0), (4500, 3000), (0, 3000))
    assert (made.cheapest.x, made.cheapest.y) == (pytest.approx(163.2, abs=0.01), 3000)


def test_the_paper_s_second_map(adult):
    made = policy_map(adult, x=FEWER_MEN, y=WOMEN, limits=["y<=3000", "n>=30000"])
    assert made.zero.name == "line"
    assert made.zero_y(0) == pytest.approx([3045.08], abs=1e-2)
    assert made.zero_y(1000) == pytest.approx([2411.03], abs=1e-2)
    assert made.zero_x(3000) == pytest.approx([71.1], abs=1e-2)
    assert made.feasible == ((0, 0), (2561, 0), (5561, 3000), (0, 3000))
    assert (made.whole.x, made.whole.y, made.whole.n) == (71, 3000, 35490)


def test_the_group_and_the_label_come_from_the_moves_or_are_said(adult):
    made = policy_map(adult, x=MEN, y=WOMEN)
    assert (str(made.group), made.label_value) == ("sex=Female", ">50K")
    made = policy_map(adult, x=MEN, y="add income=>50K")
    assert (str(made.group), made.label_value) == ("sex=Male", "<=50K")
    made = policy_map(adult, x=MEN, y=WOMEN, group="sex=Male")
    assert (str(made.group), made.label_value) == ("sex=Male", ">50K")
    made = policy_map(adult, x="add sex=Male", y="add income=>50K", label_value="<=50K")
    assert (str(made.group), made.label_value) == ("sex=Male", "<=50K")
    with pytest.raises(InputError, match=r"`group='sex=Female'` and `label_value='>50K'`\.$"):
        policy_map(adult, x="add sex=Male", y="add income=>50K")


def test_the_library_counts_first(adult):
    asked = {"x": MEN, "y": WOMEN, "limits": ["x<=4500"], "tolerance": 0.01}
    made = eq.policy_map("adult", sensitive_features=["sex"], label="income", **asked).to_dict()
    again = eq.policy_map(adult, **asked).to_dict()
    assert {**made, "time": 0} == {**again, "time": 0}


# --------------------------------------------------------------------------------- moves


def test_rows_of_a_group_are_split_in_proportion_and_that_is_said():
    made = policy_map(counts_of(), x="delete sex=m", y="add sex=w, l=y")
    assert made.x.share("l=y") == Fraction(160, 450)
    (said,) = (s for s in made.sentences if "split" in s)
    assert said.startswith("The rows of “delete sex=m” are split over 2 cells, in proportion to")
    assert said.endswith("their present rows: sex=m, l=n 64.4%; sex=m, l=y 35.6%.")
    assert made.to_dict()["x"]["cells"][0] == {"cell": {"sex": "m", "l": "n"}, "share": 290 / 450}
    # The rate of the men stays as it is, so the women needed do not change.
    assert made.zero_y(0) == pytest.approx(made.zero_y(300), rel=1e-12)


def test_an_empty_group_is_split_equally():
    cells = {("m", "a", "y"): 5, ("m", "b", "n"): 5, ("w", "a", "y"): 3, ("w", "a", "n"): 9}
    counts = Counts.from_mapping(cells, sensitive=["sex", "race"], label="l")
    move = Move.parse("add sex=w, race=b", counts)
    assert [share for _, share in move.cells] == [Fraction(1, 2)] * 2
    assert "equally, as none has rows" in move.split
    with pytest.raises(InputError, match="deletes nothing: no row of the table is sex=w, race=b"):
        Move.parse("delete sex=w, race=b", counts)


def test_nothing_is_added_where_a_value_is_missing_unless_told():
    cells = {("m", "y"): 5, ("m", "n"): 5, ("w", "y"): 3, (None, "y"): 9}
    counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
    assert Move.parse("add l=y", counts).share("sex=<missing>") == 0
    assert Move.parse("add sex=<missing>", counts).share("sex=<missing>") == 1
    assert Move.parse("delete l=y", counts).share("sex=<missing>") == Fraction(9, 17)


def test_two_deletions_share_the_rows_there_are():
    made = policy_map(counts_of(), x="delete sex=m, l=y", y="delete l=y", group="sex=w")
    caps = ["x<=160", "y<=200", "x/160 + y/200 <= 1"]
    assert [limit.text for limit in made.built_in] == [*caps, "at least 1 row of l=y"]
    assert not made.point(100, 100).inside


@pytest.mark.parametrize(
    ("move", "error", "words"),
    [
        ("remove sex=m", InputError, "write add or delete and a pattern"),
        ("add", PatternError, "an empty pattern names no group"),
        ("", InputError, "neither an addition nor a deletion"),
        ("add *", PatternError, "names no attribute"),
        ("add sex", PatternError, "name=value is expected"),
        ("add gender=m", PatternError, "no attribute 'gender'; there are: sex, l"),
        ("add sex=men", PatternError, "has no value men; it has: m, w"),
        ("add sx=m", PatternError, "Did you mean 'sex'"),
    ],
)
def test_bad_moves_are_refused(move, error, words):
    with pytest.raises(error, match=words) as raised:
        policy_map(counts_of(), x=move, y="add sex=w, l=y")
    assert str(raised.value).endswith((".", "?"))


def test_weighted_counts_are_refused():
    columns = {"sex": ["m", "w"], "l": ["y", "n"], "w": [1.5, 2.0]}
    counts = Counts.from_frame(columns, sensitive=["sex"], label="l", weight="w")
    with pytest.raises(InputError, match="these have weights; count them without weights"):
        policy_map(counts, x="add sex=m, l=y", y="add sex=w, l=y")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"group": "l=y"}, "'l', which is not a sensitive attribute"),
        ({"group": "*"}, "the group of all rows has no bias"),
        ({"group": "sex=x"}, "has no value x"),
        ({"label_value": "maybe"}, "has no value maybe"),
        ({"cost_x": 0}, "`cost_x` must be above 0"),
        ({"cost_y": math.inf}, "`cost_y` must be above 0 and at most"),
        ({"cost_y": "2"}, "`cost_y` must be a number"),
        ({"tolerance": -0.1}, "`tolerance` must be a number of at least 0"),
        ({"tolerance": math.nan}, "`tolerance` must be a number"),
        ({"tolerance": math.inf}, "`tolerance` must be a number such as 0.05"),
        ({"x_max": 0}, "`x_max` must be a number of at least 1"),
        ({"y_max": math.inf}, "`y_max` must be at most"),
    ],
)
def test_bad_options_are_refused(asked, words):
    with pytest.raises(InputError, match=words):
        policy_map(counts_of(), x="add sex=m, l=n", y="add sex=w, l=y", **asked)


# -------------------------------------------------------------------------------- limits

FORMS = {"x": (0, 1, 0), "y": (0, 0, 1), "n": (600, 1, -1), "cost": (0, 2, 3)}


@pytest.mark.parametrize(
    ("text", "a", "b", "c"),
    [
        ("x<=4500", 1, 0, 4500),
        ("y ≤ 3,000", 0, 1, 3000),
        ("n>=500", -1, 1, 100),
        ("x+y<=7000", 1, 1, 7000),
        ("2*x + .5 y <= 9_000", 2, Fraction(1, 2), 9000),
        ("-x - 1.5*Y >= -1e3", 1, Fraction(3, 2), 1000),
        ("100 <= cost", -2, -3, -100),
        ("x <= 2*y + 10", 1, -2, 10),
        ("3 + x - 1 >= y", -1, 1, 2),
    ],
)
def test_limits_are_linear(text, a, b, c):
    half = MapLimit.parse(text, FORMS).half
    assert (half.a, half.b, half.c) == (a, b, c)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "x<4500", "x=4500", "x==4500", "x<=", "<=5", "x<=5<=y", "z<=5", "x*y<=5"),
        *("x<=5 6", "x<=__import__('os')", "x^2<=5", "x<=nan", "x<=inf", "2**x<=5", "x<=5e"),
        *("x<=--5", "x y<=5", "(x)<=5", "x<=1.5.5"),
    ],
)
def test_bad_limits_are_refused_with_an_example(text):
    with pytest.raises(InputError, match=r"x<=4500, n>=30000 or 2\*x \+ y <= 9000\.$"):
        MapLimit.parse(text, FORMS)


@pytest.mark.parametrize("text", ["x<=1e99", "x<=1e99999999999", "x<=1" + "0" * 40])
def test_absurd_numbers_in_limits_are_refused(text):
    with pytest.raises(InputError, match="has a number above"):
        MapLimit.parse(text, FORMS)


def test_limits_that_leave_nothing_are_said():
    made = policy_map(counts_of(), x="add sex=m, l=n", y="add sex=w, l=y", limits=["x>=5", "x<=4"])
    assert made.is_empty
    assert not made.reached
    assert (made.cheapest, made.nearest, made.whole, made.feasible) == (None, None, None, ())
    assert any(
        s.startswith("No point is inside all limits: x>=5, x<=4, x>=0 and y>=0.")
        for s in made.sentences
    )


def test_the_least_bias_is_given_where_the_tolerance_is_out_of_reach():
    made = policy_map(
        counts_of(), x="delete sex=m, l=y", y="add sex=w, l=y", limits=["x+2*y<=20"], tolerance=0.05
    )
    assert not made.reached
    best = min(
        abs(float(made.ub(x, y))) for x in np.linspace(0, 20, 201) for y in [(20 - x) / 2, 0]
    )
    assert abs(made.nearest.ub) == pytest.approx(best, abs=1e-9)
    assert made.whole.inside
    assert any(
        s.startswith("No point inside the limits has |UB| up to 0.05") for s in made.sentences
    )


def test_a_region_of_one_point_is_still_a_region():
    made = policy_map(counts_of(), x="add sex=m, l=n", y="add sex=w, l=y", limits=["x+y<=0"])
    assert not made.is_empty
    assert (made.nearest.x, made.nearest.y) == (0, 0)


def test_nothing_need_be_moved_where_the_bias_is_small_enough():
    made = policy_map(counts_of(), x="add sex=m, l=n", y="add sex=w, l=y", tolerance=0.2)
    assert (made.cheapest.x, made.cheapest.y, made.whole.x, made.whole.y) == (0, 0, 0, 0)


def test_a_row_stays_on_each_side_of_the_group_and_of_the_label():
    # Without men, UB of the women is 0 whatever their rate; without women, undefined.
    made = policy_map(
        counts_of(men_yes=1, men_no=1),
        x="delete sex=m",
        y="delete sex=w",
        group="sex=w",
        label_value="y",
    )
    assert [limit.text for limit in made.kept] == [
        "at least 1 row of sex=w",
        "at least 1 row of l=y",
        "at least 1 row not of sex=w",
        "at least 1 row not of l=y",
    ]
    assert not made.reached
    assert made.nearest.x <= 1
    assert made.nearest.y <= 149
    (said,) = (s for s in made.sentences if "must stay" in s)
    assert said.startswith("At least 1 row of sex=w, at least 1 row of l=y, at least 1 row not of")


def test_the_bias_of_a_group_that_has_every_row_is_0():
    counts = Counts.from_mapping({("w", "y"): 3, ("w", "n"): 4}, sensitive=["sex"], label="l")
    made = policy_map(counts, x="add sex=w, l=n", y="add sex=w, l=y")
    assert made.zero.name == "everywhere"
    assert (made.cheapest.x, made.cheapest.y) == (0, 0)


def test_an_undefined_bias_is_said():
    counts = counts_of(women_yes=0, women_no=0) + counts_of() - counts_of()
    made = policy_map(counts, x="add sex=w, l=n", y="add sex=w, l=y")
    assert np.isnan(made.ub(0, 0))
    assert made.sentences[0].startswith("UB is undefined now: 0 of the 0 rows of sex=w")
    assert json.loads(made.to_json())["ub"] is None


def test_costs_choose_the_point():
    asked = {"x": "delete sex=m, l=y", "y": "add sex=w, l=y"}
    assert policy_map(counts_of(), **asked).cheapest.x == 0
    assert policy_map(counts_of(), **asked, cost_y=5).cheapest.y == 0


def test_the_cheapest_point_may_be_inside_the_curve():
    # On a hyperbola that bends towards the origin, the cost is least where they touch.
    counts = counts_of(men_yes=1000, men_no=10, women_yes=10, women_no=1000)
    made = policy_map(counts, x="add sex=m, l=n", y="add sex=w, l=y")
    assert (made.cheapest.x, made.cheapest.y) == (pytest.approx(990), pytest.approx(990))


# -------------------------------------------------------------------------------- giving


def test_the_window_can_be_given_and_shows_limits_and_curve_else(adult):
    made = policy_map(adult, x=MEN, y=WOMEN, limits=["x<=4500", "y<=3000"])
    assert 4500 < made.x_max < 6000
    assert 3045 < made.y_max < 4000
    made = policy_map(adult, x=MEN, y=WOMEN, x_max=100, y_max=200)
    x, y, ub = made.surface(5)
    assert (x[-1], y[-1], ub.shape) == (100, 200, (5, 5))
    assert ub[1, 2] == pytest.approx(float(made.ub(50, 50)))


def test_the_dict_is_plain_and_whole(adult):
    made = policy_map(adult, x=FEWER_MEN, y=WOMEN, limits=["y<=3000"], tolerance=0.05)
    found = json.loads(made.to_json(indent=2))
    assert found == json.loads(json.dumps(made.to_dict()))
    keys = "schema n group label_value x y parameters limits zero_curve feasible reached cheapest"
    assert set(f"{keys} nearest whole points sentences fingerprint version time".split()) <= set(
        found
    )
    assert found["zero_curve"]["kind"] == "line"
    assert [limit["text"] for limit in found["limits"]] == ["y<=3000", "x<=6662"]
    assert abs(found["whole"]["ub"]) <= 0.05


def test_text_and_html_say_the_same(adult):
    made = policy_map(adult, x=MEN, y=WOMEN, limits=["y<=3000"])
    text, html = made.text(), made._repr_html_()
    assert repr(made) == text
    for word in ("3,045.08", "163.20", "hyperbola"):
        assert word in text
        assert word in html
    assert "income=&lt;=50K" in html
    assert not {"fair", "compliant"} & set(text.lower().split())


# ---------------------------------------------------------------------------- properties

CELLS = ["sex=m, l=y", "sex=m, l=n", "sex=w, l=y", "sex=w, l=n"]
GROUPS = ["sex=m", "sex=w", "l=y", "l=n"]


@st.composite
def tables(draw, least=1, largest=80):
    rows = [draw(st.integers(least, largest)) for _ in range(4)]
    return counts_of(*rows)


def moves(patterns):
    return st.tuples(st.sampled_from(["add", "delete"]), st.sampled_from(patterns)).map(" ".join)


def maps(patterns, **more):
    return st.builds(
        policy_map,
        tables(),
        x=moves(patterns),
        y=moves(patterns),
        group=st.just("sex=w"),
        label_value=st.just("y"),
        **more,
    )


LIMITS = st.lists(
    st.one_of(
        st.builds(
            "{}*x + {}*y <= {}".format, st.integers(0, 3), st.integers(0, 3), st.integers(0, 99)
        ),
        st.builds("n >= {}".format, st.integers(0, 200)),
        st.builds("x - {}*y >= {}".format, st.integers(0, 3), st.integers(-9, 9)),
        st.builds("cost <= {}".format, st.integers(0, 200)),
    ),
    max_size=3,
)
COSTS = st.sampled_from([0.5, 1.0, 1.7, 4.0])


@pytest.mark.slow
@given(maps(CELLS), st.integers(0, 100), st.integers(0, 100))
def test_ub_is_that_of_the_table_after_the_moves(made, x, y):
    rows = dict.fromkeys(CELLS, 0) | {cell: made.counts.of(cell) for cell in CELLS}
    for move, n in ((made.x, x), (made.y, y)):
        rows[str(move.pattern)] += move.sign * n
    found = float(made.ub(x, y))
    if min(rows.values()) < 0:
        assert np.isnan(found)
        return
    after = Counts.from_mapping(
        {cell: n for cell, n in rows.items() if n}, sensitive=["sex"], label="l"
    )
    if "w" not in after.axis("sex").codes or "y" not in after.label.codes:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(bias_table(after)["sex=w", "y"].ub, abs=1e-12)
        assert float(made.search.surface.exact(x, y)) == pytest.approx(found, abs=1e-12)


@pytest.mark.slow
@given(maps([*CELLS, *GROUPS]))
def test_ub_is_0_along_the_zero_curve(made):
    for line in made.curve(points=41):
        assert len(line) > 1
        x, y = np.array(line).T
        assert (np.abs(made.ub(x, y)) < 1e-9).all()
        assert 0 <= x.min() <= x.max() <= made.x_max
        assert 0 <= y.min() <= y.max() <= made.y_max * (1 + 1e-9)
    for x in (0, made.x_max / 3):
        for y in made.zero_y(x):
            assert abs(float(made.ub(x, y))) < 1e-9
            assert any(abs(x - back) <= 1e-6 * (1 + x) for back in made.zero_x(y)) or _flat(made, y)


def _flat(made, y):
    """Whether the whole line of that y is on the curve, or touches it."""
    return abs(float(made.ub(made.x_max / 2, y))) < 1e-9 or made.zero.name != "line"


@pytest.mark.slow
@given(maps([*CELLS, *GROUPS], limits=LIMITS, cost_x=COSTS, cost_y=COSTS, tolerance=st.just(0.1)))
def test_no_point_of_a_grid_is_cheaper(made):
    x, y = np.array(list(itertools.product(range(0, 120, 7), repeat=2))).T
    least = math.inf if made.cheapest is None else made.cheapest.cost - 1e-9
    # Exact numbers are slow, so they judge only points that floats do not exclude.
    doubtful = (np.abs(made.ub(x, y)) <= 0.1 + 1e-9) & (made.cost_x * x + made.cost_y * y < least)
    assert not [
        (a, b)
        for a, b in zip(x[doubtful].tolist(), y[doubtful].tolist(), strict=True)
        if made.search.allows(a, b) and abs(made.search.surface.exact(a, b)) <= Fraction(1, 10)
    ]
    if made.cheapest is None:
        return
    assert made.cheapest.inside
    assert abs(made.cheapest.ub) <= 0.1 + 1e-9
    if made.whole is not None:
        whole = int(made.whole.x), int(made.whole.y)
        assert made.search.allows(*whole)
        assert abs(made.search.surface.exact(*whole)) <= Fraction(1, 10)
        assert made.whole.cost >= made.cheapest.cost - 1e-9


@pytest.mark.slow
@given(maps(CELLS, limits=LIMITS, cost_x=COSTS, cost_y=COSTS))
def test_no_point_of_the_zero_curve_is_cheaper(made):
    on_curve = [(x, y) for line in made.curve(points=51) for x, y in line]
    allowed = [p for p in on_curve if all(h.holds(*p) for h in made.search.region)]
    if made.cheapest is None:
        assert allowed == []
        assert made.is_empty or made.nearest is not None or np.isnan(made.ub(0, 0))
        return
    assert abs(made.cheapest.ub) < 1e-9
    for x, y in allowed:
        assert made.cheapest.cost <= made.cost_x * x + made.cost_y * y + 1e-6


@pytest.mark.slow
@given(maps([*CELLS, *GROUPS], limits=LIMITS, tolerance=st.sampled_from([0.0, 0.01])))
def test_no_point_of_a_grid_is_nearer_to_0_than_the_nearest(made):
    assume(made.nearest is not None)
    x, y = np.meshgrid(np.linspace(0, made.x_max, 25), np.linspace(0, made.y_max, 25))
    gaps = np.abs(made.ub(x, y))
    nearer = gaps + 1e-6 < abs(made.nearest.ub)
    # Exact numbers are slow, so only points that would be nearer are held to the limits.
    for point in zip(x[nearer].tolist(), y[nearer].tolist(), strict=True):
        assert not all(h.holds(*point) for h in made.search.region)


# --- what the moves do to all groups ---------------------------------------------------------------


def lattice():
    cells = {c: 7 + 5 * i for i, c in enumerate(itertools.product("mw", "ab", "yn"))}
    return Counts.from_mapping(cells, sensitive=["sex", "race"], label="l")


@pytest.mark.parametrize(
    ("x", "y", "at"),
    [
        ("add sex=m, l=n", "add sex=w, l=y", (13, 8)),
        ("delete sex=m", "add sex=w, l=y", (20, 31)),
        ("delete race=a", "delete sex=w, l=n", (11, 0)),
    ],
)
def test_the_effect_on_every_group_is_that_of_measuring_both_tables(x, y, at):
    counts = lattice()
    map_ = policy_map(counts, x=x, y=y, group="sex=w", label_value="y", at=at)
    plan = map_.scenario()
    before, after = bias_table(counts), bias_table(plan.after())
    assert plan.additions + plan.deletions == sum(at)
    assert len(map_.effect.biases.rows) == 8 * 2
    for row in map_.effect.biases.rows:
        assert row.before == pytest.approx(before[str(row.group), row.label].ub)
        assert row.after[0] == pytest.approx(after[str(row.group), row.label].ub)
    changes = [row.change for row in map_.effect.biases.rows]
    assert changes == sorted(changes, reverse=True)
    data = json.loads(json.dumps(map_.to_dict()))
    assert [g["after"] for g in data["effect"]["groups"]] == [
        row.after[0] for row in map_.effect.biases.rows
    ]
    assert data["points"][-1]["name"] == "chosen"
    assert map_.x_max >= at[0]
    assert map_.y_max >= at[1]


def test_a_plan_of_single_cells_has_the_ub_of_the_map():
    counts = lattice()
    moves = {"x": "add sex=m, race=a, l=n", "y": "delete sex=w, race=b, l=n"}
    map_ = policy_map(counts, **moves, group="sex=w, race=b", label_value="n", cost_y=2.5)
    for x, y in ((3, 4), (0, 9), (12, 1)):
        plan = map_.scenario(x, y)
        point = map_.point(x, y)
        measured = bias_table(plan.after())["sex=w, race=b", "n"]
        assert measured.ub == pytest.approx(point.ub)
        assert plan.cost == point.cost
        assert plan.certificate.n_after == point.n


def test_without_a_choice_the_best_point_is_measured():
    moves = {"x": "add sex=w, l=n", "y": "add sex=m, l=y"}
    map_ = policy_map(lattice(), **moves, group="sex=w", label_value="y")
    assert (map_.effect.point.x, map_.effect.point.y) == (map_.whole.x, map_.whole.y)
    plan = map_.scenario()
    assert plan.additions == map_.whole.x + map_.whole.y
    text = map_.text(top=2)
    assert "… and 6 more" in text
    assert "the largest |UB| of all 8 groups goes from" in " ".join(map_.sentences)


def test_no_effect_is_shown_where_no_row_moves_or_no_point_is_inside():
    nothing = policy_map(
        lattice(), x="add sex=m", y="add sex=w", group="sex=w", label_value="y", tolerance=0.9
    )
    assert nothing.effect is None
    assert nothing.to_dict()["effect"] is None
    none = policy_map(lattice(), x="add sex=m, l=n", y="add sex=w, l=y", limits=["x<=1", "x>=2"])
    assert none.effect is None
    with pytest.raises(InputError, match="no point of whole rows is inside all limits"):
        none.scenario()
    assert none.scenario(1, 2).additions == 3


def test_what_cannot_be_a_plan_is_told():
    counts = lattice()
    map_ = policy_map(
        counts, x="add sex=m", y="delete race=a", group="sex=w", label_value="y", at=(9, 9)
    )
    assert map_.effect is None
    assert any(
        "cannot be measured in whole rows: the moves contradict" in s for s in map_.sentences
    )
    with pytest.raises(InputError, match="contradict each other"):
        map_.scenario()
    costs = policy_map(
        counts, x="add sex=m", y="add race=a", group="sex=w", label_value="y", at=(9, 9), cost_x=2
    )
    assert costs.effect is not None
    with pytest.raises(InputError, match="costs 2 by one and 1 by the other"):
        costs.scenario()
    with pytest.raises(InputError, match=r"`at` takes the rows of both moves"):
        policy_map(counts, x="add sex=m", y="add sex=w", group="sex=w", label_value="y", at=(1,))


def test_missing_values_are_values_as_they_are_on_the_map():
    cells = {("m", "y"): 6, ("m", "n"): 9, ("w", "y"): 3, ("w", "n"): 8, (eq.MISSING, "y"): 4}
    counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
    map_ = policy_map(
        counts, x="delete l=y", y="add sex=w, l=n", group="sex=w", label_value="y", at=(3, 2)
    )
    assert map_.scenario().request.plan_missing
    deleted = map_.scenario().delete.cells()
    assert (eq.MISSING, "y") in deleted
    row = next(r for r in map_.effect.biases.rows if str(r.group) == "sex=w" and r.label == "y")
    assert row.before == pytest.approx(map_.points[0].ub)
