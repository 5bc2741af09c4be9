"""The pages about the design name files that exist."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = [ROOT / "docs" / "architecture.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
FILES: Final = [
    f"/{path.relative_to(ROOT)}" for top in ("scheduler", "plugins", "tests") for path in (ROOT / top).rglob("*")
]
PATTERN: Final = "/commands/X.py"
"""Stands for a module of each command."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_file_that_the_page_names_is_there(page: Path) -> None:
    named = {f"/{name}" for name in re.findall(r"`([\w./]+\.(?:py|js|yaml))`", page.read_text(encoding="utf-8"))}

    assert [name for name in sorted(named - {PATTERN}) if not any(path.endswith(name) for path in FILES)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_folder_that_the_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`((?:scheduler|plugins|tests|charts|deploy)/[\w./-]*)`", page.read_text(encoding="utf-8"))

    assert [name for name in named if not (ROOT / name).exists()] == []
