"""The package as it was at an earlier revision, to be measured beside the present one."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from contextlib import ExitStack
from pathlib import Path

from data import HERE


def source_at(revision: str, stack: ExitStack) -> Path | None:
    """The sources of a revision, in a folder of its own; None if this clone does not know it."""
    command = ["git", "-C", str(HERE.parent), "archive", revision, "src"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        return None
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"
