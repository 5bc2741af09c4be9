"""Whether the API server serves a resource: a custom one whose definition may come later, or one of a newer release."""

from typing import Final, TypeVar

import msgspec

from scheduler.framework.errors import ClusterError
from scheduler.framework.resources import ApiResource
from scheduler.kube.client import BadStatus, CallLimit, Client, Operation, Reply

TIMEOUT: Final = 10.0

T = TypeVar("T")


class Served:
    """Asks for one resource. The answer is what kopf will find, since it looks at the same two documents."""

    def __init__(self, client: Client, resource: ApiResource) -> None:
        self._client = client
        self._resource = resource
        self._operation = Operation("GET", "discovery", CallLimit(1), TIMEOUT)

    async def ask(self) -> bool:
        """Say whether it is served, so that it can be watched. Raises ClusterError if nobody says."""
        resource = self._resource
        version = await self._get(resource.version_path)
        if version.status == 404:
            return False
        names = {each.name for each in _decode(version, _VERSION).resources if {"list", "watch"} <= set(each.verbs)}
        if resource.plural not in names:
            return False
        # A new group is in the list of groups a moment later than it is there, and kopf begins with that list.
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


_VERSION: Final = msgspec.json.Decoder(_Resources)
_GROUPS: Final = msgspec.json.Decoder(_Groups)


def _decode(reply: Reply, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(reply.body)
    except msgspec.DecodeError as error:
        raise ClusterError(f"what the API server serves cannot be read: {error}") from error
