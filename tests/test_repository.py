from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from equipoise.version import __version__

ROOT = Path(__file__).parent.parent
PROSE = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LOCKS = sorted(ROOT.glob("requirements/*.txt"))

MACHINE_PATH = re.compile(
    r"(?:^|[^A-Za-z0-9_.])/(?:work|tmp|root|opt|farm|home)/[A-Za-z0-9_.]+/", re.MULTILINE
)
REGISTRY_ADDRESS = re.compile(r"https?://[^ )\"'>]*(?:/simple/?|/packages/[0-9a-f]{2}/)")
VERDICT = re.compile(
    r"(?i)\b(?:is|are|be|was|were|become|becomes|stay|stays|now)\s+(?:fair|unbiased|compliant)\b"
)
NEGATION = re.compile(r"(?i)\b(?:not|never|no|nor|neither|nobody|nothing|cannot|without)\b|n't\b")


@pytest.fixture(scope="module")
def repository_files():
    """Files that are tracked, or would be by `git add --all`."""
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    listing = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        run = subprocess.run(listing, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in run.stdout.split("\0") if name and (ROOT / name).is_file()]


def read_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""  # data, not text


def pins(lock):
    """Requirement by name of a lock file; several where Python versions differ."""
    found = {}
    for block in re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8")):
        requirement, *hashes = block.split("--hash=")
        assert hashes, f"{lock.name}: no hash for {requirement}"
        pinned = Requirement(requirement.strip(" \\\n"))
        found.setdefault(canonicalize_name(pinned.name), []).append(pinned)
    return found


def declared(*groups):
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = list(table["project"]["dependencies"])
    for group in groups:
        names += table["dependency-groups"].get(group, [])
        names += table["project"]["optional-dependencies"].get(group, [])
    return [Requirement(name) for name in names if isinstance(name, str)]


def verdicts(text):
    sentences = re.split(r"(?<=[.!?:;])\s+|\n\s*\n", text)
    return [s for s in sentences if VERDICT.search(s) and not NEGATION.search(s)]


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_readme_is_read_in_one_go():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_no_file_names_a_machine_path_or_a_registry(repository_files):
    leaks = [
        f"{path.relative_to(ROOT)}: {match.group().strip()}"
        for path in repository_files
        if path.suffix != ".svg"
        for pattern in (MACHINE_PATH, REGISTRY_ADDRESS)
        for match in pattern.finditer(read_text(path))
    ]
    assert leaks == []


def test_no_lock_with_addresses(repository_files):
    assert [path for path in repository_files if path.name == "uv.lock"] == []


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_prose_hands_out_no_verdict(path):
    assert verdicts(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Afterwards the table is fair. It has 12 rows.", 1),
        ("After this the data\nare compliant", 1),
        ("It never says that data is fair.", 0),
        ("A fair coin is thrown.", 0),
    ],
)
def test_verdicts_are_seen(text, count):
    assert len(verdicts(text)) == count


@pytest.mark.parametrize(
    ("lock", "groups"),
    [
        (
            "dev",
            ["build", "dev", "site", "test", "charts", "excel", "frames", "models", "valentine"],
        ),
        ("bench", ["build", "bench"]),
        ("pipelines", ["build", "pipelines"]),
        ("oldest", ["build", "test", "charts", "excel", "frames", "models", "valentine"]),
    ],
)
def test_lock_pins_what_is_declared(lock, groups):
    pinned = pins(ROOT / "requirements" / f"{lock}.txt")
    for wanted in declared(*groups):
        assert canonicalize_name(wanted.name) in pinned, f"run `make lock`: {wanted} is not pinned"
        for pin in pinned[canonicalize_name(wanted.name)]:
            (version,) = pin.specifier
            assert version.operator == "=="
            assert wanted.specifier.contains(version.version), f"run `make lock`: {wanted}, {pin}"


def test_oldest_pins_the_lowest_versions_that_are_allowed():
    pinned = pins(ROOT / "requirements" / "oldest.txt")
    for wanted in declared("charts", "excel", "frames", "models", "valentine"):
        (lowest,) = (s.version for s in wanted.specifier if s.operator == ">=")
        for pin in pinned[canonicalize_name(wanted.name)]:
            (version,) = pin.specifier
            assert Version(version.version).release[:2] == (*Version(lowest).release, 0)[:2], pin


def test_citation_names_the_software_and_its_paper():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "abstract"} <= set(cited)
    assert cited["type"] == "software"
    assert cited["version"] == __version__
    assert cited["license"] == project["license"]
    paper = cited["preferred-citation"]
    assert {"type", "title", "authors", "year", "doi"} <= set(paper)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    authors = ", ".join(author["family-names"] for author in paper["authors"])
    assert f"*{paper['title']}* ({authors})" in readme


def test_wheel_holds_every_file_of_the_package(repository_files, tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    package = ROOT / "src"
    files = {
        path.relative_to(package).as_posix()
        for path in repository_files
        if path.is_relative_to(package)
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files
    assert packed == files
