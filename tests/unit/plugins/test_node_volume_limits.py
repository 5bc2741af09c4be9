"""NodeVolumeLimits: what is attached to a node already, what a pod would add, and how much a driver allows."""

from typing import Any

import numpy as np
import pytest

from plugins.volumes.limits.csi import VolumeError
from plugins.volumes.node_volume_limits import TOO_MANY, NodeVolumeLimits
from scheduler import framework as fw
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import Objects, a_handle, a_node, a_pod, started
from tests.unit.plugins.claims import RESOURCES, a_claim, a_class, a_driver, a_pod_with, a_volume
from tests.unit.plugins.cluster import a_cluster, every_row, refusals
from tests.unit.plugins.hints import NODE_ADDED, wakes
from tests.unit.plugins.storage import Storage, an_attachment, with_limits

DRIVER, EBS, PD = "disks.example.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io"
DISK: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


def csi(name: str, handle: str = "", driver: str = DRIVER) -> Any:
    return a_volume(name, csi={"driver": driver, "volumeHandle": handle or name})


def bound(name: str) -> list[Any]:
    """A claim and its volume of DRIVER."""
    return [a_claim(name, volume=f"pv-{name}"), csi(f"pv-{name}")]


def refused(table: NodeTable, pod: fw.Pod, *objects: Any) -> set[str]:
    found = refusals(started(NodeVolumeLimits(), Storage(table, *objects).handle), pod, table)
    assert set(found.values()) <= {TOO_MANY}
    return set(found)


def test_a_volume_that_is_there_already_counts_once() -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with("one", name="there")]})
    limits = [with_limits("a", {DRIVER: 1}), with_limits("b", {DRIVER: 0})]

    assert refused(table, a_pod_with("one"), *bound("one"), *limits) == {"b"}


@pytest.mark.parametrize(("limit", "looked_up"), [(1, {"one", "two"}), (2, {"two"})], ids=["near", "far"])
def test_what_pods_use_is_looked_up_only_on_nodes_near_their_limits(limit: int, looked_up: set[str]) -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with("one", name="there")]})
    limits = [with_limits(name, {DRIVER: limit}) for name in "ab"]
    objects = _Asked([*bound("one"), *bound("two"), *limits])

    refusals(started(NodeVolumeLimits(), a_handle(table, objects)), a_pod_with("two"), table)

    assert objects.claims == looked_up


class _Asked(Objects):
    """Notes which claims are asked for."""

    def __init__(self, objects: list[Any]) -> None:
        by_struct = {struct: [each for each in objects if type(each) is struct] for struct in RESOURCES}
        super().__init__({RESOURCES[struct]: each for struct, each in by_struct.items()})
        self.claims: set[str] = set()

    def get(self, resource: str, name: str, namespace: str = "") -> Any | None:
        if resource == fw.PERSISTENT_VOLUME_CLAIM:
            self.claims.add(name)
        return super().get(resource, name, namespace)


def test_a_driver_that_must_be_installed_is_asked_for_before_limits() -> None:
    nodes: dict[str, dict[str, int | None] | None] = {
        "with": {DRIVER: None},
        "full": {DRIVER: 0},
        "with another": {EBS: None},
        "without a CSINode": None,
    }
    table = a_cluster(*map(a_node, nodes))
    csi_nodes = [with_limits(name, limits) for name, limits in nodes.items() if limits is not None]
    storage = Storage(table, *bound("one"), *csi_nodes, a_driver(name=DRIVER, preventPodSchedulingIfMissing=True))
    plugin = started(NodeVolumeLimits(), storage.handle)
    absent = fw.unschedulable(f"{DRIVER} CSI driver is not installed on the node")

    assert refusals(plugin, a_pod_with("one"), table) == {
        "full": TOO_MANY,
        "with another": absent,
        "without a CSINode": absent,
    }
    storage.put(with_limits("with another", {DRIVER: 1}), with_limits("with", {}))
    assert refusals(plugin, a_pod_with("one"), table) == {
        "with": absent,
        "full": TOO_MANY,
        "without a CSINode": absent,
    }
    storage.put(a_driver(name=DRIVER, preventPodSchedulingIfMissing=False))
    assert set(refusals(plugin, a_pod_with("one"), table)) == {"full"}


