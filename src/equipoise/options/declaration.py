"""The declaration of an option: what it means, what it may be, and how it is written."""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from equipoise.validate import a_number, number_text, one_of

Form: TypeAlias = Literal["names", "texts", "numbers", "pattern numbers", "bins", "path"]
"""How a value is written as text, where its type does not say so: a list of names, texts or
numbers, numbers by pattern, bins by column, or the path of a file."""

GROUPS = (
    "Data",
    "Which groups",
    "Uncertainty",
    "What is allowed",
    "Costs and limits",
    "Finding rows",
    "Models",
    "Missing values",
    "Search",
    "Output",
    "Running",
)
"""The titles under which options are listed, in order."""

_KEY = "equipoise"
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a request.

    Attributes
    ----------
    name, type, default
        Those of the field that carries the option; they are not declared again.
    help
        One or two sentences. Other parameters stand in backquotes.
    group
        A title of :data:`GROUPS`.
    common
        Whether most users need it; such options are listed first.
    at_least, at_most, above, below
        Bounds of a number. An infinite bound says that the number must be finite.
    example
        A value as it is typed on the command line.
    metavar
        What stands for the value in the help of a command.
    flags
        How the command line spells it; by default as the keyword, ``--no-…`` for what is on
        unless it is switched off. None if it is for Python only.
    keyword
        What functions call it; by default as the field.
    form
        How its text is read, if the type does not tell.
    accepts
        The type of the keyword, if it takes more than the field keeps.
    flag_help
        Help for the flag of something that is on unless it is switched off.
    """

    help: str
    group: str
    common: bool = False
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    example: str | None = None
    metavar: str | None = None
    flags: tuple[str, ...] | None = ()
    keyword: str = ""
    form: Form | None = None
    accepts: str | None = None
    flag_help: str | None = None
    name: str = ""
    type: Any = None
    default: Any = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be, if it is one of a few."""
        return typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number."""
        return self.type is int

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.type in (int, float)

    @property
    def is_unbounded(self) -> bool:
        """Whether it may be any number."""
        bounds = (self.at_least, self.at_most, self.above, self.below)
        return all(bound is None or math.isinf(bound) for bound in bounds)

    @property
    def is_switch(self) -> bool:
        """Whether it is true or false."""
        return self.type is bool

    @property
    def turns_off(self) -> bool:
        """Whether its flag sets it to False."""
        return self.is_switch and self.flag_help is not None

    @property
    def spellings(self) -> tuple[str, ...]:
        """Its flags; there are none if it is for Python only.

        >>> Option(help="", group="Data", keyword="min_count", type=int).spellings
        ('--min-count',)
        """
        if self.flags is None:
            return ()
        name = self.keyword.replace("_", "-")
        return self.flags or (f"--no-{name}" if self.turns_off else f"--{name}",)

    @property
    def is_repeatable(self) -> bool:
        """Whether several values may be given."""
        return self.form in ("names", "texts", "numbers", "pattern numbers", "bins")

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is dataclasses.MISSING

    @property
    def allowed(self) -> str:
        """What it may be, as errors and tables say it.

        >>> Option(help="", group="Data", type=int, at_least=1).allowed
        'a whole number of at least 1'
        >>> Option(help="", group="Data", type=float, above=0, below=1).allowed
        'a number above 0 and below 1'
        >>> Option(help="", group="Data", type=Literal["group", "drop"]).allowed
        "one of 'group', 'drop'"
        """
        if self.choices:
            return f"one of {', '.join(map(repr, self.choices))}"
        if self.is_switch:
            return "True or False"
        return number_text(**self._limits)

    @property
    def _limits(self) -> dict[str, Any]:
        bounds = ("at_least", "above", "at_most", "below")
        return {"whole": self.is_whole, **{name: getattr(self, name) for name in bounds}}

    def check(self, value: Any) -> None:
        """Refuse a value that is not allowed.

        >>> Option(help="", group="Data", name="k", type=int, at_least=1).check(0)
        Traceback (most recent call last):
        equipoise.errors.InputError: `k` must be a whole number of at least 1, not 0.
        """
        if value is None and self.default is None:
            return
        name = self.keyword or self.name
        if self.choices:
            one_of(name, value, self.choices)
        elif self.is_number:
            a_number(name, value, **self._limits)


def declared(**said: Any) -> dict[str, Option]:
    """Give the metadata of a dataclass field that is a required option; takes what Option does."""
    return {_KEY: Option(**said)}


def option(default: Any, **said: Any) -> Any:
    """Declare an option: the field of a request dataclass, with what an :class:`Option` says.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Request:
    ...     tolerance: float = option(0.0, help="Largest |UB|.", group="Data", at_least=0)
    >>> [(o.name, o.default, o.allowed) for o in options_of(Request)]
    [('tolerance', 0.0, 'a number of at least 0')]
    """
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=declared(**said))
    return dataclasses.field(default=default, metadata=declared(**said))


def options_of(request: type) -> tuple[Option, ...]:
    """List the options of a request class, in their order: all that a form needs to know."""
    if request not in _KNOWN:  # requests are made often, and their types are slow to resolve
        _KNOWN[request] = tuple(_options(request))
    return _KNOWN[request]


_KNOWN: dict[type, tuple[Option, ...]] = {}


def _options(request: type) -> Iterator[Option]:
    return (
        dataclasses.replace(
            each.metadata[_KEY],
            name=each.name,
            keyword=each.metadata[_KEY].keyword or each.name,
            type=_type(request, each),
            default=_default(each),
        )
        for each in dataclasses.fields(request)
        if _KEY in each.metadata
    )


def _type(request: type, field: dataclasses.Field[Any]) -> Any:
    """The type of a field, without None; names are looked up where the field was declared."""
    home = next(c for c in request.__mro__ if field.name in inspect.get_annotations(c))
    holder = types.SimpleNamespace(__annotations__={field.name: field.type})
    found = typing.get_type_hints(holder, vars(sys.modules[home.__module__]))[field.name]
    if isinstance(found, types.UnionType) or typing.get_origin(found) is typing.Union:
        rest = [part for part in typing.get_args(found) if part is not types.NoneType]
        return rest[0] if len(rest) == 1 else found
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def check(request: Any) -> None:
    """Refuse a request with a value that its declaration does not allow."""
    for each in options_of(type(request)):
        each.check(getattr(request, each.name))


def take(request: type[T], given: Mapping[str, Any]) -> tuple[T, dict[str, Any]]:
    """Make a request of the keywords that are its options; give it with the keywords left over."""
    names = {each.keyword: each.name for each in options_of(request)}
    own = {names[key]: value for key, value in given.items() if key in names}
    return request(**own), {key: value for key, value in given.items() if key not in names}
