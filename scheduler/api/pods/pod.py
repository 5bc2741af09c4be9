"""A pod: the object as decoded, and what scheduling derives from it at most once."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Final

import msgspec

from scheduler.api.decoding import Decoder, convert
from scheduler.api.objects import ClaimAmounts, GroupAnnotations, PodMeta, PodSpec, PodStatus, Wire, labels_of
from scheduler.api.pods.pod_affinity import NO_TERMS, AffinityTerms, affinity_terms_of
from scheduler.api.pods.requests import (
    HostPort,
    PodResources,
    host_ports_of,
    overhead_of,
    reports_resources,
    requests_of,
    resources_of,
)
from scheduler.api.read_only import NOTHING, frozen
from scheduler.api.storage.pod_storage import PodStorage, storage_of

_set: Final = msgspec.structs.force_setattr


class _Derived(msgspec.Struct, gc=False):
    resources: PodResources | None = None
    host_ports: tuple[HostPort, ...] | None = None
    signatures: dict[str, Any] | None = None
    affinity_terms: AffinityTerms | None = None
    storage: PodStorage | None = None
    node_terms: Any = None
    """Its required node affinity, parsed: see `selectors.py`."""


class Pod(Wire, frozen=True, eq=False):
    """A v1.Pod, reduced to what scheduling reads. Frozen; derived values are computed on first use.

    A new version of the same pod is a new object: nothing derived can go stale. Pods are compared by identity; compare
    `uid`, `spec` or `status` for anything else.
    """

    is_resize: ClassVar[bool] = False
    """Whether it stands for a resize of a pod that has a node: see `resize.py`."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    raw_json: bytes = msgspec.field(default=b"", name="(raw)")
    """The whole object as JSON, if a plugin reads it; empty if not. No API object has a field of this wire name."""

    # A struct outside the garbage collector has no __dict__ for cached properties: this field holds them.
    # No API object has a field of its wire name.
    _derived: _Derived = msgspec.field(default_factory=_Derived, name="(derived)")

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> Mapping[str, str]:
        labels = labels_of(self.metadata)  # inlines `metadata.labels`
        return NOTHING if labels is None else MappingProxyType(labels)

    @property
    def raw(self) -> Mapping[str, Any]:
        """The pod as sent by the API server, without kind, apiVersion and `managedFields`: read-only dicts and lists.

        Raises LookupError unless an enabled plugin has `reads_raw_pods`. Parsed on each read, except of the last pod.
        """
        if not self.raw_json:
            raise LookupError(NO_RAW)
        return _parsed(self.raw_json)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations, from `raw`. Raises LookupError as `raw` does."""
        annotations: Mapping[str, str] | None = self.raw["metadata"].get("annotations")
        return NOTHING if annotations is None else annotations

    @property
    def group_annotations(self) -> GroupAnnotations | None:
        """The annotations about groups of pods; None if it has no annotation."""
        return self.metadata.group_annotations

    @property
    def priority(self) -> int:
        """The pod's priority; 0 where admission set none."""
        return self.spec.priority or 0

    @property
    def node_name(self) -> str:
        """The node it is bound to, or empty."""
        return self.spec.node_name

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def is_terminated(self) -> bool:
        """Whether it has ended and holds no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def resources(self) -> PodResources:
        """Its requests, as scheduling counts them. Raises ValueError for a quantity that cannot be read."""
        resources = self._derived.resources
        if resources is None:
            resources = self._derived.resources = resources_of(self.spec, self.status)
        return resources

    @property
    def requests(self) -> Mapping[str, int]:
        """Resource name → amount: cpu in thousandths of a core, all others in units or bytes."""
        resources = self._derived.resources  # inlines `resources`: a preemption asks ten thousand times
        return MappingProxyType(requests_of(self.resources if resources is None else resources))

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The host ports that its containers and sidecars take."""
        host_ports = self._derived.host_ports
        if host_ports is None:
            host_ports = self._derived.host_ports = host_ports_of(self.spec)
        return host_ports

    @property
    def affinity_terms(self) -> AffinityTerms:
        """Its affinity and anti-affinity terms towards other pods."""
        affinity_terms = self._derived.affinity_terms
        if affinity_terms is None:
            affinity = self.spec.affinity
            affinity_terms = NO_TERMS if affinity is None else affinity_terms_of(affinity, self.metadata.namespace)
            self._derived.affinity_terms = affinity_terms
        return affinity_terms

    @property
    def storage(self) -> PodStorage:
        """Its claims, disks and network volumes."""
        storage = self._derived.storage
        if storage is None:
            storage = self._derived.storage = storage_of(self.metadata, self.spec)
        return storage

    @property
    def _signatures(self) -> dict[str, Any]:
        """Profile name → what the framework stores of its plugins' signatures of this pod."""
        signatures = self._derived.signatures
        if signatures is None:
            signatures = self._derived.signatures = {}
        return signatures

    def derive_like(self, old: "Pod") -> None:
        """Take over what was derived of `old`, a version of the same pod, if it cannot differ: faster than parsing."""
        if self.spec.affinity == old.spec.affinity:
            self._derived.affinity_terms = old._derived.affinity_terms
        if self.share_requests(old) and self.spec.volumes == old.spec.volumes:
            self._derived.storage = old._derived.storage

    def share_requests(self, other: "Pod") -> bool:
        """Take over the amounts and host ports of any pod with the same containers; return whether it has these.

        Whatever parts of both are equal, are kept once from now on.

        Resizes are not looked into: once a kubelet reports what containers have, the amounts are computed again.
        """
        self._share_parts(other)
        if other._derived.resources is None or reports_resources(other.status) or reports_resources(self.status):
            return False
        a, b = other.spec, self.spec
        asks_the_same = (
            a.containers == b.containers
            and a.init_containers == b.init_containers
            and a.resources == b.resources
            and overhead_of(a) == overhead_of(b)
        )
        if asks_the_same:
            self._derived.resources = other._derived.resources
            self._derived.host_ports = other._derived.host_ports
        return asks_the_same

    def _share_parts(self, other: "Pod") -> None:
        """Keep once what `other` has as well: pods of a Deployment differ in little but their names."""
        a, b = other.spec, self.spec
        if a.containers == b.containers:
            _set(b, "containers", a.containers)
        if a.tolerations == b.tolerations:
            _set(b, "tolerations", a.tolerations)
        if a.volumes == b.volumes:
            _set(b, "volumes", a.volumes)
        owners, statuses = other.metadata.owner_references, other.status.container_statuses
        if owners == self.metadata.owner_references:
            _set(self.metadata, "owner_references", owners)
        if statuses == self.status.container_statuses:
            _set(self.status, "container_statuses", statuses)

    def takes_the_same_as(self, old: "Pod") -> bool:
        """Return whether `old` takes as much of its node. Raises ValueError for a quantity that cannot be read."""
        a, b = self._derived, old._derived
        are_shared = a.resources is b.resources and a.host_ports is b.host_ports and a.storage is b.storage
        if are_shared and a.resources is not None and a.host_ports is not None and a.storage is not None:
            return True
        return self.resources == old.resources and self.host_ports == old.host_ports and self.storage == old.storage

    def has_changed_raw(self, old: "Pod") -> bool:
        """Return whether `raw` differs from that of `old`, a version of the same pod, in more than version and
        status."""
        return self.raw_json != old.raw_json and _decisive(self.raw_json) != _decisive(old.raw_json)

    def bound_to(self, node: str) -> "Pod":
        """This pod as it will be once bound to `node`."""
        # What was derived does not depend on the node: `replace` passes it on.
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, node_name=node))

    def with_device_amounts(self, amounts: tuple[ClaimAmounts, ...]) -> "Pod":
        """This pod with what it takes of its node by devices."""
        if amounts == (self.status.node_allocatable_resource_claim_statuses or ()):
            return self
        status = msgspec.structs.replace(self.status, node_allocatable_resource_claim_statuses=amounts or None)
        completed = msgspec.structs.replace(self, status=status, _derived=_Derived())
        completed.derive_like(self)
        return completed

    @property
    def reference(self) -> "Pod":
        """Its identity and its controller alone, to be kept when the pod, which may be large, is gone."""
        meta = self.metadata
        kept = PodMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            owner_references=tuple([owner for owner in meta.owner_references or () if owner.controller]) or None,
        )
        return Pod(metadata=kept, spec=PodSpec(node_name=self.node_name, scheduler_name=self.spec.scheduler_name))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def decode_pod(data: bytes) -> Pod:
    """Read a pod from JSON. Raises Unreadable, which names the offending field."""
    return _pod_decoder.decode(data)


