"""How often streams inside their limits raise an alert, and how soon a bias is found. Simulated.

MONITOR_STREAMS=500 draws fewer streams.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from bars import Bar, Section, markdown_table, write_into
from stream_families import family_rows

from equipoise.measures.uncertainty.intervals import ub_interval
from equipoise.measures.uncertainty.p_values import p_value
from equipoise.monitoring.evidence.factors import ratio_bounds
from equipoise.monitoring.evidence.intervals import confidence_sequence
from equipoise.monitoring.evidence.process import State, Track, advance
from equipoise.monitoring.evidence.samples import Floats, Samples
from equipoise.monitoring.watch import MEAN_TIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = Path(__file__).parents[1] / "docs" / "monitor.md"

STREAMS = int(os.environ.get("MONITOR_STREAMS", "10000"))
BATCHES = 200
CHUNK = 2500
"""Streams that are drawn and tested together."""
ALPHA, LIMIT, WINDOW = 0.05, 0.1, 30
RATES, SIZES = (0.02, 0.2, 0.5), (5, 20, 100, 500)
SEQUENCES = 1000
"""Streams whose confidence sequences are computed."""
NEVER = 10**6


class Rates(NamedTuple):
    """True rates and sizes of each batch: arrays of streams by batches, or what broadcasts to them."""

    p1: Floats
    p0: Floats
    m: Floats
    r: Floats

    def draw(self, rng: np.random.Generator, streams: int) -> Samples:
        """Draw the rows with the label of some streams."""
        shape = (streams, self.p1.shape[1])
        m, r = (np.broadcast_to(size, shape).astype(np.int64) for size in (self.m, self.r))
        x, z = rng.binomial(m, self.p1, shape), rng.binomial(r, self.p0, shape)
        return Samples(*(part.astype(float) for part in (x, m, z, r)))


def drifting(rng: np.random.Generator, rate: float, size: int, ub: float, streams: int) -> Rates:
    """Streams whose overall rate and shares drift together, while UB is the same in every batch.

    The odds of the label rise up to threefold and fall again, with a random walk beside. The group's
    share moves from a tenth to four tenths with it, which deceives tests on running totals.
    """
    times = np.linspace(0, 2 * np.pi, BATCHES)
    walk = np.cumsum(rng.normal(0, 0.03, (streams, BATCHES)), axis=1)
    odds = rate / (1 - rate) * np.exp(0.55 * np.sin(times) + walk)
    share = 0.25 + 0.15 * np.sin(times)
    r = np.maximum(np.rint(size * (1 - share) / share), 1)[None]
    p0 = odds / (1 + odds)
    exact = size / (size + r)  # rows are whole, so that shares are not quite as wanted
    ratio, _ = ratio_bounds(exact, np.array(1 - ub), np.array(1 - ub))
    return Rates(
        np.minimum(ratio * p0, 1.0), np.where(ratio * p0 > 1, 1 / ratio, p0), np.array([[size]]), r
    )


def shifted(rate: float, sizes: tuple[int, int], ub: float, begins: int, batches: int) -> Rates:
    """Streams of equal batches that are biased from one of them on."""
    m, r = sizes
    share = m / (m + r)
    now = np.where(np.arange(batches) >= begins, ub, 0.0)[None]
    inside = rate * (1 - now)
    return Rates(inside, (rate - share * inside) / (1 - share), np.array([[m]]), np.array([[r]]))


# ---------------------------------------------------------------------------- contestants


def evidence(samples: Samples, limit: float) -> Track:
    """Run the tests of the monitor."""
    low, high = ratio_bounds(samples.share, np.array(1 - limit), np.array(1 + limit))
    return advance(State.start(len(samples.x)), samples, low, high)[0]


def chi_squared(samples: Samples) -> Floats:
    """p-values of equal rates, as of a table: (N−1)χ², or Fisher's test with mid-p for few rows."""
    x, m, z, r = samples
    found = p_value(x, m, x + z, m + r)
    return np.where(np.isnan(found), 1.0, found)


