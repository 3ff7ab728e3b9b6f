"""Plans against the repaired table's own frequencies: this code, the code before, SCIP and HiGHS.

Every case is worked on by all of them in turn, the plan with its certificate. Set QUICK_PLANS=ours
to measure this code alone, QUICK_PLANS=kept to leave out the code before, which takes an hour, and
QUICK_PLANS_FAMILIES=adult,compas for some families of cases. What the code before answered is kept
in `.cache`, and shown when it is not run again.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import plan_tables
from bars import Bar, Section, markdown_table
from data import CACHE, HERE
from plan_cases import Case, cases
from revisions import source_at
from timing import in_fresh_process

Answer: TypeAlias = dict[str, Any]
Answers: TypeAlias = dict[str, Answer]  # by the name of a case

OURS, BEFORE = "this code", "the code before"
REVISION = "3890cb9"  # the last one before the search over frequencies was written anew
KEPT = CACHE / f"plans-{REVISION}.json"
BEFORE_LIMIT = {"tight": 20.0}  # seconds of a plan, where the default of 60 would be too patient
RIVAL_LIMIT = 5.0
HELD_AGAINST = ("adult", "compas", "3–4 labels", "5–6 labels", "A4", "A6", "A4 by 4")
SUFFICES = 21  # rows, for the smallest of the infeasible requests


def section() -> Section:
    """Work on every case and judge the families."""
    chosen = _chosen()
    found = _answers(chosen)
    families = list(dict.fromkeys(case["family"] for case in chosen))
    paragraphs, bars = [_how(found)], []
    for family in families:
        some = [case for case in chosen if case["family"] == family]
        paragraphs += [f"### {_titled(family)}", *_sizes(some), _table(some, found)]
        bars += list(_judged(family, some, found))
    return Section("Quick plans", paragraphs, bars)


def _chosen() -> list[Case]:
    only = os.environ.get("QUICK_PLANS_FAMILIES")
    names = None if only is None else only.split(",")
    found = [case for case in cases() if names is None or case["family"] in names]
    if not found:
        told = ", ".join(dict.fromkeys(case["family"] for case in cases()))
        raise SystemExit(f"QUICK_PLANS_FAMILIES={only}: no such family; there are: {told}")
    return found


# --- who works on it ----------------------------------------------------------------------------


class Worker:
    """A process with one version of the package; started anew if a case takes it down."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.process: subprocess.Popen[str] | None = None

    def ask(self, case: Case) -> Answer:
        process = self.process or self._started()
        assert process.stdin is not None
        process.stdin.write(json.dumps(case) + "\n")
        process.stdin.flush()
        answer = self._line(process)
        if answer is None:
            self.process = None
            return {"error": f"the process ended with code {process.wait()}"}
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate()
            self.process = None

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, str(HERE / "plan_worker.py")]
        paths = [str(self.source), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        pipe = subprocess.PIPE
        started = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        self.process = started
        told = self._line(started)
        if told is None or not Path(told["package"]).is_relative_to(self.source.resolve()):
            raise RuntimeError(f"a worker should use {self.source}, but says {told}")
        return started

    @staticmethod
    def _line(process: subprocess.Popen[str]) -> Answer | None:
        assert process.stdout is not None
        line = process.stdout.readline()
        return json.loads(line) if line else None


def _answers(chosen: Sequence[Case]) -> dict[str, Answers]:
    """What everyone answers, by contestant and the name of the case."""
    with ExitStack() as stack:
        askers = _askers(stack)
        found: dict[str, Answers] = {name: {} for name in askers}
        for case in chosen:
            for name, ask in askers.items():
                print(f"quick_plans: {case['name']}: {name} ...", file=sys.stderr, flush=True)
                answer = ask(case)
                if answer is not None:
                    found[name][case["name"]] = answer
    if BEFORE in found:
        _keep(found[BEFORE])
    elif KEPT.exists():
        found[BEFORE] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def _left_out(contestant: str) -> bool:
    """Whether a contestant is not run."""
    asked = os.environ.get("QUICK_PLANS")
    return asked == "ours" or (asked == "kept" and contestant == BEFORE)


def _askers(stack: ExitStack) -> dict[str, Callable[[Case], Answer | None]]:
    ours = Worker(HERE.parent / "src")
    stack.callback(ours.close)
    askers: dict[str, Callable[[Case], Answer | None]] = {OURS: ours.ask}
    source = None if _left_out(BEFORE) else source_at(REVISION, stack)
    if source is not None:
        before = Worker(source)
        stack.callback(before.close)
        askers[BEFORE] = lambda case: before.ask(_patient(case))
    if not _left_out("HiGHS"):
        askers["HiGHS"] = lambda case: _rival("HiGHS", case)
    if not _left_out("SCIP") and find_spec("pyscipopt"):
        askers["SCIP"] = lambda case: _rival("SCIP", case)
    return askers


def _patient(case: Case) -> Case:
    limit = BEFORE_LIMIT.get(case["family"])
    if limit is None:
        return case
    return {**case, "request": {"time_limit": limit, **case["request"]}}


def _rival(name: str, case: Case) -> Answer | None:
    if case["family"] not in HELD_AGAINST:
        return None
    model = {"table": case["table"], **case["request"]}
    asked = {"rival": name, "model": model, "time_limit": RIVAL_LIMIT}
    try:
        answer = in_fresh_process(HERE / "plan_rivals.py", asked)
    except RuntimeError as error:
        return {"error": str(error)}
    return {**answer, "wall": [answer["wall"]], "cpu": [answer["cpu"]]}


def _keep(answers: Answers) -> None:
    old = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    CACHE.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(old | answers, indent=1), encoding="utf-8")


