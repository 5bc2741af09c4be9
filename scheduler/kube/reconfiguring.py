"""The effects of another configuration on the cluster connection: permissions, watches, whole nodes, and an Event."""

import os
import socket
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod, keep_raw_pod
from scheduler.engine.profiles import Resources
from scheduler.kube.http.client import Client
from scheduler.kube.identity.identity import SERVICE_ACCOUNT, namespace_in
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import NODES, PODS, Intake
from scheduler.kube.informers.object_decoder import T
from scheduler.kube.informers.raw_nodes import keep_raw
from scheduler.kube.informers.relister import Relister
from scheduler.kube.permissions import check_permissions, permissions_for
from scheduler.kube.writes.recorder import Recorder
from scheduler.kube.writes.single_events import Regarding, SingleEvents

ACTION: Final = "Reconfiguring"


class ReconfigurableCluster:
    """Implements scheduler.assembly.reloading.Cluster."""

    def __init__(
        self,
        client: Client,
        pods: Intake[Pod],
        nodes: Intake[Node],
        relister: Relister,
        watches: FurtherWatches,
        events: Recorder,
        resources: Resources,
        controller: str,
    ) -> None:
        """`resources`: the permitted and decoded resources at the start. `controller`: the reporter of the Events."""
        self._pods, self._nodes, self._relister = pods, nodes, relister
        self._granted = frozenset(permissions_for(resources.watched.values(), resources.written))
        self._client = client
        self._watches = watches
        self._events = events
        us = this_pod()
        self._own_events = None if us is None else SingleEvents(client, us, controller, us.name)

    @property
    def watched(self) -> Collection[str]:
        return self._watches.resources

    async def open(self, resources: Resources) -> None:
        """Ask for the permissions, then watch. Raises ConfigError or ClusterError."""
        needed = frozenset(permissions_for(resources.watched.values(), resources.written))
        if new := needed - self._granted:
            await check_permissions(self._client, sorted(new))
            self._granted |= new
        # Never less than before: profiles that are at work, or retire, may need it. See `keep_only`.
        if resources.raw_pods:
            self._keep(self._pods, keep_raw_pod)
        if resources.whole_nodes:
            self._keep(self._nodes, keep_raw)
        await self._relister.compared([PODS, NODES])
        await self._watches.open(resources)

    async def close(self, names: Collection[str], *, whole_nodes: bool) -> None:
        if whole_nodes:
            self._keep(self._nodes, None)
        await self._watches.close(names)

    def keep_only(self, resources: Resources) -> None:
        self._keep(self._pods, keep_raw_pod if resources.raw_pods else None)
        self._watches.keep_only(resources)

    def _keep(self, intake: Intake[T], keep_raw: Callable[[T, msgspec.Raw], None] | None) -> None:
        if intake.keep(keep_raw):
            self._relister.read_again(intake.resource)

    def report_as(self, profiles: Sequence[str]) -> None:
        self._events.use(profiles)

    async def report(self, type_: str, reason: str, note: str) -> None:
        if self._own_events is not None:
            await self._own_events.send(type_, reason, ACTION, note)


def this_pod() -> Regarding | None:
    """The pod that this runs in; None outside of a cluster. Its host name is its name, unless its spec says
    otherwise."""
    namespace = os.environ.get("POD_NAMESPACE") or namespace_in(SERVICE_ACCOUNT)
    if not namespace:
        return None
    return Regarding("v1", "Pod", namespace, os.environ.get("POD_NAME") or socket.gethostname())
