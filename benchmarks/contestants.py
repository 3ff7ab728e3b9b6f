"""The same lattice by other libraries: pandas, Fairlearn, DivExplorer.

Each gets a frame in memory, prepared as its documentation advises, with ages already
in decades; reading and preparing are not timed. We are timed twice: on that frame,
and on the Parquet file, reading and binning included. Fairlearn and DivExplorer are
asked for one label only, which gives them an advantage; we always measure both.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import data
from bars import Bar, Section, markdown_table
from timing import Timing, in_fresh_process, interleaved, milliseconds

if TYPE_CHECKING:
    import pandas as pd

ATTRIBUTES = data.ATTRIBUTES["A4"]
POSITIVE = ">50K"
ORIGINAL = 32_561
PANDAS, FAIRLEARN, DIVEXPLORER = "pandas groupby", "Fairlearn MetricFrame", "DivExplorer"
FRAME, FILE = "Equipoise, from the frame", "Equipoise, from Parquet"
FRAME_UNCERTAIN = "Equipoise, from the frame, interval, p, q"
LEAST_TIMES = {
    ORIGINAL: {PANDAS: 3, FAIRLEARN: 300, DIVEXPLORER: 50},
    1_000_000: {PANDAS: 10},  # the others take minutes there
}

TOLERANCE = 1e-9

Biases: TypeAlias = dict[frozenset[tuple[str, str]], float]
"""UB of the positive label in each group; a group is its (attribute, value) pairs."""


@dataclass(frozen=True)
class Contestant:
    """`call` is timed; `biases` reads its answer, so that answers can be compared."""

    call: Callable[[], Any]
    biases: Callable[[Any], Biases]


def section(repeats: int) -> Section:
    """Time everybody at both sizes; a disagreement about any group ends the run."""
    tables, bars, checks = [], [], []
    for rows, promised in LEAST_TIMES.items():
        print(f"contestants: {rows:,} rows ...", file=sys.stderr, flush=True)
        answer = in_fresh_process(Path(__file__), {"rows": rows, "repeats": repeats})
        timings = {name: Timing.of(seconds) for name, seconds in answer["seconds"].items()}
        tables.append(f"{rows:,} rows:\n\n{_table(timings)}")
        checks.append(f"{rows:,} rows: {answer['agreed']}")
        bars += list(_bars(rows, timings, promised))
    note = (
        f"Attributes {', '.join(ATTRIBUTES)}; best of {repeats} interleaved repeats, milliseconds; "
        "× is how many times longer than Equipoise."
    )
    agreement = "Same UB in every group by everybody: " + "; ".join(checks) + "."
    return Section("The same lattice by other libraries", [note, *tables, agreement], bars)


# --- in the worker ------------------------------------------------------------------------------


def _worker(case: dict[str, Any]) -> dict[str, Any]:
    rows = case["rows"]
    path = data.BUNDLED if rows == ORIGINAL else data.resampled(rows)
    data.warm(path)
    contestants = _contestants(path, _frame(path), LEAST_TIMES[rows])
    agreed = _agreement(contestants)
    calls = {name: contestant.call for name, contestant in contestants.items()}
    return {"agreed": agreed, "seconds": interleaved(calls, case["repeats"])}


def _frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    from equipoise.counts import bin_names  # the same names, so that groups can be matched

    frame = pd.read_parquet(path, columns=[*ATTRIBUTES, data.LABEL])
    edges = [-math.inf, *data.AGE_EDGES, math.inf]
    frame["age"] = pd.cut(frame["age"], edges, right=False, labels=bin_names(data.AGE_EDGES))
    return frame.astype("category")


def _contestants(
    path: Path, frame: pd.DataFrame, others: Mapping[str, float]
) -> dict[str, Contestant]:
    builders = {PANDAS: _pandas, FAIRLEARN: _fairlearn, DIVEXPLORER: _divexplorer}
    return {
        FRAME: _equipoise(frame, uncertainty=False),
        FILE: _equipoise(str(path), bins={"age": data.AGE_EDGES}, uncertainty=False),
        FRAME_UNCERTAIN: _equipoise(frame, uncertainty=True),
        **{name: builders[name](frame) for name in others},
    }


def _equipoise(source: Any, **options: Any) -> Contestant:
    import equipoise

    def call() -> Any:
        return equipoise.measure(source, sensitive_features=ATTRIBUTES, label=data.LABEL, **options)

    return Contestant(call, _biases_of_table)


def _biases_of_table(table: Any) -> Biases:
    positive = (row for row in table if row.label == POSITIVE)
    return {frozenset((n, str(v)) for n, v in row.group.items()): row.ub for row in positive}


def _pandas(frame: pd.DataFrame) -> Contestant:
    def call() -> list[pd.DataFrame]:
        overall = frame[data.LABEL].value_counts(normalize=True)
        return [_biases_by_pandas(frame, list(subset), overall) for subset in _subsets()]

    def biases(found: list[pd.DataFrame]) -> Biases:
        return _merged(table[POSITIVE] for table in found)

    return Contestant(call, biases)


def _biases_by_pandas(
    frame: pd.DataFrame, subset: list[str], overall: pd.Series[float]
) -> pd.DataFrame:
    keys = [*subset, data.LABEL]
    sizes = frame.groupby(keys, observed=True, sort=False).size()
    cells = sizes.unstack(fill_value=0)
    return 1 - cells.div(cells.sum(axis=1), axis=0) / overall


def _fairlearn(frame: pd.DataFrame) -> Contestant:
    from fairlearn.metrics import MetricFrame, selection_rate

    outcome = (frame[data.LABEL] == POSITIVE).astype(int)

    def call() -> list[MetricFrame]:
        return [
            MetricFrame(
                metrics=selection_rate,
                y_true=outcome,
                y_pred=outcome,
                sensitive_features=frame[list(subset)],
            )
            for subset in _subsets()
        ]

    def biases(found: list[MetricFrame]) -> Biases:
        # It lists every combination of values; those without rows are nan.
        return _merged((1 - one.by_group / one.overall).dropna() for one in found)

    return Contestant(call, biases)


def _divexplorer(frame: pd.DataFrame) -> Contestant:
    from divexplorer import DivergenceExplorer

    outcomes = frame[ATTRIBUTES].assign(outcome=(frame[data.LABEL] == POSITIVE).astype(int))

    def call() -> pd.DataFrame:
        explorer = DivergenceExplorer(outcomes)
        found: pd.DataFrame = explorer.get_pattern_divergence(
            min_support=1 / len(outcomes), boolean_outcomes=["outcome"]
        )
        return found

    def biases(found: pd.DataFrame) -> Biases:
        overall = outcomes["outcome"].mean()
        pairs = zip(found["itemset"], 1 - found["outcome"] / overall, strict=True)
        return {_group_of_items(items): bias for items, bias in pairs if items}

    return Contestant(call, biases)


def _group_of_items(items: frozenset[str]) -> frozenset[tuple[str, str]]:
    split = (item.partition("=") for item in items)
    return frozenset((name, value) for name, _, value in split)


def _subsets() -> Iterator[tuple[str, ...]]:
    for size in range(1, len(ATTRIBUTES) + 1):
        yield from itertools.combinations(ATTRIBUTES, size)


def _merged(found: Iterable[pd.Series[float]]) -> Biases:
    return {group: bias for one in found for group, bias in _keyed(one)}


def _keyed(biases: pd.Series[float]) -> Iterator[tuple[frozenset[tuple[str, str]], float]]:
    names = [str(name) for name in biases.index.names]
    for key, bias in biases.items():
        values = key if isinstance(key, tuple) else (key,)
        yield frozenset(zip(names, map(str, values), strict=True)), bias


def _agreement(contestants: Mapping[str, Contestant]) -> str:
    """Compare everybody's answer with the first one's; raise where they differ."""
    answers = {name: one.biases(one.call()) for name, one in contestants.items()}
    (ours, reference), *others = answers.items()
    for name, biases in others:
        _compare(ours, reference, name, biases)
    return f"{len(reference):,} groups, {len(answers)} answers, all within {TOLERANCE:g}"


def _compare(ours: str, reference: Biases, name: str, biases: Biases) -> None:
    if reference.keys() != biases.keys():
        odd = sorted(map(sorted, reference.keys() ^ biases.keys()))
        raise AssertionError(f"{ours} and {name} differ in {len(odd)} groups, as {odd[0]}")
    for group, bias in reference.items():
        # Written so that nan on either side counts as a difference.
        if not abs(bias - biases[group]) <= TOLERANCE:
            raise AssertionError(f"{sorted(group)}: {ours} {bias}, {name} {biases[group]}")


# --- results ------------------------------------------------------------------------------------


def _table(timings: Mapping[str, Timing]) -> str:
    rows = [
        [
            name,
            milliseconds(timing.best),
            milliseconds(timing.median),
            *(f"{timing.best / timings[ours].best:,.1f}" for ours in (FRAME, FILE)),
        ]
        for name, timing in timings.items()
    ]
    return markdown_table(["", "best", "median", "× from the frame", "× from Parquet"], rows)


def _bars(rows: int, timings: Mapping[str, Timing], promised: Mapping[str, float]) -> Iterator[Bar]:
    # All start from the same frame in memory; that from the file, which the others do not
    # read, is only reported.
    for name, least in promised.items():
        times = timings[name].best / timings[FRAME].best
        yield Bar(f"{FRAME}, {rows:,} rows, faster than {name}", times, least, "at least")


if __name__ == "__main__":
    print(json.dumps(_worker(json.loads(sys.argv[1]))))