# --- what is told -------------------------------------------------------------------------------


def _how(found: Mapping[str, Answers]) -> str:
    words = (
        "Unit costs, the whole lattice held to the tolerance on UB. A line names the table, the "
        "tolerance, whether labels are kept or free and what is allowed, and for each contestant "
        "cost; gap between cost and bound; seconds by the clock and, in brackets, of the processor "
        "(medians of 5 runs, by which bars are judged; of 1 where a run takes more than a second). "
        "Counting is not timed."
    )
    if BEFORE in found:
        words += f" The code before is revision {REVISION}, with its default time limit of 60 s"
        words += f" ({BEFORE_LIMIT['tight']:g} s where a gap of 0.01 % is asked for)."
        if _left_out(BEFORE):
            words += " Its answers are kept from an earlier run."
    else:
        words += f" The code before, revision {REVISION}, is not in this clone and was left out."
    rivals = [name for name in ("HiGHS", "SCIP") if name in found]
    if rivals:
        words += (
            f" {' and '.join(rivals)} get {RIVAL_LIMIT:g} s for the same problem, as "
            "`benchmarks/plan_rivals.py` says: SCIP with its products, HiGHS a relaxation for the "
            "bound and the model at the frequencies it finds for a plan."
        )
    return words


TITLES = {
    "adult": "Two labels: Adult by sex and race (10 groups)",
    "tight": "The same at a gap of 0.01 %",
    "compas": "COMPAS (4 groups, 3 labels)",
    "A4 by 4": "A4 with income in the place of marital status, which is the label (4 values)",
    "3–4 labels": "Tables of 3–4 labels and at most 100 cells",
    "5–6 labels": "Tables of 5–6 labels",
    "infeasible": "Requests without a plan: seconds until the reason and what would help are told",
    "time limit": "A time limit of half a second",
    "frontier": "Frontier",
    "whole": "What plans inside: seconds",
}


def _titled(family: str) -> str:
    return TITLES.get(family, family[:1].upper() + family[1:])


def _sizes(some: Sequence[Case]) -> list[str]:
    """Cells, groups that have rows times labels, where the tables of a family differ."""
    names = dict.fromkeys(case["table"] for case in some if "table" in case)
    if len(names) < 2:
        return []
    told = ", ".join(f"{name} ({plan_tables.cells_of(name)})" for name in names)
    return [f"Cells: {told}. How the tables are made: `benchmarks/plan_tables.py`."]


def _table(some: Sequence[Case], found: Mapping[str, Answers]) -> str:
    present = [name for name in found if any(case["name"] in found[name] for case in some)]
    told = _plan_cell if some[0]["kind"] == "plan" else _other_cell
    rows = [
        [case["name"], *(told(found[name].get(case["name"])) for name in present)] for case in some
    ]
    return markdown_table(["case", *present], rows)


def _plan_cell(answer: Answer | None) -> str:
    if answer is None:
        return ""
    seconds = _seconds(answer)
    if answer.get("cost") is None:
        return f"{_without_plan(answer)}, bound {answer.get('bound', 0):,.0f}; {seconds}"
    return f"{answer['cost']:,.0f}; {_gap(answer):.2%}; {seconds}"


def _seconds(answer: Answer) -> str:
    processor = f" ({_median(answer, 'cpu'):.3g})" if "cpu" in answer else ""
    return f"{_median(answer):.3g}{processor} s" if "wall" in answer else "not timed"


def _without_plan(answer: Answer) -> str:
    if "error" in answer:
        return str(answer["error"]).splitlines()[0][:80]
    return "no plan" if answer.get("valid", True) else "not a plan"


