"""A clock, a world and plugins for tests. Fakes, not mocks: they do what the real ones do, in memory."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from scheduler.api.pod import Pod
from scheduler.cycle.writers import Writers
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import BindRejected
from scheduler.framework.nodes import Aspect, BoolColumn, Int32Column, Int64Column, NodeColumns, NodeInfo, Rows
from scheduler.framework.plugin import (
    FilterNodesPlugin,
    FilterPlugin,
    Plugin,
    QueueSortPlugin,
    ScoreNodesPlugin,
    ScorePlugin,
    SignPlugin,
)
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status, unschedulable
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime import metrics as metrics_module
from scheduler.runtime.framework import Framework
from scheduler.runtime.handle import EngineHandle, PluginColumns
from scheduler.runtime.profile import POINTS, ProfilePlugins
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore

T = TypeVar("T")
P = TypeVar("P", bound=Plugin)

Metrics = metrics_module.Metrics


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine; one that hangs fails."""

    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await coroutine

    return asyncio.run(bounded())


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


class FakeClock:
    def __init__(self, time: float = 1000.25) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


@dataclass(frozen=True, slots=True)
class Event:
    """An event that was written. The pod, here and below: its namespace and name."""

    pod: str
    type: str
    reason: str
    action: str
    note: str


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The condition of a pod that was not placed; `nominated` is what its nomination becomes, None for no change."""

    pod: str
    reason: str
    message: str
    nominated: str | None


@dataclass(frozen=True, slots=True)
class Nomination:
    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class NominationCleared:
    pod: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Nothing more is to be written to this pod's status."""

    pod: str


@dataclass(frozen=True, slots=True)
class Eviction:
    victim: str
    preemptor: str
    message: str


Write = Unschedulable | Nomination | NominationCleared | Forgotten | Eviction
W = TypeVar("W", bound=Write)


@dataclass
class FakeWorld:
    """The API server as the cycle sees it: it does what it is asked at once, unless a test says otherwise."""

    refusal: BaseException | None = None
    """What bindings fail with."""

    hangs: bool = False
    """Whether bindings wait until they are answered."""

    exists: Callable[[str], bool] = lambda uid: True
    """Whether there is a pod of this UID to bind: if not, the refusal comes at once."""

    delete: Callable[[str], None] = lambda uid: None
    """Deletes the pod of this UID, as the API server does with a victim."""

    eviction_refusal: Exception | None = None
    """What evictions fail with."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    """UID and node of every binding asked for."""

    bound: dict[str, str] = field(default_factory=dict)
    """UID → node of the bindings that succeeded."""

    hanging: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    """UID → a binding that waits for its answer."""

    doubled: list[str] = field(default_factory=list)
    """Pods for which a binding was asked for while another one was under way."""

    events: list[Event] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    """What else was written, in order."""

    @property
    def writers(self) -> Writers:
        return Writers(self, self, self, self)

    def written(self, kind: type[W]) -> list[W]:
        """The writes of one kind."""
        return [write for write in self.writes if isinstance(write, kind)]

    def notes(self, reason: str = "FailedScheduling") -> list[str]:
        """The texts of the events of one kind."""
        return [event.note for event in self.events if event.reason == reason]

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.asked.append((pod.uid, node_name))
        if not self.exists(pod.uid):
            raise BindRejected("not found")
        if self.hangs:
            if pod.uid in self.hanging:
                self.doubled.append(str(pod))
            waits = self.hanging[pod.uid] = asyncio.get_running_loop().create_future()
            await waits
        elif self.refusal is not None:
            raise self.refusal
        assert pod.uid not in self.bound, f"{pod} is bound twice"
        self.bound[pod.uid] = node_name

    async def answer_binding(self, uid: str, refusal: BaseException | None = None) -> None:
        """Let a hanging binding succeed, or fail with `refusal`, and wait for what follows."""
        self._answer(uid, refusal)
        await settle()

    def answer_bindings(self, refusal: BaseException | None = None) -> None:
        """Let all hanging bindings succeed, or fail with `refusal`; those that follow do not hang."""
        self.hangs = False
        for uid in list(self.hanging):
            self._answer(uid, refusal)

    def _answer(self, uid: str, refusal: BaseException | None) -> None:
        waits = self.hanging.pop(uid)
        if refusal is None:
            waits.set_result(None)
        else:
            waits.set_exception(refusal)

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append(Event(str(pod), type_, reason, action, note))

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.writes.append(Unschedulable(str(pod), reason, message, nominated_node_name))

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.writes.append(Nomination(str(pod), node_name))

    def forget(self, pod: Pod) -> None:
        self.writes.append(Forgotten(str(pod)))

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Delete the victim, as far as the API server goes; a test lets the watch report it."""
        self.writes.append(Eviction(str(victim), str(preemptor), message))
        if self.eviction_refusal is not None:
            raise self.eviction_refusal
        was_there = self.exists(victim.uid)
        if was_there:
            self.delete(victim.uid)
        return was_there

    def clear_nomination(self, pod: Pod) -> None:
        self.writes.append(NominationCleared(str(pod)))


class _NoActivator:
    def activate(self, uids: Iterable[str]) -> None:
        """Nobody waits."""


def a_handle(table: NodeTable | None = None, nominator: Nominator | None = None, name: str = "profile") -> EngineHandle:
    world, table = FakeWorld(), table or NodeTable(4)
    return EngineHandle(
        name,
        table,
        nominator or Nominator(),
        _NoActivator(),
        WaitingPods(),
        world,
        world,
        ObjectStore(),
        {},
        world,
        Metrics(),
        PluginColumns(table),
    )


