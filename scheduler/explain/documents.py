"""The JSON that a scheduler answers about a pod, a group of pods, or the shares of the cluster.

docs/explain.md and docs/quota.md describe the fields. Optional ones have a default.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from scheduler.runtime.event_stream import EngineEvent


class ShortageRange(msgspec.Struct, frozen=True, rename="camel"):
    """The missing amount of a resource, in the units of `Pod.requests`."""

    resource: str
    nearest: int
    least: int
    most: int
    wanted: int
    when_empty: int


class ReportedObstacle(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reason that keeps a pod from a node, or from all nodes."""

    plugin: str
    code: str
    fact: str
    shortage: ShortageRange | None = None


class FittingNodes(msgspec.Struct, frozen=True):
    """The number of nodes, and those that the pod fits."""

    count: int
    fitting: int
    names: Sequence[str]


class ReportedGroup(msgspec.Struct, frozen=True):
    """Nodes with the same obstacles, the nearest miss first."""

    count: int
    names: Annotated[Sequence[str], Meta(min_length=1)]
    obstacles: Sequence[ReportedObstacle]


class Suggestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change after which the pod fits some nodes."""

    text: str
    count: int
    names: Sequence[str]
    patch: list[dict[str, Any]] = []
    object: Mapping[str, str] = {}
    command: str = ""
    obstacle: str = ""


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """The reasons why a pod has no node, and changes that would help."""

    nodes: FittingNodes | UnsetType = UNSET
    """Unset if a plugin failed and nodes could not be evaluated."""

    gates: Sequence[ReportedObstacle] = ()
    obstacles: Sequence[ReportedObstacle] = ()
    groups: Sequence[ReportedGroup] = ()
    more_groups: int = 0
    suggestions: Sequence[Suggestion] = ()
    failures: Sequence[str] = ()


class ReportedRefusal(msgspec.Struct, frozen=True):
    """A reason why nodes were refused in an attempt."""

    plugin: str
    reason: str
    nodes: int


class PermitDelay(msgspec.Struct, frozen=True):
    """The Permit plugins that made a pod wait."""

    plugins: Sequence[str]
    seconds: float


class NodeTotal(msgspec.Struct, frozen=True):
    """One of the best nodes of an attempt."""

    node: str
    total: int


class ReportedAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    at: str
    attempt: int
    profile: str
    result: str
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
    best: Sequence[NodeTotal] | UnsetType = UNSET
    text: str


class GroupMember(msgspec.Struct, frozen=True):
    """A pod of a group without a node, and where in the queue it is."""

    name: str
    state: str


class ShareEstimate(msgspec.Struct, frozen=True):
    """The time that it may take until there is space in a share."""

    text: str
    """With all that it depends on."""

    seconds: float | None = None
    """None: unknown."""

    running: int = 0
    """Pods whose end would free some of the lacking resources."""

    silent: int = 0
    """Those of them that do not say how long they run, or run longer than they said."""


class ShareWait(msgspec.Struct, kw_only=True):
    """Why a pod, or a group, waits for its share."""

    name: str
    source: str
    text: str
    """The scheduler's message."""

    lacks: Sequence[str] = ()
    """The lacking amounts, their share and the borrowers: a sentence each."""

    ahead: str = ""
    """The pods and groups that wait for the same share and go first."""

    estimate: ShareEstimate | UnsetType = UNSET
    suggestions: Sequence[Suggestion] = ()
    """Changes after which there is space in the share."""


class GroupReport(msgspec.Struct, kw_only=True):
    """The state of a group of pods, and in one sentence why it waits."""

    kind: Literal["PodGroup"] = "PodGroup"
    namespace: str
    name: str
    leading: bool = True
    found: bool
    near: Sequence[str] = ()
    source: str = ""
    """The resource of its object."""

    state: str = ""
    text: str = ""
    priority: int = 0
    needed: int = 0
    """How many pods must have a node before any is bound; 0: each is bound as soon as it has one."""

    members: int = 0
    scheduled: int = 0
    waiting: Sequence[GroupMember] = ()
    """The first of those without a node."""

    placement: str = ""
    victims: Sequence[str] = ()
    at: str = ""
    """When it was tried last."""

    about: Sequence[str] = ()
    share: ShareWait | UnsetType = UNSET
    """If the group waits for its share."""


class ShareAmounts(msgspec.Struct, frozen=True):
    """One resource of a share with all below it, in the units of `Pod.requests`."""

    resource: str
    guaranteed: int
    maximum: int | None
    """None: no limit."""

    used: int
    borrowed: int
    lent: int
    waiting: int
    """The sum of the requests of its pods without a node."""


class ShareStanding(msgspec.Struct, frozen=True):
    """The number by which an order of shares compares one with others; the least goes first."""

    order: str
    """`DominantShare` or `DecayedUsage`."""

    value: float
    """Both are divided by the weight: thousandths of what the parent could lend, which the share borrows; or the past
    usage of its own pods, by the weights of resources. At most 2^63 - 1, as in Kueue, which stands for infinite."""


class ShareReport(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    source: str
    """The resource of its object; `shares` for those of a plugin's arguments."""

    parent: str = ""
    """Empty for a root."""

    depth: int = 0
    """How many are above it."""

    weight: float = 1.0
    priority: int = 0
    waiting: int = 0
    """Pods without a node, of all shares below it."""

    standing: ShareStanding | None = None
    """None if the order compares no shares."""

    resources: Sequence[ShareAmounts] = ()
    problem: str = ""
    """Why none of its pods starts; empty if the share makes sense."""


class SharesReport(msgspec.Struct, kw_only=True):
    """All shares of the cluster, each followed by those below it."""

    kind: Literal["Shares"] = "Shares"
    leading: bool = True
    found: bool
    """Whether any profile has shares."""

    state: Literal["on", "off"]
    shares: Sequence[ShareReport] = ()
    more: int = 0
    """How many are left out."""


class SharesSeen(EngineEvent, frozen=True):
    """The shares were looked at, for the gauges. None are there any more if it is empty."""

    shares: Sequence[ShareReport]


class PodReport(msgspec.Struct, kw_only=True):
    """The state of a pod, and the reasons if it has no node."""

    namespace: str
    name: str
    leading: bool = True
    found: bool
    uid: str | UnsetType = UNSET
    scheduler: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    state: str
    node: str | UnsetType = UNSET
    attempts: int | UnsetType = UNSET
    near: Sequence[str] | UnsetType = UNSET
    about: Sequence[str] | UnsetType = UNSET
    history: Sequence[ReportedAttempt] | UnsetType = UNSET
    group: GroupReport | UnsetType = UNSET
    share: ShareWait | UnsetType = UNSET
    """If the pod, or its group, waits for its share."""

    explanation: Explanation | UnsetType = UNSET
