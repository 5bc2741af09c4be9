"""A Lease as the API server keeps it, with its faults, and replicas that want it. In virtual time, one event loop."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from scheduler.config.types import LeaderElection
from scheduler.framework.duration import Duration
from scheduler.kube.election.elector import Elector
from scheduler.kube.election.leadership import Leadership
from scheduler.kube.election.lease import Lease
from scheduler.kube.election.lease_lock import LeaseLock
from scheduler.kube.http.client import AnswerLost, Client, NoReply, NotSent, Reply
from scheduler.kube.http.operations import Operation
from tests.fakes import Metrics

SETTINGS = LeaderElection(lease_duration=Duration(15), renew_deadline=Duration(10), retry_period=Duration(2))


class LeaseServer:
    """Keeps the object, counts its versions, refuses writes to old ones, and tells watchers."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 100
        self.watchers: list[Callable[[dict[str, Any] | None, str], None]] = []
        self.calls: list[str] = []

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    def put(self, **spec: Any) -> None:
        """Store a Lease with this spec, whatever there was."""
        self._store({"metadata": {"name": "loadmaster", "uid": "u1"}, "spec": spec})

    def edit(self, **spec: Any) -> None:
        """What `kubectl edit` would do; None removes a field."""
        if self.lease is not None:
            merged = {**self.spec, **spec}
            self._store({**self.lease, "spec": {key: value for key, value in merged.items() if value is not None}})

    def delete(self) -> None:
        if self.lease is not None:
            self.version += 1
            self.lease = None
            self._tell()

    def answer(self, verb: str, body: bytes | None) -> Reply:
        self.calls.append(verb)
        if verb == "GET":
            return self._reply(200) if self.lease else self._status(404)
        sent = json.loads(body or b"{}")
        if verb == "POST":
            if self.lease is not None:
                return self._status(409)
            sent["metadata"]["uid"] = f"u{self.version}"
            self._store(sent)
            return self._reply(201)
        if self.lease is None:
            return self._status(404)
        if sent["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return self._status(409)
        self._store(sent)
        return self._reply(200)

    def _store(self, lease: dict[str, Any]) -> None:
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        self._tell()

    def _tell(self) -> None:
        for tell in self.watchers:
            tell(self.lease, str(self.version))

    def _reply(self, status: int) -> Reply:
        return Reply(status, json.dumps(self.lease).encode())

    @staticmethod
    def _status(status: int) -> Reply:
        return Reply(status, json.dumps({"kind": "Status", "message": f"status {status}"}).encode())


@dataclass
class Fault:
    """What happens to one call."""

    kind: str = "none"
    """none, refused (429), broken (500), unsent, lost (carried out without an answer)."""
    before: float = 0.001
    """Seconds until the server carries it out."""
    after: float = 0.001
    """Seconds until the answer is there."""


@dataclass
class Replica:
    """One program with its elector, its clock and its connection to the server."""

    server: LeaseServer
    name: str
    metrics: Metrics
    settings: LeaderElection = SETTINGS
    next_fault: Callable[[], Fault] = Fault
    time_of_day: Callable[[], float] | None = None
    """None: the loop's, since some day in 2027."""
    watches: bool = True
    watch_delay: Callable[[], float] = lambda: 0.002
    thawed: asyncio.Event = field(default_factory=asyncio.Event)
    """While cleared, the process is stopped: nothing is sent, no answer is read."""
    told: list[str] = field(default_factory=list)
    """Its Events, which always arrive."""

    def __post_init__(self) -> None:
        self.thawed.set()
        now = asyncio.get_running_loop().time
        self.leadership = Leadership(now)
        client = cast("Client", self)
        time_of_day = self.time_of_day or (lambda: 1_800_000_000.0 + now())
        self.lock = LeaseLock(client, self.settings, self.name, self.leadership, now, time_of_day)
        self.elector = Elector(client, self.lock, self.settings, self.leadership, "one", self.metrics, lambda: 0.5)
        if self.watches:
            self.server.watchers.append(self._watch)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> "Replica":
        self.task = asyncio.create_task(self.elector.run())
        return self

    @property
    def leads(self) -> bool:
        return self.leadership.is_held()

    async def kill(self) -> None:
        """End it as SIGKILL does: what was sent may still be carried out."""
        assert self.task is not None
        if self._watch in self.server.watchers:
            self.server.watchers.remove(self._watch)
        self.leadership.end()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        await self.elector.release()
        await self.kill()

    async def attempt(self, operation: Operation, path: str, body: bytes | None = None) -> Reply | NoReply:
        """The client's part."""
        if operation.resource == "events":
            self.told.append(json.loads(body or b"{}")["note"].removeprefix(f"{self.name} "))
            return Reply(201, b"{}")
        await self.thawed.wait()
        fault = self.next_fault()
        if fault.kind == "unsent":
            await asyncio.sleep(fault.before)
            return NotSent("no connection")
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(fault.before, self._carry_out, operation.verb, body, fault, answered)
        try:
            async with asyncio.timeout(operation.timeout):
                reply = await asyncio.shield(answered)
        except TimeoutError:
            reply = None
        await self.thawed.wait()
        return reply or AnswerLost("no answer")

    def _carry_out(self, verb: str, body: bytes | None, fault: Fault, answered: "asyncio.Future[Reply]") -> None:
        if fault.kind == "refused":
            reply = Reply(429, b"{}", 1.0)
        elif fault.kind == "broken":
            reply = Reply(500, b"<html>")
        else:
            reply = self.server.answer(verb, body)
        if fault.kind != "lost":
            asyncio.get_running_loop().call_later(fault.after, _settle, answered, reply)

    def _watch(self, lease: dict[str, Any] | None, version: str) -> None:
        seen = None if lease is None else Lease.of(lease)
        asyncio.get_running_loop().call_later(self.watch_delay(), self._observe, seen, version)

    def _observe(self, lease: Lease | None, version: str) -> None:
        if self.thawed.is_set():
            self.lock.observe(lease, version)


def _settle(answered: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not answered.done():
        answered.set_result(reply)
