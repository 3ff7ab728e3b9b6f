"""The documentation site has every page, and the notebooks are those of their pages."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import build_site
import pytest

TOOL = Path(__file__).parent.parent / "tools" / "build_notebooks.py"
NOTEBOOKS = sorted(build_site.ROOT.glob("docs/notebooks/*.ipynb"))


def test_examples_of_the_tool():
    assert doctest.testmod(build_site) == (0, 2)


def test_every_page_is_listed_and_every_listed_page_is_there():
    assert set(build_site._listed(build_site._settings()["nav"])) == set(build_site.pages())


def test_links_lead_to_pages_of_the_site():
    pages = build_site.pages()
    places = {*pages, *build_site.files()}
    for name, text in pages.items():
        for _, target, _ in build_site._LINK.findall(
            re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        ):
            place = (Path("/") / name).parent / target
            assert str(place.resolve().relative_to("/")) in places, f"{name} links to {target}"


def test_a_page_of_a_notebook_shows_its_outputs():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Text."]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]},
        {"cell_type": "code", "source": ["print(3)"], "outputs": [{"text": ["3\n"]}]},
        {
            "cell_type": "code",
            "source": ["table"],
            "outputs": [{"data": {"text/html": ["<p>a</p>\n", "\n", "<p>b</p>"]}}],
        },
    ]
    page = build_site.notebook_page({"cells": cells}, "x.ipynb")
    assert page.startswith("# Title\n\n[Download this page as a notebook](x.ipynb)\n\nText.\n")
    assert "```python\n1 + 1\n```\n\n```text\n2\n```" in page
    assert "```python\nprint(3)\n```\n\n```text\n3\n```" in page
    assert "<div><p>a</p>\n<p>b</p></div>" in page


def test_nothing_is_loaded_from_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(build_site, "SITE", tmp_path)
    monkeypatch.setattr(build_site, "ROOT", tmp_path.parent)
    page = tmp_path / "index.html"
    page.write_text('<a href="https://example.org">x</a><script src="a.js"></script>', "utf-8")
    build_site.refuse_elsewhere()
    page.write_text('<script async src="https://example.org/x.js"></script>', "utf-8")
    with pytest.raises(SystemExit, match=r"index\.html loads .*example"):
        build_site.refuse_elsewhere()


def test_there_is_a_notebook_for_every_audience():
    assert [path.stem for path in NOTEBOOKS] == [
        "compliance_analyst",
        "data_engineer",
        "data_scientist",
    ]


@pytest.mark.parametrize("how", ["--check", pytest.param("--run", marks=pytest.mark.slow)])
def test_notebooks_are_up_to_date(how):
    pytest.importorskip("nbclient", reason="make setup")
    done = subprocess.run([sys.executable, TOOL, how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
