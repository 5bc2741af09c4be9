"""The parts of the engine that groups of pods need: connected while the feature gates or a profile ask for groups.

Without groups the loop, the cache and the handlers know none of them, and no pod pays for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from scheduler.api.groups.workloads import GANG_ANNOTATION, LEADER_WORKER_SET
from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import COSCHEDULING
from scheduler.config.types import LoadmasterSettings
from scheduler.cycle.core import Core
from scheduler.cycle.listeners import PodListener
from scheduler.cycle.steps import Steps
from scheduler.cycle.wings import Loop
from scheduler.framework.events import NAMESPACE
from scheduler.framework.queued import QueuedGroup
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.apis.owners import ProfileGangs
from scheduler.groups.refusals import GroupRefusals, IgnoredGroups
from scheduler.groups.reservations.reserved_nodes import ReservedNodes
from scheduler.groups.statuses.writer import GroupStatuses
from scheduler.groups.topology.levels import TopologyLevels
from scheduler.groups.wakes import GroupWakes
from scheduler.runtime.framework import Framework

if TYPE_CHECKING:  # loaded once there are groups
    from scheduler.groups.cycle import PodGroupCycle
    from scheduler.groups.reservations.keeper import Reservations

PAUSE: Final = 5.0
"""Seconds between two looks whether there are groups."""


class GroupParts(PodListener):
    """Connects them, also while the program runs. Implements cycle.wings.GroupWing."""

    def __init__(self, core: Core, groups: AdaptedGroups, reserved: ReservedNodes) -> None:
        self.groups = groups
        self.statuses = GroupStatuses(core, groups.members_by_group)
        self.refusals = GroupRefusals(core, groups)
        self._wakes = GroupWakes(core, groups, self.statuses, self.refusals)
        self.ignored = IgnoredGroups(core.writers.events)
        self._core = core
        self.levels = TopologyLevels(core.algorithm)
        self.reserved = reserved
        self._made: PodGroupCycle | None = None
        self.are_on = False
        core.objects.subscribe(NAMESPACE, self._namespace_changed)

    @property
    def cycle(self) -> "PodGroupCycle | None":
        """Schedules groups of pods; None if groups are off."""
        return self._made if self.are_on else None

    @property
    def reservations(self) -> "Reservations | None":
        """Reserves nodes for groups; None if there never were any."""
        return None if self._made is None else self._made.reservations

    def steps(self, group: QueuedGroup, loop: Loop) -> Steps[None]:
        """Schedule a popped group, as `PodGroupCycle.steps`."""
        assert self._made is not None, "there are groups in the queue"
        return self._made.steps(group, loop)

    def pod_waits(self, pod: Pod) -> None:
        self.groups.members_by_group.see(pod)

    def pod_leaves(self, pod: Pod) -> None:
        self.groups.members_by_group.remove(pod)

    def is_used(self, framework: Framework) -> bool:
        return self._made is not None and self._made.is_used(framework)

    async def keep_reservations(
        self, ready: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Reserve nodes for ever for groups that wait for too long; `ready` returns when decisions may be made."""
        while self.reservations is None:
            await sleep(PAUSE)
        await self.reservations.run(ready, sleep)

    def use(self, frameworks: Mapping[str, Framework], settings: LoadmasterSettings) -> None:
        """Have groups as these profiles and settings ask for them.

        If that changes which pods have groups, all pods are looked at in one step, as decisions need all members.
        """
        self.levels.use(settings.topology_levels)
        gangs = {
            name: _gangs(each.plugins.by_name[COSCHEDULING])
            for name, each in frameworks.items()
            if COSCHEDULING in each.plugins.by_name
        }
        changed = self.groups.use(gangs)
        (self._core.listeners.remove if self.groups.has_ours else self._core.listeners.add)(self.ignored)
        self.groups.damaged.use(settings)
        on = self.groups.are_on
        is_new = on and self._made is None
        if is_new:
            from scheduler.groups.cycle import PodGroupCycle

            self._made = PodGroupCycle(self._core, self.groups, self.levels, self.reserved)
        if self.reservations is not None:
            self.reservations.use(settings)
        if not changed and not is_new:
            return
        self.are_on = on
        members = self.groups.members_by_group
        if on:
            self._core.cache.listen(members, first=True)
            self._core.listeners.add(self)
        else:
            self._core.cache.ignore(members)
            self._core.listeners.remove(self)
        self._wakes.listen(wanted=on)
        self._group_again()

    def _namespace_changed(self, old: Any, new: Any) -> None:
        """The label of a namespace may make gangs of its workloads, or end that."""
        namespace = (new or old).metadata
        value = "" if new is None else (new.metadata.labels or {}).get(GANG_ANNOTATION, "")
        is_changed = self.groups.label(namespace.name, value)
        if is_changed and self.are_on and any(pod.namespace == namespace.name for pod in self._core.pods.values()):
            self._group_again()

    def _group_again(self) -> None:
        """Look at all pods: they may have other groups than before, or none."""
        core, members = self._core, self.groups.members_by_group
        core.cache.forget_left()  # as members, they have no node
        counted = (pod for pod in core.pods.values() if pod.node_name or pod.spec.scheduler_name in core.frameworks)
        members.restart(counted if self.are_on else (), core.cache.assumed_pods())
        core.queue.regroup()


def _gangs(plugin: Any) -> ProfileGangs:
    """Return what the arguments of Coscheduling say about gangs."""
    kinds = frozenset(plugin.gangs.kinds)
    return ProfileGangs(kinds, kinds.union(plugin.workloads, [LEADER_WORKER_SET]))
