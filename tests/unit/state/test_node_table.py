from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from scheduler.api.objects import ContainerImage, ContainerPort, Node, NodeCondition, NodeStatus, Taint
from scheduler.api.pod import Pod
from scheduler.framework.nodes import Aspect
from scheduler.framework.testing import a_node, a_pod
from scheduler.state.labels import MAX_KEYS
from scheduler.state.node_table import NodeTable

GPU = "example.com/gpu"
RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", GPU)
EVERY = ~Aspect(0)
ON_PODS = Aspect.REQUESTED | Aspect.PODS
LOCKED = Taint(key="locked", effect="NoSchedule")
SLOW = Taint(key="slow", effect="PreferNoSchedule")
MOST = 2**63 - 1


def a_table(*nodes: Node, capacity: int = 4) -> NodeTable:
    table = NodeTable(capacity)
    for node in nodes:
        table.set_node(node)
    return table


def row_of(table: NodeTable, name: str) -> int:
    row = table.row_of(name)
    assert row is not None
    return row


def with_ports(name: str, *ports: ContainerPort) -> Pod:
    return a_pod(name, ports=ports)


def positions(table: NodeTable) -> dict[Aspect, int]:
    return {aspect: table.change_log(aspect).position for aspect in Aspect}


def changes(table: NodeTable, since: Mapping[Aspect, int]) -> dict[Aspect, set[int] | None]:
    """Which rows each aspect reports; aspects without news are left out, and None means any row."""
    told = {aspect: table.change_log(aspect).since(position) for aspect, position in since.items()}
    return {aspect: None if rows is None else set(rows) for aspect, rows in told.items() if rows is None or list(rows)}


def on_one_row(aspects: Aspect, row: int) -> dict[Aspect, set[int] | None]:
    return {aspect: {row} for aspect in aspects}


def everything(table: NodeTable) -> dict[str, Any]:
    """All that a plugin can read, and where the change logs stand."""
    table.check_invariants()
    return {
        "names": list(table.names()),
        "in use": table.in_use.tolist(),
        "count": table.count,
        "pod count": table.pod_count.tolist(),
        "allowed": table.allowed_pods.tolist(),
        "unschedulable": table.unschedulable.tolist(),
        "allocatable": {name: table.allocatable(name).tolist() for name in RESOURCES},
        "requested": {name: table.requested(name).tolist() for name in RESOURCES},
        "non zero": {name: table.non_zero_requested(name).tolist() for name in ("cpu", "memory")},
        "taints": {taint: column.tolist() for taint, column in table.taints.items()},
        "ports": msgspec.json.decode(msgspec.json.encode({str(key): ips for key, ips in table.host_ports.items()})),
        "images": {name: (image.size, set(image.rows)) for name, image in table.images.items()},
        "pods": {name: set(table.pods_on(name)) for name in table.node_names()},
        "positions": positions(table),
    }


# Rows.


def test_an_empty_table_has_no_rows() -> None:
    table = NodeTable()

    table.check_invariants()
    assert (table.size, table.count, list(table.names())) == (0, 0, [])
    assert len(table.in_use) == len(table.allocatable("cpu")) == len(table.label_codes("zone")) == 0


def test_each_node_gets_a_row_of_its_own() -> None:
    table = NodeTable()

    rows = [table.set_node(a_node(name)) for name in ("a", "b", "c")]

    table.check_invariants()
    assert rows == [0, 1, 2]
    assert table.names() == ["a", "b", "c"]
    assert table.in_use.tolist() == [True, True, True]
    assert (table.size, table.count) == (3, 3)


def test_a_new_version_of_a_node_keeps_its_row() -> None:
    table = a_table(a_node("a"), a_node("b"))
    newer = a_node("a", cpu="8")

    row = table.set_node(newer)

    table.check_invariants()
    assert row == 0
    assert table.node("a") is newer
    assert (table.size, table.count) == (2, 2)


