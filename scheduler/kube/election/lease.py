"""A coordination.k8s.io/v1 Lease: its holder, and the bodies of our writes to it.

The object is kept as it came, so that fields that we do not know go back unchanged; only what we set is replaced.
Anyone who may edit the Lease may write anything into it that the API server accepts: nothing in this module raises
for that.

Rule: client-go's tools/leaderelection/resourcelock/leaselock.go at v0.36.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Self

import orjson

RELEASED_SECONDS: Final = 1
"""`leaseDurationSeconds` of a Lease that its holder gave up, as in client-go."""

MAX_DURATION: Final = 3600.0
"""Seconds; a longer `leaseDurationSeconds` of another holder is taken for this: no leader renews so seldom, and a
mistyped number would keep all others from taking over."""

_MAX_TRANSITIONS: Final = 2**31 - 1
"""The largest int32."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One version of the object."""

    body: dict[str, Any]

    @classmethod
    def decode(cls, data: bytes | bytearray) -> Self:
        """Raises ValueError if this is no Lease with a resource version."""
        return cls.of(orjson.loads(data))

    @classmethod
    def of(cls, body: object) -> Self:
        """Raises ValueError, as `decode`."""
        lease = cls(body if isinstance(body, dict) else {})
        if not lease.version:
            raise ValueError("not a Lease: it has no metadata.resourceVersion")
        return lease

    @property
    def spec(self) -> dict[str, Any]:
        return _mapping(self.body.get("spec"))

    @property
    def metadata(self) -> dict[str, Any]:
        return _mapping(self.body.get("metadata"))

    @property
    def version(self) -> str:
        return _text(self.metadata.get("resourceVersion"))

    @property
    def uid(self) -> str:
        return _text(self.metadata.get("uid"))

    @property
    def holder(self) -> str:
        """Empty without a holder."""
        return _text(self.spec.get("holderIdentity"))

    @property
    def duration(self) -> float:
        """Seconds after the last renewal for which it is valid; 0 if that is missing."""
        seconds = self.spec.get("leaseDurationSeconds")
        return min(float(seconds), MAX_DURATION) if isinstance(seconds, int) and seconds > 0 else 0.0

    @property
    def is_released(self) -> bool:
        """Whether its last holder gave it up. Not whenever the holder is empty: that may be a user's edit, of which
        the holder does not know yet."""
        return not self.holder and self.spec.get("leaseDurationSeconds") == RELEASED_SECONDS

    @property
    def transitions(self) -> int:
        """How often the holder has changed; 0 if the field does not make sense."""
        number = self.spec.get("leaseTransitions")
        return number if isinstance(number, int) and 0 <= number < _MAX_TRANSITIONS else 0

    @property
    def term(self) -> object:
        """Equal until it is renewed, or its holder changes; labels and the like do not matter."""
        return self.uid, self.spec

    @property
    def annotations(self) -> dict[str, Any]:
        return _mapping(self.metadata.get("annotations"))

    def with_spec(self, annotations: Mapping[str, str] = MappingProxyType({}), **changes: object) -> bytes:
        """The body of an update of this version: the API server refuses it if there is a newer one.

        `annotations` are added to those that it has.
        """
        # Without managedFields the API server keeps those that it has.
        metadata = {key: value for key, value in self.metadata.items() if key != "managedFields"}
        if annotations:
            metadata["annotations"] = {**self.annotations, **annotations}
        return orjson.dumps({**self.body, "metadata": metadata, "spec": {**self.spec, **changes}})


def new_lease(name: str, namespace: str, annotations: Mapping[str, str], **spec: object) -> bytes:
    """The body of a creation."""
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return orjson.dumps({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def micro_time(seconds: float) -> str:
    """Seconds since 1970 as a MicroTime: `2026-01-31T12:00:00.000000Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
