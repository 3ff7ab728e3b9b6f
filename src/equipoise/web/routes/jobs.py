"""Long work: what it is doing, and cancelling it.

These routes do not wait for a thread: all threads may be waiting for work that is to be cancelled.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse

from equipoise.web.crew import Work
from equipoise.web.desk import Desk
from equipoise.web.pages import address, render
from equipoise.web.rooms.room import SHARED
from equipoise.web.routes.exchange import user_of


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of work and of jobs."""
    router = APIRouter()

    @router.get("/api/work/{name}", summary="How far a request is")
    async def progress(request: Request, name: str) -> dict[str, Any]:
        """Progress of a request that named itself in the header X-Work."""
        # Work that was answered at once, or whose end is forgotten, is done.
        found = desk.crew.work(user_of(request), name)
        return {**Work().to_dict(), "done": True} if found is None else found.to_dict()

    @router.delete("/api/work/{name}", summary="Cancel a request")
    async def cancel(request: Request, name: str) -> dict[str, bool]:
        return {"cancelled": desk.crew.cancel(user_of(request), name)}

    @router.get("/api/jobs/{job}", summary="A job")
    async def job(request: Request, job: str) -> dict[str, Any]:
        user = user_of(request)
        found = desk.jobs.find(user, job, desk.places(user))
        if found is None:
            raise HTTPException(404, "there is no such job.")
        return found

    @router.get("/jobs/{job}/part", include_in_schema=False)
    def part(request: Request, job: str) -> HTMLResponse:
        user = user_of(request)
        found = desk.jobs.find(user, job, desk.places(user))
        if found is None:
            raise HTTPException(404, "there is no such job.")
        kept = [(k, v) for k, v in request.query_params.multi_items() if k in SHARED]
        other = (found["result"] or {}).get("data")
        compare = address("/compare", kept, other=other)
        return HTMLResponse(render("parts/job.html", job=found, compare=compare))

    @router.delete("/api/jobs/{job}", summary="Cancel a job")
    async def stop(request: Request, job: str) -> dict[str, bool]:
        return {"cancelled": desk.jobs.cancel(user_of(request), job)}

    return router
