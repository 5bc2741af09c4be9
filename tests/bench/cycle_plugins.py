"""What a Filter of one's own adds to the decision on a plain pod, by the form in which it is written.

All of them say the same: no GPU node for a pod without GPUs.
"""

import statistics
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from scheduler import framework as fw
from tests.bench.cycle_costs import decisions, settled
from tests.bench.cycle_world import World, decoded_pod

GPU: Final = "nvidia.com/gpu"
GPU_NODE: Final = fw.unresolvable("node(s) kept for GPU pods")


class Plain(fw.FilterPlugin):
    """What a user writes first."""

    name: ClassVar[str] = "Plain"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return GPU_NODE if node.allocatable.get(GPU) and not pod.requests.get(GPU) else None


class PlainSigned(Plain, fw.SignPlugin):
    """The same, which says what its answer depends on."""

    name: ClassVar[str] = "PlainSigned"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.ALLOCATABLE
    signs_spec: ClassVar[bool] = True

    def sign(self, pod: fw.Pod) -> Hashable | None:
        return bool(pod.requests.get(GPU))


class Columns(fw.FilterNodesPlugin):
    """By columns, without a signature."""

    name: ClassVar[str] = "Columns"

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        if pod.requests.get(GPU):
            return None
        return (nodes.allocatable(GPU)[rows] > 0).astype(np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return GPU_NODE


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the plugin, and what it may add to a decision at 5,000 nodes."""

    label: str
    plugin: type[fw.Plugin]
    aim: float
    """Seconds."""


FORMS: Final = (
    Form("one node at a time, signs", PlainSigned, 20e-6),
    Form("one node at a time, does not sign", Plain, 5e-3),
    Form("in columns, does not sign", Columns, 100e-6),
)
NODES: Final = 5_000


def median(nodes: int, count: int, plugin: type[fw.Plugin] | None) -> float:
    """Seconds of a decision on a plain pod, once the first ones are remembered."""
    world = World(nodes, plugin)
    pods = [decoded_pod(f"pod-{number}") for number in range(count + WARM)]
    with settled(None):
        times = [alone for alone, _ in decisions(world, pods)]
    return statistics.median(times[WARM:])


WARM: Final = 20
"""Decisions that are left out."""


def print_plugins(count: int, nodes: int = NODES) -> None:
    """Print what each form adds, with its aim."""
    bare = median(nodes, count, None)
    print(f"A Filter of one's own, {nodes:,} nodes, µs of a decision on a plain pod: {bare * 1e6:.1f} without it\n")
    print(f"{'':<36}{'decision':>12}{'added':>12}{'aim':>12}")
    for form in FORMS:
        found = median(nodes, max(30, count // 10) if form.plugin is Plain else count, form.plugin)
        added = found - bare
        missed = "  MISSED" if added > form.aim else ""
        print(f"{form.label:<36}{found * 1e6:>12.1f}{added * 1e6:>12.1f}{form.aim * 1e6:>12.0f}{missed}", flush=True)
    print()
