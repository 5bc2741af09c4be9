"""Warns of pods that name a group of our own rules while no profile enables the plugin that keeps it together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import COSCHEDULING
from scheduler.cycle.listeners import PodListener
from scheduler.framework.handle import EventRecorder
from scheduler.groups.apis.owners import named_by
from scheduler.process.reporting import Due

PAUSE: Final = 1.0
"""Seconds from the first such pod to the warning."""

MAX_GROUPS: Final = 1_000
"""All who may create pods may name groups: after so many nothing more is said."""

_logger = logging.getLogger(__name__)


class IgnoredGroups(PodListener):
    """Warns once for each group, at the first pod that names it, while this replica leads."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._pods: dict[tuple[str, str], Pod] = {}
        """Namespace and name of a group → the first pod that names it."""
        self._said = 0
        """How many of these have been reported."""
        self._new = Due(PAUSE)

    def pod_waits(self, pod: Pod) -> None:
        metadata = pod.metadata  # asked for each pod that comes, of which few name a group: without a call
        if metadata.group_annotations is None and POD_GROUP_LABEL not in (metadata.labels or ()):
            return
        key = pod.namespace, named_by(pod)
        if key[1] and key not in self._pods and len(self._pods) < MAX_GROUPS:
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
