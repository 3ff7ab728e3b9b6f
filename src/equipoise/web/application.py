"""The application: its rooms, their JSON twins, and what it answers to errors."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib import resources
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from equipoise.errors import EquipoiseError
from equipoise.version import __version__
from equipoise.web import charts
from equipoise.web.access import Application, Guard
from equipoise.web.crew import Crew, TooMuchWork
from equipoise.web.desk import Desk, NothingChosen
from equipoise.web.forms import fieldsets
from equipoise.web.pages import address, render
from equipoise.web.places import EXAMPLE
from equipoise.web.rooms import audit, bias, compare, lake, monitor, plan, table
from equipoise.web.rooms import map as map_room
from equipoise.web.rooms.room import SHARED, TABLE_OPTIONS, Room
from equipoise.web.routes import downloads, evaluations, files, jobs, lakes
from equipoise.web.routes.exchange import Error, declare_query, user_of, work_of
from equipoise.web.schema import as_pairs
from equipoise.web.settings import ExplorerSettings
from equipoise.workers import Cancelled

_LOG = logging.getLogger(__name__)

ROOMS: tuple[Room, ...] = (
    table.ROOM,
    bias.ROOM,
    plan.ROOM,
    map_room.ROOM,
    lake.ROOM,
    compare.ROOM,
    monitor.ROOM,
)
"""The rooms that have pages, in the order of the method."""
TWINS = (*ROOMS, plan.FRONTIER, audit.ROOM)
"""Everything that has an address below ``/api``."""

_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": Error, "description": text}
    for code, text in {
        400: "The request cannot be read.",
        401: "No valid token.",
        403: "Refused.",
        404: "There is no such thing.",
        409: "The work was cancelled.",
        413: "The body is too large.",
        422: "The request cannot be met; the error says why.",
        429: "Too much of this user's work is under way.",
    }.items()
}


def make_application(
    settings: ExplorerSettings, *, hosts: tuple[str, ...], crew: Crew | None = None
) -> Application:
    """Make the application that a server runs.

    Parameters
    ----------
    settings
        What the explorer is started with.
    hosts
        Names by which the server may be called.
    crew
        The processes that work for it, if they were started already.
    """
    crew = Crew(settings) if crew is None else crew
    desk = Desk(settings, crew)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # A thread waits for each request that is worked on, and users may have several.
        threads = anyio.to_thread.current_default_thread_limiter()
        threads.total_tokens = max(threads.total_tokens, 10 * len(settings.tokens))
        desk.prepare()
        yield
        desk.close()

    # The documentation page of FastAPI needs a network; the document itself is enough.
    app = FastAPI(
        title="Equipoise",
        version=__version__,
        description="Measure bias in tables, plan repairs, and find the rows. Every room of the "
        "explorer has a twin here, with the same parameters as its address.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
        responses=_ERRORS,
    )
    app.state.desk = desk
    for room in TWINS:
        _add_twin(app, desk, room)
    for room in (*ROOMS, audit.ROOM):
        _add_page(app, desk, room)
    app.include_router(downloads.make_router(desk))
    app.include_router(files.make_router(desk))
    app.include_router(jobs.make_router(desk))
    app.include_router(lakes.make_router(desk))
    app.include_router(evaluations.make_router(desk))
    _add_start(app, settings)
    _add_charts(app, desk)
    static = resources.files("equipoise.web").joinpath("static")
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    _add_errors(app, desk)
    return Guard(
        app,
        tokens=settings.tokens,
        hosts=hosts,
        refuse=_refusal_page,
        upload_limit=settings.upload_limit,
        abandon=desk.crew.cancel,
    )


def _add_charts(app: FastAPI, desk: Desk) -> None:
    @app.get("/static/vega.js", include_in_schema=False)
    def vega() -> Response:
        """The library that draws charts, as vl-convert carries it."""
        path = charts.bundle_path()
        if not path.exists():
            desk.crew.run(charts.write_bundle, user="", time_limit=60)
        return FileResponse(
            path, media_type="text/javascript", headers={"cache-control": "max-age=86400"}
        )


def _add_start(app: FastAPI, settings: ExplorerSettings) -> None:
    @app.get("/", include_in_schema=False)
    def start() -> Response:
        """Lead to the table or the store that the explorer was started with."""
        if settings.store is not None:
            return RedirectResponse(address("/monitor", [("store", settings.store)]), 303)
        data = settings.data or f"{EXAMPLE}/adult.parquet"
        return RedirectResponse(address("/table", [("data", data)]), status_code=303)


def _add_twin(app: FastAPI, desk: Desk, room: Room) -> None:
    def twin(request: Request, query: Any) -> Response:
        body = desk.answer(room, query, user_of(request), form="json", work=work_of(request))
        return Response(body, media_type="application/json")

    twin.__doc__ = room.about
    declare_query(twin, room)
    app.get(f"/api/{room.name}", summary=room.title, name=f"{room.name}-twin")(twin)


def _add_page(app: FastAPI, desk: Desk, room: Room) -> None:
    def page(request: Request, query: Any) -> Response:
        return HTMLResponse(render_room(desk, room, query, user_of(request)))

    def part(request: Request, query: Any) -> Response:
        body = desk.answer(room, query, user_of(request), form="part", work=work_of(request))
        return HTMLResponse(body)

    for each in (page, part):
        declare_query(each, room)
    app.get(f"/{room.name}", include_in_schema=False, name=room.name)(page)
    app.get(f"/{room.name}/part", include_in_schema=False, name=f"{room.name}-part")(part)


def render_room(desk: Desk, room: Room, query: Any, user: str) -> str:
    """The page of a room, without what has to be computed for it."""
    given = query.model_dump()
    common, others = fieldsets(room.options, given)
    _, reading = fieldsets(TABLE_OPTIONS, given, but=("sensitive_features", "label"))
    pairs = as_pairs(query)
    shared = [(k, v) for k, v in pairs if k in SHARED]
    return render(
        f"{room.name}.html",
        room=room,
        rooms=ROOMS,
        query=given,
        pairs=pairs,
        shared=shared,
        shared_names=SHARED,
        common=common,
        fieldsets=others,
        reading=reading,
        files=desk.places(user).listed(),
        datasets=_datasets(),
        read_only=desk.settings.read_only,
        lake=_lake_of(desk, given),
        folders=desk.places(user).folders_listed(),
        stores=desk.places(user).stores_listed() if room.source == "store" else [],
        upload_limit=desk.settings.upload_limit,
        upload_kinds=files.UPLOADED,
        ignored=plan.NOT_VARIED,
    )


def _lake_of(desk: Desk, given: Mapping[str, Any]) -> str | None:
    """The lake that links to the room of the lake name."""
    if str(given.get("data") or "").startswith(f"{EXAMPLE}/"):
        return f"{EXAMPLE}/lake"
    return desk.settings.lake


@functools.cache
def _datasets() -> list[dict[str, str]]:
    from equipoise import datasets

    return [
        {"name": name, "title": datasets.card(name).title}
        for name in datasets.names()
        if datasets.is_available(name)
    ]


# --- errors ---------------------------------------------------------------------------------------


def _add_errors(app: FastAPI, desk: Desk) -> None:
    def handler(
        status: Callable[[Any], int], text: Callable[[Any], str]
    ) -> Callable[[Request, Exception], Awaitable[Response]]:
        async def handle(request: Request, error: Exception) -> Response:
            said = text(error)
            if "user" in request.scope.get("state", {}):
                said = desk.places(user_of(request)).without_paths(said)
            return _problem(request, status(error), said, error)

        return handle

    app.exception_handler(Cancelled)(handler(lambda _: 409, str))
    app.exception_handler(TooMuchWork)(handler(lambda _: 429, str))
    app.exception_handler(EquipoiseError)(handler(lambda _: 422, str))
    app.exception_handler(MemoryError)(handler(lambda _: 422, lambda _: _MEMORY))
    app.exception_handler(RequestValidationError)(handler(lambda _: 422, _invalid))
    app.exception_handler(HTTPException)(
        handler(lambda error: error.status_code, lambda error: str(error.detail))
    )
    app.exception_handler(Exception)(handler(lambda _: 500, _internal))


_MEMORY = "this needs more memory than allowed; ask for fewer groups or a smaller table."


def _invalid(error: RequestValidationError) -> str:
    told = error.errors()[0]
    place = " ".join(str(part) for part in told["loc"][1:]) or "the request"
    return f"`{place}` is not valid: {told['msg']}."


def _internal(error: Exception) -> str:
    # The text of an unexpected error may hold paths or values, so only its kind is told; the rest is
    # for who reads what the program prints.
    _LOG.error("an unexpected error", exc_info=error)
    return f"an unexpected error ({type(error).__name__}); please report it."


def _problem(request: Request, status: int, text: str, error: Exception) -> Response:
    path = request.url.path
    if path.startswith("/api"):
        return JSONResponse({"error": text}, status)
    if path.endswith("/part"):
        chosen = not isinstance(error, NothingChosen)
        return HTMLResponse(render("parts/problem.html", text=text, chosen=chosen), status)
    return HTMLResponse(render("problem.html", title="This cannot be shown", text=text), status)


def _refusal_page(title: str, text: str) -> str:
    return render("problem.html", title=title, text=text)
