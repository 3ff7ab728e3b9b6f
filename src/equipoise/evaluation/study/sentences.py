"""A study in words: sentences, and tables for a terminal, a page and the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.counts import Reading
from equipoise.evaluation.request import TESTS, VERSIONS
from equipoise.evaluation.study.intervals import LEAST_REPEATS
from equipoise.evaluation.study.scores import MEASURES, PREDICTION_UB
from equipoise.plain import Grid, sentences

TEST_NAMES = {"untouched": "untouched rows", "own": "rows of the version itself"}


def number(mean: Sequence[float | None], digits: int = 3) -> str:
    """Write a mean with half the width of its interval.

    >>> number([0.8563, 0.8489, 0.8637]), number([None, None, None]), number([0.5, None, None])
    ('0.856 ± 0.007', '–', '0.500')
    """
    value, low, high = mean
    if value is None:
        return "–"
    half = "" if low is None or high is None else f" ± {(high - low) / 2:.{digits}f}"
    return f"{written(value, digits)}{half}"


def signed(row: Mapping[str, Any], digits: int = 3) -> str:
    """Write a difference, with a star if it is clear.

    >>> signed({"mean": -0.0066, "low": -0.0107, "high": -0.0026, "clear": True})
    '−0.007 ± 0.004 *'
    """
    if row["mean"] is None:
        return "–"
    half = "" if row["low"] is None else f" ± {(row['high'] - row['low']) / 2:.{digits}f}"
    return f"{written(row['mean'], digits, '+')}{half}{' *' if row['clear'] else ''}"


def written(value: float, digits: int, sign: str = "") -> str:
    """Write a number with a minus that is one, and none before 0."""
    shown = round(value, digits) or 0.0
    return f"{shown:{sign if shown else ''}.{digits}f}".replace("-", "−")


def version_name(version: str, size: float, study: Mapping[str, Any]) -> str:
    """Name a version as the paper's charts do: u20%.

    >>> version_name("u", 20.0, {"sizes": [20.0]}), version_name("after", 20.0, {"sizes": []})
    ('u20%', 'after')
    """
    if not study["sizes"]:
        return version
    return f"{version}{' ' if len(version) > 1 else ''}{size:g}%"


def tables_of(study: Mapping[str, Any]) -> list[tuple[str, Grid]]:
    """The tables of a study that fit a terminal: versions, scores, and differences."""
    found = [("The tables themselves", versions_grid(study))]
    found += [(f"Scores on {TEST_NAMES[test]}", scores_grid(study, test)) for test in TESTS]
    found += [
        (f"Differences to {study['reference']} on {TEST_NAMES[test]}", grid)
        for test in TESTS
        if (grid := differences_grid(study, test)).rows
    ]
    return found


def untreated(study: Mapping[str, Any]) -> str:
    """What others are compared with, in words."""
    return "the table as it is" if study["sizes"] else "the first table"


def versions_grid(study: Mapping[str, Any]) -> Grid:
    """What each version is: rows, what was needed and found, the UB as measured."""
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
        "rows trained on",
        "smallest repair",
        "rows changed",
        "largest |UB| when made",
        "of the rows trained on",
        "label shift",
    )
    if not study["sizes"]:  # two tables are as they were given
        kept = (0, 1, 4, 5, 6)
        lines = tuple(tuple(row[i] for i in kept) for row in rows)
        return Grid(tuple(headers[i] for i in kept), lines, frozenset(range(1, 5)))
    return Grid(headers, tuple(rows), frozenset(range(1, 7)))


def scores_grid(study: Mapping[str, Any], test: str, *, size: float | None = None) -> Grid:
    """Means and intervals of every version and model on one test."""
    rows = [
        (
            study["models"][row["model"]],
            version_name(row["version"], row["size"], study),
            *(number(row[measure]) for measure in (*MEASURES, PREDICTION_UB)),
        )
        for row in _by_model(study, study["scores"])
        if row["test"] == test and size in (None, row["size"])
    ]
    headers = ("model", "version", *MEASURES, "largest |UB| of predictions")
    return Grid(headers, tuple(rows), frozenset({2, 3, 4, 5}))


def differences_grid(study: Mapping[str, Any], test: str, *, size: float | None = None) -> Grid:
    """Paired differences to the table as it is, on one test."""
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
    headers = ("model", "version", *MEASURES, "largest |UB| of predictions")
    return Grid(headers, tuple(rows), frozenset({2, 3, 4, 5}))


def groups_grid(
    study: Mapping[str, Any], model: str, *, size: float, versions: Sequence[str]
) -> Grid:
    """Scores of the groups on the untouched rows, by version."""
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


# ---------------------------------------------------------------------------- sentences


def sentences_of(study: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what was done and what came out."""
    return (
        *_done(study),
        *_equal_rows(study),
        *_notes(study),
        *_reached(study),
        *_found(study),
        *_ruled_out(study),
        *_related(study),
        *reading_of(study).sentences,
    )


