"""Plugins' writes: sent to the API server until it is certain whether they took effect.

`Writing` decides what to do next, without I/O (see `retries.py` for what it shares with others):

    SEND ──2xx──────────────────────────────────────────► done
      │ ──not sent, no answer, 401, 429, 5xx──wait──► SEND     failed after too many tries
      │ ──409 after a lost answer─────────────────► READ       the conflict may be with our own change
      └──other 4xx──────────────────────────────────────► failed
    READ ──the object has all that was written──────────► done
      │ ──no answer, 401, 429, 5xx──wait──► READ               failed after too many tries
      └──anything else, or no object────────────────────► failed

A write with a resource version takes effect once: a repetition is answered with 409. One without is carried out again,
so doing it twice must be harmless. A creation is repeated under the same name: 409 too, and the read shows whose it is.
A deletion names the UID, so 404 and 409 say that the object is gone:

    DELETE ──2xx, 404, 409──► done
      │ ──no answer, 401, 429, 5xx──wait──► DELETE     failed after too many tries
      └──other 4xx────────────────────────► failed
"""

import logging
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.unstructured import unstructured_hook
from scheduler.api.wording.folding import fold
from scheduler.api.wording.text import to_json
from scheduler.framework.errors import ApiError
from scheduler.framework.nodes.resources import ApiResource, struct_of, written_resource
from scheduler.kube.http.client import AnswerLost, Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import WRITES, Failed, Meaning, Outcome, Read, Retries, meaning_of, pause
from scheduler.kube.writes.evictor import delete_options

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
    """The write took effect."""

    found: Any


Step: TypeAlias = Send | Read | Done | Failed


class Writing:
    """One write from the first call to certainty. No I/O: outcomes in, steps out."""

    def __init__(
        self, wanted: bytes, decode: Callable[[bytes], Any], chance: Callable[[], float] = random.random
    ) -> None:
        """`wanted`: JSON that the object contains once the write took effect; null for a removed field.

        `decode` makes an object of an answer. It raises Unreadable.
        """
        self._wanted = wanted
        self._decode = decode
        self._retries = Retries(WRITES, chance)
        self._in_doubt = False
        """Whether a call may have been carried out without an answer that says so."""
        self._conflict = ""

    def sent(self, outcome: Outcome) -> Step:
        """Return the next step after a write."""
        if outcome.ok:
            try:
                return Done(self._decode(outcome.body))
            except Unreadable as error:
                outcome = AnswerLost(f"the answer cannot be read: {error}")
        elif outcome.status == 409 and self._in_doubt:
            self._conflict = outcome.message
            return Read()
        if meaning_of(outcome) is Meaning.DOUBT:
            self._in_doubt = True
        return self._retries.again(Send, outcome)

    def read(self, outcome: Outcome) -> Step:
        """Return the next step after a read."""
        if outcome.ok:
            try:
                found = self._decode(outcome.body)
                is_ours = has_all(_parsed(outcome.body), _parsed(self._wanted))
                return Done(found) if is_ours else Failed(self._conflict, 409)
            except Unreadable as error:
                outcome = AnswerLost(f"the answer cannot be read: {error}")
        return self._retries.again(Read, outcome)


def has_all(found: Any, wanted: Any) -> bool:
    """Return whether an object contains all that a write wanted."""
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


def deleted(retries: Retries, outcome: Outcome) -> Step:
    """Return the next step after a deletion that names the UID."""
    if outcome.ok or outcome.status in (404, 409):
        return Done(None)
    return retries.again(Send, outcome)


class PluginWriter:
    """framework.handle.ApiWriter on the API server."""

    def __init__(self, client: Client, timeout: float = 10.0) -> None:
        """`timeout`: seconds for one call, after which its answer counts as lost."""
        self._client = client
        self._timeout = timeout
        # Writes in doubt must not wait for new ones.
        self._writes, self._reads = CallLimit(MAX_IN_FLIGHT), CallLimit(MAX_IN_FLIGHT)
        self._operations: dict[tuple[str, str], Operation] = {}

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        """Create an object under the name that `content` has; return it. Raises ApiError."""
        metadata = content["metadata"]
        place = _Place(resource, metadata["name"], metadata.get("namespace", ""), "")
        return await self._write(self._operation("POST", place, self._writes), place, content)

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        """Delete the object of that name if it has this UID. Raises ApiError."""
        place = _Place(resource, name, namespace, "")
        operation = self._operation("DELETE", place, self._writes)
        body = delete_options(uid)
        retries = Retries(WRITES)
        step: Step = Send()
        while isinstance(step, Send):
            await pause(step.wait)
            step = deleted(retries, await self._client.attempt(operation, place.path, body))
        if isinstance(step, Failed):
            raise ApiError(step.status, step.because)

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        """Replace the object of that name by `content`; return the result. Raises ApiError."""
        metadata = content["metadata"]
        place = _Place(resource, metadata["name"], metadata.get("namespace", ""), subresource)
        return await self._write(self._operation("PUT", place, self._writes), place, content)

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        """Apply a JSON merge patch; return the result. Raises ApiError."""
        place = _Place(resource, name, namespace, subresource)
        return await self._write(self._operation("PATCH", place, self._writes), place, patch)

    async def _write(self, operation: Operation, place: "_Place", wanted: Mapping[str, Any]) -> Any:
        whole = msgspec.structs.replace(place, subresource="")
        get = self._operation("GET", whole, self._reads)
        path = place.collection if operation.verb == "POST" else place.path
        body = to_json(wanted)
        writing = Writing(body, place.decode)
        step: Step = Send()
        while True:
            match step:
                case Send(wait=wait):
                    await pause(wait)
                    step = writing.sent(await self._client.attempt(operation, path, body))
                case Read(wait=wait):
                    await pause(wait)
                    log.warning("Reading what became of a write", extra={"path": path})
                    step = writing.read(await self._client.attempt(get, whole.path))
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

    kind: str
    """Its resource as in events."""
    name: str
    namespace: str
    subresource: str

    @property
    def resource(self) -> ApiResource:
        return written_resource(self.kind)

    def decode(self, body: bytes) -> Any:
        """Read the object from an answer. Raises Unreadable."""
        return _decoder_of(self.kind).decode(body)

    @property
    def label(self) -> str:
        """The resource in metrics."""
        return f"{self.resource.name}/{self.subresource}" if self.subresource else self.resource.name

    @property
    def collection(self) -> str:
        namespace = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.resource.version_path}{namespace}/{self.resource.plural}"

    @property
    def path(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        return f"{self.collection}/{self.name}{part}"


@cache
def _decoder_of(kind: str) -> Decoder[Any]:
    return Decoder(struct_of(kind), unstructured_hook)


def _parsed(body: bytes) -> Any:
    """Whatever it is, with few levels, so that two can be compared. Raises Unreadable."""
    return _anything.decode(fold(body))


_anything: Decoder[Any] = Decoder(Any)