def windows(samples: Samples, length: int) -> Samples:
    """Sums over the last batches, from the first full window on."""
    return Samples(
        *(np.lib.stride_tricks.sliding_window_view(p, length, axis=1).sum(axis=2) for p in samples)
    )


def totals(samples: Samples) -> Samples:
    """Sums over all batches so far."""
    return Samples(*(np.cumsum(part, axis=1) for part in samples))


def first(alarms: NDArray[np.bool_], offset: int = 0) -> NDArray[np.int64]:
    """The number of the batch of the first alarm, from 1; `NEVER` if there is none."""
    return np.where(alarms.any(axis=1), np.argmax(alarms, axis=1) + 1 + offset, NEVER)


def _window_alarms(samples: Samples, level: float) -> NDArray[np.int64]:
    return first(chi_squared(windows(samples, WINDOW)) < level, WINDOW - 1)


CONTESTANTS = {
    "e-value": lambda s: first(evidence(s, 0.0).log_e >= -np.log(ALPHA)),
    "change detector": lambda s: first(evidence(s, 0.0).log_s >= np.log(MEAN_TIME)),
    "χ² of each batch": lambda s: first(chi_squared(s) < ALPHA),
    "χ² of the last 30": lambda s: _window_alarms(s, ALPHA),
    "χ² of each batch, α/200": lambda s: first(chi_squared(s) < ALPHA / BATCHES),
    "χ² of the last 30, α/200": lambda s: _window_alarms(s, ALPHA / BATCHES),
}
"""What is compared where the limit is 0; χ² tests know no other limit."""


# ---------------------------------------------------------------------------- quiet streams


@dataclass(frozen=True)
class Quiet:
    """The share of quiet streams with any alarm, for one rate and size."""

    rate: float
    size: int
    shares: dict[str, float]


def _chunks(total: int) -> Iterator[int]:
    yield from (min(CHUNK, total - done) for done in range(0, total, CHUNK))


def quiet(rng: np.random.Generator, rate: float, size: int) -> Quiet:
    """Simulate streams at the border of the limits, and streams without bias."""
    alarms: dict[str, list[NDArray[np.bool_]]] = {}
    for streams in _chunks(STREAMS):
        for ub in (0.0, LIMIT, -LIMIT):
            samples = drifting(rng, rate, size, ub, streams).draw(rng, streams)
            log_e = evidence(samples, abs(ub)).log_e
            name = f"e-value, UB {_signed(ub)}, limit {abs(ub):g}"
            alarms.setdefault(name, []).append((log_e >= -np.log(ALPHA)).any(axis=1))
            if ub == 0:
                for name, told in _of_tables(samples).items():
                    alarms.setdefault(name, []).append(told)
    shares = {name: float(np.concatenate(parts).mean()) for name, parts in alarms.items()}
    return Quiet(rate, size, shares)


def _of_tables(samples: Samples) -> dict[str, NDArray[np.bool_]]:
    tested = {
        "χ² of each batch": samples,
        "χ² of the last 30": windows(samples, WINDOW),
        "χ² of all so far": totals(samples),
    }
    return {name: (chi_squared(sums) < ALPHA).any(axis=1) for name, sums in tested.items()}


def _signed(ub: float) -> str:
    return f"{ub:+g}".replace("-", "−") if ub else "0"


# ---------------------------------------------------------------------------- delays


AT = (20, 80)
"""Rows of the group and of the others in the batches of which delays are told."""
RATE = 0.3
SHIFTS, LIMIT_SHIFTS = (0.1, 0.2, 0.3), (0.2, 0.3, 0.4)
LATE = 100


