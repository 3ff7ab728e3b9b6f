"""Where the result of a command goes: printed, or written as a file, a page or a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from equipoise.atomic import require_folder
from equipoise.cli import options, terminal
from equipoise.errors import InputError
from equipoise.plain import terminal_width

if TYPE_CHECKING:
    from equipoise.results import Result

_EXTENSIONS = {
    "json": "json",
    "csv": "csv",
    "markdown": "md",
    "html": "html",
    "png": "png",
    "svg": "svg",
    "text": "txt",
}
_PRINTED = {"json": "JSON", "csv": "CSV", "markdown": "Markdown"}
PICTURES = ("png", "svg")
_FORMAT = f"{__name__}.format"  # where a context keeps the format that a flag asks for
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Output:
    """The requested format, and the file, if the result is not printed."""

    kind: str
    path: str | None

    @property
    def quiet(self) -> bool:
        """Whether nothing but the result is printed."""
        return bool(click.get_current_context().params.get("quiet"))

    def show(
        self,
        result: Result,
        *,
        said: Iterable[str] = (),
        page: dict[str, Any] | None = None,
        prose: bool = True,
        **texts: Callable[[], str],
    ) -> int:
        """Print or write a result, and return its exit code.

        Formats in ``texts`` replace the usual text and JSON of a result. If a page or a
        picture is written, ``said`` is printed to stderr. ``prose`` is wrapped to fit the terminal.
        """
        if self.kind == "html":
            from equipoise.reports.pages import write_page

            write_page(result, str(self.path), **(page or {}))
        elif self.kind in PICTURES:
            drawable: Any = result  # commands offer pictures only of results that have some
            drawable.save_plot(str(self.path))
        else:
            texts = {"json": lambda: result.to_json(indent=2), "text": result.text, **texts}
            text = texts[self.kind]()
            # Printing adds a line break, and a writer of CSV ends its last line with one.
            text = text.rstrip("\n") if self.kind == "csv" else text
            terminal.emit(
                text, self.path, quiet=self.quiet, sentences=prose and self.kind == "text"
            )
            return result.exit_code
        terminal.wrote(self.path, quiet=self.quiet)
        for sentence in said:
            terminal.say(sentence, quiet=self.quiet)
        return result.exit_code


def print_result(result: Result, *, as_json: bool) -> int:
    """Print a result as text or JSON, and return its exit code."""
    return Output("json" if as_json else "text", None).show(result)


def output_options(*formats: str) -> Callable[[F], F]:
    """Declare where the result goes; the command gets an :class:`Output` as ``output``."""
    flags = [
        options.option(
            f"--{name}",
            "format_",
            flag_value=name,
            group="Output",
            help=f"Print {title}.",
            is_eager=True,  # known before the file, of which it decides the format
            expose_value=False,
            callback=_note_format,
        )
        for name, title in _PRINTED.items()
        if name in formats
    ]
    pictures = ", and .png and .svg hold its charts" if set(PICTURES) <= set(formats) else ""
    file = options.file(
        "--output",
        "-o",
        common=True,
        help=f"File to write; the extension ({_extensions(formats)}) sets the format{pictures}.",
        callback=lambda ctx, _, path: Output(
            _output_format(ctx.meta.get(_FORMAT), path, formats), path
        ),
    )
    return options.stacked(*flags, file)


def _note_format(ctx: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is not None:
        ctx.meta[_FORMAT] = name


def _extensions(formats: Iterable[str]) -> str:
    return ", ".join(f".{_EXTENSIONS[name]}" for name in formats)


def _output_format(format_: str | None, output: str | None, formats: Iterable[str]) -> str:
    """Choose the format: as requested, else by the file's extension, else text."""
    if output is None:
        return format_ or "text"
    require_folder(output)
    terminal_width.set(None)  # a file is as wide as its text
    # .txt is any text, so that it contradicts no format.
    named = [name for name in _EXTENSIONS if output.lower().endswith(f".{_EXTENSIONS[name]}")]
    if format_ is not None:
        if named and named[0] not in (format_, "text"):
            raise InputError(
                f"--{format_} and the extension of {output} contradict each other; leave one out."
            )
        return format_
    for name in formats:
        if name in named:
            if name in PICTURES:  # before hours of work, not after them
                from equipoise.reports.charts.vega import require_drawing

                require_drawing()
            return name
    raise InputError(f"{output} has no known extension; use {_extensions(formats)}.")
