"""Kueue's tables of who is preempted, by the path of the plugin: classical preemption, in hierarchies, fair sharing."""

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.quota.dominant import Ancestry, dominant_share
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.fair_targets import Piles, Reckon, Targets
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, may_evict
from scheduler.quota.tree import ShareTree
from tests.unit.quota.kueue import preemptions_of, preemptor_of, tree_of, units_of
from tests.unit.quota.reclaiming import Reclaiming, a_ledger
from tests.unit.quota.tables import of_cases, table

CLASSICAL, ORDER = table("kueue_preemption"), table("kueue_preemption_order")


@of_cases(CLASSICAL["cases"])
def test_the_victims_are_those_of_classical_preemption(case: dict[str, Any]) -> None:
    declared = CLASSICAL["trees"][case["shares"]]

    check(case, declared["shares"], declared["preemption"])


@of_cases(table("kueue_hierarchical_preemption")["cases"])
def test_the_victims_are_those_of_preemption_in_hierarchies(case: dict[str, Any]) -> None:
    check(case, case["shares"], case["preemption"])


@of_cases(table("kueue_fair_preemption")["cases"])
def test_the_victims_are_those_of_fair_sharing(case: dict[str, Any]) -> None:
    check(case, case["shares"], case["preemption"], dominant_share)


def check(
    case: Mapping[str, Any], shares: Mapping[str, Any], preemptions: Mapping[str, Any], reckon: Reckon | None = None
) -> None:
    units = units_of(case["units"])
    tree = tree_of(shares, units)
    before = usage(tree)

    reclaiming = Reclaiming(a_ledger(tree, preemptions_of(preemptions)), units, reckon)
    victims = reclaiming.victims(preemptor_of(case), leaving=case.get("leaving", ()))

    assert {unit.uid for unit in victims} == case.get("here", case["victims"]).keys()
    assert usage(tree) == before


def usage(tree: ShareTree) -> dict[tuple[str, str], int]:
    return {(name, resource): tree.usage(name, resource) for name in tree.shares for resource in tree.resources}


@of_cases(ORDER["orders"])
def test_candidates_come_in_the_order_of_kueue(case: dict[str, Any]) -> None:
    units = units_of(case["units"])

    found = sorted(units, key=lambda unit: (unit.share == "preemptor", *unit.order))

    assert [unit.uid for unit in found] == case["order"]


@pytest.mark.parametrize(
    ("policy", "preemptor", "unit", "may"), argvalues=ORDER["policies"].values(), ids=ORDER["policies"]
)
def test_a_policy_allows_what_it_allows_in_kueue(policy: str, preemptor: list[int], unit: list[int], may: bool) -> None:
    claims = Preemptor(share="a", request={}, priority=preemptor[0], queued_at=preemptor[1])
    runs = QuotaUnit(uid="unit", share="b", usage={}, priority=unit[0], queued_at=unit[1])

    assert may_evict(Policy(policy), claims, runs) == may


@of_cases(ORDER["targets"])
def test_victims_come_from_the_shares_in_the_order_of_kueue(case: dict[str, Any]) -> None:
    units = units_of(case["units"])
    piles = Piles(lambda share: [unit for unit in units if unit.share == share])
    tree = tree_of(case["shares"], units)
    targets = Targets(tree, Ancestry(tree, case["preemptor"]), piles)

    order = []
    for share in targets:
        order.append(share)
        if share in case.get("drops", ()):
            targets.drop(share)
        else:
            piles.pop(share)

    assert order == case["order"]
