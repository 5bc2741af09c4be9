"""Says why groups of our own rules are not tried at all: one Event for each group and reason, from the leader.

    a pod or the object changes ─► marked ─► 10 to 20 seconds later: is it refused? ─► Event, unless it has that one

A group's pods come one after the other, so a group that is incomplete for a moment is not worth an Event. Anyone who
may create pods may create groups: so a namespace gets few Events at a time, and its other groups wait for the next.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Final

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.config.defaults import COSCHEDULING
from scheduler.cycle.core import Core
from scheduler.cycle.listeners import PodListener
from scheduler.framework.events import POD_GROUP
from scheduler.framework.groups.pod_groups import GroupKey, PodGroup
from scheduler.framework.handle import EventRecorder
from scheduler.framework.status import Status
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.apis.annotations import MAX_SHOWN
from scheduler.groups.apis.owners import named_by
from scheduler.process.reporting import Due, Said
from scheduler.runtime.framework import Framework

PAUSE: Final = 10.0
"""Seconds between two reports."""

MAX_EVENTS: Final = 100
"""At once."""

MAX_EVENTS_OF_NAMESPACE: Final = 10
"""At once."""

MAX_LOOKED_AT: Final = 16
"""Pods of a group of which one is to be without scheduling gates."""

MAX_GROUPS: Final = 10_000
"""Of which it is known what their last Event said."""

IGNORED_PAUSE: Final = 1.0
"""Seconds from the first pod of an ignored group to the warning."""

MAX_IGNORED: Final = 1_000
"""All who may create pods may name groups: after so many nothing more is said."""

_logger = logging.getLogger(__name__)


class GroupRefusals:
    """Reports the groups that are not tried."""

    def __init__(self, core: Core, groups: AdaptedGroups) -> None:
        self._groups = groups
        self._pods = core.pods
        self._frameworks = core.frameworks
        self._events = core.writers.group_events
        self._is_running = False
        self._marked: dict[GroupKey, None] = {}
        self._due: dict[GroupKey, None] = {}
        """Those that were marked before the last report."""
        self._said = Said[GroupKey](MAX_GROUPS)
        """Why a group is refused, as its last Event says."""
        self._changed = Due(PAUSE)

    def mark(self, key: GroupKey) -> None:
        """Look at a group soon: something about it has changed."""
        if self._is_running and key.source != POD_GROUP:
            self._marked[key] = None
            self._changed.soon()

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Report for ever, first on the groups that are there."""
        self._is_running = True
        for key in tuple(self._groups.members_by_group.groups()):
            self.mark(key)
        while True:
            await self._changed.wait(sleep)
            self.report()

    def report(self) -> None:
        """Report on those groups that are refused and did not change since the last time."""
        due, self._due, self._marked = self._due, self._marked, {}
        said: Counter[str] = Counter()
        of_others = cache(self._of_other_schedulers)
        for key in due:
            if said.total() >= MAX_EVENTS or said[key.namespace] >= MAX_EVENTS_OF_NAMESPACE:
                self._due[key] = None
            elif self._report(key, of_others):
                said[key.namespace] += 1
        if self._due:
            self._changed.soon()

    def _of_other_schedulers(self) -> Mapping[tuple[str, str], Pod]:
        """Return namespace and name of each group → its first pod that is for another scheduler, and does not count."""
        found: dict[tuple[str, str], Pod] = {}
        for pod in self._pods.values():
            if pod.spec.scheduler_name not in self._frameworks and (name := named_by(pod)):
                found.setdefault((pod.namespace, name), pod)
        return found

    def _report(self, key: GroupKey, of_others: Callable[[], Mapping[tuple[str, str], Pod]]) -> bool:
        """Report on a group if there is something new; return whether there was."""
        pods = self._groups.members_by_group.some_unscheduled(key, MAX_LOOKED_AT)
        pod = next((pod for pod in pods if not pod.spec.scheduling_gates), None)
        framework = None if pod is None else self._frameworks.get(pod.spec.scheduler_name)
        refusal = None if pod is None or framework is None else refused_at_once(framework, pod)
        if pod is None or refusal is None:
            self._said.is_new(key, "")
            return False
        group, message = self._groups.of(pod), refusal.message
        reason = "missing" if group is None else group.problem or "incomplete"
        other = of_others().get((key.namespace, key.name)) if reason == "incomplete" else None
        if other is not None:
            reason = f"{other.name} is for the scheduler {shortened(other.spec.scheduler_name, MAX_SHOWN)!r}"
            message += f"; {reason}"
        if not self._said.is_new(key, reason):
            return False
        if group is not None and group.problem:
            _logger.warning("A pod group cannot be used", extra={"podGroup": str(key), "err": group.problem})
        of = group or PodGroup(key.namespace, key.name, str(key), key.source)  # without an object: said at the pod
        self._events.group_event(of, pod, "Warning", "FailedScheduling", "Scheduling", message)
        return True


def refused_at_once(framework: Framework, pod: Pod, plugin: str = COSCHEDULING) -> Status | None:
    """Return why a plugin of groups would not let a pod into the queue now: its group is gone or makes no sense."""
    return next((each.pre_enqueue(pod) for each in framework.pre_enqueue if each.name == plugin), None)


class IgnoredGroups(PodListener):
    """Warns once for each group of our own rules while no profile enables the plugin that keeps it together."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._pods: dict[tuple[str, str], Pod] = {}
        """Namespace and name of a group → the first pod that names it."""
        self._said = 0
        """How many of these have been reported."""
        self._new = Due(IGNORED_PAUSE)

    def pod_waits(self, pod: Pod) -> None:
        metadata = pod.metadata  # asked for each pod that comes, of which few name a group: without a call
        if metadata.group_annotations is None and POD_GROUP_LABEL not in (metadata.labels or ()):
            return
        key = pod.namespace, named_by(pod)
        if key[1] and key not in self._pods and len(self._pods) < MAX_IGNORED:
            self._pods[key] = pod.reference
            self._new.soon()

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Report for ever."""
        while True:
            await self._new.wait(sleep)
            self.report()

    def report(self) -> None:
        """Report the groups that are new."""
        for (namespace, name), pod in tuple(self._pods.items())[self._said :]:
            _logger.warning("No profile keeps a pod group together", extra={"podGroup": f"{namespace}/{name}"})
            note = f'the pod group "{name}" is ignored, as no profile enables {COSCHEDULING}: its pods start one by one'
            self._events.event(pod, "Warning", "PodGroupIgnored", "Scheduling", note)
        self._said = len(self._pods)
