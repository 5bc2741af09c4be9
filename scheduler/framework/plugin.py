"""The extension points: what a plugin may be asked, in the order in which a pod meets them.

    PreEnqueue → QueueSort → PreFilter → Filter → (PostFilter) → PreScore → Score → NormalizeScore
    → Reserve → Permit → PreBind → Bind → PostBind

A group of pods whose nodes are to be near each other is tried in several placements, sets of nodes:

    PlacementGenerate → for each placement: PreFilter … Reserve for each of the pods, taken back
    → PlacementScore → NormalizePlacementScore → Reserve … PostBind for each of the pods

A plugin is a class that names its extension points as bases, usually a dataclass whose fields are its arguments in
the configuration file and nothing else. What it needs from the scheduler comes to `start`:

    made from its arguments ─► problems() ─► start(handle) ─► events_to_register() ─► pods … ─► stop()

A configuration that is only checked goes no further than `problems`. When it is loaded again while the scheduler
runs, a profile that is as before keeps its plugins. All plugins of a changed profile are constructed again:

    the old one's kept() ─► the new one's take_over(), after its start ─► pods … ─► the old one's stop()

A plugin may keep what it derives from what it reads, as long as no decision would differ without it; what belongs to
one cycle goes into the CycleState.

Everything up to Permit is synchronous and must not wait. Filter and Score come in two forms: the plain one answers
for one node, the column one for an array of nodes at once; a plugin implements one of the two.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, ClassVar, Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.events import ALL_EVENTS, ClusterEventWithHint
from scheduler.framework.groups.placements import Placement, PodGroupAssignments
from scheduler.framework.handle import Handle
from scheduler.framework.nodes.nodes import Aspect, Int32Column, Int64Column, NodeColumns, NodeInfo, Rows
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status

MAX_NODE_SCORE: Final = 100
MIN_NODE_SCORE: Final = 0
MAX_TOTAL_SCORE: Final = 2**63 - 1

MAX_PERMIT_SECONDS: Final = 15 * 60.0
"""A Permit plugin cannot hold a pod longer than this."""


WAIT_SECONDS: Final = 60.0
"""After this time, the log and an Event name a plugin that is awaited."""


class Write(NamedTuple):
    """The verbs that a plugin uses on a resource through `handle.api`."""

    resource: str
    """As events name it; with `subresource`, only that part of it."""

    verbs: tuple[str, ...] = ("get", "patch")
    """Those of the API: `patch` for a patch, `update` for an update; and `get`, or lost answers cannot be settled."""

    subresource: str = ""


class Plugin(ABC):
    """The base of all plugins."""

    name: ClassVar[str]
    """Its name in the configuration, in metrics and in messages."""

    reads: ClassVar[Sequence[str]] = ()
    """Resources whose objects it looks up with `handle.objects`, in addition to those that its events name."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Resource → the fields that it reads in addition to the metadata, such as `("spec.selector",)`.

    For resources without a struct: if all plugins that name one say what they read, the rest takes no memory. Of
    those that are left out here it reads everything.
    """

    reads_raw_pods: ClassVar[bool] = False
    """Whether it reads `pod.raw` or `pod.annotations`. Then all pods are kept as JSON, too, some KB each."""

    writes: ClassVar[Sequence[Write]] = ()
    """The resources that it writes with `handle.api`. Permissions follow from it."""

    def start(self, handle: Handle) -> None:  # noqa: B027  most plugins need nothing
        """Take what the scheduler offers: called once, before anything else is asked of the plugin.

        There are no nodes, pods or objects yet. An error keeps the scheduler from starting.
        """

    def stop(self) -> None:  # noqa: B027
        """Give back what `start` took, such as files and connections: called once, after the last pod."""

    def kept(self) -> Any:
        """Return what its successor is to have when the profile's configuration has changed; None for nothing.

        Called between two decisions. Pods whose binding is under way still come to this plugin, to be unreserved or
        bound: so return what it keeps, not a copy, and as plain values if the plugin's own file may change. What is
        raised costs what was kept; the new plugin is taken anyway.
        """
        return None

    def take_over(self, kept: Any) -> None:  # noqa: B027
        """Take what `kept` of the plugin of this name in this profile returned, before the first pod comes.

        Called after `start`, and only if there was such a plugin and it kept something. What is raised refuses the
        new configuration.
        """

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make a pod schedulable which this plugin refused.

        Without an answer of its own a plugin gets all events.
        """
        return (ClusterEventWithHint(ALL_EVENTS),)


