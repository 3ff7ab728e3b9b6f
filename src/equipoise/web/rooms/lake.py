"""The room of the lake: which tables offer the needed rows, and what they mean."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, SearchRequest
from equipoise.web.rooms.room import Ask, Room, Text, table_query
from equipoise.web.schema import offered

PLAN = offered(PlanOptions)
SEARCH = offered(SearchRequest)
LIMITS = tuple(
    o for o in offered(AcquisitionLimits) if o.keyword not in {p.keyword for p in PLAN}
)
OPTIONS = (*PLAN, *SEARCH, *LIMITS)


def lake_query() -> Any:
    """Make the class of the address of this room."""
    return table_query(
        "LakeQuery",
        OPTIONS,
        lake=(Text | None, Field(default=None, description="Name of the folder of tables.")),
        job=(Text | None, Field(default=None, description="Job whose result is shown.")),
    )


def compute(ask: Ask) -> dict[str, Any]:
    """Rank the tables of the lake by the needed rows they offer."""
    return {}


ROOM = Room(
    name="lake",
    title="Lake",
    about="Where the rows could come from, and what the tables there mean.",
    query=lake_query(),
    options=OPTIONS,
    compute=compute,
    command="find",
)
