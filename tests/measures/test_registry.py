"""Every registered measure keeps what its entry promises; none goes unfiled."""

from __future__ import annotations

import doctest
import string
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from equipoise.errors import UnknownName
from equipoise.measures.measure import Margins, Measure, ratio
from equipoise.measures.registry import measure_named, measures

MEASURES = measures()
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)

HIRING = [[40, 110], [160, 290]]
"""Women and men, hired or not: 150 women of 600, 200 hired."""

# --- the files: a measure that is not in them fails the suite ------------------------------------

REFERENCE = {
    "uniform_bias": Fraction(1, 5),
    "selection_rate": Fraction(4, 15),
    "lift": Fraction(4, 5),
    "reweighing_weight": Fraction(5, 4),
    "divergence": Fraction(-1, 15),
    "expected_rows": Fraction(50),
    "missing_rows": Fraction(10),
    "impact_ratio": Fraction(3, 4),
    "odds_ratio_group_over_reference": Fraction(29, 44),
    "odds_ratio_reference_over_group": Fraction(44, 29),
    "mean_difference": Fraction(4, 45),
    "impact_ratio_from_ub": Fraction(3, 4),
}
"""What each measure says of the women who were hired, worked out by hand."""

UNDEFINED: dict[str, Callable[[int, int, int, int], bool]] = {
    "uniform_bias": lambda x, m, X, N: m == 0 or X == 0,
    "selection_rate": lambda x, m, X, N: m == 0,
    "lift": lambda x, m, X, N: m == 0 or X == 0,
    "reweighing_weight": lambda x, m, X, N: m == 0 or x == 0,
    "divergence": lambda x, m, X, N: m == 0,
    "expected_rows": lambda x, m, X, N: N == 0,
    "missing_rows": lambda x, m, X, N: N == 0,
    "impact_ratio": lambda x, m, X, N: m in {0, N} or x == X,
    "odds_ratio_group_over_reference": lambda x, m, X, N: m in {0, N} or x in {X, m},
    "odds_ratio_reference_over_group": lambda x, m, X, N: m in {0, N} or x == 0 or X - x == N - m,
    "mean_difference": lambda x, m, X, N: m in {0, N},
    "impact_ratio_from_ub": lambda x, m, X, N: m in {0, N} or x == X,
}
"""When no number would be true: with x of m rows in the group and X of N overall."""


def margins_of(cells, reference=None) -> Margins:
    table = np.asarray(cells, float)
    return Margins.of(
        n=table.sum(),
        n_y=table.sum(axis=0),
        n_g=table.sum(axis=1),
        n_gy=table,
        reference=reference,
    )


@st.composite
def tables(draw: st.DrawFn, labels: tuple[int, int] = (1, 4), largest: int = 40):
    """Groups that split a table, some of them empty, by labels, some of them absent."""
    k = draw(st.integers(*labels))
    count = st.integers(0, 3) | st.integers(0, largest)
    line = st.lists(count, min_size=k, max_size=k)
    return draw(st.lists(line, min_size=1, max_size=5))


# --- entries -------------------------------------------------------------------------------------


def test_there_are_measures_and_all_are_filed() -> None:
    names = {m.name for m in MEASURES}
    assert len(names) == len(MEASURES) >= 12
    assert names == set(REFERENCE) == set(UNDEFINED)
    assert len({m.symbol for m in MEASURES}) == len(MEASURES)


@every_measure
def test_an_entry_says_what_a_reader_must_know(measure: Measure) -> None:
    assert measure_named(measure.name.replace("_", "-")) is measure
    assert measure.title.replace(" ", "_") == measure.name
    assert measure.symbol
    assert measure.formula
    assert measure.low < measure.high
    assert measure.bounded == (np.isfinite(measure.low) and np.isfinite(measure.high))
    assert measure.against in {"overall", "reference", None}
    assert (measure.neutral is None) == (measure.against is None)


