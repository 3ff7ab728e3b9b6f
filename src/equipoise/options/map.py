"""The options of a policy map: two moves, whose bias is mapped, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.options.declaration import check, declared, option


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """Two moves, and what is shown of them."""

    x: str = field(
        metadata=declared(
            help="First move: add PATTERN, or delete PATTERN.",
            group="What is allowed",
            common=True,
            metavar="MOVE",
            example="'add sex=Male, income=<=50K'",
        )
    )
    y: str = field(
        metadata=declared(
            help="Second move.",
            group="What is allowed",
            common=True,
            metavar="MOVE",
            example="'add sex=Female, income=>50K'",
        )
    )
    group: str | None = option(
        None,
        help="Group whose UB is mapped. By default the group that `y` names, or `x`.",
        group="Which groups",
        metavar="PATTERN",
    )
    label_value: str | None = option(
        None,
        help="Label value whose UB is mapped. By default the value that the moves name.",
        group="Which groups",
        metavar="VALUE",
    )
    limits: tuple[str, ...] = option(
        (),
        help="Linear limit, such as 'x<=4500' or 'n>=30000'.",
        group="Costs and limits",
        metavar="LIMIT",
        flags=("--limit",),
        form="texts",
    )
    cost_x: float = option(
        1.0, help="Cost of a row of the first move.", group="Costs and limits", above=0
    )
    cost_y: float = option(
        1.0, help="Cost of a row of the second move.", group="Costs and limits", above=0
    )
    tolerance: float = option(
        0.0,
        help="Largest |UB| that is accepted.",
        group="What is allowed",
        common=True,
        at_least=0,
    )
    x_max: float | None = option(None, help="Largest x that is drawn.", group="Output", at_least=1)
    y_max: float | None = option(None, help="Largest y that is drawn.", group="Output", at_least=1)

    def __post_init__(self) -> None:
        check(self)