def pod_from_dict(obj: Any) -> Pod:
    """Read a pod from parsed JSON or YAML. Raises Unreadable, which names the offending field."""
    return convert(obj, Pod)


def keep_raw_pod(pod: Pod, raw: msgspec.Raw | bytes) -> None:
    """Give a pod that was just decoded its JSON, for plugins that read it. Raises Unreadable."""
    members = _members_decoder.decode(raw)
    metadata = _members_decoder.decode(members["metadata"]) if "metadata" in members else {}
    for name in ("kind", "apiVersion"):
        members.pop(name, None)
    metadata.pop("managedFields", None)
    members["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    msgspec.structs.force_setattr(pod, "raw_json", msgspec.json.encode(members))


@lru_cache(maxsize=1)
def _parsed(raw_json: bytes) -> Mapping[str, Any]:
    parsed: Mapping[str, Any] = frozen(_object_decoder.decode(raw_json))
    return parsed


def _decisive(raw_json: bytes) -> Any:
    """All but what each write of a status changes."""
    if not raw_json:
        return None
    pod = _object_decoder.decode(raw_json)
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ("resourceVersion", "generation")}
    return metadata, pod.get("spec")


NO_RAW: Final = (
    "pods are kept as JSON only for plugins that say so: add `reads_raw_pods: ClassVar[bool] = True` to the plugin"
)

_pod_decoder: Decoder[Pod] = Decoder(Pod)
_members_decoder: Decoder[dict[str, msgspec.Raw]] = Decoder(dict[str, msgspec.Raw])
_object_decoder: Decoder[dict[str, Any]] = Decoder(dict[str, Any])
