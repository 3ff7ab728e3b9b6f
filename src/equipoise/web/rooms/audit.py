"""Audit forms of the table, as JSON and as files; the room of the bias links to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from equipoise.errors import InputError
from equipoise.options.audit import FORMS, AuditOptions
from equipoise.web.rooms.lake import indexed_lake
from equipoise.web.rooms.room import Ask, Room, Text, plain_twin, table_query
from equipoise.web.schema import offered
from equipoise.web.twins import Twin, outside_name, quoted

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

OPTIONS = offered(AuditOptions)


def make(ask: Ask) -> Audit:
    """Fill in the form that is asked for."""
    from equipoise.api.audits import audit

    if "form" not in ask.options:
        raise InputError(f"name the `form`: {', '.join(FORMS)}.")
    lake = indexed_lake(ask) if ask.view.get("lake") else None
    # Missing values are unknown in every form, whatever the other rooms do with them.
    table = {k: v for k, v in ask.table.items() if k not in ("missing", "missing_label")}
    return audit(
        ask.path, **table, **ask.options, lake=lake, engine=ask.engine, progress=ask.progress
    )


def compute(ask: Ask) -> dict[str, Any]:
    """Fill in a form, as plain data; without one, nothing."""
    if "form" not in ask.options:
        return {"form": None, "sections": []}
    return make(ask).to_dict()


def present(_: Ask, __: dict[str, Any]) -> dict[str, Any]:
    """The forms that there are."""
    return {"forms": FORMS}


def twin(ask: Ask, _: dict[str, Any]) -> list[Twin]:
    """The report with this form."""
    if "form" not in ask.options:
        return []
    lake = ask.view.get("lake")
    flags = ("--lake", quoted(outside_name(lake))) if lake else ()
    keywords = {"lake": outside_name(lake)} if lake else {}
    return [plain_twin(ask, "report", "audit", OPTIONS, flags=flags, keywords=keywords)]


ROOM = Room(
    name="audit",
    title="Audit forms",
    about="Forms of audits, filled in from the counts of the table; none of them is a verdict.",
    query=table_query(
        "AuditQuery",
        OPTIONS,
        lake=(Text | None, Field(default=None, description="Lake that is searched for rows.")),
    ),
    options=OPTIONS,
    compute=compute,
    counts=False,
    files=("html", "md", "json", "csv"),
    twin=twin,
    present=present,
)
