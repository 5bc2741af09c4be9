"""Names that somebody may have meant."""

import ast
from pathlib import Path

import pytest

from scheduler.api.wording.near_names import MAX_LOOKED_UP, near_names

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        pytest.param("profils", ["profiles", "parallelism"], ["profiles"], id="a misspelt one"),
        pytest.param("Profiles", ["profiles"], ["profiles"], id="one in capitals"),
        pytest.param("profiles", ["profiles", "profile"], ["profile"], id="never the same"),
        pytest.param("profiles", ["profiles"], [], id="not even if there is no other"),
        pytest.param("x" * (MAX_LOOKED_UP + 1), ["x" * MAX_LOOKED_UP], [], id="none for a long one"),
    ],
)
def test_the_nearest_name_is_another_one(name: str, known: list[str], expected: list[str]) -> None:
    assert near_names(name, known) == expected


def test_nobody_looks_for_near_names_in_another_way() -> None:
    looking = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "scheduler").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if "get_close_matches" in (getattr(node, "id", ""), getattr(node, "attr", ""))
    ]

    assert set(looking) == {"scheduler/api/wording/near_names.py"}