def reading_of(study: Mapping[str, Any]) -> Reading:
    """How a table was read; the paper's own are as its text says."""
    return Reading() if study.get("paper") else Reading.from_dict(study.get("reading"))


def _done(study: Mapping[str, Any]) -> list[str]:
    about = f"{study['fits']:,} models were trained in {_repeats(study['repeats'])}"
    score = (
        f"Precision and recall are about {study['label']}={study['positive']}."
        if study["positive"] is not None
        else f"Precision and recall are means over the {len(study['labels'])} labels."
    )
    level = f"{study['confidence']:.0%}"
    said = [
        (f"{about} of {study['title']}: {_rows_of(study)} set aside first and never trained on."),
        (
            f"{score} ± is half of a {level} interval over repeats, which are new random splits of "
            "this table; * marks differences with q ≤ 0.05 (Benjamini–Hochberg): of all that are marked, "
            "at most 5 % are expected to be due to chance."
        ),
    ]
    if study["repeats"] < LEAST_REPEATS:
        said.append(
            f"With fewer than {LEAST_REPEATS} repeats no difference is called clear; ask for more with "
            "--repeats."
        )
    if study["rows_after"]:
        said.append(
            "Repeats split these two tables anew and draw no others: what is marked speaks of these "
            "files, and the more repeats, the smaller the differences that are."
        )
    if study["rows"] < study["rows_given"]:
        said.append(f"The table has {study['rows_given']:,} rows; {study['rows']:,} were used.")
    return said


def _equal_rows(study: Mapping[str, Any]) -> list[str]:
    """Say how many rows of one table are equal, and what was made of them."""
    found = study.get("equal_rows")
    if not found or not found["equal"] or study["rows_after"]:
        return []
    equal, kept = found["equal"], found["kept_together"]
    said = (
        f"{equal:,} of {study['rows']:,} rows equal{'s' if equal == 1 else ''} an earlier row in all "
        "that models see, label included; "
    )
    if found["asked"] == "together":
        return [said + "as asked, equal rows are never in two parts."]
    if found["asked"] == "apart":
        return [said + "as asked, they are separate rows, so copies may be trained and tested on."]
    if kept:
        are = "counts as a copy and is" if kept == 1 else "count as copies and are"
        return [f"{said}{kept:,} of them {are} never parted from the row they equal."]
    chance = found["pairs_by_chance"]
    about = "" if chance is None else f" (about {chance:,.0f}; there are {found['pairs']:,})"
    why = f"since chance makes about as many pairs of rows equal{about}"
    return [
        f"{said}they count as separate rows, {why}. If they are copies, use --equal-rows together."
    ]


def _rows_of(study: Mapping[str, Any]) -> str:
    second = study["rows_after"]
    if second:
        first = f"{study['rows'] - second:,} and {second:,} rows, {study['test']:g} % of the first"
        return f"{first} (and their equals in the second)"
    return f"{study['rows']:,} rows, {study['test']:g} % of them"


def _notes(study: Mapping[str, Any]) -> list[str]:
    said = []
    if study["telling"]:
        said.append(
            f"Beware: {sentences(study['telling'])} gives away the label of every row; leave it "
            "out with --drop unless it is known when the model is used."
        )
    if study["constant"]:
        said.append(f"Left out, since they have one value: {sentences(study['constant'])}.")
    if study["unsettled"]:
        said.append(
            f"{study['unsettled']:,} of {study['fits']:,} fits stopped before they converged."
        )
    return said