def test_a_removed_node_without_pods_frees_its_row_for_the_next_one() -> None:
    table = a_table(
        a_node("a", labels={"zone": "1"}, taints=[LOCKED], unschedulable=True, allocatable={GPU: "2"}), a_node("b")
    )

    table.remove_node("a")
    row = table.set_node(a_node("c", cpu="1"))

    table.check_invariants()
    assert row == 0
    assert table.names() == ["c", "b"]
    assert (table.size, table.count) == (2, 2)
    assert table.unschedulable.tolist() == [False, False]
    assert table.allocatable(GPU).tolist() == [0, 0]
    assert table.allocatable("cpu").tolist() == [1000, 4000]
    assert table.label_codes("zone").tolist() == [0, 0]
    assert not table.taints


def test_a_free_row_says_nothing() -> None:
    table = a_table(a_node("a", labels={"zone": "1"}, taints=[LOCKED], unschedulable=True, images={"app:1": 5}))

    table.remove_node("a")

    table.check_invariants()
    assert table.names() == [""]
    assert table.in_use.tolist() == [False]
    assert table.allowed_pods.tolist() == [0]
    assert table.unschedulable.tolist() == [False]
    assert not table.images
    assert table.row_of("a") is None
    assert table.node("a") is None
    assert table.node_names() == []
    assert table.count == 0
    with pytest.raises(KeyError, match="row 0 is not in use"):
        table.info(0)


def test_removing_an_unknown_node_does_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    table.remove_node("stranger")

    assert everything(table) == before


def test_removing_a_node_twice_does_nothing_more() -> None:
    table = a_table(a_node("a"), a_node("b"))
    table.add_pod("a", a_pod())
    table.remove_node("a")
    before = everything(table)

    table.remove_node("a")

    assert everything(table) == before


def test_an_unreadable_node_changes_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.set_node(a_node("a", cpu="lots", labels={"zone": "1"}))
    with pytest.raises(ValueError, match="lots"):
        table.set_node(a_node("b", cpu="lots"))

    assert everything(table) == before
    assert table.size == 1


# Placeholders.


def test_a_pod_on_an_unknown_node_waits_for_it_in_a_placeholder() -> None:
    table = NodeTable()
    pod = a_pod(requests={"cpu": "1"})

    table.add_pod("late", pod)

    table.check_invariants()
    assert (table.size, table.count) == (1, 0)
    assert table.in_use.tolist() == [False]
    assert table.names() == [""]
    assert table.row_of("late") is None
    assert table.node("late") is None
    assert list(table.pods_on("late")) == [pod]


def test_a_late_node_finds_its_pods_counted() -> None:
    table = NodeTable()
    table.add_pod("late", a_pod(requests={"cpu": "1", GPU: "1"}))

    row = table.set_node(a_node("late"))

    table.check_invariants()
    assert row == 0
    assert table.info(row).requested == {"cpu": 1000, GPU: 1}
    assert table.pod_count.tolist() == [1]
    assert (table.size, table.count) == (1, 1)


def test_pods_of_a_removed_node_stay_counted_until_they_go() -> None:
    table = a_table(a_node("a"), a_node("b"))
    first, second = a_pod("p", requests={"cpu": "1"}), a_pod("q", requests={"cpu": "2"})
    table.add_pod("a", first)
    table.add_pod("a", second)

    table.remove_node("a")
    table.remove_pod("a", first)

    table.check_invariants()
    assert table.row_of("a") is None
    assert list(table.pods_on("a")) == [second]
    assert table.requested("cpu").tolist() == [2000, 0]


def test_the_last_pod_of_a_placeholder_frees_its_row() -> None:
    table = a_table(a_node("a"))
    pod = a_pod(requests={"cpu": "1"})
    table.add_pod("a", pod)
    table.remove_node("a")

    table.remove_pod("a", pod)
    row = table.set_node(a_node("c"))

    table.check_invariants()
    assert row == 0
    assert table.pods_on("a") == ()
    assert table.requested("cpu").tolist() == [0]