@pytest.mark.parametrize(
    ("attachment", "too_many"),
    [
        pytest.param(an_attachment("x", "a", "pv-old", DRIVER), True, id="of no pod"),
        pytest.param(an_attachment("x", "a", "pv-one", DRIVER), False, id="of a pod that is there"),
        pytest.param(an_attachment("x", "a", None, DRIVER), False, id="of an inline volume"),
        pytest.param(an_attachment("x", "a", "pv-old", ""), False, id="without a driver"),
    ],
)
def test_what_is_attached_counts_whether_or_not_a_pod_uses_it(attachment: Any, too_many: bool) -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with("one", name="there")]})
    objects = [*bound("one"), *bound("two"), csi("pv-old"), with_limits("a", {DRIVER: 2}), attachment]

    assert refused(table, a_pod_with("two"), *objects) == ({"a"} if too_many else set())


def test_in_tree_volumes_are_their_drivers() -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with("one", name="there")]})
    volume = a_volume("pv", awsElasticBlockStore={"volumeID": "aws://zone-a/vol-1"})
    objects = [a_claim("one", volume="pv"), volume, with_limits("a", {EBS: 1}), with_limits("b", {EBS: 0})]

    assert refused(table, a_pod_with(**DISK), *objects) == {"b"}


def test_in_tree_volumes_count_only_where_there_is_a_csi_node() -> None:
    table = a_cluster(a_node("a"), a_node("b"))
    strange: dict[str, Any] = {"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Dedicated"}}

    assert refused(table, a_pod_with(**strange)) == set()
    with pytest.raises(VolumeError, match=r"converting volume\(other\) from inline to csi: kind\(Dedicated\)"):
        refused(table, a_pod_with(**strange), with_limits("a", {}))


def test_a_missing_claim_refuses_every_node() -> None:
    table = a_cluster(a_node("a"), a_node("b"))
    plugin = started(NodeVolumeLimits(), Storage(table, with_limits("a", {})).handle)

    found = refusals(plugin, a_pod_with(ephemeral=True), table)

    message = 'looking up PVC default/web-own: persistentvolumeclaim "web-own" not found'
    assert found == dict.fromkeys("ab", fw.unresolvable(message))


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods() -> None:
    table = a_cluster(a_node("a"), a_node("b"))
    own, others = (a_claim("web-own", class_name="c", owner=owner) for owner in ("web", "somebody"))
    rest = [a_class("c", provisioner=DRIVER), with_limits("a", {DRIVER: 0})]

    assert refused(table, a_pod_with(ephemeral=True), own, *rest) == {"a"}
    with pytest.raises(VolumeError, match=r"PVC default/web-own was not created for pod default/web \(pod is not own"):
        refused(table, a_pod_with(ephemeral=True), others, *rest)


def test_a_pod_on_a_node_that_cannot_be_counted_is_a_fault_there_and_nowhere_else() -> None:
    there = a_pod_with(ephemeral=True, name="there")
    objects = [a_claim("there-own", owner="somebody"), *bound("one")]
    limited = [with_limits(name, {DRIVER: 5}) for name in "abc"]
    table = a_cluster(*map(a_node, "abc"), pods={"b": [there]})
    plugin = started(NodeVolumeLimits(), Storage(table, *objects, *limited).handle)

    with pytest.raises(VolumeError, match="there-own"):
        plugin.filter_nodes(fw.CycleState(), a_pod_with("one"), table, every_row(table))
    assert plugin.filter_nodes(fw.CycleState(), a_pod_with("one"), table, np.array([0, 2])) is None


@pytest.mark.parametrize("pod", [a_pod(), a_pod_with(emptyDir={}), a_pod_with(rbd={"monitors": ["m"], "image": "i"})])
def test_pods_with_nothing_to_attach_are_skipped(pod: fw.Pod) -> None:
    plugin = started(NodeVolumeLimits(), Storage(a_cluster()).handle)

    assert plugin.pre_filter(fw.CycleState(), pod, a_cluster()) == fw.SKIP


def test_in_a_what_if_the_pods_of_that_moment_count() -> None:
    there = a_pod_with("one", name="there")
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [there]})
    storage = Storage(table, *bound("one"), *bound("two"), with_limits("a", {DRIVER: 1}))
    plugin, pod, row = started(NodeVolumeLimits(), storage.handle), a_pod_with("two"), np.array([0])
    assert set(refusals(plugin, pod, table)) == {"a"}

    with table.what_if(0, remove=[there]):
        codes = plugin.filter_nodes(fw.CycleState(), pod, table, row)

    assert codes is not None
    assert codes.tolist() == [0]
    assert set(refusals(plugin, pod, table)) == {"a"}


# Hints.