def _other_cell(answer: Answer | None) -> str:
    if answer is None:
        return ""
    if "error" in answer:
        return _without_plan(answer)
    told = ""
    if "needed" in answer:
        told = "; " + (", ".join(_helpful(answer["needed"])) or "nothing that helps")
    if "points" in answer:
        gaps = [(cost - bound) / cost for _, cost, bound in answer["points"] if cost]
        told = f"; {len(answer['points'])} points, largest gap {max(gaps):.2%}"
    return _seconds(answer) + told


def _helpful(needed: Mapping[str, Any]) -> Iterator[str]:
    """Changes that would help: options, and the values they need if these can be told in a word."""
    for option, value in needed.items():
        text = f"{value:,.7g}" if isinstance(value, (int, float)) else value
        yield option if text is None else f"{option} {text}"


def _median(answer: Answer, clock: str = "wall") -> float:
    return statistics.median(answer.get(clock) or [math.nan])


def _gap(answer: Answer) -> float:
    """nan if there is no plan, or one that does not reach what was asked for."""
    if answer.get("cost") is None or not answer.get("reached", True):
        return math.nan
    cost = float(answer["cost"])
    return (cost - float(answer["bound"])) / cost if cost else 0.0


# --- what is promised ---------------------------------------------------------------------------

MOST_SECONDS = {  # of the slowest case
    "adult": 0.25,
    "tight": 2,
    "compas": 0.25,
    "5–6 labels": 3,
    "A4": 1,
    "A6": 3,
    "A4 by 4": 3,
    "coupled A4 original": 0.3,
    "coupled A6 original": 5,
    "coupled A4 new": 10,
    "coupled A6 new": 10,
    "frontier": 3,
    "infeasible": 1,
    "time limit": 0.55,
}
MEDIAN_SECONDS = {"adult": 0.1, "3–4 labels": 1}
MOST_GAP = {  # per cent
    "adult": 0.5,
    "tight": 0.01,
    "compas": 0.5,
    "3–4 labels": 2,
    "A4": 0.5,
    "A6": 0.5,
    "coupled A4 original": 1,
    "coupled A6 original": 2.5,
}
DEARER = {"adult": 0.5}  # per cent, than the code before


def _judged(family: str, some: Sequence[Case], found: Mapping[str, Answers]) -> Iterator[Bar]:
    ours = [found[OURS][case["name"]] for case in some]
    seconds = [_median(answer) for answer in ours]
    if family in MEDIAN_SECONDS:
        middle = statistics.median(seconds)
        yield Bar(f"{family}, median", middle, MEDIAN_SECONDS[family], unit=" s")
    if family in MOST_SECONDS:
        yield Bar(f"{family}, slowest", _largest(seconds), MOST_SECONDS[family], unit=" s")
    if family in MOST_GAP:
        gap = 100 * _largest(map(_gap, ours))
        yield Bar(f"{family}, largest gap", gap, MOST_GAP[family], unit=" %")
    if family.endswith(" new"):
        found_none = sum(math.isnan(_gap(answer)) for answer in ours)
        yield Bar(f"{family}, requests without a plan found", found_none, 0, unit="")
    if family == "infeasible":
        yield from _explained(some, ours)
    if BEFORE in found:
        pairs = [
            (answer, found[BEFORE][case["name"]])
            for answer, case in zip(ours, some, strict=True)
            if case["name"] in found[BEFORE]
        ]
        yield from _compared(family, pairs)


def _explained(some: Sequence[Case], ours: Sequence[Answer]) -> Iterator[Bar]:
    silent = sum(not answer.get("needed") for answer in ours)
    yield Bar("infeasible, requests with no change named that helps", silent, 0, unit="")
    for case, answer in zip(some, ours, strict=True):
        if case["table"] == "four small groups":
            rows = answer.get("needed", {}).get("max_rows", math.nan)
            yield Bar(f"infeasible, {case['name']}: rows named", rows, SUFFICES, unit="")


def _compared(family: str, pairs: Sequence[tuple[Answer, Answer]]) -> Iterator[Bar]:
    if family in DEARER:
        more = [
            100 * (o["cost"] / b["cost"] - 1) for o, b in pairs if "cost" in o and b.get("cost")
        ]
        name = f"{family}, dearest beside the code before"
        yield Bar(name, max(more, default=math.nan), DEARER[family], unit=" %")
    if family == "5–6 labels":
        worse = sum(
            not (_gap(o) < _gap(b) or _gap(o) == 0 or math.isnan(_gap(b))) for o, b in pairs
        )
        yield Bar(f"{family}, gaps not smaller than those of the code before", worse, 0, unit="")


def _largest(numbers: Iterable[float]) -> float:
    """nan if one is: a case that was not measured meets no bar."""
    every = list(numbers)
    return math.nan if any(map(math.isnan, every)) else max(every)
