"""Groups of pods that take back what is guaranteed to their share."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.groups import pod_groups
from scheduler.api.objects import ObjectMeta
from scheduler.config.defaults import default_plugins
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.types import DEFAULT_GATES
from scheduler.framework.events import POD_GROUP
from scheduler.framework.shares import DeclaredShare
from scheduler.groups.apis.annotations import MIN_AVAILABLE_ANNOTATION, POD_GROUP_ANNOTATION
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from scheduler.testing import a_node
from tests.unit.cycle.fakes import newer
from tests.unit.quota.waiting.shares import Sharing
from tests.unit.quota.waiting.test_policies import COMPANY, a_team, two_queues


def a_group(stage: Sharing, *cpus: str, memory: str = "0", **fields: Any) -> list[fw.Pod]:
    """Let the watch show a group that needs all of its pods, with so many cores each."""
    labels = stage.group("g", len(cpus))
    return [
        stage.pod(f"g-{number}", requests={"cpu": cpu, "memory": memory}, labels=labels, **fields)
        for number, cpu in enumerate(cpus)
    ]


async def try_group(stage: Sharing, *cpus: str, **fields: Any) -> list[fw.Pod]:
    """Let such a group come, and be tried."""
    pods = a_group(stage, *cpus, **fields)
    await stage.schedule()
    return pods


class Stage(Sharing):
    """Two teams with four cores each; `b` uses all eight, spread over the nodes."""

    def __init__(self, *nodes: str, cpu: str = "64", team: DeclaredShare | None = None, **options: Any) -> None:
        shares = COMPANY, team or a_team("a", cpu="4", reclaim="Any"), a_team("b", cpu="4")
        first, *others = nodes or ("n",)
        super().__init__(*shares, also=(Coscheduling,), node=a_node(first, cpu=cpu, memory="64Gi"), **options)
        for name in others:
            self.under_test.see(a_node(name, cpu=cpu, memory="64Gi"))
        self.run("b", 8, nodes or ("n",))


FOUR = ("n", "m", "o", "p")
"""Nodes of two cores each."""


@pytest.mark.parametrize(
    ("nodes", "protected", "cpus", "evicted"),
    [
        pytest.param((), "", "111", "567", id="what all of its pods need, and no more"),
        pytest.param((), "", "11111", "", id="nobody for more than its share is guaranteed"),
        pytest.param((), "7", "111", "456", id="nobody under a budget where others may go"),
        pytest.param(FOUR, "", "22", "2367", id="those where all of it fits"),
        pytest.param(FOUR, "2", "22", "1357", id="those on nodes that have none under a budget"),
    ],
)
async def test_a_group_takes_back(nodes: Sequence[str], protected: str, cpus: str, evicted: str) -> None:
    """`cpus`: of each of its pods; `protected` and `evicted`: the numbers of pods of `b`."""
    stage = Stage(*nodes, cpu="2" if nodes else "64")
    if protected:
        stage.protect(f"b-{protected}", "b")

    await try_group(stage, *cpus)

    assert stage.evicted == [f"b/b-{number}" for number in evicted]
    assert not any(name.startswith("g") for name in stage.placed)


async def test_it_takes_nothing_back_before_a_pod_was_tried_that_was_woken_for_the_same_space() -> None:
    stage = Stage()
    woken = stage.pod("woken")
    stage.under_test.see(newer(woken, preemption_policy="Never"))
    await stage.schedule()
    stage.delete("b-0")
    being_tried = stage.begin(woken)

    a_group(stage, "500m", "500m")
    await stage.schedule(0)
    assert stage.evicted == []
    await stage.finish(being_tried)
    assert "woken" in stage.placed

    await stage.after_a_look()
    assert len(stage.evicted) == 1


async def test_it_starts_when_the_last_of_them_is_gone() -> None:
    stage = Stage()
    await try_group(stage, "1", "1", "1")
    leaving = [stage.leave(name) for name in ("b-5", "b-6", "b-7")]
    await stage.schedule(400)
    assert len(stage.evicted) == 3

    for victim in leaving:
        await stage.end(victim)

    assert [name for name in stage.placed if name.startswith("g")] == ["g-0", "g-1", "g-2"]
    assert len(stage.evicted) == 3


async def test_what_the_first_victims_leave_is_kept_for_it() -> None:
    stage = Stage()
    await try_group(stage, "1", "1", "1")
    stage.pod("late", namespace="b", priority=1000)

    await stage.end(stage.leave("b-7"))
    assert "late" not in stage.placed
    for name in ("b-5", "b-6"):
        stage.delete(stage.leave(name))
    await stage.schedule()

    assert [name for name in stage.placed if name.startswith("g")] == ["g-0", "g-1", "g-2"]
    assert "late" not in stage.placed


async def test_its_nominations_end_with_the_attempt_in_which_it_does_not_fit_though_all_victims_are_gone() -> None:
    stage = Stage()
    members = await try_group(stage, "1", "1", "1")
    for member in members:
        stage.under_test.see(newer(member, nominated_node_name=stage.engine.nominator.node_of(member.uid)))
    stage.pod("of-another-scheduler", namespace="b", node_name="n")

    for name in ("b-5", "b-6", "b-7"):
        stage.delete(stage.leave(name))
    await stage.schedule()

    assert not any(name.startswith("g") for name in stage.placed)
    assert not any(stage.engine.nominator.node_of(member.uid) for member in members)


async def test_what_leaves_anyway_is_kept_for_a_group_that_counts_on_it() -> None:
    stage = Stage("n", "m", cpu="4")
    for name in ("b-0", "b-2"):
        stage.leave(name)

    members = await try_group(stage, "1", "1", "1", "1")

    assert len(stage.evicted) == 2
    nodes = [stage.engine.nominator.node_of(member.uid) for member in members]
    assert sum(Counter(nodes)[name] for name in ("n", "m")) == 4


async def test_nobody_is_evicted_if_the_nodes_have_no_space_for_all_of_it() -> None:
    stage = Stage("n", "m")

    await try_group(stage, "1", "1", "1", memory="40Gi")

    assert stage.evicted == []


async def test_members_are_nominated_also_if_quota_has_run_short_since_the_group_was_asked_for_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enabled = [
        *default_plugins(DEFAULT_GATES).multi_point.enabled,
        *map(PluginRef, ("CapacityScheduling", "Coscheduling")),
    ]
    others = tuple(each for each in enabled if each.name != "DefaultPreemption")
    stage = Stage(only=Plugins(multi_point=PluginSet(others)))
    pods = a_group(stage, "1", "1", "1")
    monkeypatch.setattr(stage.shares, "refusal_of_group", lambda group, members: None)

    await stage.schedule()

    assert stage.evicted == ["b/b-5", "b/b-6", "b/b-7"]
    assert all(stage.engine.nominator.node_of(pod.uid) for pod in pods)


async def test_without_a_policy_it_waits() -> None:
    stage = Stage(team=a_team("a", cpu="4"))

    await try_group(stage, "1", "1", "1")

    assert stage.evicted == []


async def test_a_group_that_may_not_preempt_waits() -> None:
    stage = Stage()
    for pod in a_group(stage, "1", "1", "1"):
        spec = msgspec.structs.replace(pod.spec, preemption_policy="Never")
        stage.under_test.see(newer(msgspec.structs.replace(pod, spec=spec)))

    await stage.schedule()

    assert stage.evicted == []


async def test_members_that_are_not_alike_are_decided_about() -> None:
    stage = Stage()

    members = await try_group(stage, "2", "1")

    assert stage.evicted == ["b/b-5", "b/b-6", "b/b-7"]
    assert [stage.engine.nominator.node_of(each.uid) for each in members] == ["n", "n"]


async def test_a_group_whose_evictions_fail_is_tried_again() -> None:
    stage = Stage()
    stage.under_test.world.eviction_refusal = ValueError("refused")
    a_group(stage, "1", "1", "1")
    await stage.under_test.schedule()
    failed = Counter(stage.evicted)
    stage.under_test.world.eviction_refusal = None

    await stage.schedule()

    assert Counter(stage.evicted) - failed == Counter(["b/b-5", "b/b-6", "b/b-7"])


async def test_a_group_that_goes_frees_what_was_kept_for_it() -> None:
    stage = Stage()
    members = await try_group(stage, "1", "1", "1")
    for name in ("b-5", "b-6", "b-7"):
        stage.delete(stage.leave(name))
    stage.pods(3, "b", first=8)
    stage.delete(*members)

    await stage.schedule()

    assert {"b-8", "b-9", "b-10"} <= set(stage.placed)


def a_group_of_kubernetes(stage: Sharing, **spec: Any) -> list[fw.Pod]:
    policy = pod_groups.SchedulingPolicy(gang=pod_groups.GangPolicy(min_count=3))
    metadata = ObjectMeta(name="k", namespace="a", uid="uid of k", resource_version="1")
    group = pod_groups.PodGroup(metadata=metadata, spec=pod_groups.PodGroupSpec(scheduling_policy=policy, **spec))
    stage.engine.object_handlers.object_changed(POD_GROUP, group)
    return [stage.pod(f"k-{number}", group="k") for number in range(3)]


async def test_a_group_of_kubernetes_takes_its_share_back_too() -> None:
    stage = Stage(gates=FeatureGates(generic_workload=True))
    a_group_of_kubernetes(stage)
    await stage.schedule()
    assert stage.evicted == ["b/b-5", "b/b-6", "b/b-7"]

    for name in ("b-5", "b-6", "b-7"):
        stage.delete(stage.leave(name))
    await stage.schedule()

    assert {"k-0", "k-1", "k-2"} <= set(stage.placed)


async def test_an_elastic_quota_takes_its_minimum_back_for_a_group() -> None:
    stage = Sharing(also=(Coscheduling,), node=a_node("n", cpu="4", memory="64Gi"))
    for namespace in ("a", "b"):
        stage.quota(namespace, minimum={"cpu": "2"}, maximum={"cpu": "4"})
    stage.run("b", 4)

    await try_group(stage, "1", "1")

    assert stage.evicted == ["b/b-2", "b/b-3"]


async def test_the_quota_of_a_flavor_is_taken_back_on_its_nodes() -> None:
    queues = two_queues(Coscheduling, reclaimWithinCohort="Any")
    annotations = {POD_GROUP_ANNOTATION: "g", MIN_AVAILABLE_ANNOTATION: "2"}
    members = [queues.pod(f"g-{number}", annotations=annotations) for number in range(2)]

    await queues.schedule()

    assert queues.evicted == ["ns/b-0", "ns/b-1"]
    assert {queues.engine.nominator.node_of(each.uid)[:4] for each in members} == {"spot"}
