"""The library that draws charts in the browser, taken from the package that draws them elsewhere."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from equipoise import atomic
from equipoise.progress import Reporter, silent
from equipoise.reports.charts.vega import javascript
from equipoise.scratch import cache_folder


def bundle_path() -> Path:
    """Where the library is kept, once it was written."""
    version = importlib.metadata.version("vl-convert-python")
    return cache_folder() / "explore" / f"vega-{version}.js"


def write_bundle(*, progress: Reporter = silent) -> None:
    """Write the library, which takes a second."""
    progress("preparing the charts", 0.0)
    path = bundle_path()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(path, javascript())
