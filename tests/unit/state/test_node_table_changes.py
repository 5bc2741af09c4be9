"""What the table reports as changed, by aspect and row."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest

from scheduler.api.objects import Cinder, ContainerPort, Node, NodeCondition, PodStatus, Volume
from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.nodes import Aspect
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import GPU, LOCKED, a_table, positions, with_ports

EVERY = ~Aspect(0)
DISK = Volume(name="disk", cinder=Cinder(volume_id="c"))
STARTED = PodStatus(start_time=datetime(2026, 1, 1, tzinfo=UTC))
ON_PODS = Aspect.REQUESTED | Aspect.PODS | Aspect.STARTS


def changes(table: NodeTable, since: Mapping[Aspect, int]) -> dict[Aspect, set[int] | None]:
    """Which rows each aspect reports; aspects without news are left out, and None means any row."""
    reported = {aspect: table.change_log(aspect).since(position) for aspect, position in since.items()}
    return {
        aspect: None if rows is None else set(rows) for aspect, rows in reported.items() if rows is None or list(rows)
    }


def changed_by(table: NodeTable, change: Callable[[], object]) -> dict[Aspect, set[int] | None]:
    before = positions(table)
    change()
    return changes(table, before)


def on_one_row(aspects: Aspect, row: int) -> dict[Aspect, set[int] | None]:
    return {aspect: {row} for aspect in aspects}


def test_a_new_node_changes_every_aspect_of_its_row() -> None:
    table = a_table(a_node("a"))
    before = positions(table)

    row = table.set_node(a_node("b"))

    assert changes(table, before) == on_one_row(EVERY, row)


def test_a_heartbeat_changes_the_node_alone() -> None:
    table = a_table(
        a_node("a", labels={"zone": "1"}, taints=[LOCKED], images={"app:1": 5}, allocatable={GPU: "1"}), a_node("b")
    )
    before = positions(table)
    node = a_node("a", labels={"zone": "1"}, taints=[LOCKED], images={"app:1": 5}, allocatable={GPU: "1"})

    table.set_node(
        msgspec.structs.replace(
            node, status=msgspec.structs.replace(node.status, conditions=(NodeCondition(type="Ready", status="True"),))
        )
    )

    assert changes(table, before) == on_one_row(Aspect.NODE, 0)


@pytest.mark.parametrize(
    ("newer", "aspects"),
    [
        pytest.param(a_node("b", cpu="8"), Aspect.ALLOCATABLE, id="more cpu"),
        pytest.param(a_node("b", pods=1), Aspect.ALLOCATABLE, id="fewer pods"),
        pytest.param(a_node("b", allocatable={GPU: "2"}), Aspect.ALLOCATABLE, id="a resource that no node had"),
        pytest.param(a_node("b", cpu="4000m"), Aspect(0), id="the same, written otherwise"),
        pytest.param(a_node("b", labels={"zone": "1"}), Aspect.LABELS, id="a label"),
        pytest.param(a_node("b", taints=[LOCKED]), Aspect.TAINTS, id="a taint"),
        pytest.param(a_node("b", unschedulable=True), Aspect.TAINTS, id="cordoned"),
    ],
)
def test_a_new_version_changes_the_aspects_in_which_it_differs(newer: Node, aspects: Aspect) -> None:
    table = a_table(a_node("a"), a_node("b"))
    there = changed_by(table, lambda: table.set_node(newer))
    back = changed_by(table, lambda: table.set_node(a_node("b")))

    assert there == back == on_one_row(aspects | Aspect.NODE, 1)


def test_a_node_that_loses_a_resource_which_others_have_is_changed() -> None:
    table = a_table(a_node("a", allocatable={GPU: "1"}), a_node("b", allocatable={GPU: "1"}))

    assert changed_by(table, lambda: table.set_node(a_node("b"))) == on_one_row(Aspect.ALLOCATABLE | Aspect.NODE, 1)


def test_an_image_that_comes_or_goes_may_change_every_row() -> None:
    table = a_table(a_node("a", images={"app:1": 5}), a_node("b"))
    there = changed_by(table, lambda: table.set_node(a_node("b", images={"app:1": 5})))
    back = changed_by(table, lambda: table.set_node(a_node("b")))

    assert there == back == {Aspect.NODE: {1}, Aspect.IMAGES: None}


def test_an_image_that_gets_the_size_of_its_last_reporter_changes_by_a_heartbeat() -> None:
    table = a_table(a_node("a", images={"app:1": 100}), a_node("b", images={"app:1": 200}))
    table.remove_node("a")
    before = positions(table)

    table.set_node(a_node("b", images={"app:1": 200}))
    first = changes(table, before)
    before = positions(table)
    table.set_node(a_node("b", images={"app:1": 200}))
    second = changes(table, before)

    assert table.images["app:1"].size == 200
    assert first == {Aspect.NODE: {1}, Aspect.IMAGES: None}
    assert second == {Aspect.NODE: {1}}


def test_a_node_that_comes_changes_the_share_of_every_image() -> None:
    table = a_table(a_node("a", images={"app:1": 5}))

    assert changed_by(table, lambda: table.set_node(a_node("b"))) == {**on_one_row(EVERY, 1), Aspect.IMAGES: None}


def test_a_node_that_goes_changes_the_share_of_every_image_and_all_of_its_row() -> None:
    table = a_table(a_node("a", images={"app:1": 5}), a_node("b"))

    assert changed_by(table, lambda: table.remove_node("b")) == {**on_one_row(EVERY, 1), Aspect.IMAGES: None}


def test_a_placeholder_that_becomes_a_node_changes_every_aspect() -> None:
    table = a_table(a_node("a"))
    table.add_pod("late", a_pod())

    assert changed_by(table, lambda: table.set_node(a_node("late"))) == on_one_row(EVERY, 1)


@pytest.mark.parametrize(
    ("pod", "aspects"),
    [
        pytest.param(a_pod(), ON_PODS, id="a pod"),
        pytest.param(with_ports("p", ContainerPort(host_port=80)), ON_PODS | Aspect.PORTS, id="one with host ports"),
        pytest.param(with_ports("p", ContainerPort(container_port=80)), ON_PODS, id="one with ports of its own"),
        pytest.param(a_pod(volumes=[DISK]), ON_PODS | Aspect.VOLUMES, id="one with a disk"),
        pytest.param(a_pod(volumes=[Volume(name="tmp")]), ON_PODS, id="one with a volume of its own"),
    ],
)
def test_a_pod_that_comes_or_goes_changes_what_is_requested(pod: Pod, aspects: Aspect) -> None:
    table = a_table(a_node("a"), a_node("b"))
    there = changed_by(table, lambda: table.add_pod("b", pod))
    back = changed_by(table, lambda: table.remove_pod("b", pod))

    assert there == back == on_one_row(aspects, 1)


@pytest.mark.parametrize(
    ("newer", "aspects"),
    [
        pytest.param(a_pod(requests={"cpu": "1"}), Aspect(0), id="a status that says nothing new"),
        pytest.param(a_pod(requests={"cpu": "1"}, labels={"app": "web"}), Aspect.PODS, id="a label"),
        pytest.param(a_pod(requests={"cpu": "2"}), ON_PODS, id="a resize"),
        pytest.param(a_pod(requests={"cpu": "1"}, status=STARTED), Aspect.STARTS, id="a start"),
        pytest.param(
            a_pod(requests={"cpu": "1"}, ports=[ContainerPort(host_port=80)]), ON_PODS | Aspect.PORTS, id="a host port"
        ),
    ],
)
def test_a_new_version_of_a_pod_changes_the_aspects_in_which_it_differs(newer: Pod, aspects: Aspect) -> None:
    table = a_table(a_node("a"), a_node("b"))
    old = a_pod(requests={"cpu": "1"})
    table.add_pod("b", old)
    there = changed_by(table, lambda: table.replace_pod("b", old, newer))
    back = changed_by(table, lambda: table.replace_pod("b", newer, old))

    assert there == back == on_one_row(aspects, 1)


def test_a_pod_that_is_being_deleted_is_a_change_of_pods_and_of_who_is_evicted_first() -> None:
    table = a_table(a_node("a"))
    old = a_pod()
    new = msgspec.structs.replace(
        old, metadata=msgspec.structs.replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    table.add_pod("a", old)

    assert changed_by(table, lambda: table.replace_pod("a", old, new)) == {
        **on_one_row(Aspect.PODS, 0),
        **on_one_row(Aspect.STARTS, 0),
    }


def test_a_log_holds_at_least_one_change_of_every_row() -> None:
    table = NodeTable(capacity=1)
    before = positions(table)

    for i in range(5000):
        table.set_node(Node(metadata=a_node(f"n{i}").metadata))

    assert changes(table, before)[Aspect.NAME] == set(range(5000))
    assert np.count_nonzero(table.in_use) == 5000
