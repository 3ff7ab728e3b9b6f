"""The bias table against sums over raw rows, one row at a time."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.counts import Counts
from equipoise.errors import InputError, PatternError, UnknownName
from equipoise.lattice import Group
from equipoise.measures.request import MeasureRequest
from equipoise.measures.row import NOTES, Row
from equipoise.measures.table import BiasTable, bias_table
from equipoise.measures.uncertainty.p_values import adjust
from equipoise.values import MISSING

QUICK = settings(max_examples=60)

VALUES = st.sampled_from(["m", "w", "*", "nan", "<missing>", "a=b, c", None])
LABELS = st.sampled_from(["yes", "no", "*"])
NUMBERS = (
    "rate",
    "overall_rate",
    "ub",
    "ub_low",
    "ub_high",
    "p_value",
    "q_value",
    "expected",
    "missing_rows",
)


@st.composite
def raw_rows(draw: st.DrawFn, least: int = 1, most: int = 25):
    """Rows of a table: one to three attributes with missing values, then a label."""
    width = draw(st.integers(1, 3))
    values = draw(st.lists(VALUES, min_size=1, max_size=3, unique=True))
    row = st.tuples(*[st.sampled_from(values)] * width, LABELS)
    return draw(st.lists(row, min_size=least, max_size=most))


def names_of(rows) -> list[str]:
    return [f"s{i}" for i in range(len(rows[0]) - 1)]


def counted(rows, **options) -> Counts:
    names = [*names_of(rows), "label"]
    columns = {n: pa.array([r[i] for r in rows], pa.string()) for i, n in enumerate(names)}
    if "weight" in options:
        columns["w"] = pa.array(options.pop("weight"), pa.float64())
        options["weight"] = "w"
    return Counts.from_frame(pa.table(columns), sensitive=names[:-1], label="label", **options)


def brute_force(rows, weights=None) -> dict[tuple[Group, str], tuple[float, float, Fraction]]:
    """For each group and label: weight of the group, of the cell, and UB (None if undefined)."""
    weights = weights or [1] * len(rows)
    names = names_of(rows)
    total, labels, found = sum(weights), Counter(), {}
    for row, w in zip(rows, weights, strict=True):
        labels[row[-1]] += w
    for order in range(1, len(names) + 1):
        for kept in itertools.combinations(range(len(names)), order):
            groups, cells = Counter(), Counter()
            for row, w in zip(rows, weights, strict=True):
                key = tuple(row[i] for i in kept)
                groups[key] += w
                cells[key, row[-1]] += w
            for key, y in itertools.product(groups, labels):
                values = (MISSING if v is None else v for v in key)
                group = Group(dict(zip((names[i] for i in kept), values, strict=True)))
                size, cell = groups[key], cells[key, y]
                known = size and labels[y]
                ub = 1 - Fraction(cell * total) / Fraction(size * labels[y]) if known else None
                found[group, y] = size, cell, ub
    return found


def by_key(table: BiasTable) -> dict[tuple[Group, object], Row]:
    return {(row.group, row.label): row for row in table}


def plain(rows) -> list[dict[str, object]]:
    """Rows that can be compared: nan is not nan, but null is null."""
    return [row.to_dict() for row in rows]


def sizes(a: int, b: int) -> Counts:
    """A table with a rows of the label and b without in one half, and 50 and 50 in the other."""
    cells = {("w", "yes"): a, ("w", "no"): b, ("m", "yes"): 50, ("m", "no"): 50}
    return Counts.from_mapping(cells, sensitive=["sex"], label="hired")


XOR = Counts.from_mapping(
    {(a, b, str(int(a != b))): 25 for a, b in itertools.product("01", "01")},
    sensitive=["a", "b"],
    label="y",
)
"""The label is 1 where a and b differ: neither alone says anything of it."""


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.slow
@given(raw_rows())
def test_rows_are_those_of_brute_force(rows) -> None:
    table = bias_table(counted(rows), MeasureRequest(uncertainty=False))
    expected, found = brute_force(rows), by_key(table)
    assert found.keys() == expected.keys()
    assert len(table) == len(found)
    share = {y: n / len(rows) for y, n in Counter(r[-1] for r in rows).items()}
    for key, (size, cell, ub) in expected.items():
        row = found[key]
        assert (row.n_group, row.n_cell) == (size, cell)
        assert row.ub == float(ub)
        assert_allclose(
            (row.rate, row.overall_rate, row.expected, row.missing_rows),
            (cell / size, share[key[1]], size * share[key[1]], size * share[key[1]] - cell),
            rtol=1e-12,
            atol=1e-12,
        )


@given(raw_rows())
@QUICK
def test_a_row_is_found_by_its_printed_pattern(rows) -> None:
    table = bias_table(counted(rows), MeasureRequest(uncertainty=False))
    for row in table:
        named = [table[str(row.group), row.label], table[dict(row.group), row.label]]
        assert plain(named) == plain([row, row])


@pytest.mark.slow
@given(raw_rows(least=4))
@QUICK
def test_uncertainty_goes_with_its_row(rows) -> None:
    table = bias_table(counted(rows))
    found = list(table)
    for row in found:
        assert row.ub_low <= row.ub + 1e-12
        assert row.ub_high >= row.ub - 1e-12
    p = np.array([row.p_value for row in found])
    assert_allclose([row.q_value for row in found], adjust(p), rtol=1e-12)
    bare = bias_table(counted(rows), MeasureRequest(uncertainty=False))
    assert all(math.isnan(v) for r in bare for v in (r.ub_low, r.ub_high, r.p_value, r.q_value))


@pytest.mark.slow
@given(raw_rows(), st.integers(1, 6), st.integers(1, 3))
def test_pruning_is_leaving_out(rows, least: int, order: int) -> None:
    counts = counted(rows)
    pruned = bias_table(counts, MeasureRequest(min_count=least, max_order=order, uncertainty=False))
    full = bias_table(counts, MeasureRequest(uncertainty=False))
    kept = [r for r in full if r.n_group >= least and len(r.group) <= order]
    assert plain(pruned) == plain(kept)


@pytest.mark.slow
@given(raw_rows(), st.data())
def test_whole_weights_are_repeated_rows(rows, data) -> None:
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))
    table = bias_table(counted(rows, weight=weights), MeasureRequest(uncertainty=False))
    repeated = [row for row, w in zip(rows, weights, strict=True) for _ in range(w)]
    by_rows = by_key(bias_table(counted(repeated), MeasureRequest(uncertainty=False)))
    unweighted = brute_force(rows)
    for row in table:
        twin = by_rows[row.group, row.label]
        for name in ("ub", "rate", "overall_rate", "expected", "missing_rows"):
            assert_allclose(getattr(row, name), getattr(twin, name), rtol=1e-12, atol=1e-12)
        assert (row.n_group, row.n_cell) == unweighted[row.group, row.label][:2]


@given(raw_rows(), st.data())
@QUICK
def test_effective_sizes_are_kishs(rows, data) -> None:
    weight = st.sampled_from([0.25, 0.5, 1.0, 3.0])
    weights = data.draw(st.lists(weight, min_size=len(rows), max_size=len(rows)))
    measured = bias_table(counted(rows, weight=weights)).measured
    inside, outside = measured.effective_sizes
    names = names_of(rows)
    for line in range(len(measured.lattice)):
        group = measured.group(line)
        split = {True: [], False: []}
        for row, w in zip(rows, weights, strict=True):
            values = {n: MISSING if v is None else v for n, v in zip(names, row, strict=False)}
            split[group.matches(Group(values))].append(w)
        for found, own in ((inside, split[True]), (outside, split[False])):
            if own:
                kish = sum(own) ** 2 / sum(w * w for w in own)
                assert_allclose(found[line, 0], kish, rtol=1e-12)


def test_equal_weights_say_no_more_than_the_rows() -> None:
    rows = [("w", "yes")] * 12 + [("w", "no")] * 30 + [("m", "yes")] * 40 + [("m", "no")] * 30
    plain = bias_table(counted(rows))
    for factor in (0.1, 1.0, 1000.0):
        for row in bias_table(counted(rows, weight=[factor] * len(rows))):
            twin = plain[row.group, row.label]
            for name in ("ub", "ub_low", "ub_high", "p_value", "q_value"):
                assert_allclose(getattr(row, name), getattr(twin, name), rtol=1e-9)


# --- comparing -----------------------------------------------------------------------------------


def rates_of(rows) -> dict[tuple[Group, str], Fraction]:
    return {key: Fraction(cell, size) for key, (size, cell, _) in brute_force(rows).items()}


def ratio_or_nan(rate: Fraction, other: Fraction | None) -> float:
    return float(rate / other) if other else math.nan


@given(raw_rows())
@QUICK
def test_against_the_rest(rows) -> None:
    options = MeasureRequest(uncertainty=False, measures=("impact-ratio",))
    labels, expected = Counter(r[-1] for r in rows), brute_force(rows)
    for row in bias_table(counted(rows), options):
        size, cell, _ = expected[row.group, row.label]
        rest = len(rows) - size
        other = Fraction(labels[row.label] - cell, rest) if rest else None
        assert_allclose(
            row.measures["impact_ratio"], ratio_or_nan(Fraction(cell, size), other), rtol=1e-12
        )


@pytest.mark.slow
@given(raw_rows())
@QUICK
def test_against_the_best_off_group_of_the_same_attributes(rows) -> None:
    """Groups too small to say anything count only where all are too small."""
    options = MeasureRequest(uncertainty=False, measures=("impact_ratio",), reference="best")
    rates, table = rates_of(rows), bias_table(counted(rows), options)
    small = {key: row.note is not None for key, row in by_key(table).items()}
    for row in table:
        _, best = max(
            (not small[g, y], rate)
            for (g, y), rate in rates.items()
            if y == row.label and g.keys() == row.group.keys()
        )
        expected = ratio_or_nan(rates[row.group, row.label], best)
        assert_allclose(row.measures["impact_ratio"], expected, rtol=1e-12)


@given(raw_rows(), st.data())
@QUICK
def test_against_a_named_group(rows, data) -> None:
    rates = rates_of(rows)
    named = data.draw(st.sampled_from(sorted({g for g, _ in rates}, key=str)))
    options = MeasureRequest(uncertainty=False, measures=("mean_difference",), reference=str(named))
    for row in bias_table(counted(rows), options):
        expected = rates[named, row.label] - rates[row.group, row.label]
        assert_allclose(row.measures["mean_difference"], float(expected), atol=1e-12)


@pytest.mark.slow
def test_fractional_weights_leave_no_rounding_crumbs_in_the_rest() -> None:
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1, and a rate of 1e-17 is not a rate."""
    rows = [("w", a, b, "yes") for a, b in itertools.product("xy", "xy")]
    rows += [("w", "x", "x", "no"), ("m", "x", "x", "no")]
    for weights in itertools.product([0.1, 0.2, 0.3, 0.7], repeat=4):
        counts = counted(rows, weight=[*weights, 0.7, 0.4])
        table = bias_table(counts, MeasureRequest(measures=("impact_ratio",), uncertainty=False))
        assert math.isnan(table["s0=w", "yes"].measures["impact_ratio"])
        assert table["s0=m", "yes"].measures["impact_ratio"] == 0


