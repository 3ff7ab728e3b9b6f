"""Commands whose help lists options in groups, and whose errors name their own flags."""

from __future__ import annotations

from typing import Any

import click

from equipoise.cli.flags import with_flags
from equipoise.errors import EquipoiseError
from equipoise.options import GROUPS

_COMMON = "Common options"


class GroupedOption(click.Option):
    """An option that help lists under the title of its group, or first if it is common."""

    def __init__(
        self, *args: Any, group: str = "Running", common: bool = False, **options: Any
    ) -> None:
        self.group = _COMMON if common else group
        super().__init__(*args, **options)

    def make_metavar(self, ctx: click.Context) -> str:
        """Placeholder of its value in help."""
        # The bounds of a number are shown at the end of its help anyway.
        return super().make_metavar(ctx).replace(" RANGE", "").replace("FLOAT", "NUMBER")

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Its flags and its text in help, in which other parameters become flags."""
        record = super().get_help_record(ctx)
        return record and (record[0], with_flags(record[1], ctx.command.params))


class Command(click.Command):
    """A command whose help is in groups, and whose errors name its own flags."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the message of an error names flags, and its type stays the same."""
        try:
            return super().invoke(ctx)
        except EquipoiseError as error:
            error.args = (with_flags(str(error), self.params),)
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options under their titles, those that most users need first."""
        listed: dict[str, list[tuple[str, str]]] = {title: [] for title in (_COMMON, *GROUPS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                listed[getattr(parameter, "group", GROUPS[-1])].append(record)
        for title, records in listed.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class CommandGroup(click.Group):
    """Commands of a family."""

    command_class = Command
