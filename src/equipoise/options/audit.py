"""The options of an audit form: which form, which columns, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from equipoise.errors import InputError
from equipoise.options.declaration import check, option

AuditForm: TypeAlias = Literal[
    "local-law-144", "uniform-guidelines", "eu-ai-act-article-10", "datasheet"
]

FORMS: Mapping[str, str] = {
    "local-law-144": "Selection rates and impact ratios by sex and race (New York City).",
    "uniform-guidelines": "Four-fifths rule with tests of significance (29 CFR 1607).",
    "eu-ai-act-article-10": "Biases, data gaps, and how to fill them (EU AI Act).",
    "datasheet": "Composition, biases and open questions of a data set.",
}
"""What each form is, in one line."""
SCORING, SEARCHING = "local-law-144", "eu-ai-act-article-10"
"""The form that takes a score, and the one for which a lake is searched."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """Which audit form is filled in, and from which columns."""

    form: AuditForm | None = option(
        None, help="Form to fill in.", group="Output", common=True, metavar="FORM"
    )
    sex: str | None = option(
        None, help="Column of the sex.", group="Data", common=True, metavar="COLUMN"
    )
    race: str | None = option(
        None, help="Column of the race or ethnicity.", group="Data", common=True, metavar="COLUMN"
    )
    selected: str | None = option(
        None,
        help="Column that says who was selected. The same as `label`.",
        group="Data",
        common=True,
        metavar="COLUMN",
    )
    selected_value: str | None = option(
        None,
        help="Value of `selected` that means selected. By default yes, true or 1, if the column has two "
        "values and one of these.",
        group="Data",
        metavar="VALUE",
        flags=("--selected-value", "--favourable"),
        accepts="Any",  # label values may be numbers or truth values
    )
    score: str | None = option(
        None,
        help="Column of a numeric score, instead of `selected`. Scores above the median of all rows "
        "count as selected.",
        group="Data",
        common=True,
        metavar="COLUMN",
    )
    unknown: tuple[str, ...] = option(
        (),
        help="Values of sensitive attributes that mean unknown, in addition to missing values.",
        group="Data",
        example="'Decline to state,Unknown'",
        metavar="TEXT,…",
        form="names",
    )
    exclude_below: float = option(
        0.02,
        help="Share of all rows below which a category is marked, and left out of a second column of "
        "impact ratios.",
        group="Which groups",
        metavar="SHARE",
        at_least=0,
        below=1,
    )
    limit: float = option(
        0.1,
        help="Largest |UB| of a group that counts as inside.",
        group="Which groups",
        at_least=0,
    )
    significance: float = option(
        0.05,
        help="Level of significance of the tests.",
        group="Uncertainty",
        above=0,
        below=1,
    )
    confidence: float = option(
        0.95, help="Confidence level of the intervals.", group="Uncertainty", above=0, below=1
    )
    tolerance: float = option(
        0.1,
        help="Largest |UB| that any group may keep in the plan that says how gaps could be filled.",
        group="What is allowed",
        at_least=0,
    )
    min_group: int = option(
        30,
        help="Minimum number of rows of a group that the tolerance of this plan applies to.",
        group="Which groups",
        at_least=1,
    )
    suppress_below: int | None = option(
        None,
        help="Hide counts below this number, and what they could be derived from.",
        group="Output",
        metavar="K",
        at_least=1,
    )

    def __post_init__(self) -> None:
        check(self)

    def attributes(self, sensitive: str | Sequence[str] | None = None) -> tuple[str, ...]:
        """The sensitive attributes: sex and race, then others that were named, each once.

        >>> AuditOptions(sex="gender").attributes(["age", "gender"])
        ('gender', 'age')
        """
        others = [sensitive] if isinstance(sensitive, str) else list(sensitive or ())
        return tuple(dict.fromkeys([*filter(None, (self.sex, self.race)), *others]))

    def outcome(self, label: str | None = None) -> str | None:
        """The column of the outcome; refuse two different ones.

        >>> AuditOptions(selected="hired").outcome()
        'hired'
        """
        named = {"score": self.score, "selected": self.selected, "label": label}
        given = {name: column for name, column in named.items() if column is not None}
        if len(set(given.values())) > 1 or {"score", "selected"} <= given.keys():
            told = " and ".join(f"`{name}={column!r}`" for name, column in given.items())
            raise InputError(f"a form has one outcome; {told} name several. Give one of them.")
        return next(iter(given.values()), None)
