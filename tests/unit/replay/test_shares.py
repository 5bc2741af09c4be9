"""Shares in a trace: pods above them are refused again, and start again when there is space."""

import random
from typing import Any

import pytest

from scheduler.api.objects import ObjectMeta
from scheduler.api.quota.elastic_quotas import ElasticQuota, ElasticQuotaSpec
from scheduler.commands.replaying import OTHER_SHARES
from scheduler.framework.events import ELASTIC_QUOTA
from tests.unit.replay.stage import Stage, a_busy_hour, enabled
from tests.unit.replay.traces import RecordedTrace

ENABLED = enabled("CapacityScheduling")

TREE: dict[str, Any] = {
    **ENABLED,
    "pluginConfig": [
        {
            "name": "CapacityScheduling",
            "args": {
                "shares": [
                    {"name": "company"},
                    {"name": "even", "parent": "company", "minimum": {"cpu": 8}, "podLabels": {"team": "even"}},
                    {"name": "odd", "parent": "company", "minimum": {"cpu": 8}, "podLabels": {"team": "odd"}},
                ]
            },
        }
    ],
}


def a_quota(stage: Stage, namespace: str, minimum: int) -> None:
    stage.versions += 1
    metadata = ObjectMeta(name="quota", namespace=namespace, uid=namespace, resource_version=str(stage.versions))
    quota = ElasticQuota(metadata=metadata, spec=ElasticQuotaSpec(min={"cpu": str(minimum), "memory": "1Ti"}))
    stage.engine.object_handlers.object_changed(ELASTIC_QUOTA, quota)


async def contention(stage: Stage) -> None:
    """Two teams that ask for more than there is, by namespace and by label; quotas change meanwhile."""
    random_ = random.Random(7)
    for hour in range(12):
        a_quota(stage, "team-a", 4 + hour)
        a_quota(stage, "team-b", 4)
        for number in range(4):
            team = random_.choice(("a", "b"))
            name = f"{team}-{hour}-{number}"
            labels = {"team": "even" if number % 2 else "odd"}
            resources = {"resources": {"requests": {"cpu": "1500m", "memory": "64Mi"}}}
            stage.pod(name, {"container": resources}, namespace=f"team-{team}", labels=labels)
        await a_busy_hour(stage, seed=300 + hour, pods=3)
        stage.clock.advance(2.0)
        stage.engine.queue.flush_backoff_completed()
        await stage.schedule()


def reclaiming() -> dict[str, Any]:
    """Return the tree with policies that evict, in a profile with groups of pods."""
    (plugin,) = TREE["pluginConfig"]
    shares = [{**share, "reclaim": "Any"} if "parent" in share else share for share in plugin["args"]["shares"]]
    configured = [{**plugin, "args": {"shares": shares}}]
    return {**enabled("CapacityScheduling", "Coscheduling"), "pluginConfig": configured}


def large() -> dict[str, Any]:
    return {"container": {"resources": {"requests": {"cpu": "2", "memory": "64Mi"}}}}


async def taking_back(stage: Stage) -> None:
    """A team that borrows all, and groups of the other that take back what it is guaranteed."""
    await a_busy_hour(stage, seed=1, pods=3)
    for number in range(12):
        stage.pod(f"odd-{number}", large(), namespace="team-a", labels={"team": "odd"})
    await stage.schedule()
    for number in range(4):
        annotations = {"loadmaster.dev/pod-group": "g", "loadmaster.dev/pod-group-min-available": "4"}
        stage.pod(f"even-{number}", large(), namespace="team-b", labels={"team": "even"}, annotations=annotations)
    for _ in range(3):
        await stage.schedule()
        stage.clock.advance(2.0)
        stage.engine.queue.flush_backoff_completed()


def test_groups_that_take_back_what_is_theirs_choose_the_same_victims_again(trace: RecordedTrace) -> None:
    trace.record(taking_back, profile=reclaiming())

    trace.decided_again()
    assert {"even-0", "even-1", "even-2", "even-3"} <= {line[2] for line in trace.lines("nominate")}


@pytest.mark.parametrize("profile", [ENABLED, TREE], ids=["quotas", "tree"])
def test_what_was_decided_under_shares_is_decided_again(profile: dict[str, Any], trace: RecordedTrace) -> None:
    trace.record(contention, profile=profile)

    trace.decided_again()
    assert "CapacityScheduling" in str(trace.lines())


def test_other_shares_count_in_what_is_carried_on_and_it_says_so(trace: RecordedTrace) -> None:
    trace.record(contention, profile=TREE)
    (plugin,) = TREE["pluginConfig"]
    small = [{**share, "minimum": {"cpu": 2}} for share in plugin["args"]["shares"] if "parent" in share]

    report = trace.decided_by({**TREE, "pluginConfig": [{**plugin, "args": {"shares": [{"name": "company"}, *small]}}]})

    assert report["kinds"].keys() == {"same"}
    assert report["carriedOn"]["now"]["pods"] < report["carriedOn"]["then"]["pods"]
    assert OTHER_SHARES in report["notes"]