def test_the_last_pod_of_a_node_does_not_free_its_row() -> None:
    table = a_table(a_node("a"))
    pod = a_pod()
    table.add_pod("a", pod)

    table.remove_pod("a", pod)

    table.check_invariants()
    assert table.row_of("a") == 0


def test_a_node_that_comes_back_gets_its_row_and_pods_back() -> None:
    table = a_table(a_node("a"), a_node("b"))
    pod = a_pod()
    table.add_pod("b", pod)
    table.remove_node("b")
    table.set_node(a_node("c"))

    row = table.set_node(a_node("b", labels={"zone": "2"}))

    table.check_invariants()
    assert row == 1
    assert list(table.info(row).pods) == [pod]
    assert table.info(row).labels == {"zone": "2"}


def test_nobody_is_on_a_node_that_was_never_heard_of() -> None:
    assert NodeTable().pods_on("stranger") == ()


# Growth.


def test_a_table_that_grows_loses_nothing() -> None:
    table = NodeTable(capacity=1)
    assert table.label_values("zone") == [""]

    for i in range(9):
        zone = {"zone": str(i % 2)}
        table.set_node(
            a_node(
                f"n{i}",
                cpu=i,
                pods=i,
                labels=zone,
                taints=[LOCKED] if i % 3 == 0 else [],
                unschedulable=i == 4,
                allocatable={GPU: i} if i == 2 else {},
            )
        )
        table.add_pod(f"n{i}", a_pod(f"p{i}", requests={"memory": i}))

    table.check_invariants()
    assert (table.size, table.count) == (9, 9)
    assert table.in_use.all()
    assert table.allocatable("cpu").tolist() == [1000 * i for i in range(9)]
    assert table.allocatable(GPU).tolist() == [0, 0, 2, 0, 0, 0, 0, 0, 0]
    assert table.allowed_pods.tolist() == list(range(9))
    assert table.pod_count.tolist() == [1] * 9
    assert table.requested("memory").tolist() == list(range(9))
    assert table.unschedulable.tolist() == [i == 4 for i in range(9)]
    assert table.taints[LOCKED].tolist() == [i % 3 == 0 for i in range(9)]
    values = table.label_values("zone")
    assert [values[code] for code in table.label_codes("zone").tolist()] == [str(i % 2) for i in range(9)]


def test_all_columns_have_the_length_of_the_table() -> None:
    table = a_table(*(a_node(f"n{i}", taints=[SLOW]) for i in range(5)))
    table.add_pod("late", a_pod())

    columns = [
        table.in_use,
        table.unschedulable,
        table.pod_count,
        table.allowed_pods,
        table.allocatable("cpu"),
        table.allocatable("unheard/of"),
        table.requested("cpu"),
        table.requested("unheard/of"),
        table.non_zero_requested("cpu"),
        table.label_codes("zone"),
        table.taints[SLOW],
        table.names(),
    ]

    assert {len(column) for column in columns} == {table.size} == {6}


def test_a_view_of_a_node_outlives_the_growth_of_the_table() -> None:
    table = a_table(a_node("a", cpu="2"), capacity=1)
    info = table.info(0)

    table.set_node(a_node("b"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))

    assert info.allocatable["cpu"] == 2000
    assert info.requested == {"cpu": 1000}


def test_a_placeholder_may_be_what_makes_the_table_grow() -> None:
    table = a_table(a_node("a"), capacity=1)

    table.add_pod("late", a_pod(requests={"cpu": "1"}))

    table.check_invariants()
    assert table.requested("cpu").tolist() == [0, 1000]


# What a node says.


def test_a_node_fills_its_columns() -> None:
    table = a_table(a_node("a", cpu="1500m", memory="1Gi", pods=7, allocatable={GPU: "2"}, unschedulable=True))

    info = table.info(0)

    assert info.allocatable == {"cpu": 1500, "memory": 2**30, "pods": 7, GPU: 2}
    assert table.allowed_pods.tolist() == [7]
    assert table.unschedulable.tolist() == [True]
    assert info.unschedulable
    assert (info.row, info.name, info.node) == (0, "a", table.node("a"))


