"""The room of the policy map: two moves, and what each point does to every group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from equipoise.errors import InputError
from equipoise.options.map import MapOptions
from equipoise.web.rooms.bias import measured
from equipoise.web.rooms.room import Ask, Room, plain_twin, table_query
from equipoise.web.schema import offered
from equipoise.web.twins import Twin

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.plans.maps.policy_map import PolicyMap

OPTIONS = offered(MapOptions)
_EFFECTS, _MOVES = 60, 200
_Rows = Annotated[int, Field(ge=0, le=10**12)]


def map_query() -> Any:
    """Make the class of the address of this room."""
    return table_query(
        "MapQuery",
        OPTIONS,
        at_x=(_Rows | None, Field(default=None, description="Rows of the first move.")),
        at_y=(_Rows | None, Field(default=None, description="Rows of the second move.")),
        still=(
            bool,
            Field(default=False, description="Leave out what does not depend on the point."),
        ),
    )


def make(ask: Ask) -> PolicyMap:
    """Make the map that is asked for; without moves, of those that a plan makes first."""
    from equipoise.api.plans import policy_map

    counts, options = ask.counted(), dict(ask.options)
    if "x" not in options or "y" not in options:
        suggested = suggest_moves(counts)
        options.setdefault("x", suggested[0])
        options.setdefault("y", suggested[1])
    x, y = ask.view.get("at_x"), ask.view.get("at_y")
    at = None if x is None and y is None else (x or 0, y or 0)
    return policy_map(counts, **options, at=None if at == (0, 0) else at)


def suggest_moves(counts: Counts) -> tuple[str, str]:
    """Delete rows of the group that has most too many of a label; add to the one that lacks most.

    Only groups of one attribute are looked at. The label is the rarest one that some group lacks.
    """
    from equipoise.lattice import Group

    rows = [row for row in measured(counts, {"max_order": 1}) if row.missing_rows]
    lacking = [row for row in rows if row.missing_rows >= 1]
    if not lacking:
        moves = possible_moves(counts)
        if len(moves) < 2:
            raise InputError("a map needs two moves, and this table has only one cell.")
        return moves[1], moves[0]
    rarest = min(lacking, key=lambda row: row.overall_rate).label
    least = max((r for r in lacking if r.label == rarest), key=lambda row: row.missing_rows)
    others = [r for r in rows if r.label == rarest and set(r.group) == set(least.group)]
    most = min(others, key=lambda row: row.missing_rows)
    label = counts.label.name
    return tuple(  # type: ignore[return-value]
        f"{kind} {Group({**row.group, label: rarest})}"
        for kind, row in (("delete", most), ("add", least))
    )


def possible_moves(counts: Counts) -> list[str]:
    """Additions and deletions of single cells, those with the most rows first."""
    from equipoise.lattice import Group
    from equipoise.measures.measurement import group_of

    label = counts.label
    order = sorted(range(len(counts.rows)), key=lambda i: -int(counts.rows[i]))[: _MOVES // 2]
    cells = []
    for place in order:
        codes = counts.codes[place]
        group = group_of(counts, codes[:-1])
        cells.append(str(Group({**group, label.name: label.values[int(codes[-1])]})))
    return [f"{kind} {cell}" for kind in ("add", "delete") for cell in cells]


def compute(ask: Ask) -> dict[str, Any]:
    """Map the bias over two moves; describe the chosen point, or the best one."""
    from equipoise.reports.policy_map.data import chart_data

    made = make(ask)
    told = made.to_dict()
    # At 0 rows of both moves nothing is moved; that is a point of the map, though not a plan.
    at_now = ask.view.get("at_x") == 0 and ask.view.get("at_y") == 0
    best = None if made.chosen is None else made.chosen.to_dict()
    effect = None if at_now else made.effect
    shown = {
        "heading": made.heading,
        "group": str(made.group),
        "label_value": told["label_value"],
        "x": str(made.x),
        "y": str(made.y),
        "ub": told["ub"],
        "reached": told["reached"],
        "points": told["points"],
        "chosen": made.at is not None,
        "point": told["points"][0] if at_now else best,
        "tolerance": told["parameters"]["tolerance"],
        "limits": told["limits"],
        "sentences": told["sentences"],
        "effects": []
        if effect is None
        else [_effect(row) for row in effect.biases.telling(_EFFECTS)],
        "x_max": made.x_max,
        "y_max": made.y_max,
    }
    if ask.view.get("still"):
        return shown
    return {
        **shown,
        "chart": chart_data(made),
        "moves": possible_moves(ask.counted()),
    }


def _effect(row: Any) -> dict[str, Any]:
    from equipoise.values import plain

    return {
        "pattern": str(row.group),
        "label": plain(row.label),
        "before": plain(row.before),
        "after": plain(row.after[0]),
    }


def present(ask: Ask, shown: dict[str, Any]) -> dict[str, Any]:
    """Links of the point: the plan that makes its moves, and limits that it sets."""
    point = shown["point"]
    if point is None:
        return {
            "moves": [],
            "locked": {"x": [], "y": [], "held": {"x": [], "y": []}, "without": {}},
        }
    moves = []
    for name in ("x", "y"):
        kind, _, pattern = shown[name].partition(" ")
        rows = round(point[name])
        if rows:
            moves.append(f"{pattern} {'+' if kind == 'add' else '-'}{rows}")
    given = list(ask.options.get("limits", ()))
    locked: dict[str, Any] = {"held": {}, "without": {}}
    for name in ("x", "y"):
        locked["held"][name] = [
            text for text in given if text.replace(" ", "").startswith(f"{name}<=")
        ]
        locked[name] = [*given, f"{name}<={round(point[name])}"]
    for text in given:
        locked["without"][text] = [each for each in given if each != text]
    return {"moves": moves, "locked": locked}


def twin(ask: Ask, shown: dict[str, Any]) -> list[Twin]:
    """The map, with the moves that are shown."""
    from dataclasses import replace

    own = replace(ask, options={**ask.options, "x": shown["x"], "y": shown["y"]})
    x, y = ask.view.get("at_x") or 0, ask.view.get("at_y") or 0
    flags, keywords = ((), {}) if not x and not y else (("--at", str(x), str(y)), {"at": [x, y]})
    return [plain_twin(own, "map", "policy_map", OPTIONS, flags=flags, keywords=keywords)]


ROOM = Room(
    name="map",
    title="Map",
    about="How two moves trade off: drag the point, and read what happens to every group.",
    query=map_query(),
    options=OPTIONS,
    compute=compute,
    present=present,
    files=("json", "html"),
    twin=twin,
)
