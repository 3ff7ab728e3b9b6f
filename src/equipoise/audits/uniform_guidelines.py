"""The four-fifths view of the Uniform Guidelines, with tests of significance and UB beside it."""

from __future__ import annotations

import math
from typing import Any

from equipoise.audits import rates
from equipoise.audits.audit import Audit, AuditSection, to_fill_in
from equipoise.audits.subject import Subject
from equipoise.measures import display
from equipoise.measures.four_fifths import RULE as FOUR_FIFTHS
from equipoise.measures.row import Row
from equipoise.measures.selection import RateComparison, SelectionTable
from equipoise.plain import Grid
from equipoise.values import plain

FORM = "uniform-guidelines"
TITLE = "Four-fifths rule and tests of significance"
RULE = (
    "Uniform Guidelines on Employee Selection Procedures of 1978, 29 CFR 1607, section 4D, with their "
    "questions and answers of 1979."
)
NOT_COVERED = (
    "Whether the guidelines apply, and to which employer, job and period; who counts as an applicant.",
    "The steps of a selection: each table is about one outcome, be it a step or the whole process.",
    "Whether a procedure is valid for the job, and whether there is another one with less difference.",
    "Evidence other than numbers, such as how people were recruited or discouraged from applying.",
    "The records and the yearly determination that the guidelines ask for.",
    "Explanations of a difference by other columns: the tests compare rates, and nothing else.",
)
QUESTIONS = (
    "job or group of jobs, step of the selection, and period that the rows cover.",
    "why rows with unknown categories are unknown.",
)
_LISTED = 12
"""Maximum number of sentences about categories for which ratio and test disagree."""
_TESTS = (
    *("below_four_fifths", "z", "p_z", "p_exact", "significant", "selections_to_change"),
    *("moved_to_change", "ub", "ub_low", "ub_high", "q", "too_small"),
)


def fill_in(subject: Subject) -> Audit:
    """Fill in the form."""
    subject = subject.for_selection(FORM)
    tables = rates.selection_tables(subject, "sound")
    compared = [[_line(table, i, subject) for i in range(len(table))] for table in tables]
    sections = [AuditSection("overview", "Rows and outcome", tuple(_overview(subject)))]
    for number, (table, lines) in enumerate(zip(tables, compared, strict=True), start=1):
        said = (*rates.table_sentences(table, "selection rate"), *_counted(lines, subject))
        grids = (_rates_grid(table, subject), _tests_grid(table, lines, subject)) if lines else ()
        sections.append(AuditSection(rates.id_of(number), rates.title_of(table), said, grids))
    sections.append(_disagreements([line for lines in compared for line in lines], subject))
    sections.append(AuditSection("reading", "How to read the tables", tuple(_reading(subject))))
    sections.append(AuditSection("people", "For people to add", to_fill_in(QUESTIONS)))
    plain_lines = [[_plain(line) for line in lines] for lines in compared]
    return Audit(
        form=FORM,
        title=TITLE,
        rule=RULE,
        subject=subject,
        sections=tuple(sections),
        not_covered=NOT_COVERED,
        columns=(*rates.CATEGORY, *_TESTS),
        lines=tuple(tuple(line.values()) for lines in plain_lines for line in lines),
        tables=tables,
        numbers={
            "threshold": FOUR_FIFTHS,
            "significance": subject.options.significance,
            "tables": rates.plain_tables(tables, plain_lines),
        },
    )


# -------------------------------------------------------------------------------- numbers


def _line(table: SelectionTable, place: int, subject: Subject) -> dict[str, Any]:
    """The numbers of a category, and its comparison with the best-off one."""
    row = subject.selection[table.group(place), subject.selected]
    found = table.compare(place)
    known = found is not None and not math.isnan(table.ratio[place])
    return {
        **rates.category(table, place),
        "below_four_fifths": bool(table.below[place]) if known else None,
        **_tested(found, subject.options.significance),
        "ub": row.ub,
        "ub_low": row.ub_low,
        "ub_high": row.ub_high,
        "q": row.q_value,
        "too_small": None if table.suppressed[place] else bool(table.too_small[place]),
        "_row": row,
        "_table": table,
    }


def _tested(found: RateComparison | None, level: float) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(_TESTS[1:7])
    decided = not math.isnan(found.p_exact)
    return {
        "z": found.z,
        "p_z": found.p_z,
        "p_exact": found.p_exact,
        "significant": found.p_exact <= level if decided else None,
        "selections_to_change": found.selections,
        "moved_to_change": found.moved,
    }


def _plain(line: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in line.items() if not name.startswith("_")}


# --------------------------------------------------------------------------------- tables


def _rates_grid(table: SelectionTable, subject: Subject) -> Grid:
    headers = (
        *(rates.heading_of(table), "applicants", "share of rows", "selected", "selection rate"),
        *("impact ratio", f"{subject.options.confidence:.0%} interval", f"below {FOUR_FIFTHS}"),
    )
    rows = []
    for i in range(len(table)):
        itself = i == table.best or math.isnan(table.ratio[i])
        rows.append(
            (
                rates.category_text(table, i),
                rates.count_text(table, i, table.n[i]),
                display.percent(float(table.share[i])),
                rates.count_text(table, i, table.selected[i]),
                display.percent(float(table.rate[i])),
                rates.ratio_text(float(table.ratio[i])),
                rates.interval_text(table, i),
                display.UNKNOWN if itself else _yes(bool(table.below[i])),
                _note(table, i),
            )
        )
    numbers = frozenset(range(1, len(headers) - 1))
    return Grid((*headers, "note"), tuple(rows), numbers)


