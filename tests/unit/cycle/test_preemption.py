"""A preemption from the first attempt to the binding, with the real engine."""

import asyncio

import msgspec
import pytest

from plugins.shared.eviction.budgets import POD_DISRUPTION_BUDGET
from scheduler import framework as fw
from scheduler.api.objects import PodStatus
from scheduler.cycle.handlers import MAY_END_NOMINATIONS
from scheduler.framework.errors import ClusterError
from scheduler.testing import a_node, a_pod, an_object
from tests.fakes import Eviction, Unschedulable, a_plugin, nominated_node, settle
from tests.unit.cycle.fakes import EngineUnderTest, an_engine

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
LOW = a_pod("low", priority=0, requests={"cpu": "3"}, node_name="n")
HIGH = a_pod("high", priority=100, requests={"cpu": "2"})


def full(*plugins: type[fw.Plugin]) -> EngineUnderTest:
    """One node of four cores, three of them taken by a pod of priority 0; a higher one waits."""
    engine = an_engine(*plugins)
    engine.see(a_node("n"), LOW, HIGH)
    return engine


def going(pod: fw.Pod) -> fw.Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="2")
    return fw.Pod(metadata=metadata, spec=pod.spec, status=pod.status)


def nominated(pod: fw.Pod, node: str) -> fw.Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version="3")
    return fw.Pod(metadata=metadata, spec=pod.spec, status=PodStatus(nominated_node_name=node))


async def test_a_pod_takes_the_place_of_its_victim() -> None:
    engine = full()
    await engine.schedule()
    engine.see(nominated(HIGH, "n"), going(LOW))
    engine.handlers.pod_deleted(going(LOW))
    engine.wait(30)
    await engine.schedule()
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    assert engine.world.written(Eviction) == [Eviction("default/low", "default/high", message)]
    told = f"{NO_ROOM} preemption: found a potential placement for pod on node n, preempting 1 victims"
    assert engine.world.notes() == [told]
    assert engine.world.notes("Preempted") == ["Preempted by pod default/high on node n"]
    assert engine.world.written(Unschedulable)[0] == Unschedulable("default/high", "Unschedulable", told, "n")
    assert engine.world.bound == {HIGH.uid: "n"}
    assert nominated_node(engine.nominator, HIGH.uid) == ""


async def test_the_place_is_kept_for_the_preemptor() -> None:
    engine = full()
    await engine.schedule()
    engine.handlers.pod_deleted(LOW)
    engine.see(a_pod("greedy", priority=50, requests={"cpu": "3"}))
    greedy = engine.pop()
    engine.loop.schedule_one(greedy)
    await settle()
    message, where = engine.world.notes()[-1], engine.where("default/greedy")

    assert message.startswith(NO_ROOM)
    assert where == "unschedulable"


def changed(**spec: object) -> fw.Node:
    node = a_node("n")
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, **spec))


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(changed(taints=(fw.Taint(key="broken", effect="NoSchedule"),)), id="tainted"),
        pytest.param(changed(unschedulable=True), id="cordoned"),
        pytest.param(a_node("n", cpu="1"), id="smaller"),
        pytest.param(a_node("n", labels={"disk": "hdd"}), id="relabelled"),
        pytest.param(None, id="deleted"),
    ],
)
@pytest.mark.parametrize("is_early", [False, True], ids=["after the evictions", "while they are under way"])
async def test_a_preemptor_looks_for_another_node_when_its_own_is_no_longer_for_it(
    node: fw.Node | None, is_early: bool
) -> None:
    ssd = a_node("n", labels={"disk": "ssd"})
    high = a_pod("high", priority=100, requests={"cpu": "2"}, node_selector={"disk": "ssd"})
    engine = an_engine()
    engine.see(
        ssd, LOW, a_node("m", labels={"disk": "ssd"}), a_pod("mid", priority=50, requests={"cpu": "3"}, node_name="m")
    )
    engine.see(high)
    engine.loop.schedule_one(engine.pop())
    if not is_early:
        await settle()
        engine.see(going(LOW))

    if node is None:
        engine.handlers.node_deleted(ssd)
    else:
        engine.see(node)
    await settle()
    engine.wait(30)
    await engine.schedule()

    assert nominated_node(engine.nominator, high.uid) == "m"


