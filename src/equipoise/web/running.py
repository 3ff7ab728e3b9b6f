"""The server itself: the application on a socket, until it is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable

import uvicorn

from equipoise.web.application import make_application
from equipoise.web.crew import Crew
from equipoise.web.settings import ExplorerSettings


def run(
    settings: ExplorerSettings,
    crew: Crew,
    hosts: tuple[str, ...],
    listening: socket.socket,
    ready: Callable[[], None],
) -> None:
    """Answer requests on a socket until it is interrupted.

    Parameters
    ----------
    settings, crew, hosts
        What the application is made of.
    listening
        Where requests arrive.
    ready
        Called when the server answers.
    """
    # What a browser sent is no news to who started the explorer.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        make_application(settings, hosts=hosts, crew=crew),
        log_level="critical" if "EQUIPOISE_DEBUG" not in os.environ else "info",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=3,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64_000,
    )
    # Ctrl-C is how the explorer is ended; the server has closed everything when it gets here.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_Announcing(config, ready).serve(sockets=[listening]))


class _Announcing(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()
