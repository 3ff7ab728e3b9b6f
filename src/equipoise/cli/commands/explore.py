"""``equipoise explore``."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path

import click

from equipoise.cli import options, terminal
from equipoise.cli.command import Command
from equipoise.errors import InputError, MissingDependency


@click.command(
    "explore",
    cls=Command,
    epilog="""\b
Examples:
  equipoise explore                              # the bundled tables
  equipoise explore people.csv ./lake            # your table, and a folder of tables with more rows
  equipoise explore --root /srv/tables --no-open --port 8765
  equipoise explore people.csv --read-only --users 5
  equipoise explore bias.sqlite                  # a store of equipoise monitor: its history and alerts

The explorer prints its address, http://127.0.0.1:PORT/?token=…, and runs until Ctrl-C. Only who has
the token can open it. JSON is below /api, described by /api/openapi.json. The environment variable
EQUIPOISE_TOKEN sets the token, or several with commas between them.""",
)
@click.argument("table", required=False)
@click.argument("lake", required=False)
@options.option(
    "--root",
    type=click.Path(),
    metavar="FOLDER",
    group="Data",
    common=True,
    help="Folder below which files can be opened. By default the current one.",
)
@options.option(
    "--no-open",
    is_flag=True,
    common=True,
    group="Running",
    help="Do not open a browser; only print the address.",
)
@options.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    common=True,
    group="Running",
    help="Port to listen on; 0 takes any that is free.",
)
@options.option(
    "--read-only",
    is_flag=True,
    common=True,
    group="Running",
    help="Leave out everything that writes: uploads, indexing, and repairs.",
)
@options.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    group="Running",
    help="Address to listen on. Any other than the default lets other machines connect, without "
    "encryption.",
)
@options.option(
    "--users",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    group="Running",
    help="Number of users. Each gets an address of their own, and does not see the others' uploads "
    "and work.",
)
@options.option(
    "--home",
    type=click.Path(),
    metavar="FOLDER",
    group="Running",
    help="Folder of uploads and results. By default in the user's cache.",
)
@options.option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    group="Running",
    help="Time limit of what a page asks for. Repairs may take longer, and can be cancelled.",
)
@options.option(
    "--memory",
    "memory",
    default="4GB",
    show_default=True,
    metavar="SIZE",
    group="Running",
    help="Memory that one worker process may use.",
)
@options.option(
    "--max-upload",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    metavar="MB",
    group="Running",
    help="Largest upload.",
)
@options.quiet
def command(
    table: str | None,
    lake: str | None,
    root: str | None,
    no_open: bool,
    port: int,
    read_only: bool,
    host: str,
    users: int,
    home: str | None,
    time_limit: float,
    memory: str,
    max_upload: int,
    quiet: bool,
) -> None:
    """Open the explorer in the browser: measure, plan, find and compare with the mouse.

    TABLE is a file, a folder of parts, or the name of a bundled table; LAKE is a folder of tables.
    A store of equipoise monitor in the place of TABLE opens the room that shows its history.
    """
    require_web()
    from equipoise import datasets
    from equipoise.api.measurement import memory_size
    from equipoise.monitoring.store.files import is_store
    from equipoise.web.server import LOOPBACK, relative_to, serve
    from equipoise.web.settings import MEGABYTE, ExplorerSettings, default_home, new_token

    bundled = table in datasets.names()
    store = table if table is not None and not bundled and is_store(Path(table)) else None
    folder = Path(root) if root is not None else _common_root(table, lake)
    settings = ExplorerSettings(
        root=folder.absolute(),
        home=Path(home).absolute() if home else default_home(folder.absolute()),
        tokens=_tokens(users) or tuple(new_token() for _ in range(users)),
        data=table if bundled else relative_to(folder, _existing(None if store else table)),
        store=relative_to(folder, store),
        lake=relative_to(folder, _existing(lake)),
        read_only=read_only,
        time_limit=time_limit,
        memory=memory_size(memory),
        upload_limit=max_upload * MEGABYTE,
    )
    if host not in LOOPBACK:
        terminal.say(
            f"others can reach this explorer at {host}, and what they send is not encrypted; put a "
            "proxy with TLS before it.",
            quiet=quiet,
        )
    serve(
        settings,
        host=host,
        port=port,
        open_browser=not no_open,
        say=_say(settings.root, quiet=quiet),
    )


def require_web() -> None:
    """Raise an error if the extra is not installed."""
    # Without importing them, which takes longer than starting the processes that need others.
    for package in ("fastapi", "uvicorn", "jinja2", "python_multipart", "vl_convert"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependency(package, extra="web", purpose="the explorer")


def _say(root: Path, *, quiet: bool) -> Callable[[str], None]:
    first = True

    def say(address: str) -> None:
        nonlocal first
        click.echo(address)
        if first:
            terminal.say(
                f"files below {root} can be opened; the explorer runs until Ctrl-C.", quiet=quiet
            )
        first = False

    return say


def _tokens(users: int) -> tuple[str, ...]:
    given = tuple(filter(None, os.environ.get("EQUIPOISE_TOKEN", "").split(",")))
    if given and users not in (1, len(given)):
        raise InputError(
            f"EQUIPOISE_TOKEN has {len(given)} tokens for {users} users; give one for each."
        )
    if not all(re.fullmatch(r"[A-Za-z0-9._~-]{16,}", token) for token in given):
        raise InputError(
            "a token in EQUIPOISE_TOKEN must have at least 16 letters, digits or characters of .-_~, "
            "so that it can stand in an address."
        )
    return given


def _existing(name: str | None) -> str | None:
    if name is not None and not Path(name.partition("::")[0]).exists():
        raise InputError(
            f"{name} is neither a file or folder here nor the name of a bundled table; see: "
            "equipoise data list."
        )
    return name


def _common_root(table: str | None, lake: str | None) -> Path:
    """The folder that holds what was named: the current one, or one above all of them."""
    from equipoise import datasets

    named = [n for n in (table, lake) if n is not None and n not in datasets.names()]
    paths = [Path(n.partition("::")[0]).resolve() for n in named]
    here = Path.cwd().resolve()
    if all(path.is_relative_to(here) for path in paths):
        return here
    folders = [path if path.is_dir() else path.parent for path in paths]
    common = Path(os.path.commonpath([str(folder) for folder in folders]))
    # Everything below the root can be opened, so it must not become the whole disk by accident.
    if common == Path(common.anchor) or Path.home().resolve().is_relative_to(common):
        raise InputError(
            f"{' and '.join(named)} share no folder but {common}; name the folder below which files "
            "can be opened with --root."
        )
    return common
