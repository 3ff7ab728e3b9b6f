"""The tables of a study for a terminal, a page and the documentation, and their numbers as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.evaluation.request import TESTS
from equipoise.evaluation.study.scores import MEASURES, PREDICTION_UB
from equipoise.plain import Grid

TEST_NAMES = {"untouched": "the held-out test set", "own": "the version's own test set"}
_SCORE_HEADERS = (*MEASURES, "largest |UB| of predictions")


def number(mean: Sequence[float | None], digits: int = 3) -> str:
    """Write a mean with half the width of its interval.

    Examples
    --------
    >>> number([0.8563, 0.8489, 0.8637]), number([None, None, None]), number([0.5, None, None])
    ('0.856 ± 0.007', '–', '0.500')
    """
    value, low, high = mean
    return _with_half(value, low, high, digits)


def signed(row: Mapping[str, Any], digits: int = 3) -> str:
    """Write a difference, with a star if it is clear.

    Examples
    --------
    >>> signed({"mean": -0.0066, "low": -0.0107, "high": -0.0026, "clear": True})
    '−0.007 ± 0.004 *'
    """
    shown = _with_half(row["mean"], row["low"], row["high"], digits, "+")
    return f"{shown} *" if row["clear"] else shown


def _with_half(
    mean: float | None, low: float | None, high: float | None, digits: int, sign: str = ""
) -> str:
    if mean is None:
        return "–"
    half = "" if low is None or high is None else f" ± {(high - low) / 2:.{digits}f}"
    return written(mean, digits, sign) + half


def written(value: float, digits: int, sign: str = "") -> str:
    """Write a number with a proper minus sign, and without one for zero."""
    shown = round(value, digits) or 0.0
    return f"{shown:{sign if shown else ''}.{digits}f}".replace("-", "−")


def version_name(version: str, size: float, study: Mapping[str, Any]) -> str:
    """Name a version as the charts of the paper do: u20%.

    Examples
    --------
    >>> version_name("u", 20.0, {"sizes": [20.0]}), version_name("after", 20.0, {"sizes": []})
    ('u20%', 'after')
    """
    if not study["sizes"]:
        return version
    return f"{version}{' ' if len(version) > 1 else ''}{size:g}%"


def tables_of(study: Mapping[str, Any]) -> list[tuple[str, Grid]]:
    """Return the tables of a study that fit a terminal: versions, scores, and differences."""
    found = [("The versions themselves", versions_grid(study))]
    found += [(f"Scores on {TEST_NAMES[test]}", scores_grid(study, test)) for test in TESTS]
    found += [
        (f"Differences to {study['reference']} on {TEST_NAMES[test]}", grid)
        for test in TESTS
        if (grid := differences_grid(study, test)).rows
    ]
    return found


def untreated(study: Mapping[str, Any]) -> str:
    """Name the version that others are compared with."""
    return "the table as it is" if study["sizes"] else "the first table"


def versions_grid(study: Mapping[str, Any]) -> Grid:
    """Return the rows of each version, the size of its repair, and its measured UB."""
    rows = []
    for table in study["tables"]:
        name = version_name(table["version"], table["size"], study)
        if not table["repeats"]:
            rows.append((name, "–", "–", "–", "–", "–", "–"))
            continue
        need, found = table["need"][0], table["found"][0]
        rows.append(
            (
                name,
                f"{table['train_rows'][0]:,.0f}",
                f"{need:,.0f}" if need else "",
                f"{found:,.0f}" if need else "",
                number(table["ub"]),
                number(table["train_ub"]),
                number(table["label_shift"]),
            )
        )
    headers = (
        "version",
        "training rows",
        "smallest repair",
        "rows changed",
        "largest |UB| when made",
        "of the training rows",
        "label shift",
    )
    if not study["sizes"]:  # two given tables are not repaired
        kept = (0, 1, 4, 5, 6)
        lines = tuple(tuple(row[i] for i in kept) for row in rows)
        return Grid(tuple(headers[i] for i in kept), lines, frozenset(range(1, 5)))
    return Grid(headers, tuple(rows), frozenset(range(1, 7)))


def scores_grid(study: Mapping[str, Any], test: str, *, size: float | None = None) -> Grid:
    """Return means and intervals of every version and model on one test."""
    rows = [
        (
            study["models"][row["model"]],
            version_name(row["version"], row["size"], study),
            *(number(row[measure]) for measure in (*MEASURES, PREDICTION_UB)),
        )
        for row in _by_model(study, study["scores"])
        if row["test"] == test and size in (None, row["size"])
    ]
    headers = ("model", "version", *_SCORE_HEADERS)
    return Grid(headers, tuple(rows), frozenset({2, 3, 4, 5}))


def differences_grid(study: Mapping[str, Any], test: str, *, size: float | None = None) -> Grid:
    """Return paired differences to the reference on one test."""
    places: dict[tuple[str, str, float], dict[str, str]] = {}
    for row in _by_model(study, study["differences"]):
        if row["test"] == test and size in (None, row["size"]):
            place = (row["model"], row["version"], row["size"])
            places.setdefault(place, {})[row["measure"]] = signed(row)
    rows = [
        (
            study["models"][model],
            version_name(version, own_size, study),
            *(values.get(measure, "–") for measure in (*MEASURES, PREDICTION_UB)),
        )
        for (model, version, own_size), values in places.items()
    ]
    headers = ("model", "version", *_SCORE_HEADERS)
    return Grid(headers, tuple(rows), frozenset({2, 3, 4, 5}))


def groups_grid(
    study: Mapping[str, Any], model: str, *, size: float, versions: Sequence[str]
) -> Grid:
    """Return scores of the groups on the held-out test set, by version."""
    rows = [r for r in study["by_group"] if (r["model"], r["size"]) == (model, size)]
    if not rows:
        return Grid(("group", "version"), ())
    names = [k for k in rows[0] if k not in ("size", "version", "model", "group", "change")]
    order = {g["group"]: i for i, g in enumerate(study["groups"])}
    kept = [r for r in rows if r["version"] in versions]
    kept.sort(key=lambda r: (order[r["group"]], versions.index(r["version"])))
    lines = tuple(
        (
            r["group"],
            version_name(r["version"], size, study),
            *(number(r[name]) for name in names),
        )
        for r in kept
    )
    return Grid(("group", "version", *names), lines, frozenset(range(2, len(names) + 2)))


def _by_model(study: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    models = {m: i for i, m in enumerate(study["models"])}
    versions = {v: i for i, v in enumerate(study["versions"])}
    return sorted(rows, key=lambda r: (models[r["model"]], r["size"], versions[r["version"]]))


def losses_grid(study: Mapping[str, Any]) -> Grid:
    """Count the models and samples with a clear loss, and with a loss above the margin ruled out."""
    places: dict[tuple[str, str], dict[str, str]] = {}
    for row in study["losses"]:
        told = f"{row['ruled_out']} of {row['of']} ({row['clear']} clear)"
        places.setdefault((row["version"], row["test"]), {})[row["measure"]] = told
    rows = tuple(
        (version, TEST_NAMES[test], *(values.get(m, "–") for m in MEASURES))
        for (version, test), values in places.items()
    )
    return Grid(("version", "test", *MEASURES), rows, frozenset(range(2, 2 + len(MEASURES))))