def delays(rng: np.random.Generator) -> list[list[str]]:
    """How many batches each contestant needs, for biases from the beginning and for later ones."""
    still = shifted(RATE, AT, 0.0, 0, BATCHES)
    rows = []
    for name, contestant in CONTESTANTS.items():
        false = np.concatenate([contestant(still.draw(rng, n)) for n in _chunks(STREAMS)])
        row = [name, f"{(false < NEVER).mean():.3f}"]
        for begins, ub in itertools.product((0, LATE), SHIFTS):
            rates = shifted(RATE, AT, ub, begins, begins + BATCHES)
            found = np.concatenate([contestant(rates.draw(rng, n)) for n in _chunks(STREAMS)])
            row.append(_delay(found, begins))
        rows.append(row)
    return rows


def limit_delays(rng: np.random.Generator) -> list[list[str]]:
    """The same for the tests of a limit above 0."""
    rows = []
    for name, threshold in (("e-value", -np.log(ALPHA)), ("change detector", np.log(MEAN_TIME))):
        row = [name]
        for begins, ub in itertools.product((0, LATE), LIMIT_SHIFTS):
            rates = shifted(RATE, AT, ub, begins, begins + BATCHES)
            parts = []
            for streams in _chunks(STREAMS):
                track = evidence(rates.draw(rng, streams), LIMIT)
                parts.append(
                    first((track.log_e if name == "e-value" else track.log_s) >= threshold)
                )
            row.append(_delay(np.concatenate(parts), begins))
        rows.append(row)
    return rows


def _delay(found: NDArray[np.int64], begins: int) -> str:
    """The median delay after a change; of alarms before it only the share is told."""
    early = found <= begins
    late = found[~early] - begins
    if early.mean() > 0.5:
        return f"({early.mean():.0%} before)"
    median = np.median(late)
    words = f"{median:.0f}" if median <= BATCHES else f"> {BATCHES}"
    return words + (f" ({early.mean():.0%} before)" if early.mean() >= 0.005 else "")


# ---------------------------------------------------------------------------- other promises


def false_changes(rng: np.random.Generator) -> tuple[float, int]:
    """The mean number of batches to a false alarm of the change detector, cut off at the number told."""
    batches, streams = 20_000, 200
    size = np.array([[20.0]])
    p = np.full((1, batches), RATE)
    samples = Rates(p, p, size, 4 * size).draw(rng, streams)
    low, high = ratio_bounds(samples.share[:, :1], np.array(1.0), np.array(1.0))
    track, _ = advance(State.start(streams), samples, low, high)
    found = first(track.log_s >= np.log(MEAN_TIME))
    return float(np.minimum(found, batches).mean()), batches


