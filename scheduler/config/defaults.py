"""The plugins of a profile whose configuration names none, and those that it cannot have.

Order and weights are kube-scheduler's: pkg/scheduler/apis/config/v1/default_plugins.go at v1.36.3.
"""

from typing import Final

from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet

DEFAULT_SCHEDULER_NAME: Final = "loadmaster"
"""The name of the only profile if the file gives it none."""

DEFAULT_PLUGINS: Final = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginRef("SchedulingGates"),
            PluginRef("PrioritySort"),
            PluginRef("NodeUnschedulable"),
            PluginRef("NodeName"),
            PluginRef("TaintToleration", 3),
            PluginRef("NodeAffinity", 2),
            PluginRef("NodePorts"),
            PluginRef("NodeResourcesFit", 1),
            PluginRef("VolumeRestrictions"),
            PluginRef("NodeVolumeLimits"),
            PluginRef("VolumeBinding"),
            PluginRef("VolumeZone"),
            PluginRef("PodTopologySpread", 2),
            PluginRef("InterPodAffinity", 2),
            PluginRef("DynamicResources", 2),
            PluginRef("DefaultPreemption"),
            PluginRef("NodeResourcesBalancedAllocation", 1),
            PluginRef("ImageLocality", 1),
            PluginRef("DefaultBinder"),
            PluginRef("NodeDeclaredFeatures"),
        )
    )
)

NOT_AVAILABLE_YET: Final = frozenset(
    {
        "GangScheduling",
        "PodGroupPodsCount",
        "TopologyPlacementGenerator",
    }
)
"""kube-scheduler's plugins that a configuration may disable here, but not enable or configure."""

REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that kubescheduler.config.k8s.io/v1 no longer allows."""
