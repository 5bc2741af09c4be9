"""How much of the nodes is requested."""

from scheduler.simulate.what_if.utilisation import rows, utilisation
from tests.unit.simulate.what_if.world import Json, a_node, a_pod, asked, cluster_with, on


def test_it_is_told_in_all_by_zone_and_of_the_fullest_and_emptiest_nodes() -> None:
    cluster = cluster_with(
        a_node("n1", zone="a"),
        a_node("n2", zone="a", amounts={"example.com/gpu": 2}),
        a_node("n3", zone="b"),
        on("n1", "one", cpu=3),
        on("n2", "two", cpu=1),
        on("gone", "of a node that is not there"),
        on("n3", "ended", status={"phase": "Succeeded"}),
    )

    told = utilisation(cluster.nodes, cluster.pods)

    assert told["nodes"] == 3
    assert told["resources"] == {
        "cpu": {"requested": 4000, "allocatable": 12000},
        "memory": {"requested": 0, "allocatable": 3 * 8 << 30},
        "pods": {"requested": 2, "allocatable": 330},
        "example.com/gpu": {"requested": 0, "allocatable": 2},
    }
    assert {zone: amounts["cpu"] for zone, amounts in told["zones"].items()} == {
        "a": {"requested": 4000, "allocatable": 8000},
        "b": {"requested": 0, "allocatable": 4000},
    }
    assert [node["name"] for node in told["fullest"]] == ["n1", "n2", "n3"]
    assert told["emptiest"][0]["name"] == "n3"
    assert told["fullest"][0] == {"name": "n1", "resource": "cpu", "requested": 3000, "allocatable": 4000}


def test_of_a_node_that_is_drained_nothing_counts_afterwards() -> None:
    objects = a_node("n1"), a_node("n2"), on("n1", "web", "ReplicaSet", "w"), on("n1", "agent", "DaemonSet", "a")

    told = asked(*objects, drain=("n1",))["whatIf"]["utilisation"]

    assert (told["before"]["nodes"], told["before"]["cordoned"]) == (2, 0)
    assert (told["after"]["nodes"], told["after"]["cordoned"]) == (1, 1)
    assert told["before"]["resources"]["cpu"] == {"requested": 2000, "allocatable": 8000}
    assert told["after"]["resources"]["cpu"] == {"requested": 1000, "allocatable": 4000}
    assert next(row for row in rows(told["before"], told["after"]) if row[0] == "nodes")[1:] == (
        "2",
        "1, and 1 cordoned",
    )


def test_before_is_the_cluster_as_given_and_after_has_what_was_placed() -> None:
    told = asked(a_node("n1"), a_pod("p", cpu=1), add=1, like="n1", utilisation=True)["whatIf"]["utilisation"]

    assert told["before"]["resources"]["cpu"] == {"requested": 0, "allocatable": 4000}
    assert told["after"]["resources"]["cpu"] == {"requested": 1000, "allocatable": 8000}


def test_as_text_it_is_a_table_of_both() -> None:
    told = asked(a_node("n1", zone="a"), a_pod("p", cpu="1500m"), utilisation=True)["whatIf"]["utilisation"]

    assert list(rows(told["before"], told["after"])) == [
        ("UTILISATION", "BEFORE", "AFTER"),
        ("nodes", "1", "1"),
        ("cpu", "0 of 4 (0.0 %)", "1.5 of 4 (37.5 %)"),
        ("memory", "0 of 8Gi (0.0 %)", "0 of 8Gi (0.0 %)"),
        ("pods", "0 of 110 (0.0 %)", "1 of 110 (0.9 %)"),
        ("zone a", "cpu 0.0 %, memory 0.0 %, pods 0.0 %", "cpu 37.5 %, memory 0.0 %, pods 0.9 %"),
        ("fullest node", "n1: pods 0.0 %", "n1: cpu 37.5 %"),
        ("emptiest node", "n1: pods 0.0 %", "n1: cpu 37.5 %"),
    ]


def test_what_is_taken_of_devices_that_are_gone_is_more_than_all() -> None:
    node = a_node("n1", amounts={"example.com/gpu": 0})
    devices: Json = {"containers": [{"name": "c", "resources": {"limits": {"example.com/gpu": 1}}}]}
    cluster = cluster_with(a_node("n0"), node, on("n0", "full", cpu=4), on("n1", "web", **devices))

    told = utilisation(cluster.nodes, cluster.pods)

    assert told["fullest"][0] == {"name": "n1", "resource": "example.com/gpu", "requested": 1, "allocatable": 0}
    assert ("fullest node", "n1: example.com/gpu more than all", "-") in list(rows(told, utilisation((), ())))


def test_nodes_that_offer_nothing_are_no_trouble() -> None:
    assert utilisation((), ())["resources"] == {}
    assert utilisation(cluster_with(a_node("n1", 0)).nodes, ())["fullest"][0]["name"] == "n1"
