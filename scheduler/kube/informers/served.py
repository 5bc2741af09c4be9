"""Whether the API server serves a resource, such as a custom one, or one of a newer release."""

from typing import Final, TypeVar

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.http.client import BadStatus, Client, Reply
from scheduler.kube.http.operations import CallLimit, Operation

TIMEOUT: Final = 10.0

T = TypeVar("T")


class Served:
    """Asks about one resource. kopf will find the same: it reads the same two documents."""

    def __init__(self, client: Client, resource: ApiResource) -> None:
        self._client = client
        self._resource = resource
        self._operation = Operation("GET", "discovery", CallLimit(1), TIMEOUT)

    async def ask(self) -> bool:
        """Return whether it is served and can be watched. Raises ClusterError without an answer."""
        resource = self._resource
        version = await self._get(resource.version_path)
        if version.status == 404:
            return False
        served = _decode(version, _VERSION).resources
        names = {resource.name for resource in served if {"list", "watch"} <= set(resource.verbs)}
        if resource.plural not in names:
            return False
        # kopf begins with the list of groups, where a new group appears a moment late.
        return not resource.group or resource.group in {
            group.name for group in _decode(await self._get("/apis"), _GROUPS).groups
        }

    async def _get(self, path: str) -> Reply:
        reply = await self._client.call(self._operation, path)
        if not reply.ok and reply.status != 404:
            raise BadStatus(path, reply)
        return reply


class _Resource(msgspec.Struct, gc=False):
    name: str = ""
    verbs: tuple[str, ...] = ()


class _Resources(msgspec.Struct, gc=False):
    resources: tuple[_Resource, ...] = ()


class _Group(msgspec.Struct, gc=False):
    name: str = ""


class _Groups(msgspec.Struct, gc=False):
    groups: tuple[_Group, ...] = ()


_VERSION: Final[Decoder[_Resources]] = Decoder(_Resources)
_GROUPS: Final[Decoder[_Groups]] = Decoder(_Groups)


def _decode(reply: Reply, decoder: Decoder[T]) -> T:
    try:
        return decoder.decode(reply.body)
    except Unreadable as error:
        raise ClusterError(f"what the API server serves cannot be read: {error}") from error
