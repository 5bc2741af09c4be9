"""kube-scheduler's plugins, one per file or package, and the list of them; others that are shipped are in `contrib`."""

from typing import Final

from plugins.contrib import CONTRIB
from plugins.default_binder import DefaultBinder
from plugins.default_preemption.plugin import DefaultPreemption
from plugins.deferred_pod_scheduling import DeferredPodScheduling
from plugins.dynamic_resources.plugin import DynamicResources
from plugins.gang_scheduling import GangScheduling
from plugins.image_locality import ImageLocality
from plugins.inter_pod_affinity.plugin import InterPodAffinity
from plugins.node_affinity import NodeAffinity
from plugins.node_declared_features import NodeDeclaredFeatures
from plugins.node_name import NodeName
from plugins.node_ports import NodePorts
from plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources.fit import NodeResourcesFit
from plugins.node_unschedulable import NodeUnschedulable
from plugins.pod_group_pods_count import PodGroupPodsCount
from plugins.pod_topology_spread.plugin import PodTopologySpread
from plugins.priority_sort import PrioritySort
from plugins.scheduling_gates import SchedulingGates
from plugins.taint_toleration import TaintToleration
from plugins.topology_placement import TopologyPlacementGenerator
from plugins.volumes.node_volume_limits import NodeVolumeLimits
from plugins.volumes.volume_binding import VolumeBinding
from plugins.volumes.volume_restrictions import VolumeRestrictions
from plugins.volumes.volume_zone import VolumeZone
from scheduler.framework import Plugin

IN_TREE: Final[dict[str, type[Plugin]]] = {
    "PrioritySort": PrioritySort,
    "SchedulingGates": SchedulingGates,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeZone": VolumeZone,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "DynamicResources": DynamicResources,
    "DefaultPreemption": DefaultPreemption,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "DefaultBinder": DefaultBinder,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
    "DeferredPodScheduling": DeferredPodScheduling,
    "GangScheduling": GangScheduling,
    "TopologyPlacementGenerator": TopologyPlacementGenerator,
    "PodGroupPodsCount": PodGroupPodsCount,
}
"""kube-scheduler's plugins, by name."""

SHIPPED: Final[dict[str, type[Plugin]]] = {**IN_TREE, **CONTRIB}
"""Every plugin that a configuration can name without loading any, by that name."""