def test_each_change_of_a_node_is_known_to_end_nominations_or_not() -> None:
    """Conditions and annotations are reported often, and only plugins of others go by them."""
    updates = {action for action in fw.Action if "UPDATE_NODE" in str(action.name)}

    others = {
        fw.Action.UPDATE_NODE_CONDITION,
        fw.Action.UPDATE_NODE_ANNOTATION,
        fw.Action.UPDATE_NODE_PREEMPTION_POLICY,
    }
    assert {action for action in updates if not action & MAY_END_NOMINATIONS} == others


async def test_while_its_victims_are_evicted_the_preemptor_is_kept_back() -> None:
    engine = an_engine()
    other = a_pod("other", priority=0, requests={"cpu": "1"}, node_name="n")
    engine.see(a_node("n"), LOW, other, HIGH)
    engine.loop.schedule_one(engine.pop())  # the preemption has begun; its task has not run yet
    places = [engine.where(HIGH.uid)]
    engine.handlers.pod_deleted(other)
    places.append(engine.where(HIGH.uid))
    await settle()
    engine.handlers.pod_deleted(LOW)
    places.append(engine.where(HIGH.uid))
    engine.wait(30)
    await engine.schedule()

    assert places == ["unschedulable", "gated", "backoff"]
    assert engine.world.bound == {HIGH.uid: "n"}


async def test_if_an_eviction_fails_the_pod_is_tried_again_at_once() -> None:
    engine = full()
    engine.world.eviction_refusal = ClusterError("no")
    await engine.schedule()

    assert engine.where(HIGH.uid) == "active"
    assert engine.world.notes("Preempted") == []
    assert engine.count("scheduler_preemption_goroutines_execution_total", result="error") == 1


async def test_a_victim_on_hold_goes_back_to_the_queue() -> None:
    hold = a_plugin("Hold", fw.PermitPlugin, permit=lambda state, pod, node: HELD if pod.name == "low" else None)

    engine = an_engine(hold)
    await engine.schedule(a_node("n"), a_pod("low", priority=0, requests={"cpu": "3"}))
    await engine.schedule(HIGH)
    assert engine.world.written(Eviction) == []
    assert engine.world.notes("Preempted") == ["Preempted by pod default/high on node n (in kube-scheduler memory)."]
    assert "waiting on permit for pod: preempted" in engine.world.notes()
    assert engine.where("default/low") == "backoff"
    assert engine.cache.get("default/low") is None


