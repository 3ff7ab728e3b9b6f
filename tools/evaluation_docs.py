"""The parts of docs/evaluation.md that are read off the files of the run itself.

A part stands between ``<!-- from the run: NAME -->`` and ``<!-- end -->``; everything else on the
page is written by hand, without numbers of the run.
"""
# ruff: noqa: INP001

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from equipoise.evaluation.evaluation import Evaluation
from equipoise.evaluation.paper import STUDIES, claims_grid
from equipoise.evaluation.request import BASELINES, TESTS
from equipoise.evaluation.study.grids import (
    differences_grid,
    groups_grid,
    number,
    version_name,
    versions_grid,
    written,
)
from equipoise.evaluation.study.scores import MEASURES, PREDICTION_UB
from equipoise.evaluation.study.sentences import sentences_of
from equipoise.plain import Grid
from equipoise.reports.evaluation import data
from equipoise.reports.evaluation.charts.differences import difference_chart
from equipoise.reports.evaluation.charts.relation import relation_chart
from equipoise.reports.evaluation.charts.scores import score_chart

DOCS = Path(__file__).parent.parent / "docs"
PAGE, RUNS = DOCS / "evaluation.md", DOCS / "runs"
_TESTS = {"own": "own", "untouched": "held-out"}
MECHANISMS = ("random", "by_label", "by_value")
_PART = re.compile(r"(<!-- from the run: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def page() -> str:
    """The page with every part written anew."""
    return _PART.sub(
        lambda found: f"{found[1]}{_part(found[2])}\n{found[3]}", PAGE.read_text(encoding="utf-8")
    )


def _part(name: str) -> str:
    kind, _, which = name.partition(" ")
    return _PARTS[kind](which).strip()


@functools.cache
def _run() -> Evaluation:
    return Evaluation.read(RUNS / "evaluation.json")


def _study(name: str) -> Mapping[str, Any]:
    title = STUDIES[name].title
    return next(s for s in _run().studies if s["title"].startswith(title))


def _size(study: Mapping[str, Any]) -> float:
    return max(study["sizes"])


def _about(_: str) -> str:
    run = _run()
    fits = sum(study["fits"] for study in run.studies)
    rows = ", ".join(f"{s['title']} {s['rows']:,} rows" for s in run.studies)
    repeats = run.studies[0]["repeats"]
    return (
        f"{fits:,} models were trained and tested in {repeats} repeats with seed "
        f"{run.studies[0]['seed']}: {rows}. equipoise {run.version}, {run.time[:10]}."
    )


def _summary(_: str) -> str:
    """For each data set, version and test: the mean difference, and how many are clear."""
    rows = []
    for study in _run().studies:
        for version in ("p", "n"):
            for test, name in _TESTS.items():
                at = [
                    r for r in study["differences"] if (r["version"], r["test"]) == (version, test)
                ]
                told = (
                    _moved([r for r in at if r["measure"] == m]) for m in (*MEASURES, PREDICTION_UB)
                )
                rows.append((study["title"], version, name, *told))
    headers = ("data", "version", "test", *MEASURES, "largest |UB| of predictions")
    return Grid(headers, tuple(rows), frozenset({3, 4, 5, 6})).markdown()


def _losses(_: str) -> str:
    """For each data set, version and test: where a loss above the margin is ruled out."""
    rows = []
    for study in _run().studies:
        at = {(r["version"], r["test"], r["measure"]): r for r in study["losses"]}
        for version in ("p", "n"):
            for test, name in _TESTS.items():
                here = [at[version, test, m] for m in MEASURES]
                told = (f"{r['ruled_out']} of {r['of']}" for r in here)
                rows.append((study["title"], version, name, *told))
    headers = ("data", "version", "test", *MEASURES)
    return Grid(headers, tuple(rows), frozenset({3, 4, 5})).markdown()


def _equal(_: str) -> str:
    """How many rows of each data set are equal, and how many pairs chance makes equal."""
    rows = []
    for study in _run().studies:
        found = study["equal_rows"]
        counts = (study["rows"], found["equal"], found["pairs"], found["pairs_by_chance"])
        rows.append((study["title"], *(f"{n:,.0f}" for n in counts), str(found["kept_together"])))
    headers = (
        *("data", "rows", "equal to an earlier row", "equal pairs", "expected by chance"),
        "kept together as duplicates",
    )
    return Grid(headers, tuple(rows), frozenset(range(1, 6))).markdown()


def _excess(_: str) -> str:
    """How the excess of misses changes with a repair, over groups and labels."""
    rows = []
    for study in _run().studies:
        at: dict[tuple[str, str], dict[str, float]] = {}
        for point in study["relation"]["points"]:
            place = (point["group"], point["label"])
            at.setdefault(place, {})[point["version"]] = point["error"][0]
        for version in ("p", "n"):
            pairs = [(by["u"], by[version]) for by in at.values()]
            before, after = ([abs(pair[i]) for pair in pairs] for i in (0, 1))
            smaller = sum(b > a for b, a in zip(before, after, strict=True))
            turned = sum(u * v < 0 for u, v in pairs)
            mean = (f"{sum(size) / len(size):.3f}" for size in (before, after))
            most = (f"{max(size):.3f}" for size in (before, after))
            told = (" → ".join(mean), " → ".join(most))
            rows.append(
                (study["title"], version, str(len(pairs)), *told, str(smaller), str(turned))
            )
    headers = (
        *("data", "version", "groups and labels", "mean size of the excess", "largest"),
        *("smaller than in u", "sign turned"),
    )
    return Grid(headers, tuple(rows), frozenset(range(2, 7))).markdown()


def _recall_gap(name: str) -> str:
    """Recall of two groups in the model that is drawn, before and after."""
    study = _study(name)
    model, size = STUDIES[name].chart, _size(study)
    groups = [g["group"] for g in study["groups"] if g["sensitive"]][:2]
    at = {
        (r["group"], r["version"]): r["recall"][0]
        for r in study["by_group"]
        if (r["model"], r["size"]) == (model, size)
    }
    told = (
        f"{written(at[groups[0], v] - at[groups[1], v], 3, '+')} in {version_name(v, size, study)}"
        for v in ("u", "p", "n")
    )
    return (
        f"Recall of {study['models'][model]} for {groups[0]} minus that for {groups[1]}, on the "
        f"held-out test set: {', '.join(told)}."
    )


def _moved(rows: list[Mapping[str, Any]]) -> str:
    mean = sum(r["mean"] for r in rows) / len(rows)
    up = sum(r["clear"] and r["mean"] > 0 for r in rows)
    down = sum(r["clear"] and r["mean"] < 0 for r in rows)
    return f"{written(mean, 3, '+')} ({up}↑ {down}↓)"


def _tables(name: str) -> str:
    return versions_grid(_study(name)).markdown()


def _scores(name: str) -> str:
    """Every model on u, p and n, tested on both, at the largest sample."""
    study = _study(name)
    size = _size(study)
    at = {(r["model"], r["version"], r["test"]): r for r in study["scores"] if r["size"] == size}
    rows = [
        (
            title,
            version_name(version, size, study),
            *(number(at[model, version, test][measure]) for test in _TESTS for measure in MEASURES),
        )
        for model, title in study["models"].items()
        for version in ("u", "p", "n")
    ]
    tests = [f"{m}, {t}" for t in ("own test", "held-out test") for m in MEASURES]
    return Grid(("model", "version", *tests), tuple(rows), frozenset(range(2, 8))).markdown()


def _differences(name: str) -> str:
    study, test = _study(name.split(maxsplit=1)[0]), name.split()[1]
    return differences_grid(study, test, size=_size(study)).markdown()


def _claims(name: str) -> str:
    grid = claims_grid(_study(name))
    return "" if grid is None else grid.markdown()


def _found(name: str) -> str:
    return "\n".join(f"- {s}" for s in sentences_of(_study(name)) if " compared with " in s)


def _baselines(name: str) -> str:
    """Compare the baselines and p with u, on the held-out test set."""
    study = _study(name)
    size = _size(study)
    grid = differences_grid(study, "untouched", size=size)
    names = {version_name(v, size, study) for v in ("p", *BASELINES)}
    few = {study["models"][r["model"]] for r in study["differences"] if r["version"] in BASELINES}
    rows = tuple(row for row in grid.rows if row[0] in few and row[1] in names)
    return Grid(grid.headers, rows, grid.numbers).markdown()


def _groups(name: str) -> str:
    study = _study(name)
    model = STUDIES[name].chart
    return groups_grid(study, model, size=_size(study), versions=["u", "p", "n"]).markdown()


def _relation(name: str) -> str:
    study = _study(name)
    said = [s for s in sentences_of(study) if "rank correlation" in s]
    return data.relation_grid(study).markdown() + "\n\n" + " ".join(said)


def _missing_run(name: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads((RUNS / f"missing-{name}.json").read_text(encoding="utf-8"))
    return found


def _compared(columns: str) -> str:
    """Ways to treat real missing values: how far each moves UB from that without the rows."""
    runs = {column: _missing_run(column) for column in columns.split()}
    first = next(iter(runs.values()))
    rows = []
    for place, method in enumerate(first["methods"]):
        cells = [run["methods"][place] for run in runs.values()]
        told = (f"{c['largest_change']:.3f} / {c['mean_change']:.3f}" for c in cells)
        rows.append((f"`{method['method']}`", *told))
    headers = ("method", *(f"{c} ({run['incomplete']:,} rows)" for c, run in runs.items()))
    return Grid(headers, tuple(rows), frozenset(range(1, len(headers)))).markdown()


def _simulated(column: str) -> str:
    """Ways to treat values that were taken away: how far UB is from the truth."""
    runs = {m: _missing_run(f"{column}-{m}") for m in MECHANISMS}
    rows = []
    for place, method in enumerate(runs["random"]["methods"]):
        cells = [run["methods"][place] for run in runs.values()]
        told = (
            f"{c['mean_abs_error']['mean']:.3f} ± {_half(c['mean_abs_error']):.3f} "
            f"/ {written(c['away_from_zero']['mean'], 3, '+')}"
            for c in cells
        )
        rows.append((f"`{method['method']}`", *told))
    headers = ("method", *(m.replace("_", " ") for m in MECHANISMS))
    return Grid(headers, tuple(rows), frozenset({1, 2, 3})).markdown()


def _half(mean: Mapping[str, float]) -> float:
    return (mean["high"] - mean["low"]) / 2


_PARTS: dict[str, Callable[[str], str]] = {
    "about": _about,
    "summary": _summary,
    "losses": _losses,
    "equal": _equal,
    "excess": _excess,
    "recall": _recall_gap,
    "tables": _tables,
    "scores": _scores,
    "differences": _differences,
    "claims": _claims,
    "found": _found,
    "baselines": _baselines,
    "groups": _groups,
    "relation": _relation,
    "compared": _compared,
    "simulated": _simulated,
}


def pictures() -> dict[str, dict[str, Any]]:
    """The specifications of the page's figures, by file name."""
    drawn: dict[str, dict[str, Any]] = {}
    for name, paper in STUDIES.items():
        study = _study(name)
        for test in TESTS:
            bars = data.score_data(study, paper.chart, test)
            drawn[f"evaluation-{name}-{test}.svg"] = score_chart(bars)
        forest = data.difference_data(study, "untouched", _size(study))
        drawn[f"evaluation-{name}-differences.svg"] = difference_chart(forest)
        drawn[f"evaluation-{name}-relation.svg"] = relation_chart(data.relation_data(study))
    return drawn
