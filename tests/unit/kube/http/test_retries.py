"""How long to wait before a call is made again, and what its outcome says."""

from collections.abc import Sized
from itertools import islice

import pytest

from scheduler.kube.http.client import AnswerLost, NotSent, Reply
from scheduler.kube.http.retries import Meaning, Outcome, RetryPolicy, meaning_of

POLICY = RetryPolicy(first=0.1, limit=2.0, tries=10)


def middle() -> float:
    return 0.5


def test_waits_double_up_to_the_limit() -> None:
    waits = [POLICY.wait(failures, chance=middle) for failures in range(7)]

    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])


def test_waits_differ_at_random_by_a_quarter() -> None:
    assert POLICY.wait(0, chance=lambda: 0.0) == pytest.approx(0.075)
    assert POLICY.wait(0, chance=lambda: 1.0) == pytest.approx(0.125)


def test_the_server_may_ask_for_more_but_not_for_less() -> None:
    assert POLICY.wait(0, 3.0, middle) == 3.0
    assert POLICY.wait(5, 0.1, middle) == 2.0


def test_an_outage_of_days_still_has_a_wait() -> None:
    assert POLICY.wait(10**6, chance=middle) == 2.0


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
