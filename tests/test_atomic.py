"""Files are whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from equipoise.atomic import atomic_path, write_text
from equipoise.errors import InputError


def test_a_file_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "a.csv"
    with atomic_path(target) as temporary:
        temporary.write_text("whole", "utf-8")
        assert not target.exists()
        assert temporary.parent == tmp_path  # or the move might be a copy
        assert temporary.suffix == ".csv"  # writers look at the ending
    assert target.read_text("utf-8") == "whole"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existed", [True, False])
def test_an_error_leaves_the_old_file_or_none(tmp_path, error, existed):
    target = tmp_path / "a.csv"
    if existed:
        target.write_text("old", "utf-8")
    with pytest.raises(error), atomic_path(target) as temporary:  # noqa: PT012 (it is the point)
        temporary.write_text("half", "utf-8")
        raise error
    assert [p.read_text("utf-8") for p in tmp_path.iterdir()] == (["old"] if existed else [])


def test_a_writer_that_took_the_temporary_file_away(tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("old", "utf-8")
    with pytest.raises(FileNotFoundError), atomic_path(target) as temporary:
        temporary.unlink()
    assert target.read_text("utf-8") == "old"


def test_a_move_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text(tmp_path / "a.txt", "x")
    assert list(tmp_path.iterdir()) == []


def test_write_text_writes_utf8_and_replaces(tmp_path):
    target = tmp_path / "ü.txt"
    write_text(target, "old")
    write_text(str(target), "né\r\n👩")
    assert target.read_bytes() == "né\r\n👩".encode()
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_are_those_of_other_files(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_a_folder_in_the_way(tmp_path):
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        write_text(tmp_path, "x")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_text(tmp_path / "no" / "a.txt", "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address", ["s3://ann:geheim@bucket/a.html", Path("s3://ann:geheim@bucket/a.html")]
)
def test_an_address_is_not_called_a_folder(address):
    with pytest.raises(
        InputError, match=r"^s3://ann@bucket/a\.html cannot be written, since addresses are only"
    ):
        write_text(address, "x")


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError

    monkeypatch.setattr("tempfile.mkstemp", refuse)  # not by chmod: root may write everywhere
    with pytest.raises(InputError, match="cannot be written to; choose another folder"):
        write_text(tmp_path / "a.txt", "x")


def test_many_writers_of_one_file_leave_one_whole_file(tmp_path):
    import threading

    target = tmp_path / "a.txt"
    whole = [str(i) * 10_000 for i in range(8)]
    threads = [threading.Thread(target=write_text, args=(target, text)) for text in whole]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text("utf-8") in whole
    assert list(tmp_path.iterdir()) == [target]


def test_a_text_is_not_written_under_its_extension(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Path, "write_text", lambda self, *_, **__: seen.append(self.name))
    write_text(tmp_path / "bias.prom", "text")
    assert [name.endswith(".prom") for name in seen] == [False]
