"""The tables of a bias audit as New York City Local Law 144 and its rules describe them."""

from __future__ import annotations

from equipoise.audits import rates
from equipoise.audits.audit import Audit, AuditSection, to_fill_in
from equipoise.audits.subject import Subject
from equipoise.measures.display import percent
from equipoise.measures.selection import SelectionTable
from equipoise.plain import Grid, in_words

FORM = "local-law-144"
TITLE = "Selection rates and impact ratios"
RULE = (
    "New York City Local Law 144 of 2021 (Administrative Code § 20-870 to 20-874) and the rules of the "
    "Department of Consumer and Worker Protection, 6 RCNY § 5-300 to 5-304, as adopted in April 2023."
)
NOT_COVERED = (
    "Whether the tool is an automated employment decision tool, and whether the law applies to it.",
    "Whether the auditor is independent, and when the audit was done.",
    (
        "Whether the rows are historical data or test data, whose they are, which positions and which period "
        "they cover, and whether they are enough."
    ),
    (
        "Whether the values of the columns are the categories that employers report to the Equal Employment "
        "Opportunity Commission (EEO-1, component 1); they are used as they stand in the table."
    ),
    "Other attributes, such as age or disability, unless they are named as sensitive attributes.",
    "Notices to candidates, publication of the summary, and the retention of data.",
    "Whether the tool measures what a job needs, and why rates differ.",
)
QUESTIONS = (
    "name of the tool and the date from which it has been used.",
    "source and explanation of the data, and why they were chosen.",
    "date of the audit, and the auditor.",
)


def fill_in(subject: Subject) -> Audit:
    """Fill in the form."""
    subject = subject.for_selection(FORM)
    tables = rates.selection_tables(subject, "all")
    sections = [AuditSection("overview", "Rows and outcome", tuple(_overview(subject)))]
    for number, table in enumerate(tables, start=1):
        said = tuple(rates.table_sentences(table, _rate(subject)))
        grids = (_grid(table, subject),) if len(table) else ()
        sections.append(
            AuditSection(
                rates.id_of(number), rates.title_of(table), (*said, *_excluded(table)), grids
            )
        )
    sections.append(AuditSection("reading", "How to read the tables", tuple(_reading(subject))))
    sections.append(AuditSection("people", "For people to add", to_fill_in(QUESTIONS)))
    lines = [[rates.category(table, i) for i in range(len(table))] for table in tables]
    return Audit(
        form=FORM,
        title=TITLE,
        rule=RULE,
        subject=subject,
        sections=tuple(sections),
        not_covered=NOT_COVERED,
        columns=rates.CATEGORY,
        lines=tuple(tuple(line.values()) for part in lines for line in part),
        tables=tables,
        numbers={
            "rate": _rate(subject),
            "median": None if subject.median is None else vars(subject.median),
            "tables": rates.plain_tables(tables, lines),
        },
    )


def _rate(subject: Subject) -> str:
    return "selection rate" if subject.median is None else "scoring rate"


def _overview(subject: Subject) -> list[str]:
    said = [*subject.rows_sentences, *rates.outcome_sentences(subject)]
    lacking = [
        words
        for words, column in (
            ("sex", subject.options.sex),
            ("race/ethnicity", subject.options.race),
        )
        if column is None
    ]
    if lacking:
        said.append(
            f"No column was named as {in_words(lacking)}. The rules ask for tables by sex, by "
            "race/ethnicity and by both; the tables below are by the attributes that were named."
        )
    return said


def _excluded(table: SelectionTable) -> list[str]:
    if not table.small.any():
        return []
    return [
        (
            "An independent auditor may leave such categories out of the impact ratios, with a reason; the "
            "rules still ask for their numbers. The last column of ratios leaves them out."
        )
    ]


def _reading(subject: Subject) -> list[str]:
    rate = _rate(subject)
    selected = (
        "share of a category's rows whose score is above the median of all rows"
        if subject.median is not None
        else "share of a category's rows that are selected"
    )
    return [
        f"{rate.capitalize()}: {selected}.",
        (
            f"Impact ratio: the {rate} of a category over the highest {rate} of a category of the same "
            "table. The rules set no limit for it; the line at 0.8 in the charts is the four-fifths rule of "
            "other guidelines."
        ),
        (
            f"The {subject.options.confidence:.0%} intervals of the ratios are not asked for by the rules. They "
            "say how far the ratios may be from what more rows would show."
        ),
    ]


def _grid(table: SelectionTable, subject: Subject) -> Grid:
    selected = "selected" if subject.median is None else "above the median"
    headers = [rates.heading_of(table), "applicants", "share of rows", selected, _rate(subject)]
    headers += ["impact ratio", f"{subject.options.confidence:.0%} interval"]
    some = bool(table.small.any())
    headers += [f"ratio without those under {rates.share_text(table.exclude_below)}"] * some
    rows = []
    for i in range(len(table)):
        cells = [rates.category_text(table, i)]
        cells += [rates.count_text(table, i, table.n[i]), percent(float(table.share[i]))]
        cells += [rates.count_text(table, i, table.selected[i]), percent(float(table.rate[i]))]
        cells += [rates.ratio_text(float(table.ratio[i])), rates.interval_text(table, i)]
        cells += [rates.ratio_text(float(table.ratio_without_small[i]))] * some
        rows.append((*cells, _note(table, i)))
    numbers = frozenset(range(1, len(headers)))
    return Grid((*headers, "note"), tuple(rows), numbers)


def _note(table: SelectionTable, place: int) -> str:
    if table.suppressed[place]:
        return "hidden"
    notes = [f"under {rates.share_text(table.exclude_below)}"] if table.small[place] else []
    notes += ["highest rate"] if place == table.best and table.rate[place] > 0 else []
    return ", ".join(notes)
