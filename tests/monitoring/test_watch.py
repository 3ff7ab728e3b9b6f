"""Whole streams: who joins when, replays of every day, merged batches, and false alarms."""

from __future__ import annotations

import datetime
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from betting import Bettor, Bookkeeper, bound, ub_bounds
from equipoise.errors import InputError
from equipoise.measures.rules import Rule
from equipoise.monitoring.comparisons import find_comparisons, named
from equipoise.monitoring.evidence.families import Joining, entries, means
from equipoise.monitoring.examination import _small, run_tests
from equipoise.monitoring.series import GroupSeries
from equipoise.monitoring.tallies import sum_up
from equipoise.monitoring.watch import track, watch
from strategies import lattice_of, rows_of
from streams import START, counts, fill

DAY = datetime.timedelta(days=1)
FIRST = {"a": 0, "b": 0, "c": 8, "d": 15, "e": 24}
"""The day on which each group is seen first."""
RATE = {"a": 0.5, "b": 0.2, "c": 0.45, "d": 0.1, "e": 0.5}


def wild(seed, days=36, first=FIRST, label_from=12):
    """Batches with groups and a label that come late, days of one group alone, and bias."""
    rng = np.random.default_rng(seed)
    batches = []
    for day in range(days):
        here = [g for g in first if first[g] <= day and rng.random() < 0.8] or ["a"]
        here = here[:1] if rng.random() < 0.1 else here
        cells = {}
        for group in here:
            size = int(rng.integers(5, 40))
            yes = int(rng.binomial(size, RATE[group]))
            maybe = int(rng.binomial(size - yes, 0.2)) if day >= label_from else 0
            cells |= {(group, "yes"): yes, (group, "maybe"): maybe}
            cells[group, "no"] = size - yes - maybe
        cells["a", "no"] = cells.get(("a", "no"), 0) + (day == 0)  # a group that rules name
        batches.append(counts({cell: n for cell, n in cells.items() if n}, sensitive=("race",)))
    return batches


def ratio(least, most=math.inf):
    return lambda m, r: (least, most)


def impact(reference, **limits):
    rule = {"measure": "impact_ratio", "label": "yes", "reference": reference, **limits}
    return {"policy": {"rules": [rule]}}


PAIRS = [(g, y, None) for g in FIRST for y in ("yes", "no", "maybe")]
AGAINST_BEST = [(g, "yes", other) for g in FIRST for other in FIRST if other != g]
KINDS = {
    "ub": ({"max_abs_ub": 0.1}, PAIRS, ub_bounds(0.1), 1),
    "large": ({"max_abs_ub": 0.1, "min_count": 70}, PAIRS, ub_bounds(0.1), 70),
    "best": (impact("best", min=0.8), AGAINST_BEST, ratio(0.8), 1),
    "best, large": ({**impact("best", min=0.8), "min_count": 70}, AGAINST_BEST, ratio(0.8), 70),
    "named": (
        impact("race=a", min=0.8, max=2),
        [(g, "yes", "a") for g in FIRST if g != "a"],
        ratio(0.8, 2),
        1,
    ),
    "rest": (
        impact("rest", max=1.25),
        [(g, "yes", None) for g in FIRST],
        ratio(0, 1.25),
        1,
    ),
}
KINDS["wanted"] = (
    {"policy": {"rules": [{"group": "race=b", "label": "yes", "k": 0.8, "max_abs_ub": 0.1}]}},
    [("b", "yes", None)],
    lambda m, r: tuple(bound(0.8 * relative, m / (m + r)) for relative in (0.9, 1.1)),
    1,
)
"""Options of a check, and what it compares within which bounds."""
every_kind = pytest.mark.parametrize("kind", list(KINDS))


@pytest.fixture
def opened(tmp_path):
    """Make new monitors."""
    made = []

    def make():
        made.append(eq.Monitor(tmp_path / f"{len(made)}.sqlite"))
        return made[-1]

    yield make
    for monitor in made:
        monitor.close()


def by_group(batch):
    """The rows of each group and of all rows, by label."""
    cells = rows_of(batch)
    alone = {values[0]: labels for values, labels in lattice_of(cells).items()}
    total = {y: sum(labels.get(y, 0) for labels in alone.values()) for y in ("yes", "no", "maybe")}
    return {**alone, None: total}


