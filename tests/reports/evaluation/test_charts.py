from __future__ import annotations

import itertools
import json
import math
import random
import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.reports.charts.axes import signed_axis
from equipoise.reports.charts.vega import PAGE_WIDTH, to_html_fragment, to_svg
from equipoise.reports.evaluation.charts import intervals, labels
from equipoise.reports.evaluation.charts import scores as score_bars
from equipoise.reports.evaluation.charts.differences import difference_chart
from equipoise.reports.evaluation.charts.predictions import prediction_chart
from equipoise.reports.evaluation.charts.relation import relation_chart
from equipoise.reports.evaluation.charts.scores import score_chart
from reports.tables import NASTY

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

NAN = float("nan")
UNP = [["u", "as it is"], ["n", "label frequencies free"], ["p", "label frequencies kept"]]
PN = UNP[:0:-1]
MEASURES = ["accuracy", "precision", "recall"]
MODELS = [
    "logistic regression",
    "gradient boosting",
    "random forest",
    "tree",
    "k-NN",
    "naive Bayes",
]
LONG = "marital status=Married-spouse-absent, race=Amer-Indian-Eskimo, native country=Outlying-US"


def around(middle, half):
    return {"low": middle - half, "high": middle + half}


def scores(versions=("p 10 %", "n 10 %"), plain=("u 10 %",), measures=MEASURES):
    rng = random.Random(1)
    bars = [
        {"version": v, "half": half, "measure": m, "mean": x, **around(x, rng.uniform(0, 0.03))}
        for half, those in (("mitigated", versions), ("as it is", plain))
        for v in those
        for m in measures
        for x in (rng.uniform(0.5, 0.9),)
    ]
    order, halves = [*versions, *plain], ["mitigated", "as it is"]
    return {"measures": list(measures), "bars": bars, "order": order, "halves": halves}


def differences(models=MODELS[:2], measures=MEASURES, versions=PN, size=0.02):
    rng = random.Random(2)
    rows = [
        {"model": model, "version": v, "measure": m, "mean": x, **around(x, w), "clear": abs(x) > w}
        for model in models
        for m in measures
        for v, _ in versions
        for x, w in ((rng.gauss(0, size), rng.uniform(size / 4, size)),)
    ]
    names = {"measures": list(measures), "models": list(models), "versions": versions}
    return {"rows": rows, "unit": "difference to u", **names}


def relations(groups=("sex=Female", "sex=Male"), labels=("<=50K", ">50K"), versions=UNP):
    rng = random.Random(3)
    points = [
        {"group": g, "label": y, "version": v, "ub": ub, "error": e, **around(e, 0.03), "rows": 236}
        for g in groups
        for y in labels
        for start in (rng.uniform(-0.6, 0.8),)
        for i, (v, _) in enumerate(versions)
        for ub, e in ((start / (1 + 4 * i), start / (3 + i) + rng.gauss(0, 0.02)),)
    ]
    titles = {"x": "UB in the training data", "y": "misses beyond those of all rows"}
    return {"points": points, "versions": versions, **titles}


def predictions(groups=("sex=Female", "sex=Male"), versions=UNP):
    rng = random.Random(4)
    pairs = [
        {
            "group": g,
            "label": ">50K",
            "name": f"{g}, income=>50K",
            "data": ub,
            "points": [
                {"version": v, "ub": x, **around(x, 0.05)}
                for v, _ in versions
                for x in (ub * rng.uniform(0.3, 1.3),)
            ],
        }
        for g in groups
        for ub in (rng.uniform(-0.8, 0.8),)
    ]
    return {"pairs": pairs, "versions": versions}


def gone(items, *, ends=(), whole=()):
    """The items, some of them without one of their ends, and some without any number."""
    keys = ("mean", "error", "ub", "low", "high")
    return [
        {**item, "low": NAN}
        if i in ends
        else {**item, **{k: None for k in keys if k in item}}
        if i in whole
        else item
        for i, item in enumerate(items)
    ]


def with_gaps():
    score, difference, relation, prediction = (
        scores(), differences(), relations(), predictions(),
    )  # fmt: skip
    score["bars"] = gone(score["bars"], ends=[0], whole=[1, 7])
    difference["rows"] = gone(difference["rows"], ends=[2], whole=[0, 3])
    relation["points"] = gone(relation["points"], ends=[1], whole=[0, 5])
    first, second = prediction["pairs"]
    first["points"] = gone(first["points"], ends=[1], whole=[0])
    second["data"] = None
    return score, difference, relation, prediction