async def test_a_victim_that_is_being_prepared_goes_back_to_the_queue() -> None:
    async def never(state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        if pod.name == "low":
            await asyncio.sleep(1000)

    slow = a_plugin("Slow", fw.PreBindPlugin, pre_bind=never)

    engine = an_engine(slow)
    await engine.schedule(a_node("n"), a_pod("low", priority=0, requests={"cpu": "3"}))
    await engine.schedule(HIGH)

    assert engine.world.written(Eviction) == []
    assert "preempted by DefaultPreemption" in engine.world.notes()
    assert engine.where("default/low") == "backoff"


async def test_a_victim_of_another_profile_on_hold_is_found_too() -> None:
    hold = a_plugin("Hold", fw.PermitPlugin, permit=lambda state, pod, node: HELD if pod.name == "low" else None)

    engine = an_engine(hold, profiles=("default-scheduler", "other"))
    await engine.schedule(a_node("n"), a_pod("low", priority=0, requests={"cpu": "3"}, scheduler_name="other"))
    await engine.schedule(HIGH)

    assert engine.world.written(Eviction) == []


def budget_changed(engine: EngineUnderTest, allowed: int, version: int) -> None:
    selector = {"matchLabels": {"app": "web"}}
    status = {"disruptionsAllowed": allowed}
    made = an_object("web", namespace="default", version=version, spec={"selector": selector}, status=status)
    engine.engine.object_handlers.object_changed(POD_DISRUPTION_BUDGET, made)


async def two_services(*preemptors: str) -> EngineUnderTest:
    """Nodes full of ten pods each of a service of which one may go, and of pods of a higher priority; some preempt."""
    engine = an_engine(profiles=("default-scheduler", "other"))
    for i in range(10):
        web = a_pod(f"web-{i}", labels={"app": "web"}, requests={"cpu": "3"}, node_name=f"w{i}")
        spare = a_pod(f"spare-{i}", priority=10, requests={"cpu": "3"}, node_name=f"s{i}")
        engine.see(a_node(f"w{i}"), a_node(f"s{i}"), web, spare)
    budget_changed(engine, 1, version=1)
    await preempt(engine, *preemptors)
    return engine


async def preempt(engine: EngineUnderTest, *preemptors: str) -> None:
    for i, name in enumerate(preemptors):
        profile = ("default-scheduler", "other")[i % 2]
        engine.see(a_pod(name, priority=100, requests={"cpu": "3"}, scheduler_name=profile))
    await engine.schedule()


def of_service(engine: EngineUnderTest) -> list[str]:
    return [each for each in engine.evicted if each.startswith("default/web")]


async def test_a_burst_of_preemptors_takes_what_a_budget_allows_and_no_more() -> None:
    engine = await two_services(*(f"high-{i}" for i in range(10)))

    assert (len(of_service(engine)), len(engine.evicted)) == (1, 10)


@pytest.mark.parametrize(
    ("leaving", "version", "allowed", "gone", "expected"),
    [
        pytest.param(False, 9, 1, False, 1, id="the budget changed before the victim was leaving"),
        pytest.param(True, 1, 1, False, 1, id="the budget has not changed since it is leaving"),
        pytest.param(True, 9, 0, False, 1, id="the budget counts it"),
        pytest.param(True, 9, 1, False, 2, id="the budget counts it and allows one more"),
        pytest.param(True, 1, 1, True, 2, id="it is gone"),
    ],
)
async def test_a_victim_counts_until_the_budget_has_changed_or_it_is_gone(
    leaving: bool, version: int, allowed: int, gone: bool, expected: int
) -> None:
    engine = await two_services("first")
    victim = engine.engine.pods[of_service(engine)[0]]
    if leaving:
        engine.see(going(victim))
    budget_changed(engine, allowed, version)
    if gone:
        engine.handlers.pod_deleted(victim)
        engine.see(a_pod("filler", priority=100, requests={"cpu": "3"}, node_name=victim.node_name))

    await preempt(engine, "second")

    assert len(of_service(engine)) == expected


async def test_a_victim_whose_eviction_failed_counts_no_more() -> None:
    engine = await two_services()
    engine.world.eviction_refusal = ClusterError("no")
    await preempt(engine, "first")
    engine.handlers.pod_deleted(engine.engine.pods["default/first"])
    engine.world.eviction_refusal = None

    await preempt(engine, "second")

    assert len(of_service(engine)) == 2


@pytest.mark.parametrize("attempts", [1, 5])
async def test_a_replay_chooses_the_same_victim(attempts: int) -> None:
    async def act() -> list[Eviction]:
        engine = an_engine()
        for i in range(150):
            engine.see(a_node(f"n{i}"), a_pod(f"low-{i}", priority=0, requests={"cpu": "3"}, node_name=f"n{i}"))
        engine.see(HIGH)
        queued = engine.pop()
        queued.attempts = attempts
        engine.loop.schedule_one(queued)
        await settle()
        return engine.world.written(Eviction)

    first = await act()

    assert len(first) == 1
    assert await act() == first


HELD = fw.PermitWait(600)


@pytest.mark.parametrize("cores", ["1", "5"])
async def test_a_pod_that_is_resized_while_it_waits_is_tried_with_its_new_size(cores: str) -> None:
    engine = an_engine()
    await engine.schedule(a_node("n"), a_pod("web", requests={"cpu": "6"}))

    resized = a_pod("web", requests={"cpu": cores})
    engine.see(nominated(resized, ""))
    engine.wait(30)
    await engine.schedule()

    assert engine.world.bound == ({resized.uid: "n"} if cores == "1" else {})
