"""Any life of a cluster: what is stored for a class of pods leads to the decisions that a fresh look leads to."""

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import plugins
from scheduler import framework as fw
from scheduler.api.pods.pod import pod_from_dict
from scheduler.config.load import config_from_dict
from scheduler.cycle.algorithm import Algorithm, Placed, Unplaced
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import Engine, build_engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.nodes import Int64Column, NodeColumns, Rows
from scheduler.process.metrics import Metrics
from scheduler.runtime.answers import store
from scheduler.runtime.answers.pod_classes import PodClasses
from scheduler.runtime.answers.store import AnswerStore
from scheduler.runtime.framework import Framework
from scheduler.testing import a_node
from tests.bench.cycle_world import NoWorld

Json = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
STORED, FRESH = "stored", "fresh"
"""Two profiles with the same plugins; no plugin signs the pods of the second."""


class Odd(fw.FilterPlugin, fw.ScorePlugin):
    """Cannot sign: refuses and rates nodes by the pod's name."""

    name: ClassVar[str] = "Odd"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable("odd") if (len(pod.name) + node.row) % 7 == 0 else None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return (len(pod.name) * 31 + node.row * 17) % 101


class Median(fw.ScoreNodesPlugin, fw.NormalizeScorePlugin, fw.SignPlugin):
    """Signs, but what a node gets depends on all others."""

    name: ClassVar[str] = "Median"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.REQUESTED

    def sign(self, pod: fw.Pod) -> Hashable | None:
        return pod.labels.get("app")

    def score_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: NodeColumns, rows: Rows) -> Int64Column | None:
        counts: Int64Column = nodes.pod_count[rows] % 3
        return counts

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: Int64Column) -> Int64Column:
        ranks: Int64Column = scores.argsort(kind="stable").argsort(kind="stable") % 101
        return ranks


class Fragile(fw.FilterPlugin, fw.SignPlugin):
    """Signs, and fails for nodes on which there are two pods; not for pods that are tried on one node only."""

    name: ClassVar[str] = "Fragile"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.REQUESTED

    def sign(self, pod: fw.Pod) -> Hashable | None:
        return bool(pod.spec.node_name)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        if len(node.pods) == 2 and not pod.spec.node_name:
            raise ValueError(f"two pods on {node.name}")
        return None


REGISTRY: dict[str, type[fw.Plugin]] = {**plugins.IN_TREE, "Odd": Odd, "Median": Median, "Fragile": Fragile}

SETUPS: Mapping[str, tuple[Sequence[str], int]] = {
    "the defaults": ((), 0),
    "a share of the nodes": ((), 3),
    "a plugin that cannot sign": (("Odd",), 0),
    "a plugin that ranks": (("Median",), 0),
    "a plugin that fails": (("Fragile",), 0),
    "all of them": (("Fragile", "Odd", "Median"), 0),
}
"""Plugins besides the default ones, and the percentage of nodes to score."""


def an_engine(more: Sequence[str], percentage: int) -> Engine:
    chosen = {
        "postFilter": {"disabled": [{"name": "*"}]},
        "multiPoint": {"enabled": [{"name": name} for name in more]},
        # First: no other plugin keeps it from the nodes for which it fails.
        "filter": {"enabled": [{"name": name} for name in more if name == "Fragile"]},
    }
    profiles = [
        {"schedulerName": name, "plugins": chosen, "percentageOfNodesToScore": percentage} for name in (STORED, FRESH)
    ]
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = config_from_dict({**head, "profiles": profiles}, REGISTRY)
    nowhere = NoWorld()
    return build_engine(config, REGISTRY, Writers(nowhere, nowhere, nowhere, nowhere), Metrics(), time.monotonic)


def _spread(key: str, when: str) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


_TERM: Json = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
_IN_ZONE_1: Json = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}

SPECS: Sequence[Json] = [
    {},
    {},
    {"priority": 10},
    {"tolerations": [{"operator": "Exists"}]},
    {"nodeSelector": {ZONE: "z1"}},
    {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 7, "preference": _IN_ZONE_1}]}}},
    {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}},
    {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 3, "podAffinityTerm": _TERM}]}}},
    _spread(ZONE, "DoNotSchedule"),
    _spread(HOSTNAME, "ScheduleAnyway"),
    {"nodeName": "n3"},
    {"hostNetwork": True, "port": 80},
    {"cpu": "3"},
    {"image": "app:1"},
]  # fmt: skip


def a_drawn_pod(number: int, kind: int) -> fw.Pod:
    spec = dict(SPECS[kind])
    requests = {"cpu": spec.pop("cpu", "500m"), "memory": "1Gi"}
    container: Json = {"name": "c", "image": spec.pop("image", "pause:1"), "resources": {"requests": requests}}
    if port := spec.pop("port", None):
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    name = f"pod-{number}" + "x" * (number % 5)
    volumes = [{"name": f"kube-api-access-{number}"}] if number % 2 else []
    return pod_from_dict(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{number}", "labels": {"app": "web"}},
            "spec": {"containers": [container], "volumes": volumes, **spec},
        }
    )


