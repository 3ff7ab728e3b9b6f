"""What all routes share: whose request it is, and the shape of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pydantic
from fastapi import Query, Request

from equipoise.errors import InputError
from equipoise.web.rooms.room import Room
from equipoise.web.settings import ExplorerSettings


class Error(pydantic.BaseModel):
    """What is answered if a request cannot be met."""

    error: str


class Started(pydantic.BaseModel):
    """The job that was started; ``/api/jobs/JOB`` tells how far it is."""

    job: str


class ReadOnly(InputError):
    """The explorer was started so that nothing is written."""


def user_of(request: Request) -> str:
    """Whose request it is."""
    user: str = request.scope["state"]["user"]
    return user


def work_of(request: Request) -> str:
    """The name that a page gives to the work it asks for, to follow and to cancel it, or any."""
    work: str = request.scope["state"]["work"]
    return work


def declare_query(route: Callable[..., Any], room: Room) -> None:
    """Declare that the parameter ``query`` of a route is the address of a room."""
    route.__annotations__["query"] = Annotated[room.query, Query()]


def require_writing(settings: ExplorerSettings) -> None:
    """Refuse to write if the explorer was started to read only."""
    if settings.read_only:
        raise ReadOnly("the explorer was started to read only, so nothing can be written.")