def sequences(rng: np.random.Generator) -> tuple[float, float]:
    """How often a confidence sequence misses the truth at any time, and its width beside an interval."""
    missed, widths = [], []
    times = np.arange(1, BATCHES + 1)
    for ub in (0.0, 0.3):
        samples = shifted(RATE, AT, ub, 0, BATCHES).draw(rng, SEQUENCES // 2)
        for stream in range(SEQUENCES // 2):
            one = samples.rows(slice(stream, stream + 1))
            found = confidence_sequence(one, times, ALPHA)
            missed.append(bool(((found.low > ub) | (found.high < ub) | np.isnan(found.low)).any()))
            x, m, z, r = (part.sum() for part in one)
            fixed = ub_interval(x, m, x + z, m + r, sampling="groups")
            widths.append((found.high[-1] - found.low[-1]) / float(fixed.high - fixed.low))
    return float(np.mean(missed)), float(np.median(widths))


# ---------------------------------------------------------------------------- the section


def section(*, write: bool = False) -> Section:
    """Simulate everything, and put it into the page."""
    rng = np.random.default_rng(20_261_119)
    found = []
    for rate, size in itertools.product(RATES, SIZES):
        _say(f"quiet streams, rate {rate:g}, {size} rows")
        found.append(quiet(rng, rate, size))
    _say("delays")
    late, limited = delays(rng), limit_delays(rng)
    _say("many groups")
    families = family_rows(rng, STREAMS, ALPHA)
    _say("changes and sequences")
    (mean, cut), (missed, width) = false_changes(rng), sequences(rng)
    body = _body(found, late, limited, families)
    body.append(
        f"The change detector raised its first false alarm after {mean:,.0f} batches on average. The simulation stopped "
        f"after {cut:,} batches (200 streams, {AT[0]} + {AT[1]} rows, rate {RATE:g}, limit 0). Of {SEQUENCES:,} confidence "
        f"sequences, {missed:.1%} missed the true UB at any time in {BATCHES} batches. After the last batch, their median "
        f"width was {width:.2f} times that of a fixed-sample confidence interval."
    )
    if write:
        write_into(PAGE, body)
    worst = max(
        share for each in found for name, share in each.shares.items() if name.startswith("e-value")
    )
    bars = [
        Bar("quiet streams with any false alarm, worst setting", worst, ALPHA, unit=""),
        Bar(
            "quiet families with any false alarm, worst setting",
            max(f for *_, f in families),
            ALPHA,
            unit="",
        ),
        Bar(
            "batches to a false alarm of the change detector", mean, MEAN_TIME, "at least", unit=""
        ),
        Bar("confidence sequences that ever miss UB", missed, ALPHA, unit=""),
    ]
    return Section("Quiet streams", body, bars)


def _say(what: str) -> None:
    print(f"quiet_streams: {what} ...", file=sys.stderr, flush=True)


def _body(
    found: Sequence[Quiet],
    late: list[list[str]],
    limited: list[list[str]],
    families: Sequence[tuple[str, str, float]],
) -> list[str]:
    names = sorted(found[0].shares, key=lambda name: not name.startswith("e-value"))
    rows = [
        [f"{each.rate:g}", each.size, *(f"{each.shares[name]:.3f}" for name in names)]
        for each in found
    ]
    told = [[*words, f"{share:.4f}"] for *words, share in families]
    return [
        QUIET_TEXT,
        markdown_table(["rate", "rows of the group", *names], rows),
        DELAY_TEXT,
        markdown_table(["test", "false alarms", *_shift_names(SHIFTS)], late),
        f"Delays for the limit {LIMIT:g}, which these χ² tests cannot test:",
        markdown_table(["test", *_shift_names(LIMIT_SHIFTS)], limited),
        FAMILY_TEXT,
        markdown_table(["groups", "streams", "any alert"], told),
    ]


def _shift_names(shifts: Sequence[float]) -> list[str]:
    return [f"UB {_signed(ub)}{when}" for when in ("", " later") for ub in shifts]


QUIET_TEXT = (
    f"**Quiet streams.** Each row shows the results of {STREAMS:,} simulated streams of {BATCHES} batches, with "
    f"α = {ALPHA:g}. The overall rate starts at the rate in the first column and drifts: its odds rise and fall by the "
    "factor 1.7, with an additional random walk. The group's share of a batch moves from 25% to 40%, to 10%, and back. "
    "The numbers are the shares of streams with any alarm. In the e-value columns, |UB| is equal to the limit in every "
    "batch, so that all these streams are inside their limits. The χ² columns are tests of equal rates at the level "
    "0.05 in the streams with UB 0. They are repeated after every batch: on this batch, on the last "
    f"{WINDOW} batches, and on all batches so far."
)
DELAY_TEXT = (
    f"**Delays.** Each batch has {AT[0]} rows of the group and {AT[1]} other rows. The overall rate is {RATE:g}, and the "
    f"limit is 0. The column *false alarms* shows the share of {BATCHES}-batch streams without bias that raise an alarm. "
    "The other columns show the median number of batches until a bias is found. The bias is there from the beginning, or "
    f"from batch {LATE + 1} on (*later*). Brackets contain the share of streams with a false alarm before the bias "
    "begins; if this share is above one half, no median is shown. α/200 is the level of tests that are planned for "
    f"exactly {BATCHES} batches."
)
FAMILY_TEXT = (
    "**Many groups.** These streams have several attributes. All groups and labels are tested together with the e-BH "
    "procedure, and the limit is 0. The last column shows the share of streams with any alert."
)