def test_a_group_without_weight_spoils_nobody_elses_reference() -> None:
    rows = [("w", "yes"), ("w", "no"), ("m", "yes"), ("x", "no")]
    options = MeasureRequest(measures=("impact_ratio",), reference="best")
    table = bias_table(counted(rows, weight=[1, 1, 3, 0]), options)
    assert table["s0=w", "yes"].measures["impact_ratio"] == 0.5


@pytest.mark.parametrize(
    ("reference", "error"),
    [("bset", "Did you mean .best"), ("sec=m", "Did you mean 'sex'"), ("sex=n", "has no value n")],
)
def test_an_unknown_reference_is_refused_before_it_is_used(reference: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        bias_table(sizes(10, 20), MeasureRequest(reference=reference))


# --- hidden groups -------------------------------------------------------------------------------


def test_xor_is_hidden_from_each_attribute_alone() -> None:
    table = bias_table(XOR)
    single, double = ([r for r in table if len(r.group) == n] for n in (1, 2))
    assert {r.ub for r in single} == {0.0}
    assert sorted({r.ub for r in double}) == [-1.0, 1.0]
    assert not any(r.hidden for r in single)
    assert len(double) == 8
    assert list(table.filter(hidden=True)) == double
    assert not len(bias_table(XOR, MeasureRequest(limit=1)).filter(hidden=True))


def test_parity_of_three_shows_only_in_the_finest_groups() -> None:
    cells = {(*bits, str(sum(map(int, bits)) % 2)): 7 for bits in itertools.product("01", repeat=3)}
    counts = Counts.from_mapping(cells, sensitive=["a", "b", "c"], label="y")
    hidden = list(bias_table(counts).filter(hidden=True))
    assert len(hidden) == 16
    assert {len(row.group) for row in hidden} == {3}
    assert {row.ub for row in hidden} == {-1.0, 1.0}
    assert not len(bias_table(counts, MeasureRequest(max_order=2)).filter(hidden=True))


@pytest.mark.slow
@given(raw_rows(), st.sampled_from([0.0, 0.125, 0.25, 0.5]))
def test_hidden_is_outside_with_every_parent_inside(rows, limit: float) -> None:
    biases = {key: ub for key, (_, _, ub) in brute_force(rows).items()}

    def is_hidden(group: Group, label: str) -> bool:
        parents = [Group({k: v for k, v in group.items() if k != name}) for name in group]
        return (
            len(group) > 1
            and abs(biases[group, label]) > limit
            and all(abs(biases[p, label]) <= limit for p in parents)
        )

    table = bias_table(counted(rows), MeasureRequest(limit=limit, uncertainty=False))
    assert {k: r.hidden for k, r in by_key(table).items()} == {k: is_hidden(*k) for k in biases}


# --- choosing ------------------------------------------------------------------------------------


def in_order(values) -> bool:
    return all(a <= b for a, b in itertools.pairwise(values))


@pytest.mark.slow
@given(raw_rows(least=2))
@QUICK
def test_sorting_keeps_all_rows_and_orders_them(rows) -> None:
    table = bias_table(counted(rows))
    for by in ("worst", "ub", "group", "n", "p"):
        assert sorted(map(repr, table.sort(by))) == sorted(map(repr, table))
    worst = list(table.sort("worst"))
    assert in_order((not r.evident, r.note is not None, -round(abs(r.ub), 9)) for r in worst)
    assert in_order(-r.ub for r in table.sort("ub"))
    assert in_order(-r.n_group for r in table.sort("n"))
    assert in_order(r.p_value for r in table.sort("p") if not math.isnan(r.p_value))
    assert plain(table.sort("ub").sort("group")) == plain(table)
    assert plain(table.worst(3)) == plain(worst[:3])
    assert len(table.top(0)) == 0
    assert len(table.top(None)) == len(table)


def test_worst_puts_rows_that_say_nothing_last() -> None:
    counts = sizes(40, 60) + Counts.from_mapping({("x", "no"): 1}, sensitive=["sex"], label="hired")
    worst = list(bias_table(counts).worst())
    assert [str(r.group) for r in worst[-2:]] == ["sex=x", "sex=x"]
    assert abs(worst[-2].ub) == 1
    assert {r.note for r in worst[-2:]} == {"too small to say"}


def rare() -> Counts:
    """One of 150 rows has the label 'force'; a group of one row has it, and one of two has it twice."""
    cells = {("m", "a", "none"): 9000, ("m", "b", "none"): 6000, ("w", "a", "none"): 5000}
    cells |= {("m", "a", "force"): 90, ("m", "b", "force"): 40, ("w", "a", "force"): 10}
    cells |= {("x", "c", "force"): 1, ("w", "b", "force"): 2}
    return Counts.from_mapping(cells, sensitive=["sex", "town"], label="used")


def test_a_group_of_one_row_leads_no_table() -> None:
    """Its UB is −139, and chance alone would give it only once in 140 such rows."""
    table = bias_table(rare())
    lone = table["sex=x", "force"]
    assert lone.ub < -100
    assert lone.p_value < 0.05
    assert (lone.note, lone.evident) == ("rests on one row", False)
    worst = list(table.worst())
    assert worst[0].evident
    assert [r.evident for r in worst] == sorted((r.evident for r in worst), reverse=True)
    assert table["sex=x", "none"].note == "rests on one row"  # the same row, seen from the rest


def test_a_row_is_evident_if_more_than_chance_or_if_surely_inside_the_limit() -> None:
    for row in bias_table(rare(), MeasureRequest(limit=0.2)):
        inside = row.ub_low >= -0.2 and row.ub_high <= 0.2
        assert row.evident == (row.note is None and (row.q_value < 0.05 or inside))


def test_a_table_large_enough_has_no_row_that_rests_on_one_row_inside_the_limit() -> None:
    cells = {("m", "y"): 999, ("m", "n"): 1, ("w", "y"): 100_000}
    table = bias_table(Counts.from_mapping(cells, sensitive=["sex"], label="l"))
    assert table["sex=m", "y"].note is None
    assert table["sex=m", "y"].evident


@pytest.mark.slow
@given(raw_rows(least=2), st.integers(0, 9))
@QUICK
def test_the_first_rows_are_the_worst_unless_sorted_otherwise(rows, n: int) -> None:
    table = bias_table(counted(rows))
    assert plain(table.top(n)) == plain(table.worst(n)) == plain(list(table.worst())[:n])
    label = table.counts.label.values[0]
    some = table.filter(label_value=label)
    assert plain(some.top(n)) == plain(list(some.sort("worst"))[:n])
    assert plain(table.sort("group").top(n)) == plain(list(table)[:n])
    assert plain(table.sort("n").filter(label_value=label).top(n)) == plain(
        [r for r in table.sort("n") if r.label == label][:n]
    )


def test_the_line_stands_above_the_first_row_that_does_not_tell() -> None:
    table = bias_table(rare())
    worst = table.worst()
    first = [r.evident for r in worst].index(False)
    assert worst.inconclusive_from == first > 0
    assert table.sort("n").inconclusive_from is None
    assert worst.top(first).inconclusive_from is None
    for text in (repr(worst), worst._repr_html_()):
        assert text.count("too few rows to tell") == 1
    lines = repr(worst).splitlines()[4:]
    assert "too few rows to tell" in lines[first]


@given(raw_rows(), st.data())
@QUICK
def test_filtering_keeps_groups_inside_and_labels_named(rows, data) -> None:
    table = bias_table(counted(rows), MeasureRequest(uncertainty=False))
    every = list(table)
    label = data.draw(st.sampled_from([r.label for r in every]))
    group = data.draw(st.sampled_from([r.group for r in every]))
    inside = [r for r in every if group.matches(r.group)]
    of_label = [r for r in every if r.label == label]
    both = [r for r in inside if r.label == label]
    assert plain(table.filter(label_value=label)) == plain(of_label)
    assert plain(table.filter(group=str(group))) == plain(inside)
    assert plain(table.filter(group=group, label_value=[label])) == plain(both)
    assert plain(table.filter(label_value=sorted({r.label for r in every}))) == plain(every)


def test_choosing_refuses_what_is_not_there() -> None:
    table = bias_table(XOR)
    with pytest.raises(InputError, match=r"`sort` must be one of .*Did you mean 'worst'"):
        table.sort("wurst")
    with pytest.raises(PatternError, match="names the label"):
        table.filter(group="y=1")
    with pytest.raises(PatternError, match="names the label"):
        table["y=1", "1"]
    with pytest.raises(PatternError, match="'a' has no value 7; it has: 0, 1"):
        table.filter(group="a=7")
    with pytest.raises(PatternError, match="'y' has no value 2"):
        table["a=1", "2"]
    with pytest.raises(PatternError, match="`min_count` or `max_order` leaves it"):
        bias_table(XOR, MeasureRequest(max_order=1))["a=1, b=1", "1"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"min_count": 0}, "`min_count` must be a whole number of at least 1, not 0"),
        ({"max_order": 0}, "`max_order` must be a whole number of at least 1"),
        ({"limit": -0.1}, "`limit` must be a number of at least 0"),
        ({"confidence": 1.0}, "`confidence` must be a number above 0 and below 1"),
        ({"sampling": "row"}, "`sampling` must be one of 'rows', 'groups', not 'row'"),
        ({"adjust": "holm"}, "`adjust` must be one of"),
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, object], error: str) -> None:
    with pytest.raises(InputError, match=error):
        MeasureRequest(**wrong)


