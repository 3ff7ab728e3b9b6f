"""Starting the explorer: a socket, an address with a token, and a browser."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from equipoise.errors import InputError
from equipoise.web.crew import Crew
from equipoise.web.settings import ExplorerSettings
from equipoise.web.warming import warm, warm_more

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    settings: ExplorerSettings,
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
    # The processes load what they need while this one loads the rest.
    crew = Crew(settings)
    crew.start(warm, warm_more)
    try:
        from equipoise.web.running import run

        shown = f"[{host}]" if ":" in host else host
        addresses = [f"http://{shown}:{place[1]}/?token={token}" for token in settings.tokens]
        ready = functools.partial(_announce, addresses, say, open_browser=open_browser)
        run(settings, crew, hosts, listening, ready)
    finally:
        crew.close()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends answers at once, and not after the client's delayed
    # acknowledgement of their headers, which takes 40 milliseconds.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(addresses[0],), daemon=True).start()


def relative_to(root: Path, name: str | None) -> str | None:
    """The name of a file relative to the root, for the address of a page."""
    if name is None:
        return None
    file, separator, table = name.partition("::")
    path = Path(file).absolute().resolve()
    if not path.is_relative_to(root.resolve()):
        raise InputError(
            f"{file} is not below the root {root}; name a folder above it as the root."
        )
    return path.relative_to(root.resolve()).as_posix() + separator + table
