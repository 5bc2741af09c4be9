"""The watches on nodes, pods and Events, in a thread of their own, so that times are right while frames are drawn."""

import asyncio
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final, Self

from tests.controlplane.client import AsyncClient
from tests.controlplane.cluster import Cluster
from tests.demo import facts
from tests.demo.model import Model

WATCHED: Final = (("Node", None, ""), ("Pod", "default", ""), ("Event", "default", f"reason={facts.REFUSED}"))
"""Kind, namespace and field selector."""

WATCH_SECONDS: Final = 3600.0
"""Until a watch is opened again, which happens only with KEEP=1; what it repeats changes nothing."""


class Feed:
    """A context manager; `update` brings a model up to date."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = cluster.async_client()
        self._arrived: SimpleQueue[tuple[float, facts.Fact] | BaseException] = SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._watching = self._loop.create_task(self._watch_all(self._api))
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(RuntimeError):  # the loop is closed: a watch has failed
            self._loop.call_soon_threadsafe(self._watching.cancel)
        self._thread.join()

    def update(self, model: Model, until: float) -> None:
        """Wait for facts until the time `until` and apply them. Raises what ended the watches, if they have."""
        while True:
            try:
                arrived = self._arrived.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                return
            if isinstance(arrived, BaseException):
                raise arrived
            model.apply(*arrived)

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._watching)
        except BaseException as error:  # noqa: BLE001 - raised again by `update`, in the main thread
            self._arrived.put(error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _watch_all(self, client: AsyncClient) -> None:
        async with client, asyncio.TaskGroup() as group:
            for kind, namespace, fields in WATCHED:
                group.create_task(self._watch(kind, namespace, fields))

    async def _watch(self, kind: str, namespace: str | None, fields: str) -> None:
        while True:
            async for change, obj in self._api.watch(kind, namespace, fields=fields, seconds=WATCH_SECONDS):
                fact = facts.read(kind, change, obj)
                if fact is not None:
                    self._arrived.put((time.monotonic(), fact))