def test_unknown_measures_and_favourable_labels_are_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'lift'"):
        MeasureRequest(measures=("lfit",))
    with pytest.raises(PatternError, match="'y' has no value yes"):
        bias_table(XOR, MeasureRequest(favourable="yes"))


# --- giving --------------------------------------------------------------------------------------


def test_json_has_the_documented_keys() -> None:
    rows = [("m", None, "yes"), ("m", "b", "no"), ("w", "b", "yes"), ("w", "b", "no")]
    counts = counted(rows)
    data = json.loads(bias_table(counts, MeasureRequest(measures=("lift",))).to_json())
    assert list(data) == [
        "schema",
        "n",
        "sensitive",
        "label",
        "labels",
        "missing_values",
        "dropped",
        "skipped",
        "bins",
        "reading",
        "parameters",
        "fingerprint",
        "version",
        "time",
        "four_fifths",
        "rows",
    ]
    assert data["schema"] == "equipoise.measure/1"
    assert data["four_fifths"] is None
    assert data["n"] == 4
    assert data["sensitive"] == ["s0", "s1"]
    assert data["label"] == "label"
    assert sorted(data["labels"]) == ["no", "yes"]
    assert data["missing_values"] == {"s0": 0, "s1": 1, "label": 0}
    assert data["bins"] == {}
    assert data["fingerprint"] == counts.fingerprint
    for row in data["rows"]:
        assert list(row) == [
            *("group", "label", "n_group", "n_cell", *NUMBERS, "hidden", "evident", "note", "lift")
        ]