def test_a_new_version_of_a_node_replaces_all_of_its_facts() -> None:
    table = a_table(
        a_node(
            "a", cpu="8", allocatable={GPU: "2"}, labels={"zone": "1", "old": ""}, taints=[LOCKED], unschedulable=True
        ),
    )
    table.label_codes("zone")

    table.set_node(a_node("a", cpu="4", pods=5, labels={"zone": "2"}, taints=[SLOW]))

    table.check_invariants()
    info = table.info(0)
    assert info.allocatable == {"cpu": 4000, "memory": 16 * 2**30, "pods": 5}
    assert table.allowed_pods.tolist() == [5]
    assert table.unschedulable.tolist() == [False]
    assert info.labels == {"zone": "2"}
    assert info.taints == (SLOW,)
    assert table.taints.keys() == {SLOW}
    assert table.label_values("zone")[table.label_codes("zone")[0]] == "2"


def test_a_resource_that_nobody_has_is_zero_everywhere_and_cannot_be_written() -> None:
    table = a_table(a_node("a"), a_node("b"))

    column = table.allocatable("example.com/unheard-of")

    assert column.tolist() == [0, 0]
    assert not column.flags.writeable


def test_a_node_without_a_status_has_room_for_nothing() -> None:
    bare = msgspec.structs.replace(a_node("a"), status=NodeStatus())

    table = a_table(bare)

    table.check_invariants()
    assert table.info(0).allocatable == {}
    assert table.allowed_pods.tolist() == [0]


# Labels.


def test_equal_labels_have_equal_codes_and_a_missing_label_has_none() -> None:
    table = a_table(*(a_node(f"n{i}", labels=labels) for i, labels in enumerate([{"z": "a"}, {"z": "b"}, {"z": "a"}])))
    table.set_node(a_node("bare"))

    codes = table.label_codes("z").tolist()

    assert codes[0] == codes[2] != codes[1]
    assert codes[3] == 0
    assert [table.label_values("z")[code] for code in codes[:3]] == ["a", "b", "a"]


def test_a_label_with_an_empty_value_is_a_label() -> None:
    table = a_table(a_node("a", labels={"gpu": ""}), a_node("b"))

    codes = table.label_codes("gpu").tolist()

    assert codes[0] != 0
    assert table.label_values("gpu")[codes[0]] == ""
    assert codes[1] == 0


def test_a_label_column_follows_the_nodes_after_it_was_asked_for() -> None:
    table = a_table(a_node("a", labels={"zone": "1"}), a_node("b", labels={"zone": "2"}), capacity=2)
    first = table.label_codes("zone").tolist()

    table.set_node(a_node("c", labels={"zone": "2"}))  # beyond the capacity
    table.set_node(a_node("a", labels={"zone": "3"}))
    table.set_node(a_node("d", labels={"disk": "ssd"}))
    table.remove_node("b")

    codes, values = table.label_codes("zone").tolist(), table.label_values("zone")
    assert [values[code] for code in codes] == ["3", "", "2", ""]
    assert codes[1] == codes[3] == 0
    assert codes[2] == first[1]
    assert codes.count(0) == 2


def test_a_key_that_is_asked_for_later_is_read_from_all_nodes() -> None:
    table = a_table(a_node("a", labels={"zone": "1", "disk": "ssd"}), a_node("b"), a_node("c", labels={"disk": "hdd"}))
    table.label_codes("zone")
    table.add_pod("late", a_pod())
    table.remove_node("b")

    codes = table.label_codes("disk").tolist()

    assert [table.label_values("disk")[code] for code in codes] == ["ssd", "", "hdd", ""]


def test_pods_cannot_make_us_keep_more_than_a_limited_number_of_keys() -> None:
    table = a_table(a_node("a", labels={"zone": "1"}))

    for i in range(MAX_KEYS + 5):
        table.label_codes(f"key-{i}")

    assert len(table._labels._columns) <= MAX_KEYS
    assert table.label_values("zone")[table.label_codes("zone")[0]] == "1"


