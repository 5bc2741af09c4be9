"""Pods that come at a steady rate and go again, and when each of them is bound."""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.cluster.loadmaster import node_of
from tests.controlplane import AsyncClient, a_pod

BATCH_SECONDS = 2.0
"""Pods of this much time are deleted together, once all of them are bound."""

TICK_SECONDS = 0.02

WATCH_SECONDS = 3600.0


class Bindings:
    """When each pod was seen on a node, and whether one ever moved."""

    def __init__(self) -> None:
        self.times: list[float] = []
        """Of all bindings, in order, in seconds of `time.monotonic`."""
        self.moved: list[str] = []
        """Pods that were seen on two nodes."""
        self.unbound: set[str] = set()
        """Names of those that are not bound yet."""
        self._nodes: dict[str, str] = {}

    def see(self, type_: str, pod: dict[str, Any], now: float) -> None:
        name, uid, node = pod["metadata"]["name"], pod["metadata"]["uid"], node_of(pod)
        if type_ == "DELETED":
            self._nodes.pop(uid, None)
            return
        known = self._nodes.get(uid)
        if node and known is None:
            self._nodes[uid] = node
            self.unbound.discard(name)
            self.times.append(now)
        elif node and node != known:
            self.moved.append(name)

    def longest_gap(self, since: float, until: float) -> float:
        """The longest time without a binding, in seconds; both ends count as bindings."""
        within = self.times[bisect_right(self.times, since) : bisect_right(self.times, until)]
        return max(after - before for before, after in pairwise((since, *within, until)))

    def count(self, since: float, until: float) -> int:
        return bisect_right(self.times, until) - bisect_right(self.times, since)


class Load:
    """`rate` pods a second in a namespace. `run` and `watch` are tasks."""

    def __init__(self, api: AsyncClient, namespace: str, rate: float, prefix: str) -> None:
        """`prefix`: of the pods' names, which no other load has."""
        self._prefix = prefix
        self.bindings = Bindings()
        self.created = 0
        self._api = api
        self._namespace = namespace
        self._rate = rate
        self._waiting: list[set[str]] = []
        """Names of the pods of each batch that is not deleted yet."""

    async def watch(self) -> None:
        """See what is bound, until cancelled. The API server ends the watch of a reader that it finds too slow."""
        _, version = await self._api.list_with_version("Pod", self._namespace)
        while True:
            async for type_, pod in self._api.watch("Pod", self._namespace, since=version, seconds=WATCH_SECONDS):
                self.bindings.see(type_, pod, time.monotonic())
                version = pod["metadata"]["resourceVersion"]

    async def run(self) -> None:
        """Create pods until cancelled."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as creations:
            while True:
                due = int((time.monotonic() - began) * self._rate)
                for pod in self._next(due - self.created):
                    creations.create_task(self._api.create(pod, self._namespace))
                for batch in self._done():
                    creations.create_task(self._api.delete_all("Pod", self._namespace, labels=f"batch={batch}"))
                await asyncio.sleep(TICK_SECONDS)

    async def clear(self) -> None:
        """Delete all pods."""
        await self._api.delete_all("Pod", self._namespace)

    def _next(self, count: int) -> Iterator[dict[str, Any]]:
        for _ in range(count):
            batch = int(self.created / (self._rate * BATCH_SECONDS))
            if batch == len(self._waiting):
                self._waiting.append(set())
            name = f"{self._prefix}-{self.created}"
            self._waiting[batch].add(name)
            self.bindings.unbound.add(name)
            self.created += 1
            yield a_pod(name, cpu="1m", memory="1Mi", labels={"batch": str(batch)})

    def _done(self) -> Iterator[int]:
        """Batches that can go: complete, and bound."""
        for batch, names in enumerate(self._waiting[:-1]):
            if names and not names & self.bindings.unbound:
                names.clear()
                yield batch
