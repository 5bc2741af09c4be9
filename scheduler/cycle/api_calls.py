"""Publishes what the API server answers to plugins: their state depends on it."""

from collections.abc import Awaitable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

from scheduler.cycle.cycle_events import Call, CallAnswered
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access, ApiWriter, Reader
from scheduler.runtime.event_stream import EventStream

T = TypeVar("T")


class ApiCalls:
    """Implements framework.handle.ApiWriter and Reader, by others that do the work."""

    def __init__(self, writer: ApiWriter, reader: Reader, stream: EventStream) -> None:
        self._writer, self._reader, self._stream = writer, reader, stream

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        return await self._published(creation(resource, content), self._writer.create(resource, content))

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        call = Call("delete", resource, namespace, name)
        await self._published(call, self._writer.delete(resource, name, namespace, uid))

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        meta = content.get("metadata", {})
        call = Call("update", resource, meta.get("namespace", ""), meta.get("name", ""), subresource)
        return await self._published(call, self._writer.update(resource, content, subresource))

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        call = Call("patch", resource, namespace, name, subresource)
        return await self._published(call, self._writer.patch(resource, name, namespace, patch, subresource))

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return await self._published(Call("read", "", "", url), self._reader.read(url, seconds, access))

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return await self._published(posting(url, body), self._reader.post(url, body, seconds, access))

    def now(self) -> datetime:
        return self._reader.now()

    async def _published(self, call: Call, work: Awaitable[T]) -> T:
        try:
            answer = await work
        except ApiError as error:
            self._publish(call, error)
            raise
        self._publish(call, answer)
        return answer

    def _publish(self, call: Call, answer: Any) -> None:
        if CallAnswered in self._stream.listeners:
            self._stream.publish(CallAnswered(call, answer))


def posting(url: str, body: bytes) -> Call:
    """The call that posts `body`, of which no more than a digest is kept."""
    return Call("post", "", "", url, blake2b(body, digest_size=16).hexdigest())


def creation(resource: str, content: Mapping[str, Any]) -> Call:
    """The call that creates `content`, by what does not change from one time to the next."""
    meta = content.get("metadata", {})
    return Call("create", resource, meta.get("namespace", ""), meta.get("generateName") or meta.get("name", ""))
