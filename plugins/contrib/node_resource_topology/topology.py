"""The content of a NodeResourceTopology: topology.node.k8s.io/v1alpha2.

Each node's agent writes its own, so it may be odd, and the kept part is bounded.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from scheduler import framework as fw
from scheduler.api.pods.requests import CPU
from scheduler.api.quantities.quantity import parse_quantity, to_milli, to_value

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

MAX_ITEMS: Final = 256
"""Entries of any list that are looked at."""

MAX_AMOUNT: Final = 1 << 50
"""Of any resource in a zone: more is as good. 100 times it is an int64, as columns are."""

MAX_COST: Final = 1 << 31

MAX_TEXT: Final = 128
"""Characters of a fingerprint."""

MAX_ODD: Final = 3
"""The number of oddities of one object that are reported."""

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
    """The usable content of one object."""

    policy: str
    scope: str
    max_numa_nodes: int
    zones: tuple[Zone, ...]
    """By id, each once."""

    fingerprint: str
    """Of the pods that `available` knows of; empty if that is not said."""

    fingerprint_method: str
    odd: str = ""
    """The parts that were left out, with the reasons; empty if there are none."""

    @property
    def is_single_numa(self) -> bool:
        return self.policy == SINGLE_NUMA_NODE


def read_topology(obj: fw.Unstructured) -> NodeTopology:
    """Read an object. Odd parts are left out, as if they were not there; never raises."""
    odd: list[str] = []
    policy, scope, max_numa_nodes = "none", CONTAINER_SCOPE, DEFAULT_MAX_NUMA_NODES
    deprecated = obj.get("topologyPolicies")
    if isinstance(deprecated, list) and deprecated and isinstance(deprecated[0], str):
        policy, scope = _DEPRECATED.get(deprecated[0], (policy, scope))
    attributes = dict(_named(obj.get("attributes"), "attributes", odd))
    policy = _one_of(attributes.get("topologyManagerPolicy"), _POLICIES, policy)
    scope = _one_of(attributes.get("topologyManagerScope"), _SCOPES, scope)
    limit = str(attributes.get("topologyManagerMaxNUMANodes", ""))
    if limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) > 1:
        max_numa_nodes = min(int(limit), LIMIT_MAX_NUMA_NODES)
    annotations = obj.content.get("metadata", {}).get("annotations")
    annotated = annotations.get(FINGERPRINT_ANNOTATION) if isinstance(annotations, dict) else None
    zones = {zone.id: zone for zone in _zones(obj.get("zones"), odd)}
    if len(zones) > MAX_ZONES:
        odd.append(f"zones: only {MAX_ZONES} of {len(zones)} NUMA nodes count")
    return NodeTopology(
        policy,
        scope,
        max_numa_nodes,
        tuple(zones[each] for each in sorted(zones)[:MAX_ZONES]),
        _short(attributes.get(FINGERPRINT)) or _short(annotated),
        _short(attributes.get(FINGERPRINT_METHOD)),
        "; ".join(odd[:MAX_ODD]),
    )


def _zones(listed: Any, odd: list[str]) -> Iterator[Zone]:
    for position, zone in _items(listed, "zones", odd):
        if zone.get("type") != "Node":
            continue
        path = f"zones[{position}]"
        number = _zone_id(zone.get("name"))
        if number is None:
            odd.append(f"{path}.name: {zone.get('name')!r:.40} is not node-0 to node-{MAX_ID - 1}")
            continue
        costs = {
            other: value
            for name, value in _named(zone.get("costs"), f"{path}.costs", odd)
            if (other := _zone_id(name)) is not None and type(value) is int and 0 <= value <= MAX_COST
        }
        amounts = _available(zone.get("resources"), f"{path}.resources", odd)
        yield Zone(number, dict(islice(amounts, MAX_RESOURCES)), costs)


def _available(listed: Any, path: str, odd: list[str]) -> Iterator[tuple[str, int]]:
    for position, resource in _items(listed, path, odd):
        name, available = resource.get("name"), resource.get("available", "0")
        if not isinstance(name, str) or type(available) not in (str, int, float):
            odd.append(f"{path}[{position}]: no name, or no amount")
            continue
        try:
            nanos = parse_quantity(available)
        except ValueError as error:
            odd.append(f"{path}[{position}].available: {error!s:.60}")
            continue
        yield name, min(max(to_milli(nanos) if name == CPU else to_value(nanos), 0), MAX_AMOUNT)


def _zone_id(name: Any) -> int | None:
    """Rule: numanode.NameToID of noderesourcetopology-api: `node-<number>`."""
    match = _ZONE_NAME.fullmatch(name) if isinstance(name, str) else None
    return int(match[1]) if match is not None and int(match[1]) < MAX_ID else None


def _named(listed: Any, path: str, odd: list[str]) -> Iterator[tuple[str, Any]]:
    """The pairs of a list of objects with a name and a value."""
    for position, each in _items(listed, path, odd):
        if isinstance(each.get("name"), str):
            yield each["name"], each.get("value")
        else:
            odd.append(f"{path}[{position}]: it has no name")


def _items(listed: Any, path: str, odd: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first objects of a list, with their positions."""
    if not isinstance(listed, list):
        if listed is not None:
            odd.append(f"{path}: this is no list")
        return
    for position, each in enumerate(listed[:MAX_ITEMS]):
        if isinstance(each, dict):
            yield position, each
        else:
            odd.append(f"{path}[{position}]: this is no object")
    if len(listed) > MAX_ITEMS:
        odd.append(f"{path}: only {MAX_ITEMS} of {len(listed)} count")


def _one_of(value: Any, choices: tuple[str, ...], otherwise: str) -> str:
    return value if isinstance(value, str) and value in choices else otherwise


def _short(value: Any) -> str:
    """A text that is no longer than fingerprints and their methods are; empty for anything else."""
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else ""