# Taints.


def test_a_taint_is_listed_with_where_it_is_while_anybody_has_it() -> None:
    table = a_table(a_node("a", taints=[LOCKED, SLOW]), a_node("b", taints=[SLOW]))
    both = {taint: column.tolist() for taint, column in table.taints.items()}

    table.set_node(a_node("a", taints=[SLOW]))

    table.check_invariants()
    assert both == {LOCKED: [True, False], SLOW: [True, True]}
    assert {taint: column.tolist() for taint, column in table.taints.items()} == {SLOW: [True, True]}


def test_a_taint_that_is_listed_twice_goes_away_once() -> None:
    table = a_table(a_node("a", taints=[LOCKED, LOCKED]), a_node("b"))

    table.set_node(a_node("a"))

    table.check_invariants()
    assert not table.taints


def test_taints_of_a_removed_node_go_even_if_its_pods_stay() -> None:
    table = a_table(a_node("a", taints=[LOCKED]))
    table.add_pod("a", a_pod())

    table.remove_node("a")

    table.check_invariants()
    assert not table.taints


# Host ports.


def test_host_ports_are_counted_by_address_and_row() -> None:
    table = a_table(a_node("a"), a_node("b"))

    table.add_pod("a", with_ports("p", ContainerPort(host_port=80), ContainerPort(host_port=53, protocol="UDP")))
    table.add_pod("b", with_ports("q", ContainerPort(host_port=80, host_ip="10.0.0.1")))
    table.add_pod("b", with_ports("r", ContainerPort(host_port=80, host_ip="0.0.0.0"), ContainerPort(host_port=80)))

    assert table.host_ports == {
        ("TCP", 80): {"0.0.0.0": {0: 1, 1: 2}, "10.0.0.1": {1: 1}},
        ("UDP", 53): {"0.0.0.0": {0: 1}},
    }


def test_a_port_is_free_when_the_last_pod_that_held_it_is_gone() -> None:
    table = a_table(a_node("a"))
    pods = [with_ports(name, ContainerPort(host_port=80)) for name in ("p", "q")]
    for pod in pods:
        table.add_pod("a", pod)

    table.remove_pod("a", pods[0])
    left = {key: {ip: dict(rows) for ip, rows in ips.items()} for key, ips in table.host_ports.items()}
    table.remove_pod("a", pods[1])

    assert left == {("TCP", 80): {"0.0.0.0": {0: 1}}}
    assert table.host_ports == {}


# Images.


def test_an_image_has_the_size_that_its_first_reporter_gave() -> None:
    table = a_table(a_node("a", images={"app:1": 100}), a_node("b", images={"app:1": 200}))

    table.remove_node("a")

    image = table.images["app:1"]
    assert (image.size, set(image.rows)) == (100, {1})


def test_an_image_that_nobody_has_any_more_is_forgotten_with_its_size() -> None:
    table = a_table(a_node("a", images={"app:1": 100}))
    table.set_node(a_node("a"))
    gone = dict(table.images)

    table.set_node(a_node("b", images={"app:1": 200}))

    assert gone == {}
    assert (table.images["app:1"].size, set(table.images["app:1"].rows)) == (200, {1})


def test_an_image_is_known_by_all_of_its_names() -> None:
    image = ContainerImage(names=("app:1", "app@sha256:1"), size_bytes=100)
    node = msgspec.structs.replace(a_node("a"), status=NodeStatus(images=(image, ContainerImage(size_bytes=5))))

    table = a_table(node)

    assert {name: set(image.rows) for name, image in table.images.items()} == {"app:1": {0}, "app@sha256:1": {0}}


def test_a_heartbeat_leaves_the_images_as_they_are() -> None:
    table = a_table(a_node("a", images={"app:1": 100}), a_node("b", images={"app:1": 200}))

    table.set_node(a_node("a", images={"app:1": 100}))

    assert (table.images["app:1"].size, set(table.images["app:1"].rows)) == (100, {0, 1})