@every_measure
def test_a_sentence_names_group_and_label_and_can_be_filled_in(measure: Measure) -> None:
    words = {k: f"[{k}]" for k in ("group", "label", "value", "percent", "fewer", "reference")}
    fields = {name for _, name, _, _ in string.Formatter().parse(measure.sentence) if name}
    assert {"group", "label"} < fields <= set(words)
    assert measure.sentence.format(**words).endswith(".")
    assert ("reference" in fields) == (measure.against == "reference")


@every_measure
def test_a_docstring_has_a_summary_and_a_runnable_example(measure: Measure) -> None:
    documented = measure.function.__doc__ or ""
    assert documented.splitlines()[0].endswith(".")
    examples = doctest.DocTestParser().get_examples(documented)
    assert any(f"{measure.name}(" in e.source and e.want for e in examples)


def test_an_unknown_measure_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'impact_ratio'"):
        measure_named("impact-rato")


# --- values --------------------------------------------------------------------------------------


@every_measure
def test_reference_value(measure: Measure) -> None:
    value = measure.function(margins_of(HIRING))[0, 0]
    assert_allclose(value, float(REFERENCE[measure.name]), rtol=1e-14)


@given(tables())
@example([[0, 0]])
@example([[3, 0], [0, 0], [2, 0]])
@example([[7, 3], [0, 41]])
def test_undefined_exactly_where_no_number_is_true(cells) -> None:
    table, margins = np.array(cells), margins_of(cells)
    totals, sizes, N = table.sum(axis=0).tolist(), table.sum(axis=1).tolist(), int(table.sum())
    for measure in MEASURES:
        values = measure.function(margins)
        undefined = UNDEFINED[measure.name]
        expected = [
            [undefined(x, m, X, N) for x, X in zip(line, totals, strict=True)]
            for line, m in zip(cells, sizes, strict=True)
        ]
        assert np.isnan(values).tolist() == expected, measure.name
        assert not np.isinf(values).any(), measure.name


@given(tables(largest=100_000))
def test_values_stay_in_the_declared_range(cells) -> None:
    margins = margins_of(cells)
    for measure in MEASURES:
        values = measure.function(margins)
        seen = values[~np.isnan(values)]
        assert ((seen >= measure.low) & (seen <= measure.high)).all(), measure.name


@pytest.mark.parametrize("measure", [m for m in MEASURES if m.bounded], ids=lambda m: m.name)
def test_a_finite_bound_is_the_tightest_one(measure: Measure) -> None:
    """Both bounds are reached, or come as near as one likes."""
    extremes = [[[10**6, 0], [0, 1]], [[1, 0], [0, 10**6]], [[0, 1], [10**6, 0]]]
    values = np.concatenate([measure.function(margins_of(t)).ravel() for t in extremes])
    assert np.nanmin(values) < measure.low + 1e-5
    assert np.nanmax(values) > measure.high - 1e-5


@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=5),
    st.lists(st.integers(1, 50), min_size=1, max_size=4),
)
def test_neutral_where_all_groups_have_one_rate(sizes, mix) -> None:
    margins = margins_of(np.outer(sizes, mix))
    for measure in MEASURES:
        values = measure.function(margins)
        if measure.neutral is not None:
            defined = ~np.isnan(values)
            assert_allclose(values[defined], measure.neutral, rtol=1e-12, atol=1e-9)
            assert defined.all() or len(mix) == 1  # odds of a label that all rows have


@given(tables())
def test_neutral_where_the_rate_is_that_of_the_reference(cells) -> None:
    margins = margins_of(cells, reference=margins_of(cells).rate)
    for measure in MEASURES:
        if measure.against == "reference":
            values = measure.function(margins)
            assert_allclose(values[~np.isnan(values)], measure.neutral, rtol=1e-12, atol=1e-12)


# --- properties ----------------------------------------------------------------------------------


