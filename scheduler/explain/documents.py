"""What a scheduler answers about a pod, as JSON: fields that may be missing have a default."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType


class ShortageRange(msgspec.Struct, frozen=True, rename="camel"):
    """How much of a resource is missing, in the units of `Pod.requests`."""

    resource: str
    nearest: int
    """On the nearest miss."""

    least: int
    most: int
    wanted: int
    when_empty: int
    """What would be missing without any pod on the node."""


class ReportedObstacle(msgspec.Struct, frozen=True, omit_defaults=True):
    """What keeps a pod from a node, or from all."""

    plugin: str
    code: str
    """The label of the refusal's code, such as `Unschedulable`."""

    fact: str
    shortage: ShortageRange | None = None


class FittingNodes(msgspec.Struct, frozen=True):
    """All nodes, and those that the pod fits."""

    count: int
    fitting: int
    names: Sequence[str]
    """Of the fitting nodes."""


class ReportedGroup(msgspec.Struct, frozen=True):
    """Nodes with the same obstacles, the nearest miss first."""

    count: int
    names: Annotated[Sequence[str], Meta(min_length=1)]
    obstacles: Sequence[ReportedObstacle]


class Suggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change after which the pod fits some nodes."""

    text: str
    count: int
    """Of the nodes that it fits then."""

    names: Sequence[str]
    """Of these nodes."""

    patch: list[dict[str, Any]] = []
    """A JSON Patch of the object in which the pod is written; empty if the cluster is to be changed."""

    object: Mapping[str, str] = {}
    """What the patch is for, if not the pod itself: `kind`, `namespace` and `name`."""

    command: str = ""
    obstacle: str = ""
    """Why it does not happen by itself, though it would help."""


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """What keeps a pod from all nodes, and what would help."""

    nodes: FittingNodes | UnsetType = UNSET
    """Unset if nothing can be said of them, as a plugin failed."""

    gates: Sequence[ReportedObstacle] = ()
    obstacles: Sequence[ReportedObstacle] = ()
    """Of the pod as a whole."""

    groups: Sequence[ReportedGroup] = ()
    more_groups: int = 0
    suggestions: Sequence[Suggestion] = ()
    failures: Sequence[str] = ()


class ReportedRefusal(msgspec.Struct, frozen=True):
    """A reason for which nodes were refused in an attempt."""

    plugin: str
    reason: str
    nodes: int


class PermitDelay(msgspec.Struct, frozen=True):
    """The Permit plugins that kept a pod waiting."""

    plugins: Sequence[str]
    seconds: float


class NodeTotal(msgspec.Struct, frozen=True):
    """One of the best nodes of an attempt."""

    node: str
    total: int


class ReportedAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An attempt to place the pod."""

    at: str
    attempt: int
    profile: str
    result: str
    """placed, bound, unschedulable or error."""

    milliseconds: float
    node: str = ""
    evaluated: int = 0
    feasible: int = 0
    message: str = ""
    plugins: Sequence[str] | UnsetType = UNSET
    refusals: Sequence[ReportedRefusal] = ()
    nominated: str = ""
    victims: Sequence[str] | UnsetType = UNSET
    victim_count: int | UnsetType = UNSET
    permit: PermitDelay | None = None
    retried: str = ""
    scores: Mapping[str, int] = {}
    """Plugin → weighted score of the node."""

    best: Sequence[NodeTotal] | UnsetType = UNSET
    text: str
    """All of it, for people."""


class PodReport(msgspec.Struct, kw_only=True):
    """Where a pod is on its way, and why it has no node."""

    namespace: str
    name: str
    leading: bool = True
    """Whether the scheduler that answers leads."""

    found: bool
    uid: str | UnsetType = UNSET
    scheduler: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    state: str
    node: str | UnsetType = UNSET
    attempts: int | UnsetType = UNSET
    near: Sequence[str] | UnsetType = UNSET
    """Names of pods that may be meant, if there is none of this name."""

    about: Sequence[str] | UnsetType = UNSET
    """Lines about the state."""

    history: Sequence[ReportedAttempt] | UnsetType = UNSET
    explanation: Explanation | UnsetType = UNSET
