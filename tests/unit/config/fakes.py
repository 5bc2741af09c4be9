"""Plugins to name in configurations, and configurations from text."""

from dataclasses import dataclass
from typing import Any, ClassVar

from scheduler import framework as fw
from scheduler.config.load import ConfigFile, config_of, values_of
from scheduler.config.types import Config
from scheduler.runtime.registry import Registry


def config_from_text(text: str, registry: Registry) -> Config:
    """Read the configuration in a file called FILE. Raises ConfigError."""
    return config_of(ConfigFile("FILE", text, values_of(text, "FILE")), registry)


class SomeFilter(fw.FilterPlugin):
    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None


class SomeScore(fw.ScorePlugin):
    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return 0


class SomeGate(fw.PreEnqueuePlugin):
    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        return None


@dataclass(frozen=True, slots=True)
class SomeSort(fw.QueueSortPlugin):
    by_age: bool = True

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.timestamp < b.timestamp


class SomeBind(fw.BindPlugin):
    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        return None


@dataclass(frozen=True, slots=True)
class Fit(fw.FilterPlugin, fw.ScorePlugin):
    name: ClassVar[str] = "NodeResourcesFit"
    strict: bool = True

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return 0


class SomeGenerator(fw.PlacementGeneratePlugin):
    def generate_placements(self, state: fw.CycleState, pod: fw.Pod, parent: fw.Placement) -> list[fw.Placement]:
        return [parent]


@dataclass(frozen=True, slots=True)
class Demanding(SomeFilter):
    zone: str


REGISTRY: Registry = {
    "SchedulingGates": SomeGate,
    "PrioritySort": SomeSort,
    "OtherSort": SomeSort,
    "NodeUnschedulable": SomeFilter,
    "NodeName": SomeFilter,
    "TaintToleration": SomeFilter,
    "NodeAffinity": SomeFilter,
    "NodePorts": SomeFilter,
    "NodeResourcesFit": Fit,
    "NodeResourcesBalancedAllocation": SomeScore,
    "ImageLocality": SomeScore,
    "DefaultBinder": SomeBind,
    "Demanding": Demanding,
    "Racks": SomeGenerator,
    "Zones": SomeGenerator,
}


def a_config(**fields: Any) -> dict[str, Any]:
    """A configuration with these fields."""
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}


def a_profile(**fields: Any) -> dict[str, Any]:
    """A configuration with one profile that has these fields."""
    return a_config(profiles=[fields])
