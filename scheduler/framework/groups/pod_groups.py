"""Groups of pods that are scheduled together: the one notion of them, whatever API they come from."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from scheduler.api.objects import GroupAnnotations, PodResourceClaim
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import NOTHING
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.events import POD_GROUP, POD_GROUP_V1BETA1

NEVER: Final = "Never"
"""The `preemptionPolicy` of a pod, or group, for which no pod is evicted."""

LOWER: Final = "PreemptLowerPriority"
"""That of all others."""


class GroupKey(NamedTuple):
    """The identity of a group: two of one name may come from different APIs."""

    namespace: str
    source: str
    """The resource of its object, as in events; for a group without one, the annotation that names it."""

    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class GroupObject(NamedTuple):
    """The object that stands for a group, where that is no PodGroup: for Events about it."""

    api_version: str
    kind: str
    name: str
    uid: str


class PodGroup(msgspec.Struct, frozen=True):
    """A group, and how its pods are to be placed."""

    namespace: str
    name: str
    uid: str
    """Of its object; namespace and name for a group without one."""

    source: str
    """The resource that it is read from."""

    minimum: int = 0
    """How many members need a node before any is bound; 0: each is bound as soon as it has one. For our own rules those
    that have succeeded are taken off it."""

    minimum_groups: int = 0
    """How many of the groups that it consists of have to fit; 0: it consists of pods."""

    priority: int = 0
    preemption_policy: str = ""
    """Never or PreemptLowerPriority, as for a pod; empty if its pods say whether it may evict others."""

    topology_keys: tuple[str, ...] = ()
    """Labels of nodes: all members go to nodes with the same value of each."""

    has_constraints: bool = False
    """Whether its object says anything of where its pods go together, if only that there is no topology key."""

    is_disrupted_together: bool = False
    """Whether it is evicted as a whole."""

    is_ours: bool = False
    """Whether Loadmaster's own rules hold for it; otherwise kube-scheduler's do."""

    succeeded: int = 0
    """How many members have succeeded, as its object says."""

    resources: Mapping[str, int] = NOTHING
    """The amounts that its members need together, at least: resource name → amount, as `Pod.requests` has them."""

    timeout_seconds: float = 0.0
    """How long members that have a node wait for the others at Permit; 0: as long as the plugin's arguments say."""

    required_level: str = ""
    """All members go to one domain of this level of the topology: a label of nodes, or the name of a level."""

    preferred_level: str = ""
    """The members go to one domain of this level if one holds them, or else of the smallest level that does."""

    expected_seconds: float = 0.0
    """How long it runs, by its owner's estimate; 0: unknown."""

    owner: GroupObject | None = None
    """The workload that describes it, for a group that has no object of its own."""

    claims: tuple[PodResourceClaim, ...] = ()
    """ResourceClaims of the group: for the members that have the same in their spec."""

    has_live_minimum: bool = False
    """Whether `minimum` is without the members that have succeeded already."""

    problem: str = ""
    """The reason why none of its pods is tried: it makes no sense. Empty if it does."""

    @property
    def key(self) -> GroupKey:
        source = POD_GROUP if self.source == POD_GROUP_V1BETA1 else self.source  # the same group in both versions
        return GroupKey(self.namespace, source, self.name)

    def may_preempt(self, pods: Iterable[Pod]) -> bool:
        """Return whether others may be evicted for these pods of it. Rule: resolvePreemptionPolicy."""
        if self.preemption_policy:
            return self.preemption_policy != NEVER
        return not any(pod.spec.preemption_policy == NEVER for pod in pods)

    @property
    def has_object(self) -> bool:
        """Whether the API has an object for it."""
        return self.uid != str(self)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Declaration(msgspec.Struct, frozen=True):
    """The fields of a pod about its group of Loadmaster's own rules."""

    scheduler_name: str
    priority: int
    annotations: GroupAnnotations
    contradiction: str = ""
    """The problem of a pod that names several groups; empty if it does not."""


class GroupMembers(Protocol):
    """The pods of one group: a live view."""

    @property
    def count(self) -> int:
        """How many there are: those with a node, and those without one that are for this scheduler."""

    @property
    def succeeded_count(self) -> int:
        """How many pods have left it as they had succeeded."""

    @property
    def scheduled_count(self) -> int:
        """How many of them have a node, or are assumed to."""

    @property
    def ready_count(self) -> int:
        """How many of them are not kept back by scheduling gates."""

    @property
    def unscheduled(self) -> Collection[Pod]:
        """The pods without a node."""

    @property
    def assumed(self) -> Collection[str]:
        """The UIDs of members that are assumed on their nodes, and that the watch has not shown bound."""

    @property
    def scheduled(self) -> Collection[Pod]:
        """The pods with a node, or assumed to have one."""

    @property
    def declarations(self) -> Collection[tuple[Declaration, bool]]:
        """All that pods say about the group, each once, and whether pods with a node or without one say so."""