def names(tested):
    """The group and label of each pair, as the plain loops name them."""
    found = (named(tested.groups, pair) for pair in tested.watch.comparisons.pairs)
    return [(group["race"], label) for group, label in found]


def examined(monitor, options):
    return monitor._tested("hires", options.get("policy"), without_policy(options))[1]


def without_policy(options):
    return {name: value for name, value in options.items() if name != "policy"}


def alerts_after(tested, batch):
    """The pairs with an alert after a batch, by the episodes of a replay."""
    told = names(tested)
    return {
        told[e.pair]: e.start
        for e in tested.watch.episodes
        if e.start <= batch and (e.end is None or e.end > batch)
    }


# ------------------------------------------------------------------- against plain loops


@every_kind
@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_is_judged_as_plain_loops_do(opened, kind, seed):
    options, compared, bounds, least = KINDS[kind]
    options = {**options, "alpha": 0.2}
    monitor, batches = opened(), wild(seed)
    fill(monitor, batches)
    tested = examined(monitor, options)
    told = names(tested)
    tracks = {name: track(tested.watch, pair) for pair, name in enumerate(told)}
    naive = Bookkeeper(compared, bounds, least, alpha=0.2)
    alerts = 0
    for day, batch in enumerate(batches):
        naive.see(by_group(batch))
        here = {name: line[day] for name, line in tracks.items() if not np.isnan(line[day])}
        assert here == pytest.approx(naive.evidence(), abs=1e-9)
        assert set(alerts_after(tested, day)) == naive.alerts
        alerts += len(naive.alerts)
    assert alerts > 0
    check = monitor.check("hires", **options)
    found = {(f.group["race"], f.label): f.log10_e * math.log(10) for f in check.findings}
    assert found == pytest.approx(naive.evidence(), abs=1e-9)
    outside = {(f.group["race"], f.label) for f in check.findings if f.kind == "outside"}
    assert outside == naive.alerts
    for pair, name in enumerate(told):
        parts = [naive.bettors[each].s for each in naive.entry if each[:2] == name]
        if parts:
            mean = sum(parts) / len(parts)
            assert math.exp(tested.watch.log_s[pair]) == pytest.approx(mean, rel=1e-9)


def test_groups_of_several_attributes_are_judged_as_plain_loops_do(opened):
    rng = np.random.default_rng(4)
    monitor, batches = opened(), []
    for day in range(25):
        cells = {
            (sex, race, hired): int(rng.poisson(6 if hired == "no" or sex == "w" else 12))
            for sex in "wm"
            for race in ("xyz" if day > 9 else "xy")
            for hired in ("yes", "no")
        }
        cells = {cell: n for cell, n in cells.items() if n}
        batches.append(counts(cells, sensitive=("sex", "race")))
    fill(monitor, batches)
    lattices = [lattice_of(rows_of(batch)) for batch in batches]
    groups = {group for lattice in lattices for group in lattice}
    naive = Bookkeeper([(g, y, None) for g in groups for y in ("yes", "no")], ub_bounds(0.1))
    for batch, lattice in zip(batches, lattices, strict=True):
        total = {y: batch.of(f"hired={y}") for y in ("yes", "no")}
        naive.see({**lattice, None: total})
    check = monitor.check("hires")
    assert len(check.findings) == 2 * (2 + 3 + 6)
    found = {}
    for f in check.findings:
        given_ = dict(f.group.items())
        pattern = tuple(given_.get(name, eq.ANY) for name in ("sex", "race"))
        found[pattern, f.label] = f.log10_e * math.log(10)
    assert found == pytest.approx(naive.evidence(), abs=1e-9)


# ------------------------------------------------------------------- replays


@every_kind
@pytest.mark.parametrize("seed", [3, 4])
def test_a_check_of_every_day_is_the_replay_of_all_days(opened, kind, seed):
    monitor, batches = opened(), wild(seed)
    fill(monitor, batches)
    options = {**KINDS[kind][0], "alpha": 0.2}
    replay = examined(monitor, options)
    tracks = dict(zip(names(replay), range(len(names(replay))), strict=True))
    series = replay.series
    for day in range(len(batches)):
        then = run_tests(series.where(np.arange(len(batches)) <= day), replay.watched, {})
        told, seen = names(then), then.watch
        joined = {told[i] for i in np.flatnonzero(seen.active)}
        lines = {name: track(replay.watch, pair)[day] for name, pair in tracks.items()}
        assert joined == {name for name, value in lines.items() if not np.isnan(value)}
        for i in np.flatnonzero(seen.active):
            assert lines[told[i]] == pytest.approx(seen.log_e[i], abs=1e-9)
        alerts = {told[i]: seen.raised[i] for i in np.flatnonzero(seen.alerted)}
        assert alerts == alerts_after(replay, day)


