"""A study in sentences: what was done, and the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.counts import Reading
from equipoise.evaluation.intervals import LEAST_REPEATS
from equipoise.evaluation.request import TESTS, VERSIONS
from equipoise.evaluation.study.grids import TEST_NAMES, untreated, version_name, written
from equipoise.evaluation.study.scores import MEASURES, PREDICTION_UB
from equipoise.plain import counted, in_words

_REPAIRED = ("p", "n", "after")


def sentences_of(study: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe what was done, and the results."""
    return (
        *_done(study),
        *_equal_rows(study),
        *_notes(study),
        *_shortfalls(study),
        *_differences(study),
        *_ruled_out(study),
        *_related(study),
        *reading_of(study).sentences,
    )


def reading_of(study: Mapping[str, Any]) -> Reading:
    """Return how the table was read; empty for the paper's data sets, which are fixed."""
    return Reading() if study.get("paper") else Reading.from_dict(study.get("reading"))


def version_lines(study: Mapping[str, Any]) -> list[str]:
    """Describe each version."""
    two = {"before": "the first table", "after": "the second table"}
    return [f"{v}: {VERSIONS.get(v) or two[v]}." for v in study["versions"]]


def _done(study: Mapping[str, Any]) -> Iterator[str]:
    fits, repeats = f"{study['fits']:,} models were trained", counted(study["repeats"], "repeat")
    yield (
        f"{fits} in {repeats} of {study['title']}: {_rows_of(study)} set aside first as a held-out "
        "test set."
    )
    score = (
        f"Precision and recall refer to {study['label']}={study['positive']}."
        if study["positive"] is not None
        else f"Precision and recall are means over the {len(study['labels'])} labels."
    )
    yield (
        f"{score} ± is half the width of a {study['confidence']:.0%} interval over repeats, which are "
        "new random splits of this table; * marks differences with q ≤ 0.05 (Benjamini–Hochberg): of "
        "all marked differences, at most 5 % are expected to be due to chance."
    )
    if study["repeats"] < LEAST_REPEATS:
        yield (
            f"With fewer than {LEAST_REPEATS} repeats no difference is called clear; set a higher "
            "`repeats`."
        )
    if study["rows_after"]:
        yield (
            "Repeats are new splits of these two tables, not new tables: marked differences hold for "
            "these files, and more repeats mark smaller differences."
        )
    if study["rows"] < study["rows_given"]:
        yield f"The table has {study['rows_given']:,} rows; {study['rows']:,} were used."


def _rows_of(study: Mapping[str, Any]) -> str:
    second = study["rows_after"]
    if second:
        first = f"{study['rows'] - second:,} and {second:,} rows, {study['test']:g} % of the first"
        return f"{first} (and their duplicates in the second)"
    return f"{study['rows']:,} rows, {study['test']:g} % of them"


def _equal_rows(study: Mapping[str, Any]) -> Iterator[str]:
    """Describe how many rows of one table are equal, and how they were treated."""
    found = study.get("equal_rows")
    if not found or not found["equal"] or study["rows_after"]:
        return
    equal, kept = found["equal"], found["kept_together"]
    said = (
        f"{equal:,} of {study['rows']:,} rows equal{'s' if equal == 1 else ''} an earlier row in "
        "everything that models see, label included; "
    )
    if found["asked"] == "together":
        yield said + "as requested, equal rows are always in the same part."
    elif found["asked"] == "apart":
        yield (
            said + "as requested, they count as separate rows, so duplicates may be in both the "
            "training and the test set."
        )
    elif kept:
        are = "counts as a duplicate and is" if kept == 1 else "count as duplicates and are"
        yield f"{said}{kept:,} of them {are} always in the same part as the row they equal."
    else:
        chance = found["pairs_by_chance"]
        about = "" if chance is None else f" (about {chance:,.0f}; there are {found['pairs']:,})"
        yield (
            f"{said}they count as separate rows, since chance explains about as many equal pairs"
            f"{about}. If they are duplicates, set `equal_rows='together'`."
        )


