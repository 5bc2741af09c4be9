"""Whether the API server serves a resource, such as a custom one, or one of a newer release."""

from typing import Final

import msgspec

from scheduler.api.decoding import Decoder
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation

TIMEOUT: Final = 10.0


class Served:
    """Asks about one resource. kopf will find the same: it reads the same two documents."""

    def __init__(self, client: Client, resource: ApiResource) -> None:
        self._client = client
        self._resource = resource
        self._operation = Operation("GET", "discovery", CallLimit(1), TIMEOUT)

    async def ask(self) -> bool:
        """Return whether it is served and can be watched. Raises ClusterError without an answer."""
        resource = self._resource
        version = await self._client.call(self._operation, resource.version_path)
        if version.status == 404:
            return False
        served = version.read(_VERSION, resource.version_path).resources
        names = {resource.name for resource in served if {"list", "watch"} <= set(resource.verbs)}
        if resource.plural not in names:
            return False
        # kopf begins with the list of groups, where a new group appears a moment late.
        if not resource.group:
            return True
        found = await self._client.call(self._operation, "/apis")
        return resource.group in {group.name for group in found.read(_GROUPS, "/apis").groups}


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
