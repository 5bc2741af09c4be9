from cheapest import Cheapest

from scheduler.testing import a_cluster, a_node, a_pod, check_plugin, schedule

PRICES = {"cheap": "10", "fair": "25", "dear": "40"}
NODES = [a_node(name, labels={"example.com/cents-per-hour": cents}) for name, cents in PRICES.items()]


def test_the_cheapest_node_is_the_best() -> None:
    decision = schedule(Cheapest(), a_pod(), a_cluster(*NODES))

    assert decision.scores == {"cheap": 100, "fair": 50, "dear": 0}


def test_equal_prices_make_no_difference() -> None:
    decision = schedule(Cheapest(), a_pod(), a_cluster(a_node("a"), a_node("b")))

    assert decision.best == {"a", "b"}


def test_it_keeps_what_every_plugin_promises() -> None:
    check_plugin(Cheapest(), [a_pod(), a_pod("large", requests={"cpu": 3})], a_cluster(*NODES, a_node("unknown")))
