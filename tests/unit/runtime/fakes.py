"""Plugins that answer what they are told, and frameworks made of them."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

from scheduler import framework as fw
from scheduler.framework.nodes.nodes import Int32Column, Int64Column, Rows
from scheduler.framework.plugin import PreFilterResult
from scheduler.framework.status import Code
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node
from tests.unit.plugins.cluster import a_cluster

P = TypeVar("P", bound=fw.Plugin)


class _Told(fw.Plugin):
    """Gives one answer, or raises it, and notes in a log that it was asked."""

    def __init__(self, answer: Any = None, log: list[str] | None = None) -> None:
        self.answer = answer
        self.log = [] if log is None else log

    def say(self, asked: str) -> Any:
        self.log.append(f"{self.name} {asked}".strip())
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class PreFilter(_Told, fw.PreFilterPlugin):
    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> Any:
        return self.say("")


class Extensions(PreFilter, fw.PreFilterExtensions):
    """`answer` is what AddPod answers."""

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> Any:
        return None

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> Any:
        return self.say(f"{other.name} on {node.name}")

    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> Any:
        return self.say(f"{other.name} off {node.name}")


class Filter(_Told, fw.FilterPlugin):
    """Refuses the nodes in `answer`, a mapping from their names; nothing else in it means: none."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        told = self.say(node.name)
        found: fw.Status | None = told.get(node.name) if isinstance(told, Mapping) else told
        return found


class FilterNodes(_Told, fw.FilterNodesPlugin):
    """Like `Filter`, by columns. The code of a refusal is 1 and the position of the node's name in `answer`."""

    def filter_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: Rows) -> Int32Column | None:
        names = [nodes.names()[row] for row in rows.tolist()]
        refused = list(self.say(",".join(names)) or ())
        return np.array([refused.index(name) + 1 if name in refused else 0 for name in names], np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        found: fw.Status = list(self.answer.values())[code - 1]
        return found


class SignedFilter(Filter, fw.SignPlugin):
    """A plain Filter whose answers are stored."""

    aspects = fw.Aspect.NODE

    def sign(self, pod: fw.Pod) -> Hashable:
        return ""


class PostFilter(_Told, fw.PostFilterPlugin):
    def post_filter(self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]) -> Any:
        return self.say(",".join(node_to_status))


class PreScore(_Told, fw.PreScorePlugin):
    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: Rows) -> Any:
        return self.say("")


class Score(_Told, fw.ScorePlugin):
    """`answer`: node name → score, 0 where it is missing."""

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        found: int = self.say(node.name).get(node.name, 0)
        return found


class ScoreNodes(_Told, fw.ScoreNodesPlugin):
    """Like `Score`, by columns."""

    def score_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: Rows) -> Int64Column | None:
        names = [nodes.names()[row] for row in rows.tolist()]
        told = self.say(",".join(names))
        return None if told is None else np.array([told.get(name, 0) for name in names], np.int64)


class Reserve(_Told, fw.ReservePlugin):
    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.say("reserve")

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.say("unreserve")


class Permit(_Told, fw.PermitPlugin):
    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.say("")


class PreFlight(_Told, fw.PreBindPlugin):
    """`answer` is what PreBindPreFlight answers."""

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.say("pre-flight")

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.log.append(f"{self.name} pre-bind")


class PreBind(_Told, fw.PreBindPlugin):
    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.say("")


class Bind(_Told, fw.BindPlugin):
    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Any:
        return self.say("")


class PostBind(_Told, fw.PostBindPlugin):
    async def post_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.say("")


class QueueSort(_Told, fw.QueueSortPlugin):
    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.timestamp < b.timestamp


def named(name: str, kind: type[P]) -> type[P]:
    """Make a plugin class of another name."""
    made: type[P] = type(name, (kind,), {"name": name})
    return made


def a(kind: type[P], name: str = "", answer: Any = None, log: list[str] | None = None) -> P:
    """Make a plugin of one of the kinds above, called like its kind unless `name` is given."""
    make: Any = named(name or kind.__name__, kind)
    made: P = make(answer, log)
    return made


def nodes(*names: str) -> NodeTable:
    return a_cluster(*map(a_node, names))


ERROR = fw.Status(Code.ERROR, ("broken",))


def answer(value: object) -> Callable[..., object]:
    """Make a function that answers the same, whatever it is given."""
    return lambda *_: value


def later(value: object) -> Callable[..., Awaitable[object]]:
    """Make a coroutine function that answers the same, or raises it."""

    async def method(*_: Any) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return method


def some(*names: str) -> PreFilterResult:
    return PreFilterResult(frozenset(names))