# Pods.


def test_requests_add_up_and_go_again() -> None:
    table = a_table(a_node("a"))
    first = a_pod("p", requests={"cpu": "1", "memory": "1Gi", GPU: "1"})
    second = a_pod("q", requests={"cpu": "500m"})

    table.add_pod("a", first)
    table.add_pod("a", second)
    full = dict(table.info(0).requested)
    table.remove_pod("a", first)

    table.check_invariants()
    assert full == {"cpu": 1500, "memory": 2**30, GPU: 1}
    assert table.info(0).requested == {"cpu": 500}
    assert table.pod_count.tolist() == [1]


def test_scoring_counts_something_for_a_pod_that_asks_for_nothing() -> None:
    table = a_table(a_node("a"))

    table.add_pod("a", a_pod())

    table.check_invariants()
    assert table.requested("cpu").tolist() == [0]
    assert table.non_zero_requested("cpu").tolist() == [100]
    assert table.non_zero_requested("memory").tolist() == [200 * 2**20]


def test_a_pod_is_not_counted_twice_on_one_node() -> None:
    table = a_table(a_node("a"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))
    before = everything(table)

    with pytest.raises(ValueError, match="already"):
        table.add_pod("a", a_pod(requests={"cpu": "1"}))

    assert everything(table) == before


def test_an_unreadable_pod_changes_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.add_pod("a", a_pod(requests={"cpu": "lots"}))
    with pytest.raises(ValueError, match="lots"):
        table.add_pod("stranger", a_pod(requests={"cpu": "lots"}))

    assert everything(table) == before
    assert table.size == 1


def test_sums_wrap_around_as_in_go_and_come_back() -> None:
    table = a_table(a_node("a"))
    pods = [a_pod(name, requests={"memory": str(MOST)}) for name in ("p", "q", "r")]
    sums = []

    for pod in pods:
        table.add_pod("a", pod)
        table.check_invariants()
        sums.append(table.requested("memory").item(0))
    for pod in pods[:2]:
        table.remove_pod("a", pod)
        table.check_invariants()
        sums.append(table.requested("memory").item(0))

    assert sums == [MOST, -2, MOST - 2, -2, MOST]
    assert table.non_zero_requested("memory").tolist() == [MOST]


def test_a_new_version_that_asks_for_the_same_takes_the_place_of_the_old_one() -> None:
    table = a_table(a_node("a"))
    old, new = a_pod(requests={"cpu": "1"}), a_pod(requests={"cpu": "1"}, labels={"app": "web"})
    table.add_pod("a", old)

    table.replace_pod("a", old, new)

    table.check_invariants()
    assert list(table.pods_on("a")) == [new]
    assert table.requested("cpu").tolist() == [1000]


@pytest.mark.parametrize("on_placeholder", [False, True])
def test_a_new_version_that_asks_for_something_else_is_counted_anew(on_placeholder: bool) -> None:
    table = a_table(*([] if on_placeholder else [a_node("a")]))
    old = a_pod(requests={"cpu": "1"}, ports=[ContainerPort(host_port=80)])
    new = a_pod(requests={"cpu": "3", GPU: "1"}, ports=[ContainerPort(host_port=81)])
    table.add_pod("a", old)

    table.replace_pod("a", old, new)

    table.check_invariants()
    assert list(table.pods_on("a")) == [new]
    assert table.requested("cpu").tolist() == [3000]
    assert table.requested(GPU).tolist() == [1]
    assert table.host_ports.keys() == {("TCP", 81)}


def test_a_new_version_that_cannot_be_read_leaves_the_old_one_counted() -> None:
    table = a_table(a_node("a"))
    old = a_pod(requests={"cpu": "1"})
    table.add_pod("a", old)
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.replace_pod("a", old, a_pod(requests={"cpu": "lots"}))

    assert everything(table) == before


# What-ifs.


