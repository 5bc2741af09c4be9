"""How long to wait before a call is made again, and what its outcome says."""

from collections.abc import Sized
from itertools import islice

import pytest

from scheduler.kube.http.client import AnswerLost, NotSent, Reply
from scheduler.kube.http.retries import Meaning, Outcome, RetryPolicy, meaning_of

POLICY = RetryPolicy(first=0.1, limit=2.0, tries=10)


@pytest.mark.parametrize(
    ("failures", "asked", "chance", "seconds"),
    [
        *((failures, 0.0, 0.5, wait) for failures, wait in enumerate((0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0))),
        pytest.param(0, 0.0, 0.0, 0.075, id="a quarter less, at random"),
        pytest.param(0, 0.0, 1.0, 0.125, id="a quarter more"),
        pytest.param(0, 3.0, 0.5, 3.0, id="the server may ask for more"),
        pytest.param(5, 0.1, 0.5, 2.0, id="but not for less"),
        pytest.param(10**6, 0.0, 0.5, 2.0, id="an outage of days"),
    ],
)
def test_waits_double_up_to_the_limit(failures: int, asked: float, chance: float, seconds: float) -> None:
    assert POLICY.wait(failures, asked, lambda: chance) == pytest.approx(seconds)


def test_kopf_gets_waits_without_end_and_cannot_count_them() -> None:
    assert not isinstance(POLICY, Sized)
    assert len(list(islice(POLICY, 50))) == 50
    assert 0.075 <= next(iter(POLICY)) <= 0.125


@pytest.mark.parametrize(
    ("outcome", "meaning"),
    [
        (Reply(200, b""), Meaning.SETTLED),
        (Reply(302, b""), Meaning.SETTLED),
        (Reply(403, b""), Meaning.SETTLED),
        (Reply(404, b""), Meaning.SETTLED),
        (Reply(409, b""), Meaning.SETTLED),
        (Reply(401, b""), Meaning.AGAIN),
        (Reply(429, b""), Meaning.AGAIN),
        (NotSent("refused"), Meaning.AGAIN),
        (AnswerLost("timeout"), Meaning.DOUBT),
        (Reply(500, b""), Meaning.DOUBT),
        (Reply(504, b""), Meaning.DOUBT),
    ],
)
def test_what_an_outcome_says(outcome: Outcome, meaning: Meaning) -> None:
    assert meaning_of(outcome) is meaning
