"""Kueue's objects in an engine: pods start within the quota of their ClusterQueue, on nodes of their flavor."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.quota import kueue as api
from scheduler.framework.events import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
)
from scheduler.testing import a_node, a_pod, a_requirement, a_term, required
from tests.fakes import a_plugin
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.quota.kueue_objects import Group, a_flavor, a_local_queue, a_namespace, a_queue, as_stored
from tests.unit.quota.waiting.shares import WithShares

TWO: Group = {"on-demand": {"cpu": ["2"]}, "spot": {"cpu": ["1"]}}
GONE: Group = {"gone": {"cpu": ["900"]}}
"""A flavor of which there is no node."""


class WithKueue(CapacityScheduling):
    def __init__(self) -> None:
        super().__init__(kueue_queues=True)
        self.asked: Counter[str] = Counter()
        """Pod → how often PreEnqueue was asked about it."""

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        self.asked[pod.name] += 1
        return super().pre_enqueue(pod)


class Queues(WithShares):
    """An engine with two nodes of each flavor, four cores each, and the LocalQueue `q` of the namespace `ns`."""

    def __init__(
        self, *more: Any, groups: tuple[Group, ...] = (TWO,), also: tuple[type[fw.Plugin], ...] = (), **spec: Any
    ) -> None:
        super().__init__(WithKueue, *also)
        for kind in ("on-demand", "spot"):
            for number in (1, 2):
                self.under_test.see(a_node(f"{kind}-{number}", cpu="4", labels={"kind": kind}))
            self.put(a_flavor(kind, {"kind": kind}))
        self.put(a_namespace("ns", team="a"))
        for each in (a_queue("a", groups=list(groups), **spec), a_local_queue("ns", "q", "a"), *more):
            self.put(each)

    def put(self, found: Any) -> None:
        """Let the watch show an object, or its new version."""
        self._versions += 1
        self.engine.object_handlers.object_changed(*as_stored(found, self._versions))

    def remove(self, resource: str, name: str, namespace: str = "") -> None:
        self.engine.object_handlers.object_deleted(resource, self.engine.objects.get(resource, name, namespace))

    def pod(self, name: str, queue: str | None = "q", cpu: str = "1", **fields: Any) -> fw.Pod:
        """Let the watch show a pod."""
        labels = {**({} if queue is None else {api.QUEUE_LABEL: queue}), **fields.pop("labels", {})}
        pod = a_pod(name, namespace="ns", requests={"cpu": cpu}, labels=labels, scheduler_name=PROFILE, **fields)
        self.under_test.see(pod)
        return pod

    @property
    def asked(self) -> Counter[str]:
        plugin = self.engine.frameworks[PROFILE].plugins.by_name[WithKueue.name]
        assert isinstance(plugin, WithKueue)
        return plugin.asked

    def kinds(self) -> dict[str, str]:
        """Pod → flavor of its node, of those that are bound."""
        return {uid.rpartition("/")[2]: node[:-2] for uid, node in self.under_test.world.bound.items()}

    def used(self, name: str = "ClusterQueue/a") -> dict[str, int]:
        """What is used of a share."""
        (ledger,) = [each for each in self.shares.ledgers if each.source == CLUSTER_QUEUE]
        tree = ledger.tree
        return {key: amount for key in sorted(tree.resources) if (amount := tree.usage(name, key))}


async def test_pods_take_the_first_flavor_that_has_quota_and_go_to_its_nodes() -> None:
    queues = Queues()
    queues.pod("free", None, node_name="spot-1")

    pods = [queues.pod(f"p{number}") for number in range(4)]
    await queues.schedule()

    assert queues.kinds() == {"p0": "on-demand", "p1": "on-demand", "p2": "spot"}
    assert queues.used() == {"on-demand/cpu": 2000, "spot/cpu": 1000}
    assert 'share "ClusterQueue/a" has no space: 1 of on-demand/cpu more than its nominalQuota' in queues.note(pods[3])
    queues.confirm()
    await queues.end(pods[2])
    assert queues.kinds()["p3"] == "spot"


async def test_other_amounts_count_at_once_and_the_tree_is_not_made_again_for_them() -> None:
    queues = Queues()
    pods = [queues.pod(f"p{number}") for number in range(3)]
    await queues.schedule()
    before = [ledger.tree for ledger in queues.shares.ledgers]

    queues.put(a_queue("a", groups=[{"on-demand": {"cpu": ["1"]}, "spot": {"cpu": ["2"]}}]))
    pods.append(queues.pod("p3"))
    await queues.schedule()

    assert queues.kinds() == {"p0": "on-demand", "p1": "on-demand", "p2": "spot", "p3": "spot"}
    assert [ledger.tree for ledger in queues.shares.ledgers] == before


async def test_a_queue_whose_flavors_change_with_its_amounts_gives_those() -> None:
    queues = Queues()
    await queues.schedule()

    queues.put(a_queue("a", groups=[{"spot": {"cpu": ["1"]}, "on-demand": {"cpu": ["2"]}}]))
    queues.pod("p0")
    await queues.schedule()

    assert queues.kinds() == {"p0": "spot"}


async def test_quota_of_a_flavor_that_was_kept_for_a_pod_which_takes_another_goes_to_the_next() -> None:
    queues = Queues(groups=({"on-demand": {"cpu": ["1"]}, "spot": {"cpu": ["1"]}},))
    on_demand, spot = (queues.pod(kind, node_name=f"{kind}-1") for kind in ("on-demand", "spot"))
    queues.pod("either")
    await queues.schedule()
    queues.pod("only-spot", node_selector={"kind": "spot"})
    await queues.schedule()

    queues.delete(spot)
    await queues.end(on_demand)
    await queues.schedule()

    assert queues.kinds() == {"either": "on-demand", "only-spot": "spot"}


def without_nodes(*also: type[fw.Plugin]) -> Queues:
    """A queue of a flavor of which there is no node."""
    return Queues(a_flavor("gone", {"kind": "gone"}), groups=(GONE,), also=also)


@pytest.mark.parametrize("others", [{}, {"kind": "other"}], ids=["a new node", "a node with other labels"])
async def test_a_pod_for_whose_flavor_there_is_no_node_waits_for_one(others: Mapping[str, str]) -> None:
    queues = without_nodes()
    if others:
        queues.under_test.see(a_node("gone-1", cpu="4", labels=others))
    pod = queues.pod("p")

    tries = [await queues.after_a_look() for _ in range(3)]

    assert queues.kinds() == {}
    assert tries == [1, 0, 0]
    assert "node(s) didn't satisfy plugin(s) [CapacityScheduling]" in queues.note(pod)

    queues.under_test.see(a_node("gone-1", cpu="4", labels={"kind": "gone"}))
    await queues.after_a_look()
    assert queues.kinds() == {"p": "gone"}


async def test_other_changes_of_nodes_do_not_wake_a_pod_for_whose_flavor_there_is_none() -> None:
    queues = without_nodes()
    queues.pod("p")
    await queues.after_a_look()

    queues.under_test.see(a_node("spot-1", cpu="8", labels={"kind": "spot"}))
    assert await queues.after_a_look() == 0

    queues.under_test.see(a_node("spot-1", cpu="8", labels={"kind": "spot", "zone": "a"}))
    assert [await queues.after_a_look() for _ in range(3)] == [1, 0, 0]


async def test_a_pod_for_whose_flavor_there_is_no_node_starts_once_its_queue_has_another_flavor() -> None:
    queues = without_nodes()
    queues.pod("p")
    await queues.after_a_look()

    queues.put(a_queue("a", groups=[TWO]))
    await queues.after_a_look()

    assert queues.kinds() == {"p": "on-demand"}


async def test_a_node_that_comes_while_a_pod_is_tried_is_seen_by_it() -> None:
    queues: Queues

    def post_filter(*_: Any) -> tuple[None, None]:
        if "gone-1" not in queues.engine.cache.table.names():
            queues.under_test.see(a_node("gone-1", cpu="4", labels={"kind": "gone"}))
            queues.engine.share_parts.catch_up()
        return None, None

    queues = without_nodes(a_plugin("Meanwhile", fw.PostFilterPlugin, post_filter=post_filter))
    queues.pod("p")

    tries = await queues.schedule()

    assert tries == 2
    assert queues.kinds() == {"p": "gone"}


async def test_a_pod_that_backs_off_when_a_node_comes_is_tried_after_it() -> None:
    queues = without_nodes()
    pod = queues.pod("p")
    await queues.schedule()
    queues.under_test.see(newer(pod, labels={**pod.metadata.labels, "size": "small"}))
    assert queues.under_test.queue.pending_counts()["backoff"] == 1

    queues.under_test.see(a_node("gone-1", cpu="4", labels={"kind": "gone"}))
    await queues.after_a_look()

    assert queues.kinds() == {"p": "gone"}


async def test_what_helps_by_another_plugin_wakes_a_pod_at_once() -> None:
    queues = Queues(groups=({"spot": {"cpu": ["100"]}},))
    queues.pod("large", cpu="6")
    await queues.schedule()

    queues.under_test.see(a_node("spot-1", cpu="8", labels={"kind": "spot"}))
    await queues.schedule()

    assert queues.kinds() == {"large": "spot"}


async def test_a_group_for_whose_flavor_there_is_no_node_waits_for_as_many_as_it_needs() -> None:
    queues = without_nodes(Coscheduling)
    labels = queues.group("g", 2, "ns")
    for name in ("one", "two"):
        queues.pod(name, labels=labels, cpu="3")
    await queues.after_a_look()

    queues.under_test.see(a_node("gone-1", cpu="4", labels={"kind": "gone"}))
    await queues.after_a_look()
    assert queues.kinds() == {}

    queues.under_test.see(a_node("gone-2", cpu="4", labels={"kind": "gone"}))
    await queues.after_a_look()
    assert queues.kinds() == {"one": "gone", "two": "gone"}


async def test_pods_that_wait_for_quota_are_left_alone_when_nodes_come_and_change() -> None:
    queues = Queues()
    for number in range(1_003):
        queues.pod(f"p{number}")
    await queues.schedule()
    queues.asked.clear()

    for labels in ({"kind": "spot"}, {"kind": "other"}):
        queues.under_test.see(a_node("new", cpu="4", labels=labels))
        assert await queues.after_a_look() == 0

    assert len(queues.kinds()) == 3
    assert queues.asked == {}


async def test_a_pod_that_is_for_a_node_of_another_flavor_waits_without_being_tried() -> None:
    queues = Queues()
    queues.pod("p", node_affinity=required(a_term(fields=[a_requirement("metadata.name", "In", "spot-1")])))

    tries = [await queues.after_a_look() for _ in range(3)]

    assert tries == [1, 0, 0]
    queues.under_test.see(a_node("spot-1", cpu="4", labels={"kind": "on-demand"}))
    await queues.after_a_look()
    assert queues.kinds() == {"p": "spot"}


async def test_pods_whose_nodes_are_full_do_not_spin() -> None:
    queues = Queues(groups=({"spot": {"cpu": ["100"]}},))
    pods = [queues.pod(f"p{number}", cpu="3") for number in range(4)]
    await queues.schedule()
    queues.confirm()

    tries = [await queues.schedule() for _ in range(3)]

    assert len(queues.kinds()) == 2
    assert sum(tries) <= 2
    assert "Insufficient cpu" in queues.note(pods[3])
    await queues.end(pods[0])
    assert len(queues.kinds()) == 3


async def test_objects_that_come_later_let_pods_start() -> None:
    queues = Queues()
    lost, stopped = queues.pod("lost", "late"), queues.pod("stopped", "held")
    queues.put(a_local_queue("ns", "held", "a", stopPolicy="Hold"))
    await queues.schedule()

    assert 'share "LocalQueue/ns/late" cannot be used: it does not exist' in queues.note(lost)
    assert "LocalQueue held takes no pods: it is stopped" in queues.note(stopped)

    queues.put(a_local_queue("ns", "late", "a"))
    queues.put(a_local_queue("ns", "held", "a"))
    await queues.schedule()
    assert queues.kinds() == {"lost": "on-demand", "stopped": "on-demand"}


async def test_a_tenant_does_not_escape_with_what_he_may_edit() -> None:
    queues = Queues(groups=({"spot": {"cpu": ["2"]}},))
    pods = [queues.pod(f"p{number}") for number in range(3)]
    await queues.schedule()
    queues.confirm()

    edited = queues.engine.pods[pods[0].uid]
    labels = {api.QUEUE_LABEL: "elsewhere"}
    queues.under_test.see(newer(edited, labels=labels))
    queues.remove(LOCAL_QUEUE, "q", "ns")
    queues.put(a_flavor("further", {"kind": "further"}))
    queues.put(a_local_queue("ns", "q", "a"))
    await queues.schedule()

    assert queues.used() == {"spot/cpu": 2000}
    assert queues.kinds() == {"p0": "spot", "p1": "spot"}


async def test_a_label_of_nodes_that_a_new_flavor_names_is_read_of_what_runs() -> None:
    queues = Queues(groups=({"spot": {"cpu": ["4"]}, "zonal": {"cpu": ["4"]}},))
    queues.under_test.see(a_node("zonal-1", cpu="4", labels={"zone": "a"}))
    queues.pod("runs", node_name="zonal-1")
    assert queues.used() == {"spot/cpu": 1000}

    queues.put(a_flavor("zonal", {"zone": "a"}))

    assert queues.used() == {"zonal/cpu": 1000}


def test_without_the_argument_nothing_of_kueue_is_watched() -> None:
    assert CLUSTER_QUEUE not in CapacityScheduling().reads
    assert CLUSTER_QUEUE in WithKueue().reads
