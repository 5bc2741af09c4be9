"""All groups of pods, from several APIs: the adapters are asked in turn, and the first that knows a group owns it.

of all profiles               kubernetes.py      with the feature gate GenericWorkload
of profiles with the plugin   coscheduling.py    scheduling.x-k8s.io, by a label
Coscheduling                  annotations.py     groups without any object, and gangs of Koordinator
                              volcano.py         scheduling.volcano.sh, by an annotation
                              owners.py          workloads whose pods start together
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Protocol

import msgspec

from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.events import POD_GROUP
from scheduler.framework.groups.pod_groups import Declaration, GroupKey, GroupMembers, GroupTree, PodGroup, PodGroups
from scheduler.framework.preemption.victims import group_that_goes
from scheduler.groups.apis.annotations import MAX_SHOWN, NO_ANNOTATIONS, AnnotatedGroups, KoordinatorGroups
from scheduler.groups.apis.composites import CompositeGroups, Composites
from scheduler.groups.apis.coscheduling import CoschedulingGroups
from scheduler.groups.apis.kubernetes import KubernetesGroups
from scheduler.groups.apis.owners import GangDefaults, OwnedGroups, ProfileGangs, named_groups
from scheduler.groups.apis.volcano import VolcanoGroups
from scheduler.groups.damaged import DamagedGroups
from scheduler.state.group_members import MembersByGroup
from scheduler.state.objects import ObjectStore


class Adapter(Protocol):
    """Knows the groups of one API."""

    @property
    def source(self) -> str:
        """As in the groups' keys."""

    def name_of(self, pod: Pod) -> str:
        """Return the name of a pod's group; empty for a pod that has none here."""

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup | None:
        """Return the group that this pod names; None if it does not exist. `said`: what its annotations say of it."""


_AGREED: Final = {
    ".spec.schedulerName": attrgetter("scheduler_name"),
    ".spec.priority": attrgetter("priority"),
    **{
        f"annotation {field.encode_name}": attrgetter(f"annotations.{field.name}")
        for field in msgspec.structs.fields(GroupAnnotations)
        if field.name
        in (
            "group",
            "min_available",
            "koordinator_min_available",
            "leader_worker_size",
            "required_topology",
            "preferred_topology",
        )
    },
}
"""The things that members without a node say alike, as messages name them → how to find each in a declaration."""

_of_kueue: Final = attrgetter("kueue_required_topology", "kueue_preferred_topology")
"""The annotations that Kueue has for each set of pods, so those of a group may differ: then they do not count."""


