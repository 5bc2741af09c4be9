"""scheduler-plugins' tables of an ElasticQuota's amounts, with a quota as a share below a root that never lacks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.quota.quota_amounts import MAX
from scheduler.quota.tree import Share, ShareTree

TABLES = Path(__file__).parents[1] / "plugins" / "contrib" / "capacity_scheduling" / "elastic_quota.json"
TABLE = json.loads(TABLES.read_text("utf-8"))
RESOURCES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu")


def of_table(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", TABLE[name].values(), ids=TABLE[name])


def tree_of(case: Mapping[str, Any]) -> ShareTree:
    quota = Share(name="ns1", parent="all", minimum=case.get("min", {}), maximum=case.get("max", {}))
    tree = ShareTree([Share(name="all", minimum=dict.fromkeys(RESOURCES, MAX)), quota])
    tree.add("ns1", case["used"])
    return tree


def usage_of(tree: ShareTree) -> dict[str, int]:
    return {each: tree.usage("ns1", each) for each in RESOURCES if tree.usage("ns1", each)}


def test_the_tables_are_whole() -> None:
    assert {name: len(TABLE[name]) for name in TABLE["counts"]} == TABLE["counts"]


@of_table("TestReserveResource")
def test_pods_add_up(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    for pod in case["pods"]:
        tree.add("ns1", pod)

    assert usage_of(tree) == case["expected"]


@of_table("TestUnReserveResource")
def test_pods_are_taken_off(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    for pod in case["pods"]:
        tree.remove("ns1", pod)

    assert usage_of(tree) == case["expected"]


@of_table("TestUsedOverMinWith")
def test_a_request_exceeds_the_minimum(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    tree.add("ns1", case["request"])

    assert any(tree.usage("ns1", each) > tree.quota("ns1", each) for each in RESOURCES) == case["expected"]


@of_table("TestUsedOverMaxWith")
def test_a_request_exceeds_the_maximum(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    lacks = tree.lacks("ns1", case["request"])

    assert any(each.is_limit for each in lacks) == case["expected"]


@of_table("TestUsedOverMin")
def test_usage_exceeds_the_minimum(case: dict[str, Any]) -> None:
    tree = tree_of(case)

    over = [each for each in RESOURCES if tree.usage("ns1", each) > tree.quota("ns1", each)]

    assert bool(over) == case["expected"]
