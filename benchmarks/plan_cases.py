"""What `quick_plans` asks for: every case as plain data, which any version of the package can read.

A case has a family, by which it is judged, a kind, which says who works on it, the name of a table
of `plan_tables`, and a request.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

import plan_tables

Case: TypeAlias = dict[str, Any]

TOLERANCES = (0.2, 0.1, 0.05, 0.01)
LABELS, ALLOW = ("keep", "free"), ("add", "both")
TIGHT = 1e-4
FRONTIER_POINTS = 50
SHORT = 0.5  # seconds, asked for with `time_limit`


def cases() -> list[Case]:
    """Every case, the quick ones first."""
    made = [
        *_small("adult", "A2"),
        *_small("compas", "COMPAS"),
        *_large(),
        *_few(),
        *_many(),
        *_coupled(),
        *_frontier(),
        *_infeasible(),
        *_short(),
        *_whole(),
        *_small("tight", "A2", gap=TIGHT),
    ]
    return [{"id": number, **case} for number, case in enumerate(made)]


def _plan(family: str, table: str, name: str = "", **request: Any) -> Case:
    told = [f"{request['tolerance']:g}", request.get("labels", "keep"), request["allow"]]
    words = ", ".join([table, *told, *([name] if name else [])])
    return {"family": family, "kind": "plan", "name": words, "table": table, "request": request}


def _small(family: str, table: str, **more: Any) -> Iterator[Case]:
    for labels, allow, tolerance in itertools.product(LABELS, ALLOW, TOLERANCES):
        name = f"gap {more['gap']:g}" if more else ""
        yield _plan(family, table, name, tolerance=tolerance, labels=labels, allow=allow, **more)


def _large() -> Iterator[Case]:
    for table, tolerance in itertools.product(("A4", "A6"), (0.05, 0.01)):
        yield _plan(table, table, tolerance=tolerance, allow="both")
    for tolerance in (0.05, 0.01):
        yield _plan("A4 by 4", "A4 → marital 4", tolerance=tolerance, allow="both")


def _few() -> Iterator[Case]:
    for table in plan_tables.FEW_LABELS:
        yield _plan("3–4 labels", table, tolerance=0.05, labels="keep", allow="both")
        yield _plan("3–4 labels", table, tolerance=0.1, labels="free", allow="add")


def _many() -> Iterator[Case]:
    for table in plan_tables.MANY_LABELS:
        yield _plan("5–6 labels", table, tolerance=0.05, labels="keep", allow="both")
        yield _plan("5–6 labels", table, tolerance=0.1, labels="free", allow="add")


def _coupled() -> Iterator[Case]:
    # Groups of at least 1 % of the rows; the others only follow.
    for table, gap in (("A4", 0.01), ("A6", 0.025)):
        for reference in ("original", "new"):
            yield _plan(
                f"coupled {table} {reference}",
                table,
                f"groups of 1 %, {reference}",
                tolerance=0.05,
                allow="both",
                reference=reference,
                min_group=326,
                gap=gap,
            )


def _frontier() -> Iterator[Case]:
    yield {
        "family": "frontier",
        "kind": "frontier",
        "name": f"A2, {FRONTIER_POINTS} points",
        "table": "A2",
        "request": {"allow": "both", "reference": "new"},
        "points": FRONTIER_POINTS,
    }


def _infeasible() -> Iterator[Case]:
    rich_women = {"sex=Female, income=>50K": 100}
    asked: list[tuple[str, str, Case]] = [
        ("four small groups", "max_rows 19", {"tolerance": 0.05, "max_rows": 19}),
        ("A2", "available 100", {"tolerance": 0.05, "available": rich_women}),
        ("A2", "max_rows 33,000", {"tolerance": 0.05, "max_rows": 33_000}),
        ("A2", "pool of 99 rows", {"tolerance": 0.05, "pool": "A2, over 80"}),
        (
            "A2",
            "at_least and max_rows",
            {"tolerance": 0.1, "at_least": {"race=Other": 5000}, "max_rows": 36_000},
        ),
        (
            "three small groups",
            "label_drift, max_rows",
            {"tolerance": 0.05, "labels": "free", "label_drift": 0.001, "max_rows": 60},
        ),
        ("COMPAS", "max_rows 61,000", {"tolerance": 0.05, "max_rows": 61_000}),
        ("drawn 25 × 4", "max_rows 9,500", {"tolerance": 0.05, "max_rows": 9_500}),
        (
            "sex, race, marital → income",
            "available 50",
            {"tolerance": 0.05, "available": {"sex=Female, income=>50K": 50}},
        ),
        (
            "sex, race, age → marital 4",
            "available 10",
            {"tolerance": 0.05, "available": {"race=Other": 10}},
        ),
        (
            "sex, race, age → marital 4",
            "max_rows 33,000",
            {"tolerance": 0.05, "max_rows": 33_000},
        ),
    ]
    for table, name, request in asked:
        yield {
            "family": "infeasible",
            "kind": "infeasible",
            "name": f"{table}, {name}",
            "table": table,
            "request": {"allow": "add", **request},
        }


def _short() -> Iterator[Case]:
    limit: Case = {"time_limit": SHORT, "gap": 0.0}
    yield _plan("time limit", "drawn 16 × 6", tolerance=0.05, labels="free", allow="both", **limit)
    yield _plan("time limit", "A6", tolerance=0.01, labels="free", allow="both", **limit)
    coupled: Case = {"min_group": 326, "reference": "original"}
    yield _plan(
        "time limit", "A6", "groups of 1 %", tolerance=0.05, allow="both", **coupled, **limit
    )


def _whole() -> Iterator[Case]:
    """What people run that plans inside."""
    for kind, name in (
        ("grid_search", "GridSearchCV, 12 fits on 2,380 rows"),
        ("repair", "repair of the demo"),
        ("evaluate", "evaluate, 4,000 rows, 2 repeats"),
    ):
        yield {"family": "whole", "kind": kind, "name": name}
