"""Kueue's tables of what its objects declare: quotas, what is available, usage, hierarchies and dominant shares."""

import math
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.api.quota.quota_amounts import MAX
from scheduler.quota.apis.kueue_quotas import CLUSTER_QUEUE_PREFIX, COHORT_PREFIX, Quotas, quotas_of, resource_of
from scheduler.quota.dominant import DominantShare, dominant_share
from scheduler.quota.tree import ShareTree
from tests.unit.quota.kueue import tree_of
from tests.unit.quota.kueue_objects import a_cohort, a_queue, quotas_in
from tests.unit.quota.tables import of_cases, table

DOMINANT, HIERARCHY, SNAPSHOT = table("kueue_dominant"), table("kueue_hierarchy"), table("kueue_snapshot")
BORROWING = DOMINANT["TestIsBorrowingOn"]
CHANGED = [name for name in SNAPSHOT["counts"] if "cases" in SNAPSHOT[name]]


@of_cases(table("kueue_available")["cases"])
def test_as_much_is_available_as_in_kueue(case: dict[str, Any]) -> None:
    tree = tree_of(case["shares"], ())

    for name, amounts in case["usage"].items():
        tree.add(name, amounts)

    for name, amounts in case["available"].items():  # Kueue shows a negative amount as 0
        assert {each: max(0, tree.available(name, each)) for each in amounts} == amounts
    for name, amounts in case["potential"].items():
        assert {each: tree.potential(name, each) for each in amounts} == amounts


def amounts_in(tree: ShareTree, wanted: Mapping[str, Mapping[str, int]], what: str) -> dict[str, dict[str, int]]:
    """Return quota or usage of each share in `wanted`: what is named there, and what else is not 0."""
    found = {}
    for name, amounts in wanted.items():
        of_share = {key: getattr(tree, what)(name, key) for key in tree.resources}
        found[name] = {key: amount for key, amount in of_share.items() if amount or key in amounts}
    return found


@of_cases(SNAPSHOT["TestSnapshot"])
def test_the_objects_declare_what_they_declare_in_kueue(case: dict[str, Any]) -> None:
    quotas = quotas_in(case)
    tree = ShareTree(quotas.shares)

    for queue, amounts in case.get("pods", ()):
        tree.add(f"{CLUSTER_QUEUE_PREFIX}{queue}", amounts)

    assert tree.problems == {}
    assert sorted(name for name, queue in quotas.queues.items() if queue.problem) == case.get("inactive", [])
    if "quota" in case:
        assert amounts_in(tree, case["quota"], "quota") == case["quota"]
        assert tree.shares.keys() == case["quota"].keys()
    for name, weight in case.get("weights", {}).items():
        assert tree.shares[name].weight == weight
    assert amounts_in(tree, case.get("usage", {}), "usage") == case.get("usage", {})
    for name, (reclaim, within) in case.get("preemption", {}).items():
        preemption = quotas.queues[name].preemption
        assert (preemption.reclaim_within_cohort, preemption.within_share) == (reclaim, within)
    for name, groups in case.get("groups", {}).items():
        found = quotas.queues[name].groups
        assert [[sorted(each.covered), [flavor.name for flavor in each.flavors]] for each in found] == groups


@pytest.mark.parametrize(
    ("table", "case"), [(SNAPSHOT[name], case) for name in CHANGED for case in SNAPSHOT[name]["cases"].values()]
)
def test_pods_that_come_and_go_leave_the_usage_that_workloads_leave_in_kueue(
    table: dict[str, Any], case: dict[str, Any]
) -> None:
    tree = ShareTree(quotas_in(table["objects"]).shares)
    charges = {name: (f"{CLUSTER_QUEUE_PREFIX}{queue}", amounts) for name, (queue, amounts) in table["pods"].items()}
    for charge in charges.values():
        tree.add(*charge)

    for name in case["remove"]:
        tree.remove(*charges[name])
    for name in case.get("add", ()):
        tree.add(*charges[name])

    assert amounts_in(tree, case["usage"], "usage") == case["usage"]
    assert amounts_in(tree, table["quota"], "quota") == table["quota"]


def played(steps: list[list[str]]) -> Quotas:
    """Return the quotas after all steps. Kueue follows changes; here the objects that there are count."""
    objects: dict[str, dict[str, str]] = {"queue": {}, "cohort": {}}
    for kind, name, *parent in steps:
        if kind.startswith("no "):
            objects[kind.removeprefix("no ")].pop(name, None)
        else:
            objects[kind][name] = parent[0]
    queues = [a_queue(name, cohort) for name, cohort in objects["queue"].items()]
    return quotas_of(queues, [a_cohort(name, parent) for name, parent in objects["cohort"].items()], {})


def parents_of(quotas: Quotas, prefix: str) -> dict[str, str]:
    return {
        each.name.removeprefix(prefix): each.parent.removeprefix(COHORT_PREFIX)
        for each in quotas.shares
        if each.name.startswith(prefix)
    }


@of_cases(HIERARCHY["TestManager"])
def test_there_are_the_shares_that_kueue_has(case: dict[str, Any]) -> None:
    quotas = played(case["steps"])

    assert parents_of(quotas, CLUSTER_QUEUE_PREFIX) == case["queues"]
    assert parents_of(quotas, COHORT_PREFIX) == case["cohorts"]


@of_cases(HIERARCHY["TestCycles"])
def test_a_cycle_is_one_where_kueue_sees_one(case: dict[str, Any]) -> None:
    quotas = played(case["steps"])

    names = {each.removeprefix(COHORT_PREFIX) for each in (*quotas.problems, *parents_of(quotas, COHORT_PREFIX))}
    assert {
        name: "form a cycle" in quotas.problems.get(f"{COHORT_PREFIX}{name}", "") for name in sorted(names)
    } == dict(sorted(case["cycles"].items()))


@of_cases(DOMINANT["TestDominantResourceShare"])
def test_the_dominant_share_is_that_of_kueue(case: dict[str, Any]) -> None:
    tree = ShareTree(quotas_in(case).shares)

    tree.add("ClusterQueue/cq", case["usage"])

    found = {name: dominant_share(tree, name, resource_of) for name in tree.shares}
    tree.add("ClusterQueue/cq", case.get("request", {}))
    found["ClusterQueue/cq"] = dominant_share(tree, "ClusterQueue/cq", resource_of)
    assert {
        name: [MAX if each.weighted == math.inf else math.ceil(each.weighted), each.resource, each.is_borrowing]
        for name, each in found.items()
    } == case["want"]


@of_cases(BORROWING["cases"])
def test_a_share_borrows_when_it_does_in_kueue(case: dict[str, Any]) -> None:
    tree = ShareTree(quotas_in({"queues": BORROWING["quotas of all cases"]}).shares)

    tree.add("ClusterQueue/cq", case["usage"])

    assert dominant_share(tree, "ClusterQueue/cq", resource_of=resource_of).is_borrowing == case["borrowing"]


@of_cases(DOMINANT["TestZeroWeightBorrows"])
def test_only_a_share_without_weight_that_borrows_is_infinite(case: dict[str, Any]) -> None:
    share = DominantShare(case["ratio"], "", case["borrowing"], case["weight"])

    assert (share.weighted == math.inf) == case["infinite"]


@of_cases(DOMINANT["TestPreciseWeightedShareSerialized"])
def test_the_ratio_is_divided_by_the_weight(case: dict[str, Any]) -> None:
    share = DominantShare(case["ratio"], "", case["ratio"] > 0, case["weight"])

    assert f"{share.weighted:g}" == case["weighted"]
