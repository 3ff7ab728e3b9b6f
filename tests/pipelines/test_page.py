"""The page shows the files that the other tests run, and all of them."""

from __future__ import annotations

import re

import yaml

from loans import EXAMPLES, ROOT

PAGE = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
FILES = [
    ROOT / ".pre-commit-hooks.yaml",
    *sorted(p for p in EXAMPLES.rglob("*") if p.is_file() and "__pycache__" not in p.parts),
]


def test_the_page_shows_every_file_as_it_is():
    assert {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in FILES} == SHOWN


def test_the_local_hook_runs_what_the_hook_of_this_project_runs():
    (ours,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    config = (EXAMPLES / "pre-commit" / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    ((local,),) = (repo["hooks"] for repo in yaml.safe_load(config)["repos"])
    differing = {"description", "language", "files"}
    assert {k: v for k, v in ours.items() if k not in differing} == {
        k: v for k, v in local.items() if k not in differing
    }
