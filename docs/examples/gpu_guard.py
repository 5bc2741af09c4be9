"""Keep pods that ask for no GPU away from GPU nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw
from scheduler.framework.field_errors import required

GPU_NODE = fw.unresolvable("node(s) kept for GPU pods")


@dataclass(frozen=True, slots=True)
class GpuGuard(fw.FilterPlugin, fw.ScorePlugin):
    """Refuse GPU nodes to pods without GPUs; with `strict: false`, only avoid them.

    The fields are the plugin's arguments in the configuration file.
    """

    name: ClassVar[str] = "GpuGuard"
    resource: str = "nvidia.com/gpu"
    strict: bool = True

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.resource:
            yield "resource", required("the name of a resource")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return GPU_NODE if self.strict and self._wastes(pod, node) else None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return fw.MIN_NODE_SCORE if self._wastes(pod, node) else fw.MAX_NODE_SCORE

    def _wastes(self, pod: fw.Pod, node: fw.NodeInfo) -> bool:
        return bool(node.allocatable.get(self.resource)) and not pod.requests.get(self.resource)