def test_a_label_that_comes_late_does_not_change_what_was_said_before(opened):
    monitor, later = opened(), opened()
    batches = wild(5, label_from=99)
    news = counts({("b", f"new{i}"): 1 for i in range(9)}, sensitive=("race",))
    fill(monitor, batches)
    fill(later, [*batches, news])
    before = examined(monitor, {"alpha": 0.2}).watch.episodes
    after = examined(later, {"alpha": 0.2})
    old = [e for e in after.watch.episodes if e.start < len(batches)]
    assert [(e.start, e.pair) for e in before]
    assert [e.start for e in old] == [e.start for e in before]


# ------------------------------------------------------------------- joining


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 8))
def test_whoever_joins_never_raises_the_mean(seed, n, columns):
    rng = np.random.default_rng(seed)
    pair = np.sort(rng.integers(0, 3, n))
    pair = np.unique(pair, return_inverse=True)[1]
    start = rng.integers(-1, columns + 2, n)
    there = np.arange(columns) >= start[:, None]
    # The rows of a label are there before those that join, or with them, for all of a pair.
    seen = np.array([start[pair == p].min() for p in pair]) - rng.integers(0, 2, n)[pair]
    log_e = np.where(there, rng.normal(0, 2, there.shape), 0.0)
    log_e[(np.arange(columns) == seen[:, None]) & (start == seen)[:, None]] = (
        0.0  # nothing to bet on
    )
    met = start < 0
    last = np.where(met, rng.normal(0, 2, n), 0.0)
    entry = entries(log_e, last, Joining(there, met, seen, pair))
    assert (entry <= 0).all()
    assert (entry[met] == 0).all()
    for column in range(columns):
        was = there[:, column - 1] if column else met
        late = there[:, column] & ~was & (seen == column)
        now = log_e[:, column] + entry
        early = there[:, column] & ~late
        before = (log_e[:, column - 1] + entry) if column else last + entry
        raised = mean(before, early, pair) - mean(before, was, pair)
        assert raised <= 1e-9 or not was.any()
        assert mean(now, there[:, column], pair) <= mean(now, early, pair) + 1e-9 or not early.any()


def mean(log_e, there, pair):
    """The mean e-value over pairs, of the means over their comparisons."""
    parts = [
        np.mean(np.exp(log_e[there & (pair == p)]))
        for p in np.unique(pair)
        if there[pair == p].any()
    ]
    return float(np.mean(parts)) if parts else 1.0


def test_means_of_pairs_count_those_that_are_there():
    values = np.log([[1.0, 3.0], [2.0, 5.0], [7.0, 7.0], [4.0, 4.0]])
    there = np.array([[True, True], [False, True], [False, True], [False, False]])
    found = np.exp(means(values, there, np.array([0, 0, 1, 2])))
    assert found == pytest.approx(np.array([[1, 4], [0, 7], [0, 0]]))


def test_a_group_joins_with_its_first_batch_beside_others(opened):
    alone = counts({("b", "yes"): 3, ("b", "no"): 5}, sensitive=("race",))
    both = counts({("a", "yes"): 3, ("b", "no"): 5}, sensitive=("race",))
    monitor = opened()
    fill(monitor, [alone, alone])
    assert monitor.check("hires").findings == ()
    fill(monitor, [both], start=START + 2 * DAY)
    assert len(monitor.check("hires").findings) == 4
    tested = examined(monitor, {})
    assert np.isnan(track(tested.watch, 0)).tolist() == [True, True, False]


