"""One place writes the page of every result."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.reports import pages
from equipoise.reports.bias import page as bias_page
from equipoise.results import Drawable
from reports.tables import hiring

SUBJECTS = {
    folder.name for folder in Path(pages.__file__).parent.iterdir() if (folder / "page.py").exists()
}


def drawable(kind=Drawable):
    return {kind.__name__, *(name for sub in kind.__subclasses__() for name in drawable(sub))}


def test_every_folder_with_a_page_is_registered_with_the_name_of_a_result():
    assert set(pages.SUBJECTS.values()) == SUBJECTS
    for name in eq.__all__:
        getattr(eq, name)
    importlib.import_module("equipoise.evaluation.missing.comparison")
    assert pages.SUBJECTS.keys() <= drawable()


@pytest.mark.parametrize("subject", sorted(SUBJECTS))
def test_every_page_is_rendered_and_plotted_by_functions_of_one_name(subject):
    page = importlib.import_module(f"equipoise.reports.{subject}.page")
    assert callable(page.render)
    assert callable(page.plot)


def test_a_page_is_written_atomically(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(bias_page, "render", broken)
    with pytest.raises(RuntimeError):
        eq.report(hiring(), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
