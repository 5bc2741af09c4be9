"""The plugins of a profile whose configuration names none, and those that it cannot have.

Order and weights, and how a file's plugins are merged into them (mergePlugins, mergePluginSet), are kube-scheduler's:
pkg/scheduler/apis/config/v1/default_plugins.go at v1.37.2.
"""

from dataclasses import replace
from typing import Final

from scheduler.config.feature_gates import FeatureGates
from scheduler.runtime.profile_spec import PLUGIN_SETS, PluginRef, Plugins, PluginSet

DEFAULT_SCHEDULER_NAME: Final = "loadmaster"
"""The name of the only profile if the file gives it none."""

DEFAULT_PLUGINS: Final = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginRef("SchedulingGates"),
            PluginRef("PrioritySort"),
            PluginRef("NodeName"),
            PluginRef("NodeUnschedulable"),
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

FOR_POD_GROUPS: Final = frozenset({"GangScheduling", "PodGroupPodsCount", "TopologyPlacementGenerator"})
"""Plugins that do nothing without the feature gate GenericWorkload."""


def default_plugins(gates: FeatureGates) -> Plugins:
    """Return the plugins of a profile with these feature gates. Rule: applyFeatureGates there."""
    further = [PluginRef("GangScheduling")] if gates.generic_workload else []
    if gates.topology_aware_workload_scheduling:
        further += [PluginRef("TopologyPlacementGenerator"), PluginRef("PodGroupPodsCount", 1)]
    enabled = list(DEFAULT_PLUGINS.multi_point.enabled)
    if gates.in_place_pod_vertical_scaling_scheduler_preemption:
        # First, so that nodes without victims are known.
        enabled.insert([each.name for each in enabled].index("NodeResourcesFit"), PluginRef("DeferredPodScheduling"))
    elif not further:
        return DEFAULT_PLUGINS
    return replace(DEFAULT_PLUGINS, multi_point=PluginSet((*enabled, *further)))


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Merge `custom` into `default`, set by set."""
    return Plugins(**{name: merge_set(getattr(default, name), getattr(custom, name)) for name in PLUGIN_SETS})


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Defaults that are not disabled come first, in their order; custom ones replace those of the same name there.

    Disabled plugins stay in the result: expanding MultiPoint needs them.
    """
    disabled = {ref.name: PluginRef(ref.name) for ref in (*custom.disabled, *default.disabled)}
    own = {ref.name: ref for ref in custom.enabled}
    kept = () if "*" in disabled else tuple(own.get(r.name, r) for r in default.enabled if r.name not in disabled)
    added = tuple(ref for ref in custom.enabled if ref not in kept)
    return PluginSet((*kept, *added), tuple(disabled.values()))


COSCHEDULING: Final = "Coscheduling"
"""The plugin whose profiles have groups of pods of our own rules, without any gate."""

CAPACITY_SCHEDULING: Final = "CapacityScheduling"
"""The plugin whose profiles have shares of the cluster."""

REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that kubescheduler.config.k8s.io/v1 no longer allows."""
