"""An API server that answers from a script, on a port of this machine; and what the tests need around it."""

import asyncio
import fcntl
import json
import socket
import struct
import termios
import threading
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from scheduler.api.objects import Node, ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import Credentials, load_credentials
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: Any = field(default_factory=dict)
    """Bytes as they are, anything else as JSON."""

    headers: Mapping[str, str] = field(default_factory=dict)
    breaks_after: int | None = None
    """Bytes, from the first of its head, after which the connection is reset; None: it is whole."""


LOST: Final = Answer(0)
"""The connection breaks after the request was read."""

HANGS: Final = Answer(-1)
"""No answer comes as long as the server runs."""

READ_SECONDS: Final = 0.05
"""For the client to read what has come before a reset, which takes away what it has not read."""

GOES_ON: Final = Answer(body="data: 1\n\n")
"""Its body comes at once, and no end as long as somebody reads."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    """Path and query as they were sent."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class FakeApi:
    """Answers `METHOD /path` from its script, the last answer for ever; 404 for what is not in it."""

    def __init__(self, not_found: str = "not found") -> None:
        self.requests: list[Request] = []
        self.held = asyncio.Event()
        """While cleared, no answer is given."""
        self.held.set()
        self.hanging: dict[str, asyncio.Event] = {}
        """Request → what has to be set before it is answered."""
        self.is_hanging = threading.Event()
        """Set once somebody waits for an answer that does not come."""
        self.busy = 0
        self.most_at_once = 0
        self.otherwise = Answer(404, {"kind": "Status", "message": not_found})
        """The answer to what is not in the script."""
        self._script: dict[str, deque[Answer]] = defaultdict(deque)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self.server = TestServer(app, host="127.0.0.1")

    def on(self, request: str, *answers: Answer) -> Self:
        """What to answer to `METHOD /path`, in turn."""
        self._script[request] = deque(answers)
        return self

    def seen(self, request: str) -> list[Request]:
        method, path = request.split()
        return [each for each in self.requests if (each.method, each.path) == (method, path)]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else None
        seen = request.method, request.raw_path, request.path, request.query, request.headers, body
        self.requests.append(Request(*seen))
        self.busy += 1
        self.most_at_once = max(self.most_at_once, self.busy)
        await self.held.wait()
        if (hanging := self.hanging.get(f"{request.method} {request.path}")) is not None:
            await hanging.wait()
        self.busy -= 1
        answers = self._script[f"{request.method} {request.path}"]
        answer = self.otherwise if not answers else answers.popleft() if len(answers) > 1 else answers[0]
        assert request.transport is not None
        if answer is HANGS:
            self.is_hanging.set()
            await asyncio.Event().wait()
        if answer is LOST:
            request.transport.abort()
        if answer is GOES_ON:
            return await self._go_on(request, answer.body.encode())
        if answer.breaks_after is not None:
            await _break(request.transport, answer)
        if isinstance(answer.body, bytes):
            response = web.Response(body=answer.body, status=answer.status, headers=answer.headers)
            response.force_close()  # also where the headers promise more
            return response
        return web.json_response(answer.body, status=answer.status or 500, headers=answer.headers)

    async def _go_on(self, request: web.Request, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(body)
        while request.transport is not None:  # noqa: ASYNC110  nobody is told of the reader's end
            await asyncio.sleep(0.01)
        return response


async def _break(transport: asyncio.Transport, answer: Answer) -> None:
    """Send the first bytes of an answer, and reset the connection once they have come."""
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    head = f"HTTP/1.1 {answer.status} OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    transport.write((head + body)[: answer.breaks_after])
    connection: socket.socket = transport.get_extra_info("socket")
    while struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]:  # noqa: ASYNC110
        await asyncio.sleep(0)  # the peer's machine has not all of it: what is on its way, a reset takes away
    await asyncio.sleep(READ_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


@asynccontextmanager
async def fake_client(directory: Path, api: FakeApi, metrics: Metrics | None = None) -> AsyncIterator[Client]:
    """A client of the fake API server."""
    async with api.server, client_of(directory, str(api.server.make_url("/")), metrics=metrics) as client:
        yield client


@asynccontextmanager
async def client_of(
    directory: Path,
    server: str,
    cluster: Mapping[str, Any] | None = None,
    metrics: Metrics | None = None,
    **user: Any,
) -> AsyncIterator[Client]:
    async with Client(await credentials_of(directory, server, cluster, **user), metrics or Metrics()) as client:
        yield client


async def credentials_of(
    directory: Path, server: str, cluster: Mapping[str, Any] | None = None, **user: Any
) -> Credentials:
    """Load what a kubeconfig has, which is left in the directory."""
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(server, cluster, **user))
    return await load_credentials(str(kubeconfig))


