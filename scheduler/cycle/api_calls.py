"""Plugins' calls to the API server and to other servers, each with a name by which its answer is recorded."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

from scheduler.cycle.cycle_events import Call, CallAnswered
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access, ApiWriter, Reader
from scheduler.runtime.event_stream import EventStream

T = TypeVar("T")


class Calls(ABC):
    """Implements framework.handle.ApiWriter and Reader."""

    @abstractmethod
    async def answered(self, call: Call, send: Callable[[ApiWriter, Reader], Awaitable[T]]) -> T:
        """Return the answer to a call, which `send` sends. Raises ApiError."""

    @abstractmethod
    def now(self) -> datetime: ...

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        return await self.answered(_creation(resource, content), lambda writer, _: writer.create(resource, content))

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        call = Call("delete", resource, namespace, name)
        await self.answered(call, lambda writer, _: writer.delete(resource, name, namespace, uid))

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        meta = content.get("metadata", {})
        call = Call("update", resource, meta.get("namespace", ""), meta.get("name", ""), subresource)
        return await self.answered(call, lambda writer, _: writer.update(resource, content, subresource))

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        call = Call("patch", resource, namespace, name, subresource)
        return await self.answered(call, lambda writer, _: writer.patch(resource, name, namespace, patch, subresource))

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return await self.answered(Call("read", "", "", url), lambda _, reader: reader.read(url, seconds, access))

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return await self.answered(_posting(url, body), lambda _, reader: reader.post(url, body, seconds, access))


class PublishedCalls(Calls):
    """Calls that are sent. Their answers are published, since the state of plugins depends on them."""

    def __init__(self, writer: ApiWriter, reader: Reader, stream: EventStream) -> None:
        self._writer, self._reader, self._stream = writer, reader, stream

    def now(self) -> datetime:
        return self._reader.now()

    async def answered(self, call: Call, send: Callable[[ApiWriter, Reader], Awaitable[T]]) -> T:
        try:
            answer = await send(self._writer, self._reader)
        except ApiError as error:
            self._publish(call, error)
            raise
        self._publish(call, answer)
        return answer

    def _publish(self, call: Call, answer: Any) -> None:
        if CallAnswered in self._stream.listeners:
            self._stream.publish(CallAnswered(call, answer))


def _posting(url: str, body: bytes) -> Call:
    """The call that posts `body`, of which no more than a digest is kept."""
    return Call("post", "", "", url, blake2b(body, digest_size=16).hexdigest())


def _creation(resource: str, content: Mapping[str, Any]) -> Call:
    """The call that creates `content`, by what does not change from one time to the next."""
    meta = content.get("metadata", {})
    return Call("create", resource, meta.get("namespace", ""), meta.get("generateName") or meta.get("name", ""))
