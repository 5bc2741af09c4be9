"""Kueue's table of dominant resource shares, through the objects that declare the quotas."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.quota.quota_amounts import MAX
from scheduler.quota.apis.kueue_quotas import resource_of
from scheduler.quota.dominant import DominantShare, dominant_share
from scheduler.quota.tree import ShareTree
from tests.unit.quota.kueue_objects import quotas_in

TABLE = json.loads(Path(__file__).with_name("kueue_dominant.json").read_text("utf-8"))
BORROWING = TABLE["TestIsBorrowingOn"]


def of_table(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", TABLE[name].values(), ids=TABLE[name])


def test_the_tables_are_whole() -> None:
    counts = {name: len(TABLE[name].get("cases", TABLE[name])) for name in TABLE["counts"]}

    assert counts == TABLE["counts"]


@of_table("TestDominantResourceShare")
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


@pytest.mark.parametrize("case", BORROWING["cases"].values(), ids=BORROWING["cases"])
def test_a_share_borrows_when_it_does_in_kueue(case: dict[str, Any]) -> None:
    tree = ShareTree(quotas_in({"queues": BORROWING["quotas of all cases"]}).shares)

    tree.add("ClusterQueue/cq", case["usage"])

    assert dominant_share(tree, "ClusterQueue/cq", resource_of=resource_of).is_borrowing == case["borrowing"]


@of_table("TestZeroWeightBorrows")
def test_only_a_share_without_weight_that_borrows_is_infinite(case: dict[str, Any]) -> None:
    share = DominantShare(case["ratio"], "", case["borrowing"], case["weight"])

    assert (share.weighted == math.inf) == case["infinite"]


@of_table("TestPreciseWeightedShareSerialized")
def test_the_ratio_is_divided_by_the_weight(case: dict[str, Any]) -> None:
    share = DominantShare(case["ratio"], "", case["ratio"] > 0, case["weight"])

    assert f"{share.weighted:g}" == case["weighted"]
