"""All groups of pods, from several APIs: the adapters are asked in turn, and the first that knows a group has it.

of all profiles               kubernetes.py      with the feature gate GenericWorkload
of profiles with the plugin   coscheduling.py    scheduling.x-k8s.io, by a label
Coscheduling                  annotations.py     groups without any object
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Final, Protocol

import msgspec

from scheduler.api.objects import GroupAnnotations
from scheduler.api.pod import Pod
from scheduler.api.read_only import read_only_attribute
from scheduler.framework.events import POD_GROUP
from scheduler.framework.pod_groups import GroupKey, GroupMembers, PodGroup
from scheduler.state.group_members import MembersByGroup


class Adapter(Protocol):
    """Knows the groups of one API."""

    @property
    def source(self) -> str:
        """As in the groups' keys."""

    def name_of(self, pod: Pod) -> str:
        """Return the name of a pod's group; empty for a pod that has none here."""

    def find(self, namespace: str, name: str, pod: Pod) -> PodGroup | None:
        """Return the group that this pod names; None if it does not exist."""


class Declaration(msgspec.Struct, frozen=True):
    """All that a pod says about its group: every member says the same."""

    scheduler_name: str
    priority: int
    annotations: GroupAnnotations | None


_WORDS: Final = {"scheduler_name": ".spec.schedulerName", "priority": ".spec.priority"}


class AdaptedGroups:
    """Implements framework.pod_groups.PodGroups over adapters."""

    def __init__(
        self,
        adapters: Sequence[Adapter],
        ours: Sequence[Adapter] = (),
        *,
        are_tried_in_placements: bool = False,
        preempt_as_a_whole: bool = False,
    ) -> None:
        """`adapters`: for pods of all profiles; `ours`: for those of the profiles that `use` names."""
        self._adapters = tuple(adapters)
        self._ours = tuple(ours)
        self._of_profile: dict[str, Sequence[Adapter]] = {}
        self._by_source = {each.source: each for each in (*adapters, *ours)}
        self._are_tried_in_placements = are_tried_in_placements
        self._preempt_as_a_whole = preempt_as_a_whole
        self._asked: tuple[Pod | None, GroupKey | None] = None, None
        """The pod that was asked about last, and its key: each is asked about several times in a row."""
        self.members_by_group = MembersByGroup(self.key_of, self._declaration_of)

    are_tried_in_placements: bool = read_only_attribute("_are_tried_in_placements")

    def use(self, profiles: Collection[str]) -> bool:
        """Look for groups of our own rules in the pods of these profiles; return whether that is another choice."""
        if self._of_profile.keys() == set(profiles):
            return False
        self._of_profile = dict.fromkeys(profiles, (*self._adapters, *self._ours))
        self._asked = None, None
        return True

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
            key = self._find_key(pod)
            self._asked = pod, key
        return key

    def _find_key(self, pod: Pod) -> GroupKey | None:
        for adapter in self._of_profile.get(pod.spec.scheduler_name, self._adapters):
            name = adapter.name_of(pod)
            if name:
                return GroupKey(pod.metadata.namespace, adapter.source, name)
        return None

    def preempts_as_a_whole(self, pod: Pod) -> bool:
        key = self.key_of(pod)
        return key is not None and (self._preempt_as_a_whole or key.source != POD_GROUP)

    def of(self, pod: Pod) -> PodGroup | None:
        asked, key = self._asked  # inlines `key_of`
        if asked is not pod:
            key = self.key_of(pod)
        if key is None:
            return None
        group = self._by_source[key.source].find(key.namespace, key.name, pod)
        if group is None or not group.is_ours or group.problem:
            return group
        members = self.members_by_group.of(key)
        if problem := contradiction(members.declarations):
            return msgspec.structs.replace(group, problem=problem)
        succeeded = max(members.succeeded_count, group.succeeded)
        return msgspec.structs.replace(group, minimum=max(group.minimum - succeeded, 1)) if succeeded else group

    def members(self, pod: Pod) -> GroupMembers:
        asked, key = self._asked
        return self.members_by_group.of(key if asked is pod else self.key_of(pod))

    def _declaration_of(self, pod: Pod) -> Hashable:
        """Return what a pod says about a group of our own rules; None if it has no such group."""
        if pod.spec.scheduler_name not in self._of_profile or any(each.name_of(pod) for each in self._adapters):
            return None
        return Declaration(pod.spec.scheduler_name, pod.priority, pod.group_annotations)


def contradiction(declarations: Collection[Hashable]) -> str:
    """Say in what pods of one group contradict each other; empty if they do not."""
    if len(declarations) < 2:
        return ""
    said = [each for each in declarations if isinstance(each, Declaration)]
    differing = _differing("", [(each.scheduler_name, each.priority) for each in said], _WORDS.values()) or _differing(
        "annotation ",
        [msgspec.structs.astuple(each.annotations or GroupAnnotations()) for each in said],
        [field.encode_name for field in msgspec.structs.fields(GroupAnnotations)],
    )
    return f"all pods in a pod group should have the same {differing}" if differing else ""


def _differing(kind: str, values: Sequence[Sequence[object]], names: Collection[str]) -> str:
    """Name the first part in which values differ, with two of them."""
    for name, parts in zip(names, zip(*values, strict=True), strict=True):
        distinct = sorted({str(part) for part in parts})
        if len(distinct) > 1:
            return f'{kind}{name}, got: "{_short(distinct[0])}" and "{_short(distinct[1])}"'
    return ""


def _short(text: str, most: int = 63) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
