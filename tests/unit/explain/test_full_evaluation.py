"""A full evaluation finds what a decision finds, and the refusals after the first one."""

import numpy as np

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.api.objects import node_from_dict
from scheduler.config.load import config_from_dict
from scheduler.engine.engine import Engine
from scheduler.explain.full_evaluation import evaluate_fully
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.engine import engine_of
from scheduler.testing import a_node, a_pod
from tests.conformance.ours import DEFAULT_CONFIG, as_kube_scheduler_sees, others
from tests.conformance.recorded import read_cases
from tests.unit.cycle.fakes import an_engine

EVERY = 40
"""One of so many recorded cases is evaluated: all of them take a minute."""


def test_a_full_evaluation_finds_the_nodes_that_a_decision_finds() -> None:
    for case in [each["case"] for each in read_cases()][::EVERY]:
        config = config_from_dict(case.get("config") or DEFAULT_CONFIG, IN_TREE)
        names = {profile.scheduler_name for profile in config.profiles}
        nodes = tuple(node_from_dict(each) for each in case["objects"] if each["kind"] == "Node")
        pods = tuple(as_kube_scheduler_sees(each, names) for each in case["objects"] if each["kind"] == "Pod")
        with engine_of(SimulatedCluster(nodes, pods, others(case)), config, IN_TREE) as engine:
            for pod in pods:
                if not pod.node_name and pod.spec.scheduler_name in names and not pod.is_deleting:
                    assert evaluated(engine, pod) == decided(engine, pod), f"{case['name']}: {pod}"


def evaluated(engine: Engine, pod: fw.Pod) -> list[str] | None:
    """The nodes that fit; None if a plugin failed."""
    found = evaluate_fully(engine.frameworks[pod.spec.scheduler_name], engine.algorithm, pod)
    names = engine.cache.table.names()
    return None if found.failures else [names[row] for row in found.fits.tolist()]


def decided(engine: Engine, pod: fw.Pod) -> list[str] | None:
    table, framework = engine.cache.table, engine.frameworks[pod.spec.scheduler_name]
    try:
        search = engine.algorithm.search(framework, CycleState(), pod, nominated_first=False)
    except PluginError:
        return None
    return [table.names()[row] for row in search.feasible.tolist()]


def test_all_plugins_that_refuse_a_node_are_named() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("small", cpu="1", unschedulable=True), a_node("large", cpu="8"))
    found = evaluate_fully(
        scheduler.framework, scheduler.engine.algorithm, a_pod(requests={"cpu": 2}, node_selector={"disk": "ssd"})
    )
    row = scheduler.engine.cache.table.row_of("small")
    assert row is not None
    assert [status.plugin for _, status in found.refusals_of(row)] == [
        "NodeUnschedulable",
        "NodeAffinity",
        "NodeResourcesFit",
    ]


def test_a_node_whose_room_is_kept_for_a_nominated_pod_is_refused_by_its_name() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("only", cpu="2"))
    scheduler.nominator.add(a_pod("first", requests={"cpu": 2}, priority=10), "only")
    found = evaluate_fully(
        scheduler.framework, scheduler.engine.algorithm, a_pod("second", requests={"cpu": 1}, priority=5)
    )
    ((_, status),) = found.refusals_of(int(np.flatnonzero(found.in_use)[0]))
    assert not len(found.fits)
    assert status.message == "room is kept for default/first, nominated to the node: Insufficient cpu"


def test_a_plugin_that_fails_does_not_hide_the_refusals_of_others() -> None:
    class Broken(fw.FilterPlugin):
        name = "Broken"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
            raise RuntimeError("out of order")

    scheduler = an_engine(Broken)
    scheduler.see(a_node("small", cpu="1"), a_node("large", cpu="8"))
    found = evaluate_fully(scheduler.framework, scheduler.engine.algorithm, a_pod(requests={"cpu": 2}))
    assert [str(error) for error in found.failures] == ['running "Broken" filter plugin: RuntimeError: out of order']
    assert [step.name for step, _ in found.refusals] == ["NodeResourcesFit"]
