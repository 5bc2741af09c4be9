"""Permit in a simulation: pods on hold wait while others are placed, on a virtual clock."""

import asyncio
import itertools
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

import plugins
from scheduler import framework as fw
from scheduler.api.objects import node_from_dict
from scheduler.api.pods.pod import pod_from_dict
from scheduler.config.load import config_from_dict
from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError
from scheduler.process import virtual_time
from scheduler.simulate.engine import simulate
from scheduler.simulate.output import as_text
from scheduler.simulate.what_if.answers import answered, is_short
from scheduler.simulate.what_if.questions import Questions
from tests.fakes.config import a_config, a_profile
from tests.unit.simulate.what_if import world
from tests.unit.simulate.what_if.world import cluster_with

Json = dict[str, Any]


class Gang(fw.PermitPlugin, fw.ReservePlugin):
    """Lets pods of a gang go when `size` of them have a node; tells of what it was asked to take back."""

    name: ClassVar[str] = "Gang"
    size: ClassVar[int] = 3
    seconds: ClassVar[float] = 30.0
    unreserved: ClassVar[list[str]] = []

    def start(self, handle: fw.Handle) -> None:
        self._waiting = handle.waiting_pods

    def events_to_register(self) -> list[fw.ClusterEventWithHint]:
        return [fw.ClusterEventWithHint(fw.ClusterEvent(fw.ASSIGNED_POD, fw.Action.DELETE))]

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.unreserved.append(pod.name)

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait | fw.Status | None:
        gang = pod.labels.get("gang")
        if gang is None:
            return None
        partners = [each for each in self._waiting if each.pod.labels.get("gang") == gang]
        if len(partners) + 1 < self.size:
            return fw.PermitWait(self.seconds, f"{len(partners) + 1} of {self.size} pods of {gang}")
        for each in partners:
            each.allow(self.name)
        return None


class Later(fw.PermitPlugin):
    """Allows each pod after `seconds`, by a timer."""

    name: ClassVar[str] = "Later"
    seconds: ClassVar[float] = 20.0

    def start(self, handle: fw.Handle) -> None:
        self._waiting = handle.waiting_pods

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
        def allow() -> None:
            waiting = self._waiting.get(pod.uid)
            assert waiting is not None
            waiting.allow(self.name)

        asyncio.get_running_loop().call_later(self.seconds, allow)
        return fw.PermitWait(600.0)


class Polling(Later):
    """Looks every second, in a task that never ends."""

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
        self._task = asyncio.get_running_loop().create_task(self._poll(pod.uid))
        return fw.PermitWait(600.0)

    async def _poll(self, uid: str) -> None:
        for seconds in range(10**9):
            waiting = self._waiting.get(uid)
            if waiting is not None and seconds == self.seconds:
                waiting.allow(self.name)
            await asyncio.sleep(1)


class PollingInVain(Polling):
    seconds: ClassVar[float] = 10**9


def a_node(name: str, cpu: int = 4) -> Json:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": 5000}}}


