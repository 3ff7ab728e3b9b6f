"""One deadline for everything that is done for a request."""

import time

import numpy as np
import pytest

import equipoise as eq
from equipoise.plans.clock import SHORTEST, end_after, ending_after, is_late, seconds_left


def test_an_inner_deadline_is_never_later_than_the_outer_one(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    assert end_after(5) == 105
    with ending_after(3):
        assert end_after(5) == 103
        assert seconds_left(5) == 3
        with ending_after(10):
            assert end_after(99) == 103
        with ending_after(1):
            assert end_after(99) == 101
        assert not is_late()
        monkeypatch.setattr(time, "monotonic", lambda: 104.0)
        assert is_late()
        assert seconds_left(5) == SHORTEST
    assert not is_late()
    assert end_after(5) == 109


def table(groups, labels):
    rng = np.random.default_rng(5)
    rates = rng.dirichlet(np.full(labels, 4.0), groups)
    have = rng.poisson(rng.gamma(2.0, 60, groups)[:, None] * rates) + 1
    names = [(f"a{g % 8}", f"b{g // 8}") for g in range(groups)]
    cells = {
        (*name, f"y{y}"): int(n)
        for name, line in zip(names, have, strict=True)
        for y, n in enumerate(line)
    }
    return eq.Counts.from_mapping(cells, sensitive=["a", "b"], label="y")


ASKED = {
    "many labels": {"tolerance": 0.02, "gap": 0.0, "labels": "free"},
    "a policy": {"policy": {"max-abs-ub": 0.05, "min-count": 90}},
    "fewest groups": {"tolerance": 0.05, "objective": "groups"},
    "a limit": {"tolerance": 0.02, "gap": 0.0, "max_rows": 9_000},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_the_time_limit_ends_everything(name):
    counts = table(60, 4)
    eq.plan(counts, tolerance=0.5, allow="both", time_limit=0.1)  # what is imported late
    started = time.process_time()
    try:
        eq.plan(counts, allow="both", time_limit=0.8, **ASKED[name])
    except eq.Infeasible as none:
        assert "0.8 seconds" in str(none) or "not enough time" in str(none)  # noqa: PT017
    assert time.process_time() - started < 1.1 * 0.8 + 0.3  # the machine may be busy
