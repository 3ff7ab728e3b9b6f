"""Build the documentation site into site/, and fail on a broken link.

The pages are those of the repository. They are collected in build/docs, with the README as the
first page and links between them rewritten; pages with a notebook show its outputs.
"""
# ruff: noqa: INP001, S603, T201

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
STAGE = ROOT / "build" / "docs"
SITE = ROOT / "site"
PLACES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}
"""Pages outside docs/, and what they are called on the site."""
_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
_ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^ >]*")


def main() -> int:
    """Collect the pages and build the site."""
    shutil.rmtree(STAGE, ignore_errors=True)
    for place, text in sorted(pages().items()):
        (STAGE / place).parent.mkdir(parents=True, exist_ok=True)
        (STAGE / place).write_text(text, encoding="utf-8")
    for file in files():
        shutil.copy(ROOT / "docs" / file, _parent_made(STAGE / file))
    unlisted = {p for p in pages() if p.endswith(".md")} - set(_listed(_settings()["nav"]))
    if unlisted:
        raise SystemExit(f"zensical.toml lists no {', '.join(sorted(unlisted))} under nav.")
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode == 0:
        refuse_elsewhere()
        print(f"{len(pages())} pages in {SITE.name}/; open {SITE.name}/index.html")
    return done.returncode


def pages() -> dict[str, str]:
    """Texts of all pages, by their places on the site."""
    found = {}
    for path in [*(ROOT / "docs").glob("**/*.md"), *(ROOT / name for name in PLACES)]:
        name = path.relative_to(ROOT).as_posix()
        notebook = path.with_suffix(".ipynb")
        if notebook.exists():
            text = notebook_page(json.loads(notebook.read_text(encoding="utf-8")), notebook.name)
        else:
            text = path.read_text(encoding="utf-8")
        found[_place(name)] = relinked(text, name)
    return found


def files() -> Iterator[str]:
    """Other files that pages show or load."""
    for path in sorted((ROOT / "docs").glob("**/*")):
        if path.suffix in {".svg", ".png", ".js", ".ipynb"}:
            yield path.relative_to(ROOT / "docs").as_posix()


def relinked(text: str, name: str) -> str:
    """Rewrite links between files of the repository as links between pages of the site.

    >>> relinked("See [planning](docs/plan.md#costs).", "README.md")
    'See [planning](plan.md#costs).'
    >>> relinked("See [the results](../benchmarks/RESULTS.md).", "docs/lake.md")
    'See [the results](benchmarks.md).'
    """
    here = posixpath.dirname(_place(name))

    def rewrite(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
        if not (target in PLACES or (target.startswith("docs/") and (ROOT / target).is_file())):
            return f"{match[1].lstrip('!')[1:-2]}"  # no page, or a folder: only its words
        return f"{match[1]}{posixpath.relpath(_place(target), here or '.')}{match[3] or ''})"

    return _LINK.sub(rewrite, text)


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    """A page of a notebook, outputs included."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_output(output) for output in cell.get("outputs", [])]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n[Download this page as a notebook]({name})\n{rest}\n"


def _output(output: dict[str, Any]) -> str:
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if "image/svg+xml" in data:
        return f"<div>{data['image/svg+xml']}</div>"
    if "text/html" in data:
        # A blank line would end the block of HTML.
        html = re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)
        return "<div>" + re.sub(r"\n\s*", "\n", html).strip() + "</div>"
    text = "".join(output.get("text", "")) or data["text/plain"]
    return f"```text\n{text.rstrip()}\n```"


def refuse_elsewhere() -> None:
    """Refuse pages that load anything from another place: the site must work offline."""
    for page in SITE.glob("**/*.html"):
        for found in _ELSEWHERE.findall(page.read_text(encoding="utf-8")):
            raise SystemExit(f"{page.relative_to(ROOT)} loads {found}")


def _place(name: str) -> str:
    return PLACES.get(name) or name.removeprefix("docs/")


def _listed(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from _listed(entry)


def _settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]


def _parent_made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    sys.exit(main())
