"""A plugin's explanation of a refusal: facts, and remedies.

A decision needs no more than a reason. A user who asks why a pod is pending wants to know which taint, how much
memory is missing, whose port it is; and what to change. None of this runs in a decision.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import NodeInfo
from scheduler.framework.plugin import Plugin
from scheduler.framework.status import Status


class Change(NamedTuple):
    """One operation on a pod, as in a JSON Patch (RFC 6902)."""

    op: str
    """`add`, `remove` or `replace`."""

    path: str
    """A JSON pointer below `/spec`. Lists and objects on the way that are not there are made."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that may remove an obstacle. The engine tries it out by deciding again."""

    text: str
    """In the imperative, without a full stop: `tolerate dedicated=gpu:NoSchedule`."""

    changes: tuple[Change, ...]
    """The change of the pod. A remedy that changes the cluster otherwise than by `node` has here what comes to the
    same for this node.
    """

    command: str = ""
    """The command that changes the cluster; empty if the pod is to be changed."""

    node: Callable[[Node], Node] | None = None
    """The node after the command; None if the pod is to be changed."""

    objects: tuple[tuple[str, Any], ...] = ()
    """Other objects as they are after the command, each with its resource."""

    is_last_resort: bool = False
    """Whether it takes down a wall between teams or hardware, such as a taint: it is suggested after all others."""


class Shortage(NamedTuple):
    """The missing amount of a resource, in the units of `Pod.requests`."""

    resource: str
    missing: int
    wanted: int
    """The pod's request."""

    when_empty: int = 0
    """How much would be missing without any pod on the node."""


class PodInTheWay(NamedTuple):
    """A pod without which an obstacle may be gone."""

    pod: Pod

    objects: tuple[tuple[str, Any], ...] = ()
    """Other objects as they are once it is gone, each with its resource."""

    no_preemption: str = "preemption deletes pods only on the node that it makes room on"
    """Why the pod is not evicted for one of a higher priority."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing that keeps a pod off a node."""

    fact: str
    """The fact, without the node's name, so that equal obstacles of many nodes are reported once."""

    remedies: tuple[Remedy, ...] = ()
    shortage: Shortage | None = None
    """Amounts differ from node to node; the fact of a shortage is derived from it."""

    example: str = ""
    """A detail that differs from node to node, such as the name of a pod in the way. Shown for the first node of a
    group."""

    in_the_way: tuple[PodInTheWay, ...] = ()
    """Pods, there or elsewhere; without any one of them it may be gone."""


class ExplainPlugin(Plugin):
    """A plugin that can say more of a refusal than its reason."""

    def obstacles(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[Obstacle]:
        """Say what keeps `pod` off a node that this plugin's Filter refused. Empty: the reason says it all."""
        return ()

    def obstacles_anywhere(self, state: CycleState, pod: Pod, refusal: Status) -> Sequence[Obstacle]:
        """Say why this plugin's PreFilter or PreEnqueue refused `pod` as a whole. Empty: the reason says it all."""
        return ()


@dataclass(frozen=True, slots=True)
class PossiblePreemption:
    """Pods that would have to leave a node for a pod to fit there."""

    node_name: str
    victims: tuple[Pod, ...]
    """The most important first."""

    obstacle: str = ""
    """Why they are not evicted for it; empty if they would be."""

    budgets: tuple[str, ...] = ()
    """Disruption budgets that this would violate, by namespace and name."""


class ExplainPreemptionPlugin(Plugin):
    """A PostFilter plugin that can say where it could make room, without making any."""

    def possible_preemptions(
        self, state: CycleState, pod: Pod, node_to_status: Mapping[str, Status]
    ) -> Iterable[PossiblePreemption | None]:
        """Yield preemptions that would help, the best first: a list, or a generator.

        A running scheduler does other things between two items, so that nodes may come and go; each preemption is
        tried out before it is suggested. An item that is None says nothing: whatever takes long has one every few
        milliseconds. Raises PluginError.
        """
        return ()