def a_framework(
    *plugins: Plugin,
    table: NodeTable | None = None,
    nominator: Nominator | None = None,
    weights: Mapping[str, int] | None = None,
    percentage: int = 0,
    metrics: Metrics | None = None,
    profile: str = "profile",
) -> Framework:
    """A profile with these plugins at each point that they extend, in this order."""
    table, nominator = table or NodeTable(4), nominator or Nominator()
    at = {point: tuple(p for p in plugins if isinstance(p, kinds)) for point, kinds in POINTS.items()}
    every_weight = {plugin.name: (weights or {}).get(plugin.name, 1) for plugin in plugins}
    made = ProfilePlugins(at, every_weight, {plugin.name: plugin for plugin in plugins})
    return Framework(made, a_handle(table, nominator, profile), table, nominator, metrics or Metrics(), percentage)


def a_plugin(name: str, *kinds: type[Plugin], **methods: Callable[..., Any]) -> type[Plugin]:
    """Make a plugin class. `methods` are functions without `self`; those left out do nothing and answer None."""

    async def nothing_async(*_: Any) -> None: ...

    def nothing(*_: Any) -> None: ...

    abstract = {method for kind in kinds for method in kind.__abstractmethods__}
    waits = {"pre_bind", "bind", "post_bind"}
    body: dict[str, Any] = {method: nothing_async if method in waits else nothing for method in abstract}
    body = {method: staticmethod(function) for method, function in (body | methods).items()}
    return cast("type[Plugin]", type(name, kinds, {**body, "name": name}))


def plugin(base: type[P], name: str, **methods: Any) -> P:
    """Make a plugin of that kind, as `a_plugin` does its class."""
    return cast("P", a_plugin(name, base, **methods)())


def fail(*_: Any) -> Any:
    raise ValueError("broken")


class FirstCome(QueueSortPlugin):
    name: ClassVar[str] = "FirstCome"

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return a.timestamp < b.timestamp


Judge = Callable[[Pod, NodeInfo], Status | None]


class PlainFilter(FilterPlugin):
    """Refuses with what `judge` says."""

    name: ClassVar[str] = "Plain"

    def __init__(self, judge: Judge, name: str = "Plain") -> None:
        self.judge = judge
        self.__dict__["name"] = name

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return self.judge(pod, node)


class ColumnFilter(FilterNodesPlugin):
    """The same in the column form."""

    name: ClassVar[str] = "Column"

    def __init__(self, judge: Judge, name: str = "Column") -> None:
        self.judge = judge
        self.__dict__["name"] = name
        self.statuses: list[Status] = []

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int32Column | None:
        codes = np.zeros(len(rows), np.int32)
        for i, row in enumerate(rows.tolist()):
            status = self.judge(pod, nodes.info(row)) if nodes.in_use[row] else None
            if status is not None:
                self.statuses.append(status)
                codes[i] = len(self.statuses)
        return codes

    def status_of(self, state: CycleState, pod: Pod, code: int) -> Status:
        return self.statuses[code - 1]


def refuse(*names: str, reason: str = "no") -> Judge:
    """Refuse the nodes of these names."""
    return lambda _, node: unschedulable(reason) if node.name in names else None


@dataclass
class Signed(FilterNodesPlugin, ScoreNodesPlugin, SignPlugin):
    """Signs with the pod's `app` label; refuses full nodes, scores by pods; writes down which rows it was asked."""

    name: ClassVar[str] = "Signed"
    aspects: ClassVar[Aspect] = Aspect.REQUESTED

    limit: int = 10
    asked: list[list[int]] = field(default_factory=list)
    scored: list[list[int]] = field(default_factory=list)
    fault: Exception | None = None

    def sign(self, pod: Pod) -> Hashable | None:
        return pod.labels.get("app")

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int32Column | None:
        self.asked.append(rows.tolist())
        if self.fault is not None:
            raise self.fault
        return (nodes.pod_count[rows] >= self.limit).astype(np.int32)

    def status_of(self, state: CycleState, pod: Pod, code: int) -> Status:
        return unschedulable("full")

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int64Column | None:
        self.scored.append(rows.tolist())
        return np.maximum(100 - nodes.pod_count[rows], 0)


class PlainScore(ScorePlugin):
    name: ClassVar[str] = "PlainScore"

    def __init__(self, scores: Mapping[str, int], name: str = "PlainScore") -> None:
        self.scores = scores
        self.__dict__["name"] = name

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return self.scores[node.name]


def sample(metrics: Metrics, name: str, **labels: str) -> float:
    """The value of one sample; 0 if there is none."""
    return metrics.registry.get_sample_value(name, labels) or 0.0


def everything(table: NodeTable) -> BoolColumn:
    """All rows in use."""
    return table.in_use.copy()


def names_of(table: NodeTable, rows: Sequence[int]) -> list[str]:
    return [table.names()[row] for row in rows]


def pop(queue: SchedulingQueue) -> QueuedPod:
    queued = queue.pop_nowait()
    assert queued is not None, "nothing to pop"
    return queued


def where(queue: SchedulingQueue, uid: str) -> str:
    """Say in which part of the queue a pod is; empty if in none."""
    for name, pods in queue.pending_pods().items():
        if any(queued.pod.uid == uid for queued in pods):
            return name
    return "in flight" if any(queued.pod.uid == uid for queued in queue.in_flight_pods()) else ""


def nominated_node(nominator: Nominator, uid: str) -> str:
    """Return the node to which a pod is nominated; empty if to none."""
    names = [name for name, pods in nominator.by_node() if any(pod.uid == uid for pod in pods)]
    assert len(names) <= 1, f"{uid} is nominated to {names}"
    return names[0] if names else ""
