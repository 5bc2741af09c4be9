"""The API resources behind the names with which plugins register for events.

    Pod, Node                      always watched, known in other ways
    storage.k8s.io/StorageClass    kube-scheduler's own names: the table below
    budgets.v1.example.com         anything else: plural, version, group
    configmaps.v1.                 the core group has no name

The union of what the enabled plugins name is what the scheduler watches, in addition to pods and nodes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from scheduler.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from scheduler.api.groups import coscheduling, volcano
from scheduler.api.groups.pod_groups import PodGroup
from scheduler.api.quota import kueue
from scheduler.api.quota.elastic_quotas import ElasticQuota
from scheduler.api.storage.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler.api.unstructured import Unstructured
from scheduler.framework.events import (
    ANY,
    CLUSTER_QUEUE,
    COHORT,
    COMPOSITE_POD_GROUP,
    COSCHEDULING_POD_GROUP,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    ELASTIC_QUOTA,
    ELASTIC_QUOTA_SIGS,
    LOCAL_QUEUE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    POD_GROUP_V1BETA1,
    PODS_OF_EVENTS,
    RESOURCE_CLAIM,
    RESOURCE_FLAVOR,
    RESOURCE_SLICE,
    STORAGE_CLASS,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    VOLUME_ATTACHMENT,
)
from scheduler.framework.plugin import Plugin
from scheduler.framework.tracebacks import described_with_place


class ApiResource(NamedTuple):
    """The names of a resource at the API server."""

    group: str
    """Empty for the core group."""

    version: str
    plural: str

    @property
    def name(self) -> str:
        """Its name in logs and metrics: `pods`, `budgets.v1.example.com`. No two resources have the same."""
        return f"{self.plural}.{self.version}.{self.group}" if self.group else self.plural

    @property
    def group_version(self) -> str:
        """As objects have it in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The path at which all of its objects are listed."""
        return f"{self.version_path}/{self.plural}"

    @property
    def version_path(self) -> str:
        """The path at which the API server lists the resources of this version of the group."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


PODS: Final = ApiResource("", "v1", "pods")
NODES: Final = ApiResource("", "v1", "nodes")

SERVICE: Final = "Service"
REPLICATION_CONTROLLER: Final = "ReplicationController"
REPLICA_SET: Final = "apps/ReplicaSet"
STATEFUL_SET: Final = "apps/StatefulSet"
POD_DISRUPTION_BUDGET: Final = "policy/PodDisruptionBudget"

KNOWN: Final[Mapping[str, ApiResource]] = {
    NAMESPACE: ApiResource("", "v1", "namespaces"),
    PERSISTENT_VOLUME: ApiResource("", "v1", "persistentvolumes"),
    PERSISTENT_VOLUME_CLAIM: ApiResource("", "v1", "persistentvolumeclaims"),
    SERVICE: ApiResource("", "v1", "services"),
    REPLICATION_CONTROLLER: ApiResource("", "v1", "replicationcontrollers"),
    REPLICA_SET: ApiResource("apps", "v1", "replicasets"),
    STATEFUL_SET: ApiResource("apps", "v1", "statefulsets"),
    POD_DISRUPTION_BUDGET: ApiResource("policy", "v1", "poddisruptionbudgets"),
    CSI_NODE: ApiResource("storage.k8s.io", "v1", "csinodes"),
    CSI_DRIVER: ApiResource("storage.k8s.io", "v1", "csidrivers"),
    CSI_STORAGE_CAPACITY: ApiResource("storage.k8s.io", "v1", "csistoragecapacities"),
    STORAGE_CLASS: ApiResource("storage.k8s.io", "v1", "storageclasses"),
    VOLUME_ATTACHMENT: ApiResource("storage.k8s.io", "v1", "volumeattachments"),
    RESOURCE_CLAIM: ApiResource("resource.k8s.io", "v1", "resourceclaims"),
    RESOURCE_SLICE: ApiResource("resource.k8s.io", "v1", "resourceslices"),
    DEVICE_CLASS: ApiResource("resource.k8s.io", "v1", "deviceclasses"),
    DEVICE_TAINT_RULE: ApiResource("resource.k8s.io", "v1", "devicetaintrules"),
    POD_GROUP: ApiResource("scheduling.k8s.io", "v1alpha2", "podgroups"),
    POD_GROUP_V1BETA1: ApiResource("scheduling.k8s.io", "v1beta1", "podgroups"),
    COMPOSITE_POD_GROUP: ApiResource("scheduling.k8s.io", "v1alpha3", "compositepodgroups"),
    COSCHEDULING_POD_GROUP: ApiResource("scheduling.x-k8s.io", "v1alpha1", "podgroups"),
    VOLCANO_POD_GROUP: ApiResource("scheduling.volcano.sh", "v1beta1", "podgroups"),
    VOLCANO_QUEUE: ApiResource("scheduling.volcano.sh", "v1beta1", "queues"),
    ELASTIC_QUOTA: ApiResource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas"),
    ELASTIC_QUOTA_SIGS: ApiResource("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas"),
    CLUSTER_QUEUE: ApiResource("kueue.x-k8s.io", "v1beta2", "clusterqueues"),
    LOCAL_QUEUE: ApiResource("kueue.x-k8s.io", "v1beta2", "localqueues"),
    COHORT: ApiResource("kueue.x-k8s.io", "v1beta2", "cohorts"),
    RESOURCE_FLAVOR: ApiResource("kueue.x-k8s.io", "v1beta2", "resourceflavors"),
}
"""Event resource → API resource."""

