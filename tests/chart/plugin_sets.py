"""Profiles with other plugins than the default ones, as values of the chart."""

from typing import Any, Final

from plugins.contrib import CONTRIB

VOLUME_PLUGINS: Final = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


def with_plugins(**plugins: Any) -> dict[str, Any]:
    """Return values with one profile that has these sets of plugins."""
    return {"config": {"profiles": [{"schedulerName": "loadmaster", "plugins": plugins}]}}


def with_arguments(plugin: str, **arguments: Any) -> dict[str, Any]:
    """Return values with one profile that enables a plugin, with these arguments."""
    values = with_plugins(multiPoint={"enabled": names(plugin)})
    values["config"]["profiles"][0]["pluginConfig"] = [{"name": plugin, "args": arguments}]
    return values


def names(*plugins: str) -> list[dict[str, str]]:
    return [{"name": plugin} for plugin in plugins]


SETS: Final[dict[str, dict[str, Any]]] = {
    "default": {},
    "small": with_plugins(multiPoint={"disabled": names(*VOLUME_PLUGINS, "DynamicResources")}),
    "contrib": with_plugins(multiPoint={"enabled": names(*CONTRIB)}),
}
"""All plugins of kube-scheduler; none for volumes and devices; and those that kube-scheduler does not have."""

GATES_OF_GROUPS: Final = "GenericWorkload=true"

BARE: Final = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")

OTHER_SETS: Final[dict[str, dict[str, Any]]] = {
    "hardly any": with_plugins(multiPoint={"disabled": names("*"), "enabled": names(*BARE)}),
    "disabled at one point": with_plugins(filter={"disabled": names("VolumeBinding")}),
    "disabled, and enabled at one point": with_plugins(
        multiPoint={"disabled": names("DynamicResources", "PodTopologySpread")},
        filter={"enabled": names("PodTopologySpread")},
    ),
    "enabled at one point": with_plugins(score={"enabled": names("LoadAware")}),
    "no preemption": with_plugins(multiPoint={"disabled": names("DefaultPreemption")}),
    "two profiles": {
        "config": {
            "profiles": [
                with_plugins(multiPoint={"disabled": names("*"), "enabled": names(*BARE)})["config"]["profiles"][0],
                {
                    "schedulerName": "numa",
                    "plugins": {
                        "multiPoint": {
                            "disabled": names("*"),
                            "enabled": names(*BARE, "NodeResourceTopologyMatch"),
                        }
                    },
                },
            ]
        }
    },
    "gangs of other kinds": with_arguments(
        "Coscheduling", gangs={"kinds": ["RayCluster"]}, workloads=["Job", "JobSet", "StatefulSet", "MPIJob"]
    ),
    "the status of queues": with_arguments("CapacityScheduling", kueueQueues=True, kueueStatus=True),
    "groups of pods": {"extraArgs": ["-v=2", f"--feature-gates={GATES_OF_GROUPS}"]},
    "a plugin of one's own": with_plugins(multiPoint={"enabled": names("GpuGuard")}),
}
"""What decides which rules there are, case by case."""
