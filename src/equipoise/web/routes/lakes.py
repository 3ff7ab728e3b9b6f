"""What the room of the lake does: index, answers, repair."""

from __future__ import annotations

import io
from typing import Annotated, Any

import pydantic
from fastapi import APIRouter, Request
from pydantic import Field

from equipoise.web import tasks
from equipoise.web.desk import Desk
from equipoise.web.places import RESULTS, safe_name
from equipoise.web.rooms.lake import ROOM
from equipoise.web.routes.exchange import Started, declare_query, require_writing, user_of, work_of

_Text = Annotated[str, Field(max_length=4000)]


class MappingAnswer(pydantic.BaseModel):
    """One answer of a person about a table: to a column, to a value, or to the table itself."""

    model_config = pydantic.ConfigDict(extra="forbid")

    table: _Text
    column: _Text | None = None
    source: _Text | None = None
    value: _Text | None = None
    means: _Text | None = None
    use: bool | None = None
    take_back: bool | None = None

    def given(self) -> dict[str, Any]:
        """What was said; a source or a meaning of null says that there is none."""
        said = self.model_dump(exclude_unset=True)
        return {k: v for k, v in said.items() if v is not None or k in ("source", "means")}


class MappingAnswers(pydantic.BaseModel):
    """MappingAnswers of a person."""

    answers: Annotated[list[MappingAnswer], Field(max_length=5000)]


class WrittenMapping(pydantic.BaseModel):
    """The name of a mapping file, and its text."""

    mapping: str
    text: str


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of lakes."""
    router = APIRouter()

    def index(request: Request, query: Any) -> Started:
        """Read the tables of the lake, and describe them in its index."""
        require_writing(desk.settings)
        user = user_of(request)
        ask = desk.ask(ROOM, query, user)
        job = desk.jobs.start(
            "index", f"index of {query.lake}", tasks.lake_index, ask, user=user, places=ask.places
        )
        return Started(job=job.id)

    def answer(request: Request, query: Any, body: MappingAnswers) -> WrittenMapping:
        """Write answers into the mapping file that the command line uses."""
        require_writing(desk.settings)
        user, work = user_of(request), work_of(request)
        ask = desk.with_counts(ROOM, desk.ask(ROOM, query, user), user, work)
        said = [each.given() for each in body.answers]
        text: str = desk.crew.run(tasks.lake_answer, ask, said, user=user, work=work)
        written, most = io.BytesIO(text.encode()), desk.settings.upload_limit
        name = ask.places.write(RESULTS, "mapping.toml", written, most=most)
        return WrittenMapping(mapping=name, text=text)

    def repair(request: Request, query: Any) -> Started:
        """Plan, take the rows, write the repaired table, and verify it."""
        require_writing(desk.settings)
        user = user_of(request)
        ask = desk.with_counts(ROOM, desk.ask(ROOM, query, user), user, work_of(request))
        name = f"{desk.new_name()}-{safe_name(ask.data).partition('.')[0]}-repaired.parquet"
        output = str(ask.places.result(name))
        job = desk.jobs.start(
            "repair",
            f"repair of {ask.data}",
            tasks.lake_repair,
            ask,
            output,
            user=user,
            places=ask.places,
        )
        return Started(job=job.id)

    for route, path, summary in (
        (index, "/api/lake/index", "Index a lake"),
        (answer, "/api/lake/answers", "Say what columns and values mean"),
        (repair, "/api/lake/repair", "Repair the table"),
    ):
        declare_query(route, ROOM)
        status = 200 if route is answer else 202
        router.post(path, summary=summary, status_code=status)(route)
    return router
