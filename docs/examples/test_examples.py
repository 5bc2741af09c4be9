"""Tests of the examples, with nothing but the test kit."""

from gpu_guard import GPU_NODE, GpuGuard
from team_budget import BUDGETS, OTHER_POOL, TeamBudget

from scheduler import framework as fw
from scheduler.testing import a_cluster, a_handle, a_node, a_pod, an_object, check_plugin, schedule, started

SHOP = an_object("shop", namespace="web", spec={"pool": "blue"})
CART = a_pod("cart", namespace="web", labels={"team": "shop"})
POOLS = (a_node("blue", labels={"pool": "blue"}), a_node("green", labels={"pool": "green"}))


def test_gpu_nodes_are_kept_for_gpu_pods() -> None:
    nodes = a_cluster(a_node("plain"), a_node("gpu", allocatable={"nvidia.com/gpu": "4"}))

    refusal = GpuGuard().filter(fw.CycleState(), a_pod(requests={"cpu": "1"}), nodes["gpu"])

    assert refusal == GPU_NODE


def test_a_team_runs_in_the_pool_of_its_budget() -> None:
    decision = schedule(TeamBudget(), CART, a_cluster(*POOLS), {BUDGETS: [SHOP]})

    assert decision.best == {"blue"}
    assert decision.refusals == {"green": OTHER_POOL.by("TeamBudget")}


def test_a_new_budget_helps_the_pods_of_its_team() -> None:
    plugin = started(TeamBudget(), a_handle(a_cluster(), {BUDGETS: []}))

    assert plugin.is_of_the_same_team(CART, None, SHOP) is fw.QueueingHint.QUEUE


def test_the_examples_keep_what_every_plugin_promises() -> None:
    pods = [a_pod(), a_pod("gpu", requests={"nvidia.com/gpu": 1}), CART]
    nodes = a_cluster(*POOLS, a_node("gpu", allocatable={"nvidia.com/gpu": "4"}), pods={"blue": [a_pod("there")]})

    check_plugin(GpuGuard(), pods, nodes)
    check_plugin(TeamBudget(), pods, nodes, {BUDGETS: [SHOP]})
