"""What a workload does to the cluster, as requests: where a kind is, and how many requests were ours."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self, cast
from urllib.parse import quote

import orjson

from tests.bench.wire import Answer, Job, Refused, Request, Server, Wire, WireError, send_all

Object = dict[str, Any]

CONNECTIONS: Final = 30
"""scheduler_perf creates pods with as many workers."""

IDLE_SECONDS: Final = 30.0
"""A connection that was not used for so long is replaced: after 90 the API server closes it."""


class Api:
    """An API server. `own` counts its requests, as tests.bench.usage names them.

    A context manager: leaving it closes its connections.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._kinds: dict[str, tuple[str, str, bool]] = {}
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._wires: list[Wire] = []
        self.own: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for wire in self._wires:
            wire.close()

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> tuple[str, str]:
        """The path of objects and what to call them: `("/api/v1/namespaces/a/pods/b/status", "pods/status")`.

        `kind` is `v1/Pod`. Raises KeyError if the API server has no such kind.
        """
        prefix, plural, namespaced = self._kind(kind)
        scope = ["namespaces", namespace] if namespaced and namespace else []
        path = "/".join(part for part in (prefix, *scope, plural, quote(name), subresource) if part)
        return path, "/".join(filter(None, (plural, subresource)))

    def is_namespaced(self, kind: str) -> bool:
        """Whether its objects are in namespaces."""
        return self._kind(kind)[2]

    def bulk(self, jobs: Sequence[Job], done: Callable[[int, float], None]) -> None:
        """Carry out many jobs at once; `done` is told the number of each and when its last request was sent.

        Raises Refused or WireError.
        """
        self._count(request for job in jobs for request in job)
        send_all(self._server, jobs, CONNECTIONS, done)

    def send(self, request: Request) -> Answer:
        """One request; the answer whatever it is. From any thread. Raises WireError."""
        self._count([request])
        wire, used = getattr(self._mine, "wire", (None, 0.0))
        now = time.monotonic()
        if wire is None or now > used + IDLE_SECONDS:
            wire = self._server.connect()
            self._wires.append(wire)
        self._mine.wire = (wire, now)
        try:
            return cast("Wire", wire).request(request)
        except WireError:
            self._mine.wire = (None, 0.0)
            raise

    def _kind(self, kind: str) -> tuple[str, str, bool]:
        if kind not in self._kinds:
            version = kind.rpartition("/")[0]
            prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
            for resource in fetch(self, prefix, "")["resources"]:
                if "/" not in resource["name"]:
                    key = f"{version}/{resource['kind']}"
                    self._kinds[key] = prefix, resource["name"], resource["namespaced"]
        return self._kinds[kind]

    def _count(self, requests: Iterable[Request]) -> None:
        with self._lock:
            for request in requests:
                lists = {"GET": "LIST", "DELETE": "DELETECOLLECTION" if request.whole else "DELETE"}
                self.own[f"{lists.get(request.method, request.method)} {request.what}"] += 1


def fetch(api: Api, path: str, what: str) -> Object:
    """Read an object or a list. Raises Refused or WireError."""
    request = Request("GET", path, what)
    answer = api.send(request)
    if not answer.ok:
        raise Refused(request, answer)
    found: Object = orjson.loads(answer.body)
    return found


def create(api: Api, obj: Object, namespace: str = "", *, strict: bool = False) -> Request:
    """The request that creates an object. With `strict`, fields that do not exist are errors."""
    path, what = api.path(kind_of(obj), namespace)
    validation = "Strict" if strict else "Ignore"
    return Request("POST", f"{path}?fieldValidation={validation}", what, orjson.dumps(obj))


def merge(api: Api, obj: Object, patch: Object, namespace: str = "", subresource: str = "") -> Request:
    """The request that merges a patch into an object."""
    path, what = api.path(kind_of(obj), namespace, obj["metadata"]["name"], subresource)
    return Request("PATCH", path, what, orjson.dumps(patch), "application/merge-patch+json")


def replace(api: Api, obj: Object, namespace: str = "", subresource: str = "") -> Request:
    """The request that writes an object over the one that is there."""
    path, what = api.path(kind_of(obj), namespace, obj["metadata"]["name"], subresource)
    return Request("PUT", f"{path}?fieldValidation=Strict", what, orjson.dumps(obj))


def kind_of(obj: Object) -> str:
    return f"{obj['apiVersion']}/{obj['kind']}"


def must(api: Api, request: Request) -> Answer:
    """Send a request that has to succeed. Raises Refused or WireError."""
    answer = api.send(request)
    if not answer.ok:
        raise Refused(request, answer)
    return answer
