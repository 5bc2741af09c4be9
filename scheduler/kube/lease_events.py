"""The Events about the Lease that say who leads: `became leader`, `stopped leading`, as client-go's.

Best effort, one try: the API server may be away, which is why we stop leading.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

import orjson

from scheduler.kube.client import CallLimit, Client, Operation
from scheduler.kube.lease import micro_time

log = logging.getLogger(__name__)

TIMEOUT: Final = 1.0
"""Seconds: the program waits for it when it ends."""


class LeaseEvents:
    """Sends them, through a client that is not fenced."""

    def __init__(
        self,
        client: Client,
        lease: tuple[str, str],
        identity: str,
        controller: str,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        """`lease`: namespace and name. `controller`: the first profile's name, as in kube-scheduler."""
        self._client = client
        self._namespace, self._name = lease
        self._identity = identity
        self._controller = controller
        self._time_of_day = time_of_day
        self._create = Operation("POST", "events", CallLimit(1, max_pause=TIMEOUT), TIMEOUT, fenced=False)

    async def send(self, what: str) -> None:
        """Tell what became of us. Raises nothing."""
        now = self._time_of_day()
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{self._name}.{int(now * 1e9):x}", "namespace": self._namespace},
            "eventTime": micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": self._identity[:128],
            "regarding": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": self._namespace,
                "name": self._name,
            },
            "type": "Normal",
            "reason": "LeaderElection",
            "action": "LeaderElection",
            "note": f"{self._identity} {what}",
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events"
        outcome = await self._client.attempt(self._create, path, orjson.dumps(event))
        if not outcome.ok:
            log.info("An Event was not accepted", extra={"event": what, "err": outcome.message})
