"""Kueue's tables of quota and usage: what its objects declare, and what pods that come and go leave."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler.quota.apis.kueue_quotas import CLUSTER_QUEUE_PREFIX
from scheduler.quota.tree import ShareTree
from tests.unit.quota.kueue_objects import quotas_in

TABLE = json.loads(Path(__file__).with_name("kueue_snapshot.json").read_text("utf-8"))
DECLARED = {name: case for name, case in TABLE["TestSnapshot"].items() if "does not apply" not in case}
CHANGED = [name for name in TABLE["counts"] if "cases" in TABLE[name]]


def amounts_in(tree: ShareTree, wanted: Mapping[str, Mapping[str, int]], what: str) -> dict[str, dict[str, int]]:
    """Return quota or usage of each share in `wanted`: what is named there, and what else is not 0."""
    found = {}
    for name, amounts in wanted.items():
        of_share = {key: getattr(tree, what)(name, key) for key in tree.resources}
        found[name] = {key: amount for key, amount in of_share.items() if amount or key in amounts}
    return found


def test_the_tables_are_whole() -> None:
    assert {name: len(TABLE[name].get("cases", TABLE[name])) for name in TABLE["counts"]} == TABLE["counts"]
    assert len(DECLARED) == 12


@pytest.mark.parametrize("case", DECLARED.values(), ids=DECLARED)
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
    ("table", "case"), [(TABLE[name], case) for name in CHANGED for case in TABLE[name]["cases"].values()]
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