def test_json_leaves_any_out_and_writes_missing_as_null() -> None:
    rows = [("m", None, "yes"), ("m", "b", "no"), ("w", "b", "yes"), ("w", "b", "no")]
    groups = [r["group"] for r in bias_table(counted(rows)).to_dict()["rows"]]
    assert {"s0": "m", "s1": None} in groups
    assert {"s1": None} in groups
    assert {"s0": "m"} in groups
    assert {} not in groups
    assert len(groups) == 2 * (2 + 2 + 3)


@given(raw_rows())
@QUICK
def test_json_is_the_rows_with_null_for_what_is_undefined(rows) -> None:
    table = bias_table(counted(rows))
    data = json.loads(table.to_json(), parse_constant=lambda c: pytest.fail(f"{c} is not JSON"))
    assert len(data["rows"]) == len(table)
    for plain, row in zip(data["rows"], table, strict=True):
        assert plain["group"] == {k: None if v is MISSING else v for k, v in row.group.items()}
        for name in ("label", "n_group", "n_cell", "hidden", "note"):
            assert plain[name] == getattr(row, name)
        for name in NUMBERS:
            number = getattr(row, name)
            assert plain[name] == (None if math.isnan(number) else number)


def test_json_can_be_written_with_no_limit_and_shows_bins() -> None:
    frame = pa.table({"age": [20, 30, 40, None], "y": ["1", "0", "1", "0"]})
    counts = Counts.from_frame(frame, sensitive=["age"], label="y", bins={"age": (25, 35)})
    data = json.loads(bias_table(counts, MeasureRequest(limit=math.inf)).to_json())
    assert data["bins"] == {"age": [25.0, 35.0]}
    assert data["parameters"]["limit"] is None
    assert [r["group"]["age"] for r in data["rows"][::2]] == ["<25", "25 to <35", ">=35", None]


