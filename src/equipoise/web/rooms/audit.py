"""Audit forms of the table, as JSON and as files; the room of the bias links to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import InputError
from equipoise.options.audit import FORMS, AuditOptions
from equipoise.web.rooms.room import Ask, Room, table_query
from equipoise.web.schema import offered

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit

OPTIONS = offered(AuditOptions)


def make(ask: Ask) -> Audit:
    """Fill in the form that is asked for."""
    from equipoise.api.audits import audit

    if "form" not in ask.options:
        raise InputError(f"name the `form`: {', '.join(FORMS)}.")
    # Missing values are unknown in every form, whatever the other rooms do with them.
    table = {k: v for k, v in ask.table.items() if k not in ("missing", "missing_label")}
    return audit(ask.path, **table, **ask.options, engine=ask.engine, progress=ask.progress)


def compute(ask: Ask) -> dict[str, Any]:
    """Fill in a form, as plain data."""
    return make(ask).to_dict()


ROOM = Room(
    name="audit",
    title="Audit forms",
    about="Forms of audits, filled in from the counts of the table; none of them is a verdict.",
    query=table_query("AuditQuery", OPTIONS),
    options=OPTIONS,
    compute=compute,
    counts=False,
    files=("html", "md", "json", "csv"),
)
