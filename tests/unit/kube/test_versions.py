"""Versions that are run together."""

import pytest

from scheduler.kube.versions import NEWEST, OLDEST, distance, minor_of, version_problem


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ("v1.36.3", (1, 36)),
        ("0.2.0", (0, 2)),
        ("v1.36.3-gke.1+x", (1, 36)),
        ("1", None),
        ("", None),
        ("v1.99999", None),
    ],
)
def test_a_version_has_a_minor_one_or_is_none(text: str, minor: tuple[int, int] | None) -> None:
    assert minor_of(text) == minor


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("0.2.0", "0.2.9", 0), ("0.2.0", "0.4.0", 2), ("0.9.0", "1.0.0", 109), ("?", "0.4.0", 0)],
)
def test_minor_versions_are_counted(one: str, other: str, apart: int) -> None:
    assert distance(one, other) == distance(other, one) == apart


@pytest.mark.parametrize("minor", [OLDEST, NEWEST])
def test_the_first_and_the_last_tested_version_are_all_right(minor: tuple[int, int]) -> None:
    assert version_problem(f"v{minor[0]}.{minor[1]}.0") == ""


@pytest.mark.parametrize(
    ("version", "words"),
    [("v1.33.9", "older than the oldest"), ("v1.38.0", "newer than the newest"), ("banana", "cannot be read")],
)
def test_another_one_is_named(version: str, words: str) -> None:
    assert words in version_problem(version)