class PreEnqueuePlugin(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Say whether `pod` may enter activeQ; a refusal gates it."""


class QueueSortPlugin(Plugin):
    @abstractmethod
    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """Return whether `a` is to be tried before `b`."""

    def sort_key(self, queued: QueuedPod) -> Any:
        """Return a value that orders like `less`; one that is cheap to compare makes a quick queue."""
        return _ByLess(self, queued)


@total_ordering
class _ByLess:
    __slots__ = ("plugin", "queued")

    def __init__(self, plugin: QueueSortPlugin, queued: QueuedPod) -> None:
        self.plugin = plugin
        self.queued = queued

    def __lt__(self, other: "_ByLess") -> bool:
        return self.plugin.less(self.queued, other.queued)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByLess) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]


class SignPlugin(Plugin):
    """A plugin whose Filter and Score depend on a fragment of the pod and on known aspects of a node only.

    Then answers are stored per fragment and refreshed only for nodes of which an aspect has changed.
    """

    aspects: ClassVar[Aspect]
    """The aspects of a node that Filter and Score read, in addition to the pod."""

    signs_spec: ClassVar[bool] = False
    """Whether `sign` reads only the pod's spec, except its group and the names of volumes whose source is not decoded,
    and its resources. If that is so of all plugins of a profile, pods with the same spec are signed once."""

    signs_despite_objects: ClassVar[str] = ""
    """Why stored answers stay right although the plugin names other resources than pods and nodes, in a sentence.

    A stored answer does not follow an object that Filter or Score looked up. So a plugin that signs and names such
    resources is warned of at the start, unless it says here why not to worry.
    """

    @abstractmethod
    def sign(self, pod: Pod) -> Hashable | None:
        """Return what the answers depend on: equal for two pods means equal answers. None: they depend on more."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The only nodes worth looking at."""

    node_names: frozenset[str]


class PreFilterPlugin(Plugin):
    filters_resizes: ClassVar[bool] = False
    """Whether it is asked about resizes of pods that have a node, `Pod.is_resize`. Others skip these."""

    filters_all: ClassVar[bool] = False
    """Whether Filter is asked about the pods that do not concern the plugin, too, as if `pre_filter` had said None."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> PreFilterResult | Status | None:
        """Prepare for Filter: None means all nodes, a result fewer.

        `SKIP` leaves this plugin's Filter out of the cycle; a refusal ends the cycle for the whole pod.
        """

    def concerns(self, pod: Pod) -> bool:
        """Say whether `pre_filter` is to be asked. False only if it would skip the pod whatever nodes and pods exist,
        or, with `filters_all`, let it pass.

        It reads only the pod's spec, except its group and volumes without a source, and its resources: pods with the
        same spec may be asked about once. If other objects count too, call `handle.columns.forget()` when they make the
        answer true. That is quicker for what most pods do not ask for. In cycles in which each plugin is timed it is
        asked anyway.
        """
        return True


class PreFilterExtensions(Plugin):
    """For plugins whose Filter reads counts that PreFilter wrote: keep them right in a what-if."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        """Count `other` as if it ran on `node`."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        """Stop counting `other` on `node`."""


class FilterPlugin(Plugin):
    """Filter in its plain form."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Say whether `pod` can run on `node`."""


class FilterNodesPlugin(Plugin):
    """Filter in its column form."""

    @abstractmethod
    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int32Column | None:
        """Return a reason code for each of `rows`, 0 where the pod can run; None if it can on all of them."""

    @abstractmethod
    def status_of(self, state: CycleState, pod: Pod, code: int) -> Status:
        """Return the refusal that a non-zero reason code stands for."""


class DemandPlugin(Plugin):
    """A plugin whose Filter compares a pod's requests with the free amounts of the node.

    So it can be counted how many members of a group fit there.
    """

    @abstractmethod
    def demand(self, pod: Pod) -> Mapping[str, int]:
        """Return resource → amount that must be free, more than 0, and 1 of `pods` for the pod itself."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """`nominated_node_name`: where the pod is expected to fit soon; empty clears an earlier nomination."""

    nominated_node_name: str

    victims: Sequence[Pod] = ()
    """The victims, for explanations; no decision depends on them."""


class PostFilterPlugin(Plugin):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, node_to_status: "Mapping[str, Status]"
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Try to make room for `pod`, which fits nowhere. Success means it may fit at its next attempt: None, or a
        Status whose text is added to the pod's condition and Event."""


class PreScorePlugin(Plugin):
    scores_all: ClassVar[bool] = False
    """Whether the pods that do not concern the plugin are scored, too, as if `pre_score` had said None: all with 0."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Status | None:
        """Prepare for Score over the feasible `rows`; `SKIP` leaves this plugin's Score out of the cycle."""

    def concerns_score(self, pod: Pod) -> bool:
        """Say whether `pre_score` is to be asked. False only if it would skip the pod whatever nodes and pods exist,
        or, with `scores_all`, let all nodes have 0.

        What `PreFilterPlugin.concerns` says of its answer holds for this one too.
        """
        return True


class ScorePlugin(Plugin):
    """Score in its plain form."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Rate a feasible node: MIN_NODE_SCORE to MAX_NODE_SCORE, or any int64 where NormalizeScore follows."""


class ScoreNodesPlugin(Plugin):
    """Score in its column form."""

    @abstractmethod
    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeColumns, rows: Rows) -> Int64Column | None:
        """Return the score of each of `rows`; None if all are 0. Rows may include nodes that are not feasible."""


