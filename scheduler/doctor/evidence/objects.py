"""The parts of Kubernetes objects that the doctor looks at. Lists and objects may be missing, or null."""

from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from scheduler.api.wording.text import shortened

MAX_TEXT = 300
"""Characters of others' texts."""

Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class _Read(msgspec.Struct, frozen=True, rename="camel"):
    """Base of all."""


class ManagedFields(_Read, frozen=True):
    time: Time | None = None


class Meta(_Read, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    owner_references: tuple[dict[str, Any], ...] | None = None
    managed_fields: tuple[ManagedFields, ...] | None = None

    def label(self, name: str) -> str:
        return (self.labels or {}).get(name, "")


class Condition(_Read, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class Ended(_Read, frozen=True):
    reason: str | None = None
    message: str | None = None

    @property
    def said(self) -> str:
        text = " ".join((self.message or "").split())
        return shortened(": ".join(filter(None, (self.reason, text))), MAX_TEXT)


class ContainerState(_Read, frozen=True):
    waiting: Ended | None = None
    terminated: Ended | None = None


class ContainerStatus(_Read, frozen=True):
    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    restart_count: int = 0


class Container(_Read, frozen=True):
    image: str = ""


class PodSpec(_Read, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    containers: tuple[Container, ...] | None = None


class PodStatus(_Read, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(_Read, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def __str__(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.status.conditions or () if each.type == kind), None)

    @property
    def is_ready(self) -> bool:
        ready = self.condition("Ready")
        return ready is not None and ready.status == "True" and self.metadata.deletion_timestamp is None


class LeaseSpec(_Read, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: Time | None = None
    renew_time: Time | None = None


class Lease(_Read, frozen=True):
    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()


class ConfigMap(_Read, frozen=True):
    data: dict[str, str] | None = None


class ServiceSpec(_Read, frozen=True):
    selector: dict[str, str] | None = None


class Service(_Read, frozen=True):
    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()


class PodTemplate(_Read, frozen=True):
    spec: PodSpec = PodSpec()


class DeploymentSpec(_Read, frozen=True):
    replicas: int | None = None
    template: PodTemplate = PodTemplate()


class DeploymentStatus(_Read, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class Deployment(_Read, frozen=True):
    metadata: Meta = Meta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @property
    def refusal(self) -> str:
        """Why the API server refuses to create its pods; empty if it does not."""
        failures = (each for each in self.status.conditions or () if each.type == "ReplicaFailure")
        return next((each.message or "ReplicaFailure" for each in failures if each.status == "True"), "")


class AnyObject(_Read, frozen=True):
    metadata: Meta = Meta()


class Binding(_Read, frozen=True):
    """Whether one Prometheus of the operator accepts a monitor."""

    name: str = ""
    conditions: tuple[Condition, ...] | None = None


class MonitorStatus(_Read, frozen=True):
    bindings: tuple[Binding, ...] | None = None


class ServiceMonitor(_Read, frozen=True):
    status: MonitorStatus = MonitorStatus()


class Event(_Read, frozen=True):
    message: str | None = None


class _ListMeta(_Read, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(_Read, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[Any] | None = None
