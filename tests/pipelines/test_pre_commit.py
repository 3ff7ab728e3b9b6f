"""The hooks, run by pre-commit itself in a repository of git; none of them installs anything."""

from __future__ import annotations

import shutil

import pytest

from loans import EXAMPLES, ROOT, prepare, require_tool, run, surroundings, write_day

pytestmark = pytest.mark.slow
HOOKS = ROOT / ".pre-commit-hooks.yaml"


@pytest.fixture
def repository(tmp_path):
    """A function that runs a program in a repository with the configuration of the examples."""
    tool = require_tool("pre-commit")
    folder = prepare(tmp_path / "repository")
    shutil.copy(EXAMPLES / "pre-commit" / ".pre-commit-config.yaml", folder)
    known = surroundings(
        tmp_path,
        PRE_COMMIT_HOME=str(tmp_path / "cache"),
        PIP_NO_INDEX="1",  # a hook that wants to install something fails
        GIT_CONFIG_GLOBAL="/dev/null",
        GIT_CONFIG_NOSYSTEM="1",
        **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    )  # fmt: skip

    def work(program, *arguments, where=folder):
        program = str(tool) if program == "pre-commit" else program
        return run([program, *arguments], where, known)

    assert work("git", "init", "-q").returncode == 0
    work.folder = folder
    return work


def commit(repository):
    repository("git", "add", "--all")
    return repository("git", "commit", "-m", "data")


def test_commits_of_biased_data_are_refused(repository):
    assert repository("pre-commit", "install").returncode == 0
    write_day(repository.folder / "data" / "quiet.csv", "quiet")
    done = commit(repository)
    assert done.returncode == 0, done.stderr
    assert "are inside their limits" in done.stderr
    for name in ("more biased.csv", "other.csv"):
        write_day(repository.folder / "data" / name, "biased" if "biased" in name else "quiet")
    done = commit(repository)
    assert done.returncode == 1
    assert "12 of 16 group and label pairs checked are outside their limits" in done.stderr
    assert repository("git", "log", "--format=%s").stdout == "data\n"


def test_commits_of_too_few_rows_are_made_with_a_remark(repository):
    repository("pre-commit", "install")
    write_day(repository.folder / "data" / "few.csv", "few")
    done = commit(repository)
    assert done.returncode == 0, done.stderr
    assert "data/few.csv: not enough evidence" in done.stderr


def test_commits_of_other_files_check_nothing(repository):
    repository("pre-commit", "install")
    write_day(repository.folder / "elsewhere" / "biased.csv", "biased")
    done = commit(repository)
    assert done.returncode == 0, done.stderr
    assert "no files to check" in done.stderr


def test_a_file_that_cannot_be_read_is_refused(repository):
    repository("pre-commit", "install")
    (repository.folder / "data").mkdir()
    (repository.folder / "data" / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    done = commit(repository)
    assert done.returncode == 1
    assert "exit code: 2" in done.stderr
    assert "column 'sex' not found" in done.stderr


@pytest.mark.parametrize(("kind", "code"), [("quiet", 0), ("biased", 1)])
def test_this_project_can_be_used_as_a_hook(repository, tmp_path, kind, code):
    """Its hook is tried with `equipoise` from PATH, where pre-commit would install this project."""
    assert repository("pre-commit", "validate-manifest", str(HOOKS)).returncode == 0
    project = tmp_path / "project"
    project.mkdir()
    manifest = HOOKS.read_text(encoding="utf-8")
    assert manifest.count("language: python") == 1
    installed = manifest.replace("language: python", "language: system")
    (project / HOOKS.name).write_text(installed, encoding="utf-8")
    for command in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", "hooks"]):
        assert repository("git", *command, where=project).returncode == 0
    write_day(repository.folder / "data" / "day.csv", kind)
    repository("git", "add", "--all")
    done = repository("pre-commit", "try-repo", str(project), "equipoise-check", "--all-files")
    assert done.returncode == code, done.stdout + done.stderr
    assert ("outside their limits" if code else "inside their limits") in done.stdout