@pytest.mark.slow
@given(raw_rows())
@settings(max_examples=15)
def test_frames_agree_with_the_rows(rows) -> None:
    options = MeasureRequest(measures=("lift", "odds-ratio-group-over-reference"), limit=0.2)
    table = bias_table(counted(rows), options).sort("ub")
    arrow = table.to_arrow()
    assert arrow.num_rows == len(table)
    lines = arrow.to_pylist()
    frames = [table.to_pandas().to_dict("records"), table.to_polars().to_dicts()]
    names = names_of(rows)
    for i, row in enumerate(table):
        line = lines[i]
        assert line["group"] == str(row.group)
        assert {n: line[n] for n in names} == {
            n: str(row.group[n]) if n in row.group else None for n in names
        }
        assert (line["label"], line["order"]) == (row.label, len(row.group))
        for name in ("n_group", "n_cell", "hidden", "note", *NUMBERS):
            assert_same(line[name], getattr(row, name))
        for name, value in row.measures.items():
            assert_same(line[name], value)
        for frame in frames:
            assert frame[i].keys() == line.keys()
            for name in line:
                assert_same(frame[i][name], line[name])


def assert_same(found: object, expected: object) -> None:
    if isinstance(expected, float):
        assert_allclose(np.float64(found), expected, rtol=0)
    elif expected is None:
        assert found is None or found != found
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("column", "measures"), [("note", ()), ("ub", ()), ("lift", ("lift",)), ("order", ())]
)
def test_a_data_column_named_like_a_result_is_marked_in_frames(column, measures) -> None:
    counts = Counts.from_mapping({("m", "1"): 3, ("w", "0"): 2}, sensitive=[column], label="y")
    table = bias_table(counts, MeasureRequest(measures=measures))
    frame = table.to_arrow()
    assert frame[f"data.{column}"].to_pylist() == ["m", "m", "w", "w"]
    assert frame[column].to_pylist() != frame[f"data.{column}"].to_pylist()
    assert table.to_dict()["rows"][0]["group"] == {column: "m"}