def a_pod(name: str, gang: str = "", cpu: int = 1, priority: int = 0) -> Json:
    labels = {"gang": gang} if gang else {}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": "s", "priority": priority, "containers": containers}
    return {"kind": "Pod", "metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec}


def a_gang(name: str, size: int, **fields: Any) -> list[Json]:
    return [a_pod(f"{name}-{number}", name, **fields) for number in range(size)]


def config_of(plugin: type[fw.Plugin], profile: str = "loadmaster") -> Config:
    values = a_profile(plugin.name, name=profile)
    if issubclass(plugin, fw.QueueSortPlugin):
        values["plugins"]["queueSort"] = {"disabled": [{"name": "*"}], "enabled": [{"name": plugin.name}]}
    return config_from_dict(a_config(profiles=[values]), {**plugins.IN_TREE, plugin.name: plugin})


def simulated(plugin: type[fw.Plugin], *objects: Json) -> Mapping[str, Json]:
    """Pod → its result."""
    nodes = [node_from_dict(each) for each in objects if each["kind"] == "Node"]
    pods = [pod_from_dict(each) for each in objects if each["kind"] == "Pod"]
    registry = {**plugins.IN_TREE, plugin.name: plugin}
    results = simulate(nodes, pods, config_of(plugin, "s"), registry)["pods"]
    return {each["name"]: each for each in results}


def a_gang_template() -> Json:
    """A new pod of the gang `g`, of which copies are made."""
    return world.a_pod("g") | {"metadata": {"name": "g", "labels": {"gang": "g"}}}


def nodes_of(results: Mapping[str, Json]) -> dict[str, str | None]:
    return {name: result["node"] for name, result in results.items()}


def test_pods_that_wait_for_one_another_are_bound_once_the_last_of_them_has_a_node() -> None:
    results = simulated(Gang, a_node("n"), *a_gang("g", 3))

    assert nodes_of(results) == {"g-0": "n", "g-1": "n", "g-2": "n"}
    assert not any("permit" in result for result in results.values())


def test_who_still_waits_at_the_end_is_named_with_the_node_the_plugin_what_for_and_how_long() -> None:
    results = simulated(Gang, a_node("n"), *a_gang("g", 2))

    assert nodes_of(results) == {"g-0": None, "g-1": None}
    assert results["g-1"]["permit"] == {
        "node": "n",
        "plugins": [{"plugin": "Gang", "message": "2 of 3 pods of g", "secondsLeft": 30.0}],
    }
    assert results["g-1"]["message"] == "waits on n for the Permit of Gang: 2 of 3 pods of g (30s left)"


def test_a_thousand_waiting_pods_take_seconds() -> None:
    began = time.perf_counter()

    results = simulated(Gang, a_node("n", 2000), *(a_pod(f"p{number}", f"g{number}") for number in range(1000)))

    assert sum("permit" in result for result in results.values()) == 1000
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize("plugin", [Later, Polling])
def test_a_timer_of_a_plugin_goes_off_without_taking_any_time(plugin: type[fw.Plugin]) -> None:
    began = time.perf_counter()

    results = simulated(plugin, a_node("n"), a_pod("one"), a_pod("two"))

    assert nodes_of(results) == {"one": "n", "two": "n"}
    assert time.perf_counter() - began < 5


def test_a_pod_that_waits_in_vain_gives_its_room_to_one_that_found_none() -> None:
    Gang.unreserved.clear()

    results = simulated(Gang, a_node("n", 4), a_pod("g-0", "g", cpu=3), a_pod("plain", cpu=2))

    assert nodes_of(results) == {"g-0": None, "plain": "n"}
    assert Gang.unreserved == ["g-0"]
    assert "rejected due to timeout after waiting 30s at plugin Gang" in results["g-0"]["message"]


class Rejecting(Gang):
    """Rejects all pods of a gang once one of them is called `bad`."""

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait | fw.Status | None:
        if pod.name != "bad":
            return super().permit(state, pod, node_name)
        for each in self._waiting:
            each.reject(self.name, "the gang is broken")
        return fw.unschedulable("bad")


def test_the_room_of_pods_that_a_plugin_rejects_goes_to_others_that_wait() -> None:
    results = simulated(
        Rejecting,
        a_node("n", 4),
        a_pod("g-0", "g", cpu=3, priority=9),
        a_pod("plain", cpu=2, priority=5),
        a_pod("bad", "g"),
    )

    assert nodes_of(results) == {"g-0": None, "plain": "n", "bad": None}
    assert "1 the gang is broken." in results["g-0"]["message"]


class Late(Gang, fw.QueueSortPlugin):
    """Tries `high` last, although it may preempt the others."""

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.name != "high" and b.pod.name == "high"


def test_a_pod_on_hold_that_is_preempted_gives_way_within_the_simulation() -> None:
    results = simulated(Late, a_node("n", 4), a_pod("low", "g", cpu=3), a_pod("high", cpu=3, priority=9))

    assert nodes_of(results) == {"low": None, "high": "n"}
    assert results["high"]["nominatedNode"] is None
    assert "Insufficient cpu" in results["low"]["message"]


class InAThread(fw.PreBindPlugin):
    """Asks something outside, which takes a moment of real time."""

    name: ClassVar[str] = "InAThread"

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        await asyncio.to_thread(time.sleep, 0.05)
        await asyncio.sleep(60)


def test_a_binding_that_waits_for_a_thread_and_for_time_comes_to_its_end() -> None:
    results = simulated(InAThread, a_node("n"), a_pod("one"))

    assert nodes_of(results) == {"one": "n"}


class Stubborn(Later):
    """Has a task that no cancellation ends."""

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
        self._task = asyncio.get_running_loop().create_task(self._stay())
        return fw.PermitWait(600.0)

    async def _stay(self) -> None:
        while True:
            try:
                await asyncio.sleep(3)
            except asyncio.CancelledError:
                continue


@pytest.mark.parametrize("plugin", [PollingInVain, Stubborn], ids=["polls for ever", "swallows its cancellation"])
def test_a_task_that_does_not_end_does_not_hold_up_the_simulation(plugin: type[fw.Plugin]) -> None:
    results = simulated(plugin, a_node("n"), a_pod("one"))

    assert results["one"]["permit"]["plugins"][0]["plugin"] == "Later"


class Restless(Later):
    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait:
        self._task = asyncio.get_running_loop().create_task(self._spin(), name="spins")
        return fw.PermitWait(600.0)

    async def _spin(self) -> None:
        for _ in itertools.count():
            await asyncio.sleep(0)


def test_a_task_that_never_waits_is_named_instead_of_running_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "BUSY_SECONDS", 0.1)

    with pytest.raises(ConfigError, match=rf"does not come to rest: .*task spins at {__file__}:\d+"):
        simulated(Restless, a_node("n"), a_pod("one"))


