"""Evaluations of models, as long work."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from equipoise.web import tasks
from equipoise.web.desk import Desk
from equipoise.web.places import safe_name
from equipoise.web.rooms.compare import EVALUATION
from equipoise.web.routes.exchange import Started, declare_query, require_writing, user_of
from equipoise.web.schema import keywords_of


def make_router(desk: Desk) -> APIRouter:
    """Make the routes of evaluations."""
    router = APIRouter()

    def evaluate(request: Request, query: Any) -> Started:
        """Train and test models on the table, or on it and a second one."""
        require_writing(desk.settings)
        user = user_of(request)
        ask = desk.ask(EVALUATION, query, user)
        options = keywords_of(query, EVALUATION.options)
        if query.other:
            options["after"] = ask.places.resolve(query.other)
        name = f"{desk.new_name()}-{safe_name(ask.data).partition('.')[0]}-evaluation.html"
        output = str(ask.places.result(name))
        job = desk.jobs.start(
            "evaluation", f"evaluation of {ask.data}", tasks.evaluate, ask, options, output,
            user=user, places=ask.places,
        )  # fmt: skip
        return Started(job=job.id)

    declare_query(evaluate, EVALUATION)
    router.post("/api/evaluations", summary="Evaluate models", status_code=202)(evaluate)
    return router
