"""What the tests themselves call is repeated until there is an answer."""

from collections.abc import Awaitable, Callable

import orjson
import pytest

from tests.chaos import persistence
from tests.chaos.persistence import insist
from tests.controlplane import ApiError, ApiUnreachable


def answering(*outcomes: object) -> Callable[[], Awaitable[object]]:
    """A call with these outcomes in turn; exceptions are raised."""
    left = list(outcomes)

    async def call() -> object:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return call


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "PAUSE_SECONDS", 0)


@pytest.mark.parametrize("passing", [ApiUnreachable("away"), ApiError(503, "ServiceUnavailable", "later")])
async def test_a_call_is_repeated_while_there_is_no_answer(passing: Exception) -> None:
    assert await insist(answering(passing, passing, "done")) == "done"


@pytest.mark.parametrize(
    "settled",
    [ApiError(404, "NotFound", "gone"), ApiError(409, "Conflict", "there"), orjson.JSONDecodeError("odd", "x", 0)],
)
async def test_a_call_that_has_nothing_to_do_or_whose_answer_is_too_odd_is_not_repeated(settled: Exception) -> None:
    assert await insist(answering(settled)) is None


async def test_a_refusal_is_a_mistake_of_the_tests() -> None:
    with pytest.raises(ApiError):
        await insist(answering(ApiError(403, "Forbidden", "you may not")))
