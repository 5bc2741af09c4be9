"""What plugins write: sent to the API server until it is certain whether it took effect.

`Writing` decides what to do next, without I/O (see `retries.py` for what it shares with others):

    SEND ──2xx──────────────────────────────────────────► done
      │ ──not sent, no answer, 401, 429, 5xx──wait──► SEND     failed after too many tries
      │ ──409 after a lost answer─────────────────► READ       the conflict may be with our own change
      └──other 4xx──────────────────────────────────────► failed
    READ ──the object has all that was written──────────► done
      │ ──no answer, 401, 429, 5xx──wait──► READ               failed after too many tries
      └──anything else, or no object────────────────────► failed

A write with a resource version takes effect once: a repetition is answered with 409. One without is carried out again,
so doing it twice must be harmless.
"""

import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.text import to_json
from scheduler.framework.errors import ApiError
from scheduler.framework.resources import ApiResource, written_resource
from scheduler.kube.client import AnswerLost, CallLimit, Client, Operation
from scheduler.kube.retries import WRITES, Failed, Meaning, Outcome, Read, Retries, meaning_of, pause

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 50
"""Concurrent writes; as many reads."""

MERGE_PATCH: Final = "application/merge-patch+json"

_BY_SERVER: Final = frozenset({"resourceVersion", "managedFields", "generation"})
"""Metadata that a write itself changes."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Write, after `wait` seconds."""

    wait: float = 0.0


class Done(msgspec.Struct, frozen=True):
    """It took effect."""

    found: dict[str, Any]


Step: TypeAlias = Send | Read | Done | Failed


class Writing:
    """One write from the first call to certainty. No I/O: outcomes in, steps out."""

    def __init__(self, wanted: Mapping[str, Any], chance: Callable[[], float] = random.random) -> None:
        """`wanted`: what the object contains once the write took effect; null for a removed field."""
        self._wanted = wanted
        self._retries = Retries(WRITES, chance)
        self._in_doubt = False
        """Whether a call may have been carried out without an answer that says so."""
        self._conflict = ""

    def sent(self, outcome: Outcome) -> Step:
        """What to do after a write."""
        if outcome.ok:
            found = _object_in(outcome.body)
            if found is not None:
                return Done(found)
            outcome = AnswerLost("the answer cannot be read")
        elif outcome.status == 409 and self._in_doubt:
            self._conflict = outcome.message
            return Read()
        if meaning_of(outcome) is Meaning.DOUBT:
            self._in_doubt = True
        return self._retries.again(Send, outcome)

    def read(self, outcome: Outcome) -> Step:
        """What to do after a read."""
        if outcome.ok:
            found = _object_in(outcome.body)
            if found is not None:
                return Done(found) if has_all(found, self._wanted) else Failed(self._conflict, 409)
            outcome = AnswerLost("the answer cannot be read")
        return self._retries.again(Read, outcome)


def has_all(found: Any, wanted: Any) -> bool:
    """Whether an object contains all that a write wanted."""
    if not isinstance(wanted, Mapping):
        return bool(found == wanted)
    if not isinstance(found, Mapping):
        return False
    return all(
        has_all(found.get(key), value)
        if key != "metadata" or not isinstance(value, Mapping)
        else has_all(found.get(key), {name: entry for name, entry in value.items() if name not in _BY_SERVER})
        for key, value in wanted.items()
    )


class PluginWriter:
    """framework.handle.ApiWriter on the API server."""

    def __init__(self, client: Client, timeout: float = 10.0) -> None:
        """`timeout`: seconds for one call, after which its answer counts as lost."""
        self._client = client
        self._timeout = timeout
        # Writes in doubt must not wait for new ones.
        self._writes, self._reads = CallLimit(MAX_IN_FLIGHT), CallLimit(MAX_IN_FLIGHT)
        self._operations: dict[tuple[str, str], Operation] = {}

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> dict[str, Any]:
        """Replace the object of that name by `content`; return the result. Raises ApiError."""
        metadata = content["metadata"]
        place = _Place(written_resource(resource), metadata["name"], metadata.get("namespace", ""), subresource)
        return await self._write(self._operation("PUT", place, self._writes), place, content)

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> dict[str, Any]:
        """Apply a JSON merge patch; return the result. Raises ApiError."""
        place = _Place(written_resource(resource), name, namespace, subresource)
        return await self._write(self._operation("PATCH", place, self._writes), place, patch)

    async def _write(self, operation: Operation, place: "_Place", wanted: Mapping[str, Any]) -> dict[str, Any]:
        get = self._operation("GET", place, self._reads)
        body = to_json(wanted)
        writing = Writing(wanted)
        step: Step = Send()
        while True:
            match step:
                case Send(wait=wait):
                    await pause(wait)
                    step = writing.sent(await self._client.attempt(operation, place.path, body))
                case Read(wait=wait):
                    await pause(wait)
                    log.warning("Reading what became of a write", extra={"path": place.path})
                    step = writing.read(await self._client.attempt(get, place.path))
                case Failed(status=status, because=because):
                    raise ApiError(status, because)
                case Done(found=found):
                    return found

    def _operation(self, verb: str, place: "_Place", limit: CallLimit) -> Operation:
        key = verb, place.label
        operation = self._operations.get(key)
        if operation is None:
            content_type = MERGE_PATCH if verb == "PATCH" else None
            operation = self._operations[key] = Operation(verb, place.label, limit, self._timeout, content_type)
        return operation


class _Place(msgspec.Struct, frozen=True, gc=False):
    """An object, or a part of it, at the API server."""

    resource: ApiResource
    name: str
    namespace: str
    subresource: str

    @property
    def label(self) -> str:
        """The resource in metrics."""
        return f"{self.resource.name}/{self.subresource}" if self.subresource else self.resource.name

    @property
    def path(self) -> str:
        namespace = f"/namespaces/{self.namespace}" if self.namespace else ""
        part = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource.version_path}{namespace}/{self.resource.plural}/{self.name}{part}"


def _object_in(body: bytes) -> dict[str, Any] | None:
    try:
        found = _any_decoder.decode(body)
    except Unreadable:
        return None
    return found if isinstance(found, dict) else None


_any_decoder: Decoder[Any] = Decoder(Any)
