"""Dry runs: the quick way and the plain way say the same, of any node with any pods taken away."""

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from plugins.node_ports import NodePorts
from plugins.node_resources.fit import NodeResourcesFit
from plugins.taint_toleration import TaintToleration
from scheduler import framework as fw
from scheduler.api.objects import ContainerPort
from scheduler.api.pods.importance import importance
from scheduler.framework.diagnosis import Diagnosis
from scheduler.runtime.filtering import FEW
from scheduler.runtime.framework import Framework
from scheduler.runtime.preemption.dry_run import NO_PODS, DryRun, QuickSimulation, TableSimulation
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing import a_node, a_pod
from tests.fakes import PlainFilter, Signed, a_framework, fail
from tests.unit.plugins.cluster import a_cluster

GPU = "example.com/gpu"
MOST = 2**63 - 1


def begin(framework: Framework, pod: fw.Pod) -> DryRun:
    state = fw.CycleState()
    framework.run_pre_filter(state, pod, Diagnosis(1))
    return framework.handle.dry_runs.begin(state, pod)


def plain(framework: Framework, pod: fw.Pod, row: int, nominated: Sequence[fw.Pod] = ()) -> TableSimulation:
    state = fw.CycleState()
    framework.run_pre_filter(state, pod, Diagnosis(1))
    return TableSimulation(framework.filtering, state, pod, row, nominated)


amounts = st.sampled_from([0, 1, 2, 3, 5, MOST // 2, MOST])
requests = st.fixed_dictionaries(
    {}, optional={"cpu": amounts.map(lambda a: min(a, 10**6)), "memory": amounts, GPU: amounts}
)
nodes = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["0", "2", "4"]), "memory": amounts, "pods": st.integers(0, 5), "gpu": amounts},
)