@pytest.mark.parametrize(
    ("nominated", "certain"),
    [
        pytest.param([a_pod_with("x", name="g")], True, id="room for all"),
        pytest.param([a_pod_with("x", name="g"), a_pod_with("y", name="h")], False, id="one too many"),
        pytest.param([a_pod("g")], True, id="without volumes"),
        pytest.param([a_pod_with(name="g", **DISK)], False, id="with an odd volume"),
    ],
)
def test_nominated_pods_are_no_obstacle_where_there_is_room_for_all_their_volumes(
    nominated: list[fw.Pod], certain: bool
) -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with("one", name="there")]})
    limits = with_limits("a", {DRIVER: 3})
    plugin = started(NodeVolumeLimits(), Storage(table, *bound("one"), *bound("two"), limits).handle)
    row = table.row_of("a")
    assert row is not None

    found = plugin.still_admits(
        fw.CycleState(), a_pod_with("two"), fw.NominatedPods({row: nominated}, table.size), np.array([row])
    )

    assert found.tolist() == [certain]


def hinted(place: int) -> Any:
    return started(NodeVolumeLimits(), Storage(a_cluster()).handle).events_to_register()[place].hint


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        pytest.param({DRIVER: 1}, {DRIVER: 2}, fw.QueueingHint.QUEUE, id="raised"),
        pytest.param({DRIVER: 2}, {DRIVER: 1}, fw.QueueingHint.SKIP, id="lowered"),
        pytest.param({DRIVER: 1}, {}, fw.QueueingHint.QUEUE, id="the driver is gone"),
        pytest.param({DRIVER: None}, {}, fw.QueueingHint.SKIP, id="a driver without limit is gone"),
    ],
)
def test_a_higher_limit_helps(old: dict[str, int | None], new: dict[str, int | None], answer: fw.QueueingHint) -> None:
    assert hinted(1)(a_pod(), with_limits("a", old), with_limits("a", new)) is answer


@pytest.mark.parametrize("event", [NODE_ADDED, fw.ClusterEvent(fw.CSI_NODE, fw.Action.DELETE)])
def test_a_node_without_a_csi_node_helps(event: fw.ClusterEvent) -> None:
    plugin = started(NodeVolumeLimits(), Storage(a_cluster()).handle)

    assert wakes(plugin, a_pod_with("one"), event, with_limits("a", {DRIVER: 1}), None)


@pytest.mark.parametrize("new", [None, a_driver(name=DRIVER)], ids=["deleted", "changed"])
def test_a_driver_that_need_not_be_installed_any_more_helps(new: Any) -> None:
    plugin = started(NodeVolumeLimits(), Storage(a_cluster()).handle)
    event = fw.ClusterEvent(fw.CSI_DRIVER, fw.Action.UPDATE_OTHER if new else fw.Action.DELETE)

    assert wakes(plugin, a_pod_with("one"), event, a_driver(name=DRIVER, preventPodSchedulingIfMissing=True), new)
    assert not wakes(plugin, a_pod_with("one"), event, a_driver(name=DRIVER), new)


def test_a_pod_with_volumes_that_leaves_its_node_helps() -> None:
    on_node, nowhere = a_pod_with("one").bound_to("a"), a_pod_with("one")

    assert hinted(2)(a_pod(), on_node, None) is fw.QueueingHint.QUEUE
    assert hinted(2)(a_pod(), nowhere, None) is fw.QueueingHint.SKIP
    assert hinted(2)(a_pod(), a_pod(node_name="a"), None) is fw.QueueingHint.SKIP


def test_a_claim_helps_the_pod_that_names_it_or_for_which_it_is_made() -> None:
    assert hinted(3)(a_pod_with("one"), None, a_claim("one")) is fw.QueueingHint.QUEUE
    assert hinted(3)(a_pod_with(ephemeral=True), None, a_claim("web-own")) is fw.QueueingHint.QUEUE
    assert hinted(3)(a_pod_with("one"), None, a_claim("two")) is fw.QueueingHint.SKIP


def test_a_volume_that_is_detached_helps_pods_that_may_need_its_place() -> None:
    gone = an_attachment("x", "a", "pv", EBS)

    assert hinted(4)(a_pod_with("one"), gone, None) is fw.QueueingHint.QUEUE
    assert hinted(4)(a_pod_with(**DISK), gone, None) is fw.QueueingHint.QUEUE
    assert hinted(4)(a_pod_with(cinder={"volumeID": "c"}), gone, None) is fw.QueueingHint.SKIP
    assert hinted(4)(a_pod_with(ephemeral=True), gone, None) is fw.QueueingHint.SKIP
    assert hinted(4)(a_pod(), gone, None) is fw.QueueingHint.SKIP
