"""Kueue's tables of queues, cohorts and cycles. Kueue follows changes; here the objects that there are count."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.quota.apis.kueue_quotas import CLUSTER_QUEUE_PREFIX, COHORT_PREFIX, Quotas, quotas_of
from tests.unit.quota.kueue_objects import a_cohort, a_queue

TABLE = json.loads(Path(__file__).with_name("kueue_hierarchy.json").read_text("utf-8"))


def of_table(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", TABLE[name].values(), ids=TABLE[name])


def played(steps: list[list[str]]) -> Quotas:
    """Return the quotas after all steps."""
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


def test_the_tables_are_whole() -> None:
    assert {name: len(TABLE[name]) for name in TABLE["counts"]} == TABLE["counts"]


@of_table("TestManager")
def test_there_are_the_shares_that_kueue_has(case: dict[str, Any]) -> None:
    quotas = played(case["steps"])

    assert parents_of(quotas, CLUSTER_QUEUE_PREFIX) == case["queues"]
    assert parents_of(quotas, COHORT_PREFIX) == case["cohorts"]


@of_table("TestCycles")
def test_a_cycle_is_one_where_kueue_sees_one(case: dict[str, Any]) -> None:
    quotas = played(case["steps"])

    names = {each.removeprefix(COHORT_PREFIX) for each in (*quotas.problems, *parents_of(quotas, COHORT_PREFIX))}
    assert {
        name: "form a cycle" in quotas.problems.get(f"{COHORT_PREFIX}{name}", "") for name in sorted(names)
    } == dict(sorted(case["cycles"].items()))