def _notes(study: Mapping[str, Any]) -> Iterator[str]:
    if study["telling"]:
        yield (
            f"Warning: {in_words(study['telling'])} reveals the label of every row; leave it out "
            "with `drop` unless it is known when the model is used."
        )
    if study["constant"]:
        yield f"Left out because they have a single value: {in_words(study['constant'])}."
    if study["unsettled"]:
        yield f"{study['unsettled']:,} of {study['fits']:,} fits stopped before they converged."


def _shortfalls(study: Mapping[str, Any]) -> Iterator[str]:
    for table in study["tables"]:
        name = version_name(table["version"], table["size"], study)
        if table["failed"]:
            tried = table["repeats"] + table["failures"]
            yield (
                f"{name} could not be made in {table['failures']} of {counted(tried, 'repeat')}: "
                f"{table['failed'][0]}"
            )
        if table.get("short"):
            cell, _, need, found = table["lacks"][0]
            yield (
                f"{name}: in {table['short']} of {counted(table['repeats'], 'repeat')} the pool had too few "
                f"rows for the smallest repair, above all of {cell} ({found:,.0f} of {need:,.0f}), so "
                f"the repair used the rows available. The largest |UB| reached is "
                f"{table['ub'][0]:.3f} on average, with label frequencies up to "
                f"{table['label_shift'][0]:.3f} from those of the table."
            )


def _differences(study: Mapping[str, Any]) -> Iterator[str]:
    """Describe, for every repaired version and test, how many models gain, lose, or neither."""
    size = max((r["size"] for r in study["differences"]), default=None)
    for version, test in _repaired_and_tested(study):
        rows = [
            r
            for r in study["differences"]
            if (r["version"], r["test"], r["size"]) == (version, test, size)
        ]
        if rows:
            name = version_name(version, size or 0.0, study)
            moved = "; ".join(_moved(rows, m) for m in (*MEASURES, PREDICTION_UB))
            yield f"{name} compared with {study['reference']} on {TEST_NAMES[test]}: {moved}."


def _repaired_and_tested(study: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((v, test) for v in study["versions"] if v in _REPAIRED for test in TESTS)


def _moved(rows: Sequence[Mapping[str, Any]], measure: str) -> str:
    here = [r for r in rows if r["measure"] == measure and r["mean"] is not None]
    if not here:
        return f"{measure} undefined"
    up = sum(r["clear"] and r["mean"] > 0 for r in here)
    down = sum(r["clear"] and r["mean"] < 0 for r in here)
    mean = sum(r["mean"] for r in here) / len(here)
    moved = " and ".join(f"{n} clearly {word}" for n, word in ((up, "up"), (down, "down")) if n)
    return f"{measure} {written(mean, 3, '+')} ({moved or 'none clearly moved'} of {len(here)})"


def _ruled_out(study: Mapping[str, Any]) -> Iterator[str]:
    """Describe for how many models and samples a loss above the margin is ruled out."""
    for version, test in _repaired_and_tested(study):
        rows = [r for r in study["losses"] if (r["version"], r["test"]) == (version, test)]
        if rows:
            counts = ", ".join(f"{r['measure']} {r['ruled_out']} of {r['of']}" for r in rows)
            yield (
                f"A loss of more than {rows[0]['margin']:g} from {study['reference']} to {version} "
                f"on {TEST_NAMES[test]} is ruled out by the {study['confidence']:.0%} interval for: "
                f"{counts}."
            )


def _related(study: Mapping[str, Any]) -> Iterator[str]:
    relation = study["relation"]
    rho, points = relation["correlation"]["rho"], relation["correlation"]["points"]
    if rho is None:
        return
    yield (
        f"In {untreated(study)}, UB of a group and label and the group's misses in excess of all rows "
        f"with that label have a rank correlation of {written(rho, 2, '+')} over {points} groups and "
        "labels."
    )
    for version, move in relation["moves"].items():
        if move["rho"] is not None:
            yield (
                f"From {relation['reference']} to {version}, their changes have a rank correlation of "
                f"{written(move['rho'], 2, '+')}."
            )