def a_varied_node(i: int, variant: int) -> fw.Node:
    effects = [(), ("PreferNoSchedule",), ("NoSchedule",), (), (), ()][variant % 6]
    return a_node(
        f"n{i}",
        labels={ZONE: f"z{i % 3}", HOSTNAME: f"n{i}"},
        cpu=["4", "2", "4"][variant % 3],
        pods=[110, 3][variant % 2],
        taints=[fw.Taint(key="k", effect=effect) for effect in effects],
        unschedulable=variant % 11 == 10,
        images={"app:1": 2**28} if variant % 4 == 3 else {},
    )


class Twins:
    """One cluster and its two profiles."""

    def __init__(self, setup: str) -> None:
        more, percentage = SETUPS[setup]
        self.engine = an_engine(more, percentage)
        self.table = self.engine.cache.table
        self.engine.frameworks[FRESH].pod_classes = PodClasses((), FRESH, AnswerStore(self.table))
        self.algorithms = {name: Algorithm(self.table, 7) for name in (STORED, FRESH)}
        self.count = 0
        for i in range(24):
            self.table.set_node(a_varied_node(i, i if i % 5 == 0 else 0))

    def live(self, what: str, i: int, variant: int) -> None:
        name, table, nominator = f"n{i}", self.table, self.engine.nominator
        there = list(table.pods_on(name))
        if what == "node":
            table.set_node(a_varied_node(i, variant))
        elif what == "no node":
            table.remove_node(name)
        elif what == "pod":
            table.add_pod(name, self.next_pod(variant))
        elif what == "no pod" and there:
            table.remove_pod(name, there[variant % len(there)])
        elif what == "promise":
            nominator.add(self.next_pod(variant), name)
        elif what == "no promise":
            for _, pods in list(nominator.by_node())[:1]:
                nominator.delete(next(iter(pods)).uid)
        elif what == "pods":
            for _ in range(i):
                self.decide(variant, attempt=i)

    def next_pod(self, kind: int) -> fw.Pod:
        self.count += 1
        return a_drawn_pod(self.count, kind % len(SPECS))

    def decide(self, kind: int, attempt: int) -> None:
        pod = self.next_pod(kind)
        self.compare_explanations(pod)
        stored, fresh = (self.outcome(name, pod, attempt) for name in (STORED, FRESH))
        assert stored == fresh
        if isinstance(stored, Placed):
            self.table.add_pod(stored.node_name, pod.bound_to(stored.node_name))

    def outcome(self, profile: str, pod: fw.Pod, attempt: int) -> Placed | Unplaced | str:
        state = CycleState()
        state.record_plugin_metrics = self.count % 10 == 0
        try:
            return self.algorithms[profile].schedule(self.framework(profile), state, pod, attempt)
        except PluginError as error:
            return str(error)

    def framework(self, profile: str) -> Framework:
        return self.engine.frameworks[profile]

    def compare_explanations(self, pod: fw.Pod) -> None:
        """Node by node: what it is refused for, and each plugin's score."""
        stored, fresh = (self.explained(name, pod) for name in (STORED, FRESH))
        assert stored == fresh

    def explained(self, profile: str, pod: fw.Pod) -> object:
        framework, state, algorithm = self.framework(profile), CycleState(), Algorithm(self.table, 7)
        try:
            search = algorithm.search(framework, state, pod)
            feasible = search.feasible
            refused = {name: str(status) for name, status in algorithm.node_to_status(state, pod, search).items()}
            if not len(feasible):
                return search.diagnosis.message, refused
            best = framework.run_best(state, pod, feasible, search.view)
            scores = framework.run_score(state, pod, feasible)
        except PluginError as error:
            return str(error)
        assert list(best) == feasible[scores.total == scores.total.max()].tolist()
        by_plugin = {plugin: column.tolist() for plugin, column in scores.by_plugin.items()}
        return feasible.tolist(), refused, scores.total.tolist(), by_plugin


changes = st.lists(
    st.tuples(
        st.sampled_from(
            ["node", "node", "no node", "pod", "no pod", "no pod", "promise", "no promise", "pods", "pods", "pods"]
        ),
        st.integers(0, 26),
        st.integers(0, 29),
    ),
    max_size=25,
)


def live_and_compare(setup: str, life: list[tuple[str, int, int]]) -> None:
    twins = Twins(setup)

    for what, i, variant in life:
        twins.live(what, i, variant)
        twins.decide(variant % 3, attempt=0)

    twins.table.check_invariants()


@pytest.mark.parametrize("setup", SETUPS)
@settings(max_examples=5, deadline=None, derandomize=True)
@given(life=changes)
def test_what_is_stored_leads_to_the_decisions_of_a_fresh_look(setup: str, life: list[tuple[str, int, int]]) -> None:
    live_and_compare(setup, life)


@pytest.mark.parametrize("fewest", [0, 7, 20])
@settings(max_examples=5, deadline=None, derandomize=True)
@given(life=changes)
def test_a_store_without_room_leads_to_the_same_decisions(fewest: int, life: list[tuple[str, int, int]]) -> None:
    with patch.multiple(store, STORE_BYTES=0, FEWEST=fewest):
        live_and_compare("all of them", life)
