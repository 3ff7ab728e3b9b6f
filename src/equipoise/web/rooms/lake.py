"""The room of the lake: which tables offer the needed rows, what they mean, and the repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from equipoise.engines.kinds import EXTENSIONS, extension
from equipoise.errors import InputError, SourceNotFound
from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, SearchRequest
from equipoise.web.rooms import plan as plan_room
from equipoise.web.rooms.room import Ask, Room, Text, outside_files, plain_twin, table_query
from equipoise.web.schema import offered
from equipoise.web.twins import Expression, Twin, outside_name

if TYPE_CHECKING:
    from equipoise.lake.lake import Lake
    from equipoise.plans.plan import Plan

PLAN = offered(PlanOptions)
SEARCH = offered(SearchRequest, but=("second_opinion",))
_PLANNED = {option.keyword for option in PLAN}
# A repair has one budget and one time limit, those of the plan.
LIMITS = offered(AcquisitionLimits, but=("partial", "force", *_PLANNED))
OPTIONS = (*PLAN, *SEARCH, *LIMITS)
_BEFORE = ("reference", "rounding", "exact", "extra", "budget", "priority")
"""Options of plans that a repair does not have."""
_OFFERS, _CELLS, _TABLES = 50, 100, 100


def lake_query() -> Any:
    """Make the class of the address of this room."""
    return table_query(
        "LakeQuery",
        OPTIONS,
        move=(
            list[Text],
            Field(
                default_factory=list,
                max_length=200,
                description="A plan by hand, as in the room of plans.",
            ),
        ),
        lake=(Text | None, Field(default=None, description="Name of the folder of tables.")),
        job=(Text | None, Field(default=None, description="Job whose result is shown.")),
    )


def keywords_among(options: Mapping[str, Any], known: Sequence[Any]) -> dict[str, Any]:
    """The options of a request that are among some declared ones."""
    names = {option.keyword for option in known}
    return {name: value for name, value in options.items() if name in names}


def open_lake(ask: Ask) -> Lake:
    """The lake that is named, read by an engine that reads nothing else."""
    from equipoise.lake.lake import Lake

    if not ask.view.get("lake"):
        raise InputError("name the folder of tables in which rows are searched for.")
    place = ask.places.file(ask.view["lake"])
    return Lake(place, engine=ask.engine, refresh=False, progress=ask.progress)


def indexed_lake(ask: Ask) -> Lake:
    """The lake that is named; refuse one without an index, since opening it would write one."""
    lake = open_lake(ask)
    if not lake.index_path.exists():
        raise InputError(
            f"the lake {ask.view['lake']} is not indexed; index it in the room “Lake”."
        )
    return lake


def planned(ask: Ask) -> Plan:
    """The plan whose rows are searched for."""
    return plan_room.make(ask, keywords_among(ask.options, PLAN), ask.view.get("move", ()))


def made_before(ask: Ask) -> bool:
    """Whether the plan is one that a repair carries out, but does not make itself."""
    drawn = any(text.strip() for text in ask.view.get("move") or ())
    return drawn or any(name in ask.options for name in _BEFORE)


def compute(ask: Ask) -> dict[str, Any]:
    """Rank the tables of the lake by the needed rows they offer, and list what is open."""
    if not ask.view.get("lake"):
        return {"lake": None}
    from equipoise.plans.infeasibility import Infeasible

    lake = open_lake(ask)
    shown: dict[str, Any] = {"lake": ask.view["lake"], "indexed": lake.index_path.exists()}
    if not shown["indexed"]:
        return shown
    shown["tables"], shown["rows"] = len(lake.tables), sum(table.rows for table in lake.tables)
    shown["stale"] = is_stale(lake)
    shown["problems"] = [{"table": t.name, "why": t.problem} for t in lake.tables if t.problem]
    try:
        made = planned(ask)
    except Infeasible as error:
        return {**shown, "plan": None, "why": list(error.to_dict()["explanation"])}
    search = keywords_among(ask.options, SEARCH)
    ask.progress("matching tables", 0.3)
    try:
        found = lake.find(made, base=ask.path, top=_OFFERS, **search)
        asked = lake.questions(made, base=ask.path, **search)
    except SourceNotFound as error:  # a table that was indexed is gone
        return {**shown, "plan": None, "stale": True, "why": [str(error)]}
    told, counted = found.to_dict(), [axis.name for axis in made.counts.axes]
    return {
        **shown,
        "plan": {
            "additions": made.additions,
            "deletions": made.deletions,
            "cost": made.cost,
            "max_abs_ub_before": made.certificate.max_abs_ub_before,
            "max_abs_ub_after": made.certificate.max_abs_ub_after,
        },
        "mapping": ask.named.get("mapping"),
        "found": {**told, "offers": [_offer(each, counted) for each in told["offers"]]},
        "questions": _first(asked.to_dict()),
    }


def _first(questions: dict[str, Any]) -> dict[str, Any]:
    """The questions about the first tables; a page with forms for hundreds of them is of no use."""
    tables, more = questions["tables"][:_TABLES], questions["tables"][_TABLES:]
    return {**questions, "tables": tables, "more_tables": questions["more_tables"] + len(more)}


def _offer(offer: Mapping[str, Any], counted: Sequence[str]) -> dict[str, Any]:
    """An offer as the page shows it: the needed rows it has, what they cost, and why it matches."""
    own = ("table", "confidence", "licence", "duplicates", "needed_rows", "cost", "cells")
    columns = {name: offer["columns"][name] for name in counted if name in offer["columns"]}
    values = {name: each for name, each in offer["values"].items() if name in counted}
    return {**{name: offer[name] for name in own}, "columns": columns, "values": values}


def is_stale(lake: Lake) -> bool:
    """Whether files of the lake are gone, or newer than its index."""
    made = lake.index_path.stat().st_mtime
    listed = {path for table in lake.tables for path in table.source.paths}
    if not all(path.exists() for path in listed):
        return True
    there = (p for place in map(Path, lake.places) if place.is_dir() for p in place.rglob("*"))
    files = (p for p in there if p.is_file() and extension(p) in EXTENSIONS)
    return any(p.stat().st_mtime > made + 1 for p in files if not p.name.startswith("."))


def answer(ask: Ask, answers: list[dict[str, Any]]) -> str:
    """Write the answers of a person into the mapping file, and return its text."""
    lake, made = indexed_lake(ask), planned(ask)
    text: str = lake.answer(made, answers, base=ask.path, **keywords_among(ask.options, SEARCH))
    return text


def index(ask: Ask) -> dict[str, Any]:
    """Read the tables of a lake and describe them in its index."""
    lake = open_lake(ask)
    done = lake.refresh()
    return {
        "tables": len(lake.tables),
        "rows": sum(table.rows for table in lake.tables),
        **{name: getattr(done, name) for name in ("new", "changed", "gone", "same")},
    }


def repair(ask: Ask, output: str) -> dict[str, Any]:
    """Plan, take the rows, write the repaired table and verify it; write its report, too."""
    from equipoise.api.repairs import repair as work
    from equipoise.reports.pages import write_page

    given = {**ask.table, **keywords_among(ask.options, OPTIONS)}
    if made_before(ask):
        given = {"plan": planned(ask), **keywords_among(ask.options, (*SEARCH, *LIMITS))}
    result = work(
        ask.path, open_lake(ask), output, engine=ask.engine, progress=ask.progress, **given
    )
    write_page(result, f"{output}.html", source=ask.data)
    told = result.to_dict()
    acquired = told["acquired"]
    names = {"table": "", "ledger": ".ledger.parquet", "plan": ".plan.json", "report": ".html"}
    return {
        "reached": told["reached"],
        "sentences": told["sentences"],
        "added": acquired["added"],
        "removed": acquired["removed"],
        "cost": acquired["cost"],
        "sources": acquired["sources"],
        "cells": acquired["cells"][:_CELLS],
        "shift": acquired["shift"],
        "max_abs_ub_before": acquired.get("max_abs_ub_before"),
        "max_abs_ub_after": acquired.get("max_abs_ub_after"),
        "verification": told["verification"],
        "files": {
            k: Path(f"{output}{end}").name
            for k, end in names.items()
            if Path(f"{output}{end}").exists()
        },
        "data": f"results/{Path(output).name}",
    }


def twin(ask: Ask, _: dict[str, Any]) -> list[Twin]:
    """The repair, after the plan if that is drawn by hand."""
    if not ask.view.get("lake"):
        return []
    words = (outside_name(ask.data), outside_name(ask.view["lake"]))
    more: dict[str, Any] = {"words": words, "flags": ("-o", "repaired.parquet")}
    keywords: dict[str, Any] = {"output": "repaired.parquet"}
    if not made_before(ask):
        return [plain_twin(ask, "repair", "repair", OPTIONS, keywords=keywords, **more)]
    planned = plan_room.plan_twin(
        ask, ask.options, ask.view["move"], flags=("-o", "plan.json"), result="plan"
    )
    more["flags"] = ("--plan", "plan.json", *more["flags"])
    more["given"] = keywords_among({**ask.options, **outside_files(ask)}, (*SEARCH, *LIMITS))
    keywords["plan"] = Expression("plan")
    return [planned, plain_twin(ask, "repair", "repair", OPTIONS, keywords=keywords, **more)]


ROOM = Room(
    name="lake",
    title="Lake",
    about="Where the rows could come from, and what the tables there mean.",
    query=lake_query(),
    options=OPTIONS,
    compute=compute,
    slow=True,
    twin=twin,
)
