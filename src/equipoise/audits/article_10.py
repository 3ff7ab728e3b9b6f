"""A data-governance section in the terms of Article 10 of the EU AI Act."""

from __future__ import annotations

from equipoise.audits import biases
from equipoise.audits.audit import Audit, AuditSection, to_fill_in
from equipoise.audits.gaps import Gaps, find_gaps
from equipoise.audits.remedy import Remedy, remedy_sections
from equipoise.audits.subject import Subject

FORM = "eu-ai-act-article-10"
TITLE = "Data governance"
RULE = (
    "Regulation (EU) 2024/1689 of 13 June 2024 (AI Act), Article 10 on data and data governance, "
    "paragraphs 2(f) to 2(h), 3 and 4, as published on 12 July 2024."
)
NOT_COVERED = (
    "Whether the system is a high-risk one, and whether the article applies to it.",
    (
        "Paragraph 2(a) to 2(e): design choices, the collection and origin of data, their preparation and "
        "annotation, assumptions, and whether the data sets are suitable."
    ),
    "Biases in what the columns mean or how they were measured: only numbers of rows are compared.",
    "Attributes that were not named, and groups that the table does not record.",
    "The model that is trained on the data, and other data sets for training, validation or testing.",
    "Paragraph 5: whether special categories of personal data may be processed to detect biases.",
)
PURPOSE = (
    "intended purpose of the system, and why these data are relevant to it (paragraph 3).",
    "design choices, collection process, origin and original purpose of the data (2(a), 2(b)).",
    "annotation, labelling, cleaning, updating and aggregation of the data (2(c)).",
    "assumptions about what the data measure and represent (2(d)), and their suitability (2(e)).",
)
EFFECTS = (
    (
        "which of these biases are likely to affect health, safety or fundamental rights, or to lead to "
        "discrimination (2(f))."
    ),
    "which measures were taken against them, and why these (2(g)).",
)
SETTING = (
    (
        "geographical, contextual, behavioural or functional setting of the intended use, and which of its "
        "characteristics the data contain or lack (paragraph 4)."
    ),
)


def fill_in(subject: Subject, remedy: Remedy) -> Audit:
    """Fill in the form."""
    gaps = find_gaps(subject)
    table = subject.table
    sections = (
        AuditSection(
            "purpose", "Purpose and origin of the data (2(a) to 2(e))", to_fill_in(PURPOSE)
        ),
        AuditSection(
            "examination",
            "Examination in view of possible biases (2(f))",
            (*subject.rows_sentences, *biases.examined(subject)),
        ),
        biases.bias_section(subject, "Biases that were found (2(f))"),
        AuditSection("effects", "Effects and measures (2(f), 2(g))", to_fill_in(EFFECTS)),
        _gaps_section(subject, gaps),
        *_numbered(remedy_sections(subject, remedy)),
        AuditSection(
            "properties",
            "Statistical properties as regards groups of persons (3)",
            ("Rows of each group and label; completeness is under gaps.",),
            (biases.composition(subject),),
        ),
        AuditSection("setting", "Setting of the intended use (4)", to_fill_in(SETTING)),
    )
    return Audit(
        form=FORM,
        title=TITLE,
        rule=RULE,
        subject=subject,
        sections=sections,
        not_covered=NOT_COVERED,
        columns=biases.COLUMNS,
        lines=biases.bias_lines(table),
        biases=table,
        numbers={"gaps": gaps.to_dict(), **remedy.to_dict()},
    )


def _gaps_section(subject: Subject, gaps: Gaps) -> AuditSection:
    grids = (gaps.grid, *([gaps.empty_grid] if gaps.empty_grid else []))
    said = tuple(gaps.sentences(subject.counts.label.name))
    return AuditSection("gaps", "Data gaps and shortcomings (2(h))", said, grids)


def _numbered(sections: list[AuditSection]) -> list[AuditSection]:
    return [
        AuditSection(part.id, f"{part.title} (2(h))", part.sentences, part.grids)
        for part in sections
    ]
