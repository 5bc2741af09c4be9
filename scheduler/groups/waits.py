"""The events that the members of a group wait for once it was tried in vain, if our own rules hold for it.

    refused by plugins ──► one of those that no hint distinguishes waits for the events of these plugins;
                           the others wait for it
    would have fitted ───► wait for it, too

So an event costs as much as there are kinds of members. The member that it brings back brings all others: `cycle.py`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

from scheduler.config.defaults import COSCHEDULING
from scheduler.cycle.algorithm import Unplaced
from scheduler.framework.queued import QueuedPod
from scheduler.groups.decision import GroupDecision
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.framework import Framework

FOR_THE_GROUP: Final = frozenset((COSCHEDULING,))
"""The plugin that is said to refuse members that wait for another one."""


class Waits:
    """Those of the members of one group."""

    def __init__(
        self, framework: Framework, queue: SchedulingQueue, members: Sequence[QueuedPod], decision: GroupDecision
    ) -> None:
        self._is_placed = decision.status is None
        self._plugins: dict[str, frozenset[str]] = {}
        """UID of a member that waits for events → the plugins whose events those are."""
        kinds: set[Hashable] = set()
        for outcome in decision.members:
            refused, pod = outcome.decision, outcome.queued.pod
            if isinstance(refused, Unplaced) and not outcome.node_name:
                plugins = refused.unschedulable_plugins | refused.pending_plugins
                kind = queue.alike(pod, plugins)
                if plugins and kind not in kinds:
                    kinds.add(kind)
                    self._plugins[pod.uid] = plugins
        if decision.refused_by:
            self._plugins[members[0].pod.uid] = frozenset((decision.refused_by,))
        elif not self._plugins:
            # No member was looked at, or all fit once others are gone: whatever changes about nodes may help.
            self._plugins[members[0].pod.uid] = frozenset(each.name for each in framework.plugins.at["filter"])

    def of(self, pod_uid: str, refused: Unplaced) -> Unplaced:
        """Return why a member has no node, with what it waits for."""
        plugins = self._plugins.get(pod_uid, FOR_THE_GROUP) - refused.pending_plugins
        if self._is_placed:  # the others have what was freed for the group: nothing is kept for this one
            refused = replace(refused, nominated_node_name="")
        return replace(refused, unschedulable_plugins=plugins)
