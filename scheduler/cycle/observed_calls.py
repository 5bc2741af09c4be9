"""What plugins ask of the API server, shown to an observer where there is one: their state depends on the answers."""

from collections.abc import Awaitable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

from scheduler.cycle.observer import Call, Observer
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access, ApiWriter, Reader

T = TypeVar("T")


class ObservedCalls:
    """Implements framework.handle.ApiWriter and Reader, by others that do the work."""

    def __init__(self, writer: ApiWriter, reader: Reader) -> None:
        self._writer, self._reader = writer, reader
        self.observer: Observer | None = None

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        return await self._observed(creation(resource, content), self._writer.create(resource, content))

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        call = Call("delete", resource, namespace, name)
        await self._observed(call, self._writer.delete(resource, name, namespace, uid))

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        meta = content.get("metadata", {})
        call = Call("update", resource, meta.get("namespace", ""), meta.get("name", ""), subresource)
        return await self._observed(call, self._writer.update(resource, content, subresource))

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        call = Call("patch", resource, namespace, name, subresource)
        return await self._observed(call, self._writer.patch(resource, name, namespace, patch, subresource))

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return await self._observed(Call("read", "", "", url), self._reader.read(url, seconds, access))

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return await self._observed(posting(url, body), self._reader.post(url, body, seconds, access))

    def now(self) -> datetime:
        return self._reader.now()

    async def _observed(self, call: Call, work: Awaitable[T]) -> T:
        try:
            answer = await work
        except ApiError as error:
            if self.observer is not None:
                self.observer.answered(call, error)
            raise
        if self.observer is not None:
            self.observer.answered(call, answer)
        return answer


def posting(url: str, body: bytes) -> Call:
    """The call that posts `body`, of which no more than a digest is kept."""
    return Call("post", "", "", url, blake2b(body, digest_size=16).hexdigest())


def creation(resource: str, content: Mapping[str, Any]) -> Call:
    """The call that creates `content`, by what does not change from one time to the next."""
    meta = content.get("metadata", {})
    return Call("create", resource, meta.get("namespace", ""), meta.get("generateName") or meta.get("name", ""))