def _reached(study: Mapping[str, Any]) -> list[str]:
    said = []
    for table in study["tables"]:
        name = version_name(table["version"], table["size"], study)
        if table["failed"]:
            tried = table["repeats"] + table["failures"]
            said.append(
                f"{name} could not be made in {table['failures']} of {_repeats(tried)}: "
                f"{table['failed'][0]}"
            )
        if table.get("short"):
            cell, _, need, found = table["lacks"][0]
            said.append(
                f"{name}: in {table['short']} of {_repeats(table['repeats'])} there were too few rows "
                f"for the smallest repair, above all of {cell} ({found:,.0f} of {need:,.0f}), and what "
                f"it has was planned with; reached was a largest |UB| of {table['ub'][0]:.3f} on average, with "
                f"label frequencies up to {table['label_shift'][0]:.3f} from those of the table."
            )
    return said


def _found(study: Mapping[str, Any]) -> list[str]:
    """For every version and test: how many models gain, lose, or neither."""
    said = []
    size = max((r["size"] for r in study["differences"]), default=None)
    for version in (v for v in study["versions"] if v in ("p", "n", "after")):
        for test in TESTS:
            rows = [
                r
                for r in study["differences"]
                if (r["version"], r["test"], r["size"]) == (version, test, size)
            ]
            if rows:
                name = version_name(version, size or 0.0, study)
                told = "; ".join(_counted(rows, m) for m in (*MEASURES, PREDICTION_UB))
                said.append(f"{name} against {study['reference']} on {TEST_NAMES[test]}: {told}.")
    return said


def _counted(rows: Sequence[Mapping[str, Any]], measure: str) -> str:
    here = [r for r in rows if r["measure"] == measure and r["mean"] is not None]
    if not here:
        return f"{measure} undefined"
    up = sum(r["clear"] and r["mean"] > 0 for r in here)
    down = sum(r["clear"] and r["mean"] < 0 for r in here)
    mean = sum(r["mean"] for r in here) / len(here)
    moved = " and ".join(f"{n} clearly {word}" for n, word in ((up, "up"), (down, "down")) if n)
    return f"{measure} {written(mean, 3, '+')} ({moved or 'none clearly moved'} of {len(here)})"


def _ruled_out(study: Mapping[str, Any]) -> list[str]:
    """Say for how many models and samples a loss above the margin is ruled out."""
    said = []
    for version in (v for v in study["versions"] if v in ("p", "n", "after")):
        for test in TESTS:
            rows = [r for r in study["losses"] if (r["version"], r["test"]) == (version, test)]
            if rows:
                told = ", ".join(f"{r['measure']} {r['ruled_out']} of {r['of']}" for r in rows)
                said.append(
                    f"A loss of more than {rows[0]['margin']:g} from {study['reference']} to {version} "
                    f"on {TEST_NAMES[test]} is ruled out by the {study['confidence']:.0%} interval for: "
                    f"{told}."
                )
    return said


def losses_grid(study: Mapping[str, Any]) -> Grid:
    """For how many models and samples a loss is clear, and a loss above the margin ruled out."""
    places: dict[tuple[str, str], dict[str, str]] = {}
    for row in study["losses"]:
        told = f"{row['ruled_out']} of {row['of']} ({row['clear']} clear)"
        places.setdefault((row["version"], row["test"]), {})[row["measure"]] = told
    rows = tuple(
        (version, TEST_NAMES[test], *(values.get(m, "–") for m in MEASURES))
        for (version, test), values in places.items()
    )
    return Grid(("version", "test", *MEASURES), rows, frozenset(range(2, 2 + len(MEASURES))))


def _related(study: Mapping[str, Any]) -> list[str]:
    relation = study["relation"]
    rho, points = relation["correlation"]["rho"], relation["correlation"]["points"]
    if rho is None:
        return []
    said = [
        (
            f"In {untreated(study)}, UB of a group and label and its misses beyond those of all rows "
            f"with the label have a rank correlation of {written(rho, 2, '+')} over {points} groups and labels."
        )
    ]
    for version, move in relation["moves"].items():
        if move["rho"] is not None:
            rank = written(move["rho"], 2, "+")
            said.append(
                f"From {relation['reference']} to {version}, their changes have a rank correlation of {rank}."
            )
    return said


def _repeats(n: int) -> str:
    return f"{n:,} repeat{'' if n == 1 else 's'}"


def version_lines(study: Mapping[str, Any]) -> list[str]:
    """Say what each version is."""
    two = {"before": "the first table", "after": "the second table"}
    return [f"{v}: {VERSIONS.get(v) or two[v]}." for v in study["versions"]]
