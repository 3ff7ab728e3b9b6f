"""Everything that can be downloaded: what a room shows, and the files of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from equipoise.web import tasks
from equipoise.web.desk import Desk
from equipoise.web.places import RESULTS, safe_name
from equipoise.web.rooms import audit, bias, monitor, plan
from equipoise.web.rooms import map as map_room
from equipoise.web.rooms.room import Room
from equipoise.web.routes.exchange import declare_query, user_of, work_of

KINDS = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of downloads."""
    router = APIRouter()
    for room in (bias.ROOM, plan.ROOM, map_room.ROOM, audit.ROOM, monitor.ROOM):
        for kind in room.files:
            path = f"/api/{room.name}/file.{kind}"
            router.get(path, summary=f"{room.title} as {kind.upper()}", response_class=Response)(
                _download(desk, room, kind)
            )

    @router.get("/api/results/{name}", summary="A file of a result", response_class=FileResponse)
    def result(request: Request, name: str) -> FileResponse:
        places = desk.places(user_of(request))
        if safe_name(name) != name or not (places.home / RESULTS / name).is_file():
            raise HTTPException(404, "there is no such result.")
        return FileResponse(places.file(f"{RESULTS}/{name}"), filename=name)

    return router


def _download(desk: Desk, room: Room, kind: str) -> Callable[..., Response]:
    def download(request: Request, query: Any) -> Response:
        user, work = user_of(request), work_of(request)
        ask = desk.with_counts(room, desk.ask(room, query, user), user, work)
        body: bytes = desk.crew.run(tasks.file, room.name, ask, kind, user=user, work=work)
        name = f"{safe_name(ask.data).partition('.')[0]}-{room.name}.{kind}"
        return Response(body, media_type=KINDS[kind], headers=_attached(name))

    declare_query(download, room)
    return download


def _attached(name: str) -> dict[str, Any]:
    return {"content-disposition": f'attachment; filename="{safe_name(name)}"'}
