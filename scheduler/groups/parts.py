"""The parts of the engine that groups of pods need: connected while the feature gates or a profile ask for groups.

Without groups the loop, the cache and the handlers know none of them, and no pod pays for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from scheduler.api.pod import Pod
from scheduler.config.defaults import COSCHEDULING
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.types import LoadmasterSettings
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.cycle.loop import SchedulingLoop
from scheduler.framework.handle import ObjectLister
from scheduler.groups.apis.adapters import AdaptedGroups, Adapter
from scheduler.groups.apis.annotations import AnnotatedGroups
from scheduler.groups.apis.coscheduling import CoschedulingGroups
from scheduler.groups.apis.kubernetes import KubernetesGroups
from scheduler.groups.refusals import GroupRefusals
from scheduler.groups.statuses import GroupStatuses
from scheduler.groups.wakes import GroupWakes
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache

if TYPE_CHECKING:  # loaded once there are groups
    from scheduler.groups.algorithm import PodGroupAlgorithm
    from scheduler.groups.cycle import PodGroupCycle
    from scheduler.groups.reservations.keeper import Reservations

PAUSE: Final = 5.0
"""Seconds between two looks whether there are groups."""


def adapted_groups(objects: ObjectLister, gates: FeatureGates) -> AdaptedGroups:
    """Return all adapters, those of Kubernetes' own groups if the gates are on."""
    of_kubernetes: list[Adapter] = [KubernetesGroups(objects)] if gates.generic_workload else []
    return AdaptedGroups(
        of_kubernetes,
        (CoschedulingGroups(objects), AnnotatedGroups()),
        are_tried_in_placements=gates.topology_aware_workload_scheduling,
        preempt_as_a_whole=gates.workload_aware_preemption,
    )


class GroupParts:
    """Connects them, also while the program runs."""

    def __init__(
        self,
        groups: AdaptedGroups,
        statuses: GroupStatuses,
        refusals: GroupRefusals,
        wakes: GroupWakes,
        make_cycle: "Callable[[], tuple[PodGroupAlgorithm, PodGroupCycle]]",
        loop: SchedulingLoop,
        cache: Cache,
        queue: SchedulingQueue,
        handlers: ClusterEventHandlers,
        pods: Mapping[str, Pod],
    ) -> None:
        """`make_cycle` is called once, if any profile has groups; `pods`: UID → newest version seen."""
        self.groups = groups
        self.statuses = statuses
        self.refusals = refusals
        self._wakes = wakes
        self._make_cycle = make_cycle
        self._made: tuple[PodGroupAlgorithm, PodGroupCycle] | None = None
        self._loop = loop
        self._cache = cache
        self._queue = queue
        self._handlers = handlers
        self._pods = pods

    @property
    def algorithm(self) -> "PodGroupAlgorithm | None":
        """Decides about groups of pods; None if groups are off."""
        return self._made[0] if self._made is not None and self.groups.are_on else None

    @property
    def reservations(self) -> "Reservations | None":
        """Reserves nodes for groups; None if there never were any."""
        return None if self._made is None else self._made[1].reservations

    async def keep_reservations(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Reserve nodes for ever for groups that wait for too long."""
        while self.reservations is None:
            await sleep(PAUSE)
        await self.reservations.run(self._loop.ready, sleep)

    def use(self, frameworks: Mapping[str, Framework], settings: LoadmasterSettings) -> None:
        """Have groups as these profiles and settings ask for them.

        If that changes which pods have groups, all pods are looked at in one step, as decisions need all members.
        """
        changed = self.groups.use([name for name, each in frameworks.items() if COSCHEDULING in each.plugins.by_name])
        on, members = self.groups.are_on, self.groups.members_by_group
        is_new = on and self._made is None
        if is_new:
            self._made = self._make_cycle()
        if self.reservations is not None:
            self.reservations.use(settings)
        if not changed and not is_new:
            return
        self._loop.groups = self._made[1] if on and self._made is not None else None
        self._cache.members = members if on else None
        self._queue.is_grouped = self.groups.key_of if on else None
        self._handlers.member_came = self._wakes.member_came if self.groups.has_ours else None
        self._handlers.member_gone = self._wakes.member_gone if self.groups.has_ours else None
        self._wakes.listen(wanted=self.groups.has_ours)
        self._cache.forget_left()  # as members, they have no node
        members.restart(self._counted(frameworks) if on else (), self._cache.assumed_pods())

    def _counted(self, frameworks: Mapping[str, Framework]) -> Iterable[Pod]:
        return (pod for pod in self._pods.values() if pod.node_name or pod.spec.scheduler_name in frameworks)
