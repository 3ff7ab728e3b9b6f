"""The declaration of an option: what it means, what it may be, and how it is written."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from equipoise.errors import InputError
from equipoise.validate import a_number, number_text, one_of

Form: TypeAlias = Literal["names", "texts", "numbers", "pattern numbers", "bins", "path"]
"""How a value is written as text, where its type does not say so: a list of names, texts or
numbers, numbers by pattern, bins by column, or the path of a file."""

GROUPS = (
    "Data",
    "Which batches",
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
    """One option of a request."""

    help: str  # one or two sentences; other parameters are in backquotes
    group: str  # a title of GROUPS
    common: bool = False  # most users need it, so that it is listed first
    # Bounds of a number. An infinite bound only requires the number to be finite.
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    example: str | None = None  # a value as it is typed on the command line
    metavar: str | None = None  # stands for the value in the help of a command
    flags: tuple[str, ...] | None = ()  # empty: derived from the keyword; None: Python only
    keyword: str = ""  # the parameter of functions; by default the name of the field
    form: Form | None = None  # how its text is read, if the type does not decide that
    accepts: str | None = None  # type of the keyword, if it takes more than the field keeps
    flag_help: str | None = None  # help of a flag that turns the option off
    may_name_file: bool = False  # its text may be the path of a file, whatever its form
    # Those of the field that carries the option; they are not declared again.
    name: str = ""
    type: Any = None
    default: Any = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values, if there are only a few."""
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
        """Its flags; an option for Python only has none.

        >>> Option(help="", group="Data", keyword="min_count", type=int).spellings
        ('--min-count',)
        """
        if self.flags is None:
            return ()
        name = self.keyword.replace("_", "-")
        return self.flags or (f"--no-{name}" if self.turns_off else f"--{name}",)

    @property
    def names_file(self) -> bool:
        """Whether its text may be the path of a file, so that others must not choose it freely."""
        return self.may_name_file or self.form == "path"

    @property
    def is_repeatable(self) -> bool:
        """Whether several values may be given."""
        return self.form in ("names", "texts", "numbers", "pattern numbers", "bins")

    @property
    def keeps_list(self) -> bool:
        """Whether the field is always a tuple."""
        listed = self.is_required or isinstance(self.default, tuple)
        return listed and self.form in ("names", "texts")

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is dataclasses.MISSING

    @property
    def allowed(self) -> str:
        """Description of the allowed values, for errors and tables.

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
    """Return the metadata of a dataclass field that is a required option, from fields of Option."""
    return {_KEY: Option(**said)}


def option(default: Any, **said: Any) -> Any:
    """Declare an option: the field of a request dataclass, described by fields of :class:`Option`.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Request:
    ...     tolerance: float = option(0.0, help="Largest |UB|.", group="Data", at_least=0)
    >>> [(o.name, o.default, o.allowed) for o in options_of(Request)]
    [('tolerance', 0.0, 'a number of at least 0')]
    """
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=declared(**said))
    return dataclasses.field(default=default, metadata=declared(**said))


# Requests are made often, and their types are slow to resolve.
@functools.cache
def options_of(request: type) -> tuple[Option, ...]:
    """List the options of a request class, in their order."""
    kinds = typing.get_type_hints(request)
    return tuple(
        dataclasses.replace(
            each.metadata[_KEY],
            name=each.name,
            keyword=each.metadata[_KEY].keyword or each.name,
            type=_without_none(kinds[each.name]),
            default=_default(each),
        )
        for each in dataclasses.fields(request)
        if _KEY in each.metadata
    )


def _without_none(kind: Any) -> Any:
    is_union = typing.get_origin(kind) in (types.UnionType, typing.Union)
    rest = [part for part in typing.get_args(kind) if part is not types.NoneType]
    return rest[0] if is_union and len(rest) == 1 else kind


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def check(request: Any) -> None:
    """Refuse a request with a value that its declaration does not allow; make lists tuples."""
    kind: type = type(request)
    for each in options_of(kind):
        value = getattr(request, each.name)
        each.check(value)
        # A single text is a list of one; text is a sequence of letters otherwise.
        if each.keeps_list and type(value) is not tuple:
            if not isinstance(value, Iterable | None):
                raise InputError(f"`{each.keyword}` must be a list of texts, not {value!r}.")
            items = (value,) if isinstance(value, str) else tuple(value or ())
            object.__setattr__(request, each.name, items)


def take(request: type[T], given: Mapping[str, Any]) -> tuple[T, dict[str, Any]]:
    """Make a request of the keywords that are its options; return it with the keywords left over."""
    known = keyword_fields(request)
    own = {known[key].name: value for key, value in given.items() if key in known}
    return request(**own), {key: value for key, value in given.items() if key not in known}


_LIST = "str | Sequence[str]"
_WIDER = {"tuple[str, ...]": _LIST, "Sequence[str]": _LIST, "str | tuple[str, ...]": _LIST}


def keyword_type(field: dataclasses.Field[Any]) -> str:
    """Give the type of an option's keyword, which may take more than the field keeps.

    >>> from equipoise.options.count import CountRequest
    >>> keyword_type(keyword_fields(CountRequest)["na"])
    'str | Sequence[str]'
    """
    said: Option = field.metadata[_KEY]
    return said.accepts or _WIDER.get(str(field.type), str(field.type))


@functools.cache
def describe_keywords(request: type) -> dict[str, str]:
    """Describe the keywords of a request's options as numpydoc does, by keyword."""
    known = vars(sys.modules[request.__module__])
    said = {}
    for keyword, field in keyword_fields(request).items():
        choices = typing.get_args(known.get(str(field.type)))  # of a Literal that has a name
        kind = "{" + ", ".join(map(repr, choices)) + "}" if choices else keyword_type(field)
        lines = textwrap.wrap(field.metadata[_KEY].help, 84)
        said[keyword] = "\n".join([f"{keyword} : {kind}", *(f"    {line}" for line in lines)])
    return said


def keyword_fields(request: type) -> dict[str, dataclasses.Field[Any]]:
    """Map the keywords of a request's options to its fields, without resolving any types."""
    options = [each for each in dataclasses.fields(request) if _KEY in each.metadata]
    return {each.metadata[_KEY].keyword or each.name: each for each in options}