class GroupTree(msgspec.Struct, frozen=True, eq=False):
    """A group with those that it consists of, down to the pods."""

    key: GroupKey
    group: PodGroup
    members: GroupMembers
    """All pods: of a group of groups, those of each."""

    children: "tuple[GroupTree, ...]" = ()
    """In the order in which they are decided about; none if it consists of pods."""

    @property
    def is_composite(self) -> bool:
        return bool(self.group.minimum_groups)

    def leaves(self) -> "Iterator[GroupTree]":
        """Yield the groups that consist of pods."""
        if self.is_composite:
            for child in self.children:
                yield from child.leaves()
        else:
            yield self

    def write(self, state: CycleState) -> CycleState:
        """Have plugins find the group in these notes: see `decided`."""
        state.write(_TREE, self)
        return state


_TREE: Final = "framework/GroupTree"


class _NoMembers:
    """The members of no group."""

    __slots__ = ()

    count: Final = 0
    ready_count: Final = 0
    succeeded_count: Final = 0
    scheduled_count: Final = 0
    unscheduled: Final[Collection[Pod]] = ()
    assumed: Final[Collection[str]] = ()
    scheduled: Final[Collection[Pod]] = ()
    declarations: Final[Collection[tuple[Declaration, bool]]] = ()


NO_MEMBERS: Final[GroupMembers] = _NoMembers()


class PodGroups:
    """The groups of pods, and the group of each pod. This one is for clusters in which no pod has a group."""

    are_tried_in_placements: bool = False
    """Whether each group is tried in several placements: then no member of it may evict others by itself."""

    def name_of(self, pod: Pod) -> str:
        """Return the name of a pod's group, which may not exist; empty for a pod without."""
        return ""

    def key_of(self, pod: Pod) -> GroupKey | None:
        """Return what distinguishes a pod's group, which may not exist, from others; None for a pod without."""
        return None

    def of(self, pod: Pod) -> PodGroup | None:
        """Return the group of a pod; None if it has none, or if the group does not exist (yet)."""
        return None

    def root_key(self, key: GroupKey) -> GroupKey:
        """Return the key of the group that this one is tried with: the root of its tree, or itself.

        If a group above it is missing, it is tried with none: it waits.
        """
        return key

    def lineage(self, pod: Pod) -> Sequence[PodGroup]:
        """Return a pod's group and those above it, the root last; those above one that is missing are left out."""
        return ()

    def tree_of(self, pod: Pod) -> GroupTree | None:
        """Return the whole tree of a pod's group; None if that or one above it does not exist (yet)."""
        return None

    def tree_problem(self, key: GroupKey) -> str:
        """Say what keeps a group from having a tree; empty if it has one, or if there are no groups of groups."""
        return ""

    def members(self, pod: Pod) -> GroupMembers:
        """Return the members of a pod's group."""
        return NO_MEMBERS

    def running(self) -> Iterable[tuple[PodGroup, Collection[Pod]]]:
        """Yield the groups of Kubernetes' own of which pods have a node, and these.

        A pod whose group has no object comes by itself, with its own priority.
        """
        return ()

    def giving_way(self, to: PodGroup) -> Collection[GroupKey]:
        """Return the groups of the same priority that may be evicted for a group, each as a whole, as too few run."""
        return ()


NO_POD_GROUPS: Final[PodGroups] = PodGroups()


def lacks_others(groups: PodGroups, pod: Pod) -> bool:
    """Return whether a pod with a node would run with fewer others than its group of our own rules needs."""
    key = groups.key_of(pod)
    if key is None or key.source == POD_GROUP:
        return False
    group = groups.of(pod)
    return group is None or groups.members(pod).scheduled_count < group.minimum


def decided(groups: PodGroups, state: CycleState, pod: Pod) -> GroupTree | None:
    """Return the group that a placement is for: what the notes say, or else that of the pod; None without one."""
    tree = state.get(_TREE, GroupTree)
    return groups.tree_of(pod) if tree is None else tree


def entry_key(groups: PodGroups, pod: Pod) -> GroupKey | None:
    """Return the key of the group as which a pod is queued; None for a pod without."""
    key = groups.key_of(pod)
    return None if key is None else groups.root_key(key)
