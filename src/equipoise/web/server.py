"""Starting the explorer: a socket, an address with a token, and a browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from equipoise.errors import InputError
from equipoise.web.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Run the explorer until it is interrupted.

    Parameters
    ----------
    settings
        What it is started with.
    host, port
        Where it listens. The port 0 takes any that is free.
    open_browser
        Whether to open the address in a browser.
    say
        Called with the address of each user, when the explorer is ready.
    """
    listening = _listen(host, port)
    place = listening.getsockname()
    hosts = LOOPBACK if host in LOOPBACK else (*LOOPBACK, host.lower(), *_own_names(host))
    from equipoise.web.application import make_application

    application = make_application(settings, hosts=hosts)
    config = uvicorn.Config(
        application,
        log_level="critical" if "EQUIPOISE_DEBUG" not in os.environ else "info",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=3,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64_000,
    )
    shown = f"[{host}]" if ":" in host else host
    addresses = [f"http://{shown}:{place[1]}/?token={token}" for token in settings.tokens]
    with contextlib.closing(listening):
        server = _Announcing(config, lambda: _announce(addresses, say, open_browser=open_browser))
        with contextlib.suppress(KeyboardInterrupt):  # which is how it is meant to end
            asyncio.run(server.serve(sockets=[listening]))


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


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise InputError(
            f"the explorer cannot listen on {host}:{port} ({error}); choose another `port`, or 0 for "
            "any that is free."
        ) from None
    return listening


def _own_names(host: str) -> tuple[str, ...]:
    """Names of this machine, for an explorer that listens to others."""
    if host not in ("0.0.0.0", "::"):  # noqa: S104  what the user asked for
        return ()
    names = {socket.gethostname().lower(), socket.getfqdn().lower()}
    with contextlib.suppress(OSError):
        found = socket.getaddrinfo(socket.gethostname(), None)
        names |= {str(each[4][0]).lower() for each in found}
    return tuple(names)


def _announce(addresses: list[str], say: Callable[[str], None], *, open_browser: bool) -> None:
    for each in addresses:
        say(each)
    if open_browser:
        threading.Thread(target=webbrowser.open, args=(addresses[0],), daemon=True).start()


def relative_to(root: Path, name: str | None) -> str | None:
    """The name of a file relative to the root, for the address of a page."""
    if name is None:
        return None
    path = Path(name.partition("::")[0]).absolute()
    table = name.partition("::")[1] + name.partition("::")[2]
    return path.resolve().relative_to(root.resolve()).as_posix() + table