def _note(table: SelectionTable, place: int) -> str:
    if table.suppressed[place]:
        return "hidden"
    notes = ["best-off"] if place == table.best and table.rate[place] > 0 else []
    notes += [f"under {rates.share_text(table.exclude_below)}"] if table.small[place] else []
    notes += ["too small to say"] if table.too_small[place] else []
    return ", ".join(notes)


def _tests_grid(table: SelectionTable, lines: list[dict[str, Any]], subject: Subject) -> Grid:
    level = f"p ≤ {subject.options.significance:g}"
    headers = (
        *(
            rates.heading_of(table),
            "standard deviations",
            "p (exact)",
            level,
            "selections to change it",
        ),
        *("if moved", "UB", f"{subject.options.confidence:.0%} interval of UB", "q"),
    )
    rows = []
    for i, line in enumerate(lines):
        row: Row = line["_row"]
        rows.append(
            (
                rates.category_text(table, i),
                _signed(line["z"]),
                display.UNKNOWN
                if line["p_exact"] is None
                else display.probability(line["p_exact"]),
                display.UNKNOWN if line["significant"] is None else _yes(line["significant"]),
                _change(line["selections_to_change"]),
                _change(line["moved_to_change"]),
                display.number(row.ub),
                display.interval(row),
                display.probability(row.q_value),
            )
        )
    return Grid(headers, tuple(rows), frozenset(range(1, len(headers))))


def _signed(value: float | None) -> str:
    return display.UNKNOWN if value is None else display.number(value, 2)


def _change(number: int | None) -> str:
    return display.UNKNOWN if number is None else f"{number:+,}".replace("-", "−")


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


# ------------------------------------------------------------------------------ sentences


def _overview(subject: Subject) -> list[str]:
    said = [*subject.rows_sentences, *rates.outcome_sentences(subject)]
    if len(subject.attributes) > 1:
        said.append(
            "The guidelines speak of each sex and each race or ethnic group. Intersections are shown "
            "because a difference may appear only there."
        )
    return said


def _counted(lines: list[dict[str, Any]], subject: Subject) -> list[str]:
    compared = [line for line in lines if line["below_four_fifths"] is not None]
    if not compared:
        return []
    below = sum(line["below_four_fifths"] for line in compared)
    sure = sum(bool(line["significant"]) for line in compared if line["z"] < 0)
    return [
        (
            f"Impact ratio below {FOUR_FIFTHS}: {below:,} of {len(compared):,} categories compared with the "
            f"best-off one. Rate lower by more than chance (p at most {subject.options.significance:g}): "
            f"{sure:,} of {len(compared):,}."
        )
    ]


def _disagreements(lines: list[dict[str, Any]], subject: Subject) -> AuditSection:
    """Where the size of a ratio and the test say different things."""
    level = subject.options.significance
    said = []
    for line in lines:
        below, sure = line["below_four_fifths"], line["significant"]
        if below is None or sure is None or below == sure or (sure and line["z"] > 0):
            continue
        what = f"{line['category']}: the impact ratio is {line['impact_ratio']:.3f}"
        p = display.probability(line["p_exact"]).replace("<", "below ")
        if below:
            said.append(
                f"{what}, below {FOUR_FIFTHS}, but chance alone may explain it (p {p}, above {level:g}); "
                f"{_flip(line)}"
            )
        else:
            said.append(
                f"{what}, at least {FOUR_FIFTHS}, but the rates differ by more than chance (p {p}, at most "
                f"{level:g}; {abs(line['z']):.2f} standard deviations)."
            )
    none = (
        "There is no category for which the four-fifths rule and the exact test point in different "
        "directions."
    )
    title = "Where the ratio and the test disagree"
    more = len(said) - _LISTED
    said = [
        *said[:_LISTED],
        *([f"{more:,} more categories disagree in the same way."] if more > 0 else []),
    ]
    return AuditSection("disagreements", title, tuple(said) or (none,))


def _flip(line: dict[str, Any]) -> str:
    more = line["selections_to_change"]
    noun = "selection" if more == 1 else "selections"
    return f"{more:,} more {noun} of this category would have brought the ratio to {FOUR_FIFTHS}."


def _reading(subject: Subject) -> list[str]:
    level = f"{subject.options.significance:g}"
    return [
        (
            "Impact ratio: the selection rate of a category over that of the best-off one, which is the "
            "highest of the same table among categories that have enough rows to prove anything and "
            f"at least {rates.share_text(subject.options.exclude_below)} of all rows."
        ),
        (
            "Standard deviations: the difference of the two rates over its standard error at their pooled "
            "rate, as enforcement agencies count it; negative if the category's rate is lower. About 2 "
            "correspond to p = 0.05 if there are many rows."
        ),
        (
            f"p (exact): Fisher's exact test, two-sided, of the category against the best-off one. It decides "
            f"what is called significant (p at most {level}), because it holds for small numbers, too. It is "
            "not corrected for the number of categories; q is."
        ),
        (
            "Selections to change it: how many selections more (+) or fewer (−) of this category would "
            f"bring its ratio to {FOUR_FIFTHS}, or below it, while nothing else changes. If moved: the same if "
            "these selections were taken from or given to the best-off category."
        ),
        (
            "UB: Uniform Bias, 1 minus the rate over the overall rate of all rows; positive if the category "
            "has fewer selections than its share. q corrects its p-value for all groups measured."
        ),
    ]