def test_a_table_prints_its_worst_rows_and_says_how_many_more() -> None:
    cells = {(f"g{i:02}", y): 10 + i * (y == "1") for i in range(15) for y in "01"}
    table = bias_table(Counts.from_mapping(cells, sensitive=["g"], label="y"))
    text = repr(table)
    assert text.startswith("Uniform Bias of y by g: 405 rows, 15 groups, 2 labels\n")
    assert text.endswith("… and 10 more rows")
    assert "too few rows to tell" in text.splitlines()[4]
    assert text.splitlines()[5].startswith(str(next(iter(table.worst())).group))
    assert "(20 of 30 rows)</p><table>" in table._repr_html_()


def test_every_further_measure_is_printed_once_in_its_own_column() -> None:
    names = ("lift", "impact-ratio", "lift", "missing_rows", "uniform_bias", "selection_rate")
    table = bias_table(sizes(10, 30), MeasureRequest(measures=names))
    assert table.options.measures == ("lift", "impact_ratio")  # the others are columns already
    text = repr(table.filter(group="sex=w", label_value="yes")).splitlines()
    assert text[2].split()[-5:] == ["missing", "rows", "lift", "IR", "note"]
    assert text[4].split()[-3:] == ["7", "0.583", "0.500"]


# --- what cannot be said -------------------------------------------------------------------------