def a_busy_table() -> tuple[NodeTable, list[Pod]]:
    table = a_table(a_node("a", labels={"zone": "1"}, images={"app:1": 5}), a_node("b", taints=[LOCKED]))
    pods = [
        a_pod("p", requests={"cpu": "1", "memory": str(MOST)}, ports=[ContainerPort(host_port=80)]),
        a_pod("q", requests={"cpu": "2"}, ports=[ContainerPort(host_port=80, host_ip="10.0.0.1")]),
    ]
    for pod in pods:
        table.add_pod("a", pod)
    return table, pods


def visitors() -> Iterable[Pod]:
    return (
        a_pod("v", requests={"cpu": "3", "memory": str(MOST), GPU: "1"}, ports=[ContainerPort(host_port=80)]),
        a_pod("w", requests={"cpu": "500m"}, ports=[ContainerPort(host_port=443)]),
    )


def test_a_what_if_is_seen_inside_and_leaves_no_trace() -> None:
    table, pods = a_busy_table()
    before = everything(table)

    with table.what_if(0, add=visitors(), remove=pods[:1]):
        table.check_invariants()
        inside = everything(table)
        on_node = {pod.name for pod in table.info(0).pods}

    assert everything(table) == before
    assert on_node == {"q", "v", "w"}
    assert inside["requested"]["cpu"] == [5500, 0]
    assert inside["requested"][GPU] == [1, 0]
    assert inside["pod count"] == [3, 0]
    assert inside["ports"]["('TCP', 80)"] == {"10.0.0.1": {"0": 1}, "0.0.0.0": {"0": 1}}
    assert inside["positions"] == before["positions"]


def test_what_ifs_can_be_nested() -> None:
    table, pods = a_busy_table()
    before = everything(table)

    with table.what_if(0, remove=pods):
        outer = everything(table)
        with table.what_if(0, add=visitors()), table.what_if(1, add=visitors()):
            table.check_invariants()
        after = everything(table)

    assert after == outer
    assert everything(table) == before


def test_a_what_if_that_ends_in_an_exception_leaves_no_trace() -> None:
    table, pods = a_busy_table()
    before = everything(table)

    with pytest.raises(RuntimeError, match="a plugin"), table.what_if(0, add=visitors(), remove=pods):
        raise RuntimeError("a plugin failed")

    assert everything(table) == before


@pytest.mark.parametrize(
    ("add", "remove", "error"),
    [
        pytest.param([a_pod("v"), a_pod("x", requests={"cpu": "lots"})], [], ValueError, id="an unreadable pod"),
        pytest.param([a_pod("v"), a_pod("p")], [], ValueError, id="a pod that is there"),
        pytest.param([], [a_pod("stranger")], KeyError, id="a pod that is not there"),
    ],
)
def test_a_what_if_that_cannot_begin_leaves_no_trace(add: list[Pod], remove: list[Pod], error: type[Exception]) -> None:
    table, _ = a_busy_table()
    before = everything(table)

    with pytest.raises(error), table.what_if(0, add=add, remove=remove):
        raise AssertionError("must not get here")

    assert everything(table) == before


# What has changed.


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
    before = positions(table)

    table.set_node(newer)
    there = changes(table, before)
    before = positions(table)
    table.set_node(a_node("b"))
    back = changes(table, before)

    assert there == back == on_one_row(aspects | Aspect.NODE, 1)


def test_a_node_that_loses_a_resource_which_others_have_is_changed() -> None:
    table = a_table(a_node("a", allocatable={GPU: "1"}), a_node("b", allocatable={GPU: "1"}))
    before = positions(table)

    table.set_node(a_node("b"))

    assert changes(table, before) == on_one_row(Aspect.ALLOCATABLE | Aspect.NODE, 1)


def test_an_image_that_comes_or_goes_may_change_every_row() -> None:
    table = a_table(a_node("a", images={"app:1": 5}), a_node("b"))
    before = positions(table)

    table.set_node(a_node("b", images={"app:1": 5}))
    there = changes(table, before)
    before = positions(table)
    table.set_node(a_node("b"))
    back = changes(table, before)

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
    before = positions(table)

    table.set_node(a_node("b"))

    assert changes(table, before) == {**on_one_row(EVERY, 1), Aspect.IMAGES: None}


