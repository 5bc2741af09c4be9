"""The first screen of the README: what Loadmaster adds, with a picture, and one command to see it work."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN: Final = "\n".join(README.splitlines()[:40])


@pytest.mark.parametrize("page", ["groups", "quota", "explain", "simulate", "plugins"])
def test_the_first_screen_links_what_loadmaster_adds(page: str) -> None:
    assert f"](docs/{page}.md)" in FIRST_SCREEN


def test_the_first_screen_has_a_picture_and_one_command_to_try() -> None:
    (picture,) = re.findall(r"!\[[^]]+\]\((.+?)\)", FIRST_SCREEN)

    assert (ROOT / picture).is_file()
    assert "make demo" in FIRST_SCREEN


def test_more_begins_with_what_users_come_for() -> None:
    rows = re.findall(r"^\| \[docs/([\w-]+)\.md\]", README, re.MULTILINE)

    assert rows[:5] == ["explain", "simulate", "groups", "quota", "plugins"]
