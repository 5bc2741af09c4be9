"""Sees when pods are bound: a watch that is open before anything happens, in the loop of a client's thread."""

import asyncio
import threading
import time
from types import TracebackType
from typing import Self

from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Cluster

OPEN_FOR = 600.0
"""Seconds that the watch stays open: more than any test takes."""


class BindWatch:
    """When the watch showed each pod of a namespace on a node, in seconds of `time.monotonic`. A context manager."""

    def __init__(self, cluster: Cluster, api: Client, namespace: str) -> None:
        """Uses the loop of `api`, not its connections: aiohttp closes one properly only in a loop that goes on."""
        self._cluster = cluster
        self._api = api
        self._namespace = namespace
        self._seen: dict[str, float] = {}
        self._changed = threading.Condition()
        self._opened = threading.Event()
        self._error: BaseException | None = None
        self._reading: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=lambda: api.run(self._follow()), name="bind-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._opened.wait(10), "the watch did not open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._api.run(self._stop())
        self._thread.join()

    @property
    def bound(self) -> set[str]:
        """The UIDs of the pods that were seen on a node."""
        with self._changed:
            return set(self._seen)

    def bound_at(self, uid: str, timeout: float = 10.0) -> float:
        """Wait for a pod's binding and return when it was seen. Raises TimeoutError after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: uid in self._seen or self._error is not None, timeout):
                raise TimeoutError(f"pod {uid} was not bound in {timeout:g} s")
        if self._error is not None:
            raise self._error
        return self._seen[uid]

    async def _follow(self) -> None:
        self._reading = asyncio.create_task(self._read())
        await asyncio.wait([self._reading])
        self._opened.set()  # or not: then the error says why
        with self._changed:
            if not self._reading.cancelled():
                self._error = self._reading.exception() or TimeoutError("the watch has ended")
            self._changed.notify_all()

    async def _stop(self) -> None:
        assert self._reading is not None
        self._reading.cancel()

    async def _read(self) -> None:
        async with self._cluster.async_client() as api:
            _, version = await api.list_with_version("Pod", self._namespace)
            self._opened.set()  # nothing is missed from here on: the watch begins at this version
            async for _, pod in api.watch("Pod", self._namespace, since=version, seconds=OPEN_FOR):
                now = time.monotonic()
                if node_of(pod):
                    with self._changed:
                        self._seen.setdefault(pod["metadata"]["uid"], now)
                        self._changed.notify_all()
