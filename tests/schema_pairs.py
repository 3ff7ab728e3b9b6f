"""Pairs of tables whose matching columns are known, made from `lake/schema_pairs/*.toml`.

A line of a schema is "header | what it means | how its values are drawn". Columns of two tables
that mean the same are a match; all others are not. Values are drawn so:

==========================  =================================================================
``id N``                    different whole numbers from N on, shuffled
``key P N``, ``uuid``       different texts
``of A=3; B=1``             A three times as often as B
``whole A B``               whole numbers from A to B
``bell M S [D]``            a normal distribution, with D digits
``skew M S [D]``            a log-normal distribution about M
``count M``                 a Poisson distribution
``date A B [FORMAT]``       days of the years A to B
``after C A B [FORMAT]``    A to B days after the column C; ``before`` the other way
``near C F S [D]``          F times the column C, with noise of S
``clock``                   a time of the day
``first last full``         names; also ``city``, ``street``, ``words``
``... ? SHARE``             of which this share is missing
==========================  =================================================================
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from equipoise.engines.profiling import Profile, Profiler

FOLDER = Path(__file__).parent / "lake" / "schema_pairs"
HALVES = ("development", "held_out")
ROWS = 400

_FIRST = [
    "Ana",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Farid",
    "Grace",
    "Hiro",
    "Ines",
    "James",
    "Keisha",
    "Luis",
    "Maria",
    "Noah",
    "Olga",
]
_LAST = [
    "Adams",
    "Brown",
    "Chen",
    "Diaz",
    "Evans",
    "Flores",
    "Garcia",
    "Huang",
    "Ivanov",
    "Jones",
    "Khan",
    "Lee",
    "Moreno",
    "Nguyen",
]
_CITIES = [
    "Boston",
    "Worcester",
    "Springfield",
    "Lowell",
    "Quincy",
    "Lynn",
    "Newton",
    "Salem",
    "Chelsea",
    "Medford",
]
_WORDS = [
    "seen",
    "again",
    "after",
    "call",
    "sample",
    "small",
    "repeated",
    "as",
    "asked",
    "by",
    "ward",
    "no",
    "change",
    "since",
]


@dataclass(frozen=True)
class Schema:
    """A table: what each column means, and its values."""

    meanings: dict[str, str]
    rows: dict[str, list[str | None]]

    def header(self, meaning: str) -> str:
        """The column that means something."""
        return next(header for header, means in self.meanings.items() if means == meaning)

    def profile(self) -> Profile:
        """What one pass over the table tells."""
        profiler = Profiler(list(self.rows), ["VARCHAR"] * len(self.rows))
        profiler.add([pa.array(values, pa.string()) for values in self.rows.values()])
        return profiler.profile()


@dataclass(frozen=True)
class Pair:
    """Two tables, the meanings of what is required of both, and columns that look like a match."""

    name: str
    required: tuple[str, ...]
    base: Schema
    table: Schema
    traps: tuple[tuple[str, str], ...]

    def turned(self) -> Pair:
        """The same with the tables in the other order."""
        traps = tuple((b, a) for a, b in self.traps)
        return Pair(self.name, self.required, self.table, self.base, traps)

    def matches(self) -> dict[str, str]:
        """The column of the table that means what a column of the base does."""
        theirs = {means: header for header, means in self.table.meanings.items()}
        return {h: theirs[m] for h, m in self.base.meanings.items() if m in theirs}


def pairs(half: str) -> list[Pair]:
    """Make the pairs of one half."""
    listed = tomllib.loads((FOLDER / f"{half}.toml").read_text("utf-8"))["pairs"]
    return [
        Pair(
            given["name"],
            tuple(given["required"]),
            _schema(given["name"] + " base", given["base"]),
            _schema(given["name"] + " table", given["table"]),
            tuple((a, b) for a, b in given["traps"]),
        )
        for given in listed
    ]


def _schema(name: str, text: str) -> Schema:
    lines = [[part.strip() for part in line.split("|")] for line in text.strip().splitlines()]
    meanings = {header: means for header, means, _ in lines}
    assert len(meanings) == len(lines) == len(set(meanings.values())), name
    rows: dict[str, list[str | None]] = {}
    for header, _, drawn in lines:
        rng = np.random.default_rng(zlib.crc32(f"{name} {header}".encode()))
        how, _, missing = drawn.partition(" ? ")
        values = _drawn(how.strip(), rng, rows)
        absent = rng.random(ROWS) < float(missing or 0)
        rows[header] = [None if a else v for v, a in zip(values, absent, strict=True)]
    return Schema(meanings, rows)


def _drawn(how: str, rng: np.random.Generator, rows: dict[str, list[str | None]]) -> list[str]:
    kind, _, rest = how.partition(" ")
    return list(_KINDS[kind](rest, rng, rows))


def _of(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    shares = {v.strip(): float(n) for v, _, n in (p.rpartition("=") for p in rest.split(";"))}
    weights = np.array(list(shares.values()))
    yield from rng.choice(list(shares), ROWS, p=weights / weights.sum()).tolist()


def _whole(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    low, high = map(int, rest.split())
    yield from map(str, rng.integers(low, high + 1, ROWS))


def _id(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    yield from map(str, int(rest) + rng.permutation(ROWS))


def _key(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    prefix, first = rest.split()
    yield from (f"{prefix}{int(first) + n}" for n in rng.permutation(ROWS))


def _uuid(_rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    yield from (rng.bytes(12).hex() for _ in range(ROWS))


def _rounded(numbers: np.ndarray, digits: list[str]) -> Iterator[str]:
    yield from (f"{n:.{digits[0] if digits else 0}f}" for n in numbers)


def _bell(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    mean, deviation, *digits = rest.split()
    return _rounded(rng.normal(float(mean), float(deviation), ROWS), digits)


def _skew(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    middle, sigma, *digits = rest.split()
    return _rounded(float(middle) * rng.lognormal(0, float(sigma), ROWS), digits)


def _count(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    yield from map(str, rng.poisson(float(rest), ROWS))


def _near(rest: str, rng: np.random.Generator, rows: dict[str, list[str | None]]) -> Iterator[str]:
    column, factor, noise, *digits = rest.split()
    numbers = np.array([float(v or 0) for v in rows[column]])
    return _rounded(numbers * rng.normal(float(factor), float(noise), ROWS), digits)


def _date(rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    first, last, *written = rest.split(" ", 2)
    start = datetime(int(first), 1, 1, tzinfo=UTC)
    minutes = (datetime(int(last) + 1, 1, 1, tzinfo=UTC) - start).days * 24 * 60
    for after in rng.integers(0, minutes, ROWS):
        yield (start + timedelta(minutes=int(after))).strftime(*written or ["%Y-%m-%d"])


def _after(
    rest: str, rng: np.random.Generator, rows: dict[str, list[str | None]], way: int = 1
) -> Iterator[str]:
    column, low, high, *written = rest.split(" ", 3)
    form = written[0] if written else "%Y-%m-%d"
    for value in rows[column]:
        days = int(rng.integers(int(low), int(high) + 1))
        day = datetime.strptime(str(value), form).replace(tzinfo=UTC)
        yield (day + timedelta(days=way * days)).strftime(form)


def _before(
    rest: str, rng: np.random.Generator, rows: dict[str, list[str | None]]
) -> Iterator[str]:
    return _after(rest, rng, rows, way=-1)


def _clock(_rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    yield from (f"{rng.integers(24):02}:{rng.integers(60):02}:00" for _ in range(ROWS))


def _names(*lists: list[str]):
    def drawn(_rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
        yield from (" ".join(map(str, map(rng.choice, lists))) for _ in range(ROWS))

    return drawn


def _street(_rest: str, rng: np.random.Generator, _: object) -> Iterator[str]:
    yield from (f"{rng.integers(1, 999)} {rng.choice(_LAST)} Street" for _ in range(ROWS))


_KINDS = {
    "of": _of,
    "whole": _whole,
    "id": _id,
    "key": _key,
    "uuid": _uuid,
    "bell": _bell,
    "skew": _skew,
    "count": _count,
    "near": _near,
    "date": _date,
    "after": _after,
    "before": _before,
    "clock": _clock,
    "first": _names(_FIRST),
    "last": _names(_LAST),
    "full": _names(_FIRST, _LAST),
    "city": _names(_CITIES),
    "street": _street,
    "words": _names(_WORDS, _WORDS, _WORDS, _WORDS),
}
