"""Kueue's tables of who is preempted, by the path of the plugin: classical preemption, in hierarchies, fair sharing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler.quota.dominant import dominant_share
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.fair_targets import Ancestry, Piles, Reckon, Targets
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, may_evict
from scheduler.quota.tree import ShareTree
from tests.unit.quota.kueue import preemptions_of, preemptor_of, tree_of, units_of
from tests.unit.quota.reclaiming import Reclaiming, a_ledger


def table(name: str) -> Any:
    return json.loads(Path(__file__).with_name(f"kueue_{name}.json").read_text("utf-8"))


CLASSICAL, HIERARCHICAL, FAIR = table("preemption"), table("hierarchical_preemption"), table("fair_preemption")
ORDER = table("preemption_order")


def ids(cases: Mapping[str, Any]) -> dict[str, Any]:
    applying = {name: case for name, case in cases.items() if "not_applicable" not in case}
    return {"argvalues": applying.values(), "ids": applying}


def test_the_tables_are_whole() -> None:
    assert len(CLASSICAL["cases"]) == CLASSICAL["count"] == 36
    assert len(HIERARCHICAL["cases"]) == HIERARCHICAL["count"] == 15
    assert len(FAIR["cases"]) == FAIR["count"] == 38
    assert sum(len(ORDER[each]) for each in ("orders", "policies", "targets")) == ORDER["count"] == 30


@pytest.mark.parametrize("case", **ids(CLASSICAL["cases"]))
def test_the_victims_are_those_of_classical_preemption(case: dict[str, Any]) -> None:
    declared = CLASSICAL["trees"][case["shares"]]

    check(case, declared["shares"], declared["preemption"])


@pytest.mark.parametrize("case", **ids(HIERARCHICAL["cases"]))
def test_the_victims_are_those_of_preemption_in_hierarchies(case: dict[str, Any]) -> None:
    check(case, case["shares"], case["preemption"])


@pytest.mark.parametrize("case", **ids(FAIR["cases"]))
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


@pytest.mark.parametrize("case", **ids(ORDER["orders"]))
def test_candidates_come_in_the_order_of_kueue(case: dict[str, Any]) -> None:
    units = units_of(case["units"])

    found = sorted(units, key=lambda unit: (unit.share == "preemptor", *unit.order))

    assert [unit.uid for unit in found] == case["order"]


def test_what_does_not_apply_or_differs_says_why() -> None:
    cases = [*CLASSICAL["cases"].values(), *HIERARCHICAL["cases"].values(), *FAIR["cases"].values()]
    reasons = [each["not_applicable"] for each in (*cases, *ORDER["orders"].values()) if "not_applicable" in each]
    differing = [case for case in cases if "here" in case]

    assert (len(reasons), len(differing)) == (7, 3)
    assert all(reasons)
    assert all(case["why"] and case["here"] != case["victims"] for case in differing)


@pytest.mark.parametrize(
    ("policy", "preemptor", "unit", "may"), argvalues=ORDER["policies"].values(), ids=ORDER["policies"]
)
def test_a_policy_allows_what_it_allows_in_kueue(policy: str, preemptor: list[int], unit: list[int], may: bool) -> None:
    claims = Preemptor(share="a", request={}, priority=preemptor[0], queued_at=preemptor[1])
    runs = QuotaUnit(uid="unit", share="b", usage={}, priority=unit[0], queued_at=unit[1])

    assert may_evict(Policy(policy), claims, runs) == may


@pytest.mark.parametrize("case", **ids(ORDER["targets"]))
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
