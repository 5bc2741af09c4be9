"""Random life: whatever the watch, the scheduling loop and time do, the node table counts what a dict says.

Besides the sums, the change logs are checked: a fact about a node that changed since the last look was logged under its
aspect. Stored answers of plugins rely on that.
"""

import logging
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler.api.objects import ContainerPort, GCEPersistentDisk, Node, Taint, Volume
from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.framework.nodes.nodes import Aspect
from scheduler.process.metrics import Metrics
from scheduler.state.cache import Cache
from scheduler.state.group_members import MembersByGroup
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock

GPU: Final = "example.com/gpu"
HUGE: Final = 2**62
TTL: Final = 5.0
TAINTS = [Taint(key=key, effect=effect) for key, effect in (("locked", "NoSchedule"), ("slow", "PreferNoSchedule"))]

GROUP: Final = GroupKey("default", "test", "g")
GROUPED: Final = ("a", "b", "c")
"""The pods of a group."""

node_names = st.sampled_from(["n1", "n2", "n3", "n4"])
uids = st.sampled_from(["a", "b", "c", "d", "e"])
pod_shapes = st.fixed_dictionaries(
    {
        "requests": st.sampled_from(
            [{}, {"cpu": 1}, {"cpu": 2, GPU: 1}, {"memory": HUGE}, {"memory": HUGE, "cpu": 1}, {"cpu": "lots"}]
        ),
        "ports": st.sampled_from([(), (80,), (80, 80), (80, 443)]),
        "disks": st.sampled_from([(), (), ("a",), ("a", "b")]),
        "labels": st.sampled_from([{}, {"app": "web"}]),
    }
)
node_shapes = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["2", "4"]),
        "pods": st.sampled_from([0, 110]),
        "allocatable": st.sampled_from([{}, {}, {GPU: 2}]),
        "labels": st.sampled_from([{}, {"zone": ""}, {"zone": "1"}, {"zone": "2", "disk": "ssd"}]),
        "taints": st.lists(st.sampled_from(TAINTS), max_size=3),
        "unschedulable": st.booleans(),
        "images": st.sampled_from([{}, {}, {"app:1": 5}, {"app:1": 7, "db:1": 1}]),
    }
)

logging.getLogger("scheduler.state").addHandler(logging.NullHandler())


@dataclass
class Believed:
    pod: Pod
    assumed: bool
    deadline: float | None = None
    is_left: bool = False
    """By a what-if."""


def facts(table: NodeTable, aspect: Aspect, row: int) -> object:  # noqa: C901  a case for each aspect
    """What plugins that read an aspect can see of one node."""
    node = table.info(row)
    match aspect:
        case Aspect.NAME | Aspect.EXTERNAL:  # nobody here knows anything else of it
            return node.name
        case Aspect.ALLOCATABLE:
            return dict(node.allocatable), table.allowed_pods[row]
        case Aspect.REQUESTED:
            non_zero = [table.non_zero_requested(resource)[row] for resource in ("cpu", "memory")]
            return dict(node.requested), non_zero, table.pod_count[row]
        case Aspect.LABELS:
            return dict(node.labels)
        case Aspect.TAINTS:
            return {taint for taint, column in table.taints.items() if column[row]}, table.unschedulable[row]
        case Aspect.PORTS:
            return {
                (k, ip): rows[row] for k, ips in table.host_ports.items() for ip, rows in ips.items() if row in rows
            }
        case Aspect.IMAGES:
            return {
                name: (image.size, len(image.rows) / table.count)
                for name, image in table.images.items()
                if row in image.rows
            }
        case Aspect.VOLUMES:
            return {pod.uid: pod.storage.keys for pod in node.pods if pod.storage.volumes}
        case Aspect.STARTS:
            return {pod.uid: pod.status.start_time for pod in node.pods}
        case Aspect.PODS:
            return {pod.uid: pod.labels for pod in node.pods}
        case _:
            return id(node.node)


