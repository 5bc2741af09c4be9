"""The plugin page shows code that is real, and what it says about it is true."""

from pathlib import Path

import pytest
from gpu_guard import GPU_NODE, GpuGuard

from plugins import IN_TREE
from scheduler.config.load import config_from_dict
from scheduler.framework import Aspect, CycleState, SignPlugin
from scheduler.framework.registry import merge
from scheduler.framework.testing import a_node, a_pod
from scheduler.state.node_table import NodeTable

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_shows_the_example_as_it_is() -> None:
    assert (DOCS / "examples" / "gpu_guard.py").read_text() in (DOCS / "plugins.md").read_text()


@pytest.mark.parametrize(
    ("pod_gpus", "node_gpus", "strict", "refused", "score"),
    [
        pytest.param(0, 0, True, False, 100, id="cpu pod, cpu node"),
        pytest.param(1, 8, True, False, 100, id="gpu pod, gpu node"),
        pytest.param(0, 8, True, True, 0, id="cpu pod, gpu node"),
        pytest.param(0, 8, False, False, 0, id="cpu pod, gpu node, not strict"),
    ],
)
def test_gpu_nodes_are_kept_for_gpu_pods(
    pod_gpus: int, node_gpus: int, strict: bool, refused: bool, score: int
) -> None:
    nodes = NodeTable()
    node = nodes.info(nodes.set_node(a_node("n1", allocatable={"nvidia.com/gpu": node_gpus})))
    pod = a_pod("web", requests={"cpu": "1", "nvidia.com/gpu": pod_gpus})
    plugin = GpuGuard(strict=strict)

    assert plugin.filter(CycleState(), pod, node) == (GPU_NODE if refused else None)
    assert plugin.score(CycleState(), pod, node) == score


def test_the_configuration_on_the_page_is_one_that_loads() -> None:
    profile = {
        "schedulerName": "loadmaster",
        "plugins": {"multiPoint": {"enabled": [{"name": "GpuGuard", "weight": 5}]}},
        "pluginConfig": [{"name": "GpuGuard", "args": {"strict": False}}],
    }
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

    config = config_from_dict(header | {"profiles": [profile]}, merge(IN_TREE, {"GpuGuard": GpuGuard}))

    assert config.profiles[0].plugin_config["GpuGuard"] == {"strict": False}


def test_the_aspects_on_the_page_exist() -> None:
    signing = [plugin for plugin in IN_TREE.values() if issubclass(plugin, SignPlugin)]

    assert signing
    assert all(isinstance(plugin.aspects, Aspect) for plugin in signing)
