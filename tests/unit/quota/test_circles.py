"""No circles: an eviction is not undone by the next decision, and few pods are evicted for each that is placed.

Random demand is played on nodes, with a clock that counts rounds, beside a plain implementation: one that looks at
quota alone, and spares nobody.
"""

from collections.abc import Sequence
from typing import Final

import pytest

from scheduler.quota.dominant import dominant_share
from scheduler.quota.policies import Policy, Preemption
from scheduler.quota.tree import Share
from tests.unit.quota.demand import Decision, Demand, plain

SHARES: Final = (
    Share(name="root"),
    Share(name="left", parent="root", minimum={"gpu": 8}),
    Share(name="a", parent="left", minimum={"gpu": 16}),
    Share(name="b", parent="left", minimum={"gpu": 8}, weight=2),
    Share(name="c", parent="root", minimum={"gpu": 16}, lending_limit={"gpu": 12}),
    Share(name="d", parent="root", minimum={"gpu": 16}),
)
ANY: Final = Preemption(within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.ANY)
LOWER: Final = Preemption(
    within_share=Policy.LOWER_OR_NEWER_EQUAL_PRIORITY,
    reclaim_within_cohort=Policy.LOWER_PRIORITY,
    borrow_within_cohort=True,
)
KINDS: Final = {
    "reclaim from any": (ANY, None),
    "reclaim from lower priority, while borrowing": (LOWER, None),
    "fair sharing": (ANY, dominant_share),
}


def played(kind: str, rounds: int, seed: int = 1) -> Demand:
    preemption, reckon = KINDS[kind]
    demand = Demand(SHARES, dict.fromkeys("abcd", preemption), Demand.reclaim, reckon, seed)
    for _ in range(rounds):
        demand.round()
    return demand


def evictions(demand: Demand) -> float:
    """Return how many pods were evicted for each that was placed at some time."""
    return sum(len(decision.gone) for decision in demand.decisions) / len(demand.placed)


def undone(decisions: Sequence[Decision], *, is_fair: bool = False) -> list[Decision]:
    """Return decisions that evict a pod for one that it had made go away: the next one, or before any pod has ended.

    `is_fair`: only the next one before any pod has ended. What ends, or gives quota back to a third share, changes
    which of two shares borrows more.
    """
    found, made_way = [], dict[str, tuple[int, Decision]]()
    for index, decision in enumerate(decisions):
        for unit in decision.gone:
            before, cause = made_way.pop(unit.uid, (-2, decision))
            is_next, none_ended = before == index - 1, cause.ended == decision.ended
            is_soon = (is_next and none_ended) if is_fair else (is_next or none_ended)
            if is_soon and decision.uid in {each.uid for each in cause.gone}:
                found.append(decision)
        made_way[decision.uid] = index, decision
    return found


def test_ten_thousand_rounds_of_random_demand_undo_no_eviction() -> None:
    demand = played("reclaim from any", 10_000)
    beside = Demand(SHARES, dict.fromkeys("abcd", ANY), plain)
    for _ in range(10_000):
        beside.round()

    assert len(demand.decisions) > 200
    assert undone(demand.decisions) == []
    assert all(decision.is_placed for decision in demand.decisions)
    assert sum(not decision.is_placed for decision in beside.decisions) > len(beside.decisions) / 2
    assert evictions(demand) < 0.5
    assert evictions(beside) > 3 * evictions(demand)
    assert demand.finished >= beside.finished
    check_rest(demand)


@pytest.mark.parametrize("kind", list(KINDS)[1:])
def test_no_policy_undoes_evictions(kind: str) -> None:
    demand = played(kind, 2_000)

    assert len(demand.decisions) > 40
    assert undone(demand.decisions, is_fair=kind == "fair sharing") == []
    assert all(decision.is_placed for decision in demand.decisions)
    check_rest(demand)


@pytest.mark.programs
@pytest.mark.parametrize("seed", range(5, 8))
@pytest.mark.parametrize("kind", KINDS)
def test_no_policy_undoes_evictions_for_long(kind: str, seed: int) -> None:
    demand = played(kind, 10_000, seed)

    assert undone(demand.decisions, is_fair=kind == "fair sharing") == []
    assert evictions(demand) < 0.7
    check_rest(demand)


def check_rest(demand: Demand) -> None:
    """Let nothing end and nothing come: evictions stop, and nobody who was evicted for evicts in turn."""
    before = len(demand.decisions)
    while demand.decide():
        assert len(demand.decisions) - before < 100

    since = demand.decisions[before:]
    assert not {decision.uid for decision in since} & {unit.uid for decision in since for unit in decision.gone}
