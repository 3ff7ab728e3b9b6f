"""Calls of the explorer that are made up from its OpenAPI document, to find what it does not expect."""
# ruff: noqa: INP001, S311

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import checks
from schemathesis.generation import GenerationMode

CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)
TABLES = ("adult", "people.csv", "people.csv", "people.csv", "people.csv::x", "lake", "nowhere.csv")
"""Tables that are asked for, beside the texts that are made up."""
LONGEST = 60_000
"""Letters of an address that the server reads."""
COLUMNS = ("sex", "race", "sex", "race", "nowhere")


@dataclass
class Found:
    """What was called, and what went wrong."""

    calls: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    slowest: float = 0.0


def call(address: str, token: str, *, calls: int, seed: int = 0) -> Found:
    """Call every operation of an explorer equally often, at least that many times in all."""
    headers = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json", headers=headers)
    operations = [each.ok() for each in schema.get_all_operations()]
    each = -(-calls // len(operations) // 2)
    found = Found()
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _call(operation, mode, each, headers, found, seed)
    return found


def _call(
    operation: Any, mode: Any, number: int, headers: dict[str, str], found: Found, seed: int
) -> None:
    left = number
    # Hypothesis finds no more examples where there are few, so the same are made again.
    while left > 0:
        before = found.calls
        _some(operation, mode, left, headers, found, seed)
        made = found.calls - before
        if not made and mode is GenerationMode.NEGATIVE:  # nothing can be wrong about it
            mode = GenerationMode.POSITIVE
        elif not made:
            return
        left, seed = left - made, seed + 1


def _some(
    operation: Any, mode: Any, number: int, headers: dict[str, str], found: Found, seed: int
) -> None:
    chance = random.Random(f"{seed} {operation.label}")

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.data())
    def run(data: Any) -> None:
        case = data.draw(operation.as_strategy(generation_mode=mode))
        _make_plausible(case, chance)
        _ask(case, headers, found)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run()
        except (hypothesis.errors.Unsatisfiable, hypothesis.errors.FlakyFailure):
            return


def _make_plausible(case: Any, chance: random.Random) -> None:
    """Name a table and columns that there are, in most calls; few texts that are made up are names."""
    query = case.query
    if not isinstance(query, dict) or chance.random() < 0.2:
        return
    names = {p.name for p in case.operation.query}
    if "data" in names:
        query["data"] = chance.choice(TABLES)
        query["sensitive_features"] = chance.sample(COLUMNS, chance.choice((1, 1, 2)))
        query["label"] = "income" if query["data"] == "adult" else "hired"
        for name in ("count", "weight", "encoding", "delimiter", "header", "bins"):
            if chance.random() < 0.8:
                query.pop(name, None)
    if "lake" in names and chance.random() < 0.7:
        query["lake"] = "lake"
    # Limits of time that are made up may be years.
    for name in names & {"time_limit"}:
        query[name] = chance.choice((0.1, 0.5))
    kept, dropped = (
        {"data", "sensitive_features", "label", "lake", "time_limit"},
        chance.choice((0.4, 0.95)),
    )
    for name in [name for name in query if name not in kept and chance.random() < dropped]:
        query.pop(name)


def _ask(case: Any, headers: dict[str, str], found: Found) -> None:
    found.calls += 1
    try:
        answer = case.call(headers=headers, timeout=120)
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        # Of an address that is too long the server does not read the end.
        if len(case.as_curl_command()) < LONGEST:
            found.problems.append(f"{case.method} {case.formatted_path} {case.query}: {error}")
        found.statuses[400] += 1
        return
    found.statuses[answer.status_code] += 1
    found.slowest = max(found.slowest, answer.elapsed)
    try:
        case.validate_response(answer, checks=list(CHECKS))
    except Exception as error:  # noqa: BLE001  whatever it is called in this version
        told = f"{case.method} {case.formatted_path} {case.query}: {answer.status_code} "
        found.problems.append(f"{told}{answer.text[:300]}\n{str(error)[:400]}")
