"""The pictures of the explorer are those that the tool takes, and small."""

from __future__ import annotations

import struct

import build_pictures
import pytest

PAGES = [build_pictures.ROOT / "docs" / "explore.md", build_pictures.ROOT / "README.md"]
NAMES = {*build_pictures.ASKED, "meaning", "repair"}


def test_there_is_a_picture_of_everything():
    assert {path.name for path in build_pictures.PICTURES.iterdir()} == {
        f"explore-{name}.png" for name in NAMES
    }


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_picture_is_small_and_shown(name):
    path = build_pictures.PICTURES / f"explore-{name}.png"
    content = path.read_bytes()
    assert struct.unpack(">II", content[16:24]) == (1280, 900)
    assert len(content) < 200_000
    assert any(f"pictures/{path.name}" in page.read_text("utf-8") for page in PAGES)