class NormalizeScorePlugin(Plugin):
    normalizes_by_range: ClassVar[bool] = False
    """Whether a node's final score depends only on its own raw score, the minimum and the maximum, for any pod. Then
    it is not asked where the scores that it signed make no difference between nodes, being all 0."""

    @abstractmethod
    def normalize_score(self, state: CycleState, pod: Pod, scores: Int64Column) -> Int64Column:
        """Bring the scores of all feasible nodes into MIN_NODE_SCORE to MAX_NODE_SCORE.

        Return a new array: `scores` may be a stored answer.
        """


class ReservePlugin(Plugin):
    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Set aside what the pod needs on its node, in memory."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`. Must not fail, and may be called without it: then do nothing."""

    def concerns_reserve(self, pod: Pod) -> bool:
        """Say whether `reserve` and `unreserve` are to be called. False only if they would do nothing for the pod.

        What `PreFilterPlugin.concerns` says of its answer holds for this one too.
        """
        return True


class CompletingPlugin(ReservePlugin):
    """A Reserve plugin of ours that knows what else a pod takes of the node that it gets."""

    @property
    @abstractmethod
    def completes_pods(self) -> bool:
        """Whether `completed` is asked. It is read once, after `start`."""

    @abstractmethod
    def completed(self, state: CycleState, pod: Pod, node_name: str) -> Pod:
        """Return the pod as it is to count on its node; asked before `reserve`."""


@dataclass(frozen=True, slots=True)
class PermitWait:
    """Hold the pod, at most `timeout` seconds (capped at MAX_PERMIT_SECONDS), until someone allows or rejects it."""

    timeout: float

    message: str = ""
    """The reason why the pod waits, for people: `2 of 3 pods of the gang have a node`."""


class PermitPlugin(Plugin):
    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | PermitWait | None:
        """Approve (None), deny, or hold the binding."""


@dataclass(frozen=True, slots=True)
class PlacementProgress:
    """How far the pods of a group have been tried together."""

    remaining: int
    """How many are still to be tried."""

    scheduled: int
    """How many have a node, or would get one."""


class PlacementFeasiblePlugin(PermitPlugin):
    """A Permit plugin that also says whether a group is complete. It is asked before and after each pod is tried."""

    @abstractmethod
    def placement_feasible(self, state: CycleState, pod: Pod, progress: PlacementProgress) -> Status | None:
        """Answer None if the group of `pod` is complete, `wait(…)` if it may be later, `unschedulable(…)` if it cannot.

        After a refusal the other pods are not tried.
        """


class PreBindPlugin(Plugin):
    @property
    def wait_seconds(self) -> float:
        """For how long `pre_bind` may be awaited before the log and an Event name the plugin. It is not ended then."""
        return WAIT_SECONDS

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Answer `SKIP` if `pre_bind` has nothing to do for this pod. Must be quick."""
        return None

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Do what must be done before the pod is bound; may wait."""


class BindPlugin(Plugin):
    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Bind the pod, or answer `SKIP` to leave it to the next plugin."""


class PostBindPlugin(Plugin):
    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Learn that the pod was bound; clean up."""


class PlacementGeneratePlugin(Plugin):
    """Splits the nodes for a group of pods. A profile has one such plugin at most."""

    @abstractmethod
    def generate_placements(self, state: CycleState, pod: Pod, parent: Placement) -> Sequence[Placement] | Status:
        """Return the sets of nodes of `parent` in which the group of `pod` is to be tried; they may overlap.

        None at all means that the group fits nowhere; so does a refusal, which says why.
        """


class PlacementScorePlugin(Plugin):
    """Rates placements for a group of pods."""

    @abstractmethod
    def score_placement(self, state: CycleState, pod: Pod, assignments: PodGroupAssignments) -> int:
        """Rate a placement in which the group of `pod` fits: MIN_NODE_SCORE to MAX_NODE_SCORE, or any int64 where
        NormalizePlacementScore follows. Meanwhile none of the proposed pods counts on its node."""


class NormalizePlacementScorePlugin(Plugin):
    @abstractmethod
    def normalize_placement_score(self, state: CycleState, pod: Pod, scores: Int64Column) -> Int64Column:
        """Bring the scores of all placements in which the group fits into MIN_NODE_SCORE to MAX_NODE_SCORE."""
