"""The fields of a form, read off the declared options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.options import GROUPS, Option
from equipoise.options.texts import number_text

SLIDERS: Mapping[str, tuple[float, float, float]] = {
    "tolerance": (0.0, 0.6, 0.005),
    "limit": (0.0, 0.6, 0.01),
    "label_drift": (0.0, 0.5, 0.01),
    "budget": (0, 10_000, 10),
    "share_tolerance": (0.0, 0.2, 0.005),
    "min_group": (1, 500, 1),
    "min_count": (1, 500, 1),
    "confidence": (0.5, 0.99, 0.01),
}
"""Numbers that are also set by dragging: the least, the largest, and the step."""

_TITLES = {
    "sensitive_features": "Sensitive attributes",
    "na": "Texts for missing values",
    "missing": "Missing attributes",
    "missing_label": "Missing labels",
    "count": "Column of counts",
    "weight": "Column of weights",
    "min_count": "Smallest group",
    "max_order": "Most attributes of a group",
    "limit": "Limit of |UB|",
    "max_abs_ub": "Largest |UB| allowed",
    "alpha": "False alarm probability",
    "four_fifths": "Four-fifths rule",
    "timezone": "Time zone",
    "adjust": "Adjustment of q",
    "favourable": "Favourable label",
    "min_group": "Smallest judged group",
    "allow": "Rows may be",
    "tolerance": "Tolerance: largest |UB|",
    "labels": "Label frequencies",
    "available": "Rows available",
    "at_least": "At least",
    "at_least_each": "At least, for each group of",
    "x": "First move",
    "y": "Second move",
    "cost_x": "Cost of a row, first move",
    "cost_y": "Cost of a row, second move",
}


@dataclass(frozen=True)
class FormField:
    """One field of a form."""

    name: str
    title: str
    help: str
    kind: str
    """``choice``, ``switch``, ``number``, ``lines`` (one text a line) or ``text``."""
    value: Any
    default: Any
    is_set: bool
    choices: tuple[str, ...] = ()
    slider: tuple[float, float, float] | None = None
    least: float | None = None
    most: float | None = None
    example: str = ""
    words: tuple[str, ...] = ()
    """Values that a text may have beside others, to choose from."""
    common: bool = False


@dataclass(frozen=True)
class FieldSet:
    """The fields of a form under one title."""

    title: str
    fields: list[FormField] = field(default_factory=list)

    @property
    def is_set(self) -> bool:
        """Whether some field has another value than its default."""
        return any(each.is_set for each in self.fields)


def fieldsets(
    options: Sequence[Option], given: Mapping[str, Any], *, but: Sequence[str] = ()
) -> tuple[list[FormField], list[FieldSet]]:
    """The fields that most users need, and all others under the titles of their groups."""
    common: list[FormField] = []
    others = {title: FieldSet(title) for title in GROUPS}
    for option in options:
        if option.keyword in but:
            continue
        made = form_field(option, given.get(option.keyword))
        if option.common:
            common.append(made)
        else:
            others[option.group].fields.append(made)
    return common, [each for each in others.values() if each.fields]


def form_field(option: Option, value: Any) -> FormField:
    """The field of one option, with its present value.

    >>> from equipoise.options import options_of
    >>> from equipoise.options.plan import PlanOptions
    >>> known = {o.keyword: o for o in options_of(PlanOptions)}
    >>> form_field(known["allow"], None).kind, form_field(known["cost_add"], ["* 2"]).kind
    ('choice', 'lines')
    """
    kind = "text"
    if option.choices:
        kind = "choice"
    elif option.is_switch:
        kind = "switch"
    elif option.is_number:
        kind = "number"
    elif option.is_repeatable:
        kind = "lines"
    default = None if option.is_required else option.default
    shown = value if value not in (None, []) else default
    if option.is_repeatable:
        shown = [] if value in (None, []) else value
    elif isinstance(shown, float):
        shown = number_text(shown)
    return FormField(
        name=option.keyword,
        title=_TITLES.get(option.keyword, option.keyword.replace("_", " ").capitalize()),
        help=option.help.replace("`", ""),
        kind=kind,
        value=shown,
        default=number_text(default) if isinstance(default, float) else default,
        is_set=value not in (None, [], ()) and value != option.default,
        choices=option.choices,
        slider=SLIDERS.get(option.keyword),
        least=option.at_least if option.at_least is not None else option.above,
        most=option.at_most if option.at_most is not None else option.below,
        example=option.example or option.metavar or "",
        words=tuple(w for w in (option.metavar or "").split("|") if w.islower()),
        common=option.common,
    )
