"""Make an executed notebook of every page in docs/notebooks/.

python tools/build_notebooks.py            run the code of the pages, write the notebooks
python tools/build_notebooks.py --check    only say whether they are up to date, without running them
python tools/build_notebooks.py --run      run them, and say whether they would be written as they are

A page is Markdown: its blocks of Python become the cells of code, the text between them the rest.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

PAGES = Path(__file__).parent.parent / "docs" / "notebooks"
_CODE = re.compile(r"^```python\n(.*?)\n```\n", re.DOTALL | re.MULTILINE)


def main() -> int:
    """Write or compare the notebook of every page."""
    stale = []
    for page in sorted(PAGES.glob("*.md")):
        path = page.with_suffix(".ipynb")
        notebook = notebook_of(page.read_text(encoding="utf-8"))
        if "--check" in sys.argv:
            same = path.exists() and _sources(_read(path)) == _sources(notebook)
        else:
            execute(notebook)
            same = path.exists() and _shown(_read(path)) == _shown(notebook)
        if same:
            continue
        stale.append(path.name)
        if {"--check", "--run"}.isdisjoint(sys.argv):
            nbformat.write(notebook, path)
            print(f"wrote docs/notebooks/{path.name}")
        else:
            print(f"docs/notebooks/{path.name} is not up to date; run make notebooks")
    return 1 if stale and not {"--check", "--run"}.isdisjoint(sys.argv) else 0


def notebook_of(text: str) -> nbformat.NotebookNode:
    r"""Cells of a page, not yet run.

    >>> notebook = notebook_of("# Title\n\n```python\n1 + 1\n```\n\nThe end.\n")
    >>> [(cell.cell_type, cell.source) for cell in notebook.cells]
    [('markdown', '# Title'), ('code', '1 + 1'), ('markdown', 'The end.')]
    """
    cells = []
    for number, part in enumerate(_CODE.split(text)):
        if number % 2:
            cells.append(nbformat.v4.new_code_cell(part))
        elif part.strip():
            cells.append(nbformat.v4.new_markdown_cell(part.strip()))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # random otherwise, and the file would differ every time
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def execute(notebook: nbformat.NotebookNode) -> None:
    """Run the cells in an empty folder, and leave only what readers see."""
    with tempfile.TemporaryDirectory() as folder:
        # Settings of the person who runs this must not show in the notebook.
        homes = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        os.environ |= dict.fromkeys(homes, folder)
        client = nbclient.NotebookClient(
            notebook,
            timeout=300,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if {"text/html", "image/svg+xml"} & set(data):
                del data["text/plain"]  # readers do not see it, and it can be long


def _read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def _shown(notebook: nbformat.NotebookNode) -> list[Any]:
    """Sources and outputs; of pictures only that there is one, since fonts differ by machine."""
    cells = []
    for cell in notebook.cells:
        outputs = [(o.get("text"), dict(o.get("data", {}))) for o in cell.get("outputs", [])]
        for _, data in outputs:
            if "image/svg+xml" in data:
                data["image/svg+xml"] = "a picture"
        cells.append((cell.cell_type, cell.source, outputs))
    return cells


def _sources(notebook: nbformat.NotebookNode) -> list[tuple[str, Any]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


if __name__ == "__main__":
    sys.exit(main())