class AdaptedGroups(PodGroups):
    """The groups of all adapters."""

    def __init__(self, objects: ObjectStore, gates: FeatureGates, now: Callable[[], float] = time.monotonic) -> None:
        """`now`: the queue's clock."""
        have_policies, have_parents = gates.pod_group_preemption_policy, gates.composite_pod_group
        of_kubernetes = KubernetesGroups(objects, have_policies=have_policies, have_parents=have_parents)
        self._defaults = GangDefaults()
        self._adapters: Sequence[Adapter] = (of_kubernetes,) if gates.generic_workload else ()
        """For pods of all profiles."""
        self._ours: Sequence[Adapter] = (
            CoschedulingGroups(objects),
            AnnotatedGroups(),
            VolcanoGroups(objects),
            KoordinatorGroups(),
            OwnedGroups(objects, self._defaults),
        )
        """For those of the profiles that `use` names."""
        self._of_profile: dict[str, Sequence[Adapter]] = {}
        self._by_source: dict[str, Adapter] = {each.source: each for each in (*self._adapters, *self._ours)}
        self.are_tried_in_placements = gates.topology_aware_workload_scheduling
        self.composites = CompositeGroups(objects, have_policies=have_policies) if have_parents else Composites()
        self._asked: tuple[Pod | None, GroupKey | None] = None, None
        """The pod that was asked about last, and its key: each is asked about several times in a row."""
        self.members_by_group = MembersByGroup(self.key_of, self._declaration_of)
        self.damaged = DamagedGroups(self.members_by_group, self.of, now)

    def use(self, profiles: Mapping[str, ProfileGangs]) -> bool:
        """Look for groups of our own rules in the pods of these profiles, and make gangs of workloads as they ask for.

        Return whether that is another choice.
        """
        self._asked = None, None
        before = self._of_profile.keys()
        self._of_profile = dict.fromkeys(profiles, (*self._adapters, *self._ours))
        return self._defaults.use(profiles) or before != profiles.keys()

    def label(self, namespace: str, value: str) -> bool:
        """Make gangs of workloads as the label of a namespace says; return whether it said something else before."""
        self._asked = None, None
        return self._defaults.label(namespace, value)

    @property
    def are_on(self) -> bool:
        """Whether any pod may have a group."""
        return bool(self._adapters or self._of_profile)

    @property
    def has_ours(self) -> bool:
        """Whether any pod may have a group of our own rules."""
        return bool(self._of_profile)

    def name_of(self, pod: Pod) -> str:
        key = self.key_of(pod)
        return "" if key is None else key.name

    def key_of(self, pod: Pod) -> GroupKey | None:
        asked, key = self._asked
        if asked is not pod:
            key = self._find_key(pod) if self._adapters or self._of_profile else None
            self._asked = pod, key
        return key

    def _find_key(self, pod: Pod) -> GroupKey | None:
        for adapter in self._of_profile.get(pod.spec.scheduler_name, self._adapters):
            name = adapter.name_of(pod)
            if name:
                return GroupKey(pod.metadata.namespace, adapter.source, name)
        return None

    def running(self) -> Iterable[tuple[PodGroup, Collection[Pod]]]:
        found: dict[GroupKey, tuple[PodGroup, Collection[Pod]]] = {}
        absent: list[tuple[PodGroup, Collection[Pod]]] = []
        for key in self.members_by_group.groups() if self._adapters else ():
            scheduled = self.members_by_group.of(key).scheduled
            if key.source != POD_GROUP or not scheduled:
                continue
            first = next(iter(scheduled))
            lineage = self.lineage(first)
            if not lineage:
                absent += [(_without_object(key, pod), (pod,)) for pod in scheduled]
                continue
            group = group_that_goes(self, first) or lineage[0]
            if group.priority != lineage[-1].priority:
                group = msgspec.structs.replace(group, priority=lineage[-1].priority)
            _, others = found.get(group.key, (group, ()))
            found[group.key] = group, (*others, *scheduled)
        return (*found.values(), *absent)

    def of(self, pod: Pod) -> PodGroup | None:
        asked, key = self._asked  # inlines `key_of`
        if asked is not pod:
            key = self.key_of(pod)
        if key is None:
            return None
        if key.source == POD_GROUP:
            return self._by_source[POD_GROUP].find(key.namespace, key.name, pod, None)
        members, said = self.members_by_group.of(key), pod.group_annotations
        declarations = members.declarations if len(members.declarations) > 1 else ()
        if said is not None and declarations and len({_of_kueue(each.annotations) for each, _ in declarations}) > 1:
            said = msgspec.structs.replace(said, kueue_required_topology="", kueue_preferred_topology="")
        group = self._by_source[key.source].find(key.namespace, key.name, pod, said)
        if group is None or group.problem:
            return group
        for each, _ in members.declarations:
            if each.contradiction:
                return msgspec.structs.replace(group, problem=each.contradiction)
        if declarations and (problem := contradiction([each for each, is_placed in declarations if not is_placed])):
            return msgspec.structs.replace(group, problem=problem)
        succeeded = 0 if group.has_live_minimum else max(members.succeeded_count, group.succeeded)
        return msgspec.structs.replace(group, minimum=max(group.minimum - succeeded, 0)) if succeeded else group

    def root_key(self, key: GroupKey) -> GroupKey:
        return self.composites.root_key(key)

    def lineage(self, pod: Pod) -> Sequence[PodGroup]:
        key, group = self.key_of(pod), self.of(pod)
        return () if key is None or group is None else (group, *self.composites.above(key))

    def tree_of(self, pod: Pod) -> GroupTree | None:
        asked, key = self._asked
        if asked is not pod:
            key = self.key_of(pod)
        group = None if key is None else self.of(pod)
        if key is None or group is None:
            return None
        leaf = GroupTree(key, group, self.members_by_group.of(key))
        return leaf if group.is_ours else self.composites.tree(leaf, self.members_by_group.of)

    def tree_problem(self, key: GroupKey) -> str:
        return self.composites.problem(key)

    def members(self, pod: Pod) -> GroupMembers:
        asked, key = self._asked
        return self.members_by_group.of(key if asked is pod else self.key_of(pod))

    def giving_way(self, to: PodGroup) -> Collection[GroupKey]:
        return self.damaged.giving_way(to)

    def _declaration_of(self, pod: Pod) -> Declaration | None:
        """Return what a pod says about a group of our own rules; None if it has no such group."""
        if pod.spec.scheduler_name not in self._of_profile or any(each.name_of(pod) for each in self._adapters):
            return None
        names = named_groups(pod)
        return Declaration(
            pod.spec.scheduler_name,
            pod.priority,
            pod.group_annotations or NO_ANNOTATIONS,
            "" if len(names) < 2 else f"a pod names the groups {_both(names)}",
        )


def contradiction(said: Sequence[Declaration]) -> str:
    """Say in what pods of one group contradict each other; empty if they do not."""
    for name, part in _AGREED.items():
        distinct = sorted({str(part(each)) for each in said})
        if len(distinct) > 1:
            return f"all pods in a pod group should have the same {name}, got: {_both(distinct)}"
    return ""


def _without_object(key: GroupKey, pod: Pod) -> PodGroup:
    return PodGroup(key.namespace, key.name, str(key), key.source, priority=pod.priority)


def _both(said: Sequence[str]) -> str:
    first, second = (f'"{shortened(each, MAX_SHOWN)}"' for each in said[:2])
    return f"{first} and {second}"
