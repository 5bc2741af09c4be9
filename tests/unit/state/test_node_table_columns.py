"""What the columns of the table say of nodes: resources, labels, taints, host ports, images."""

import msgspec

from scheduler.api.objects import ContainerImage, ContainerPort, NodeStatus
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import GPU, a_table, with_ports

# What a node says.


def test_a_node_fills_its_columns() -> None:
    table = a_table(a_node("a", cpu="1500m", memory="1Gi", pods=7, allocatable={GPU: "2"}, unschedulable=True))

    info = table.info(0)

    assert info.allocatable == {"cpu": 1500, "memory": 2**30, "pods": 7, GPU: 2}
    assert table.allowed_pods.tolist() == [7]
    assert table.unschedulable.tolist() == [True]
    assert info.unschedulable
    assert (info.row, info.name, info.node) == (0, "a", table.node("a"))


def test_a_resource_that_no_node_has_is_zero_everywhere_and_cannot_be_written() -> None:
    table = a_table(a_node("a"), a_node("b"))

    column = table.allocatable("example.com/unheard-of")

    assert column.tolist() == [0, 0]
    assert not column.flags.writeable


def test_pods_that_ask_for_a_resource_that_no_node_offers_are_counted_without_a_column() -> None:
    table = a_table(a_node("a"), a_node("b"))
    names = [f"example.com/{number}" for number in range(1000)]
    greedy = a_pod("greedy", requests=dict.fromkeys(names, "3"))

    table.add_pod("b", greedy)
    table.add_pod("b", a_pod("modest", requests={names[7]: "2"}))

    table.check_invariants()
    assert table.requested(names[7]).tolist() == [0, 5]
    assert table.requested(names[8]).tolist() == [0, 3]
    assert table.info(1).requested[names[7]] == 5
    assert table._amounts.requested.keys() == {"cpu", "memory", "ephemeral-storage", "pods"}
    table.remove_pod("b", greedy)
    table.check_invariants()
    assert table._amounts._unoffered == {names[7]: {1: 2}}


def test_a_resource_has_columns_for_as_long_as_any_node_offers_it() -> None:
    table = a_table(a_node("a"), a_node("b"))
    table.add_pod("a", a_pod(requests={GPU: "3"}))
    table.add_pod("gone", a_pod("waits for its node", requests={GPU: "1"}))

    table.set_node(a_node("b", allocatable={GPU: "8"}))
    offered = table.allocatable(GPU).tolist(), table.requested(GPU).tolist()
    table.check_invariants()
    table.set_node(a_node("b", allocatable={GPU: "0"}))
    table.check_invariants()

    assert offered == ([0, 8, 0], [3, 0, 1])
    assert (table.allocatable(GPU).tolist(), table.requested(GPU).tolist()) == ([0, 0, 0], [3, 0, 1])
    assert GPU not in table._amounts.requested


def test_sums_of_what_no_node_offers_wrap_as_in_go() -> None:
    table = a_table(a_node("a"))
    most = str(2**63 - 1)

    for name in ("x", "y"):
        table.add_pod("a", a_pod(name, requests={GPU: most}))

    assert table.requested(GPU).tolist() == [-2]
    table.set_node(a_node("a", allocatable={GPU: "1"}))
    table.check_invariants()
    assert table.requested(GPU).tolist() == [-2]


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
    assert [table.label_code("z", value) for value in ("a", "b", "c")] == [codes[0], codes[1], 0]
    assert table.label_code("other", "a") == 0


def test_a_label_with_an_empty_value_is_a_label() -> None:
    table = a_table(a_node("a", labels={"gpu": ""}), a_node("b"))

    codes = table.label_codes("gpu").tolist()

    assert codes[0] != 0
    assert table.label_values("gpu")[codes[0]] == ""
    assert codes[1] == 0


def test_a_key_that_is_asked_for_later_is_read_from_all_nodes() -> None:
    table = a_table(a_node("a", labels={"zone": "1", "disk": "ssd"}), a_node("b"), a_node("c", labels={"disk": "hdd"}))
    table.label_codes("zone")
    table.add_pod("late", a_pod())
    table.remove_node("b")

    codes = table.label_codes("disk").tolist()

    assert [table.label_values("disk")[code] for code in codes] == ["ssd", "", "hdd", ""]


def test_keys_that_no_node_has_take_no_memory_however_many_pods_name() -> None:
    table = a_table(a_node("a", labels={"zone": "1"}))
    before = table._labels.bytes

    for i in range(1000):
        assert table.label_codes(f"key-{i}").tolist() == [0]

    assert table._labels.bytes == before


def test_a_key_gets_a_column_with_the_first_node_that_has_it_and_loses_it_with_the_last() -> None:
    table = a_table(a_node("a"), a_node("b"))
    absent = table.topology("zone")
    before = table._labels.bytes

    table.set_node(a_node("b", labels={"zone": "1"}))
    present = table.topology("zone")
    codes, version = present.codes.tolist(), present.version
    table.set_node(a_node("b", labels={"disk": "ssd"}))

    assert absent.codes.tolist() == table.label_codes("zone").tolist() == [0, 0]
    assert [present.values[code] for code in codes] == ["", "1"]
    assert present.version != version
    assert table._labels.bytes == before


def test_a_column_that_is_not_asked_for_is_given_back_and_made_anew_when_it_is() -> None:
    table = a_table(a_node("a", labels={"zone": "1", "disk": "ssd"}))
    table.label_codes("zone")
    before = table._labels.bytes
    table.label_codes("disk")

    table.forget_idle()
    table.label_codes("zone")
    table.forget_idle()

    assert table._labels.bytes == before
    assert table.label_values("disk")[table.label_codes("disk").item(0)] == "ssd"


def test_values_of_nodes_that_are_gone_are_forgotten_in_time() -> None:
    table = a_table()
    table.set_node(a_node("stays", labels={"host": "stays"}))
    for i in range(1000):
        table.set_node(a_node(f"n{i}", labels={"host": f"n{i}"}))
        table.label_codes("host")
        table.remove_node(f"n{i}")

    codes, values = table.label_codes("host").tolist(), table.label_values("host")

    assert len(values) < 200
    assert values[codes[table.row_of("stays") or 0]] == "stays"


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


# Images.


def test_an_image_has_the_size_that_its_first_reporter_gave() -> None:
    table = a_table(a_node("a", images={"app:1": 100}), a_node("b", images={"app:1": 200}))

    table.remove_node("a")

    image = table.images["app:1"]
    assert (image.size, set(image.rows)) == (100, {1})


def test_an_image_that_no_node_has_any_more_is_forgotten_with_its_size() -> None:
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
