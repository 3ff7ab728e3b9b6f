"""Where and with what the numbers were measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "equipoise",
    "duckdb",
    "numpy",
    "scipy",
    "pyarrow",
    "pandas",
    "fairlearn",
    "divexplorer",
    "pyscipopt",
)


def description() -> str:
    """Markdown list: date, CPU, cores, memory, Python, packages."""
    return "\n".join(f"- {name}: {value}" for name, value in _facts())


def _facts() -> Iterator[tuple[str, str]]:
    yield "date", datetime.now(UTC).strftime("%Y-%m-%d")
    yield "CPU", f"{_cpu()}, {os.cpu_count()} cores"
    yield "memory", _memory()
    yield "system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield "packages", ", ".join(f"{name} {_version(name)}" for name in PACKAGES)


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "unknown")


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{total / 2**30:.0f} GiB"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
