"""scheduler-plugins' tables of an ElasticQuota's amounts, with a quota as a share below a root that never lacks."""

from collections.abc import Mapping
from typing import Any

from scheduler.api.quota.quota_amounts import MAX
from scheduler.quota.tree import Share, ShareTree
from tests.unit.quota.tables import SCHEDULER_PLUGINS, of_cases, table

TABLE = table("elastic_quota", SCHEDULER_PLUGINS)
RESOURCES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu")


def tree_of(case: Mapping[str, Any]) -> ShareTree:
    quota = Share(name="ns1", parent="all", minimum=case.get("min", {}), maximum=case.get("max", {}))
    tree = ShareTree([Share(name="all", minimum=dict.fromkeys(RESOURCES, MAX)), quota])
    tree.add("ns1", case["used"])
    return tree


def usage_of(tree: ShareTree) -> dict[str, int]:
    return {each: tree.usage("ns1", each) for each in RESOURCES if tree.usage("ns1", each)}


@of_cases(TABLE["TestReserveResource"])
def test_pods_add_up(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    for pod in case["pods"]:
        tree.add("ns1", pod)

    assert usage_of(tree) == case["expected"]


@of_cases(TABLE["TestUnReserveResource"])
def test_pods_are_taken_off(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    for pod in case["pods"]:
        tree.remove("ns1", pod)

    assert usage_of(tree) == case["expected"]


@of_cases(TABLE["TestUsedOverMinWith"])
def test_a_request_exceeds_the_minimum(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    tree.add("ns1", case["request"])

    assert any(tree.usage("ns1", each) > tree.quota("ns1", each) for each in RESOURCES) == case["expected"]


@of_cases(TABLE["TestUsedOverMaxWith"])
def test_a_request_exceeds_the_maximum(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    lacks = tree.lacks("ns1", case["request"])

    assert any(each.is_limit for each in lacks) == case["expected"]


@of_cases(TABLE["TestUsedOverMin"])
def test_usage_exceeds_the_minimum(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    over = [each for each in RESOURCES if tree.usage("ns1", each) > tree.quota("ns1", each)]

    assert bool(over) == case["expected"]
