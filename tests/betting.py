"""The evidence of a stream by plain loops, from its definition alone."""

from __future__ import annotations

import math

HALF_LIFE, QUICK = 20, 5
NOBODY = (0.0, 0.0, 0.0, 0.0)


def bound(relative, share):
    """p1/p0 where the rate of a group of a share is so many times that of all rows."""
    return None if relative * share >= 1 else relative * (1 - share) / (1 - relative * share)


def ub_bounds(limit):
    """The bounds of p1/p0 in a batch that |UB| ≤ limit means."""

    def found(m, r):
        share = m / (m + r)
        low, high = bound(1 - limit, share), bound(1 + limit, share)
        return (0.0 if low is None else low), (math.inf if high is None else high)

    return found


def bet(past, low, high):
    """The rates to bet on: past rows, and two more at the overall rate, moved into the null."""
    x, m, z, r = past
    if m + r == 0:
        return None
    overall = (x + z) / (m + r)
    inside = min(max(1.0, low), high)
    centre = min(overall * inside, (1 + overall) / 2)
    return (x + 2 * centre) / (m + 2), (z + 2 * overall) / (r + 2)


def likelihood(counts, t1, t0):
    """The logarithm of the likelihood of rates."""
    x, m, z, r = counts
    return (
        x * math.log(t1) + (m - x) * math.log1p(-t1) + z * math.log(t0) + (r - z) * math.log1p(-t0)
    )


def projected(t1, t0, k, m, r):
    """The rates (k·b, b) of the largest expected log likelihood, by bisection of its slope."""

    def slope(b):
        with_label = (m * t1 + r * t0) / b
        return with_label - k * m * (1 - t1) / (1 - k * b) - r * (1 - t0) / (1 - b)

    low, high = 0.0, min(1.0, 1 / k)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return k * low, low


def log_factor(now, rates, low, high):
    """The logarithm of the factor of one batch."""
    if rates is None or not all(0 < rate < 1 for rate in rates):
        return 0.0
    t1, t0 = rates
    if low * t0 <= t1 <= high * t0:
        return 0.0
    k = low if t1 < low * t0 else high
    return likelihood(now, t1, t0) - likelihood(now, *projected(t1, t0, k, now[1], now[3]))


def plus(one, other, weight=1.0):
    """The sum of two tuples."""
    return tuple(weight * a + b for a, b in zip(one, other, strict=True))


class Bettor:
    """One comparison, batch after batch."""

    def __init__(self, bounds):
        self.bounds = bounds
        self.past, self.recent, self.latest = NOBODY, NOBODY, NOBODY
        self.product, self.begun, self.quick = 1.0, 0.0, 0.0
        self.s_recent, self.s_quick = 0.0, 0.0
        self.drift, self.lowest, self.since = 0.0, 0.0, 0
        self.number, self.told = 0, 0

    @property
    def log_e(self):
        """The mean of a product and of two sums of products, some of which have not begun."""
        waiting = 1 - sum(1 / (k * (k + 1)) for k in range(1, self.told + 1))
        return math.log((self.product + self.begun + waiting + self.quick + waiting) / 3)

    @property
    def s(self):
        """The statistic of the change detector."""
        return (self.s_recent + self.s_quick) / 2

    def see(self, now, told=True):
        """Take a batch (x, m, z, r) into account; of one that is not told remember the rows."""
        self.number += 1
        _, m, _, r = now
        if told and m and r:
            self.told += 1
            weight = 1 / (self.told * (self.told + 1))
            low, high = self.bounds(m, r)
            self.product *= math.exp(log_factor(now, bet(self.past, low, high), low, high))
            quick = math.exp(log_factor(now, bet(self.latest, low, high), low, high))
            self.quick = (self.quick + weight) * quick
            self.s_quick = (self.s_quick + 1) * quick
            change = log_factor(now, bet(self.recent, low, high), low, high)
            self.begun = (self.begun + weight) * math.exp(change)
            self.s_recent = (self.s_recent + 1) * math.exp(change)
            self.drift += change
        if self.drift <= self.lowest:
            self.lowest, self.since = self.drift, self.number
        self.past = plus(self.past, now)
        self.recent = plus(plus(self.recent, now), NOBODY, 0.5 ** (1 / HALF_LIFE))
        self.latest = plus(plus(self.latest, now), NOBODY, 0.5 ** (1 / QUICK))


def chosen(log_e, alpha):
    """The keys that e-BH selects, by trying every number of them."""
    values = {key: math.exp(value) for key, value in log_e.items()}
    best = set()
    for count in range(1, len(values) + 1):
        level = len(values) / (alpha * count)
        enough = {key for key, value in values.items() if value >= level}
        if len(enough) >= count:
            best = enough
    return best


class Bookkeeper:
    """All comparisons of a stream: who joins when, and with which evidence.

    A comparison is (group, label, other), where other is None for all other rows. ``rows`` are given
    as {group: {label: rows}}, with all rows under None.
    """

    def __init__(self, comparisons, bounds, min_count=1, alpha=0.05):
        self.comparisons = list(comparisons)
        self.bettors = {each: Bettor(bounds) for each in self.comparisons}
        self.least, self.alpha = min_count, alpha
        self.entry, self.totals, self.labels = {}, {}, set()
        self.alerts = set()

    def evidence(self):
        """The logarithm of the mean e-value of each pair, over those that have joined."""
        parts = {}
        for each in self.entry:
            value = math.exp(self.entry[each] + self.bettors[each].log_e)
            parts.setdefault(each[:2], []).append(value)
        return {pair: math.log(sum(v) / len(v)) for pair, v in parts.items()}

    def see(self, rows):
        """Take a batch into account."""
        seen_before = set(self.labels)
        self.labels |= {label for label, n in rows[None].items() if n}
        for group, cells in rows.items():
            self.totals[group] = self.totals.get(group, 0) + sum(cells.values())
        before, new, late = self.evidence(), [], []
        for each in self.comparisons:
            now = self._sample(rows, each)
            ready = each[1] in self.labels and all(
                self.totals.get(g, 0) >= self.least for g in (each[0], each[2]) if g is not None
            )
            self.bettors[each].see(now, told=ready)
            if ready and now[1] and now[3] and each not in self.entry:
                (new if each[1] in seen_before else late).append(each)
        for each in new:
            mean = before.get(each[:2], self._mean(before))
            self.entry[each] = min(mean, 0.0)
        mean = self._mean(self.evidence())
        for each in late:
            self.entry[each] = min(mean, 0.0)
        self.alerts = chosen(self.evidence(), self.alpha)

    def _sample(self, rows, comparison):
        group, label, other = comparison
        own = rows.get(group, {})
        x, m = own.get(label, 0), sum(own.values())
        all_of = rows.get(other, {})
        z, r = all_of.get(label, 0), sum(all_of.values())
        return (x, m, z, r) if other is not None else (x, m, z - x, r - m)

    @staticmethod
    def _mean(evidence):
        """The logarithm of the mean e-value of all pairs; that of none is 1."""
        values = [math.exp(value) for value in evidence.values()]
        return math.log(sum(values) / len(values)) if values else 0.0
