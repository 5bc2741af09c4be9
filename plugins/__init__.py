"""kube-scheduler's plugins, one a file; this is the list of them."""

from typing import Final

from plugins.default_binder import DefaultBinder
from plugins.image_locality import ImageLocality
from plugins.node_affinity import NodeAffinity
from plugins.node_name import NodeName
from plugins.node_ports import NodePorts
from plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources_fit import NodeResourcesFit
from plugins.node_unschedulable import NodeUnschedulable
from plugins.priority_sort import PrioritySort
from plugins.scheduling_gates import SchedulingGates
from plugins.taint_toleration import TaintToleration
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
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "DefaultBinder": DefaultBinder,
}
"""Every plugin that the configuration can name without further ado, by that name."""