def test_a_limit_that_the_share_of_a_group_rules_out_says_nothing(opened):
    # Of 80 rows in 100 no group has twice the overall rate of anything.
    monitor = opened()
    batch = counts({("a", "yes"): 50, ("a", "no"): 30, ("b", "yes"): 1, ("b", "no"): 19}, ("race",))
    fill(monitor, [batch] * 10)
    rule = {"group": "race=a", "label": "yes", "k": 2, "max_abs_ub": 0.1}
    (finding,) = monitor.check("hires", policy={"rules": [rule]}).findings
    assert finding.log10_e == pytest.approx(0, abs=1e-12)
    assert finding.kind != "outside"


# ------------------------------------------------------------------- merged batches


def same(one, other):
    """That two checks say the same of a stream, as far as evidence goes."""
    seen, told = ({(str(f.group), f.label): f for f in c.findings} for c in (one, other))
    assert seen.keys() == told.keys()
    for key, f in seen.items():
        assert f.log10_e == pytest.approx(told[key].log10_e, abs=1e-9)
        assert f.ub == pytest.approx(told[key].ub, abs=1e-9, nan_ok=True)
        assert (f.rows, f.cases, f.batches) == (told[key].rows, told[key].cases, told[key].batches)
        assert f.kind == told[key].kind
        assert (f.changed, f.raised) == (told[key].changed, told[key].raised)
        # Since when is an estimate, for which merged batches can no longer be asked.
        assert (f.since is None) == (told[key].since is None)
    return [f for f in seen.values() if f.kind == "outside"]


@every_kind
@pytest.mark.parametrize("every", ["week", "month"])
def test_merging_changes_no_evidence_whatever_comes_later(opened, kind, every):
    options = {**KINDS[kind][0], "alpha": 0.2}
    merged, whole = opened(), opened()
    # Two of the groups and a label come only after the first merge.
    batches = wild(6, 80, first={**FIRST, "d": 44, "e": 66}, label_from=47)
    fill(merged, batches[:40])
    before = merged.check("hires", **options)
    assert merged.merge("hires", older_than="3d", every=every)[0] > 20
    after = merged.check("hires", **options)
    same(before, after)
    assert [f.since for f in after.alerts] == [f.since for f in before.alerts]
    fill(whole, batches[:40])
    for first, last in ((40, 43), (43, 60), (60, 80)):
        for monitor in (merged, whole):
            fill(monitor, batches[first:last], start=START + first * DAY)
        wanted = whole.check("hires", **options)
        same(wanted, merged.check("hires", **options))
        merged.merge("hires", older_than="4d", every=every)
        alerts = same(wanted, merged.check("hires", **options))
        one, other = examined(merged, options), examined(whole, options)
        assert np.exp(one.watch.log_s) == pytest.approx(np.exp(other.watch.log_s), rel=1e-9)
    assert alerts
    assert len(merged.batches("hires").batches) < 40


def test_merging_keeps_what_was_acknowledged_tagged_late_and_corrected(opened):
    merged, whole = opened(), opened()
    batches = wild(7, 50, first={**FIRST, "e": 45}, label_from=42)
    options = [{"alpha": 0.2}, {"alpha": 0.2, "tags": {"site": "north"}}]
    for monitor in (merged, whole):
        for day, batch in enumerate(batches[:40]):
            at = START + (day if day % 9 else max(day - 5, 0)) * DAY
            tags = {"site": "north" if day % 2 else "south"}
            monitor.add(batch, name="hires", at=at, id=f"{day}", tags=tags)
            if day == 11:
                monitor.acknowledge("hires", reason="a new form")
        monitor.add(
            batches[40], name="hires", at=START + 20 * DAY, id="20", tags=tags, replace=True
        )
        monitor.withdraw("hires", id="21")
    for each in options:
        merged.check("hires", **each)
    assert merged.merge("hires", older_than="5d", every="month")[0] > 20
    for monitor in (merged, whole):
        fill(monitor, batches[41:], start=START + 41 * DAY)
        monitor.add(
            batches[40], name="hires", at=START + 60 * DAY, tags={"site": "north"}, id="last"
        )
    assert same(whole.check("hires", **options[0]), merged.check("hires", **options[0]))
    same(whole.check("hires", **options[1]), merged.check("hires", **options[1]))


