"""The page of all options: their flags, keywords and keys, as they are declared."""
# ruff: noqa: INP001

from __future__ import annotations

from collections.abc import Iterator

from equipoise.options import GROUPS, Option, options_of
from equipoise.options.audit import AuditOptions
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions
from equipoise.options.measure import MeasureOptions
from equipoise.options.monitor import BatchOptions, WatchOptions, WindowOptions, ZoneOptions
from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, IndexOptions, SearchRequest
from equipoise.plain import Grid

USES: dict[str, tuple[type, ...]] = {
    "any table": (CountRequest, ReadOptions),
    "any run": (RunOptions,),
    "measuring": (MeasureOptions,),
    "planning": (PlanOptions,),
    "indexing a lake": (IndexOptions,),
    "searching a lake": (SearchRequest,),
    "taking rows": (AcquisitionLimits,),
    "audit forms": (AuditOptions,),
    "adding batches": (BatchOptions, ZoneOptions),
    "watching a stream": (WatchOptions,),
    "windows of a stream": (WindowOptions,),
    "evaluating": (RunningOptions, FeatureOptions, EvaluationOptions),
}
HEADERS = ("Flag", "Python keyword", "TOML key", "Values", "Default", "Used for", "Meaning")
FORMS = {
    "names": "names",
    "texts": "one or more texts",
    "numbers": "one or more numbers",
    "pattern numbers": "patterns, each with a number",
    "bins": "edges or a number of bins by column",
    "path": "path of a file",
}


def page() -> str:
    """Give a table of options for each group."""
    parts = [
        "# Options",
        (
            "Each option is one thing with three spellings: a flag of the "
            "[command line](cli.md), a keyword of the [Python functions](python.md), and a key in "
            "the command's table of `equipoise.toml`. A dash means that there is no such spelling. "
            "[The command line](cli.md) shows which command takes which option, and the few options "
            "that only one command has."
        ),
    ]
    for group in GROUPS:
        rows = tuple(_rows(group))
        if rows:
            parts += [f"## {group}", Grid(HEADERS, rows).markdown()]
    return "\n\n".join(parts) + "\n"


def _rows(group: str) -> Iterator[tuple[str, ...]]:
    for use, requests in USES.items():
        for option in (o for request in requests for o in options_of(request) if o.group == group):
            spelled = option.spellings
            yield (
                ", ".join(f"`{flag}`" for flag in spelled) or "–",
                f"`{option.keyword}`",
                f"`{spelled[0].removeprefix('--')}`" if spelled else "–",
                _values(option),
                _default(option),
                use,
                option.help,
            )


def _values(option: Option) -> str:
    if option.form is not None:
        return FORMS[option.form]
    if option.choices:
        return ", ".join(f"`{word}`" for word in option.choices)
    if option.is_number or option.is_switch:
        return option.allowed
    return "text" if option.flags is not None else "object"


def _default(option: Option) -> str:
    if option.is_required:
        return "required"
    if option.default is None or (option.is_repeatable and not option.default):
        return "–"
    if isinstance(option.default, tuple):
        return ", ".join(f"`{each}`" for each in option.default)
    return f"`{option.default}`"