MANY = [f"{v} {k} %" for k in (5, 10, 15, 20) for v in "pn"]
CASES = {
    "score": (score_chart, scores()),
    "score, one bar": (score_chart, scores(["p"], [], ["accuracy"])),
    "score, 12 versions": (score_chart, scores(MANY, ["u 5 %", "u 10 %", "u 15 %", "u 20 %"])),
    "score, long names": (
        score_chart,
        scores([f"label frequencies kept, {v}" for v in MANY], ["as it is"], [*MEASURES, "F1"]),
    ),
    "score, gaps": (score_chart, with_gaps()[0]),
    "score, nothing": (score_chart, scores([], [])),
    "difference": (difference_chart, differences()),
    "difference, 1 model": (difference_chart, differences(MODELS[:1])),
    "difference, 6 models": (difference_chart, differences(MODELS)),
    "difference, 5 measures": (
        difference_chart,
        differences([*MODELS, LONG], [*MEASURES, "F1", "AUC"], [*PN, ["r", LONG]]),
    ),
    "difference, tiny": (difference_chart, differences(size=1e-5)),
    "difference, gaps": (difference_chart, with_gaps()[1]),
    "difference, nothing": (difference_chart, {**differences(), "rows": []}),
    "relation": (relation_chart, relations()),
    "relation, 20 pairs": (relation_chart, relations([f"town={i}" for i in range(10)])),
    "relation, 7 labels": (relation_chart, relations(["a", LONG], "ABCDEFG")),
    "relation, 1 version": (relation_chart, relations([LONG, NASTY], ["x"], UNP[:1])),
    "relation, gaps": (relation_chart, with_gaps()[2]),
    "relation, nothing": (relation_chart, {**relations(), "points": []}),
    "prediction": (prediction_chart, predictions()),
    "prediction, 20 groups": (prediction_chart, predictions([f"town={i}" for i in range(20)])),
    "prediction, long names": (prediction_chart, predictions([LONG, f"{LONG}, sex=Male"])),
    "prediction, 1 version": (prediction_chart, predictions(versions=UNP[:1])),
    "prediction, gaps": (prediction_chart, with_gaps()[3]),
    "prediction, nothing": (prediction_chart, predictions([])),
}  # fmt: skip


def panels(spec):
    return spec.get("concat") or spec.get("hconcat") or [spec]


def layers(spec):
    return [layer for panel in panels(spec) for layer in panel["layer"]]


def kind(layer):
    mark = layer["mark"]
    return mark if isinstance(mark, str) else mark["type"]


def values(spec, mark, *fields):
    """What layers of a kind draw, if it has the fields."""
    found = [v for layer in layers(spec) if kind(layer) == mark for v in layer["data"]["values"]]
    return [value for value in found if all(field in value for field in fields)]


def scale(spec, channel):
    """The domains of the scale of a channel: a list of one if all layers agree."""
    encoded = [layer["encoding"][channel] for layer in layers(spec) if channel in layer["encoding"]]
    domains = [one["scale"]["domain"] for one in encoded if one.get("scale")]
    return [domain for domain, _ in itertools.groupby(domains)]


@cache
def drawn(name):
    draw, data = CASES[name]
    before = repr(data)
    spec = draw(data)
    assert repr(data) == before
    json.dumps(spec, allow_nan=False)
    return to_html_fragment(spec)


@pytest.mark.parametrize("name", CASES)
def test_every_chart_can_be_drawn_and_fits_the_page(name):
    fragment = drawn(name)
    assert float(ElementTree.fromstring(fragment).get("width")) <= PAGE_WIDTH
    assert not re.search(r'(?:href|src)="|url\((?!#)|<script|NaN', fragment)


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("score, gaps", 9 - 2),
        ("difference, gaps", 12 - 2),
        ("relation, gaps", 12 - 2),
        ("prediction, gaps", 6 - 1 + 1),
    ],
)
def test_every_number_there_is_has_a_mark_that_says_it(name, marks):
    root = ElementTree.fromstring(drawn(name))
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(set(titles)) == len(titles) == marks
    assert sum("…" in title for title in titles) == marks - (2 if "prediction" in name else 1)


# ------------------------------------------------------------------------------ scores


def test_halves_stand_side_by_side_with_their_versions_in_order():
    left, right = score_chart(scores(["p 20 %", "n 10 %"], ["u 10 %"]))["hconcat"]
    assert [panel["title"]["text"] for panel in (left, right)] == ["mitigated", "as it is"]
    assert scale(left, "x") == [["p 20 %", "n 10 %"]]
    assert scale(right, "x") == [["u 10 %"]]
    assert left["width"] == pytest.approx(2 * right["width"])


