"""Names that somebody may have meant."""

import pytest

from scheduler.api.wording.near_names import MAX_LOOKED_UP, near_names


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