def test_an_absent_label_is_undefined_and_says_so() -> None:
    """Values stay when a part is selected, so that parts can be compared."""
    women = sizes(0, 10).select("sex=w")
    assert women.n == 10
    absent, present = (bias_table(women)["sex=w", y] for y in ("yes", "no"))
    assert all(math.isnan(v) for v in (absent.ub, absent.ub_low, absent.ub_high, absent.p_value))
    assert absent.note == "no such rows"
    assert absent.overall_rate == 0
    assert (present.ub, present.note) == (0.0, "only label")
    assert present.to_dict()["ub"] == 0.0
    assert absent.to_dict()["ub"] is None


def test_rows_that_weigh_nothing_are_undefined_and_say_so() -> None:
    rows = [("w", "yes"), ("w", "no"), ("m", "yes"), ("x", "no"), ("x", "maybe")]
    table = bias_table(counted(rows, weight=[1, 1, 2, 0, 0]))
    for key in [("s0=x", "no"), ("s0=x", "yes"), ("s0=w", "maybe")]:
        assert math.isnan(table[key].ub)
        assert table[key].note == "no weight"
    assert table["s0=x", "no"].n_cell == 1


@pytest.mark.slow
@given(raw_rows(), st.data())
@QUICK
def test_undefined_exactly_where_brute_force_divides_by_zero_and_always_with_a_reason(
    rows, data
) -> None:
    weights = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    table = bias_table(counted(rows, weight=weights))
    for key, (_, _, ub) in brute_force(rows, weights).items():
        row = by_key(table)[key]
        assert math.isnan(row.ub) == (ub is None)
        if ub is None:
            assert row.note in {"no weight", "no such rows"}
            assert math.isnan(row.ub_low)
            assert math.isnan(row.ub_high)
        else:
            assert_allclose(row.ub, float(ub), atol=1e-12)