def test_bars_start_at_zero_and_all_panels_share_one_scale():
    spec = score_chart(scores())
    assert scale(spec, "y") == [[0, 1]]
    axes = [panel["layer"][0]["encoding"]["y"]["axis"] for panel in panels(spec)]
    assert [axis["labelOpacity"] for axis in axes] == [1, 0]
    bars = [layer["encoding"] for layer in layers(spec) if kind(layer) == "bar"]
    assert all("y2" not in bar for bar in bars)
    assert scale(spec, "color") == [MEASURES]


def test_a_bar_without_a_mean_leaves_its_place_free():
    data = scores(["p", "n"], [])
    data["bars"][:3] = gone(data["bars"][:3], whole=range(3))
    spec = score_chart(data)
    assert scale(spec, "x") == [["p", "n"]]
    assert {bar["version"] for bar in values(spec, "bar")} == {"n"}


def test_whiskers_stay_on_the_scale_of_scores():
    data = scores(["p"], [], ["recall"])
    data["bars"][0].update(mean=0.98, low=0.9, high=1.06)
    spec = score_chart(data)
    assert [(w["low"], w["high"]) for w in values(spec, "rule")] == [(0.9, 1.0)]
    assert values(spec, "bar")[0]["about"] == "p, mitigated: recall 0.980 (0.900 … 1.060)"


@pytest.mark.parametrize(
    ("versions", "measures", "text"),
    [(2, 3, r"\d\.\d{3}"), (10, 3, r"\.\d\d"), (10, 6, ""), (1, 1, r"\d\.\d{3}")],
)
def test_means_are_written_as_far_as_there_is_room(versions, measures, text):
    names = [f"v{i}" for i in range(versions)]
    spec = score_chart(scores(names, ["u"], [f"m{i}" for i in range(measures)]))
    assert all(re.fullmatch(text, word["text"]) for word in values(spec, "text"))


# ------------------------------------------------------------------------- differences


def test_measures_stand_three_abreast_on_one_scale_that_holds_all_of_it():
    data = differences(measures=[*MEASURES, "F1"])
    spec = difference_chart(data)
    assert spec["columns"] == 3
    assert [panel["title"]["text"] for panel in spec["concat"]] == data["measures"]
    ((low, high),) = scale(spec, "x")
    assert low < min(0, *(row["low"] for row in data["rows"]))
    assert high > max(0, *(row["high"] for row in data["rows"]))


def test_models_are_named_once_in_each_line_of_panels():
    spec = difference_chart(differences(measures=[*MEASURES, "F1"]))
    named = [
        {layer["encoding"]["y"]["axis"]["labels"] for layer in layers(panel) if "y" in layer["encoding"]}
        for panel in spec["concat"]
    ]  # fmt: skip
    assert named == [{True}, {False}, {False}, {True}]


def test_a_mark_is_filled_if_it_is_clear_of_zero():
    data = differences(MODELS[:1], ["recall"])
    data["rows"][0].update(clear=True)
    data["rows"][1].update(clear=False)
    svg = to_svg(difference_chart(data))
    marks = re.findall(r'<path aria-label="[^"]*, ([pn]): [^>]*>', svg)
    shown = dict(zip(marks, re.findall(r'<path aria-label="[^>]*>', svg), strict=True))
    assert 'fill-opacity="0"' not in shown["p"]
    assert 'fill-opacity="0"' in shown["n"]


def test_one_wild_interval_leaves_the_scale_to_the_others_and_gets_an_arrow():
    data = differences(MODELS, size=0.01)
    data["rows"][0].update(low=-5.0, high=0.05)
    spec = difference_chart(data)
    ((low, high),) = scale(spec, "x")
    assert -0.2 < low < high < 0.2
    (arrow,) = values(spec, "point", "arrow")
    assert (arrow["at"], arrow["arrow"]) == (low, "triangle-left")
    assert min(rule["low"] for rule in values(spec, "rule", "low")) == low
    assert "(−5.000 … +0.050)" in arrow["about"]


def test_intervals_that_are_all_wide_are_all_shown():
    data = differences(MODELS)
    for row in data["rows"]:
        row.update(low=row["mean"] - 1, high=row["mean"] + 1.2)
    spec = difference_chart(data)
    ((low, high),) = scale(spec, "x")
    assert low < -1 < 1.2 < high
    assert not values(spec, "point", "arrow")


