"""Plugins' reads of objects that are not watched, such as metrics: in a simulation, the objects of its files."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access
from scheduler.framework.nodes.resources import ApiResource
from scheduler.simulate.other_objects import OtherObjects


class SimulatedReader:
    """Implements framework.handle.Reader: `/apis/<group>/<version>/<plural>` is a list of its objects in the files."""

    def __init__(self, others: OtherObjects) -> None:
        self._others = others
        self._newest = others.newest()
        self._read: dict[ApiResource, list[Mapping[str, Any]]] = {}

    def now(self) -> datetime:
        """Return when the newest data were measured, so that old files give the same answers as when they were new."""
        return self._newest or datetime.now(UTC)

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Raises ApiError for what no file has."""
        parts = url.split("/")
        if len(parts) != 5 or parts[:2] != ["", "apis"]:
            raise ApiError(0, f"a simulation asks nobody, so not {url} either")
        _, _, group, version, plural = parts
        resource = ApiResource(group, version, plural)
        if resource not in self._read:
            self._read[resource] = self._others.taken(resource)
        if not self._read[resource]:
            raise ApiError(404, f"the files have no {plural} of {group}/{version}")
        return msgspec.json.encode({"items": self._read[resource]})

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Raises ApiError: a simulation changes nothing."""
        raise ApiError(0, f"a simulation posts nothing, so nothing to {url} either")