@given(tables(), st.integers(2, 10_000))
def test_scale_invariance_is_as_declared(cells, factor: int) -> None:
    one, more = margins_of(cells), margins_of(np.multiply(cells, factor))
    for measure in MEASURES:
        once, many = measure.function(one), measure.function(more)
        grown = once if measure.scale_invariant else factor * once
        assert_allclose(many, grown, rtol=1e-9, atol=1e-9, err_msg=measure.name)


@every_measure
def test_what_is_not_scale_invariant_changes_with_scale(measure: Measure) -> None:
    once, twice = (measure.function(margins_of(np.multiply(HIRING, c))) for c in (1, 2))
    assert np.allclose(once, twice) == measure.scale_invariant


@given(tables(labels=(2, 2)))
def test_symmetry_holds_where_declared(cells) -> None:
    margins = margins_of(cells)
    for measure in MEASURES:
        if measure.symmetric:
            values = measure.function(margins)
            assert_allclose(values[:, 1], -values[:, 0], atol=1e-12, err_msg=measure.name)


@every_measure
def test_symmetry_is_declared_where_it_holds(measure: Measure) -> None:
    values = measure.function(margins_of(HIRING))
    assert np.allclose(values[:, 1], -values[:, 0]) == measure.symmetric


def as_outcomes_turn(cells, group: int, label: int):
    """One more and one more row of a group gets the label instead of another one."""
    table = np.array(cells)
    others = [y for y in range(table.shape[1]) if y != label]
    yield table.copy()
    for _ in range(int(table[group, others].sum())):
        giving = next(y for y in others if table[group, y])
        table[group, giving] -= 1
        table[group, label] += 1
        yield table.copy()


def assert_direction(margins: list[Margins], group: int) -> None:
    for measure in MEASURES:
        values = np.array([measure.function(m)[group, 0] for m in margins])
        seen = values[~np.isnan(values)]
        steps = np.diff(seen) if measure.more_is_more else -np.diff(seen)
        assert (steps >= -1e-9 * (1 + np.abs(seen[1:]))).all(), measure.name


@pytest.mark.slow
@given(tables(labels=(2, 3), largest=8), st.data())
def test_direction_when_the_rest_stays_as_it_is(cells, data) -> None:
    group = data.draw(st.integers(0, len(cells) - 1))
    assert_direction([margins_of(t) for t in as_outcomes_turn(cells, group, 0)], group)


@given(st.integers(1, 15), st.integers(1, 15), st.integers(1, 30))
def test_direction_when_all_margins_stay_as_they_are(m, rest, X) -> None:
    assume(m + rest >= X)
    possible = range(max(0, X - rest), min(m, X) + 1)
    turned = [margins_of([[x, m - x], [X - x, rest - X + x]]) for x in possible]
    assert_direction(turned, 0)


@every_measure
def test_direction_is_not_flat(measure: Measure) -> None:
    """A measure really moves with the group's own rate when the rest stays as it is."""
    few, more = (measure.function(margins_of([[x, 60 - x], [50, 100]]))[0, 0] for x in (20, 30))
    assert (more > few) == measure.more_is_more
    assert more != few


# --- identities ----------------------------------------------------------------------------------


def of(name: str, margins: Margins):
    return measure_named(name).function(margins)


@given(tables())
def test_impact_ratio_is_a_ratio_of_one_less_ub(cells) -> None:
    margins = margins_of(cells)
    share = 1 - of("uniform_bias", margins)
    for r in range(len(cells)):
        against = margins_of(cells, reference=np.broadcast_to(margins.rate[r], margins.n_gy.shape))
        expected = ratio(share, share[r])
        defined = margins.n_y > 0
        assert_allclose(
            of("impact_ratio", against)[:, defined], expected[:, defined], rtol=1e-9, atol=1e-12
        )


