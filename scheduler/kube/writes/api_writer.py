"""Plugins' writes: sent to the API server until it is certain whether they took effect.

See `retries.py` for what they share with other calls:

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
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.unstructured import unstructured_hook
from scheduler.api.wording.folding import fold
from scheduler.api.wording.text import to_json
from scheduler.framework.errors import ApiError
from scheduler.framework.nodes.resources import ApiResource, struct_of, written_resource
from scheduler.kube.http.client import AnswerLost, Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import WRITES, GivenUp, Meaning, Outcome, Retries, meaning_of
from scheduler.kube.writes.evictor import delete_options

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 50
"""Concurrent writes; as many reads."""

MERGE_PATCH: Final = "application/merge-patch+json"

_BY_SERVER: Final = frozenset({"resourceVersion", "managedFields", "generation"})
"""Metadata that a write itself changes."""


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
        tries = Retries(WRITES)
        while True:
            outcome = await self._client.attempt(operation, place.path, body)
            if outcome.ok or outcome.status in (404, 409):
                return
            await _again(tries, outcome)

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
        tries, in_doubt = Retries(WRITES), False
        while True:
            outcome = await self._client.attempt(operation, path, body)
            if outcome.status == 409 and in_doubt:
                return await self._settle(get, whole, body, tries, outcome.message)
            if outcome.ok:
                try:
                    return place.decode(outcome.body)
                except Unreadable as error:
                    outcome = AnswerLost(f"the answer cannot be read: {error}")
            in_doubt |= meaning_of(outcome) is Meaning.DOUBT
            await _again(tries, outcome)

    async def _settle(self, get: Operation, place: "_Place", wanted: bytes, tries: Retries, conflict: str) -> Any:
        """Read whether a write whose answer was lost took effect; return the object then. Raises ApiError."""
        log.warning("Reading what became of a write", extra={"path": place.path})
        while True:
            outcome = await self._client.attempt(get, place.path)
            if outcome.ok:
                try:
                    found, is_ours = place.decode(outcome.body), has_all(_parsed(outcome.body), _parsed(wanted))
                except Unreadable as error:
                    outcome = AnswerLost(f"the answer cannot be read: {error}")
                else:
                    if not is_ours:
                        raise ApiError(409, conflict)
                    return found
            await _again(tries, outcome)

    def _operation(self, verb: str, place: "_Place", limit: CallLimit) -> Operation:
        key = verb, place.label
        operation = self._operations.get(key)
        if operation is None:
            content_type = MERGE_PATCH if verb == "PATCH" else None
            operation = self._operations[key] = Operation(verb, place.label, limit, self._timeout, content_type)
        return operation


async def _again(tries: Retries, outcome: Outcome) -> None:
    """Wait for the next try. Raises ApiError if there is none."""
    try:
        await tries.again(outcome)
    except GivenUp as error:
        raise ApiError(error.status, str(error)) from None


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
