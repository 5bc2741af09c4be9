"""A quick client for tests and benchmarks: JSON in and out, many requests at once, every wait bounded.

It shares no code with the scheduler, so that a test does not check the scheduler's client with itself. Objects are
plain dictionaries. A kind is `Pod` or `v1/Pod` for the core group, `apps/v1/Deployment` for others; its path is
looked up in the API server's discovery, so custom resources work.

`AsyncClient` is for coroutines; `tests.controlplane.sync` has the same for plain functions.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson

from tests.controlplane.kubeconfig import Connection

Object = dict[str, Any]
Objects = list[Object]
Event = tuple[str, Object]
"""What a watch reports: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

TIMEOUT = 30.0
"""Seconds for one request with its answer, retries after 429 included."""

DELETE_ALL_TIMEOUT = 300.0
"""The same for a deletion of a whole collection: the answer comes after the last object, 1,000 a second."""


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        """The field's word for it: NotFound, AlreadyExists, Conflict, Forbidden …"""


class ApiUnreachable(Exception):
    """No answer came: the request may have been carried out or not."""


class AsyncClient:
    """For coroutines; an async context manager. `connections` is the most that are open at once."""

    def __init__(self, kubeconfig: Path, connections: int = 64) -> None:
        self._connection = Connection.load(kubeconfig)
        self._connections = connections
        self._paths: dict[str, tuple[str, str, bool]] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        tls: ssl.SSLContext | bool = self._connection.ssl_context()
        token = self._connection.token
        self._session = aiohttp.ClientSession(
            base_url=self._connection.server + "/",
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=tls),
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def create(self, obj: Object, namespace: str | None = None) -> Object:
        """Create an object and return it as stored. Its own namespace wins over `namespace`."""
        meta = obj.get("metadata", {})
        path = await self._path(f"{obj['apiVersion']}/{obj['kind']}", meta.get("namespace") or namespace or "default")
        return as_object(await self.request("POST", path, obj))

    async def create_many(self, objects: Iterable[Object], namespace: str | None = None, concurrency: int = 64) -> int:
        """Create objects, `concurrency` at a time and in about their order; return how many.

        The first error ends it and is raised; what was created until then stays.
        """
        return await self._many((self.create(obj, namespace) for obj in objects), concurrency)

    async def delete_many(
        self, kind: str, names: Iterable[str], namespace: str | None = None, concurrency: int = 64
    ) -> int:
        """Delete objects by name, at once (no grace period); return how many. The first error ends it."""
        return await self._many((self.delete(kind, name, namespace, grace=0) for name in names), concurrency)

    async def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """Read one object."""
        return as_object(await self.request("GET", await self._path(kind, namespace, name)))

    async def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> Objects:
        """Read all objects of a kind, in one namespace or in all, that match the selectors."""
        return (await self.list_with_version(kind, namespace, labels=labels, fields=fields))[0]

    async def list_with_version(
        self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> tuple[Objects, str]:
        """As `list`, with the resource version from which a watch goes on."""
        path = await self._path(kind, namespace)
        answer = as_object(await self.request("GET", path, params=selectors(labels, fields)))
        return answer["items"], answer["metadata"]["resourceVersion"]

    async def patch(
        self, kind: str, name: str, patch: Object | Objects, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """Change an object by a merge patch (a dictionary) or a JSON patch (a list)."""
        path = await self._path(kind, namespace, name, subresource)
        kind_of_patch = "merge-patch" if isinstance(patch, dict) else "json-patch"
        headers = {"Content-Type": f"application/{kind_of_patch}+json"}
        return as_object(await self.request("PATCH", path, patch, headers=headers))

    async def delete(self, kind: str, name: str, namespace: str | None = None, grace: int | None = None) -> None:
        """Delete an object, after `grace` seconds if given (pods; 0: at once, without waiting for a kubelet)."""
        params = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        await self.request("DELETE", await self._path(kind, namespace, name), params=params)

    async def delete_all(self, kind: str, namespace: str | None = None, *, labels: str = "") -> None:
        """Delete all objects of a kind that match, at once, in one namespace (or without, for kinds that have none)."""
        params = {"gracePeriodSeconds": "0", **selectors(labels, "")}
        await self.request("DELETE", await self._path(kind, namespace), params=params, seconds=DELETE_ALL_TIMEOUT)

    async def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        """Bind a pod as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        await self.request("POST", await self._path("Pod", namespace, pod, "binding"), binding)

    async def apply(self, obj: Object) -> Object:
        """Create an object, or change it to this (server-side apply)."""
        meta = obj["metadata"]
        path = await self._path(f"{obj['apiVersion']}/{obj['kind']}", meta.get("namespace"), meta["name"])
        params = {"fieldManager": "tests", "force": "true"}
        headers = {"Content-Type": "application/apply-patch+yaml"}
        return as_object(await self.request("PATCH", path, obj, params=params, headers=headers))

    async def token(self, account: str, namespace: str, hours: int) -> str:
        """Return a new token of a service account."""
        wanted = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": hours * 3600},
        }
        path = await self._path("ServiceAccount", namespace, account, "token")
        token: str = as_object(await self.request("POST", path, wanted))["status"]["token"]
        return token

    async def watch(
        self, kind: str, namespace: str | None = None, *, since: str = "", fields: str = "", seconds: float = TIMEOUT
    ) -> AsyncGenerator[Event, None]:
        """Report changes after the resource version `since` (by default: what exists, then changes).

        Ends after `seconds`. Raises ApiError (410: `since` is too old) or ApiUnreachable.
        """
        params = {"watch": "1", "timeoutSeconds": str(max(1, round(seconds))), **selectors("", fields)}
        if since:
            params["resourceVersion"] = since
        path = await self._path(kind, namespace)
        limits = aiohttp.ClientTimeout(total=seconds + 5, sock_connect=5)
        rest = b""
        try:
            async with self._http().get(path, params=params, timeout=limits) as response:
                if response.status >= 400:
                    raise api_error(response.status, await response.read())
                # Not line by line: aiohttp refuses a line of more than 128 KiB.
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = orjson.loads(line)
                        if event["type"] == "ERROR":
                            raise api_error(event["object"].get("code", 500), orjson.dumps(event["object"]))
                        yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ApiUnreachable(f"watch {path}: {error!r}") from error

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = TIMEOUT,
    ) -> Any:
        """One request, `path` without a leading slash; the decoded answer. Raises ApiError or ApiUnreachable.

        429 means that the server has not looked at it: it is sent again after the time it asks for.
        """
        headers = {"Content-Type": "application/json", **(headers or {})}
        data = None if body is None else orjson.dumps(body)
        deadline = time.monotonic() + seconds
        while True:
            try:
                async with self._http().request(
                    method,
                    path,
                    data=data,
                    params=params,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=max(0.1, deadline - time.monotonic()), sock_connect=5),
                ) as response:
                    content = await response.read()
                    status = response.status
                    retry_after = float(response.headers.get("Retry-After", "1"))
            except (aiohttp.ClientError, TimeoutError) as error:
                raise ApiUnreachable(f"{method} {path}: {error!r}") from error
            if status < 400:
                return orjson.loads(content) if content[:1] in (b"{", b"[") else content.decode()
            if status != 429 or time.monotonic() + retry_after > deadline:
                raise api_error(status, content)
            await asyncio.sleep(retry_after)

    async def _many(self, requests: Iterable[Coroutine[Any, Any, Any]], concurrency: int) -> int:
        done = 0
        waiting = iter(requests)

        async def work() -> None:
            nonlocal done
            for request in waiting:
                await request
                done += 1

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(work())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return done

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is not open: use it in an `async with` statement")
        return self._session

    async def _path(self, kind: str, namespace: str | None, name: str = "", subresource: str = "") -> str:
        version, _, short = kind.rpartition("/")
        version = version or "v1"
        if kind not in self._paths:
            prefix = f"api/{version}" if "/" not in version else f"apis/{version}"
            for resource in (await self.request("GET", prefix))["resources"]:
                if "/" not in resource["name"] and resource["kind"] == short:
                    self._paths[kind] = prefix, resource["name"], resource["namespaced"]
        if kind not in self._paths:
            raise ApiError(404, "NotFound", f"the API server has no kind {kind}")
        prefix, plural, namespaced = self._paths[kind]
        scope = ["namespaces", namespace] if namespaced and namespace else []
        if namespaced and name and not namespace:
            scope = ["namespaces", "default"]
        return "/".join(part for part in (prefix, *scope, plural, name, subresource) if part)


def as_object(answer: Any) -> Object:
    """The answer as an object; the API server answers every request for one with one."""
    if not isinstance(answer, dict):
        raise ApiUnreachable(f"not a JSON object: {str(answer)[:200]}")
    return answer


def api_error(status: int, content: bytes) -> ApiError:
    """The error that an answer stands for: a Status object, or any text."""
    try:
        details = orjson.loads(content)
        return ApiError(status, details.get("reason", ""), details.get("message", ""))
    except (orjson.JSONDecodeError, AttributeError):
        return ApiError(status, "", content.decode(errors="replace")[:500])


def selectors(labels: str, fields: str) -> dict[str, str]:
    """The query parameters of a label and a field selector."""
    given = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in given.items() if value}
