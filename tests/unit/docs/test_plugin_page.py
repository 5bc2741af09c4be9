"""The plugin page shows code that is real, and what it says about it is true."""

import re
from pathlib import Path

import pytest
from gpu_guard import GPU_NODE, GpuGuard
from team_budget import BUDGETS, NO_BUDGET, OTHER_POOL, TeamBudget
from test_examples import test_a_new_budget_helps_the_pods_of_its_team as test_a_new_budget_helps_the_pods_of_its_team
from test_examples import test_a_team_runs_in_the_pool_of_its_budget as test_a_team_runs_in_the_pool_of_its_budget
from test_examples import (
    test_the_examples_keep_what_every_plugin_promises as test_the_examples_keep_what_every_plugin_promises,
)

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler import testing
from scheduler.config.load import config_from_dict
from scheduler.framework import Aspect, CycleState, SignPlugin
from scheduler.framework.arguments import parse_arguments
from scheduler.framework.nodes.resources import resources_to_watch
from scheduler.plugin_loading.registry import PluginRegistry, PluginRequest
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.objects import ObjectStore
from scheduler.testing import Objects, a_handle, a_node, a_pod, an_object, started

DOCS = Path(__file__).parents[3] / "docs"


PLUGINS = sorted(path.name for path in (DOCS / "examples").glob("*.py") if not path.name.startswith("test_"))


@pytest.mark.parametrize("example", [*PLUGINS, "test_examples.py"])
def test_a_page_shows_or_links_the_example(example: str) -> None:
    pages = (DOCS / "plugins.md", DOCS / "plugins" / "recipes.md")

    assert any(f"examples/{example})" in page.read_text() for page in pages)


def test_the_functions_on_the_pages_are_those_of_the_examples() -> None:
    text = "".join((DOCS / page).read_text() for page in ("plugins.md", "plugins/recipes.md"))
    shown = [code for code in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S) if "def " in code]
    examples = ["".join(path.read_text().split()) for path in (DOCS / "examples").glob("*.py")]

    assert (DOCS / "examples" / "gpu_guard.py").read_text() in shown
    assert [code for code in shown if not any("".join(code.split()) in example for example in examples)] == []


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


SHOP = an_object("shop", namespace="web", spec={"pool": "blue"})


@pytest.mark.parametrize(
    ("labels", "budgets", "allowed"),
    [
        pytest.param({}, [], True, id="a pod without a team"),
        pytest.param({"team": "shop"}, [], NO_BUDGET, id="no budget"),
        pytest.param({"team": "bank"}, [SHOP], NO_BUDGET, id="the budget of another team"),
        pytest.param({"team": "shop"}, [SHOP], True, id="a budget for the node's pool"),
        pytest.param(
            {"team": "shop"},
            [an_object("shop", namespace="web", spec={"pool": "green"})],
            OTHER_POOL,
            id="a budget for another pool",
        ),
    ],
)
def test_a_pod_runs_where_its_team_has_a_budget(
    labels: dict[str, str], budgets: list[fw.Unstructured], allowed: object
) -> None:
    nodes = NodeTable()
    blue = nodes.info(nodes.set_node(a_node("blue", labels={"pool": "blue"})))
    plugin = started(TeamBudget(), a_handle(nodes, {BUDGETS: budgets}))
    pod, state = a_pod("cart", namespace="web", labels=labels), CycleState()

    answer = plugin.pre_filter(state, pod, nodes)

    if answer is None:
        answer = plugin.filter(state, pod, blue)
    assert (True if answer in (None, fw.SKIP) else answer) == allowed


@pytest.mark.parametrize(
    ("team", "namespace", "helps"),
    [("shop", "web", True), ("bank", "web", False), ("shop", "elsewhere", False), (None, "web", False)],
)
def test_a_budget_helps_the_pods_of_its_team(team: str | None, namespace: str, helps: bool) -> None:
    plugin = started(TeamBudget(), a_handle(NodeTable()))
    pod = a_pod("cart", namespace=namespace, labels={"team": team} if team else {})

    hint = plugin.is_of_the_same_team(pod, None, SHOP)

    assert (hint is fw.QueueingHint.QUEUE) is helps


def test_the_example_watches_budgets_and_nothing_else_that_is_not_always_watched() -> None:
    assert list(resources_to_watch([started(TeamBudget(), a_handle(NodeTable()))])) == [BUDGETS]


def test_objects_of_the_test_kit_are_found_as_in_a_scheduler() -> None:
    objects = Objects({BUDGETS: [SHOP]})
    store = ObjectStore()
    store.watch([BUDGETS])
    store.set(BUDGETS, SHOP)

    for lister in (objects, store):
        assert lister.get(BUDGETS, "shop", "web") is SHOP
        assert lister.get(BUDGETS, "shop") is None
        assert list(lister.list(BUDGETS)) == list(lister.list(BUDGETS, "web")) == [SHOP]
        assert list(lister.list(BUDGETS, "")) == []
        with pytest.raises(LookupError, match="is not watched"):
            lister.list("Service")
    before = objects.version(BUDGETS)
    objects.put(BUDGETS)
    assert list(objects.list(BUDGETS)) == []
    assert objects.version(BUDGETS) > before


def test_the_configuration_on_the_page_is_one_that_loads() -> None:
    profile = {
        "schedulerName": "loadmaster",
        "plugins": {"multiPoint": {"enabled": [{"name": "GpuGuard", "weight": 5}]}},
        "pluginConfig": [{"name": "GpuGuard", "args": {"strict": False}}],
    }
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

    config = config_from_dict(header | {"profiles": [profile]}, PluginRegistry(IN_TREE, {"GpuGuard": GpuGuard}))

    assert config.profiles[0].plugin_config["GpuGuard"] == {"strict": False}


def test_a_rule_of_the_example_is_a_problem_with_its_place() -> None:
    problems: list[str] = []

    assert parse_arguments(GpuGuard, {"resource": ""}, "args", problems) is None
    assert problems == ["args.resource: Required value: the name of a resource"]


def test_all_that_the_test_kit_has_on_the_page_is_there() -> None:
    section = (DOCS / "plugins.md").read_text().partition("## Testing")[2]

    for name in ("a_pod", "a_node", "an_object", "a_cluster", "a_handle", "started", "schedule", "check_plugin"):
        assert name in section
        assert callable(getattr(testing, name))


def test_the_aspects_on_the_page_exist() -> None:
    signing = [plugin for plugin in IN_TREE.values() if issubclass(plugin, SignPlugin)]

    assert signing
    assert all(isinstance(plugin.aspects, Aspect) for plugin in signing)


def test_the_examples_are_loaded_from_their_directory() -> None:
    registry = PluginRegistry(IN_TREE, directories=[str(DOCS / "examples")])

    registry.load(PluginRequest())

    assert set(registry) - set(IN_TREE) == {
        "Cheapest",
        "Deadline",
        "GpuGuard",
        "Licences",
        "Partners",
        "TeamBudget",
    }
