"""Whatever happens to replicas, Lease, network and clocks: never do two lead at the same moment.

Replicas run on virtual time against a server whose calls are late, refused, lost before or after they were carried out.
They are killed, stopped in order, made to hang and started again; the Lease is deleted and edited; watches lag or are
deaf; the time of day jumps. Each hundredth of a second, whoever believes to lead is counted: it may be one.

Left out: a clock whose second has another length, a release that somebody else writes.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kubernetes.aio.leaderelection import leaderelection as library

from scheduler.kube.election.lease import Lease
from scheduler.process.virtual_time import run_virtually
from tests.fakes import Metrics
from tests.unit.kube.lease_server import Fault, LeaseServer, Replica

REPLICAS = 2
"""Called r0.1 and r1.2, and after a new start with another number."""

LOOK_SECONDS = 0.05

LONG = 100
"""Seconds, of a Lease that was edited."""

EDITS: list[dict[str, Any]] = [
    {"holderIdentity": ""},
    {"holderIdentity": None},
    {"holderIdentity": "thief"},
    {"holderIdentity": "r0.1"},
    {"holderIdentity": "r1.2"},
    {"leaseDurationSeconds": 1},
    {"leaseDurationSeconds": None},
    {"leaseDurationSeconds": LONG},
    {"renewTime": None, "acquireTime": None, "leaseTransitions": None},
]

faults = st.sampled_from(["none", "none", "none", "refused", "broken", "unsent", "lost"])
replica = st.integers(0, REPLICAS - 1)
actions = st.one_of(
    st.tuples(st.just("kill"), replica),
    st.tuples(st.just("stop"), replica),
    st.tuples(st.just("start"), replica),
    st.tuples(st.just("freeze"), replica),
    st.tuples(st.just("thaw"), replica),
    st.tuples(st.just("deaf"), st.booleans()),
    st.tuples(st.just("fault"), faults),
    st.tuples(st.just("delay"), st.sampled_from([0.001, 0.5, 3.0, 12.0])),
    st.tuples(st.just("step"), st.sampled_from([-1e6, -10.0, 10.0, 1e6])),
    st.tuples(st.just("delete"), st.just(0)),
    st.tuples(st.just("edit"), st.integers(0, len(EDITS) - 1)),
)
waits = st.sampled_from([0.0, 0.1, 1.0, 3.0, 9.0, 16.0])
scripts = st.lists(st.tuples(waits, actions), max_size=25)


class World:
    """The replicas and what is done to them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.server = LeaseServer()
        self.replicas: list[Replica | None] = [None] * REPLICAS
        self.starts = 0
        self.fault = "none"
        self.delay = 0.001
        self.deaf = False
        self.is_long = False
        self.offset = 1_800_000_000.0

    def time_of_day(self) -> float:
        return self.offset + asyncio.get_running_loop().time()

    def next_fault(self) -> Fault:
        happens = self.fault if self.random.random() < 0.7 else "none"
        return Fault(happens, self.random.uniform(0.0, self.delay), self.random.uniform(0.0, self.delay))

    def watch_delay(self) -> float:
        return 1e6 if self.deaf else self.random.uniform(0.0, self.delay)

    def start(self, index: int) -> None:
        if self.replicas[index] is None:
            self.starts += 1
            name = f"r{index}.{self.starts}"
            replica = Replica(
                self.server,
                name,
                Metrics(),
                next_fault=self.next_fault,
                time_of_day=self.time_of_day,
                watch_delay=self.watch_delay,
            )
            self.replicas[index] = replica.start()

    async def do(self, action: str, value: Any) -> None:
        match action:
            case "start":
                self.start(value)
            case "fault":
                self.fault = value
            case "delay":
                self.delay = value
            case "deaf":
                self.deaf = value
            case "step":
                self.offset += value
            case "delete":
                self.server.delete()
            case "edit":
                self.server.edit(**EDITS[value])
                self.is_long |= EDITS[value].get("leaseDurationSeconds") == LONG
                if self.server.lease is not None and Lease.of(self.server.lease).is_released:
                    self.server.edit(leaseDurationSeconds=2)  # two edits that look like a release together
            case _:
                if (replica := self.replicas[value]) is not None:
                    await self._do_to(replica, action, value)

    async def _do_to(self, replica: Replica, action: str, index: int) -> None:
        if action == "freeze":
            replica.thawed.clear()
        elif action == "thaw":
            replica.thawed.set()
        elif action == "kill" or replica.thawed.is_set():
            self.replicas[index] = None
            await (replica.kill() if action == "kill" else self._stop(replica))

    async def _stop(self, replica: Replica) -> None:
        stopping = asyncio.create_task(replica.stop())
        while not stopping.done():
            self.check()
            await asyncio.sleep(LOOK_SECONDS)
        stopping.result()

    async def wait(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            self.check()
            await asyncio.sleep(LOOK_SECONDS)

    def check(self) -> None:
        leaders = [replica.name for replica in self.replicas if replica is not None and replica.leads]
        assert len(leaders) <= 1, f"two lead: {leaders}"
        for index, replica in enumerate(self.replicas):
            assert replica is None or replica.task is not None
            if replica is not None and replica.task is not None and replica.task.done():
                replica.task.result()  # it ends by itself only because it lost the Lease; the kubelet starts it again
                self.server.watchers.remove(replica._watch)
                self.replicas[index] = None
                self.start(index)

    async def end(self) -> None:
        for replica in self.replicas:
            if replica is not None:
                await replica.kill()


async def play(seed: int, script: list[tuple[float, tuple[str, Any]]]) -> None:
    world = World(seed)
    world.server.put(holderIdentity="", leaseDurationSeconds=1)
    for index in range(REPLICAS):
        world.start(index)
    try:
        for wait, (action, value) in script:
            await world.wait(wait)
            await world.do(action, value)
            world.check()
        await world.wait(5.0)
        await recover(world)
    finally:
        await world.end()


async def recover(world: World) -> None:
    """When all is well again, somebody leads, soon."""
    world.fault, world.delay, world.deaf = "none", 0.001, False
    for index in range(REPLICAS):
        await world.do("thaw", index)
        world.start(index)
    # A long duration that somebody wrote is waited out, also when the Lease was deleted since.
    await world.wait(140.0 if world.is_long else 40.0)
    assert sum(replica is not None and replica.leads for replica in world.replicas) == 1


def with_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The library's time of day jumps with the world's: it is none that anything may rest on."""

    class Time:
        @staticmethod
        def time() -> float:
            return random.uniform(0.0, 4e9)

    return lambda: monkeypatch.setattr(library, "time", Time)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**16), script=scripts)
@example(seed=1, script=[(9.0, ("freeze", 0)), (16.0, ("freeze", 1)), (3.0, ("thaw", 0)), (0.1, ("thaw", 1))])
@example(seed=2, script=[(3.0, ("delay", 12.0)), (1.0, ("fault", "lost")), (16.0, ("kill", 0)), (0.0, ("start", 0))])
@example(seed=3, script=[(3.0, ("delete", 0)), (0.0, ("kill", 0)), (0.0, ("start", 0)), (16.0, ("stop", 1))])
@example(
    seed=4, script=[(3.0, ("freeze", 0)), (0.1, ("edit", EDITS.index({"holderIdentity": ""}))), (3.0, ("thaw", 0))]
)
@example(seed=5, script=[(3.0, ("freeze", 0)), (0.1, ("edit", EDITS.index({"holderIdentity": "r1.2"})))])
@example(seed=6, script=[(3.0, ("deaf", True)), (0.1, ("edit", EDITS.index({"leaseDurationSeconds": 1})))])
@example(seed=7, script=[(3.0, ("freeze", 0)), (0.1, ("delete", 0)), (0.1, ("kill", 1)), (0.1, ("start", 1))])
def test_two_never_lead(
    monkeypatch: pytest.MonkeyPatch, seed: int, script: list[tuple[float, tuple[str, Any]]]
) -> None:
    with_time(monkeypatch)()
    run_virtually(play(seed, script))
