"""Options are declared once: requests, flags, keywords and pages follow from the declaration."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import click
import options_docs
import pytest

from equipoise.cli.app import cli
from equipoise.errors import InputError
from equipoise.options import GROUPS, options_of
from equipoise.options.audit import AuditOptions
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions
from equipoise.options.measure import MeasureOptions
from equipoise.options.monitor import BatchOptions, WatchOptions, WindowOptions, ZoneOptions
from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, IndexOptions, SearchRequest

ROOT = Path(__file__).parent.parent
REQUESTS = [
    *(CountRequest, ReadOptions, RunOptions, MeasureOptions, PlanOptions, SearchRequest),
    *(
        AcquisitionLimits,
        IndexOptions,
        RunningOptions,
        FeatureOptions,
        EvaluationOptions,
        AuditOptions,
        BatchOptions,
        WatchOptions,
        WindowOptions,
        ZoneOptions,
    ),
]
USED = {
    "measure": [CountRequest, ReadOptions, MeasureOptions],
    "plan": [CountRequest, ReadOptions, PlanOptions],
    "acquire": [SearchRequest, AcquisitionLimits],
    "report": [AuditOptions, ReadOptions],
    "evaluate": [CountRequest, RunningOptions, FeatureOptions, EvaluationOptions],
}


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.__name__)
def test_every_option_says_what_it_is(request_):
    assert options_of(request_)
    for option in options_of(request_):
        assert option.group in GROUPS
        assert option.help[0].isupper()
        assert option.help.endswith("."), option.help
        assert "--" not in option.help


@pytest.mark.parametrize("name", USED)
def test_a_command_has_the_options_of_its_requests(name):
    with click.Context(cli) as context:
        command = cli.get_command(context, name)
    known = {p.name: p for p in command.params}
    for request in USED[name]:
        for option in options_of(request):
            if option.flags is None:
                assert option.keyword not in known
                continue
            assert known[option.keyword].group in (option.group, "Common options")
            shown = isinstance(option.default, (int, float, str)) and not option.is_switch
            if shown and option.form is None:
                assert known[option.keyword].default == option.default


@pytest.mark.parametrize(
    ("request_", "wrong", "error"),
    [
        (
            PlanOptions,
            {"tolerance": -1},
            "`tolerance` must be a finite number of at least 0, not -1.",
        ),
        (PlanOptions, {"time_limit": 0}, "`time_limit` must be a number above 0, not 0."),
        (PlanOptions, {"allow": "bth"}, r"one of 'add', 'delete', 'both', not 'bth'. Did you mean"),
        (MeasureOptions, {"min_count": 1.5}, "must be a whole number of at least 1, not 1.5."),
        (MeasureOptions, {"confidence": True}, "a number above 0 and below 1, not True."),
        (SearchRequest, {"min_confidence": 2}, "of at least 0 and of at most 1, not 2."),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_shape(request_, wrong, error):
    with pytest.raises(InputError, match=error):
        request_(**wrong)
    assert dataclasses.is_dataclass(request_())


FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def test_types_of_keywords_are_up_to_date():
    tool = ROOT / "tools" / "build_keywords.py"
    done = subprocess.run(
        [sys.executable, tool, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_options_is_up_to_date_and_complete():
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == options_docs.page()
    assert {r for requests in options_docs.USES.values() for r in requests} == set(REQUESTS)


def test_mypy_knows_the_keywords_of_public_functions(tmp_path):
    pytest.importorskip("mypy", reason="make setup")
    snippet = tmp_path / "snippet.py"
    snippet.write_text(
        "import equipoise as eq\n"
        "eq.plan('adult', min_rows=3, na='?')\n"
        "eq.plan('adult', min_row=3)\n"
        "eq.measure('adult', missing='dorp')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    done = subprocess.run(
        [*command, str(snippet)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    errors = [
        line for line in done.stdout.splitlines() if "snippet.py" in line and ": error:" in line
    ]
    assert [line.split(":")[1] for line in errors] == ["3", "4"], done.stdout