def asked(*objects: Json, plugin: type[fw.Plugin] = Gang, **questions: Any) -> Json:
    """The document of a what-if."""
    registry = {**plugins.IN_TREE, plugin.name: plugin}
    return answered(cluster_with(*objects), Questions(**questions), config_of(plugin), registry)


@pytest.mark.parametrize(("count", "placed"), [(3, 3), (2, 0)])
def test_copies_that_wait_for_one_another_count_once_they_are_allowed(count: int, placed: int) -> None:
    document = asked(world.a_node("n"), a_gang_template(), count=count)

    copies = document["whatIf"]["copies"]
    assert (copies["placed"], "waiting" in copies, is_short(document)) == (placed, not placed, not placed)


def test_copies_that_still_wait_are_counted_apart_with_what_they_wait_for() -> None:
    document = asked(world.a_node("n"), a_gang_template(), fill=True)

    copies = document["whatIf"]["copies"]
    assert (copies["placed"], copies["waiting"]["number"]) == (3, 1)
    assert copies["waiting"]["message"] == "waits on n for the Permit of Gang: 1 of 3 pods of g (30s left)"
    assert copies["next"]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert f"on hold: {copies['waiting']['name']}, waits on n for the Permit of Gang" in as_text(
        document, explain=False
    )


def test_pods_on_hold_stay_so_while_a_node_is_drained_and_go_once_a_replacement_completes_them() -> None:
    moved = world.on("old", "g-0", "ReplicaSet", "g", metadata={"labels": {"gang": "g"}})
    waiting = [
        world.a_pod(f"w-{number}") | {"metadata": {"name": f"w-{number}", "labels": {"gang": "g"}}} for number in (1, 2)
    ]

    document = asked(world.a_node("old"), world.a_node("new"), moved, *waiting, drain=("old",))

    assert set(world.placed(document).values()) == {"new"}
    assert document["whatIf"]["drained"][0]["placed"] == 1


def test_the_table_says_what_a_pod_waits_for_once() -> None:
    text = as_text({"pods": list(simulated(Gang, a_node("n"), a_pod("g-0", "g")).values())}, explain=False)

    assert "waits on n for the Permit of Gang: 1 of 3 pods of g (30s left)" in text
    assert "nominated" not in text


class Forever(fw.PreBindPlugin):
    name: ClassVar[str] = "Forever"

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        await asyncio.Event().wait()


def test_a_binding_that_does_not_end_is_said_of_the_pod() -> None:
    results = simulated(Forever, a_node("n"), a_pod("one"))

    assert (results["one"]["node"], results["one"]["message"]) == (None, "its binding has begun, and does not end")


class Both(Gang, fw.PreBindPlugin):
    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        await asyncio.sleep(100)


def test_a_binding_that_takes_longer_than_another_pod_is_on_hold_comes_to_its_end() -> None:
    results = simulated(Both, a_node("n"), a_pod("g-0", "g"), a_pod("one"))

    assert nodes_of(results) == {"g-0": None, "one": "n"}