@given(tables())
def test_what_follows_from_ub(cells) -> None:
    margins = margins_of(cells)
    ub = of("uniform_bias", margins)
    known = ~np.isnan(ub)
    close = {"rtol": 1e-9, "atol": 1e-12}
    assert_allclose(of("lift", margins), 1 - ub, **close)
    assert_allclose(of("reweighing_weight", margins)[known], ratio(1.0, 1 - ub)[known], **close)
    assert_allclose(of("divergence", margins)[known], (-margins.overall_rate * ub)[known], **close)
    assert_allclose(
        of("missing_rows", margins)[known], (ub * of("expected_rows", margins))[known], atol=1e-9
    )
    assert_allclose(of("impact_ratio_from_ub", margins), of("impact_ratio", margins), **close)
    assert_allclose(
        of("odds_ratio_group_over_reference", margins)
        * of("odds_ratio_reference_over_group", margins),
        np.where(
            np.isnan(of("odds_ratio_group_over_reference", margins))
            | np.isnan(of("odds_ratio_reference_over_group", margins)),
            np.nan,
            1.0,
        ),
        **close,
    )


@given(tables())
def test_ub_lies_between_its_bounds_and_reaches_them(cells) -> None:
    margins = margins_of(cells)
    ub = of("uniform_bias", margins)
    share = ratio(margins.n_g, np.float64(margins.n))
    least = 1 - ratio(np.ones(ub.shape), np.maximum(margins.overall_rate, share))
    known = ~np.isnan(ub)
    assert (ub[known] >= least[known] - 1e-9 * np.abs(least[known])).all()
    assert (ub[known] <= 1).all()


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 120))
def test_the_lowest_ub_is_one_less_the_inverse_of_the_larger_share(m, rest, X) -> None:
    N = m + rest
    assume(X <= N)
    x = min(m, X)  # as many rows with the label as fit in the group
    ub = of("uniform_bias", Margins.of(n=N, n_y=[X], n_g=[m], n_gy=[[x]]))[0, 0]
    assert_allclose(ub, float(1 - 1 / max(Fraction(X, N), Fraction(m, N))), rtol=1e-12, atol=1e-12)


@given(tables())
def test_missing_rows_and_biases_balance(cells) -> None:
    """Over the groups of a partition, and over the labels of a group, they cancel."""
    margins = margins_of(cells)
    missing = of("missing_rows", margins)
    assume(margins.n > 0)
    assert_allclose(missing.sum(axis=0), 0, atol=1e-9)
    assert_allclose(missing.sum(axis=1), 0, atol=1e-9)
    ub = np.nan_to_num(of("uniform_bias", margins))
    assert_allclose((margins.n_g * ub).sum(axis=0), 0, atol=1e-7)
    assert_allclose((margins.n_y * ub).sum(axis=1), 0, atol=1e-7)


@given(tables())
def test_a_union_has_the_mean_ub_of_its_parts(cells) -> None:
    margins = margins_of(cells)
    union = Margins.of(
        n=margins.n * 2,
        n_y=margins.n_y * 3 / 2,
        n_g=[margins.n],
        n_gy=[margins.n_y],
    )
    parts = Margins.of(n=margins.n * 2, n_y=margins.n_y * 3 / 2, n_g=margins.n_g, n_gy=margins.n_gy)
    weighted = margins.n_g * np.nan_to_num(of("uniform_bias", parts))
    whole = np.nan_to_num(of("uniform_bias", union))[0]
    assert_allclose(weighted.sum(axis=0), margins.n * whole, atol=1e-7)


@given(tables(largest=10_000))
def test_ub_is_the_nearest_number_to_the_exact_one(cells) -> None:
    """So a bias of exactly 1/5 is inside a limit of 0.2."""
    table = np.array(cells)
    ub = of("uniform_bias", margins_of(cells))
    N, totals = int(table.sum()), table.sum(axis=0).tolist()
    for i, line in enumerate(cells):
        for j, x in enumerate(line):
            if sum(line) and totals[j]:
                assert ub[i, j] == float(1 - Fraction(x * N, sum(line) * totals[j]))
