"""Tables and stores that can be opened, and uploads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pydantic
from fastapi import APIRouter, File, Request, UploadFile

from equipoise.engines.kinds import EXTENSIONS, extension
from equipoise.errors import InputError
from equipoise.web import tasks
from equipoise.web.desk import Desk
from equipoise.web.places import UPLOADS
from equipoise.web.routes.exchange import require_writing, user_of

_KINDS = ("csv", "parquet", "json", "excel")
"""Kinds of files that can be uploaded; a database could hold more than a table."""
UPLOADED = (*(e for e, kind in EXTENSIONS.items() if kind in _KINDS), ".gz")
"""Their extensions."""


class Files(pydantic.BaseModel):
    """Tables and stores of batches that can be opened."""

    datasets: list[str]
    files: list[str]
    stores: list[str]


class Uploaded(pydantic.BaseModel):
    """The name of an uploaded table."""

    data: str


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of files."""
    router = APIRouter()

    @router.get("/api/files", summary="Tables and stores that can be opened")
    def listed(request: Request) -> Files:
        from equipoise import datasets

        there = [name for name in datasets.names() if datasets.is_available(name)]
        places = desk.places(user_of(request))
        return Files(datasets=there, files=places.listed(), stores=places.stores_listed())

    @router.post("/api/uploads", summary="Upload a table", status_code=201)
    def upload(request: Request, file: Annotated[UploadFile, File()]) -> Uploaded:
        require_writing(desk.settings)
        user, name = user_of(request), file.filename or "table.csv"
        kind = EXTENSIONS.get(extension(Path(name)))
        if kind not in _KINDS:
            raise InputError(f"{name} cannot be opened; upload one of {', '.join(UPLOADED)}.")
        places = desk.places(user)
        stored = places.write(UPLOADS, name, file.file, most=desk.settings.upload_limit)
        try:
            memory = desk.settings.memory
            desk.crew.run(tasks.open_table, places, stored, memory, user=user, time_limit=60)
        except BaseException:
            (places.home / stored).unlink(missing_ok=True)
            raise
        return Uploaded(data=stored)

    @router.delete("/api/uploads", summary="Delete all uploads and results of this user")
    def forget(request: Request) -> dict[str, Any]:
        require_writing(desk.settings)
        user = user_of(request)
        desk.jobs.forget(user)
        return {"deleted": desk.places(user).forget()}

    return router
