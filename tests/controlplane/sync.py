"""The client of `tests.controlplane.client` for plain functions: its requests run in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.controlplane.client import AsyncClient, Object, Objects

T = TypeVar("T")


class Client:
    """`AsyncClient`, method for method, without `await`. A context manager; may be used from several threads."""

    def __init__(self, kubeconfig: Path, connections: int = 64) -> None:
        self._api = AsyncClient(kubeconfig, connections)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api-client", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._api.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._api.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the client's thread and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def create(self, obj: Object, namespace: str | None = None) -> Object:
        """Create an object and return it as stored."""
        return self.run(self._api.create(obj, namespace))

    def create_many(self, objects: Iterable[Object], namespace: str | None = None, concurrency: int = 64) -> int:
        """Create objects, `concurrency` at a time; return how many."""
        return self.run(self._api.create_many(objects, namespace, concurrency))

    def delete_many(self, kind: str, names: Iterable[str], namespace: str | None = None, concurrency: int = 64) -> int:
        """Delete objects by name, at once; return how many."""
        return self.run(self._api.delete_many(kind, names, namespace, concurrency))

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """Read one object."""
        return self.run(self._api.get(kind, name, namespace))

    def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> Objects:
        """Read all objects of a kind that match the selectors."""
        return self.run(self._api.list(kind, namespace, labels=labels, fields=fields))

    def patch(
        self, kind: str, name: str, patch: Object | Objects, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """Change an object by a merge patch (a dictionary) or a JSON patch (a list)."""
        return self.run(self._api.patch(kind, name, patch, namespace, subresource))

    def delete(self, kind: str, name: str, namespace: str | None = None, grace: int | None = None) -> None:
        """Delete an object, after `grace` seconds if given."""
        self.run(self._api.delete(kind, name, namespace, grace))

    def delete_all(self, kind: str, namespace: str | None = None, *, labels: str = "") -> None:
        """Delete all objects of a kind that match, at once."""
        self.run(self._api.delete_all(kind, namespace, labels=labels))

    def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        """Bind a pod as a scheduler does."""
        self.run(self._api.bind(pod, node, namespace))

    def apply(self, obj: Object) -> Object:
        """Create an object, or change it to this."""
        return self.run(self._api.apply(obj))

    def token(self, account: str, namespace: str, hours: int) -> str:
        """Return a new token of a service account."""
        return self.run(self._api.token(account, namespace, hours))
