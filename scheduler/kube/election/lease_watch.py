"""A watch on the Lease alone, so that a release is seen within milliseconds.

Its events are hints: the elector reads the Lease itself where it matters, and each `retryPeriod` if it hears nothing.
So a watch that breaks is opened again after a moment, and nothing else depends on it.
"""

import asyncio
import logging
import time
from typing import Any, Final

import aiohttp
import orjson

from scheduler.kube.election.lease import Lease
from scheduler.kube.election.lease_lock import LeaseLock
from scheduler.kube.http.client import Client
from scheduler.kube.http.retries import RetryPolicy

log = logging.getLogger(__name__)

MAX_LINE: Final = 4 << 20
"""Bytes; an object in etcd has 1.5 MiB at most."""

SERVER_SECONDS: Final = 300
"""After this the API server ends the watch, and another one is opened."""

CONNECT_SECONDS: Final = 5.0

RETRIES: Final = RetryPolicy(first=0.2, limit=5.0)


class LeaseWatch:
    """Reports changes of the Lease to its lock. `run` it as a task."""

    def __init__(self, client: Client, lock: LeaseLock, max_idle: float, retries: RetryPolicy = RETRIES) -> None:
        """`max_idle`: seconds without an event after which the connection is not trusted any more."""
        self._retries = retries
        self._client = client
        self._lock = lock
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=max_idle)

    async def run(self) -> None:
        """Watch until cancelled."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._watch()
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                fields = {"lock": self._lock.describe(), "err": str(error) or type(error).__name__}
                log.debug("The watch on the leader lease ended", extra=fields)
            failures = 0 if time.monotonic() - began > self._retries.limit else failures + 1
            await asyncio.sleep(self._retries.wait(failures))

    async def _watch(self) -> None:
        """Watch until the stream ends. Raises what aiohttp raises, and ValueError for anything but an event."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self._lock.namespace}/leases"
        # Without a resourceVersion it begins with the object as it is.
        query = {
            "watch": "1",
            "fieldSelector": f"metadata.name={self._lock.name}",
            "timeoutSeconds": str(SERVER_SECONDS),
        }
        async with await self._client.request("GET", path, params=query, timeout=self._timeout) as response:
            if response.status == 401:
                await self._client.authorized_session(rejected=True)
            response.raise_for_status()
            rest = bytearray()
            async for chunk in response.content.iter_any():
                rest += chunk
                *lines, rest = rest.split(b"\n")
                for line in filter(None, lines):
                    self._take(orjson.loads(line))
                if len(rest) > MAX_LINE:
                    raise ValueError("a line that is too long")

    def _take(self, event: Any) -> None:
        """Take an event in. Raises ValueError unless it is about a Lease; an error of the watch is not."""
        type_ = event.get("type") if isinstance(event, dict) else None
        if type_ not in ("ADDED", "MODIFIED", "DELETED"):
            raise ValueError(f"the watch says {type_}")
        lease = Lease.of(event.get("object"))
        self._lock.observe(None if type_ == "DELETED" else lease, lease.version)
