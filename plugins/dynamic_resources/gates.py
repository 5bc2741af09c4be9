"""The feature gates of devices, and their effects.

Rule: AllocatorFeatures in dynamicresources/dynamicresources.go, and k8s.io/dynamic-resource-allocation
structured/allocator.go, which takes the experimental allocator for four of them, at v1.37.2.
"""

from collections.abc import Set
from typing import Final, NamedTuple

import numpy as np

from scheduler import framework as fw
from scheduler.api.devices import ResourceClaim, SliceSpec
from scheduler.api.objects import Node

FRACTIONAL_RANGES: Final = "DRAFractionalCapacityRange"
LISTS: Final = "DRAListTypeAttributes"
DERIVED: Final = "DRADerivedAttributes"
COMPATIBILITY: Final = "DRADeviceCompatibilityGroups"
OPTIONAL_OPERATIONS: Final = "DRAOptionalNodeOperations"
OF_GROUPS: Final = "DRAWorkloadResourceClaims"
NODE_AMOUNTS: Final = "DRANodeAllocatableResources"
EXPERIMENTAL: Final = frozenset({LISTS, DERIVED, COMPATIBILITY, OPTIONAL_OPERATIONS})


class DeviceGates(NamedTuple):
    """The gates that are on."""

    names: Set[str] = frozenset()

    def allow_operations(self, spec: SliceSpec, node: Node) -> bool:
        """Return whether the node can do without the operations that the devices of a slice skip.

        Without any of the experimental gates nothing is asked of it.
        """
        if not spec.skip_node_operations or not EXPERIMENTAL & self.names:
            return True
        return OPTIONAL_OPERATIONS in self.names and declares_operations(node)


def declares_operations(node: Node) -> bool:
    """Return whether the kubelet can skip operations of drivers."""
    return OPTIONAL_OPERATIONS in (node.status.declared_features or ())


def declaring(nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    """Return for each of `rows` whether its kubelet can."""
    declared = [nodes.in_use[row] and declares_operations(nodes.info(row).node) for row in rows.tolist()]
    return np.array(declared, np.bool_)


def skips_operations(claim: ResourceClaim) -> bool:
    """Return whether operations of drivers are to be skipped for a claim's devices."""
    return any(result.skip_node_operations for result in claim.results)
