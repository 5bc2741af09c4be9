"""Evictions in the background: in which order, what is told, and when the preemptor may be tried again.

The intent of kube-scheduler's tests in preemption/executor_test.go.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from plugins.shared.eviction.executor import Executor, Preemptor
from scheduler import framework as fw
from scheduler.framework.errors import ClusterError
from scheduler.process.metrics import Metrics
from scheduler.runtime.handle import EngineHandle
from scheduler.state.nominator import Nominator
from scheduler.state.preemptions import Preemptions
from tests.fakes import FakeClock, a_handle, sample, settle
from tests.unit.plugins.preemption import pod

HIGH = pod("high", 100)
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"


@dataclass
class World:
    """An API server that answers evictions when told to, and remembers what else it hears."""

    fails: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    open: asyncio.Event = field(default_factory=asyncio.Event)
    evicted: list[tuple[str, str]] = field(default_factory=list)
    events: list[tuple[str, ...]] = field(default_factory=list)
    activated: list[str] = field(default_factory=list)

    async def evict(self, victim: fw.Pod, preemptor: fw.Pod, message: str) -> bool:
        self.evicted.append((victim.name, message))
        await self.open.wait()
        if victim.name in self.fails:
            raise ClusterError("no")
        return victim.name not in self.gone

    def clear_nomination(self, pod: fw.Pod) -> None:
        raise AssertionError("nobody is nominated here")

    def event(self, pod: fw.Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append((pod.name, type_, reason, action, note))

    def activate(self, uids: Iterable[str]) -> None:
        self.activated += uids

    @property
    def asked(self) -> list[str]:
        return [name for name, _ in self.evicted]


@dataclass
class Scene:
    world: World
    handle: EngineHandle
    executor: Executor
    pods: dict[str, fw.Pod]
    preemptions: Preemptions

    async def start(self, *victims: fw.Pod) -> None:
        self.pods.update({each.uid: each for each in victims})
        self.executor.start(Preemptor.of_pod(HIGH), "n", fw.Victims(victims, 0))
        await settle()

    async def answer(self) -> None:
        self.world.open.set()
        await settle()

    @property
    def runs(self) -> bool:
        return self.executor.is_running(HIGH.uid)

    @property
    def metrics(self) -> Metrics:
        return self.handle.metrics

    def count(self, result: str) -> float:
        return sample(self.metrics, "scheduler_preemption_goroutines_execution_total", result=result)


def a_scene(fails: Sequence[str] = (), gone: Sequence[str] = ()) -> Scene:
    world, pods = World(frozenset(fails), frozenset(gone)), dict[str, fw.Pod]()
    metrics = Metrics()
    metrics.add_pod_groups()
    preemptions = Preemptions(pods, Nominator(), world, FakeClock())
    handle = replace(
        a_handle(),
        metrics=metrics,
        pods=pods,
        evictor=world,
        events=world,
        activator=world,
        preemptions=preemptions,
    )
    return Scene(world, handle, Executor(handle, "DefaultPreemption"), pods, preemptions)


def leaving(victim: fw.Pod) -> fw.Pod:
    return msgspec.structs.replace(
        victim, metadata=msgspec.structs.replace(victim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )


def three() -> list[fw.Pod]:
    return [pod("a", 3), pod("b", 2), pod("c", 1)]


async def test_a_victim_goes_and_its_owner_is_told() -> None:
    scene = a_scene()
    await scene.answer()
    await scene.start(pod("low", 0))
    assert scene.world.evicted == [("low", MESSAGE)]
    note = "Preempted by pod default/high on node n"
    assert scene.world.events == [("low", "Normal", "Preempted", "Preempting", note)]
    assert not scene.runs
    assert scene.world.activated == []
    assert scene.count("success") == 1
    assert sample(scene.metrics, "scheduler_preemption_victims_sum") == 1
    seconds = "scheduler_preemption_goroutines_duration_seconds_count"
    assert sample(scene.metrics, seconds, result="success") == 1
    seconds = "scheduler_preemption_execution_duration_seconds_count"
    assert sample(scene.metrics, seconds, preemptor="pod", result="success") == 1


async def test_the_last_victim_goes_last() -> None:
    scene = a_scene()
    await scene.start(*three())
    first, waits = list(scene.world.asked), scene.runs
    await scene.answer()

    assert (first, waits, scene.world.asked, scene.runs) == (["a", "b"], True, ["a", "b", "c"], False)


@pytest.mark.parametrize(
    ("fails", "asked"),
    [
        (["a"], ["a", "b"]),
        (["b"], ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        (["c"], ["a", "b", "c"]),
    ],
)
async def test_a_failure_brings_the_preemptor_back_at_once(fails: list[str], asked: list[str]) -> None:
    scene = a_scene(fails)
    await scene.answer()
    await scene.start(*three())

    assert scene.world.asked == asked
    assert scene.world.activated == [HIGH.uid]
    assert not scene.runs
    assert (scene.count("success"), scene.count("error")) == (0, 1)


async def test_an_error_that_nobody_foresaw_is_a_failure_too() -> None:
    scene = a_scene()

    async def broken(victim: fw.Pod, preemptor: fw.Pod, message: str) -> bool:
        raise ValueError("broken")

    object.__setattr__(scene.handle, "evictor", type("Broken", (), {"evict": staticmethod(broken)})())
    await scene.start(pod("low", 0))

    assert scene.world.activated == [HIGH.uid]
    assert not scene.runs


async def test_a_victim_that_was_gone_already_is_no_failure_and_nobody_is_told() -> None:
    scene = a_scene(gone=["low"])
    await scene.answer()
    await scene.start(pod("low", 0))

    assert scene.world.events == []
    assert scene.count("success") == 1
    assert scene.world.activated == []


async def test_victims_that_are_going_already_are_left_alone() -> None:
    scene = a_scene()
    await scene.answer()
    await scene.start(leaving(pod("low", 0)))

    assert scene.world.asked == []
    assert not scene.runs
    assert sample(scene.metrics, "scheduler_preemption_victims_count") == 1


async def test_once_the_last_victim_is_on_its_way_the_preemptor_may_come_back() -> None:
    scene, low = a_scene(), pod("low", 0)
    await scene.start(low)
    waits = [scene.runs]
    scene.pods[low.uid] = leaving(low)
    waits.append(scene.runs)
    del scene.pods[low.uid]
    waits.append(scene.runs)
    await scene.answer()

    assert waits == [True, False, False]


async def test_while_others_are_left_the_last_victim_does_not_count() -> None:
    scene, victims = a_scene(), three()
    await scene.start(*victims)
    for each in victims:
        scene.pods[each.uid] = leaving(each)
    waits = scene.runs
    await scene.answer()

    assert waits


async def test_a_deletion_that_came_before_the_last_victims_turn_brings_nobody_back_so_the_end_does() -> None:
    scene, low = a_scene(gone=["low"]), pod("low", 0)
    scene.executor.start(
        Preemptor.of_pod(HIGH), "n", fw.Victims([low], 0)
    )  # and before its job begins, the watch tells that the victim is gone
    await settle()
    await scene.answer()

    assert scene.world.activated == [HIGH.uid]
    assert scene.count("success") == 1
    assert not scene.runs


async def test_a_preemption_that_outlives_its_purpose_does_not_end_the_next_one() -> None:
    scene, low, lower = a_scene(), pod("low", 0), pod("lower", -1)
    await scene.start(low)
    del scene.pods[low.uid]  # which lets the preemptor come back, while the answer to the eviction is waited for
    scene.world.open, answer_to_the_first = asyncio.Event(), scene.world.open
    await scene.start(lower)
    answer_to_the_first.set()
    await settle()
    waits = scene.runs
    await scene.answer()

    assert waits
    assert not scene.runs
    assert scene.world.activated == []
    assert scene.count("success") == 2


async def test_a_victim_that_has_lost_its_node_stays_and_the_preemptor_is_tried_at_once() -> None:
    scene = a_scene()
    first, last = pod("a", 1), pod("b", 0)
    await scene.start(first, last)

    scene.preemptions.failed(last.uid, began=0.0)
    await scene.answer()

    assert (scene.world.asked, scene.runs, scene.world.activated) == (["a"], False, [HIGH.uid])


async def test_other_pods_do_not_wait() -> None:
    scene = a_scene()
    await scene.start(pod("low", 0))
    waits = scene.executor.is_running("default/other")
    await scene.answer()

    assert not waits


async def test_a_pod_on_hold_is_sent_back_and_not_deleted() -> None:
    scene, low = a_scene(), pod("low", 0)
    waiting = scene.handle.waiting_pods.add(low, {"Hold": fw.PermitWait(1000.0)})
    await scene.start(low)
    outcome = await waiting.outcome()

    assert outcome == fw.Status(fw.Code.ERROR, ("preempted",), "DefaultPreemption")
    assert scene.world.asked == []
    assert scene.world.events[0][-1] == "Preempted by pod default/high on node n (in kube-scheduler memory)."


async def test_a_pod_that_was_let_go_just_before_is_deleted() -> None:
    scene, low = a_scene(), pod("low", 0)
    scene.handle.waiting_pods.add(low, {"Hold": fw.PermitWait(1000.0)}).allow("Hold")
    await scene.answer()
    await scene.start(low)

    assert scene.world.asked == ["low"]


async def test_a_binding_that_is_being_prepared_is_called_off() -> None:
    scene, low = a_scene(), pod("low", 0)
    work = asyncio.ensure_future(scene.handle.pods_in_pre_bind.run(low.uid, asyncio.sleep(1000)))
    await settle()
    await scene.start(low)
    (error,) = await asyncio.gather(work, return_exceptions=True)

    assert str(error) == "preempted by DefaultPreemption"
    assert scene.world.asked == []
    assert scene.world.events[0][-1] == "Preempted by pod default/high on node n (in kube-scheduler memory)."