def test_a_node_that_goes_changes_the_share_of_every_image_and_all_of_its_row() -> None:
    table = a_table(a_node("a", images={"app:1": 5}), a_node("b"))
    before = positions(table)

    table.remove_node("b")

    assert changes(table, before) == {**on_one_row(EVERY, 1), Aspect.IMAGES: None}


def test_a_placeholder_that_becomes_a_node_changes_every_aspect() -> None:
    table = a_table(a_node("a"))
    table.add_pod("late", a_pod())
    before = positions(table)

    table.set_node(a_node("late"))

    assert changes(table, before) == on_one_row(EVERY, 1)


@pytest.mark.parametrize(
    ("pod", "aspects"),
    [
        pytest.param(a_pod(), ON_PODS, id="a pod"),
        pytest.param(with_ports("p", ContainerPort(host_port=80)), ON_PODS | Aspect.PORTS, id="one with host ports"),
        pytest.param(with_ports("p", ContainerPort(container_port=80)), ON_PODS, id="one with ports of its own"),
    ],
)
def test_a_pod_that_comes_or_goes_changes_what_is_requested(pod: Pod, aspects: Aspect) -> None:
    table = a_table(a_node("a"), a_node("b"))
    before = positions(table)

    table.add_pod("b", pod)
    there = changes(table, before)
    before = positions(table)
    table.remove_pod("b", pod)
    back = changes(table, before)

    assert there == back == on_one_row(aspects, 1)


@pytest.mark.parametrize(
    ("newer", "aspects"),
    [
        pytest.param(a_pod(requests={"cpu": "1"}), Aspect(0), id="a status that says nothing new"),
        pytest.param(a_pod(requests={"cpu": "1"}, labels={"app": "web"}), Aspect.PODS, id="a label"),
        pytest.param(a_pod(requests={"cpu": "2"}), ON_PODS, id="a resize"),
        pytest.param(
            a_pod(requests={"cpu": "1"}, ports=[ContainerPort(host_port=80)]), ON_PODS | Aspect.PORTS, id="a host port"
        ),
    ],
)
def test_a_new_version_of_a_pod_changes_the_aspects_in_which_it_differs(newer: Pod, aspects: Aspect) -> None:
    table = a_table(a_node("a"), a_node("b"))
    old = a_pod(requests={"cpu": "1"})
    table.add_pod("b", old)
    before = positions(table)

    table.replace_pod("b", old, newer)
    there = changes(table, before)
    before = positions(table)
    table.replace_pod("b", newer, old)
    back = changes(table, before)

    assert there == back == on_one_row(aspects, 1)


def test_a_pod_that_is_being_deleted_is_news_to_those_who_read_pods() -> None:
    table = a_table(a_node("a"))
    old = a_pod()
    new = msgspec.structs.replace(
        old, metadata=msgspec.structs.replace(old.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    table.add_pod("a", old)
    before = positions(table)

    table.replace_pod("a", old, new)

    assert changes(table, before) == on_one_row(Aspect.PODS, 0)


def test_a_log_holds_at_least_one_change_of_every_row() -> None:
    table = NodeTable(capacity=1)
    before = positions(table)

    for i in range(5000):
        table.set_node(Node(metadata=a_node(f"n{i}").metadata))

    assert changes(table, before)[Aspect.NAME] == set(range(5000))
    assert np.count_nonzero(table.in_use) == 5000


# The invariants themselves.


def test_a_wrong_sum_is_noticed() -> None:
    table = a_table(a_node("a"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))

    table.requested("cpu")[0] = 7

    with pytest.raises(AssertionError, match="cpu"):
        table.check_invariants()


def test_a_forgotten_pod_is_noticed() -> None:
    table = a_table(a_node("a"))

    table.pod_count[0] += 1

    with pytest.raises(AssertionError, match="a"):
        table.check_invariants()
