"""The arithmetic of evidence, against plain loops, exact fractions, and all outcomes that there are."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from betting import Bettor, bet, bound, likelihood, projected, ub_bounds
from betting import chosen as chosen_naively
from equipoise.monitoring.evidence.factors import bets, log_factors, nearest, ratio_bounds
from equipoise.monitoring.evidence.families import rejected
from equipoise.monitoring.evidence.intervals import confidence_sequence
from equipoise.monitoring.evidence.process import State, advance
from equipoise.monitoring.evidence.samples import Samples, recent_sums_before

RATES = st.floats(1e-4, 1 - 1e-4)
ROWS = st.integers(1, 10_000)


def array(value):
    return np.array([[float(value)]])


def samples(counts):
    """Lines of (x, m, z, r), one a batch, as samples of one comparison."""
    return Samples(*(np.array([column], np.float64) for column in zip(*counts, strict=True)))


def bounds_of(now, limit):
    share = now.share
    return ratio_bounds(share, np.full(share.shape, 1 - limit), np.full(share.shape, 1 + limit))


# ------------------------------------------------------------------- one factor


@given(RATES, RATES, st.floats(-7, 7), ROWS, ROWS)
def test_the_nearest_rates_of_a_ratio_maximise_the_expected_likelihood(t1, t0, log_k, m, r):
    k = math.exp(log_k)
    a, b = (float(rate) for rate in nearest(*map(np.array, (t1, t0, k, m, r))))
    assert a == pytest.approx(k * b, rel=1e-12)

    def unlikely(other):
        return -likelihood((m * t1, m, r * t0, r), k * other, other)

    found = minimize_scalar(
        unlikely, bounds=(0, min(1, 1 / k)), method="bounded", options={"xatol": 1e-12}
    )
    assert unlikely(b) <= found.fun + 1e-9 * abs(found.fun)
    assert (a, b) == pytest.approx(projected(t1, t0, k, m, r), rel=1e-9)


@pytest.mark.parametrize(
    ("t1", "t0", "m", "r"),
    [(1 - 1e-8, 1 - 3e-8, 500_000_000, 500_000_000), (1 - 1e-9, 1 - 1e-7, 10**9, 10**9)],
)
def test_rates_near_one_keep_their_digits(t1, t0, m, r):
    # Equal rates are nearest at the pooled rate, whose distance from 1 is a sum without differences.
    _, b = nearest(*map(np.array, (t1, t0, 1.0, float(m), float(r))))
    rest = (m * (1 - Fraction(t1)) + r * (1 - Fraction(t0))) / (m + r)
    assert 1 - Fraction(float(b)) == pytest.approx(rest, rel=1e-7)


@given(
    st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=1000),
    st.fractions(0, 10, max_denominator=1000),
)
def test_bounds_of_a_ratio_are_those_of_ub_exactly(share, relative):
    low, high = (
        float(k[0, 0]) for k in ratio_bounds(array(share), array(relative), array(relative))
    )
    if abs(relative * share - 1) < Fraction(1, 10**9):
        return
    if relative * share > 1:
        assert (low, high) == (0, math.inf)
        return
    k = relative * (1 - share) / (1 - relative * share)
    assert (low, high) == pytest.approx((float(k), float(k)), rel=1e-6)
    # The rates k and 1, which may be scaled, have the wanted ratio to the overall rate.
    assert k / (share * k + 1 - share) == relative


def test_bounds_that_no_group_can_reach_exclude_nothing():
    low, high = ratio_bounds(array(0.5), array(2), array(2))
    assert (low.item(), high.item()) == (0, math.inf)
    now, bet_ = Samples(*map(array, (30, 80, 1, 20))), (array(0.6), array(0.1))
    assert log_factors(now, bet_, low, high).item() == 0
    always = log_factors(now, bet_, array(0), array(math.inf))
    assert always.item() == 0


def nulls(low, high, points=9):
    """Rates (p1, p0) with a ratio between bounds, at the boundary as well."""
    top = min(high, 1e6)
    for k in {low, top, 1.0, (low + top) / 2, math.sqrt(max(low, 1e-6) * top)}:
        if not low <= k <= top:
            continue
        for p0 in np.linspace(0, 1, points):
            if k * p0 <= 1:
                yield k * p0, p0
        yield min(1.0, k), min(1.0, 1 / k if k else 1.0)
    yield 0.0, 0.0
    if low == 0:
        yield from ((0.0, p0) for p0 in np.linspace(0, 1, points))
    if high == math.inf:
        yield from ((p1, 0.0) for p1 in np.linspace(0, 1, points))


def expectation(m, r, rates, low, high, p1, p0):
    """The mean of a factor, over all outcomes of a batch."""
    outcomes = list(itertools.product(range(m + 1), range(r + 1)))
    one = np.ones((1, len(outcomes)))
    x, z = (np.array([column], np.float64) for column in zip(*outcomes, strict=True))
    t1, t0 = rates
    logs = log_factors(Samples(x, m * one, z, r * one), (t1 * one, t0 * one), low * one, high * one)
    chances = [
        math.comb(m, a)
        * p1**a
        * (1 - p1) ** (m - a)
        * math.comb(r, b)
        * p0**b
        * (1 - p0) ** (r - b)
        for a, b in outcomes
    ]
    return float(np.dot(np.exp(logs[0]), chances))


@pytest.mark.parametrize(
    ("low", "high"),
    [(1, 1), (0.8, 1.25), (0.3, 0.4), (2, 5), (0.8, math.inf), (0, 1.2), (0, 0.5), (3, math.inf)],
)
def test_no_factor_has_a_mean_above_one_in_its_null(low, high):
    rng = np.random.default_rng(int(low * 100))
    outside = 0
    for _ in range(12):
        m, r = (int(n) for n in rng.integers(1, 6, 2))
        t1, t0 = rng.uniform(0.01, 0.99, 2) ** rng.choice([0.2, 1, 4])
        for p1, p0 in nulls(low, high):
            assert expectation(m, r, (t1, t0), low, high, p1, p0) <= 1 + 1e-9
        if not low * t0 <= t1 <= high * t0:
            outside += 1
            at = projected(t1, t0, low if t1 < low * t0 else high, m, r)
            assert expectation(m, r, (t1, t0), low, high, *at) == pytest.approx(1, abs=1e-9)
            assert expectation(m, r, (t1, t0), low, high, t1, t0) > 1
    assert outside > 0


@given(RATES, RATES, st.floats(0, 4), st.floats(0, 4), ROWS, ROWS, st.floats(0, 1), st.floats(0, 1))
def test_the_mean_of_a_factor_is_at_most_one_for_any_size(t1, t0, low, more, m, r, part, p0):
    high = low + more
    assume(not low * t0 <= t1 <= high * t0)
    k = low if t1 < low * t0 else high
    assume(k > 1e-6)
    a, b = (float(rate) for rate in nearest(*map(np.array, (t1, t0, k, float(m), float(r)))))
    p0 = min(p0, 1 / (low + part * more) if low + part * more > 1 else 1.0)
    p1 = p0 * (low + part * more)
    # The mean of a product of independent rows, as a closed form.
    of_group = m * math.log1p((p1 - a) * (t1 - a) / (a * (1 - a)))
    of_others = r * math.log1p((p0 - b) * (t0 - b) / (b * (1 - b)))
    assert of_group + of_others <= 1e-6


def test_rates_of_zero_and_one_are_no_bets():
    now = Samples(*map(array, (3, 10, 60, 90)))
    for t1, t0 in itertools.product((0.0, 0.5, 1.0), repeat=2):
        found = log_factors(now, (array(t1), array(t0)), array(0.9), array(1.1))
        assert found.item() == 0  # with 0.5 and 0.5, since they are equal
    # Nor does a sure past make them: one row of the other kind, however late, must be possible.
    for x, z in ((0, 0), (50, 70), (0, 70), (50, 0)):
        rates = bets(Samples(*map(array, (x, 50, z, 70))), array(0.9), array(1.1))
        told = log_factors(now, rates, array(0.9), array(1.1)).item()
        assert math.isfinite(told)
        assert (told == 0) == (x + z in (0, 120))


def test_batches_of_a_thousand_million_rows_have_finite_evidence():
    n = 10**9
    track, state = run([(n // 4, n, n, 3 * n)] * 5 + [(0, n, 3 * n, 3 * n)], 0.1)
    assert np.isfinite(track.log_e).all()
    assert np.isfinite(state.log_s).all()
    assert track.log_e[0, -1] > 308 * math.log(10)


# ------------------------------------------------------------------- a stream


def run(counts, limit, splits=()):
    """The evidence of one comparison, in one go or in blocks."""
    now = samples(counts)
    state, tracks = State.start(1), []
    for first, last in itertools.pairwise((0, *splits, len(counts))):
        block = Samples(*(part[:, first:last] for part in now))
        track, state = advance(state, block, *bounds_of(block, limit), first)
        tracks.append(track)
    parts = zip(*tracks, strict=True)
    return type(tracks[0])(*(np.concatenate(part, axis=1) for part in parts)), state


def stream(seed, batches=70):
    """Batches of all sizes, some without rows of the group or of the others, or without the label."""
    rng = np.random.default_rng(seed)
    counts = []
    for i in range(batches):
        m, r = (int(n) for n in rng.integers(0, 30, 2) * (rng.random(2) < 0.9))
        rate = rng.choice([0, 0.02, 0.3, 0.9, 1], p=[0.1, 0.2, 0.4, 0.2, 0.1])
        own = rate * (0.4 if i > batches // 2 else 1)
        counts.append((int(rng.binomial(m, own)), m, int(rng.binomial(r, rate)), r))
    return counts


@pytest.mark.parametrize("limit", [0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_a_stream_has_the_evidence_of_a_plain_loop(seed, limit):
    counts = stream(seed)
    track, state = run(counts, limit)
    naive = Bettor(ub_bounds(limit))
    for i, now in enumerate(counts):
        naive.see(now)
        assert track.log_e[0, i] == pytest.approx(naive.log_e, abs=1e-9)
        assert math.exp(track.log_s[0, i]) == pytest.approx(naive.s, rel=1e-9)
        assert track.since[0, i] == naive.since
    assert [part.item() for part in state.past] == list(naive.past)
    assert [part.item() for part in state.recent] == pytest.approx(naive.recent, rel=1e-12)
    assert abs(state.log_e.item()) > 1e-3  # there was something to bet on
    assert naive.s > 0


@given(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 59), unique=True, max_size=59).map(sorted),
)
def test_blocks_of_batches_are_as_good_as_all_at_once(seed, splits):
    counts = stream(seed, 60)
    once, after = run(counts, 0.1)
    parts, state = run(counts, 0.1, splits)
    assert parts.log_e == pytest.approx(once.log_e, abs=1e-9)
    assert np.exp(parts.log_s) == pytest.approx(np.exp(once.log_s), rel=1e-9)
    assert parts.since.tolist() == once.since.tolist()
    for one, other in zip(state.recent, after.recent, strict=True):
        assert one == pytest.approx(other, rel=1e-12)


def test_bets_know_nothing_of_their_batch_and_of_later_ones():
    counts = stream(1)
    track, _ = run(counts, 0.1)
    changed = [*counts[:40], *((m - x, m, r - z, r) for x, m, z, r in counts[40:])]
    other, _ = run(changed, 0.1)
    assert other.log_e[0, :40].tolist() == track.log_e[0, :40].tolist()
    before, _ = run(counts[:41], 0.1)
    assert before.log_e[0].tolist() == track.log_e[0, :41].tolist()
    # The factor of a batch is linear in its rows on the scale of logarithms, since the bet is fixed.
    x, m, z, r = 4, 9, 3, 8
    after = [run([*counts[:40], (x + i, m, z, r)], 0.0)[1] for i in range(3)]
    steps = []
    for part in ("log_long", "drift"):
        one, two, three = (getattr(state, part).item() for state in after)
        assert three - two == pytest.approx(two - one, abs=1e-9)
        steps.append(two - one)
    assert any(steps)


def test_batches_that_are_not_told_are_remembered_and_not_counted():
    counts = stream(2)
    now = samples(counts)
    told = now.used & (np.arange(len(counts)) >= 30)
    track, state = advance(State.start(1), now, *bounds_of(now, 0.1), 0, told)
    naive = Bettor(ub_bounds(0.1))
    for i, batch in enumerate(counts):
        naive.see(batch, told=i >= 30)
    assert track.log_e[0, -1] == pytest.approx(naive.log_e, abs=1e-9)
    assert math.exp(state.log_change.item()) == pytest.approx(naive.s, rel=1e-9)
    assert state.drift.item() == pytest.approx(naive.drift, abs=1e-9)
    assert state.since.item() == naive.since
    assert track.log_e[0, :30] == pytest.approx(np.zeros(30), abs=1e-12)


def test_forgetting_sums_halve_after_twenty_batches_of_any_number():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 50, (4, 2, 700)).astype(np.float64)
    before, after = recent_sums_before(Samples(*counts), Samples.none(2))
    naive = np.zeros((4, 2))
    for i in range(700):
        assert np.array(before)[:, :, i] == pytest.approx(naive, rel=1e-12)
        naive = (naive + counts[:, :, i]) * 0.5 ** (1 / 20)
    assert np.array(after) == pytest.approx(naive, rel=1e-12)
    pulse = np.zeros((1, 42))
    pulse[0, 0] = 8
    found, _ = recent_sums_before(Samples(pulse, pulse, pulse, pulse), Samples.none(1))
    assert found.x[0, [20, 40]] == pytest.approx([4, 2])


def test_a_bet_without_rows_of_the_group_is_the_nearest_to_equal_rates():
    past = (0, 0, 30, 100)
    for low, high in ((0.8, 1.2), (0.2, 0.5), (1.5, 2.0), (3.1, 9.0), (0.0, math.inf)):
        (t1,), (t0,) = bets(
            Samples(*(np.array([float(n)]) for n in past)), np.array([low]), np.array([high])
        )
        assert (t1, t0) == pytest.approx(bet(past, low, high))
        assert t0 == pytest.approx(0.3)
        if low <= 2:
            assert t1 / t0 == pytest.approx(min(max(1.0, low), high))
        assert t1 < 1


# ------------------------------------------------------------------- many comparisons


@given(
    st.lists(
        st.sampled_from([0.0, 0.5, 11.37, 21.41, 31.3, 46.7, 61.9, 103.1, 1e9]),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([0.01, 0.05, 0.5]),
)
def test_evidence_is_strong_enough_by_trying_every_number(values, alpha):
    log_e = np.log(np.maximum(values, 1e-300))[:, None]
    found = rejected(log_e, np.array([len(values)]), alpha)
    assert set(np.flatnonzero(found)) == chosen_naively(dict(enumerate(log_e[:, 0])), alpha)


def test_those_that_have_not_joined_count_neither_as_evidence_nor_as_family():
    log_e = np.array([[math.log(25)], [-math.inf], [-math.inf]])
    assert rejected(log_e, np.array([1]), 0.05).ravel().tolist() == [True, False, False]
    assert not rejected(log_e, np.array([2]), 0.05).any()


# ------------------------------------------------------------------- confidence sequences


def point_evidence(counts, k):
    """The e-process of one ratio of rates, by a plain loop."""
    past, total = (0.0, 0.0, 0.0, 0.0), 0.0
    for now in counts:
        rates = bet(past, 0.0, math.inf)
        if rates is not None and now[1] and now[3] and all(0 < p < 1 for p in rates):
            null = projected(*rates, k, now[1], now[3])
            total += likelihood(now, *rates) - likelihood(now, *null)
        past = tuple(a + b for a, b in zip(past, now, strict=True))
    return total


def limit_of(counts, share, inside, outside, threshold):
    """Where the evidence reaches the threshold, by bisection."""
    for _ in range(25):
        middle = (inside + outside) / 2
        kept = point_evidence(counts, bound(1 - middle, share)) < threshold
        inside, outside = (middle, outside) if kept else (inside, middle)
    return inside


@pytest.mark.parametrize(("p1", "p0"), [(0.2, 0.4), (0.3, 0.3), (0.9, 0.5), (0.02, 0.1)])
def test_a_confidence_sequence_ends_where_the_evidence_reaches_its_threshold(p1, p0):
    rng = np.random.default_rng(int(100 * p1))
    sizes = rng.integers(5, 60, (40, 2)).tolist()
    counts = [(int(rng.binomial(m, p1)), m, int(rng.binomial(r, p0)), r) for m, r in sizes]
    found = confidence_sequence(samples(counts), np.array([len(counts)]), 0.05)
    x, m, z, r = (sum(column) for column in zip(*counts, strict=True))
    share, threshold = m / (m + r), math.log(20)
    estimate = 1 - (x / m) / ((x + z) / (m + r))
    least = 1 - min(1 / share, (m + r) / (x + z))
    low = limit_of(counts, share, estimate, least + 1e-9, threshold)
    high = limit_of(counts, share, estimate, 1 - 1e-9, threshold)
    assert found.low[0] == pytest.approx(low, abs=0.02 * (high - low))
    assert found.high[0] == pytest.approx(high, abs=0.02 * (high - low))


@pytest.mark.parametrize(
    ("m", "p1", "r", "p0", "batches"),
    [
        (1000, 0.01, 99_000, 0.01, 20),  # of which UB could be −99
        (50, 0.002, 49_950, 0.002, 20),
        (300_000, 0.3, 700_000, 0.3, 30),  # whose interval is a thousandth of all values wide
        (5 * 10**8, 0.5, 5 * 10**8, 0.5, 4),
        (9990, 0.5, 10, 0.5, 20),
        (1, 0.9, 9, 0.3, 2),  # whose overall rate may be far from the true one
        (2, 0.2, 110, 0.5, 10),
    ],
)
def test_confidence_sequences_of_rare_groups_and_of_many_rows_end_there_too(m, p1, r, p0, batches):
    rng = np.random.default_rng(m)
    counts = [(int(rng.binomial(m, p1)), m, int(rng.binomial(r, p0)), r) for _ in range(batches)]
    found = confidence_sequence(samples(counts), np.array([batches]), 0.05)
    share = m / (m + r)
    x, _, z, _ = (sum(column) for column in zip(*counts, strict=True))
    estimate = 1 - x * (m + r) / (m * (x + z))
    low = limit_of(counts, share, estimate, 1 - 1 / share + 1e-9, math.log(20))
    high = limit_of(counts, share, estimate, 1 - 1e-9, math.log(20))
    truth = 1 - p1 / (share * p1 + (1 - share) * p0)
    assert low < truth < high
    assert found.low[0] == pytest.approx(low, abs=0.02 * (high - low))
    assert found.high[0] == pytest.approx(high, abs=0.02 * (high - low))


@pytest.mark.parametrize("ratios", [[1.0], [1.0, 0.5], [1.0, 2.0]])
@pytest.mark.parametrize("rows", [100, 20_000])
def test_a_confidence_sequence_of_a_day_does_not_change_with_what_comes_later(ratios, rows):
    rng = np.random.default_rng(8)
    p1 = 0.3 * np.repeat(ratios, 120 // len(ratios))
    now = drawn(rng, 1, 120, p1, 0.3, rows // 5, rows - rows // 5)
    found = confidence_sequence(now, np.arange(1, 121))
    for day in (1, 2, 5, 20, 59, 60, 61, 70, 90, 120):
        then = Samples(*(part[:, :day] for part in now))
        low, high = (limit[0] for limit in confidence_sequence(then, np.array([day])))
        near = (0.02 if len(ratios) == 1 else 0.2) * (high - low)
        assert found.low[day - 1] == pytest.approx(low, abs=near, nan_ok=True)
        assert found.high[day - 1] == pytest.approx(high, abs=near, nan_ok=True)
    assert (found.low[-1], found.high[-1]) == (low, high)


def test_without_rows_there_is_no_confidence_sequence():
    none = samples([(0, 0, 3, 10)])
    found = confidence_sequence(none, np.array([0, 1]))
    assert np.isnan(np.array(found)).all()


def drawn(rng, streams, batches, p1, p0, m, r):
    shape = (streams, batches)
    m, r, p1, p0 = (np.broadcast_to(part, shape) for part in (m, r, p1, p0))
    x, z = rng.binomial(m, p1), rng.binomial(r, p0)
    return Samples(*(np.asarray(part, np.float64) for part in (x, m, z, r)))


def test_a_confidence_sequence_covers_the_truth_at_all_times_together():
    rng = np.random.default_rng(5)
    missed, streams, batches = 0, 400, 60
    for _ in range(streams):
        m, r = rng.integers(2, 30), rng.integers(10, 90)
        p0 = rng.uniform(0.05, 0.6)
        k = rng.uniform(0.3, 1.5)
        now = drawn(rng, 1, batches, k * p0, p0, m, r)
        share = m / (m + r)
        ub = 1 - k / (share * k + 1 - share)
        found = confidence_sequence(now, np.arange(1, batches + 1), 0.2)
        missed += bool(((found.low > ub) | (found.high < ub)).any())
    assert missed / streams <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / streams)
    assert missed > 0  # or the limits would be far too wide


# ------------------------------------------------------------------- whole streams, many times


def quiet_streams(rng, kind, streams=2000, batches=100):
    """Streams inside the limit .1, or at it."""
    shape = (streams, batches)
    if kind == "drift":
        phase = np.linspace(0, 3 * np.pi, batches)
        rate = 0.35 + 0.25 * np.sin(phase) + np.zeros(shape)
        m = np.round(30 + 25 * np.cos(phase)).astype(int) + np.zeros(shape, int)
        return 0.0, drawn(rng, streams, batches, rate, rate, m, 100 - m)
    if kind == "rare":
        return 0.0, drawn(rng, streams, batches, 0.05, 0.05, 2, 8)
    m = rng.integers(5, 60, shape)
    r = 100 - m
    relative = 0.9 if kind == "below" else 1.1
    share = m / (m + r)
    k = relative * (1 - share) / (1 - relative * share)
    p0 = 0.3 + 0.1 * np.sin(np.linspace(0, 6, batches)) + np.zeros(shape)
    return 0.1, drawn(rng, streams, batches, k * p0, p0, m, r)


@pytest.mark.parametrize("kind", ["drift", "rare", "below", "above"])
def test_quiet_streams_raise_alerts_at_most_as_often_as_promised(kind):
    limit, now = quiet_streams(np.random.default_rng(6), kind)
    track, _ = advance(State.start(len(now.x)), now, *bounds_of(now, limit))
    share = (track.log_e.max(axis=1) >= math.log(20)).mean()
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(now.x))
    assert share > 0.005
    # The change detector is above its threshold for the first time after that many batches on average.
    alarms = (track.log_s >= math.log(200)).any(axis=1).mean()
    assert alarms <= 100 / 200 + 3 * math.sqrt(0.25 / len(now.x))


def test_biased_streams_raise_alerts_soon():
    rng = np.random.default_rng(7)
    # UB is .3 with a share of .2: the rates .21 and .3225, and .3 for all.
    now = drawn(rng, 200, 60, 0.21, 0.3225, 20, 80)
    track, _ = advance(State.start(200), now, *bounds_of(now, 0.0))
    strong = track.log_e >= math.log(20)
    first = np.where(strong.any(axis=1), np.argmax(strong, axis=1), 60) + 1
    assert np.median(first) <= 15
    assert strong.any(axis=1).mean() > 0.99
