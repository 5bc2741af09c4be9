"""Random life: whatever cluster, watch and API server do, and in whatever order, no pod is lost or placed twice.

Not covered: what a list finds (events that never arrive), and an update of a node that comes after its successor of the
same name.
"""

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scheduler import framework as fw
from scheduler.framework.queued import Entry
from scheduler.testing import a_node, a_pod
from tests.fakes import Eviction, a_plugin, settle
from tests.unit.cycle.fake_cluster import FakeCluster
from tests.unit.cycle.fakes import EngineUnderTest, an_engine, newer

T = TypeVar("T")

NODES = ("n1", "n2", "n3")

nodes = st.sampled_from(NODES)
cores = st.integers(2, 6)
rarely = st.sampled_from([False, False, False, True])
"""Most of what happens is ordinary: otherwise hardly any pod would come as far as its binding."""


class CycleLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.events = asyncio.new_event_loop()
        self.reserved: set[str] = set()
        hold = a_plugin(
            "Hold",
            fw.PermitPlugin,
            permit=lambda state, pod, node: fw.PermitWait(900) if "held" in pod.labels else None,
        )
        reserve = a_plugin(
            "Count",
            fw.ReservePlugin,
            reserve=lambda state, pod, node: self.reserved.add(pod.uid),
            unreserve=lambda state, pod, node: self.reserved.discard(pod.uid),
        )
        self.engine = self.make_engine(hold, reserve)
        self.engine.world.hangs = True
        self.cluster = FakeCluster(self.engine)
        self.engine.world.delete = self.a_victim_goes
        self.made = 0

    def make_engine(self, *plugins: type[fw.Plugin]) -> EngineUnderTest:
        return an_engine(*plugins)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.events.run_until_complete(coroutine)

    def some_pod(self, data: st.DataObject, *, pending: bool) -> fw.Pod | None:
        """A pod of the cluster, with or without a node."""
        pods = [pod for pod in self.cluster.pods.values() if bool(pod.node_name) != pending and not pod.is_terminated]
        return data.draw(st.sampled_from(pods)) if pods else None

    # The cluster.

    @initialize(sizes=st.lists(cores, min_size=1, max_size=3), pods=st.integers(1, 3))
    def there_are_nodes_and_pods(self, sizes: list[int], pods: int) -> None:
        for name, cpu in zip(NODES, sizes, strict=False):
            self.cluster.put(a_node(name, cpu=cpu))
        for number in range(pods):
            self.a_pod_comes(cpu=number % 2 + 1, priority=0, held=number == 1, gated=False, is_late=False)
        self.everything_arrives()

    @rule(cpu=st.integers(1, 3), priority=st.integers(0, 2), held=rarely, gated=rarely, is_late=rarely)
    def a_pod_comes(self, cpu: int, priority: int, held: bool, gated: bool, is_late: bool) -> None:
        self.made += 1
        labels, gates = {"held": ""} if held else {}, ("gate",) if gated else ()
        pod = newer(a_pod(f"p{self.made}", requests={"cpu": cpu}, priority=priority, labels=labels, gates=gates))
        self.cluster.put(pod)
        if not is_late:
            self.cluster.deliver(pod.uid)

    @rule(data=st.data(), label=st.sampled_from(["a", "b"]))
    def a_pod_changes(self, data: st.DataObject, label: str) -> None:
        pod = self.some_pod(data, pending=data.draw(st.booleans()))
        if pod is not None:
            self.cluster.put(newer(pod, labels={**pod.labels, "app": label}, scheduling_gates=None))

    @rule(data=st.data(), node_name=nodes)
    def somebody_else_binds_a_pod(self, data: st.DataObject, node_name: str) -> None:
        pod = self.some_pod(data, pending=True)
        if pod is not None:
            self.cluster.bind_elsewhere(pod, node_name)

    @rule(data=st.data(), waits=st.booleans())
    def a_pod_is_deleted(self, data: st.DataObject, waits: bool) -> None:
        """With a finalizer the deletion is only announced."""
        pod = self.some_pod(data, pending=data.draw(st.booleans()))
        if pod is not None and waits:
            self.cluster.put(newer(pod, deletion_timestamp="2026-01-31T12:00:00Z"))
        elif pod is not None:
            self.cluster.remove(pod)

    @rule(data=st.data())
    def a_pod_ends(self, data: st.DataObject) -> None:
        pod = self.some_pod(data, pending=False)
        if pod is not None:
            self.cluster.put(newer(pod, phase="Succeeded"))

    @rule(name=nodes, cpu=cores, goes=rarely)
    def a_node_comes_changes_or_goes(self, name: str, cpu: int, goes: bool) -> None:
        old = self.cluster.nodes.get(name)
        if old is not None and goes:
            self.cluster.remove(old)
            return
        new = a_node(name, cpu=cpu)
        if old is None:
            self.made += 1
            new = msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, uid=f"node {self.made}"))
        else:
            self.cluster.unruly.add(name)
            new = msgspec.structs.replace(new, metadata=old.metadata)
        self.cluster.put(new)

    def a_victim_goes(self, uid: str) -> None:
        if uid in self.cluster.pods:
            self.cluster.remove(self.cluster.pods[uid])

    # The API server.

    @precondition(lambda self: self.cluster.on_the_way)
    @rule(data=st.data())
    def an_event_arrives(self, data: st.DataObject) -> None:
        self.cluster.deliver(data.draw(st.sampled_from(sorted(self.cluster.on_the_way))))
        self.run(settle())

    @precondition(lambda self: self.engine.handlers.known_pods())
    @rule(data=st.data())
    def an_event_arrives_again(self, data: st.DataObject) -> None:
        known = self.engine.handlers.known_pods()
        self.engine.see(known[data.draw(st.sampled_from(sorted(known)))])
        self.run(settle())

    @precondition(lambda self: self.cluster.undecided())
    @rule(data=st.data(), refuse=rarely)
    def a_binding_is_decided(self, data: st.DataObject, refuse: bool) -> None:
        self.cluster.decide_binding(data.draw(st.sampled_from(self.cluster.undecided())), refuse=refuse)

    @precondition(lambda self: self.cluster.decided)
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        self.run(self.cluster.answer(data.draw(st.sampled_from(sorted(self.cluster.decided)))))

    # The scheduler.

    @rule()
    def everything_arrives(self) -> None:
        self.run(self.cluster.calm_down())

    @rule(pods=st.integers(1, 4))
    def schedule(self, pods: int) -> None:
        for _ in range(pods):
            queued = self.engine.queue.pop_nowait()
            if queued is not None:
                self.run(self.place(queued))

    async def place(self, queued: Entry) -> None:
        asked_before = len(self.engine.world.asked)
        self.decide(queued)
        pod, table = self.engine.cache.get(queued.pod.uid), self.engine.cache.table
        if pod is not None and len(self.engine.world.asked) == asked_before:
            row = table.row_of(pod.node_name)
            assert row is not None
            if self.engine.cache.is_assumed(pod.uid):
                assert table.requested("cpu")[row] <= table.allocatable("cpu")[row], "placed where it does not fit"
        await settle()

    def decide(self, queued: Entry) -> None:
        self.engine.loop.schedule_one(queued)

    @rule(data=st.data(), allowed=st.booleans())
    def a_pod_on_hold_is_let_go(self, data: st.DataObject, allowed: bool) -> None:
        held = list(self.engine.framework.handle.waiting_pods)
        if held:
            self.run(self.let_go(data.draw(st.sampled_from(held)), allowed=allowed))

    async def let_go(self, held: Any, *, allowed: bool) -> None:
        if allowed:
            held.allow("Hold")
        else:
            held.reject("Hold", "not today")
        await settle()

    async def let_all_go(self) -> None:
        for held in self.engine.framework.handle.waiting_pods:
            await self.let_go(held, allowed=True)

    @rule(seconds=st.sampled_from([0.5, 2.0, 11.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.engine.wait(seconds)

    # What always holds.

    @invariant()
    def is_consistent(self) -> None:
        self.engine.check()

    @invariant()
    def no_binding_is_asked_for_twice_at_once(self) -> None:
        assert not self.engine.world.doubled

    @invariant()
    def we_fill_no_node_beyond_its_size(self) -> None:
        for node in self.cluster.nodes.values():
            assert node.name in self.cluster.unruly or self.cluster.free_cpu(node) >= 0, node.name

    @invariant()
    def every_waiting_pod_has_the_newest_version_that_arrived(self) -> None:
        known = self.engine.handlers.known_pods()
        for pods in self.engine.queue.pending_pods().values():
            for queued in pods:
                newest = known[queued.pod.uid]
                assert queued.pod.metadata.resource_version == newest.metadata.resource_version, str(newest)

    def teardown(self) -> None:
        """When the trouble is over, what fits is placed, and what we believe is the truth."""
        try:
            self.run(self.end())
        finally:
            self.run(self.engine.loop.finish(0))
            self.events.close()

    async def end(self) -> None:
        engine, cluster = self.engine, self.cluster
        for rounds in itertools.count():
            before = len(engine.world.asked), len(engine.world.written(Eviction))
            for pod in [pod for pod in cluster.pods.values() if pod.is_deleting and pod.node_name]:
                cluster.remove(pod)  # others may be nominated to its place
            await cluster.calm_down()
            await self.let_all_go()
            engine.wait(301)
            while (queued := engine.queue.pop_nowait()) is not None:
                await self.place(queued)
                await self.let_all_go()  # on hold it might be evicted each time
            if rounds > 6 and before == (len(engine.world.asked), len(engine.world.written(Eviction))):
                break
            assert rounds < 60, "it does not come to rest"
        await cluster.calm_down()
        engine.check()
        assert engine.loop.bindings == 0
        assert list(engine.cache.assumed_pods()) == []
        assert engine.queue.in_flight_pods() == ()
        alive = {uid: pod for uid, pod in cluster.pods.items() if not pod.is_terminated}
        assert dict(engine.handlers.known_pods()) == alive
        assert self.reserved <= cluster.bound_by_us, "a reservation was not given back"
        for pod in alive.values():
            counted = engine.cache.get(pod.uid)
            assert (counted.node_name if counted is not None else "") == pod.node_name, str(pod)
            waits = not (pod.node_name or pod.is_deleting)
            assert bool(engine.where(pod.uid)) >= waits, f"{pod} is lost"
            if waits and not pod.spec.scheduling_gates:
                self.check_that_it_cannot_run(pod)

    def check_that_it_cannot_run(self, pod: fw.Pod) -> None:
        """In the end a pod waits for one reason only."""
        for node in self.cluster.nodes.values():
            assert self.cluster.free_cpu(node) < pod.requests["cpu"], f"{pod} fits on {node.name}"


TestCycleLife = CycleLife.TestCase
TestCycleLife.settings = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)