@settings(max_examples=100, deadline=None)
@given(
    node=nodes,
    tainted=st.booleans(),
    wanted=requests,
    on_node=st.lists(requests, max_size=6),
    back=st.permutations(range(6)),
    plugins=st.permutations([NodeResourcesFit(), TaintToleration()]),
)
def test_the_quick_way_says_what_the_plain_way_says(
    node: dict[str, int],
    tainted: bool,
    wanted: dict[str, int],
    on_node: list[dict[str, int]],
    back: list[int],
    plugins: list[fw.Plugin],
) -> None:
    taints, gpus = [fw.Taint(key="a", effect="NoSchedule")] if tainted else [], {GPU: node["gpu"]}
    pods = [a_pod(f"p{i}", requests=each) for i, each in enumerate(on_node)]
    table = a_cluster(
        a_node("n", cpu=node["cpu"], memory=node["memory"], pods=node["pods"], allocatable=gpus, taints=taints),
        pods={"n": pods},
    )
    framework = a_framework(*plugins, table=table)
    preemptor = a_pod("high", requests=wanted)
    removed = pods[: len(pods) // 2 + 1]
    order = [removed[i] for i in back if i < len(removed)]

    with begin(framework, preemptor).simulate(0) as quick, plain(framework, preemptor, 0) as slow:
        assert isinstance(quick, QuickSimulation)
        found = [quick.refusal()]
        expected = [slow.refusal()]
        quick.remove(removed)
        slow.remove(removed)
        found.append(quick.refusal())
        expected.append(slow.refusal())
        assert found == expected
        if found[-1] is None:  # the only case in which anybody asks for more
            assert quick.reprieve(order) == slow.reprieve(order)
            assert quick.refusal() == slow.refusal()
    table.check_invariants()
    assert [each.name for each in sorted(table.info(0).pods, key=lambda each: each.name)] == [p.name for p in pods]


def test_a_plugin_that_reads_pods_and_cannot_follow_is_asked_on_the_table() -> None:
    port = [ContainerPort(host_port=80)]
    table = a_cluster(a_node("n"), pods={"n": [holder := a_pod("holder", ports=port), other := a_pod("other")]})

    with begin(a_framework(NodeResourcesFit(), NodePorts(), table=table), a_pod("new", ports=port)).simulate(
        0
    ) as simulated:
        assert isinstance(simulated, TableSimulation)
        assert simulated.refusal() is not None
        simulated.remove([holder, other])
        assert simulated.refusal() is None
        assert simulated.reprieve([holder, other]) == [holder]
    assert [pod.name for pod in table.info(0).pods] == ["holder", "other"], "as before, their order included"


def test_a_plugin_that_is_skipped_does_not_make_it_slow() -> None:
    table = a_cluster(a_node("n"))
    framework = a_framework(NodeResourcesFit(), NodePorts(), table=table)

    assert begin(framework, a_pod()).is_quick
    assert not begin(framework, a_pod(ports=[ContainerPort(host_port=80)])).is_quick


def test_a_stored_answer_that_reads_pods_is_not_used() -> None:
    table = a_cluster(a_node("n"), pods={"n": [a_pod("p")]})
    framework = a_framework(Signed(limit=1), table=table)
    pod = a_pod(labels={"app": "x"})

    with begin(framework, pod).simulate(0) as simulated:
        assert simulated.refusal() is not None
        simulated.remove(list(table.info(0).pods))
        assert simulated.refusal() is None


def test_a_plugin_that_fails_is_named_when_its_node_is_asked_about() -> None:
    table = a_cluster(a_node("n"))
    framework = a_framework(PlainFilter(fail), table=table)

    problem = 'running "Plain" filter plugin: ValueError: broken'
    with begin(framework, a_pod()).simulate(0) as simulated, pytest.raises(fw.PluginError, match=problem):
        simulated.refusal()


def test_pods_nominated_to_the_node_are_counted_if_they_matter_as_much() -> None:
    table, nominator = a_cluster(a_node("n", cpu=4)), Nominator()
    framework = a_framework(NodeResourcesFit(), table=table, nominated=nominator)
    nominator.add(a_pod("promised", priority=10, requests={"cpu": 3}), "n")

    def refused(priority: int, name: str = "new") -> bool:
        with begin(framework, a_pod(name, priority=priority, requests={"cpu": 2})).simulate(0) as simulated:
            return simulated.refusal() is not None

    assert [refused(9), refused(10), refused(11)] == [True, True, False]
    assert not refused(10, "promised"), "nobody stands in his own way"


def test_the_lowest_priorities_follow_the_pods() -> None:
    table = a_cluster(a_node("n"), a_node("m"), pods={"n": [a_pod("p", priority=5), a_pod("q", priority=-3)]})
    framework = a_framework(NodeResourcesFit(), table=table)

    def lowest() -> list[int]:
        return list(begin(framework, a_pod()).lowest_priorities)

    assert lowest() == [-3, NO_PODS]
    table.add_pod("m", a_pod("r"))
    table.remove_pod("n", next(pod for pod in table.info(0).pods if pod.name == "q"))
    assert lowest() == [5, 0]


def test_a_row_that_is_no_node_has_no_lowest_priority() -> None:
    table = NodeTable()
    table.add_pod("gone", a_pod("orphan"))

    assert begin(a_framework(NodeResourcesFit(), table=table), a_pod()).lowest_priorities.tolist() == [NO_PODS]


class Crowded:
    """Refuses nodes with more pods than `most`, or that are named so."""

    name = "Crowded"

    def __init__(self, most: int = 10**6, bad: str = "") -> None:
        self._most = most
        self._bad = bad

    def filter_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Int32Column:
        names = nodes.names()
        bad = np.array([names[row] == self._bad for row in rows.tolist()])
        codes: fw.Int32Column = ((nodes.pod_count[rows] > self._most) | bad).astype(np.int32)
        return codes

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return fw.unschedulable("too crowded")


class Podless(Crowded, fw.IgnoresPods):
    pass


class Easier(Crowded, fw.MonotoneInPods):
    pass


class Unsigned(Crowded, fw.FilterNodesPlugin):
    pass


class OneByOne:
    """Never judges all nodes at once."""

    def refusals_with_nominated(self, state: fw.CycleState, pod: fw.Pod) -> None:
        return None


nominations = st.lists(st.tuples(requests, st.integers(-1, 1), st.booleans()), max_size=3)


@settings(max_examples=100, deadline=None)
@given(
    node=nodes,
    wanted=requests,
    on_node=st.lists(st.tuples(requests, st.integers(-3, -1)), max_size=5),
    nominated=st.lists(nominations, min_size=FEW + 1, max_size=FEW + 2),
    tainted=st.sampled_from([(), ("n0",), ("n0", "n1")]),
    plugins=st.sampled_from([(), (Podless(bad="n1"),), (Easier(most=3),), (Unsigned(most=3),)]).flatmap(
        lambda own: st.permutations([NodeResourcesFit(), TaintToleration(), *own])
    ),
)
def test_nodes_with_nominated_pods_are_judged_at_once_as_they_are_one_by_one(
    node: dict[str, int],
    wanted: dict[str, int],
    on_node: list[tuple[dict[str, int], int]],
    nominated: list[list[tuple[dict[str, int], int, bool]]],
    tainted: tuple[str, ...],
    plugins: list[fw.Plugin],
) -> None:
    names = [f"n{i}" for i in range(len(nominated))]
    table, nominator = NodeTable(), Nominator()
    for name in names:
        taints = [fw.Taint(key="a", effect="NoSchedule")] if name in tainted else []
        amount = {GPU: node["gpu"]}
        table.set_node(
            a_node(name, cpu=node["cpu"], memory=node["memory"], pods=node["pods"], allocatable=amount, taints=taints)
        )
    for name, coming in zip(names, nominated, strict=True):
        for i, (each, priority) in enumerate(on_node):
            table.add_pod(name, a_pod(f"{name}-{i}", priority=priority, requests=each))
        for i, (each, priority, is_there) in enumerate(coming):
            waiting = a_pod(f"{name}-nominated-{i}", priority=priority, requests=each)
            nominator.add(waiting, name)
            if is_there:
                table.add_pod(name, waiting)
    pod = a_pod("new", requests=wanted)
    framework = a_framework(*plugins, table=table, nominated=nominator)

    def outcome() -> tuple[dict[int, fw.Status], list[int]]:
        state = fw.CycleState()
        framework.run_pre_filter(state, pod, Diagnosis(1))
        found = framework.run_filter(state, pod, table.in_use.copy())
        return found.overrides, found.feasible.tolist()

    at_once = outcome()
    framework.filtering.nominated_filter = OneByOne()
    assert at_once == outcome()

    run = begin(framework, pod)
    rows = np.flatnonzero(table.in_use & (run.lowest_priorities < pod.priority))
    rows = rows[~run.only_singly(rows)]
    found = run.simulate_all(rows, lambda lower: None)
    assert (found is not None) == run.is_quick
    if found is None:
        return
    for place, row in enumerate(rows.tolist()):
        simulated = plain(framework, pod, row, run._nominated(row))
        lower = sorted((other for other in table.info(row).pods if other.priority < pod.priority), key=importance)
        with simulated:
            simulated.remove(lower)
            refusal = simulated.refusal()
            assert (found.status(place) if found.refused[place] else None) == refusal
            if refusal is None:
                assert found.victims[place] == len(simulated.reprieve(lower))


def a_full_cluster() -> NodeTable:
    names = ("n", "m")
    pods = {name: [a_pod(f"{name}{i}", priority=-1, requests={"cpu": 1}) for i in range(2)] for name in names}
    return a_cluster(*(a_node(name, cpu=2) for name in names), pods=pods)


def test_a_plugin_that_pods_do_not_matter_to_is_asked_once_without_a_signature() -> None:
    framework = a_framework(NodeResourcesFit(), Podless(bad="m"), table=a_full_cluster())
    run = begin(framework, a_pod("new", requests={"cpu": 1}))

    assert run.is_quick
    assert run.only_singly(np.arange(2)).tolist() == [False, True]
    for row, refused in ((0, False), (1, True)):
        with run.simulate(row) as simulated:
            assert isinstance(simulated, QuickSimulation)
            simulated.remove(list(framework.filtering.nodes.info(row).pods))
            refusal = simulated.refusal()
            assert (refusal is not None) == refused
            assert refusal is None or refusal.plugin == "Crowded"


def test_a_node_where_fewer_pods_may_help_is_asked_about_on_the_table() -> None:
    table = a_full_cluster()
    table.add_pod("m", a_pod("third", priority=-1))
    framework = a_framework(NodeResourcesFit(), Easier(most=2), table=table)
    run = begin(framework, a_pod("new", requests={"cpu": 1}))

    assert run.only_singly(np.arange(2)).tolist() == [False, True]
    with run.simulate(0) as quick, run.simulate(1) as slow:
        assert (type(quick), type(slow)) == (QuickSimulation, TableSimulation)
        slow.remove([pod for pod in table.info(1).pods if pod.name in ("m1", "third")])
        assert slow.refusal() is None


def test_a_node_with_nominated_pods_is_asked_about_on_the_table_where_pods_matter_to_a_plugin() -> None:
    nominator = Nominator()
    nominator.add(a_pod("nominated", priority=5), "m")
    framework = a_framework(NodeResourcesFit(), Easier(most=2), table=a_full_cluster(), nominated=nominator)
    run = begin(framework, a_pod("new", requests={"cpu": 1}))

    assert run.only_singly(np.arange(2)).tolist() == [False, True]
    assert alongside_nominated(run) == ({1: "NodeResourcesFit"}, [])
    assert alongside_nominated(begin(framework, a_pod("modest"))) == ({}, [1])


def alongside_nominated(run: DryRun) -> tuple[dict[int, str], list[int]]:
    """Return which plugin refuses a row, and the rows that are left to be asked about on the table."""
    found = run.refusals_with_nominated()
    assert found is not None
    return {row: status.plugin for row, status in found[0].items()}, found[1].tolist()
