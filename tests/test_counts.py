"""The algebra of counts, and that they survive being written down."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.counts import CountRequest, Counts, bin_names
from equipoise.counts.axes import missing_last
from equipoise.counts.columns import checked_counts, quantile_edges
from equipoise.errors import ColumnNotFound, CountsError, InputError, PatternError
from equipoise.lattice import Group
from equipoise.values import ANY, MISSING
from strategies import counts, texts, values

NAMES = ("sex", "race", "hired")
SIMPLE = CountRequest(sensitive=("s",), label="y")
alike = counts(names=NAMES)


def cells(table: Counts) -> Counter:
    """The rows of each cell, by its values."""
    found = Counter()
    for codes, n in zip(table.codes.tolist(), table.rows.tolist(), strict=True):
        found[tuple(a.values[c] for a, c in zip(table.axes, codes, strict=True))] += n
    return found


@pytest.fixture
def hiring() -> Counts:
    return Counts.from_mapping(
        {("m", "yes"): 160, ("m", "no"): 290, ("w", "yes"): 40, ("w", "no"): 110},
        sensitive=["sex"],
        label="hired",
    )


# --------------------------------------------------------------------------- algebra


@pytest.mark.slow
@given(alike, alike)
def test_counts_of_a_union_are_the_sum(a, b):
    assert cells(a + b) == cells(a) + cells(b)
    assert a + b == b + a
    assert (a + b).n == a.n + b.n


@pytest.mark.slow
@settings(max_examples=40)
@given(alike, alike, alike)
def test_addition_is_associative(a, b, c):
    assert (a + b) + c == a + (b + c)


@pytest.mark.slow
@given(alike, alike)
def test_subtraction_undoes_addition(a, b):
    assert (a + b) - b == a
    assert (a - a).n == 0


@pytest.mark.slow
@given(alike, alike)
def test_subtraction_below_zero_is_refused(a, b):
    short = [c for c, n in cells(b).items() if n > cells(a)[c]]
    if not short:
        assert cells(a - b) == cells(a) - cells(b)
        return
    with pytest.raises(CountsError, match="more rows are taken from the cell") as caught:
        a - b
    named = [str(Group(dict(zip(NAMES, cell, strict=True)))) for cell in short]
    raw = caught.value.args[0]  # before what cannot be printed is escaped
    assert raw.removesuffix(" than it has.").partition("the cell ")[2] in named


@pytest.mark.slow
@given(alike)
def test_missing_values_stand_last(a):
    both = a + Counts.from_mapping({("new", "new", "yes"): 1}, sensitive=NAMES[:2], label="hired")
    for axis in (*a.axes, *both.axes):
        assert MISSING not in axis.values[:-1]


def test_counts_of_other_columns_do_not_combine(hiring):
    other = Counts.from_mapping({("m", "yes"): 1}, sensitive=["gender"], label="hired")
    with pytest.raises(
        CountsError, match="over sex, hired and over gender, hired cannot be combined"
    ):
        hiring + other
    swapped = Counts.from_mapping({("yes", "m"): 1}, sensitive=["hired"], label="sex")
    with pytest.raises(CountsError, match="cannot be combined"):
        hiring - swapped


def test_counts_with_and_without_weights_do_not_combine(hiring):
    weighted = Counts.from_frame(
        {"sex": ["m"], "hired": ["yes"], "w": [0.5]}, sensitive=["sex"], label="hired", weight="w"
    )
    with pytest.raises(CountsError, match="with and without weights"):
        hiring + weighted


def test_counts_with_other_bins_do_not_combine():
    frame = {"age": [20, 40], "y": ["1", "1"]}
    a, b = (
        Counts.from_frame(frame, sensitive=["age"], label="y", bins={"age": e})
        for e in ([30], [35])
    )
    with pytest.raises(CountsError, match="different bins"):
        a + b
    assert (a + a).n == 4


def test_missing_and_dropped_rows_add_up():
    frame = {"s": ["a", None], "y": [None, "1"]}
    table = Counts.from_frame(frame, sensitive=["s"], label="y")
    assert (table + table).missing_values == {"s": 2, "y": 2}
    assert (table + table).dropped == 2
    assert (table + table - table).missing_values == table.missing_values


def test_more_rows_than_can_be_counted(hiring):
    huge = Counts.from_mapping({("m", "yes"): 2**62}, sensitive=["sex"], label="hired")
    with pytest.raises(CountsError, match="more rows than can be counted"):
        huge + huge
    with pytest.raises(CountsError, match="more rows than can be counted"):
        Counts.from_columns({"s": ["a"] * 2, "y": ["1"] * 2}, [2**62] * 2, SIMPLE)
    assert (huge + hiring).n == 2**62 + 600


@pytest.mark.slow
@given(counts(attributes=3))
def test_marginals_commute_and_keep_the_rows(table):
    first, second, third = (a.name for a in table.sensitive)
    assert table.marginal(first, second).marginal(first) == table.marginal(first)
    assert table.marginal(second, first) == table.marginal(first, second)
    assert table.marginal(first, second, third) == table
    assert table.marginal(third).n == table.n
    assert [a.name for a in table.marginal(third).axes] == [third, table.label.name]


@pytest.mark.slow
@given(alike, alike)
def test_marginals_are_linear(a, b):
    assert (a + b).marginal("race") == a.marginal("race") + b.marginal("race")


@pytest.mark.slow
@given(alike, st.data())
def test_of_and_select_agree_with_the_cells(table, data):
    pattern = {
        axis.name: data.draw(st.sampled_from([ANY, *axis.values]), label=axis.name)
        for axis in table.axes
    }
    group = Group(pattern)
    inside = {
        cell: n
        for cell, n in cells(table).items()
        if all(dict(zip(NAMES, cell, strict=True))[k] == v for k, v in group.items())
    }
    assert table.of(group) == table.of(str(group)) == sum(inside.values())
    assert cells(table.select(group)) == inside
    assert table.select(group).n == table.of(group)
    assert table.select(group).select(group) == table.select(group)


@pytest.mark.slow
@given(alike)
def test_parts_of_an_attribute_sum_to_the_whole(table):
    for axis in table.axes:
        assert sum(table.of(Group({axis.name: v})) for v in axis.values) == table.n
        parts = [table.select(Group({axis.name: v})) for v in axis.values]
        whole = parts[0]
        for part in parts[1:]:
            whole += part
        assert whole == table


def test_asking_for_what_is_not_there(hiring):
    with pytest.raises(PatternError, match=r"no attribute 'gendre'; there are: sex, hired"):
        hiring.of("gendre=w")
    with pytest.raises(PatternError, match="'sex' has no value x; it has: m, w"):
        hiring.of("sex=x")
    with pytest.raises(PatternError, match="has no value <missing>"):
        hiring.of("sex=<missing>")
    with pytest.raises(PatternError, match=r"no attribute 'sx'.*Did you mean 'sex'"):
        hiring.marginal("sx")


@pytest.mark.slow
@given(alike, st.data())
def test_renaming_merges_and_keeps_the_rows(table, data):
    axis = data.draw(st.sampled_from(table.axes))
    mapping = data.draw(st.dictionaries(st.sampled_from(axis.values), values()))
    if axis.role == "label":
        mapping = {k: v for k, v in mapping.items() if v is not MISSING}
    position = table.axes.index(axis)
    expected = Counter()
    for cell, n in cells(table).items():
        renamed = list(cell)
        renamed[position] = mapping.get(cell[position], cell[position])
        expected[tuple(renamed)] += n
    assert cells(table.rename(axis.name, mapping)) == expected


def test_renaming_a_value_that_is_not_there(hiring):
    with pytest.raises(PatternError, match="'sex' has no value F"):
        hiring.rename("sex", {"F": "w"})


@pytest.mark.slow
@given(alike)
def test_finest_and_dense_hold_the_same_numbers(table):
    groups, (rows,) = table.finest()
    found = Counter()
    for group, line in zip(groups.tolist(), rows.tolist(), strict=True):
        for label, n in zip(table.label.values, line, strict=True):
            named = [a.values[c] for a, c in zip(table.sensitive, group, strict=True)]
            found[*named, label] += n
    assert +found == cells(table)
    cube = table.dense()
    assert cube.sum() == table.n
    assert cube[tuple(table.codes.T)].tolist() == table.rows.tolist()


def test_counts_cannot_be_changed(hiring):
    for array in (hiring.codes, hiring.rows):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(AttributeError):
        hiring.dropped = 3
    with pytest.raises(TypeError):
        hash(hiring)


def test_suspects(hiring):
    table = Counts.from_mapping(
        {("?", "y"): 2, ("N/A", "y"): 3, (" nan ", "y"): 1, ("nano", "NULL"): 4},
        sensitive=["s"],
        label="l",
    )
    assert table.suspects() == {"s": {"?": 2, "N/A": 3, " nan ": 1}, "l": {"NULL": 4}}
    assert hiring.suspects() == {}


# ----------------------------------------------------------------- equality, fingerprint


@pytest.mark.slow
@given(alike, st.randoms())
def test_order_means_nothing(table, random):
    shuffled = list(cells(table).items())
    random.shuffle(shuffled)
    again = Counts.from_mapping(dict(shuffled), sensitive=NAMES[:2], label="hired")
    assert again == table
    assert again.fingerprint == table.fingerprint


@pytest.mark.slow
@given(alike, alike)
def test_fingerprints_tell_counts_apart(a, b):
    assert (a == b) == (cells(a) == cells(b)) == (a.fingerprint == b.fingerprint)


def test_fingerprints_tell_names_and_roles_apart(hiring):
    renamed = Counts.from_mapping(cells(hiring), sensitive=["gender"], label="hired")
    assert renamed.fingerprint != hiring.fingerprint
    assert renamed != hiring
    assert hiring != "hiring"


def test_missing_is_not_the_text_missing():
    a, b = (
        Counts.from_mapping({(v, "1"): 1}, sensitive=["s"], label="y")
        for v in (MISSING, "<missing>")
    )
    assert a != b
    assert a.fingerprint != b.fingerprint


def test_weights_count_for_equality_and_fingerprint():
    def weighted(*weights):
        frame = {"s": ["a", "a", "b"], "y": ["1"] * 3, "w": weights}
        return Counts.from_frame(frame, sensitive=["s"], label="y", weight="w")

    assert weighted(0.1, 0.2, 0.3) == weighted(0.2, 0.1, 0.3)
    assert weighted(0.1, 0.2, 0.3).fingerprint == weighted(0.2, 0.1, 0.3).fingerprint
    assert weighted(0.1, 0.2, 0.3) != weighted(0.1, 0.2, 0.4)
    assert weighted(0.1, 0.2, 0.3).fingerprint != weighted(0.1, 0.2, 0.4).fingerprint
    plain = Counts.from_mapping({("a", "1"): 2, ("b", "1"): 1}, sensitive=["s"], label="y")
    assert weighted(1, 1, 1) != plain


# ------------------------------------------------------------------------ round trips


@st.composite
def any_counts(draw):
    """Counts with everything that must survive: missing values, bins, weights, the request."""
    n = draw(st.integers(1, 8))
    column = {
        "s": draw(st.lists(texts() | st.none(), min_size=n, max_size=n)),
        "age": draw(st.lists(st.integers(0, 99) | st.none(), min_size=n, max_size=n)),
        "y": [*draw(st.lists(texts() | st.none(), min_size=n, max_size=n))[:-1], "yes"],
        "w": draw(st.lists(st.floats(0, 9), min_size=n, max_size=n)),
        "n": draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)),
    }
    options = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "weight": st.just("w"),
                "count": st.just("n"),
                "bins": st.just({"age": (18.0, 65.5)}),
                "na": st.just(("?", "*")),
                "missing": st.just("drop"),
                "missing_label": st.just("group"),
            },
        )
    )
    typed = {k: pa.array(v, pa.int64() if k == "age" else None) for k, v in column.items()}
    return Counts.from_frame(pa.table(typed), sensitive=["s", "age"], label="y", **options)


def assert_same(a: Counts, b: Counts) -> None:
    assert a == b
    assert a.axes == b.axes
    assert a.codes.tolist() == b.codes.tolist()
    assert a.rows.dtype == b.rows.dtype == np.int64
    assert (a.weights is None) == (b.weights is None)
    if a.weights is not None and b.weights is not None:
        assert a.weights.tolist() == b.weights.tolist()
    assert (a.missing_values, a.dropped, a.bins) == (b.missing_values, b.dropped, b.bins)
    assert a.request == b.request
    assert a.fingerprint == b.fingerprint


@pytest.mark.slow
@given(any_counts())
def test_json_gives_the_same_counts(table):
    assert_same(Counts.from_json(table.to_json()), table)
    assert_same(Counts.from_dict(table.to_dict()), table)
    assert json.loads(table.to_json())["schema"] == "equipoise.counts/1"


@pytest.mark.slow
@given(any_counts())
def test_parquet_gives_the_same_counts(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("counts") / "counts.parquet"
    table.to_parquet(path)
    assert_same(Counts.from_parquet(path), table)
    assert [p.name for p in path.parent.iterdir()] == ["counts.parquet"]
    assert sum(pq.read_table(path)["n"].to_pylist()) == table.n  # other tools can read it, too


def test_attributes_may_be_called_like_the_numbers_beside_them(tmp_path):
    names = ["n", "weight", "weight_squared", "n_"]
    frame = {**{name: ["a", "b"] for name in names}, "y": ["1", "1"], "w": [0.5, 2.0]}
    table = Counts.from_frame(frame, sensitive=names, label="y", weight="w")
    table.to_parquet(tmp_path / "a.parquet")
    assert_same(Counts.from_parquet(tmp_path / "a.parquet"), table)
    assert table.to_arrow().column_names == [*names, "y", "n__", "weight_", "weight_squared_"]


def test_empty_counts_survive(hiring):
    nothing = hiring - hiring
    assert_same(Counts.from_json(nothing.to_json()), nothing)
    assert (nothing + hiring) == hiring


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", "null", '"counts"', "{}", '{"schema": "equipoise.counts/99"}',
        '{"schema": "equipoise.counts/1"}', '{"schema": "equipoise.counts/1", "axes": 3}',
    ],
)  # fmt: skip
def test_what_is_no_json_of_counts(text):
    with pytest.raises(CountsError) as caught:
        Counts.from_json(text)
    assert str(caught.value).isprintable()
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("field", "damage"),
    [
        ("codes", [[7, 0]]),
        ("codes", [[-1, 0]]),
        ("codes", [[0]]),
        ("rows", [-1]),
        ("rows", [1.5]),
        ("rows", [1, 2]),
        ("rows", ["x"]),
    ],
)
def test_damaged_counts(hiring, field, damage):
    data = hiring.select("sex=w, hired=yes").to_dict()
    with pytest.raises(CountsError):
        Counts.from_dict({**data, field: damage})


def test_a_parquet_file_of_somebody_else(tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    with pytest.raises(CountsError, match="was not written by"):
        Counts.from_parquet(tmp_path / "a.parquet")


# ---------------------------------------------------------------------------- making


@pytest.mark.parametrize(
    "frame",
    [
        {"s": ["a", "b", None], "y": [1, 1, 2]},
        pd.DataFrame({"s": ["a", "b", None], "y": [1, 1, 2]}),
        pd.DataFrame({"s": pd.Categorical(["a", "b", None]), "y": [1, 1, 2]}, index=[5, 6, 7]),
        pl.DataFrame({"s": ["a", "b", None], "y": [1, 1, 2]}),
        pl.DataFrame(
            {"s": ["a", "b", None], "y": [1, 1, 2]}, schema_overrides={"s": pl.Categorical}
        ),
        pa.table({"s": pa.chunked_array([["a", "b"], [None]]), "y": [1, 1, 2]}),
    ],
    ids=["mapping", "pandas", "pandas categories", "polars", "polars categories", "Arrow chunks"],
)
def test_frames(frame):
    table = Counts.from_frame(frame, sensitive=["s"], label="y")
    assert cells(table) == {("a", "1"): 1, ("b", "1"): 1, (MISSING, "2"): 1}


def test_numbers_are_in_the_order_of_numbers():
    table = Counts.from_frame(
        {"s": [10, 9, 100], "y": [1.5, -1.0, 2.0]}, sensitive=["s"], label="y"
    )
    assert table.axis("s").values == ("9", "10", "100")
    assert table.label.values == ("-1.0", "1.5", "2.0")


def test_a_frame_without_the_columns():
    with pytest.raises(ColumnNotFound, match="'s' not found in the frame; it has: x"):
        Counts.from_frame({"x": [1]}, sensitive=["s"], label="y")


def test_a_frame_with_nested_columns():
    with pytest.raises(InputError, match="'s' of the frame holds nested values"):
        Counts.from_frame({"s": [[1]], "y": [1]}, sensitive=["s"], label="y")


def test_patterns_as_keys():
    table = Counts.from_mapping(
        {"s=<missing>, y='*'": 2, "y=b, s='a, b'": 3}, sensitive=["s"], label="y"
    )
    assert cells(table) == {(MISSING, "*"): 2, ("a, b", "b"): 3}


@pytest.mark.parametrize("key", ["s=a", "s=a, y=b, z=c", ("a",), ("a", "b", "c"), "s=*, y=b"])
def test_keys_that_name_no_cell(key):
    with pytest.raises(CountsError, match="must have one value for each of"):
        Counts.from_mapping({key: 1}, sensitive=["s"], label="y")


@pytest.mark.parametrize(
    "rows",
    [[-1], [1.5], [math.nan], [math.inf], ["1"], [None], [True], [2**64], [1e300], [[1], [1, 2]]],
)
def test_what_is_no_count(rows):
    with pytest.raises(CountsError):
        checked_counts(rows)


@pytest.mark.parametrize("rows", [[], [0, 3], [3.0], np.array([3], np.uint8), (2**62,)])
def test_what_is_a_count(rows):
    found = checked_counts(rows)
    assert found.dtype == np.int64
    assert found.tolist() == [int(r) for r in rows]


def test_a_cell_of_no_rows_is_not_stored():
    table = Counts.from_mapping({("a", "1"): 0, ("b", "1"): 1}, sensitive=["s"], label="y")
    assert len(table.rows) == 1
    assert table.axis("s").values == ("b",)


# --------------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sensitive": ()}, "at least one sensitive attribute"),
        ({"sensitive": ("s", "s")}, "'s' is given twice"),
        ({"sensitive": ("y",)}, "'y' is given twice"),
        ({"count": "s"}, "'s' is given twice"),
        ({"missing": "keep"}, "`missing` must be one of 'group', 'drop', 'raise', not 'keep'"),
        ({"missing_label": "dorp"}, "Did you mean 'drop'"),
        ({"bins": {"t": 3}}, "'t' not found in the sensitive attributes"),
        ({"bins": {"y": 3}}, "only sensitive attributes are binned"),
        ({"bins": {"s": 1}}, "at least 2 quantile bins, not 1"),
        ({"bins": {"s": ()}}, "must be one or more rising numbers"),
        ({"bins": {"s": (2, 1)}}, "must be one or more rising numbers"),
        ({"bins": {"s": (1, 1)}}, "must be one or more rising numbers"),
        ({"bins": {"s": (math.nan,)}}, "must be one or more rising numbers"),
        ({"bins": {"s": (1, math.inf)}}, "must be one or more rising numbers"),
        ({"bins": {"s": ("a",)}}, "must be one or more rising numbers"),
        ({"bins": {"s": 2.5}}, "must be one or more rising numbers"),
    ],
)
def test_bad_requests(options, why):
    with pytest.raises(InputError, match=why) as caught:
        CountRequest(**{"sensitive": ("s",), "label": "y", **options})
    assert str(caught.value).endswith((".", "?"))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5, unique_by=lambda e: e + 0.0))
def test_bins_have_different_names(edges):
    names = bin_names(sorted(e + 0.0 for e in edges))
    assert len(set(names)) == len(edges) + 1


@given(
    st.lists(st.integers(-50, 50) | st.none(), min_size=1, max_size=30),
    st.lists(st.floats(-60, 60), min_size=1, max_size=4, unique_by=lambda e: e + 0.0).map(sorted),
)
def test_bins_hold_their_lower_edge(numbers, edges):
    frame = pa.table({"s": pa.array(numbers, pa.int64()), "y": ["1"] * len(numbers)})
    table = Counts.from_frame(frame, sensitive=["s"], label="y", bins={"s": edges})
    bounds = [-math.inf, *edges, math.inf]
    for name, low, high in zip(bin_names(edges), bounds[:-1], bounds[1:], strict=True):
        expected = sum(low <= x < high for x in numbers if x is not None)
        assert table.of(Group({"s": name})) == expected
    assert table.missing_values["s"] == numbers.count(None)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=60), st.integers(2, 7))
def test_quantile_edges_are_the_smallest_that_reach_their_share(numbers, bins):
    frame = {"s": numbers, "y": ["1"] * len(numbers)}
    if len(set(numbers)) == 1:
        with pytest.raises(InputError, match="too few different numbers"):
            Counts.from_frame(frame, sensitive=["s"], label="y", bins={"s": bins})
        return
    expected = set()
    for i in range(1, bins):
        reach = [x for x in numbers if sum(z <= x for z in numbers) * bins >= i * len(numbers)]
        expected.add(float(min(reach)))
    expected.discard(float(min(numbers)))
    if not expected:
        with pytest.raises(InputError, match="too few different numbers"):
            Counts.from_frame(frame, sensitive=["s"], label="y", bins={"s": bins})
        return
    table = Counts.from_frame(frame, sensitive=["s"], label="y", bins={"s": bins})
    assert table.bins == {"s": tuple(sorted(expected))}


def test_cells_and_their_patterns():
    c = Counts.from_mapping({("m", "y"): 3, ("w", "y"): 2}, sensitive=["s"], label="l")
    assert c.cells() == {("m", "y"): 3, ("w", "y"): 2}
    assert str(c.pattern(("w", "y"))) == "s=w, l=y"


def test_missing_values_come_last_and_values_once():
    assert missing_last(["w", MISSING, "m", "w"]) == ("w", "m", MISSING)


def test_edges_of_quantiles_are_values_and_ties_give_one_edge():
    assert quantile_edges("age", np.array([30.0, 10.0, 20.0, 20.0]), 2) == (20.0,)