def test_the_level_of_the_evidence_may_differ_from_that_before_merging(opened):
    merged, whole = opened(), opened()
    for monitor in (merged, whole):
        added = fill(monitor, wild(8))
        monitor.check("hires", alpha=0.5)
        if monitor is merged:
            monitor.merge("hires", older_than="1d", every="day")
        for each in added[-2:]:  # so that no batch is tested after the evidence that was kept
            monitor.withdraw("hires", id=each.batch.id)
    assert {b.state for b in merged.batches("hires").batches} == {"merged", "withdrawn"}
    numbers = []
    for alpha in (0.5, 0.05, 1e-9):
        wanted, found = (m.check("hires", alpha=alpha) for m in (whole, merged))
        assert {str(f.group) for f in found.alerts} == {str(f.group) for f in wanted.alerts}
        numbers.append(len(found.alerts))
        # When an alert was raised is known of the level that was checked before.
        assert {f.raised is not None for f in found.alerts} <= {alpha == 0.5}
    assert numbers[0] > numbers[1] > numbers[2]


def test_merging_mixes_no_days_into_the_bias_within_batches(opened):
    # Everybody has the rate of the day, and women come on bad days.
    rng = np.random.default_rng(13)
    monitor = opened()
    for day in range(60):
        rate, women = (0.8, 10) if day % 2 else (0.2, 90)
        w, m = int(rng.binomial(women, rate)), int(rng.binomial(100 - women, rate))
        cells = {("w", "yes"): w, ("w", "no"): women - w, ("m", "yes"): m}
        cells["m", "no"] = 100 - women - m
        monitor.add(
            counts({c: n for c, n in cells.items() if n}), name="hires", at=START + day * DAY
        )
    limits = {"policy": {"rules": [{"group": "sex=w", "label": "yes", "max": -0.9}]}}
    (before,) = monitor.check("hires", **limits).findings
    monitor.merge("hires", older_than="30d")
    (after,) = monitor.check("hires", **limits).findings
    assert abs(before.ub) < 0.2
    assert after.ub == pytest.approx(before.ub, abs=1e-12)
    assert before.kind == after.kind == "outside"
    for finding in (before, after):
        assert finding.ub_low < 0 < finding.ub_high


def test_merging_again_keeps_the_evidence(opened):
    twice, whole = opened(), opened()
    for monitor in (twice, whole):
        fill(monitor, wild(8, 45))
        monitor.check("hires")
    assert twice.merge("hires", older_than="5d", every="day")[0] > 30
    assert twice.merge("hires", older_than="5d", every="month")[0] > 20
    same(whole.check("hires"), twice.check("hires"))
    said = twice.check("hires").sentences
    assert not [s for s in said if "no evidence" in s]
    assert [s for s in said if s.startswith("The confidence sequences use only the")]


def test_tags_that_come_after_a_merge_are_tested(opened):
    monitor = opened()
    batches = wild(11, 30)
    fill(monitor, batches[:20])
    tagged = {"tags": {"site": "north"}}
    with pytest.raises(InputError, match="no batch of hires has the tag site=north"):
        monitor.check("hires", **tagged)
    assert monitor.merge("hires", older_than="3d")[0] > 10
    for day, batch in enumerate(batches[20:], 20):
        monitor.add(batch, name="hires", at=START + day * DAY, **tagged)
    alone = opened()
    fill(alone, batches[20:], start=START + 20 * DAY)
    same(alone.check("hires"), monitor.check("hires", **tagged))
    assert monitor.check("hires", **tagged).findings


def test_a_group_that_joins_after_a_merge_has_a_beginning(opened):
    monitor = opened()
    cells = {("a", "yes"): 30, ("a", "no"): 20, ("b", "yes"): 1, ("b", "no"): 9}
    fill(monitor, [counts(cells, sensitive=("race",))] * 60)
    at = (
        START + 53 * DAY
    )  # the first batch that is not merged, with which the group is large enough
    assert monitor.check("hires", min_count=540).findings
    assert monitor.merge("hires", older_than="3d") == (53, 8)
    late = [f for f in monitor.check("hires", min_count=540).alerts if str(f.group) == "race=b"]
    assert [f.since for f in late] == [at, at]


def test_a_withdrawn_batch_that_is_added_again_after_a_merge_is_tested(opened):
    merged, whole = opened(), opened()
    batches = wild(9, 20)
    for monitor in (merged, whole):
        added = fill(monitor, batches)
        monitor.check("hires")
        monitor.withdraw("hires", id=added[4].batch.id)
        if monitor is merged:
            monitor.merge("hires", older_than="5d")
            monitor.add(batches[4], name="hires", at=START + 4 * DAY, replace=True)
        else:
            monitor.add(batches[4], name="hires", at=START + 4 * DAY, id="again")
    same(whole.check("hires"), merged.check("hires"))
    assert merged.counts("hires") == whole.counts("hires")