# ---------------------------------------------------------------------------- relation


def test_a_line_joins_a_pair_from_version_to_version():
    data = relations()
    random.Random(0).shuffle(data["points"])
    spec = relation_chart(data)
    (line,) = [layer for layer in layers(spec) if kind(layer) == "line"]
    assert [d["field"] for d in line["encoding"]["detail"]] == ["group", "label"]
    assert line["encoding"]["order"]["field"] == "i"
    order = {point["name"]: point["i"] for point in line["data"]["values"]}
    assert sorted(order, key=order.get) == [f"{key}: {words}" for key, words in UNP]


@pytest.mark.slow
def test_names_stand_beside_the_first_version_of_few_groups_and_are_left_out_of_many():
    data = relations([f"town={i}" for i in range(6)])
    words = values(relation_chart(data), "text")
    starts = {(p["ub"], p["error"]) for p in data["points"] if p["version"] == "u"}
    assert sorted(w["text"] for w in words) == sorted(f"town={i}" for i in range(6) for _ in "ab")
    assert all(any(math.dist(start, (w["x2"], w["y2"])) < 1e-9 for start in starts) for w in words)
    assert not values(relation_chart(relations([f"town={i}" for i in range(7)])), "text")


def test_labels_have_shapes_unless_they_are_too_many_and_then_they_are_named():
    few, many = (relation_chart(relations(["a"], "ABCDEFG"[:n])) for n in (6, 7))
    assert scale(few, "shape") == [list("ABCDEF")]
    assert len({p["shape"] for p in values(few, "point", "shape")}) == 6
    assert {w["text"] for w in values(few, "text")} == {"a"}
    assert scale(many, "shape") == []
    assert {p["shape"] for p in values(many, "point", "shape")} == {"circle"}
    assert {w["text"] for w in values(many, "text")} == {f"a → {y}" for y in "ABCDEFG"}


def test_a_point_tells_all_that_is_known_of_it():
    data = relations(["sex=Female"], [">50K"], UNP[:1])
    data["points"][0].update(ub=0.55, error=0.12, low=0.1, high=0.14, rows=1236)
    (point,) = values(relation_chart(data), "point", "shape")
    told = "sex=Female → >50K, u: UB +0.550, error +0.120 (+0.100 … +0.140), 1,236 rows"
    assert point["about"] == told


def boxes(words, frame):
    sides = {"left": 0, "right": 1, "center": 0.5}
    for word in words:
        left, top = frame.pixels((word["x"], word["y"]))
        width = intervals.text_width(word["text"], labels.WORDS)
        left -= sides[word["align"]] * width
        yield left, top - 7, left + width, top + 7


def apart(one, other):
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_words_of_points_that_nearly_coincide_do_not_cover_each_other():
    frame = labels.Frame((-1, 1), (-1, 1))
    names = [(f"a group with a name {i}", (0.002 * i, 0.001 * i)) for i in range(6)]
    words = labels.placed(names, [], frame)
    assert all(itertools.starmap(apart, itertools.combinations(boxes(words, frame), 2)))
    assert any(word["far"] for word in words)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=25), st.floats(0, 1), st.floats(0, 1)),
             max_size=12)
)  # fmt: skip
def test_words_stay_on_the_chart_and_near_their_points(found):
    frame = labels.Frame((0, 1), (0, 1))
    words = labels.placed([(text, (x, y)) for text, x, y in found], frame.zeros(), frame)
    assert [word["text"] for word in words] == [text for text, _, _ in found]
    for word, (left, top, right, bottom) in zip(words, boxes(words, frame), strict=True):
        assert left >= -1e-6
        assert top >= -1e-6
        assert right <= frame.width + 1e-6
        assert bottom <= frame.height + 1e-6
        place, spot = (frame.pixels((word[x], word[y])) for x, y in (("x", "y"), ("x2", "y2")))
        assert math.dist(place, spot) < 45


# ------------------------------------------------------------------------- predictions


def test_pairs_keep_their_order_and_the_data_has_a_tick_of_its_own():
    data = predictions(["z=1", "a=2", "m=3"])
    data["pairs"][1]["data"] = 0.0
    spec = prediction_chart(data)
    assert scale(spec, "y") == [[pair["name"] for pair in data["pairs"]]]
    ticks = values(spec, "tick")
    assert [(t["pair"], t["ub"]) for t in ticks] == [(p["name"], p["data"]) for p in data["pairs"]]
    assert len(values(spec, "rule", "low")) == 9


