"""Events about ourselves, or our Lease: rare, one try each. Those about pods are `events.py`'s."""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from scheduler.api.wording.text import in_bytes
from scheduler.kube.election.lease import micro_time
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.writes.recorder import MAX_NOTE

log = logging.getLogger(__name__)

TIMEOUT: Final = 1.0
"""Seconds: the program waits for it when it ends."""


class Regarding(NamedTuple):
    """The object that Events are about."""

    api_version: str
    kind: str
    namespace: str
    name: str


class SingleEvents:
    """Sends them, through a client that is not fenced. Best effort: the API server may be away."""

    def __init__(
        self,
        client: Client,
        regarding: Regarding,
        controller: str,
        instance: str,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        """`controller`: the first profile's name, as in kube-scheduler; `instance`: which of the replicas we are."""
        self._client = client
        self._regarding = regarding
        self._controller = controller
        self._instance = instance
        self._time_of_day = time_of_day
        self._create = Operation("POST", "events", CallLimit(1, max_pause=TIMEOUT), TIMEOUT, fenced=False)

    async def send(self, type_: str, reason: str, action: str, note: str) -> None:
        """Send one Event. Raises nothing."""
        now = self._time_of_day()
        about = self._regarding
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name}.{int(now * 1e9):x}", "namespace": about.namespace},
            "eventTime": micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": self._instance[:128],
            "regarding": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
            },
            "type": type_,
            "reason": reason,
            "action": action,
            "note": in_bytes(note, MAX_NOTE),
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{about.namespace}/events"
        outcome = await self._client.attempt(self._create, path, orjson.dumps(event))
        if not outcome.ok:
            log.info("An Event was not accepted", extra={"event": note, "err": outcome.message})
