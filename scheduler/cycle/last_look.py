"""Checks a node once more just before the binding of a pod is sent.

Between decision and binding, a pod may wait on Permit, for its volumes, or for its turn at the API server; meanwhile
other schedulers bind pods to the same node, and people cordon it. The API server would accept the binding all the same,
and the kubelet reject the pod for good (`OutOfcpu`). So the node is checked again just before the call.

Our own pods cannot cause that, as each is counted before the next decision: only a node that others have changed is
checked, so a binding usually costs a look-up. Then the Filter plugins run that depend only on the pod's spec and the
node (`signs_spec`), which are the kubelet's checks too: resources, ports, node affinity, taints. kube-scheduler has no
such check.

The group of a pod is checked, too: if other members are gone by then, only a part of a gang would start.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final, NoReturn

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.cycle.cycle_events import BindingRetried
from scheduler.cycle.writers import BindingWriter
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import BindRejected
from scheduler.framework.groups.pod_groups import lacks_others
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache

UNKNOWN: Final = -1
"""The version of a node that has changed since the decision: it is checked."""

NODE_GONE: Final = "the node is gone"

_logger = logging.getLogger(__name__)


class _Placement(msgspec.Struct, frozen=True, eq=False):
    framework: Framework
    state: CycleState
    pod: Pod
    """The pod as it was decided about: without its node."""
    node_name: str
    version: int
    """The node's, at the decision."""


class LastLook:
    """Implements framework.handle.Binder: passes bindings on, with a check before each call."""

    def __init__(self, cache: Cache, writer: BindingWriter, stream: EventStream, metrics: Metrics) -> None:
        self._cache = cache
        self._writer = writer
        self._stream = stream
        self._withdrawn = metrics.bindings_withdrawn
        self._placements: dict[str, _Placement] = {}

    def note(self, framework: Framework, state: CycleState, pod: Pod, node_name: str, since: int | None = None) -> None:
        """Remember the placement of a pod until `drop`.

        `since`: the last change of nodes that the decision knows of; None if it is of just now.
        """
        version = self._cache.changed_by_others(node_name)
        if since is not None and (version > since or self._cache.table.row_of(node_name) is None):
            version = UNKNOWN
        self._placements[pod.uid] = _Placement(framework, state, pod, node_name, version)

    def drop(self, uid: str) -> None:
        """Forget a placement whose binding has ended, or is not made."""
        self._placements.pop(uid, None)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Return once the pod is bound. Raises BindRejected if it is not and will not be."""
        failure = await self._writer.bind(pod, node_name, partial(self.check, pod.uid, node_name))
        if failure and BindingRetried in self._stream.listeners:
            self._stream.publish(BindingRetried(pod.uid, failure))

    def check(self, uid: str, node_name: str) -> None:
        """Raise BindRejected if the pod no longer fits the node, or would start without its group."""
        placement = self._placements.get(uid)
        if placement is None:
            return
        framework, state, pod = placement.framework, placement.state, placement.pod
        if state.is_of_group_cycle and lacks_others(framework.handle.pod_groups, pod):
            self._withdraw(pod, node_name, "too few other pods of its group have a node any longer")
        if placement.node_name != node_name:
            return  # a Bind plugin chose another node: it is not checked
        if self._cache.changed_by_others(node_name) == placement.version:
            return
        # What is tried out for a group of pods meanwhile is not there.
        others = [each for each in self._cache.what_ifs.values() if each.node_name == node_name]
        reason = why_not(self._cache, framework, state, pod, node_name, without=others)
        if reason:
            self._withdraw(pod, node_name, f"node {node_name!r} changed since it was chosen: {reason}")

    def _withdraw(self, pod: Pod, node_name: str, reason: str) -> NoReturn:
        self._withdrawn.inc()
        fields = {"pod": str(pod), "node": node_name, "reason": reason}
        _logger.info("A binding was withdrawn", extra=fields)
        raise BindRejected(reason)


def why_not(
    cache: Cache, framework: Framework, state: CycleState, pod: Pod, node_name: str, without: Sequence[Pod] = ()
) -> str:
    """Return why an assumed pod no longer fits its node; empty if it does, or is not assumed any more.

    `state` and `pod` are those of the decision. `without`: pods on the node that are left out. Raises PluginError.
    """
    table = cache.table
    row, counted = table.row_of(node_name), cache.get(pod.uid)
    if row is None:
        return NODE_GONE
    if counted is None or not cache.is_assumed(pod.uid):
        return ""
    with table.what_if(row, remove=(counted, *without)):
        status = framework.run_filter_again(state, pod, row)
    return "" if status is None else status.message
