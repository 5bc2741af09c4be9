"""What a simulated API server keeps: objects made from their number when somebody asks, and what changed of them.

Of a hundred thousand nodes only numbers and versions are kept, so that the server needs little memory beside the
scheduler that is measured.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import orjson

from scheduler.framework.nodes.resources import ApiResource
from tests.sizing.objects import CREATED, Object, uid

HISTORY: Final = 10_000
"""Events of a resource that a watch may ask for again; the API server forgets older ones, too."""

MANAGED: Final = {
    manager: {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            f"f:{part}": {f"f:{field}-{number}": {".": {}, "f:value": {}} for number in range(5) for field in "abcd"}
            for part in parts
        },
    }
    for manager, parts in (("kubelet", ("status", "metadata")), ("kube-controller-manager", ("spec", "metadata")))
}
"""Who wrote which field: a third of an object, which schedulers skip."""


class Versions:
    """The resource versions of a whole API server: each change has a larger one."""

    def __init__(self, first: int) -> None:
        self._count = count(first)
        self.newest = next(self._count)

    def next(self) -> int:
        self.newest = next(self._count)
        return self.newest


class Collection:
    """The objects of one resource: those of a `make` function, and those that were written since."""

    def __init__(
        self,
        resource: ApiResource,
        kind: str,
        versions: Versions,
        size: int = 0,
        make: Callable[[int], Object] | None = None,
    ) -> None:
        self.resource = resource
        self.kind = kind
        self._versions = versions
        self._size = size
        self._make = make
        self._changed: dict[int, int] = {}
        """Number of a made object that was updated → its version."""
        self.written: dict[str, Object] = {}
        """NAMESPACE/NAME → an object that came by a request."""
        self._history: deque[tuple[int, bytes]] = deque(maxlen=HISTORY)
        self._forgotten = 0
        """The newest version of what the history has lost."""
        self.watchers: set[asyncio.Event] = set()

    def __len__(self) -> int:
        return self._size + len(self.written)

    def made(self, number: int) -> Object:
        """One of the objects of the beginning, as it is now."""
        assert self._make is not None
        version = self._changed.get(number, number + 1)
        return stored(self._make(number), uid(self.kind, number), version)

    def beat(self, number: int, change: Callable[[Object], None]) -> None:
        """Update one of them: it has what `change` does to it in the event only, and a new version for good."""
        self._changed[number] = self._versions.next()
        obj = self.made(number)
        change(obj)
        self._tell("MODIFIED", self._changed[number], obj)

    def write(self, key: str, obj: Object) -> Object:
        """Create an object, or replace it, with a new version."""
        version = self._versions.next()
        type_ = "MODIFIED" if key in self.written else "ADDED"
        meta = obj["metadata"]
        new = stored(obj, meta.get("uid") or uid(self.kind, version), version)
        self.written[key] = new
        self._tell(type_, version, new)
        return new

    def page(self, start: int, limit: int, *, pending_only: bool = False) -> tuple[list[bytes], int]:
        """JSON of some objects, and where the next page begins; 0: there is none."""
        if pending_only:
            waiting = [each for each in self.written.values() if not each["spec"].get("nodeName")]
            return [orjson.dumps(each) for each in waiting[:limit]], 0
        total = len(self)
        stop = min(start + limit, total) if limit else total
        items = [orjson.dumps(self.made(number)) for number in range(start, min(stop, self._size))]
        if stop > self._size:
            written = list(self.written.values())
            items += [orjson.dumps(each) for each in written[max(0, start - self._size) : stop - self._size]]
        return items, stop if stop < total else 0

    def since(self, version: int) -> Iterator[tuple[int, bytes]] | None:
        """The events after a version; None if they are forgotten."""
        if version < self._forgotten:
            return None
        newer = []
        for each in reversed(self._history):
            if each[0] <= version:
                break
            newer.append(each)
        return reversed(newer)

    def _tell(self, type_: str, version: int, obj: Object) -> None:
        if len(self._history) == HISTORY:
            self._forgotten = self._history[0][0]
        self._history.append((version, orjson.dumps({"type": type_, "object": obj}) + b"\n"))
        for watcher in self.watchers:
            watcher.set()


def stored(obj: Object, its_uid: str, version: int) -> Object:
    """The object with what the API server adds."""
    metadata: dict[str, Any] = {
        **obj["metadata"],
        "uid": its_uid,
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
        "managedFields": list(MANAGED.values()),
    }
    return {**obj, "metadata": metadata}