STRUCTS: Final[Mapping[str, type[Any]]] = {
    PERSISTENT_VOLUME: PersistentVolume,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    CSI_NODE: CSINode,
    CSI_DRIVER: CSIDriver,
    CSI_STORAGE_CAPACITY: CSIStorageCapacity,
    STORAGE_CLASS: StorageClass,
    VOLUME_ATTACHMENT: VolumeAttachment,
    RESOURCE_CLAIM: ResourceClaim,
    RESOURCE_SLICE: ResourceSlice,
    DEVICE_CLASS: DeviceClass,
    DEVICE_TAINT_RULE: DeviceTaintRule,
    POD_GROUP: PodGroup,
    POD_GROUP_V1BETA1: PodGroup,
    COMPOSITE_POD_GROUP: PodGroup,
    COSCHEDULING_POD_GROUP: coscheduling.PodGroup,
    VOLCANO_POD_GROUP: volcano.PodGroup,
    ELASTIC_QUOTA: ElasticQuota,
    ELASTIC_QUOTA_SIGS: ElasticQuota,
    CLUSTER_QUEUE: kueue.ClusterQueue,
    LOCAL_QUEUE: kueue.LocalQueue,
    COHORT: kueue.Cohort,
    RESOURCE_FLAVOR: kueue.ResourceFlavor,
}
"""Event resource → the struct, with a `metadata`, that its objects are decoded into; Unstructured without an entry."""

_PAIRS: Final = ((POD_GROUP, POD_GROUP_V1BETA1), (ELASTIC_QUOTA, ELASTIC_QUOTA_SIGS))

OTHER_VERSION: Final = {KNOWN[one]: KNOWN[other] for a, b in _PAIRS for one, other in ((a, b), (b, a))}
"""A resource that is watched in two versions or groups of its API → the other one: a cluster serves one of the two."""

SINCE_1_37: Final = frozenset({KNOWN[DEVICE_TAINT_RULE]})
"""Resources that older API servers do not serve: that is nothing to warn of."""

_WATCHED_ANYWAY: Final = frozenset({POD, *PODS_OF_EVENTS, NODE})
_NAMES: Final = {resource: name for name, resource in KNOWN.items()}
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_CUSTOM: Final = re.compile(rf"({_LABEL})\.({_LABEL})\.((?:{_LABEL}(?:\.{_LABEL})*)?)")
_USUAL_VERSION: Final = re.compile(r"v\d+(?:(?:alpha|beta)\d+)?")


