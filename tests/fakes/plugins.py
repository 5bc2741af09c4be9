"""Plugins that do as a test says, and ways to make them."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import Aspect, Int32Column, Int64Column, NodeColumns, NodeInfo, Rows
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

P = TypeVar("P", bound=Plugin)


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
