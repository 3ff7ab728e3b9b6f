"""Write the types of the keywords of public functions from the declared options.

python tools/build_keywords.py            write them
python tools/build_keywords.py --check    only report whether they are up to date
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from equipoise.options import keyword_fields, keyword_type
from equipoise.options.audit import AuditOptions
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions
from equipoise.options.measure import MeasureOptions
from equipoise.options.monitor import WatchOptions
from equipoise.options.plan import MEASURED, PlanOptions
from equipoise.options.search import AcquisitionLimits, SearchRequest

FILE = Path(__file__).parent.parent / "src/equipoise/options/keywords.py"


@dataclass(frozen=True)
class Keywords:
    """A class of keywords: what it inherits, and the requests whose options it adds to that."""

    what: str
    bases: tuple[str, ...] = ()
    requests: tuple[type, ...] = ()
    left_out: tuple[str, ...] = ()  # parameters of the functions themselves


# A class must not inherit a keyword twice, which is why some of these are small.
CLASSES = {
    "RunKeywords": Keywords("What a run may use.", requests=(RunOptions,)),
    "CountKeywords": Keywords(
        "How a table is read and counted.",
        ("RunKeywords",),
        (CountRequest, ReadOptions),
        left_out=("sensitive_features", "label"),
    ),
    "MeasureKeywords": Keywords(
        "How a table is counted and measured.", ("CountKeywords",), (MeasureOptions,)
    ),
    "FrontierKeywords": Keywords(
        "How a table is counted, and the options of the plans of a frontier.",
        ("CountKeywords",),
        (PlanOptions,),
        left_out=("budget", "reference", "objective", "policy"),
    ),
    "ScenarioKeywords": Keywords(
        "How a table is counted, and what a plan made by hand is measured by.",
        ("CountKeywords",),
        (PlanOptions,),
        left_out=tuple(key for key in keyword_fields(PlanOptions) if key not in MEASURED),
    ),
    "SearchKeywords": Keywords("How rows are searched for.", requests=(SearchRequest,)),
    "PlanKeywords": Keywords(
        "How a table is counted, the options of a plan, and how a lake is searched.",
        ("FrontierKeywords", "SearchKeywords"),
        (PlanOptions,),
    ),
    "WatchKeywords": Keywords(
        "The limits of a stream, and the level of its alerts.", requests=(WatchOptions,)
    ),
    "AuditKeywords": Keywords(
        "How a table is counted, what a form shows, and how a lake is searched.",
        ("CountKeywords", "SearchKeywords"),
        (AuditOptions,),
        left_out=("form",),
    ),
    "LimitKeywords": Keywords(
        "The limits within which rows are taken.",
        requests=(AcquisitionLimits,),
        left_out=("budget", "time_limit"),  # which a plan has, too
    ),
    "AcquireKeywords": Keywords(
        "How rows are searched for, and the limits within which they are taken.",
        ("SearchKeywords", "LimitKeywords"),
        (AcquisitionLimits,),
    ),
    "RepairKeywords": Keywords(
        "The options of a plan, and the limits within which rows are taken.",
        ("PlanKeywords", "LimitKeywords"),
    ),
    "StudyKeywords": Keywords(
        "How models are trained and tested.",
        requests=(RunningOptions, EvaluationOptions),
        left_out=("also", "keep_together"),  # columns, which the paper's evaluation names itself
    ),
    "PaperKeywords": Keywords(
        "How the paper's evaluation is run.", ("RunKeywords", "StudyKeywords")
    ),
    "EvaluateKeywords": Keywords(
        "How a table is counted, and how models are trained and tested on it.",
        ("CountKeywords", "StudyKeywords"),
        (FeatureOptions, EvaluationOptions),
    ),
}
HEAD = '''"""Types of the keywords that public functions take, for editors and mypy.

Written by ``tools/build_keywords.py`` from the declared options; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from equipoise.options.count import MissingPolicy
from equipoise.options.evaluation import EqualRows, Impute
from equipoise.options.measure import Adjustment, Sampling
from equipoise.options.monitor import AlertOn
from equipoise.options.plan import Allow, Objective, Reference, Rounding, ToleranceOn
from equipoise.options.search import Dedupe, OtherColumns
'''


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
    for name, keywords in CLASSES.items():
        lines = [f"    {key}: {kind}" for key, kind in own_keywords(keywords).items()]
        bases = ", ".join(keywords.bases or ("TypedDict",))
        head = f'\nclass {name}({bases}, total=False):\n    """{keywords.what}"""\n'
        parts.append("\n".join([head, *lines, *([""] if lines else [])]))
    return "\n".join(parts)


def own_keywords(keywords: Keywords) -> dict[str, str]:
    """Give the type of each keyword that a class does not inherit."""
    inherited = [key for base in keywords.bases for key in all_keywords(CLASSES[base])]
    given: dict[str, str] = {}
    for request in keywords.requests:
        for keyword, field in keyword_fields(request).items():
            given.setdefault(keyword, keyword_type(field))
    return {k: v for k, v in given.items() if k not in (*inherited, *keywords.left_out)}


def all_keywords(keywords: Keywords) -> dict[str, str]:
    """Give the type of each keyword of a class, with those it inherits."""
    bases = (all_keywords(CLASSES[base]) for base in keywords.bases)
    return {key: kind for each in (*bases, own_keywords(keywords)) for key, kind in each.items()}


if __name__ == "__main__":
    sys.exit(main())
