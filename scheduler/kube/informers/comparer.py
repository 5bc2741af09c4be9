"""Finds differences between cache, queue and API server. Reads only; `Relister` repairs.

Rule: pkg/scheduler/backend/cache/debugger/comparer.go at v1.36.3: nodes by name, pods by UID; an assumed pod counts as
known. Beyond it, a bound pod must be in the cache, not just anywhere, and some pods are left out: waiting pods of other
schedulers, and waiting pods that are being deleted, which are no longer tried.

A list and the watch are never of the same moment. So differences are compared again a little later, with a new list,
and only what differs both times is a mismatch.
"""

import asyncio
from collections.abc import AsyncIterator, Container, Mapping
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import quote

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.objects import Wire
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import NODES, PODS, ApiResource
from scheduler.kube.informers.intake import POD_FIELD_SELECTOR
from scheduler.kube.informers.listing import Lister
from scheduler.kube.informers.relister import SETTLE_SECONDS
from scheduler.process.time_slice import TimeSlice
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.state.cache import Cache


@dataclass(slots=True)
class Difference:
    """Key → a name for people."""

    missed: dict[str, str] = field(default_factory=dict)
    """Objects that the API server has and we do not."""

    redundant: dict[str, str] = field(default_factory=dict)
    """Objects that we have and the API server does not."""

    def __bool__(self) -> bool:
        return bool(self.missed or self.redundant)

    def __and__(self, other: "Difference") -> "Difference":
        return Difference(_common(self.missed, other.missed), _common(self.redundant, other.redundant))


@dataclass(frozen=True, slots=True)
class CacheComparison:
    """The differences, and how much was compared."""

    nodes: Difference
    pods: Difference
    listed_nodes: int
    listed_pods: int

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.nodes or self.pods)


class Comparer:
    """Compares on request."""

    def __init__(
        self,
        lister: Lister,
        cache: Cache,
        queue: SchedulingQueue,
        profiles: Container[str],
        settle: float = SETTLE_SECONDS,
    ) -> None:
        """`profiles`: their waiting pods are ours. `settle`: seconds before differences are compared again."""
        self._lister = lister
        self._cache = cache
        self._queue = queue
        self._profiles = profiles
        self._settle = settle

    async def compare(self) -> CacheComparison:
        """Return what differs and still does after the settling time. Raises ClusterError."""
        first = await self._once()
        if not first:
            return first
        await asyncio.sleep(self._settle)
        again = await self._once()
        return CacheComparison(
            first.nodes & again.nodes, first.pods & again.pods, again.listed_nodes, again.listed_pods
        )

    async def _once(self) -> CacheComparison:
        nodes, listed_nodes = await self._nodes()
        pods, listed_pods = await self._pods()
        return CacheComparison(nodes, pods, listed_nodes, listed_pods)

    async def _nodes(self) -> tuple[Difference, int]:
        listed: set[str] = set()
        async for node in self._listed(NODES):
            listed.add(node.metadata.name)
        table = self._cache.table
        known = {*table.node_names(), *table.placeholder_names()}
        return Difference({name: name for name in listed - known}, {name: name for name in known - listed}), len(listed)

    async def _pods(self) -> tuple[Difference, int]:
        listed: set[str] = set()
        missed: dict[str, str] = {}
        async for pod in self._listed(PODS, f"&fieldSelector={quote(POD_FIELD_SELECTOR)}"):
            listed.add(pod.metadata.uid)
            if self._is_missed(pod):
                missed[pod.metadata.uid] = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return Difference(missed, await self._redundant_pods(listed)), len(listed)

    def _is_missed(self, pod: "_Listed") -> bool:
        uid = pod.metadata.uid
        if self._cache.get(uid) is not None:
            return False
        if pod.spec.node_name:
            return True
        is_ours = pod.spec.scheduler_name in self._profiles and pod.metadata.deletion_timestamp is None
        return is_ours and uid not in self._queue

    async def _redundant_pods(self, listed: Container[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        time_slice = TimeSlice()
        for uid in tuple(self._cache.uids()):
            if uid not in listed and (counted := self._cache.get(uid)) is not None:
                found[uid] = str(counted)
            await time_slice.give_way()
        for queued in chain(*self._queue.pending_pods().values(), self._queue.in_flight_pods()):
            uid = queued.pod.uid
            if uid not in listed and uid in self._queue:
                found[uid] = str(queued.pod)
            await time_slice.give_way()
        return found

    async def _listed(self, resource: ApiResource, query: str = "") -> AsyncIterator["_Listed"]:
        """Yield every object. Raises ClusterError."""
        async for page in self._lister.pages(resource, query):
            for item in page.items:
                try:
                    yield _decoder.decode(item)
                except Unreadable as error:
                    raise ClusterError(f"listing {resource.name}: {error}") from error


def _common(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    return {key: name for key, name in one.items() if key in other}


class _Metadata(Wire, frozen=True):
    uid: str = ""
    namespace: str = ""
    name: str = ""
    deletion_timestamp: str | None = None


class _Spec(Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""


class _Listed(Wire, frozen=True):
    """A pod or a node, reduced to the compared fields, so that unreadable ones are compared as well."""

    metadata: _Metadata
    spec: _Spec = _Spec()


_decoder: Decoder[_Listed] = Decoder(_Listed)
