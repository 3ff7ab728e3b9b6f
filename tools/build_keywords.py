"""Write the types of the keywords of public functions from the declared options.

python tools/build_keywords.py            write them
python tools/build_keywords.py --check    only report whether they are up to date
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path

from equipoise.options import options_of
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.options.evaluation import EvaluationOptions
from equipoise.options.measure import MeasureOptions
from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, SearchRequest

FILE = Path(__file__).parent.parent / "src/equipoise/options/keywords.py"
COUNT = (CountRequest, ReadOptions, RunOptions)
COLUMNS = {"sensitive_features": "Any", "label": "str | None"}
MORE = {"y": "Any", "progress": "Reporter"}
Y = {"y": "Any"}

# Keywords that a function has as parameters of its own are left out; others are added.
CLASSES: dict[str, tuple[tuple[type, ...], tuple[str, ...], dict[str, str]]] = {
    "CountKeywords": (COUNT, ("sensitive_features", "label"), {}),
    "TableKeywords": (COUNT, ("sensitive_features", "label"), MORE),
    "MeasureKeywords": ((*COUNT, MeasureOptions), (), {**COLUMNS, **MORE}),
    "DiffKeywords": ((*COUNT, MeasureOptions), ("sensitive_features",), {"progress": "Reporter"}),
    "PlanKeywords": (
        (*COUNT, PlanOptions, SearchRequest),
        ("sensitive_features", "label", "tolerance", "allow", "available", "budget"),
        Y,
    ),
    "FrontierKeywords": (
        (*COUNT, PlanOptions),
        ("sensitive_features", "label", "budget", "reference"),
        Y,
    ),
    "RepairKeywords": (
        (*COUNT, PlanOptions, SearchRequest, AcquisitionLimits),
        ("sensitive_features", "label", "tolerance"),
        {"available_from": "Any"},
    ),
    "SearchKeywords": ((SearchRequest,), (), {}),
    "AcquireKeywords": ((SearchRequest, AcquisitionLimits), (), {}),
    "EvaluateKeywords": ((*COUNT, EvaluationOptions), ("sensitive_features", "label", "also"), {}),
    "PaperKeywords": (
        (RunOptions, EvaluationOptions),
        (),
        {"versions": "Sequence[str]"},
    ),
}
HEAD = '''"""Types of the keywords that public functions pass on, so that editors and mypy know them.

Written by ``tools/build_keywords.py`` from the declared options; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from equipoise.options.count import MissingPolicy
from equipoise.options.evaluation import EqualRows
from equipoise.options.measure import Adjustment, Sampling
from equipoise.options.plan import Allow, Reference, Rounding, ToleranceOn
from equipoise.options.search import Dedupe, OtherColumns
from equipoise.progress import Reporter
'''
WIDER = {
    "tuple[str, ...]": "str | Sequence[str]",
    "Sequence[str]": "str | Sequence[str]",
    "str | tuple[str, ...]": "str | Sequence[str]",
}
"""Keywords take more than requests keep."""


def main() -> int:
    """Write or check the module."""
    text = module()
    same = FILE.exists() and FILE.read_text(encoding="utf-8") == text
    if "--check" in sys.argv:
        print("" if same else f"{FILE.name} is not up to date; run make docs")
        return 0 if same else 1
    if not same:
        FILE.write_text(text, encoding="utf-8")
        print(f"wrote {FILE.name}")
    return 0


def module() -> str:
    """Give the text of the module."""
    parts = [HEAD]
    for name, (requests, left_out, more) in CLASSES.items():
        lines = [f"    {key}: {kind}" for key, kind in keywords(requests, left_out, more).items()]
        what = name.removesuffix("Keywords").lower()
        head = f'\nclass {name}(TypedDict, total=False):\n    """Keywords of the kind: {what}."""\n'
        parts.append("\n".join([head, *lines, ""]))
    return "\n".join(parts)


def keywords(
    requests: tuple[type, ...], left_out: tuple[str, ...], more: dict[str, str]
) -> dict[str, str]:
    """Give the type of each keyword."""
    kinds = {field.name: str(field.type) for request in requests for field in fields(request)}
    given = {
        option.keyword: option.accepts or WIDER.get(kinds[option.name], kinds[option.name])
        for request in requests
        for option in options_of(request)
    }
    return {**{k: v for k, v in given.items() if k not in left_out}, **more}


if __name__ == "__main__":
    sys.exit(main())
