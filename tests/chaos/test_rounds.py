"""Rounds of chaos: `make chaos ROUNDS=200` plays more of them, and SEED=4943 ROUND=n one of these again."""

import pytest

from tests.chaos.conftest import Play
from tests.chaos.plan import plan_round

SEED = 4943
ROUNDS = 8
"""With few seeds so few rounds have a fault of each kind."""


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_what_is_promised_holds_after_a_round_of_chaos(play: Play, number: int) -> None:
    outcome = play(plan_round(SEED, number))

    assert outcome.violations == [], str(outcome.plan)
    assert outcome.bound > 0