class CacheLife(RuleBasedStateMachine):
    cache: Cache

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.pods: dict[str, Believed] = {}
        self.nodes: dict[str, Node] = {}
        self.known: set[str] = set()
        """UIDs of the pods that the watch has shown, as members of groups have them."""
        self.looked: dict[Aspect, tuple[int, dict[int, object]]] = {}

    @initialize(ttl=st.sampled_from([0.0, TTL, TTL]))
    def start(self, ttl: float) -> None:
        self.ttl = ttl
        self.cache = Cache(Metrics(), self.clock, ttl)
        self.cache.table = NodeTable(capacity=1)
        self.members = MembersByGroup(lambda pod: GROUP if pod.uid in GROUPED else None)
        self.cache.listen(self.members)
        for name in ("n1", "n2"):
            self.set_node(name, {})

    def a_version(self, uid: str, node: str, shape: dict[str, Any]) -> Pod:
        ports = [ContainerPort(host_port=port) for port in shape["ports"]]
        volumes = [
            Volume(name=f"v{i}", gce_persistent_disk=GCEPersistentDisk(pd_name=name))
            for i, name in enumerate(shape["disks"])
        ]
        rest: dict[str, Any] = {"requests": shape["requests"], "labels": shape["labels"]}
        return a_pod(uid, uid=uid, node_name=node, ports=ports, volumes=volumes, **rest)

    # The scheduling loop.

    @rule(uid=uids, node=node_names, shape=pod_shapes)
    def assume(self, uid: str, node: str, shape: dict[str, Any]) -> None:
        pod = self.a_version(uid, node, shape)
        self.see(uid)
        if uid in self.pods and not self.pods[uid].is_left:
            with pytest.raises(ValueError, match="already"):
                self.cache.assume(pod)
        else:
            self.cache.assume(pod)
            self.pods[uid] = Believed(pod, assumed=True)

    @rule(uid=uids, node=node_names, shape=pod_shapes)
    def try_out(self, uid: str, node: str, shape: dict[str, Any]) -> None:
        """A what-if that leaves its pod in the table."""
        if uid not in self.pods:
            pod = self.a_version(uid, node, shape)
            self.see(uid)
            self.cache.assume(pod, is_what_if=True)
            self.cache.leave(pod)
            self.pods[uid] = Believed(pod, assumed=True, is_left=True)

    @rule()
    def assume_all_that_are_left(self) -> None:
        for believed in self.pods.values():
            if believed.is_left:
                pod = believed.pod.bound_to(believed.pod.node_name)
                self.cache.assume(pod)
                believed.pod, believed.is_left = pod, False
                assert list(self.cache.table.pods_on(pod.node_name))[-1] is pod

    @rule()
    def forget_left(self) -> None:
        self.cache.forget_left()
        self.none_is_left()

    def none_is_left(self) -> None:
        self.pods = {uid: believed for uid, believed in self.pods.items() if not believed.is_left}

    @rule(uid=uids)
    def finish_binding(self, uid: str) -> None:
        believed = self.pods.get(uid)
        if believed is not None and believed.is_left:
            return
        self.cache.finish_binding(a_pod(uid, uid=uid))
        if believed is not None and believed.assumed and self.ttl:
            believed.deadline = self.clock() + self.ttl

    @rule(seconds=st.sampled_from([0.0, TTL]))
    def finish_all_bindings(self, seconds: float) -> None:
        """The watch confirms them later, or not in time."""
        for uid in [uid for uid, believed in self.pods.items() if believed.assumed]:
            self.finish_binding(uid)
        self.expire(seconds)

    @rule(uid=uids)
    def forget(self, uid: str) -> None:
        believed = self.pods.get(uid)
        was_assumed = believed is not None and believed.assumed
        assert self.cache.forget(a_pod(uid, uid=uid)) == was_assumed
        if was_assumed:
            del self.pods[uid]

    # The watch, reliable or not.

    @rule(uid=uids)
    def see(self, uid: str) -> None:
        """A pod that waits; nothing is assumed of a pod that was not seen."""
        self.members.see(a_pod(uid, uid=uid))
        self.known.add(uid)

    @rule(uid=uids, node=node_names, shape=pod_shapes)
    def confirm(self, uid: str, node: str, shape: dict[str, Any]) -> None:
        pod = self.a_version(uid, node, shape)
        before = self.pods.get(uid)
        assert self.cache.confirm(pod) is (None if before is None else before.pod)
        self.pods[uid] = Believed(pod, assumed=False)
        self.known.add(uid)

    @rule(uid=uids, shape=pod_shapes)
    def confirm_where_it_is(self, uid: str, shape: dict[str, Any]) -> None:
        if uid in self.pods:
            self.confirm(uid, self.pods[uid].pod.node_name, shape)

    @rule(uid=uids)
    def repeat(self, uid: str) -> None:
        believed = self.pods.get(uid)
        if believed is not None:
            assert self.cache.confirm(believed.pod) is believed.pod
            self.pods[uid] = Believed(believed.pod, assumed=False)

    @rule(uid=uids)
    def remove(self, uid: str) -> None:
        believed = self.pods.pop(uid, None)
        assert self.cache.remove(uid) is (None if believed is None else believed.pod)
        if believed is not None:
            self.known.discard(uid)

    @rule(name=node_names, shape=node_shapes)
    def set_node(self, name: str, shape: dict[str, Any]) -> None:
        node = a_node(name, **shape)
        assert self.cache.set_node(node) is self.nodes.get(name)
        if name not in self.nodes:
            self.none_is_left()
        self.nodes[name] = node

    @rule(name=node_names)
    def unreadable_node(self, name: str) -> None:
        with pytest.raises(ValueError, match="lots"):
            self.cache.set_node(a_node(name, cpu="lots"))

    @rule(name=node_names)
    def repeat_node(self, name: str) -> None:
        node = self.nodes.get(name)
        if node is not None:
            assert self.cache.set_node(node) is node

    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        assert self.cache.remove_node(name) is self.nodes.pop(name, None)
        self.none_is_left()

    # Time, and a decision.

    @rule(seconds=st.sampled_from([0.0, 1.0, 2.5, TTL]))
    def expire(self, seconds: float) -> None:
        self.clock.advance(seconds)
        late = [uid for uid, b in self.pods.items() if b.deadline is not None and b.deadline <= self.clock()]
        assert Counter(pod.uid for pod in self.cache.expire()) == Counter(late)
        for uid in late:
            del self.pods[uid]

    @rule(name=node_names, shape=pod_shapes)
    def wonder(self, name: str, shape: dict[str, Any]) -> None:
        table = self.cache.table
        row = table.row_of(name)
        if row is not None and shape["requests"].get("cpu") != "lots":
            with table.what_if(row, add=[self.a_version("visitor", name, shape)], remove=list(table.pods_on(name))):
                table.check_invariants()

    # What always holds.

    @invariant()
    def sums_match_the_pods(self) -> None:
        self.cache.check_invariants()

    @invariant()
    def every_pod_is_where_the_model_says(self) -> None:
        cache = self.cache
        assert {uid for uid in "abcde" if cache.get(uid) is not None} == set(self.pods)
        assert all(cache.get(uid) is believed.pod for uid, believed in self.pods.items())
        assumed = {uid for uid, believed in self.pods.items() if believed.assumed}
        assert {pod.uid for pod in cache.assumed_pods()} == assumed == {uid for uid in "abcde" if cache.is_assumed(uid)}
        for name in ("n1", "n2", "n3", "n4"):
            here = {believed.pod for believed in self.pods.values() if believed.pod.node_name == name}
            assert set(cache.table.pods_on(name)) == here
        assert cache.sizes() == {"assumed_pods": len(assumed), "nodes": len(self.nodes), "pods": len(self.pods)}

    @invariant()
    def members_of_a_group_are_as_far_as_the_model_says(self) -> None:
        members = self.members.of(GROUP)
        assumed = {uid for uid in GROUPED if uid in self.pods and self.pods[uid].assumed and not self.pods[uid].is_left}
        assigned = {uid for uid in GROUPED if uid in self.pods and not self.pods[uid].assumed}
        assert members.count == len(self.known.intersection(GROUPED))
        assert set(members.assumed) == assumed
        assert {pod.uid for pod in members.scheduled} == assumed | assigned
        assert {pod.uid for pod in members.unscheduled} == self.known.intersection(GROUPED) - assumed - assigned

    @invariant()
    def every_column_says_what_its_nodes_say(self) -> None:
        table = self.cache.table
        assert {name for name in table.names() if name} == set(table.node_names()) == set(self.nodes)
        zones, values = table.label_codes("zone"), table.label_values("zone")
        holders: dict[str, set[int]] = {}
        for name, node in self.nodes.items():
            row = table.row_of(name)
            assert row is not None
            info = table.info(row)
            assert info.node is node
            assert {taint for taint, column in table.taints.items() if column[row]} == set(node.taints)
            assert table.unschedulable[row] == node.spec.unschedulable
            assert (values[zones[row]] if zones[row] else None) == node.labels.get("zone")
            assert info.allocatable.get(GPU, 0) == (node.status.allocatable or {}).get(GPU, 0)
            for image in node.status.images or ():
                for image_name in image.names or ():
                    holders.setdefault(image_name, set()).add(row)
        assert {name: image.rows for name, image in table.images.items()} == holders
        assert not table.unschedulable[~table.in_use].any()
        assert not table.allowed_pods[~table.in_use].any()
        assert not zones[~table.in_use].any()
        assert all(column.any() and not column[~table.in_use].any() for column in table.taints.values())

    @invariant()
    def host_ports_are_those_of_the_pods(self) -> None:
        table = self.cache.table
        expected = Counter((b.pod.node_name, port.port) for b in self.pods.values() for port in b.pod.host_ports)
        counted = [rows.values() for ips in table.host_ports.values() for rows in ips.values()]
        assert sum(map(sum, counted)) == expected.total()
        assert all(rows and all(count > 0 for count in rows) for rows in counted)
        for name in self.nodes:
            for port in (80, 443):
                held = table.host_ports.get(("TCP", port), {}).get("0.0.0.0", {}).get(table.row_of(name) or 0, 0)
                assert held == expected[name, port]

    @invariant()
    def what_differs_was_reported(self) -> None:
        table = self.cache.table
        for aspect in Aspect:
            position, before = self.looked.get(aspect, (table.change_log(aspect).position, {}))
            rows = table.change_log(aspect).since(position)
            reported = range(table.size) if rows is None else set(rows)
            now = {row: facts(table, aspect, row) for row in range(table.size) if table.in_use[row]}
            if aspect in self.looked:
                for row, fact in now.items():
                    assert row in reported or (row in before and before[row] == fact), (aspect, row)
            self.looked[aspect] = (table.change_log(aspect).position, now)


TestCacheLife = CacheLife.TestCase
TestCacheLife.settings = settings(max_examples=120, stateful_step_count=40, deadline=None, derandomize=True)