def struct_of(name: str) -> type[Any]:
    """The type into which objects of this event resource are decoded."""
    return STRUCTS.get(name, Unstructured)


def parse_resource(name: str) -> ApiResource:
    """Return the API resource that an event resource stands for. Raises ValueError that says what to write instead.

    Rule: eventhandlers.go (addAllEventHandlers) for the form plural.version.group.
    """
    known = KNOWN.get(name)
    if known is not None:
        return known
    if name in _WATCHED_ANYWAY:
        raise ValueError(f"{name!r} is always watched; pods and nodes are not looked up by this name")
    match = _CUSTOM.fullmatch(name)
    if match is not None and match[3] == "core":
        raise ValueError(f"{name!r} is no resource: the core group has no name, so write {match[1]}.{match[2]}.")
    # foos.example.com has three parts too: a group of a custom resource has a dot, so com is none.
    if match is None or ("." not in match[3] and not _USUAL_VERSION.fullmatch(match[2])):
        raise ValueError(
            f"{name!r} is no resource: expected <plural>.<version>.<group>, such as foos.v1.example.com or "
            f"configmaps.v1., or one of {', '.join(sorted(KNOWN))}"
        )
    resource = ApiResource(group=match[3], version=match[2], plural=match[1])
    if resource in (PODS, NODES):
        raise ValueError(f"{name!r} is always watched; pods and nodes are not looked up by this name")
    if resource in _NAMES:
        raise ValueError(f"{name!r} is called {_NAMES[resource]!r} here")
    return resource


def resources_to_watch(plugins: Iterable[Plugin]) -> dict[str, ApiResource]:
    """Return event resource → API resource for all that the plugins register for or read, sorted; no pods and nodes.

    A plugin that registers for all events gets those of resources that are watched anyway. Raises ValueError as
    `parse_resource`.
    """
    names = {name for plugin in plugins for name in _named_by(plugin)}
    return {name: parse_resource(name) for name in sorted(names)}


def parts_read(plugins: Iterable[Plugin]) -> dict[str, frozenset[str]]:
    """Return event resource → the parts that plugins read of its objects, for those of which none reads everything."""
    parts: dict[str, set[str]] = {}
    whole: set[str] = set()
    for plugin in plugins:
        for name in _named_by(plugin):
            if name in plugin.parts:
                parts.setdefault(name, set()).update(plugin.parts[name])
            else:
                whole.add(name)
    return {name: frozenset(read) for name, read in parts.items() if name not in whole}


def writes_of(plugins: Iterable[Plugin]) -> frozenset[tuple[ApiResource, str, tuple[str, ...]]]:
    """Return what the plugins write: resource, subresource or empty, verbs. Raises ValueError as `parse_resource`."""
    return frozenset(
        (written_resource(write.resource), write.subresource, write.verbs)
        for plugin in plugins
        for write in plugin.writes
    )


def written_resource(name: str) -> ApiResource:
    """Return the API resource of that name; pods, too, may be written. Raises ValueError as `parse_resource`."""
    return PODS if name == POD else parse_resource(name)


def read_raw_pods(plugins: Iterable[Plugin | type[Plugin]]) -> bool:
    """Return whether any of the plugins reads pods as JSON."""
    return any(plugin.reads_raw_pods for plugin in plugins)


def resource_problems(plugin: Plugin) -> Iterator[str]:
    """Yield the problems of the resources that a plugin names."""
    try:
        names = sorted(set(_named_by(plugin)))
    except Exception as error:  # noqa: BLE001  the plugin's own code: whatever it raises is reported
        yield f"events_to_register: {described_with_place(error)}"
        return
    for name in (*names, *(write.resource for write in plugin.writes if write.resource != POD)):
        try:
            parse_resource(name)
        except ValueError as error:
            yield str(error)


def _named_by(plugin: Plugin) -> Iterator[str]:
    for registered in plugin.events_to_register():
        if registered.event.resource != ANY and registered.event.resource not in _WATCHED_ANYWAY:
            yield registered.event.resource
    yield from plugin.reads
