"""The effects of another configuration on the cluster connection: permissions, watches, whole nodes, and an Event."""

import os
import socket
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod, keep_raw_pod
from scheduler.engine.profiles import Resources
from scheduler.files.reading import read
from scheduler.kube.http.client import Client
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import NODES, PODS, Intake
from scheduler.kube.informers.raw_nodes import keep_raw
from scheduler.kube.informers.relister import Relister
from scheduler.kube.permissions import check_permissions, permissions_for
from scheduler.kube.writes.recorder import Recorder
from scheduler.kube.writes.single_events import Regarding, SingleEvents

NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
MAX_NAME: Final = 1024
"""Bytes of the file with the name of our namespace."""

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
        self._keeps_raw_pods, self._keeps_whole_nodes = resources.raw_pods, resources.whole_nodes
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
            self._keep_raw_pods(wanted=True)
        if resources.whole_nodes:
            self._keep_whole_nodes(wanted=True)
        await self._relister.compared([PODS, NODES])
        await self._watches.open(resources)

    async def close(self, names: Collection[str], *, whole_nodes: bool) -> None:
        if whole_nodes:
            self._keep_whole_nodes(wanted=False)
        await self._watches.close(names)

    def keep_only(self, resources: Resources) -> None:
        self._keep_raw_pods(wanted=resources.raw_pods)
        self._watches.keep_only(resources)

    def _keep_raw_pods(self, *, wanted: bool) -> None:
        if wanted != self._keeps_raw_pods:
            self._keeps_raw_pods = wanted
            self._pods.keep(keep_raw_pod if wanted else None)
            self._relister.read_again(PODS)

    def _keep_whole_nodes(self, *, wanted: bool) -> None:
        if wanted != self._keeps_whole_nodes:
            self._keeps_whole_nodes = wanted
            self._nodes.keep(keep_raw if wanted else None)
            self._relister.read_again(NODES)

    def report_as(self, profiles: Sequence[str]) -> None:
        self._events.use(profiles)

    async def report(self, type_: str, reason: str, note: str) -> None:
        if self._own_events is not None:
            await self._own_events.send(type_, reason, ACTION, note)


def this_pod() -> Regarding | None:
    """The pod that this runs in; None outside of a cluster. Its host name is its name, unless its spec says
    otherwise."""
    try:
        namespace = os.environ.get("POD_NAMESPACE") or read(NAMESPACE_FILE, MAX_NAME).decode().strip()
    except (OSError, ValueError):
        return None
    return Regarding("v1", "Pod", namespace, os.environ.get("POD_NAME") or socket.gethostname())
