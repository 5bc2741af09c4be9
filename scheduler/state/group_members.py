"""The members of each group of pods, and how far each of them is.

    (unknown) ──see──► UNSCHEDULED ──assume──► ASSUMED ──assign──► ASSIGNED ◄──assign── (unknown)
                            ▲                     │
                            └───────forget────────┘              any ──remove──► (unknown)

A pod without a node is a member if it is for one of our profiles; one with a node is always, even if others bound it.
Only a member can be assumed: other assumed pods are not counted. A group is known as long as it has members. A pod
whose labels or annotations name another group now leaves the former. In groups of our own rules, so does one that is
being deleted: it uses its node until it is gone, but cannot be one of those that run together.

Rule: pkg/scheduler/backend/cache/podgroupstate.go at v1.36.3. One difference: a pod that others bind while it waits for
us is not unscheduled any more.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from scheduler.api.groups.owners import controller_of
from scheduler.api.pods.importance import created
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import POD_GROUP
from scheduler.framework.groups.pod_groups import NO_MEMBERS, Declaration, GroupKey, GroupMembers
from scheduler.state.cache import CountListener

MAX_SUCCEEDED: Final = 10_000
"""Members of a group that are known to have succeeded."""

MAX_PAST: Final = 1_000
"""Groups without pods of which successes are known."""

T = TypeVar("T")

Declare: TypeAlias = Callable[[Pod], Declaration | None]
"""Pod → all that it says about its group; None for nothing."""


def _says_nothing(pod: Pod) -> None:
    return None


class Members:
    """The members of one group. Implements framework.pod_groups.GroupMembers."""

    __slots__ = (
        "_all",
        "_assigned",
        "_assumed",
        "_controllers",
        "_counted",
        "_declarations",
        "_declare",
        "_gated",
        "_leaving",
        "_unscheduled",
        "revision",
        "succeeded",
    )

    def __init__(self, declare: Declare = _says_nothing) -> None:
        self._all: dict[str, Pod] = {}
        """UID → newest version that the watch has shown."""
        # Dictionaries in the place of sets: their order is that of the changes, the same in each run.
        self._unscheduled: dict[str, None] = {}
        self._assumed: dict[str, Pod] = {}
        self._assigned: dict[str, None] = {}
        self._gated: dict[str, None] = {}
        self._leaving: dict[str, None] = {}
        """Those that were members until their deletion began."""
        self.succeeded: dict[str, str] = {}
        """UID of each that had → the UID of its controller, empty without one."""
        self._controllers: Counter[str] = Counter()
        """UID of a controller → how many members it has."""
        self._counted: int | None = None
        """How many of those that had succeeded count; None if that has to be counted again."""
        self._declare = declare
        self._declarations: Counter[tuple[Declaration, bool]] = Counter()
        """Something that pods say about the group, and whether these have a node → how many say so."""
        self.revision = 0
        """Another number once pods, or those without a node, say something else about the group, all together."""

    @property
    def count(self) -> int:
        return len(self._all)

    @property
    def scheduled_count(self) -> int:
        return len(self._assumed) + len(self._assigned)

    @property
    def ready_count(self) -> int:
        return len(self._all) - len(self._gated)

    @property
    def succeeded_count(self) -> int:
        if self._counted is None:
            self._counted = sum([controller in self._controllers for controller in self.succeeded.values()])
        return self._counted

    @property
    def pod_count(self) -> int:
        """How many pods there are, with those that are being deleted and no members any more."""
        return len(self._all) + len(self._leaving)

    @property
    def has_pods(self) -> bool:
        return bool(self._all or self._leaving)

    @property
    def unscheduled(self) -> Collection[Pod]:
        return tuple([self._all[uid] for uid in self._unscheduled])

    def some_unscheduled(self, most: int) -> Sequence[Pod]:
        """Return the first of the pods without a node."""
        return [self._all[uid] for uid in islice(self._unscheduled, most)]

    @property
    def assumed(self) -> Collection[str]:
        return tuple(self._assumed)

    @property
    def scheduled(self) -> Collection[Pod]:
        return (*(self._all[uid] for uid in self._assigned), *self._assumed.values())

    @property
    def declarations(self) -> Collection[tuple[Declaration, bool]]:
        return self._declarations.keys()

    @property
    def waits(self) -> bool:
        """Whether none of its pods has a node, though none is kept back by scheduling gates."""
        return bool(self._unscheduled) and not (self._assumed or self._assigned or self._gated)

    def see(self, pod: Pod) -> None:
        """Take over a pod without a node, or its new version."""
        uid = pod.uid
        self._replace(uid, pod)
        if uid not in self._assumed and uid not in self._assigned:
            self._unscheduled[uid] = None

    def assign(self, pod: Pod) -> None:
        """Take over a pod that is bound, or its new version."""
        uid = pod.uid
        self._replace(uid, pod)
        self._unscheduled.pop(uid, None)
        self._assumed.pop(uid, None)
        self._assigned[uid] = None

    def assume(self, pod: Pod) -> None:
        """A member is assumed on a node; it is ignored if it is none, or has its node already."""
        uid = pod.metadata.uid
        if uid in self._all and uid not in self._assigned:
            self._unscheduled.pop(uid, None)
            self._assumed[uid] = pod

    def forget(self, uid: str) -> None:
        """A member is assumed no longer."""
        if self._assumed.pop(uid, None) is not None:
            self._unscheduled[uid] = None

    def note_success(self, pod: Pod) -> None:
        """One that is gone had succeeded. It counts while there are members of its controller, or without one any."""
        if len(self.succeeded) < MAX_SUCCEEDED and (self._all or _controller(pod)):
            self.succeeded[pod.uid] = _controller(pod)
            self._counted = None

    def let_go(self, pod: Pod) -> None:
        """A pod is being deleted, and is no member any more."""
        self.remove(pod.uid)
        self._leaving[pod.uid] = None

    def remove(self, uid: str) -> None:
        """A pod is gone. Without any member, successes of pods without a controller are those of a former run."""
        self._replace(uid, None)
        for each in (self._unscheduled, self._assumed, self._assigned, self._leaving):
            each.pop(uid, None)
        if not self._all and self.succeeded:
            self.succeeded = {ended: controller for ended, controller in self.succeeded.items() if controller}

    def _replace(self, uid: str, pod: Pod | None) -> None:
        """Put a pod, or none, in the place of its former version."""
        former = self._all.pop(uid, None) if pod is None else self._all.get(uid)
        if pod is not None:
            self._all[uid] = pod
        if pod is not None and pod.spec.scheduling_gates:
            self._gated[uid] = None
        else:
            self._gated.pop(uid, None)
        is_adopted = (
            former is not None and pod is not None and former.metadata.owner_references != pod.metadata.owner_references
        )
        for each, change in ((former, -1), (pod, 1)):
            if each is not None and (former is None or pod is None or is_adopted):
                _count(self._controllers, _controller(each), change)
                self._counted = None
        before, now = self._said_by(former), self._said_by(pod)
        if before != now:
            self._count_declaration(before, -1)
            self._count_declaration(now, 1)

    def _said_by(self, pod: Pod | None) -> tuple[Declaration, bool] | None:
        said = None if pod is None or pod.spec.scheduling_gates else self._declare(pod)
        return None if pod is None or said is None else (said, bool(pod.spec.node_name))

    def _count_declaration(self, said: tuple[Declaration, bool] | None, change: int) -> None:
        """Count what a pod says. With a node, it says nothing new if others without one say the same."""
        if said is not None and _count(self._declarations, said, change):
            declaration, is_placed = said
            self.revision += not is_placed or (declaration, False) not in self._declarations

    def check_invariants(self) -> None:
        """Each member is in one state."""
        states = [*self._unscheduled, *self._assumed, *self._assigned]
        assert sorted(states) == sorted(self._all), (states, list(self._all))


class MembersByGroup(CountListener):
    """The members of all groups. Written by the cache and by the handlers of the watch."""

    def __init__(self, key_of: Callable[[Pod], GroupKey | None], declare: Declare = _says_nothing) -> None:
        """`key_of`: the group of a pod, None for a pod without; `declare`: what it says about that."""
        self._key_of = key_of
        self._declare = declare
        self._groups: dict[GroupKey, Members] = {}
        self._keys: dict[str, GroupKey] = {}
        """UID → the group that it is a member of, or was until its deletion began."""
        self._past: dict[GroupKey, dict[str, str]] = {}
        """Groups without pods → those that had succeeded."""
        self._listeners: tuple[Callable[[GroupKey, bool], None], ...] = ()

    def listen(self, changed: Callable[[GroupKey, bool], None]) -> Callable[[], None]:
        """Call `changed` when the members of a group have changed, or one of them; return a function that ends that.

        With it comes whether the change may help the others: one has left or succeeded, or they may agree now.
        """
        self._listeners = (*self._listeners, changed)

        def end() -> None:
            self._listeners = tuple([each for each in self._listeners if each is not changed])

        return end

    def of(self, key: GroupKey | None) -> GroupMembers:
        """Return the members of a group."""
        return NO_MEMBERS if key is None else self._groups.get(key, NO_MEMBERS)

    def groups(self) -> Collection[GroupKey]:
        """Return the groups that have members: a live view."""
        return self._groups.keys()

    def some_unscheduled(self, key: GroupKey | None, most: int) -> Sequence[Pod]:
        """Return the first of the pods without a node of a group."""
        group = None if key is None else self._groups.get(key)
        return () if group is None else group.some_unscheduled(most)

    def waiting_since(self, now: float) -> float:
        """Return when the oldest group came of which no pod has a node, in seconds since 1970; `now` without one."""
        oldest = (group.some_unscheduled(1)[0] for group in self._groups.values() if group.waits)
        return min((created(pod) / 1e6 or now for pod in oldest), default=now)

    def see(self, pod: Pod) -> None:
        """A pod without a node is there, or has a new version."""
        self._update(pod, Members.see)

    def assign(self, pod: Pod) -> None:
        """A pod is bound, or has a new version since."""
        self._update(pod, Members.assign)

    def assume(self, pod: Pod) -> None:
        """A pod is assumed on a node."""
        key = self._keys.get(pod.metadata.uid)
        if key is not None:
            self._groups[key].assume(pod)

    def forget(self, pod: Pod) -> None:
        """A pod is assumed no longer."""
        uid = pod.metadata.uid
        key = self._keys.get(uid)
        if key is not None:
            self._groups[key].forget(uid)

    def remove(self, pod: Pod) -> None:
        """A pod is gone."""
        self._leave(pod.uid)

    # The cache's listener.

    def pod_counted(self, pod: Pod, *, is_assumed: bool, is_what_if: bool) -> None:
        (self.assume if is_assumed else self.assign)(pod)

    pod_confirmed = assign
    pod_unassumed = forget
    pod_removed = remove

    def check_counted(self, uids: Collection[str]) -> None:
        self.check_invariants()

    def note_success(self, key: GroupKey, pod: Pod) -> None:
        """A pod of a group that is gone had succeeded."""
        group = self._groups.get(key)
        if group is not None:
            group.note_success(pod)
            self._report(key, helps=True)
        elif key in self._past and _controller(pod):
            self._past[key][pod.uid] = _controller(pod)

    def note_earlier_success(self, pod: Pod) -> None:
        """A pod had succeeded before this process began."""
        key = self._key_of(pod)
        group = None if key is None or key.source == POD_GROUP else self._groups.get(key)
        if key is not None and group is not None:
            self.note_success(key, pod)

    def restart(self, pods: Iterable[Pod], assumed: Iterable[Pod]) -> None:
        """Begin again with these pods, as the definition of groups has changed; `assumed`: the assumed ones."""
        self._groups.clear()
        self._keys.clear()
        for pod in pods:
            (self.assign if pod.node_name else self.see)(pod)
        for pod in assumed:
            self.assume(pod)

    def _update(self, pod: Pod, take: Callable[[Members, Pod], None]) -> None:
        """Let the group of a pod take it over; the pod may have left another group."""
        key, uid = self._key_of(pod), pod.uid
        if self._keys and key != self._keys.get(uid):
            self._leave(uid)
        if key is None:
            return
        self._keys[uid] = key
        group = self._groups.get(key) or self._new(key)
        if key.source == POD_GROUP:
            take(group, pod)
            return
        revision, count = group.revision, group.count
        if pod.is_deleting:
            group.let_go(pod)
        else:
            take(group, pod)
        self._report(key, helps=group.revision != revision or group.count < count)

    def _new(self, key: GroupKey) -> Members:
        group = self._groups[key] = Members(self._declare)
        group.succeeded |= self._past.pop(key, {})
        return group

    def _leave(self, uid: str) -> None:
        key = self._keys.pop(uid, None)
        if key is not None:
            group = self._groups[key]
            group.remove(uid)
            if not group.has_pods:
                del self._groups[key]
                self._remember(key, group.succeeded)
            self._report(key, helps=True)

    def _remember(self, key: GroupKey, succeeded: Mapping[str, str]) -> None:
        """Keep the facts of a group that may have pods again soon; another run of it has another controller."""
        if key.source != POD_GROUP:
            self._past[key] = dict(succeeded)
            if len(self._past) > MAX_PAST:
                del self._past[next(iter(self._past))]

    def _report(self, key: GroupKey, *, helps: bool) -> None:
        for each in self._listeners:
            each(key, helps)

    def check_invariants(self) -> None:
        """No group without pods, no member in two states or groups. For tests and debugging."""
        for group in self._groups.values():
            assert group.has_pods
            group.check_invariants()
        assert sum(group.pod_count for group in self._groups.values()) == len(self._keys)


def _count(counts: Counter[T], key: T, change: int) -> bool:
    """Count another one of a kind, or one less; return whether the kind is new or gone."""
    before = counts[key]
    counts[key] += change
    if not counts[key]:
        del counts[key]
    return before == 0 or key not in counts


def _controller(pod: Pod) -> str:
    """Return the UID of a pod's controller; empty if it has none."""
    owner = controller_of(pod)
    return "" if owner is None else owner.uid
