"""Requests as the parameters of an address: the schema of the API, read off the declared options."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import pydantic
from pydantic import Field

from equipoise.options import Option, options_of
from equipoise.options.texts import read_texts

LEFT_OUT = ("where", "sql", "threads", "memory", "engine")
"""Options that are not taken from a browser: no SQL of users, and no limits of their own."""
_LONGEST = 4000
"""Maximum number of letters of a text, and of texts of a list."""


class Query(pydantic.BaseModel):
    """The parameters of an address."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


def offered(*requests: type, but: Collection[str] = ()) -> tuple[Option, ...]:
    """List the options of requests that a browser may set."""
    left_out = {*LEFT_OUT, *but}
    return tuple(o for kind in requests for o in options_of(kind) if o.keyword not in left_out)


def query_model(
    name: str, options: Sequence[Option], base: type[Query] = Query, **own: Any
) -> type[Query]:
    """Make the class of an address whose parameters are options, and some of its own.

    >>> from equipoise.options.plan import PlanOptions
    >>> kind = query_model("PlanQuery", offered(PlanOptions))
    >>> kind(tolerance="0.1", cost_add=["sex=Female 2"]).tolerance
    0.1
    """
    fields: dict[str, Any] = {each.keyword: _field(each) for each in options}
    made: type[Query] = pydantic.create_model(name, __base__=base, **fields, **own)
    return made


def _field(option: Option) -> tuple[Any, Any]:
    about: dict[str, Any] = {"description": option.help}
    if option.example:
        about["examples"] = [option.example]
    if option.is_repeatable:
        text = Annotated[str, Field(max_length=_LONGEST)]
        return list[text], Field(default_factory=list, max_length=_LONGEST, **about)
    kind: Any = Annotated[str, Field(max_length=_LONGEST)]
    if option.choices:
        kind = option.type
    elif option.is_switch:
        kind = bool
    elif option.is_number:
        kind = Annotated[option.type, Field(**_bounds(option))]
    default = None if option.is_required else option.default
    simple = default is None or isinstance(default, (str, int, float, bool))
    return kind | None, Field(default=default if simple else None, **about)


def _bounds(option: Option) -> dict[str, Any]:
    names = {"at_least": "ge", "at_most": "le", "above": "gt", "below": "lt"}
    given = {to: getattr(option, name) for name, to in names.items()}
    bounds = {k: v for k, v in given.items() if v is not None and abs(v) != float("inf")}
    # JSON and addresses have no whole numbers of any size; the libraries below have none either.
    if option.is_whole:
        return {"le": 10**15, **bounds}
    return {"allow_inf_nan": False, "le": 1e15, **bounds}


def keywords_of(query: pydantic.BaseModel, options: Sequence[Option]) -> dict[str, Any]:
    """Return the options that an address sets, as keywords of the library.

    >>> from equipoise.options.plan import PlanOptions
    >>> options = offered(PlanOptions)
    >>> kind = query_model("PlanQuery", options)
    >>> keywords_of(kind(tolerance=0.1, allow="add", cost_add=["sex=Female 2"]), options)
    {'tolerance': 0.1, 'cost_add': [('sex=Female', 2.0)]}
    """
    found: dict[str, Any] = {}
    for option in options:
        value = getattr(query, option.keyword, None)
        if value is None or value == option.default or value in ([], ""):
            continue
        if option.is_repeatable:
            texts = [text for text in value if text.strip()]
            if not texts:
                continue
            value = read_texts(option, texts)
            if option.keyword == "constrain" and len(value) == 1:
                value = value[0]
        if value != option.default:
            found[option.keyword] = value
    return found


def as_pairs(query: pydantic.BaseModel) -> list[tuple[str, str]]:
    """Write the parameters of a query as the pairs of an address; defaults are left out.

    >>> from equipoise.options.plan import PlanOptions
    >>> kind = query_model("PlanQuery", offered(PlanOptions))
    >>> as_pairs(kind(tolerance=0.1, deletable=["sex=Male", "sex=Female"]))
    [('tolerance', '0.1'), ('deletable', 'sex=Male'), ('deletable', 'sex=Female')]
    """
    pairs: list[tuple[str, str]] = []
    for name, field in type(query).model_fields.items():
        value = getattr(query, name)
        if value == field.get_default(call_default_factory=True) or value is None:
            continue
        listed = value if isinstance(value, list) else [value]
        pairs += [(name, _text(each)) for each in listed]
    return pairs


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def files_of(given: Mapping[str, Any], options: Sequence[Option]) -> list[str]:
    """Names of the options that are set and may name a file."""
    known = {option.keyword: option for option in options}
    return [name for name in given if name in known and known[name].names_file]