@asynccontextmanager
async def kept_fresh(credentials: Credentials) -> AsyncIterator[None]:
    """Credentials that are read again when they are due or rejected."""
    tasks = Tasks(Metrics())
    tasks.start("credentials", credentials.keep_fresh())
    try:
        yield
        assert tasks.are_running()
    finally:
        await tasks.close()


def kubeconfig_text(server: str, cluster: Mapping[str, Any] | None = None, **user: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "main", "user": "me"}}],
            "clusters": [{"name": "main", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "me", "user": user or {"token": "secret"}}],
        }
    )


class FakeHandlers:
    """Records its calls."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.calls: list[str] = []
        self.unreadable: list[tuple[str, str]] = []
        self.fail_on = ""
        """The name of an object whose handlers fail."""

    def pod_changed(self, pod: Pod) -> None:
        self._call("changed", pod.name, pod.metadata.resource_version)
        self.pods[pod.uid] = pod

    def pod_deleted(self, pod: Pod) -> None:
        self._call("deleted", pod.name)
        del self.pods[pod.uid]

    def node_changed(self, node: Node) -> None:
        self._call("changed", node.name, node.metadata.resource_version)
        self.nodes[node.metadata.uid] = node

    def node_deleted(self, node: Node) -> None:
        self._call("deleted", node.name)
        del self.nodes[node.metadata.uid]

    def pod_unreadable(self, identity: ObjectMeta, problem: str) -> None:
        self.unreadable.append((identity.name, problem))

    def pod_repaired(self, pod: Pod) -> None:
        self._call("repaired", pod.name, pod.metadata.resource_version)
        self.pods[pod.uid] = pod

    def mend(self) -> None:
        self.calls.append("mend")

    def known_pods(self) -> Mapping[str, Pod]:
        return self.pods

    def known_nodes(self) -> Mapping[str, Node]:
        return self.nodes

    def _call(self, *words: str) -> None:
        if self.fail_on in words:
            raise RuntimeError("a handler failed")
        self.calls.append(" ".join(words))


class FakeObjectHandlers:
    """The same for objects of other resources."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.calls: list[str] = []

    def object_changed(self, resource: str, new: Any) -> None:
        self.calls.append(f"changed {resource} {new.metadata.name} {new.metadata.resource_version}")
        self.objects[new.metadata.uid] = new

    def object_deleted(self, resource: str, gone: Any) -> None:
        self.calls.append(f"deleted {gone.metadata.name}")
        del self.objects[gone.metadata.uid]

    def object_repaired(self, resource: str, new: Any) -> None:
        self.calls.append(f"repaired {new.metadata.name}")
        self.objects[new.metadata.uid] = new

    def mend(self, resource: str) -> None:
        self.calls.append(f"mend {resource}")

    def known_objects(self, resource: str) -> Mapping[str, Any]:
        return self.objects


def object_dict(name: str, version: int = 1, labels: Any = None, **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    metadata = metadata if labels is None else {**metadata, "labels": labels}
    return {"apiVersion": "example.com/v1", "kind": "Budget", "metadata": metadata, **content}


def pod_dict(name: str, version: int = 1, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec, "status": {}}


def node_dict(name: str, version: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


def object_list(*items: Any, version: int, continue_: str = "") -> Answer:
    metadata = {"resourceVersion": str(version), "continue": continue_}
    return Answer(body={"kind": "List", "metadata": metadata, "items": list(items)})


def watch_line(type_: str, raw: Any) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": type_, "object": raw}).encode()


async def until(condition: Any) -> None:
    """Wait until the condition holds."""
    while not condition():  # noqa: ASYNC110  what is waited for happens in another part's I/O
        await asyncio.sleep(0.001)
