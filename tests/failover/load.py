"""Pods that come at a steady rate and go again, and when each of them is bound."""

import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import orjson

from tests.bench.wire import Job, Request, Server, send_all
from tests.cluster.loadmaster import node_of
from tests.controlplane import AsyncClient, a_pod

CONNECTIONS = 8
TICK_SECONDS = 0.005
WATCH_SECONDS = 3600.0


class Bindings:
    """When each pod was seen on a node, and whether one ever moved."""

    def __init__(self) -> None:
        self.times: list[float] = []
        """Of all bindings, in order, in seconds of `time.monotonic`."""
        self.moved: list[str] = []
        """Pods that were seen on two nodes."""
        self.unbound: set[str] = set()
        """Names of those that were seen, but not on a node yet."""
        self.bound: deque[str] = deque()
        """Names of those that are bound, and can go."""
        self._nodes: dict[str, str] = {}

    def see(self, type_: str, pod: dict[str, Any], now: float) -> None:
        name, uid, node = pod["metadata"]["name"], pod["metadata"]["uid"], node_of(pod)
        known = self._nodes.get(uid)
        if type_ == "DELETED":
            self._nodes.pop(uid, None)
        elif not node:
            self.unbound.add(name)
        elif known is None:
            self._nodes[uid] = node
            self.unbound.discard(name)
            self.times.append(now)
            self.bound.append(name)
        elif node != known:
            self.moved.append(name)

    def longest_gap(self, since: float, until: float) -> float:
        """The longest time without a binding between two moments, in seconds.

        One that began before the first moment counts in full; the last moment counts as a binding.
        """
        first = max(0, bisect_right(self.times, since) - 1)
        within = self.times[first : bisect_right(self.times, until)]
        return max((after - before for before, after in pairwise((*within, until))), default=0.0)

    def count(self, since: float, until: float) -> int:
        return bisect_right(self.times, until) - bisect_right(self.times, since)


class Load:
    """`rate` pods a second in a namespace, sent by a thread of its own. A context manager; `watch` is a task."""

    def __init__(self, server: Server, namespace: str, rate: float, prefix: str) -> None:
        """`prefix`: of the pods' names, which no other load has."""
        self.bindings = Bindings()
        self._server = server
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._namespace = namespace
        self._rate = rate
        self._prefix = prefix
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._send, name="load", daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def is_running(self) -> bool:
        """False if the API server did not take a request."""
        return self._thread.is_alive()

    async def watch(self, api: AsyncClient) -> None:
        """See what is bound, until cancelled. The API server ends the watch of a reader that it finds too slow."""
        _, version = await api.list_with_version("Pod", self._namespace)
        while True:
            async for type_, pod in api.watch("Pod", self._namespace, since=version, seconds=WATCH_SECONDS):
                self.bindings.see(type_, pod, time.monotonic())
                version = pod["metadata"]["resourceVersion"]

    def _send(self) -> None:
        send_all(self._server, self._jobs(), CONNECTIONS, lambda *_: None)

    def _jobs(self) -> Iterator[Job]:
        """A creation when it is due, otherwise a deletion of a pod that is bound."""
        began, created, pod = time.monotonic(), 0, a_pod("", cpu="1m", memory="1Mi")
        while not self._end.is_set():
            if created <= (time.monotonic() - began) * self._rate:
                pod["metadata"] = {"name": f"{self._prefix}-{created}"}
                created += 1
                yield [Request("POST", self._path, "pods", orjson.dumps(pod))]
            elif self.bindings.bound:
                path = f"{self._path}/{self.bindings.bound.popleft()}?gracePeriodSeconds=0"
                yield [Request("DELETE", path, "pods")]
            else:
                time.sleep(TICK_SECONDS)