def test_one_label_only_is_no_bias() -> None:
    counts = Counts.from_mapping({("m", "y"): 40, ("w", "y"): 60}, sensitive=["sex"], label="l")
    for row in bias_table(counts):
        assert (row.ub, row.rate, row.overall_rate, row.missing_rows) == (0.0, 1.0, 1.0, 0.0)
        assert (row.ub_low, row.ub_high) == (0.0, 0.0)
        assert math.isnan(row.p_value)
        assert row.note == "only label"


@pytest.mark.parametrize("weights", [None, [0.1, 0.2, 0.3, 0.7, 0.1]])
def test_one_group_only_is_all_rows(weights) -> None:
    rows = [("m", a, y) for a, y in zip("xyxyx", "10011", strict=True)]
    counts = counted(rows) if weights is None else counted(rows, weight=weights)
    table = bias_table(counts, MeasureRequest(measures=("impact_ratio",)))
    for label in "01":
        row = table["s0=m", label]
        assert row.ub == pytest.approx(0, abs=1e-15)
        assert (row.ub_low, row.ub_high) == (0.0, 0.0)
        assert row.note == "all rows"
        assert math.isnan(row.measures["impact_ratio"])


def test_a_table_of_no_rows_is_refused() -> None:
    with pytest.raises(InputError, match="there are no rows to measure"):
        bias_table(XOR - XOR)


def test_a_table_whose_groups_are_all_too_small_is_empty_in_every_form() -> None:
    table = bias_table(XOR, MeasureRequest(min_count=101))
    assert (len(table), list(table), table.to_dict()["rows"]) == (0, [], [])
    assert table.to_arrow().num_rows == table.to_pandas().shape[0] == table.to_polars().height == 0
    assert len(table.worst().filter(hidden=True)) == 0
    assert "100 rows, 0 groups" in repr(table)


def test_small_groups_say_so_and_larger_ones_do_not() -> None:
    """Of 100 rows half have the label: the smallest p in a group of m is 2·0.5·(1/2)^m or so."""
    notes = {}
    for size in range(1, 10):
        cells = {("w", "y"): size, ("m", "y"): 50 - size, ("m", "n"): 50}
        counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
        notes[size] = bias_table(counts)["sex=w", "y"].note
    assert [notes[s] for s in (1, 2, 3, 4)] == ["too small to say"] * 4
    assert {notes[s] for s in range(5, 10)} == {None}


def test_every_note_is_explained() -> None:
    assert all(text and not text.endswith(".") for text in NOTES.values())


# --- through the front door ----------------------------------------------------------------------


def test_measure_is_the_same_from_a_frame_and_from_counts() -> None:
    rows = [("m", None, "yes"), ("m", "b", "no"), ("w", "b", "yes"), ("w", "*", "no")] * 3
    columns = {n: [r[i] for r in rows] for i, n in enumerate(("s0", "s1", "label"))}
    frame = pa.table(columns)
    whole = eq.measure(frame, sensitive_features=["s0", "s1"], label="label", min_count=3)
    beside = eq.measure(
        y=columns["label"],
        sensitive_features={k: columns[k] for k in ("s0", "s1")},
        min_count=3,
    )
    from_counts = eq.measure(counted(rows), min_count=3)
    expected = {k: repr(r) for k, r in by_key(from_counts).items()}
    assert {k: repr(r) for k, r in by_key(whole).items()} == expected
    assert {k: repr(r) for k, r in by_key(beside).items()} == expected
    assert {r.group.get("s1") for r in whole} == {None, MISSING, "b", "*"}