def test_a_corrected_batch_is_tested_in_its_place(opened):
    corrected, right = opened(), opened()
    batches = wild(10, 20)
    fill(right, batches)
    added = fill(corrected, [*batches[:5], batches[19], *batches[6:]])
    corrected.add(batches[5], name="hires", at=START + 5 * DAY, id=added[5].batch.id, replace=True)
    same(right.check("hires"), corrected.check("hires"))


# ------------------------------------------------------------------- groups that are too small


@pytest.mark.parametrize("limit", [0.0, 0.02])
def test_a_group_that_is_too_small_could_not_have_raised_an_alert(limit):
    rng = np.random.default_rng(15)
    small = 0
    for _ in range(400):
        batches = int(rng.integers(5, 15))
        share, rate = rng.uniform(0.1, 0.7), rng.choice([0.5, 0.97])
        n = int(rng.integers(5, 30))
        m = rng.binomial(n - 2, share, batches) + 1
        r = n - m
        x, z = rng.binomial(m, rng.choice([rate, 1])), rng.binomial(r, rate)
        groups = groups_of(np.stack([np.stack([m - x, x], axis=1), np.stack([r - z, z], axis=1)]))
        rule = Rule(group="race=g00", label="y1", max_abs=limit)
        found = watch(find_comparisons(groups, [rule], None), 0.05)
        if not found.comparisons.pairs:
            continue
        tally = sum_up(found.comparisons, 0)
        tested = SimpleNamespace(watch=found, watched=SimpleNamespace(alpha=0.05))
        if _small(tested, tally)[0]:
            small += 1
            naive = Bettor(ub_bounds(limit))
            for x_, *others in zip(m if tally.ub[0] < 0 else 0 * m, m, z, r, strict=True):
                naive.see(tuple(int(n) for n in (x_, *others)))
                assert naive.log_e < math.log(20)
    assert small > 10


# ------------------------------------------------------------------- false alarms


def groups_of(cases):
    """The series of groups of one attribute, from rows by group, batch and label."""
    cells = {
        (f"g{g:02}", f"y{y}"): int(cases[g, :, y].sum())
        for g in range(len(cases))
        for y in range(cases.shape[2])
    }
    total = counts(cells, sensitive=("race",))
    codes = np.arange(len(cases), dtype=np.int32)[:, None]
    return GroupSeries(total, codes, np.ones(len(cases), np.intp), cases, cases.sum(axis=0))


def joining(rng, sizes, rates, gap, batches):
    """Rows of groups, one of which joins after every so many batches."""
    m = np.array(sizes)[:, None] * (np.arange(batches) >= gap * np.arange(len(sizes))[:, None])
    x = rng.binomial(m, np.array(rates)[:, None])
    return np.stack([m - x, x], axis=2)


def share_of_alarms(rng, rule, streams, **how):
    alarms = 0
    for _ in range(streams):
        groups = groups_of(joining(rng, **how))
        found = watch(find_comparisons(groups, [rule], None), 0.2)
        alarms += bool(found.episodes)
    return alarms / streams, 0.2 + 3 * math.sqrt(0.2 * 0.8 / streams)


@pytest.mark.slow
def test_groups_that_join_do_not_add_up_to_false_alarms():
    rng = np.random.default_rng(11)
    how = {"sizes": [40] * 30, "rates": [0.3] * 30, "gap": 3, "batches": 100}
    share, most = share_of_alarms(rng, Rule(max_abs=0.0, label="y1"), 400, **how)
    assert 0 < share <= most


@pytest.mark.slow
def test_groups_that_join_those_a_group_is_compared_with_do_not_add_up():
    rng = np.random.default_rng(12)
    rule = Rule(group="race=g00", label="y1", measure="impact_ratio", min=0.8, reference="best")
    how = {"sizes": [2000] + [20] * 30, "rates": [0.4] + [0.5] * 30, "gap": 5, "batches": 160}
    share, most = share_of_alarms(rng, rule, 400, **how)
    assert 0 < share <= most
