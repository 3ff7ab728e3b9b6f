"""The room of the bias: every group, the worst intersections, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from equipoise.options.measure import MeasureOptions
from equipoise.web.rooms.room import SHARED, Ask, Room, Text, plain_twin, table_query
from equipoise.web.schema import offered
from equipoise.web.twins import Twin, python_value, quoted

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.measures.row import Row
    from equipoise.measures.table import BiasTable
    from equipoise.values import Value

OPTIONS = offered(MeasureOptions, but=("reference", "measures"))
_WORSE, _FOREST, _KIN = 12, 24, 40

Sort = Literal["worst", "ub", "group", "n", "p"]
Evidence = Literal["all", "evident", "hidden", "worse"]


def bias_query() -> Any:
    """Make the class of the address of this room."""
    return table_query(
        "BiasQuery",
        OPTIONS,
        label_value=(Text | None, Field(default=None, description="Label value that is shown.")),
        search=(
            Text | None,
            Field(default=None, description="Text that a group's pattern contains."),
        ),
        inside=(
            Text | None,
            Field(default=None, description="Pattern; groups inside it are shown."),
        ),
        order=(
            Annotated[int, Field(ge=1, le=64)] | None,
            Field(default=None, description="Number of attributes of the groups shown."),
        ),
        evidence=(
            Evidence,
            Field(
                default="all",
                description="Show all groups, those with enough rows to tell, hidden ones, or "
                "intersections that are worse than all their parents.",
            ),
        ),
        sort=(Sort, Field(default="worst", description="Order of the groups.")),
        offset=(
            Annotated[int, Field(ge=0, le=10**9)],
            Field(default=0, description="Number of groups to skip."),
        ),
        limit_rows=(
            Annotated[int, Field(ge=0, le=1000)],
            Field(default=100, description="Maximum number of groups to return."),
        ),
        across=(Text | None, Field(default=None, description="Attribute across the heat map.")),
        down=(Text | None, Field(default=None, description="Attribute down the heat map.")),
        rows_only=(bool, Field(default=False, description="Return nothing but the groups.")),
        at=(Text | None, Field(default=None, description="Pattern of the group to explain.")),
    )


# A worker measures a table once, though a page asks for its list piece by piece.
_measured: dict[tuple[str, str], BiasTable] = {}


def measured(counts: Counts, options: dict[str, Any]) -> BiasTable:
    """Measure counts, or return what was measured before."""
    from equipoise.api.measurement import measure

    key = (counts.fingerprint, repr(sorted(options.items())))
    if key not in _measured:
        while len(_measured) >= 4:
            _measured.pop(next(iter(_measured)), None)
        _measured[key] = measure(counts, **options)
    return _measured[key]


def compute(ask: Ask) -> dict[str, Any]:
    """Measure the table; choose what is listed, drawn and explained."""
    from equipoise.measures.sentences import hints, topics

    table = measured(ask.counted(), dict(ask.options))
    shown = choose(table, ask.view)
    listed = {
        "total": len(shown),
        "offset": ask.view["offset"],
        "rows": _page(shown, ask.view["offset"], ask.view["limit_rows"]),
    }
    if ask.view["rows_only"]:
        return listed
    from equipoise.lattice import format_value

    value = _leading(table, ask.view.get("label_value"))
    about = table.about()
    return {
        "heading": table.heading,
        "n": about["n"],
        "groups": len(table.measured.lattice),
        "attributes": about["sensitive"],
        "label": about["label"],
        "labels": [format_value(each) for each in table.counts.label.values],
        "label_value": format_value(value),
        "limit": table.options.limit,
        "confidence": table.options.confidence,
        "max_order": int(table.measured.lattice.orders.max(initial=1)),
        "missing_values": about["missing_values"],
        "dropped": about["dropped"],
        "topics": topics(table.pairs),
        "hints": hints(table.counts),
        **listed,
        "forest": _page(shown.filter(evident=True, label_value=[value]), 0, _FOREST),
        "headline": _page(table.filter(label_value=[value], evident=True).sort(), 0, 1),
        "worse": _worse(table, value),
        "matrix": _matrix(table, ask.view, value),
        "at": None if not ask.view.get("at") else _explain(table, ask.view["at"]),
    }


def choose(table: BiasTable, view: Mapping[str, Any]) -> BiasTable:
    """Keep the groups that are asked for, in the order that is asked for."""
    evidence, asked = view["evidence"], view.get("label_value")
    return table.filter(
        label_value=None if asked is None else [label_named(table.counts, asked)],
        group=view.get("inside") or None,
        hidden=evidence == "hidden",
        worse=evidence == "worse",
        evident=evidence in ("evident", "worse"),
        attributes=view.get("order"),
        search=view.get("search"),
    ).sort(view["sort"])


def _page(table: BiasTable, offset: int, most: int) -> list[dict[str, Any]]:
    return [row_dict(row, table.options.limit) for row in table.part(offset, offset + most)]


def row_dict(row: Row, limit: float) -> dict[str, Any]:
    """A row as plain data, with its pattern and the side of the limit it is on."""
    from equipoise.reports.bias.data import row_side

    return {
        "pattern": str(row.group),
        "order": len(row.group),
        "side": row_side(row, limit),
        **row.to_dict(),
    }


def _leading(table: BiasTable, asked: str | None) -> Value:
    """The label value that is drawn: the one asked for, or the one with the largest bias."""
    if asked is not None:
        return label_named(table.counts, asked)
    leading = table.pairs.leading_labels(table.pairs.evident, 1)
    return table.counts.label.values[leading[0] if leading else 0]


def label_named(counts: Counts, text: str) -> Value:
    """The label value of a text, as a list of values shows it; a missing value is one, too."""
    from equipoise.lattice import format_value

    values = counts.label.values
    found = [value for value in values if text in (str(value), format_value(value))]
    return found[0] if found else values[counts.label.code(text)]


def _worse(table: BiasTable, value: Any) -> list[dict[str, Any]]:
    """Intersections whose |UB| is larger than that of all their parents, with the worst parent."""
    import numpy as np

    m = table.measured
    code = table.counts.label.code(value)
    lines = np.flatnonzero(m.worse[:, code] & m.evident[:, code])
    order = np.argsort(-np.abs(m.ub[lines, code]), kind="stable")[:_WORSE]
    found = []
    for line in lines[order].tolist():
        row = next(m.rows_at(np.array([line]), np.array([code])))
        above = m.parents(line)
        nearest = above[np.argmax(np.abs(np.nan_to_num(m.ub[above, code])))] if len(above) else None
        parent = None
        if nearest is not None:
            parent = {"pattern": str(m.group(int(nearest))), "ub": float(m.ub[nearest, code])}
        found.append({**row_dict(row, table.options.limit), "parent": parent})
    return found


def _matrix(table: BiasTable, view: Mapping[str, Any], value: Any) -> dict[str, Any] | None:
    """The heat map of two attributes, or of one and the labels."""
    from equipoise.reports.bias.chart_data import matrix

    names = [axis.name for axis in table.counts.sensitive]
    chosen = [n for n in (view.get("down"), view.get("across")) if n in names]
    for name in names:
        if len(set(chosen)) < min(2, len(names)) and name not in chosen:
            chosen.append(name)
    chosen = list(dict.fromkeys(chosen))[:2]
    axes = [names.index(name) for name in chosen]
    made = matrix(table.filter(label_value=[value]) if len(axes) == 2 else table, axes)
    return made if made["cells"] else None


def _explain(table: BiasTable, pattern: str) -> dict[str, Any]:
    """Everything about one group: its numbers, its parents and its children."""
    import numpy as np

    from equipoise.lattice import Group

    m, limit = table.measured, table.options.limit
    line = m.line(Group.parse(pattern))
    labels = np.arange(len(table.counts.label))
    own = [row_dict(r, limit) for r in m.rows_at(np.full(len(labels), line), labels)]
    return {
        "pattern": str(m.group(line)),
        "labels": own,
        "parents": _kin(table, m.parents(line)),
        "children": _kin(table, m.children(line)),
    }


def _kin(table: BiasTable, lines: Any) -> list[dict[str, Any]]:
    import numpy as np

    m = table.measured
    if not len(lines):
        return []
    worst = np.nanmax(np.abs(np.nan_to_num(m.ub[lines])), axis=1)
    lines = lines[np.argsort(-worst, kind="stable")[:_KIN]]
    labels = np.arange(len(table.counts.label))
    each = [(int(line), int(label)) for line in lines for label in labels]
    line, label = (np.array(part) for part in zip(*each, strict=True))
    return [row_dict(row, table.options.limit) for row in m.rows_at(line, label)]


def present(ask: Ask, _: dict[str, Any]) -> dict[str, Any]:
    """The address of the audit forms; the favourable outcome is the label value that was chosen."""
    pairs = [pair for pair in ask.pairs if pair[0] in SHARED]
    if ask.view.get("label_value"):
        pairs.append(("selected_value", str(ask.view["label_value"])))
    for option, words in (("sex", ("sex", "gender")), ("race", ("race", "ethnic"))):
        named = [n for n in ask.table["sensitive_features"] if n.lower().startswith(words)]
        pairs += [(option, named[0])] if named else []
    return {"audit": pairs}


def twin(ask: Ask, _: dict[str, Any]) -> list[Twin]:
    """Measuring, and choosing what is listed."""
    view = ask.view
    chosen = {
        "label_value": view.get("label_value"),
        "group": view.get("inside"),
        "attributes": view.get("order"),
        "search": view.get("search"),
        "hidden": view["evidence"] == "hidden",
        "worse": view["evidence"] == "worse",
        "evident": view["evidence"] in ("evident", "worse"),
    }
    flags: list[str] = []
    for name, value in chosen.items():
        if value:
            flag = f"--{name.replace('_', '-')}"
            flags += [flag] if value is True else [flag, quoted(str(value))]
    given = ", ".join(f"{name}={python_value(value)}" for name, value in chosen.items() if value)
    after = f".filter({given})" if given else ""
    if view["sort"] != "worst":
        flags += ["--sort", view["sort"]]
    after += f".sort({python_value(view['sort'])})"
    return [plain_twin(ask, "measure", "measure", OPTIONS, flags=tuple(flags), after=after)]


ROOM = Room(
    name="bias",
    title="Bias",
    about="Which groups lack which rows, and how sure that is.",
    query=bias_query(),
    options=OPTIONS,
    compute=compute,
    files=("csv", "json", "html", "md"),
    present=present,
    twin=twin,
)
