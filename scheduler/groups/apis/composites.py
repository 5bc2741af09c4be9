"""The trees of `scheduling.k8s.io`: CompositePodGroups, which consist of PodGroups or of each other.

    root ─► its children: by creation, then by name ─► … ─► PodGroups, which have the pods

A child names its parent, in its own namespace. A tree is known once all groups above a PodGroup are there; one that is
part of a cycle, or lies deeper than the API allows, has none.

Rule: pkg/scheduler/backend/queue/workload_forest.go and BuildHierarchySnapshotFromPod in pkg/scheduler/backend/cache at
v1.37.2.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from scheduler.api.groups import pod_groups as api
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import COMPOSITE_POD_GROUP, POD_GROUP
from scheduler.framework.groups.pod_groups import Declaration, GroupKey, GroupMembers, GroupTree, PodGroup
from scheduler.groups.apis.kubernetes import VERSIONS, as_group
from scheduler.state.objects import ObjectStore

MAX_DEPTH: Final = 4
"""Groups from the root to a PodGroup, both included."""


class Composites:
    """Knows which groups are above each. This one is for clusters in which no group consists of groups."""

    def above(self, key: GroupKey) -> Sequence[PodGroup]:
        """Return those above a group, the root last; those above one that is missing are left out."""
        return ()

    def root_key(self, key: GroupKey) -> GroupKey:
        """Return the key of the root of its tree; its own if it has none, or is the root."""
        return key

    def problem(self, key: GroupKey) -> str:
        """Say what keeps a group from having a tree; empty if it has one."""
        return ""

    def leaves(self, key: GroupKey) -> Collection[GroupKey]:
        """Return the groups that consist of pods, below a group; such a one itself."""
        return ()

    def tree(self, leaf: GroupTree, members: Callable[[GroupKey], GroupMembers]) -> GroupTree | None:
        """Return the tree of a group that consists of pods; None if it has none. `members`: the pods of each such."""
        return leaf


class _Known(NamedTuple):
    """An object of which the place in a tree is known."""

    group: PodGroup
    created: str
    parent: GroupKey | None


class CompositeGroups(Composites):
    """CompositePodGroups, as the watch shows them."""

    def __init__(self, objects: ObjectStore, *, have_policies: bool = False) -> None:
        self._have_policies = have_policies
        self._known: dict[GroupKey, _Known] = {}
        self._children: dict[GroupKey, dict[GroupKey, None]] = {}
        """Parent, which need not exist → its children."""
        for resource in VERSIONS:
            objects.subscribe(resource, partial(self._changed, resource, POD_GROUP))
        objects.subscribe(COMPOSITE_POD_GROUP, partial(self._changed, COMPOSITE_POD_GROUP, COMPOSITE_POD_GROUP))

    def _changed(self, resource: str, source: str, old: api.PodGroup | None, new: api.PodGroup | None) -> None:
        metadata = (new or old or api.PodGroup()).metadata
        key = GroupKey(metadata.namespace, source, metadata.name)
        before = self._known.pop(key, None)
        if before is not None and before.parent is not None:
            siblings = self._children[before.parent]
            del siblings[key]
            if not siblings:
                del self._children[before.parent]
        if new is not None:
            name = new.spec.parent_composite_pod_group_name
            parent = GroupKey(metadata.namespace, COMPOSITE_POD_GROUP, name) if name else None
            group = as_group(new, resource, has_policy=self._have_policies)
            self._known[key] = _Known(group, metadata.creation_timestamp or "", parent)
            if parent is not None:
                self._children.setdefault(parent, {})[key] = None

    def above(self, key: GroupKey) -> Sequence[PodGroup]:
        known = (self._known.get(each) for each in self._parents(key))
        return [each.group for each in known if each is not None]

    def _parents(self, key: GroupKey) -> Sequence[GroupKey]:
        """Return the keys above a group, so many at most as a tree may have; the last one may be missing."""
        keys = list[GroupKey]()
        known = self._known.get(key)
        while known is not None and known.parent is not None and len(keys) < MAX_DEPTH:
            keys.append(known.parent)
            known = self._known.get(known.parent)
        return keys

    def root_key(self, key: GroupKey) -> GroupKey:
        parents = self._parents(key)
        return parents[-1] if parents and not self.problem(key) else key

    def problem(self, key: GroupKey) -> str:
        if key.source == POD_GROUP and key not in self._known:
            return f"pod group object not found in state for {_written(key)}"
        parents = self._parents(key)
        if parents and parents[-1] not in self._known:
            return f"composite pod group object not found in state for {_written(parents[-1])}"
        if len(parents) < MAX_DEPTH:
            return ""
        if self._is_cycle(parents[-1]):
            return f"cycle detected in composite pod group hierarchy: {_written(parents[-1])}"
        return f"exceeded maximum hierarchy depth at {_written(key)}"

    def _is_cycle(self, key: GroupKey) -> bool:
        met = set[GroupKey]()
        at: GroupKey | None = key
        while at is not None and at not in met:
            met.add(at)
            known = self._known.get(at)
            at = None if known is None else known.parent
        return at is not None

    def leaves(self, key: GroupKey) -> Collection[GroupKey]:
        found, below = dict[GroupKey, None](), {key: None}
        for _ in range(MAX_DEPTH):
            found |= {each: None for each in below if each.source == POD_GROUP}
            below = dict.fromkeys(chain.from_iterable(self._children.get(each, ()) for each in below))
        return found.keys()

    def tree(self, leaf: GroupTree, members: Callable[[GroupKey], GroupMembers]) -> GroupTree | None:
        if self.problem(leaf.key):
            return None
        parents = self._parents(leaf.key)
        return self._tree(parents[-1], members, MAX_DEPTH) if parents else leaf

    def _tree(self, key: GroupKey, members: Callable[[GroupKey], GroupMembers], depth: int) -> GroupTree:
        """Return a group and what is below it, down to the depth that the API allows."""
        group = self._known[key].group
        if not group.minimum_groups:
            return GroupTree(key, group, members(key))
        order = {each: (self._known[each].created, each.name) for each in self._children.get(key, ())}
        below = sorted(order, key=order.__getitem__) if depth > 1 else ()
        children = tuple([self._tree(each, members, depth - 1) for each in below])
        return GroupTree(key, group, AllMembers([each.members for each in children]), children)


def _written(key: GroupKey) -> str:
    """Return a key as kube-scheduler writes it."""
    kind = "compositepodgroup" if key.source == COMPOSITE_POD_GROUP else "podgroup"
    return f"{kind}/{key.namespace}/{key.name}"


class AllMembers:
    """The members of several groups, as those of one. Implements framework.pod_groups.GroupMembers."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[GroupMembers]) -> None:
        self._parts = parts

    @property
    def count(self) -> int:
        return sum([each.count for each in self._parts])

    @property
    def succeeded_count(self) -> int:
        return sum([each.succeeded_count for each in self._parts])

    @property
    def scheduled_count(self) -> int:
        return sum([each.scheduled_count for each in self._parts])

    @property
    def ready_count(self) -> int:
        return sum([each.ready_count for each in self._parts])

    @property
    def unscheduled(self) -> Collection[Pod]:
        return tuple(chain.from_iterable(each.unscheduled for each in self._parts))

    @property
    def assumed(self) -> Collection[str]:
        return tuple(chain.from_iterable(each.assumed for each in self._parts))

    @property
    def scheduled(self) -> Collection[Pod]:
        return tuple(chain.from_iterable(each.scheduled for each in self._parts))

    @property
    def declarations(self) -> Collection[tuple[Declaration, bool]]:
        return ()  # of groups of our own rules only
