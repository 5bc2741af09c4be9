"""The watches on nodes, pods and Events, in a thread of their own, so that times are right while frames are drawn."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Final

from tests.controlplane.client import AsyncClient
from tests.controlplane.cluster import Cluster
from tests.demo.model import Model

WATCHED: Final = (("Node", None, ""), ("Pod", "default", ""), ("Event", "default", "reason=FailedScheduling"))
"""Kind, namespace and field selector."""

WATCH_SECONDS: Final = 3600.0
"""Until a watch is opened again, which happens only with KEEP=1; what it repeats changes nothing."""


class Feed:
    """What has arrived from the watches."""

    def __init__(self) -> None:
        self._arrived: SimpleQueue[tuple[Any, ...] | BaseException] = SimpleQueue()

    def update(self, model: Model, until: float) -> None:
        """Wait for events until the time `until` and apply them. Raises what ended the watches, if they have."""
        with suppress(Empty):
            while True:
                arrived = self._arrived.get(timeout=max(0.0, until - time.monotonic()))
                if isinstance(arrived, BaseException):
                    raise arrived
                model.apply(*arrived)

    async def watch_all(self, client: AsyncClient) -> None:
        """Watch until cancelled. An error is for `update` to raise."""
        try:
            async with client, asyncio.TaskGroup() as group:
                for kind, namespace, fields in WATCHED:
                    group.create_task(self._watch(client, kind, namespace, fields))
        except BaseExceptionGroup as error:
            self._arrived.put(error.exceptions[0])

    async def _watch(self, client: AsyncClient, kind: str, namespace: str | None, fields: str) -> None:
        while True:
            async for change, obj in client.watch(kind, namespace, fields=fields, seconds=WATCH_SECONDS):
                self._arrived.put((time.monotonic(), kind, change, obj))


@contextmanager
def watching(cluster: Cluster) -> Iterator[Feed]:
    """Watch the cluster while the block runs."""
    feed, loop = Feed(), asyncio.new_event_loop()
    task = loop.create_task(feed.watch_all(cluster.async_client()))

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.run_until_complete(loop.shutdown_asyncgens())

    thread = threading.Thread(target=run, name="feed", daemon=True)
    thread.start()
    try:
        yield feed
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
