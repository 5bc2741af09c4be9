"""Preemption with extenders, in a whole engine: which candidates they see, and what their answers come to."""

from collections.abc import Iterable
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.framework.errors import ClusterError
from scheduler.testing import a_node, a_pod
from tests.fakes import Eviction, Unschedulable
from tests.fakes.extenders import Answer, FakeExtender, FakePods, an_extender, extender_access, failing
from tests.unit.cycle.fakes import EngineUnderTest, an_engine


async def preempted(
    *extenders: FakeExtender, pods: FakePods | None = None, nodes: int = 2, also: Iterable[fw.Pod] = ()
) -> EngineUnderTest:
    """Nodes of 4 cores with a pod of 4 cores each, low0, low1, …, the first the least important, and a high one."""
    scheduler = an_engine(extender_access=extender_access(*extenders, pods=pods))
    for number in range(nodes):
        low = a_pod(f"low{number}", requests={"cpu": "4"}, node_name=f"n{number}", priority=number + 1)
        scheduler.see(a_node(f"n{number}", cpu="4"), low)
    scheduler.see(*also, a_pod("high", requests={"cpu": "4"}, priority=1000))
    await scheduler.schedule()
    return scheduler


def victims(scheduler: EngineUnderTest) -> list[str]:
    return [eviction.victim for eviction in scheduler.world.written(Eviction)]


def message(scheduler: EngineUnderTest) -> str:
    return scheduler.world.written(Unschedulable)[-1].message


def agreed(**nodes: Any) -> Answer:
    """Node → UIDs of the victims, or all that is said of it."""
    return lambda _: {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in said]} if isinstance(said, list) else said
            for name, said in nodes.items()
        }
    }


async def test_an_extender_sees_all_candidates_and_the_best_of_what_it_leaves_is_taken() -> None:
    extender = an_extender({"preempt": agreed(n1=["default/low1"])})
    scheduler = await preempted(extender)

    assert extender.asked == [
        (
            "preempt",
            {
                "Pod": {"metadata": {"name": "high"}},
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {
                    "n0": {"Pods": [{"UID": "default/low0"}], "NumPDBViolations": 0},
                    "n1": {"Pods": [{"UID": "default/low1"}], "NumPDBViolations": 0},
                },
            },
        )
    ]
    assert victims(scheduler) == ["default/low1"]
    assert scheduler.world.written(Unschedulable)[-1].nominated == "n1"


async def test_if_it_agrees_to_all_the_cheapest_is_taken() -> None:
    scheduler = await preempted(an_extender())

    assert victims(scheduler) == ["default/low0"]


async def test_an_extender_may_want_other_victims() -> None:
    both = {"Pods": [{"UID": "default/low1"}, {"UID": "default/more"}], "NumPDBViolations": 1}
    scheduler = await preempted(
        an_extender({"preempt": agreed(n1=both)}), also=[a_pod("more", requests={}, node_name="n1")]
    )

    assert sorted(victims(scheduler)) == ["default/low1", "default/more"]


async def test_one_that_does_not_know_the_nodes_is_sent_whole_victims() -> None:
    extender = an_extender({"preempt": agreed(n0=["default/low0"])}, node_cache_capable=False)
    scheduler = await preempted(extender)

    (verb, question), *_ = extender.asked
    assert verb == "preempt"
    assert question["NodeNameToMetaVictims"] is None
    assert question["NodeNameToVictims"]["n1"] == {"Pods": [{"metadata": {"name": "low1"}}], "NumPDBViolations": 0}
    assert victims(scheduler) == ["default/low0"]


async def test_if_it_leaves_nothing_nobody_goes() -> None:
    scheduler = await preempted(an_extender({"preempt": agreed()}))

    assert victims(scheduler) == []
    assert message(scheduler).endswith("preemption: no candidate node for preemption")


async def test_a_failure_ends_the_preemption_but_not_that_of_an_ignorable_extender() -> None:
    strict = await preempted(an_extender({"preempt": failing("it is away")}))
    lenient = await preempted(an_extender({"preempt": failing("it is away")}, ignorable=True))
    assert victims(strict) == []
    assert message(strict) == "0/2 nodes are available: 2 Insufficient cpu. preemption: it is away"
    assert victims(lenient) == ["default/low0"]


@pytest.mark.parametrize(
    ("victims_by_node", "problem"),
    [
        (
            {"n0": ["nobody"]},
            "extender: http://extender claims to preempt pod (UID: &{nobody}) on node: n0, "
            "but the pod is not found on that node",
        ),
        ({"mars": ["default/low0"]}, 'nodeinfo not found for node name "mars"'),
    ],
)
async def test_victims_or_nodes_that_never_were_are_an_error(victims_by_node: Any, problem: str) -> None:
    scheduler = await preempted(an_extender({"preempt": agreed(**victims_by_node)}))

    assert message(scheduler).endswith(f"preemption: {problem}")


async def test_a_node_without_victims_is_an_error_unless_the_extender_is_ignorable() -> None:
    strict = await preempted(an_extender({"preempt": agreed(n0=[], n1=["default/low1"])}))
    lenient = await preempted(an_extender({"preempt": agreed(n0=[], n1=["default/low1"])}, ignorable=True))
    assert message(strict).endswith('preemption: expected at least one victim pod on node "n0"')
    assert victims(lenient) == ["default/low1"]


async def test_a_node_that_changed_meanwhile_is_no_candidate() -> None:
    extender = an_extender(hangs=True)
    scheduler = await preempted(extender)

    scheduler.see(a_pod("new", requests={}, node_name="n0"))
    await extender.answer()

    assert victims(scheduler) == ["default/low1"]


async def test_if_all_have_changed_the_extender_is_asked_again() -> None:
    extender = an_extender(hangs=True)
    scheduler = await preempted(extender, nodes=1)

    scheduler.see(a_pod("new", requests={}, node_name="n0"))
    await extender.answer()
    await extender.answer()

    assert extender.verbs() == ["preempt", "preempt"]
    assert victims(scheduler) == ["default/low0"]


async def test_if_the_victim_goes_by_itself_the_pod_takes_its_place() -> None:
    extender = an_extender(hangs=True)
    scheduler = await preempted(extender, nodes=1)

    low = scheduler.cache.get("default/low0")
    assert low is not None
    scheduler.handlers.pod_deleted(low)
    for _ in range(3):
        await extender.answer()

    assert victims(scheduler) == []
    assert scheduler.world.bound == {"default/high": "n0"}


async def test_victims_that_cannot_be_read_end_the_preemption() -> None:
    pods = FakePods({"default/low0": ClusterError("away")})
    scheduler = await preempted(an_extender(node_cache_capable=False), pods=pods, nodes=1)

    assert victims(scheduler) == []
    assert message(scheduler).endswith("preemption: reading victims for extenders: away")
