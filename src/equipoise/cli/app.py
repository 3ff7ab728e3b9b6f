"""The ``equipoise`` program: its commands, its exit codes, and one sentence for each error."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from equipoise.cli import config, terminal
from equipoise.errors import EquipoiseError, did_you_mean
from equipoise.plain import terminal_width
from equipoise.version import __version__

COMMANDS: Mapping[str, str] = {
    "measure": "Measure the Uniform Bias of every group and label.",
    "check": "Check a table against limits.",
    "report": "Fill in a form of an audit, such as the tables of Local Law 144.",
    "diff": "Compare the biases of two tables.",
    "plan": "Plan the smallest repair, with a certificate of its effect.",
    "compare": "Put plans for the same table side by side.",
    "frontier": "Show the lowest cost of a repair at each tolerance.",
    "map": "Map a bias over two ways to add or delete rows.",
    "apply": "Carry out a plan with real rows from a pool.",
    "lake": "Index, search and map a lake of tables, or replay a ledger.",
    "find": "Rank the tables of a lake by the needed rows they offer.",
    "acquire": "Carry out a plan with real rows from a lake.",
    "repair": "Plan, find, acquire and verify in one command.",
    "verify": "Check a repair against its base, plan and ledger.",
    "monitor": "Watch bias as data arrives: history, alerts, plans.",
    "explore": "Open the explorer in the browser.",
    "evaluate": "Train and test models before and after a repair.",
    "missing": "Compare methods of treating missing values.",
    "data": "List, show and fetch data sets.",
    "engines": "Show what each engine can read and write.",
    "demo": "Run a complete repair on bundled data.",
}


class Commands(click.Group):
    """Loads the module of a command only when it is used, so that the program starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"equipoise.cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest one."""
        if args and args[0] not in COMMANDS:
            ctx.fail(
                f"there is no command {args[0]!r}; there are: {', '.join(COMMANDS)}."
                f"{did_you_mean(args[0], COMMANDS)}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  equipoise measure people.csv --sensitive sex,race --label income
  equipoise check people.csv --sensitive sex,race --label income --max-abs-ub 0.1
  equipoise measure adult --sensitive sex --label income -o adult.html
  equipoise repair people.csv ./lake --sensitive sex,race --label income -o repaired.parquet

Exit codes: 0 success, 1 a check failed or a plan falls short, 2 bad usage or input, 3 not enough
evidence, 130 interrupted.""",
)
@click.version_option(__version__, message="equipoise %(version)s", help="Print the version.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(),
    help="File of defaults and rules. By default equipoise.toml, or [tool.equipoise] in "
    "pyproject.toml, in this folder or one above.",
)
@click.pass_context
def cli(ctx: click.Context, config_file: str | None) -> None:
    """Measure bias in tabular data, plan its repair, and find the real rows that carry it out."""
    terminal_width.set(terminal.width())
    # Only the table of the running command is read: checking others would load their modules.
    ctx.obj = config.load(config_file, COMMANDS)
    name = ctx.invoked_subcommand
    command = cli.get_command(ctx, name) if name is not None and name in ctx.obj else None
    if name is not None and command is not None:
        ctx.default_map = {name: config.defaults(ctx.obj[name], name, command)}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code. An error is one sentence on stderr."""
    _make_ready()
    try:
        # Not standalone: click would print its own errors, and exit with its own codes.
        outcome: Any = cli.main(arguments, prog_name="equipoise", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort) as error:
        own = error.__cause__ if isinstance(error, click.Abort) else error  # as click passes it on
        done = str(own) if isinstance(own, KeyboardInterrupt) else ""
        return _fail(f"interrupted; {done or 'nothing was written'}.", 130)
    except EquipoiseError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError:
        return _fail("out of memory; measure fewer groups with --max-order 2 or --min-count 30.")
    except BrokenPipeError:
        # The reader of our output has closed it; Python would fail when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        place = error.filename or "the disk"
        return _fail(
            f"{place}: {error.strerror or error}; free some disk space, or write elsewhere."
        )
    except Exception as error:
        if str(error) == "Query interrupted":  # so DuckDB passes Ctrl-C on while it starts
            return _fail("interrupted.", 130)
        if "EQUIPOISE_DEBUG" in os.environ:
            raise
        return _fail(
            f"internal error, {type(error).__name__}: {' '.join(str(error).split())}; "
            "set EQUIPOISE_DEBUG=1 for a traceback, and please report it."
        )


def _make_ready() -> None:
    """Set up streams and signals, so that the program always ends in an orderly way."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a character
    if threading.current_thread() is threading.main_thread():
        # When it is asked to stop, the program removes its temporary files first.
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # by nohup
                signal.signal(number, lambda caught, _: sys.exit(128 + caught))


def _fail(sentence: str, code: int = 2) -> int:
    click.echo(f"error: {sentence}", err=True)
    return code
