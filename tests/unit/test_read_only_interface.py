"""What plugins are handed cannot be written to: found by a walk over the interface, not from a list.

The walk follows what the Protocols of `scheduler.framework` name, and all data from there on. A method that it does not
know fails the test: it is to be added to CALLS, with arguments if it returns data.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest

from plugins import SHIPPED
from scheduler import framework as fw
from scheduler.api.groups.pod_groups import PodGroup
from scheduler.api.label_selectors import EVERYTHING
from scheduler.api.objects import ObjectMeta, Taint
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import ReadOnlyStruct
from scheduler.api.unstructured import Unstructured
from scheduler.config.feature_gates import FeatureGates
from scheduler.cycle.algorithm import Algorithm
from scheduler.framework.arguments import parse_arguments
from scheduler.framework.handle import Handle
from scheduler.framework.handle import WaitingPod as WaitingPodRole
from scheduler.framework.nodes.nodes import NodeColumns, NodeInfo
from scheduler.framework.pods import PodMatch, TermKind
from scheduler.framework.queued import QueuedPod, shown
from scheduler.framework.shares import DECLARED, DeclaredShare, ShareKey, Shares
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.queue.sorting import sort_key_of
from scheduler.runtime.guards.plugin_faults import PluginFaults
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_cluster, a_handle, a_node, a_pod, an_object, pod_from_dict
from scheduler.testing.handles import Cluster
from tests.fakes import Metrics, a_framework
from tests.unit.cycle.harness import Scheduler
from tests.unit.quota.waiting.shares import Sharing
from tests.writes import Calls, Writes

EVERYONE: Final = PodMatch(None, EVERYTHING)
ANTI_AFFINITY: Final = ((TermKind.REQUIRED_ANTI_AFFINITY, 1),)
BUDGETS: Final = "budgets.v1.example.com"
GPU: Final = {"example.com/gpu": "1"}
CLAIM: Final = ("claim", "default", "data")

CALLS: Final[Calls] = {
    "NodeColumns.allocatable": [("cpu",), ("example.com/gpu",), ("example.com/none",)],
    "NodeColumns.requested": [("cpu",), ("example.com/gpu",), ("example.com/none",)],
    "NodeColumns.non_zero_requested": [("cpu",), ("memory",)],
    "NodeColumns.label_codes": [("zone",), ("none",)],
    "NodeColumns.label_values": [("zone",), ("none",)],
    "NodeColumns.label_code": [("zone", "a")],
    "NodeColumns.topology": [("zone",), ("none",)],
    "NodeColumns.row_of": [("n1",)],
    "NodeColumns.names": [()],
    "NodeColumns.info": [(0,)],
    "Topology.code_at": [(0,)],
    "PodIndex.counts": [(EVERYONE,)],
    "PodIndex.matching": [(EVERYONE,)],
    "PodIndex.has_terms": [(ANTI_AFFINITY,)],
    "PodIndex.terms_towards": [(ANTI_AFFINITY, "default", {"app": "web"}, {})],
    "VolumeIndex.users": [(CLAIM,), (("claim", "default", "none"),)],
    "VolumeIndex.most": [(0,)],
    "VolumeIndex.has_odd_pods": [(0,)],
    "PodNominator.node_of": [("none",)],
    "PodNominator.kept_on": [("none",)],
    "PodNominator.kept_before": [("none",)],
    "PodNominator.has_gained": [("none",)],
    "PodGroups.root_key": [(fw.GroupKey("default", fw.POD_GROUP, "g"),)],
    "PodGroups.tree_problem": [(fw.GroupKey("default", fw.POD_GROUP, "g"),)],
    "PodGroups.giving_way": [(fw.PodGroup("default", "g", "g", fw.POD_GROUP),)],
    "PodGroups.are_tried_in_placements": [],  # a boolean
    "PodNominator.nominated_pods": [("n1",), ("none",)],
    "PodNominator.by_node": [],  # an iterator
    "PodNominator.add": [],
    "PodNominator.update": [],
    "PodNominator.delete": [],
    "Preemptions.begin": [],
    "Preemptions.withdraw": [],
    "Preemptions.of": [("none",)],
    "Preemptions.leaving": [()],
    "Preemptions.has_left": [("none",)],
    "Shares.evicted": [],
    "Shares.leaving": [()],
    "Shares.state_of": [],  # needs a share: see below
    "Shares.takes_back": [],  # a boolean
    "Shares.refusal_of_group": [],
    "Shares.reclaim_for_group": [],  # as above, of a group
    "Shares.reclaim": [],  # of pods, which are walked below, and booleans
    "WaitingPods.get": [],  # needs an event loop: see below
    "WaitingPods.reject": [],
    "ObjectLister.get": [(BUDGETS, "shop", "web")],
    "ObjectLister.list": [(BUDGETS,), (BUDGETS, "web")],
    "ObjectLister.version": [(BUDGETS,)],
    "ObjectLister.listen": [],
    "StoredColumns.get": [(("mine",), (fw.Aspect.NAME,), np.int64, lambda rows: np.ones(len(rows), np.int64))],
    "StoredColumns.changes": [],
    "StoredColumns.mark": [],
    "StoredColumns.forget": [],
}

ASKED_OF_A_MEMBER: Final = ("name_of", "key_of", "of", "lineage", "tree_of", "members")
ASKED_OF_A_POD: Final = ("key_of", "refusal", "nodes_for")
"""The methods of Shares that take a pod."""

SERVICES: Final = {
    *("activator", "api", "binder", "dry_runs", "events", "evictor", "metrics", "pods_in_pre_bind", "profile_name"),
    *("reader", "shared", "tasks", "waiting_pods"),
}
"""What of the handle does something, and has no data."""

WEB: Final = {
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "1",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True}],
    },
    "spec": {
        "nodeSelector": {"zone": "a"},
        "overhead": {"cpu": "1m"},
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
                ]
            }
        },
        "containers": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "1", "example.com/none": "1"}, "limits": {"cpu": "2"}},
                "ports": [{"hostPort": 80, "containerPort": 80}],
                "env": [{"name": "A", "value": "b"}],
            }
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "own", "csi": {"driver": "d", "volumeAttributes": {"a": "b"}}},
        ],
    },
    "status": {
        "conditions": [{"type": "PodScheduled", "status": "False"}],
        "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1"}}],
    },
}


def a_web_pod() -> Pod:
    """A pod with its JSON."""
    return pod_from_dict(WEB)


def a_rich_cluster() -> Cluster:
    """Every column has something in it."""
    labels = ({"zone": "a", "host": "n1"}, {"zone": "b", "host": "n2"})
    nodes = [
        a_node(
            name, labels=of_node, taints=[Taint(key="a")], allocatable={"example.com/gpu": "1"}, images={"app:1": 100}
        )
        for name, of_node in zip(("n1", "n2"), labels, strict=True)
    ]
    cluster = a_cluster(*nodes, pods={"n1": [a_web_pod()]})
    cluster.pods.matching(EVERYONE).sums(cluster.topology("zone"))
    return cluster


# The walk finds what can be written to at all: otherwise it would prove nothing.


@dataclass
class Careless:
    names: list[str]


@pytest.mark.parametrize(
    "value",
    [np.zeros(2), {"a": "b"}, ["a"], {"a"}, Careless([]), (Careless([]),), {"a": (bytearray(),)}],
    ids=["array", "dict", "list", "set", "attribute", "in a tuple", "bytes"],
)
def test_the_walk_finds_what_can_be_written_to(value: Any) -> None:
    writes = Writes({})

    writes.look("it", lambda: value)

    assert writes.found


def test_the_walk_finds_nothing_in_a_copy_that_is_the_readers_own() -> None:
    writes = Writes({})

    writes.look("it", lambda: np.zeros(2))

    assert not writes.found


# What is handed to plugins.


def found_in(path: str, value: Any, protocol: Any = None, more: Calls = MappingProxyType({})) -> Writes:
    writes = Writes({**CALLS, **more})
    writes.look(path, lambda: value, protocol)
    assert not writes.unknown, "methods that CALLS does not have"
    return writes


def sums_over(nodes: Cluster) -> Calls:
    return {"PodCounts.sums": [(nodes.topology("zone"),), (nodes.topology("host"),)]}


def test_nothing_of_the_nodes_can_be_written_to() -> None:
    nodes = a_rich_cluster()

    writes = found_in("nodes", nodes, NodeColumns, sums_over(nodes))

    assert writes.found == []
    assert len(writes.looked_at) > 60
    nodes.check_invariants()


def test_nothing_of_one_node_can_be_written_to() -> None:
    assert found_in("node", a_rich_cluster().info(0), NodeInfo).found == []


def test_nothing_of_a_pod_can_be_written_to() -> None:
    pod = a_web_pod()

    writes = found_in("pod", pod)

    assert writes.found == []
    assert "pod.spec.containers[0].resources.requests" in writes.looked_at


def every_struct(base: type[Any]) -> Iterator[type[Any]]:
    for kind in base.__subclasses__():
        yield kind
        yield from every_struct(kind)


def test_no_struct_of_an_object_has_a_field_that_can_be_written_to() -> None:
    for kind in every_struct(ReadOnlyStruct):
        assert kind.__struct_config__.frozen, kind
        for field in msgspec.structs.fields(kind):
            if get_origin(field.type) is not ClassVar and is_dict(field.type):
                assert isinstance(getattr(kind, field.name), property), (kind, field.name)


def is_dict(type_: Any) -> bool:
    """Whether a field is a dict, or None."""
    kinds = [get_origin(each) or each for each in (get_args(type_) or ()) if each is not type(None)]
    own = get_origin(type_) or type_
    return any(isinstance(each, type) and issubclass(each, Mapping) for each in (own, *kinds))


RUNNING: Calls = {"PodGroups.running": [()]}


def test_nothing_of_the_handle_can_be_written_to() -> None:
    shop = an_object("shop", namespace="web", spec={"pools": [{"name": "blue"}]})
    nodes = a_rich_cluster()
    handle = a_handle(nodes, {BUDGETS: [shop]})
    roles, pod = get_type_hints(Handle), a_pod()
    of_pod: Calls = {
        **{f"PodGroups.{name}": [(pod,)] for name in ASKED_OF_A_MEMBER},
        **{f"Shares.{name}": [(pod,)] for name in ASKED_OF_A_POD},
        "Shares.has_space_soon": [(pod, ())],
    }

    for name in roles.keys() - SERVICES - {"pods"}:
        writes = found_in(
            f"handle.{name}", getattr(handle, name), roles[name], {**sums_over(nodes), **of_pod, **RUNNING}
        )
        assert writes.found == [], name
    with pytest.raises(AttributeError):
        handle.nodes = None  # type: ignore[misc, assignment]


def test_nothing_of_groups_of_pods_can_be_written_to() -> None:
    objects, pods = ObjectStore(), [a_pod("p", group="g"), a_pod("q", group="g")]
    objects.watch([fw.POD_GROUP, fw.POD_GROUP_V1BETA1])
    objects.set(fw.POD_GROUP, PodGroup(metadata=ObjectMeta(name="g", namespace="default", uid="g")))
    groups = AdaptedGroups(objects, FeatureGates(generic_workload=True))
    for pod in pods:
        groups.members_by_group.see(pod)
    groups.members_by_group.assume(pods[0].bound_to("n"))
    of_pod = {f"PodGroups.{name}": [(pods[0],)] for name in ASKED_OF_A_MEMBER}

    writes = found_in("groups", groups, fw.PodGroups, {**of_pod, **RUNNING})

    assert writes.found == []
    assert len(writes.looked_at) > 10


async def test_nothing_of_shares_can_be_written_to() -> None:
    company = DeclaredShare("company", minimum={"cpu": "1"}, maximum={"cpu": "2"})
    stage = Sharing(company, DeclaredShare("team", "company", namespaces=("a",)))
    stage.pods(1)
    await stage.schedule()
    (waiting,) = stage.pods(1, first=1)
    keys = [(ShareKey(DECLARED, name),) for name in ("company", "team")]
    of_pod = {f"Shares.{name}": [(waiting,)] for name in ASKED_OF_A_POD}
    calls: Calls = {**of_pod, "Shares.has_space_soon": [(waiting, ())], "Shares.state_of": keys}

    writes = found_in("shares", stage.shares, Shares, calls)

    assert stage.shares.refusal(waiting) is not None
    assert writes.found == []
    assert len(writes.looked_at) > 15


def test_nothing_of_an_object_without_a_struct_can_be_written_to() -> None:
    shop = an_object("shop", namespace="web", spec={"pools": [{"name": "blue"}]})

    writes = found_in("budget", shop)

    assert isinstance(shop, Unstructured)
    assert writes.found == []
    assert "budget.content['spec']['pools'][0]" in writes.looked_at


def test_nothing_of_the_arguments_can_be_written_to() -> None:
    @dataclass(frozen=True, slots=True)
    class Pools:
        weights: Mapping[str, int]
        names: list[str]
        others: Any
        sets: frozenset[str] = frozenset()

    given = {"weights": {"a": 1}, "names": ["a"], "others": {"a": [{"b": ["c"]}]}, "sets": ["a"]}
    problems: list[str] = []
    made = parse_arguments(Pools, given, "args", problems)

    assert made is not None, problems
    assert made.others == given["others"]
    assert found_in("arguments", made).found == []


def test_nothing_of_the_arguments_of_our_own_plugins_can_be_written_to() -> None:
    for name, plugin in SHIPPED.items():
        made = plugin()
        for argument in fields(made) if is_dataclass(made) else ():  # type: ignore[var-annotated]
            assert found_in(f"{name}.{argument.name}", getattr(made, argument.name)).found == []


# What is handed over in the calls themselves.


def _same(value: Any) -> Any:
    return value


class Probe(
    fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.PostFilterPlugin, fw.PreScorePlugin, fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin, fw.PreFilterExtensions,
):  # fmt: skip
    """Tries to write to whatever it is handed, while it is asked."""

    name: ClassVar[str] = "Probe"

    def __init__(self) -> None:
        self.found: list[str] = []
        self.asked: set[str] = set()

    def _look(self, point: str, **handed: Any) -> None:
        self.asked.add(point)
        for name, value in handed.items():
            writes = Writes(CALLS)
            writes.look(f"{point} {name}", partial(_same, value))
            self.found += writes.found

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> None:
        self._look("pre_filter", pod=pod)

    def filter_nodes(self, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> Any:
        self._look("filter_nodes", pod=pod, rows=rows)
        return (rows == 2).astype(np.int32) if pod.name == "web" else np.ones(len(rows), np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return fw.unschedulable("no")

    def post_filter(self, state: Any, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]) -> Any:
        self._look("post_filter", pod=pod, node_to_status=node_to_status)
        return None, fw.unschedulable()

    def pre_score(self, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> None:
        self._look("pre_score", pod=pod, rows=rows)

    def score_nodes(self, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> Any:
        self._look("score_nodes", pod=pod, rows=rows)
        return rows.astype(np.int64)

    def normalize_score(self, state: Any, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        self._look("normalize_score", pod=pod, scores=scores)
        return scores.copy()

    def add_pod(self, state: Any, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        self._look("add_pod", other=other)

    def remove_pod(self, state: Any, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        self._look("remove_pod", other=other)


def test_nothing_that_is_handed_over_in_a_call_can_be_written_to() -> None:
    nodes = a_cluster(*(a_node(f"n{number}") for number in range(3)))
    probe, other = Probe(), a_pod("coming", priority=10)
    framework, algorithm = a_framework(probe, table=nodes, nominated={"n0": [other]}), Algorithm(nodes)

    for pod in (a_web_pod(), a_web_pod(), a_pod("nowhere")):
        state = fw.CycleState()
        search = algorithm.search(framework, state, pod, nominated_first=False)
        framework.filtering.notify_removed(state, pod, other, 0)
        if len(search.feasible):
            framework.run_best(state, pod, search.feasible, search.view)
        else:
            search.diagnosis.node_to_status = algorithm.node_to_status(state, pod, search)
            framework.run_post_filter(state, pod, search.diagnosis)

    assert probe.found == []
    assert probe.asked == {name for name in vars(Probe) if name[0] != "_"} - {"found", "asked", "name", "status_of"}


def test_what_is_left_out_of_an_attempt_is_not_changed_in_place() -> None:
    state = fw.CycleState()

    for names in (state.skip_filter, state.skip_score, state.skip_pre_bind):
        assert isinstance(names, frozenset)


def test_nothing_of_a_queued_pod_can_be_written_to() -> None:
    queued = QueuedPod(a_pod(), timestamp=1.0, unschedulable_plugins={"A"})

    writes = found_in("queued", shown(queued))
    queued.attempts = 7

    assert writes.found == []
    assert (shown(queued).attempts, shown(queued).unschedulable_plugins, shown(queued).gated) == (7, {"A"}, False)
    assert {each.name for each in fields(QueuedPod)} - {"group"} <= set(dir(shown(queued)))


class Ageing(fw.QueueSortPlugin):
    name = "Ageing"

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        a.attempts += 1
        return a.timestamp < b.timestamp


def test_a_queue_sort_that_writes_to_a_pod_is_told_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    key = sort_key_of(Ageing(), PluginFaults(Metrics()))
    first, second = QueuedPod(a_pod("first"), 1.0), QueuedPod(a_pod("second"), 2.0)

    is_less = key(first) < key(second)

    assert (is_less, first.attempts) == (True, 0)
    [told] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "no setter" in told.err  # type: ignore[attr-defined]
    assert told.at.startswith(f"{__file__}:")  # type: ignore[attr-defined]


async def test_nothing_of_a_waiting_pod_can_be_written_to() -> None:
    waiting = WaitingPods()
    waiting.add(a_pod(), {"Hold": fw.PermitWait(60.0)})
    calls: Calls = {
        **dict.fromkeys(("WaitingPod.allow", "WaitingPod.reject", "WaitingPod.preempt"), ()),
        "WaitingPod.message_of": [("Hold",)],
        "WaitingPod.seconds_left": [("Hold",)],
    }

    writes = found_in("waiting", waiting.get("default/pod"), WaitingPodRole, calls)

    assert writes.found == []
    waiting.reject("default/pod")


# What a careless plugin gets.


class Subtracts(fw.FilterNodesPlugin):
    """Takes what it asks for off what is left, in place."""

    name = "Subtracts"

    def filter_nodes(self, state: Any, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> None:
        used = nodes.requested("cpu")
        used -= 3000

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return fw.unschedulable("no room")


async def test_a_plugin_that_subtracts_in_place_costs_its_pod_the_attempt_and_nobody_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = Scheduler(Subtracts(), nodes=["a"])

    await scheduler.schedule(a_pod("web", requests={"cpu": "1"}))

    note = 'running "Subtracts" filter plugin: ValueError: output array is read-only'
    assert [event.note for event in scheduler.world.events] == [note]
    [told] = [record for record in caplog.records if record.message.startswith("A plugin failed")]
    line = Subtracts.filter_nodes.__code__.co_firstlineno + 2
    assert told.at == f"{__file__}:{line}"  # type: ignore[attr-defined]
