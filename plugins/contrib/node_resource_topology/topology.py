"""What a NodeResourceTopology says: topology.node.k8s.io/v1alpha2.

Each node's agent writes its own, so it may be odd, and what is kept of one is bounded.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from scheduler import framework as fw
from scheduler.api.quantity import parse_quantity, to_milli, to_value
from scheduler.api.requests import CPU

RESOURCE: Final = "noderesourcetopologies.v1alpha2.topology.node.k8s.io"

SINGLE_NUMA_NODE: Final = "single-numa-node"
POD_SCOPE: Final = "pod"
CONTAINER_SCOPE: Final = "container"

MAX_ID: Final = 64
"""Ids of NUMA nodes are below it, as in scheduler-plugins (maxNUMAId)."""

MAX_ZONES: Final = 16
"""NUMA nodes of a node that count; a kubelet takes 8 by default. The others are left out."""

MAX_RESOURCES: Final = 64
"""Resources of a zone that count."""

DEFAULT_MAX_NUMA_NODES: Final = 8
LIMIT_MAX_NUMA_NODES: Final = 1024

FINGERPRINT: Final = "nodeTopologyPodsFingerprint"
FINGERPRINT_METHOD: Final = "nodeTopologyPodsFingerprintMethod"
FINGERPRINT_ANNOTATION: Final = "topology.node.k8s.io/fingerprint"

_SCOPES: Final = (CONTAINER_SCOPE, POD_SCOPE)
_POLICIES: Final = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
_DEPRECATED: Final[Mapping[str, tuple[str, str]]] = {
    "SingleNUMANodePodLevel": (SINGLE_NUMA_NODE, POD_SCOPE),
    "SingleNUMANodeContainerLevel": (SINGLE_NUMA_NODE, CONTAINER_SCOPE),
    "BestEffort": ("best-effort", CONTAINER_SCOPE),
    "BestEffortContainerLevel": ("best-effort", CONTAINER_SCOPE),
    "BestEffortPodLevel": ("best-effort", POD_SCOPE),
    "Restricted": ("restricted", CONTAINER_SCOPE),
    "RestrictedContainerLevel": ("restricted", CONTAINER_SCOPE),
    "RestrictedPodLevel": ("restricted", POD_SCOPE),
}
"""`topologyPolicies`, which attributes have replaced. Rule: nodeconfig/topologymanager.go (updateFromPolicies)."""

_ZONE_NAME: Final = re.compile(r"node-(\d{1,4})", re.ASCII)


class Zone(NamedTuple):
    """A NUMA node."""

    id: int
    available: Mapping[str, int]
    """cpu in thousandths, other resources in units or bytes."""

    costs: Mapping[int, int]
    """Zone → distance."""


class NodeTopology(NamedTuple):
    """What counts of one object."""

    policy: str
    scope: str
    max_numa_nodes: int
    zones: tuple[Zone, ...]
    """By id, each once."""

    fingerprint: str
    """Of the pods that `available` knows of; empty if that is not said."""

    fingerprint_method: str

    @property
    def is_single_numa(self) -> bool:
        return self.policy == SINGLE_NUMA_NODE


def read_topology(obj: fw.Unstructured) -> NodeTopology:
    """Read an object. What is odd in it is left out, as if it was not there."""
    policy, scope, max_numa_nodes = "none", CONTAINER_SCOPE, DEFAULT_MAX_NUMA_NODES
    deprecated = obj.get("topologyPolicies")
    if isinstance(deprecated, list) and deprecated and isinstance(deprecated[0], str):
        policy, scope = _DEPRECATED.get(deprecated[0], (policy, scope))
    attributes = dict(_named(obj.get("attributes")))
    policy = _one_of(attributes.get("topologyManagerPolicy"), _POLICIES, policy)
    scope = _one_of(attributes.get("topologyManagerScope"), _SCOPES, scope)
    limit = str(attributes.get("topologyManagerMaxNUMANodes", ""))
    if limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) > 1:
        max_numa_nodes = min(int(limit), LIMIT_MAX_NUMA_NODES)
    annotations = obj.content.get("metadata", {}).get("annotations")
    annotated = annotations.get(FINGERPRINT_ANNOTATION) if isinstance(annotations, dict) else None
    zones = {zone.id: zone for zone in _zones(obj.get("zones"))}
    return NodeTopology(
        policy,
        scope,
        max_numa_nodes,
        tuple(zones[each] for each in sorted(zones)[:MAX_ZONES]),
        str(attributes.get(FINGERPRINT) or annotated or ""),
        str(attributes.get(FINGERPRINT_METHOD, "")),
    )


def _zones(listed: Any) -> Iterator[Zone]:
    for zone in listed if isinstance(listed, list) else ():
        if not isinstance(zone, dict) or zone.get("type") != "Node":
            continue
        number = _zone_id(zone.get("name"))
        if number is None:
            continue
        costs = {
            other: value
            for name, value in _named(zone.get("costs"))
            if (other := _zone_id(name)) is not None and isinstance(value, int)
        }
        yield Zone(number, dict(islice(_available(zone.get("resources")), MAX_RESOURCES)), costs)


def _available(listed: Any) -> Iterator[tuple[str, int]]:
    for resource in listed if isinstance(listed, list) else ():
        if not isinstance(resource, dict) or not isinstance(resource.get("name"), str):
            continue
        try:
            nanos = parse_quantity(resource.get("available", "0"))
        except ValueError:
            continue
        yield resource["name"], to_milli(nanos) if resource["name"] == CPU else to_value(nanos)


def _zone_id(name: Any) -> int | None:
    """Rule: numanode.NameToID of noderesourcetopology-api: `node-<number>`."""
    match = _ZONE_NAME.fullmatch(name) if isinstance(name, str) else None
    return int(match[1]) if match is not None and int(match[1]) < MAX_ID else None


def _named(listed: Any) -> Iterator[tuple[str, Any]]:
    """The pairs of a list of objects with a name and a value; what is none is left out."""
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            yield each["name"], each.get("value")


def _one_of(value: Any, choices: tuple[str, ...], otherwise: str) -> str:
    return value if isinstance(value, str) and value in choices else otherwise
