"""Build the distributions, install the wheel where nothing else is, and use it there.

python tools/check_wheel.py                        build, compare, install and use
python tools/check_wheel.py --only core,charts     only in these environments
python tools/check_wheel.py --build                only build, into dist/

The wheel is built twice, from the checkout and from the unpacked source distribution, and both
must be the same file. Then there is an environment for the core dependencies, and one for each
extra alone. Versions and hashes are those of requirements/dev.txt, so nothing is resolved and
nothing unpinned is fetched; tools/wheel_probes.py says what has to work in each environment.
"""
# ruff: noqa: INP001, S603, T201

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.parser import Parser
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements" / "dev.txt"
ENVIRONMENTS = (
    "core",
    "charts",
    "excel",
    "frames",
    "lakehouse",
    "models",
    "postgres",
    "spark",
    "storage",
    "valentine",
    "web",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Build and check; the exit code is that of the first step that fails."""
    asked = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="equipoise-wheel-") as name:
        scratch = Path(name)
        dist = ROOT / "dist" if asked.build else scratch / "dist"
        sdist, wheel = build(ROOT, dist)
        rebuilt = build_from_sdist(sdist, scratch)
        if _sha256(rebuilt) != _sha256(wheel):
            raise SystemExit(f"{sdist.name} does not build the same {wheel.name} as the checkout.")
        print(f"{wheel.name}: the checkout and {sdist.name} build the same file", flush=True)
        if not asked.build:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for line in pool.map(partial(use, wheel, scratch=scratch), asked.only):
                    print(line, flush=True)
    return 0


def use(wheel: Path, extra: str, scratch: Path) -> str:
    """Install the wheel with an extra, do there what the extra is for, and say so."""
    started = time.monotonic()
    python, packages = install(wheel, extra, scratch)
    probe(python, extra, scratch)
    shutil.rmtree(scratch / extra)
    return f"{extra}: works with {packages} packages ({time.monotonic() - started:.0f} s)"


def build(source: Path, dist: Path) -> tuple[Path, Path]:
    """Build both distributions with the pinned backend, without an environment of its own."""
    shutil.rmtree(dist, ignore_errors=True)
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(dist)], cwd=source)
    (sdist,) = dist.glob("*.tar.gz")
    (wheel,) = dist.glob("*.whl")
    return sdist, wheel


def build_from_sdist(sdist: Path, scratch: Path) -> Path:
    """Unpack the source distribution and build the wheel from it alone."""
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "sdist", filter="data")
    (source,) = (scratch / "sdist").iterdir()
    return build(source, scratch / "from-sdist")[1]


def install(wheel: Path, extra: str, scratch: Path) -> tuple[Path, int]:
    """Make an empty environment with the wheel and what it needs for ``extra``, and no more."""
    place = scratch / extra
    venv.create(place)  # without pip: an installer from outside fills it
    python = place / "bin" / "python"
    needed = sorted(closure(wheel, extra))
    requirements = scratch / f"{extra}.txt"
    requirements.write_text("\n".join(locked(needed)), encoding="utf-8")
    installer = _installer(python)
    _run([*installer, "--require-hashes", "--requirement", str(requirements)])
    _run([*installer, str(wheel)])
    return python, len(needed) + 1


def closure(wheel: Path, extra: str) -> set[str]:
    """Names of all packages that the wheel needs, directly or not.

    What a package needs in turn is read off this environment, which has all of the lock.
    """
    found: set[str] = set()
    waiting = list(_applicable(_metadata(wheel), "" if extra == "core" else extra))
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        needs = importlib.metadata.requires(name) or []
        for own in ["", *requirement.extras]:
            waiting += _applicable(needs, own)
    return found


def locked(names: Sequence[str]) -> Iterator[str]:
    """Blocks of the lock, with their hashes, of some packages."""
    blocks = re.split(r"\n(?=\S)", LOCK.read_text(encoding="utf-8"))
    for block in blocks:
        pinned = Requirement(block.split("--hash=")[0].strip(" \\\n"))
        applies = pinned.marker is None or pinned.marker.evaluate()
        if applies and canonicalize_name(pinned.name) in names:
            yield block.rstrip()


def probe(python: Path, extra: str, scratch: Path) -> None:
    """Do there what the extra is for."""
    folder = scratch / f"{extra}-work"
    folder.mkdir()
    probes = Path(__file__).with_name("wheel_probes.py")
    _run([str(python), "-I", "-W", "error", str(probes), extra], cwd=folder)


def _metadata(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    return Parser().parsestr(text).get_all("Requires-Dist", [])


def _applicable(needs: Sequence[str], extra: str) -> Iterator[Requirement]:
    for line in needs:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _installer(python: Path) -> list[str]:
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-deps"]
    return [*pip, "--no-compile", "--disable-pip-version-check"]


def _run(command: Sequence[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"failed: {' '.join(command)}")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Build the distributions and use the wheel.")
    parser.add_argument("--build", action="store_true", help="only build, into dist/")
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=list(ENVIRONMENTS),
        metavar="NAME,NAME",
        help=f"environments to check, of {', '.join(ENVIRONMENTS)}",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
