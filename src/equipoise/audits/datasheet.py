"""The section of a data sheet or a model card that can be filled in from counts."""

from __future__ import annotations

from equipoise.audits import biases
from equipoise.audits.audit import Audit, AuditSection, to_fill_in
from equipoise.audits.gaps import find_gaps
from equipoise.audits.subject import Subject
from equipoise.plain import counted, in_words
from equipoise.version import __version__

FORM = "datasheet"
TITLE = "Data sheet"
RULE = (
    "The practice of data sheets for data sets (Gebru and others, 2018, published in 2021) and model cards "
    "(Mitchell and others, 2019)."
)
NOT_COVERED = (
    "What the columns mean, how they were measured, and whether their values are right.",
    "Columns that were not named: only the sensitive attributes and the label were counted.",
    "Rows that were never recorded.",
    "What a model that is trained on these data does.",
)
MOTIVATION = (
    "for which purpose the data set was made, by whom, and who paid for it.",
    "what a row stands for.",
)
PEOPLE = (
    "how the data were collected, over which time, from whom, and with whose consent.",
    "how labels and sensitive attributes were assigned, and by whom.",
    "how values were cleaned, filled in or removed before this table was counted.",
    "what the data set has been used for, and what it should not be used for.",
    "who maintains and distributes it, under which licence, and how errors are reported.",
)


def fill_in(subject: Subject) -> Audit:
    """Fill in the form."""
    gaps, table = find_gaps(subject), subject.table
    grids = (gaps.grid, *([gaps.empty_grid] if gaps.empty_grid else []))
    sections = (
        AuditSection("motivation", "Motivation", to_fill_in(MOTIVATION)),
        AuditSection(
            "composition",
            "Composition",
            (*subject.rows_sentences, *_columns(subject)),
            (biases.composition(subject),),
        ),
        AuditSection(
            "gaps",
            "Missing values and empty cells",
            tuple(gaps.sentences(subject.counts.label.name)),
            grids,
        ),
        biases.bias_section(subject, "Biases, with intervals"),
        AuditSection("limits", "Recommendations and limits", tuple(_limits(subject))),
        AuditSection("people", "Collection, preparation, uses and maintenance", to_fill_in(PEOPLE)),
        AuditSection("making", "How this sheet was made", tuple(_making(subject))),
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
        numbers={"gaps": gaps.to_dict()},
    )


def _columns(subject: Subject) -> list[str]:
    label = subject.counts.label
    sizes = [f"{axis.name} ({counted(len(axis), 'value')})" for axis in subject.counts.sensitive]
    return [
        f"Sensitive attributes: {in_words(sizes)}.",
        f"Label: {label.name} ({counted(len(label), 'value')}).",
    ]


def _limits(subject: Subject) -> list[str]:
    pairs, limit = subject.table.pairs, subject.options.limit
    outside, evident = int(pairs.outside.sum()), int((pairs.outside & pairs.evident).sum())
    untold = int(pairs.untold.sum())
    said = []
    if outside:
        said.append(
            f"Pairs of a group and a label with |UB| above {limit:g}: {outside:,}, by more than chance "
            f"{evident:,}. A model that is trained on these rows may learn these differences; state them "
            "wherever it is used."
        )
    if untold:
        said.append(
            f"Pairs with too few rows to tell: {untold:,}. Do not draw conclusions about these groups from "
            "these data."
        )
    return [
        *said,
        (
            "Rows drawn from this table have the shares of the table, not those of a population; compare "
            "the two before using the data for another one."
        ),
        "equipoise plan computes the rows that would bring the biases within a tolerance.",
    ]


def _making(subject: Subject) -> list[str]:
    table = subject.table
    source = [f"Table: {subject.source}."] if subject.source else []
    hidden = table.measured.suppressed is not None
    print_ = [] if hidden else [f"Fingerprint of the counts: sha256:{subject.counts.fingerprint}."]
    return [
        *source,
        f"Counted in one pass and measured by equipoise {__version__}.",
        *print_,
    ]