def test_the_scale_of_predictions_holds_every_dot_every_tick_and_zero():
    data = predictions(["a", "b"])
    data["pairs"][0]["data"] = -7.5
    ((low, high),) = scale(prediction_chart(data), "x")
    assert low < -7.5
    assert high > 0


# ------------------------------------------------------------------------------ shared

LACKING = list(itertools.product([0.5, None, NAN], [0.4, None, NAN], [0.7, None, NAN]))
"""A number and the ends of its interval, each there or not."""


def lacking(draw, data, items, value):
    """How many numbers and whiskers are drawn of items that lack some in every way."""
    for item, numbers in zip(items, LACKING, strict=True):
        item.update(zip((value, "low", "high"), numbers, strict=True))
    spec = draw(data)
    json.dumps(spec, allow_nan=False)
    told = [v for mark in ("bar", "point") for v in values(spec, mark, "about")]
    return {v["about"] for v in told}, values(spec, "rule", "low")


names = [f"v{i}" for i in range(27)]
ALL = [
    (score_chart, scores(names, [], ["recall"]), "bars", "mean"),
    (difference_chart, differences(names, ["recall"], PN[:1]), "rows", "mean"),
    (relation_chart, relations(names, [">50K"], UNP[:1]), "points", "error"),
]


@pytest.mark.parametrize(("draw", "data", "key", "value"), ALL)
def test_whatever_numbers_lack_the_rest_is_drawn(draw, data, key, value):
    told, whiskers = lacking(draw, data, data[key], value)
    assert (len(told), len(whiskers)) == (9, 1)


def test_whatever_numbers_of_predictions_lack_the_rest_is_drawn():
    data = predictions(names, UNP[:1])
    points = [point for pair in data["pairs"] for point in pair["points"]]
    told, whiskers = lacking(prediction_chart, data, points, "ub")
    assert (len(told), len(whiskers)) == (9, 1)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 5)), max_size=8))
def test_a_scale_holds_zero_and_every_number(numbers):
    items = [{"ub": x, **around(x, w)} for x, w in numbers]
    low, high = intervals.limits(items, "ub")
    assert low < min([0, *(x for x, _ in numbers)])
    assert high > max([0, *(x for x, _ in numbers)])


@given(st.floats(1e-6, 1e4), st.floats(0, 1), st.integers(140, 800))
@example(span=10_000.0, share=0.0, room=150)
def test_an_axis_has_room_for_its_numbers_and_zero_is_one_of_them(span, share, room):
    ends = (-share * span, (1 - share) * span)
    axis = signed_axis(ends, room)
    marks, digits = axis["values"], int(axis["format"][2:-1])
    assert 0 in marks
    assert all(ends[0] - 1e-9 <= mark <= ends[1] + 1e-9 for mark in marks)
    assert len({f"{mark:.{digits}f}" for mark in marks}) == len(marks)
    widest = max(intervals.text_width(f"{mark:+.{digits}f}") for mark in marks)
    assert all((b - a) / span * room > widest for a, b in itertools.pairwise(marks))


@pytest.mark.slow
def test_a_version_has_the_same_colour_on_every_chart():
    specs = [
        difference_chart(differences()),
        relation_chart(relations()),
        prediction_chart(predictions()),
    ]
    seen = {(v["name"], v["colour"]) for spec in specs for v in values(spec, "point", "colour")}
    assert len(seen) == len(UNP)


SEEN = {
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""What of linear red, green and blue is seen (Machado, Oliveira and Fernandes 2009)."""


def seen(colour, sight):
    """A colour as lightness and two differences of colours (CIELAB)."""
    raw = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(raw <= 0.04045, raw / 12.92, ((raw + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(SEEN[sight]) @ linear, 0, 1)
    to_xyz = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]]
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in to_xyz @ linear)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("sight", SEEN)
def test_colours_are_told_apart_by_colour_blind_people(sight):
    versions = [[key, ""] for key in "unpabcdef"]
    looks = intervals.version_looks(versions).values()
    for colours in (score_bars._MEASURES, [look["colour"] for look in looks]):
        pairs = list(itertools.combinations([seen(colour, sight) for colour in colours], 2))
        assert min(math.dist(*pair) for pair in pairs) > 15
        assert (
            min(
                math.dist(*pair)
                for pair in itertools.combinations(
                    [seen(colour, sight) for colour in list(colours)[:3]], 2
                )
            )
            > 25
        )
