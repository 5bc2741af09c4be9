"""The choice of flavors for a pod; the flavors' order and their quotas say which."""

from typing import Any

import pytest

from scheduler.api.objects import Taint, Toleration
from scheduler.quota.apis.kueue_flavors import NoFlavor, choose, flavor_of_node, nodes_of
from scheduler.quota.apis.kueue_quotas import Quotas, quotas_of
from scheduler.quota.tree import ShareTree
from scheduler.testing import a_pod, a_requirement, a_term, required
from tests.unit.quota.kueue_objects import Group, a_cohort, a_flavor, a_queue

SPOT = Taint(key="spot", value="yes", effect="NoSchedule")
TOLERATES_SPOT = Toleration(key="spot", operator="Exists")
FLAVORS = {
    "on-demand": a_flavor("on-demand", {"kind": "on-demand"}),
    "spot": a_flavor("spot", {"kind": "spot"}),
    "tainted": a_flavor(
        "tainted", nodeTaints=[{"key": SPOT.key, "value": SPOT.value, "effect": SPOT.effect}], nodeLabels={"kind": "x"}
    ),
}
TWO: Group = {"on-demand": {"cpu": ["2"]}, "spot": {"cpu": ["4"]}}


def with_sibling(groups: list[Group], **spec: Any) -> Quotas:
    """Return the quotas of a ClusterQueue `a` in a cohort that has 10 cores more of each flavor."""
    more = [{flavor: {"cpu": ["10"]} for flavor in each} for each in groups]
    return quotas_of([a_queue("a", "all", groups, **spec)], [a_cohort("all", groups=more)], FLAVORS)


def chosen(quotas: Quotas, amount: int, used: dict[str, int] | None = None, **pod: Any) -> list[str]:
    tree = ShareTree(quotas.shares)
    tree.add("ClusterQueue/a", used or {})
    found = choose(quotas.queues["a"], {"cpu": amount}, a_pod("p", **pod), tree)
    return [flavor.name for _, flavor in found]


def test_the_first_flavor_with_room_is_taken() -> None:
    quotas = quotas_of([a_queue("a", groups=[TWO])], [], FLAVORS)

    assert chosen(quotas, 2000) == ["on-demand"]
    assert chosen(quotas, 3000) == ["spot"]
    assert chosen(quotas, 1000, {"on-demand/cpu": 1500}) == ["spot"]


def test_borrowing_in_the_first_flavor_comes_before_the_next_unless_the_queue_says_otherwise() -> None:
    goes_on = {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}

    assert chosen(with_sibling([TWO]), 3000) == ["on-demand"]
    assert chosen(with_sibling([TWO], **goes_on), 3000) == ["spot"]
    assert chosen(with_sibling([TWO], **goes_on), 5000) == ["on-demand"]


def test_without_room_it_is_the_flavor_in_which_quota_may_be_freed() -> None:
    full = {"on-demand/cpu": 12_000, "spot/cpu": 14_000}
    may_stop = {"flavorFungibility": {"whenCanPreempt": "MayStopSearch"}}

    assert chosen(with_sibling([TWO]), 1000, full) == ["on-demand"]
    assert chosen(with_sibling([TWO]), 3000, full) == ["spot"]
    assert chosen(with_sibling([TWO], **may_stop), 1000, {**full, "spot/cpu": 0}) == ["spot"]
    assert chosen(with_sibling([TWO]), 15_000, full) == ["on-demand"]


def test_a_pod_that_asks_for_other_labels_gets_another_flavor() -> None:
    quotas = quotas_of([a_queue("a", groups=[TWO])], [], FLAVORS)
    wants_spot = required(a_term(a_requirement("kind", "In", "spot")), a_term(a_requirement("kind", "In", "other")))

    assert chosen(quotas, 1000, node_selector={"kind": "spot"}) == ["spot"]
    assert chosen(quotas, 1000, node_selector={"disk": "ssd"}) == ["on-demand"]
    assert chosen(quotas, 1000, node_affinity=wants_spot) == ["spot"]
    assert chosen(quotas, 1000, node_affinity=required(a_term(a_requirement("disk", "In", "ssd")))) == ["on-demand"]


def test_only_a_pod_that_tolerates_its_taints_gets_a_flavor() -> None:
    quotas = quotas_of([a_queue("a", groups=[{"tainted": {"cpu": ["9"]}, "spot": {"cpu": ["4"]}}])], [], FLAVORS)

    assert chosen(quotas, 1000) == ["spot"]
    assert chosen(quotas, 1000, tolerations=[TOLERATES_SPOT]) == ["tainted"]


def test_a_pod_that_no_flavor_suits_is_told_why() -> None:
    quotas = quotas_of([a_queue("a", groups=[{"tainted": {"cpu": ["9"]}, "spot": {"cpu": ["4"]}}])], [], FLAVORS)

    with pytest.raises(NoFlavor) as raised:
        chosen(quotas, 1000, node_selector={"kind": "gpu"})

    assert str(raised.value) == (
        "no flavor of ClusterQueue a suits the pod: flavor spot doesn't match node affinity, "
        "untolerated taint spot=yes:NoSchedule in flavor tainted"
    )


def test_a_resource_that_the_queue_does_not_have_is_named() -> None:
    quotas = quotas_of([a_queue("a", groups=[TWO])], [], FLAVORS)
    tree = ShareTree(quotas.shares)

    with pytest.raises(NoFlavor, match=r"^resource memory unavailable in ClusterQueue a$"):
        choose(quotas.queues["a"], {"cpu": 1, "memory": 1}, a_pod("p"), tree)


def test_each_group_of_resources_has_a_flavor_of_its_own() -> None:
    groups: list[Group] = [TWO, {"tainted": {"memory": ["1Gi"]}}]
    quotas = quotas_of([a_queue("a", groups=groups)], [], FLAVORS)
    pod = a_pod("p", tolerations=[TOLERATES_SPOT])

    found = choose(quotas.queues["a"], {"memory": 1, "cpu": 3000}, pod, ShareTree(quotas.shares))

    assert [flavor.name for _, flavor in found] == ["spot", "tainted"]


def test_a_node_counts_in_the_flavor_that_says_most_of_it() -> None:
    flavors = {"any": a_flavor("any"), "spot": a_flavor("spot", {"kind": "spot"})}
    quotas = quotas_of([a_queue("a", groups=[{"any": {"cpu": ["1"]}, "spot": {"cpu": ["1"]}}])], [], flavors)
    (group,) = quotas.queues["a"].groups

    assert flavor_of_node(group, {"kind": "spot", "zone": "a"}).name == "spot"
    assert flavor_of_node(group, {"zone": "a"}).name == "any"
    assert flavor_of_node(group, {}).name == "any"


def test_the_nodes_of_a_flavor_are_those_on_which_a_pod_counts_in_it() -> None:
    flavors = {"any": a_flavor("any"), "spot": a_flavor("spot", {"kind": "spot"})}
    quotas = quotas_of([a_queue("a", groups=[{"any": {"cpu": ["1"]}, "spot": {"cpu": ["1"]}}])], [], flavors)
    (group,) = quotas.queues["a"].groups

    for flavor in group.flavors:
        kind = nodes_of([(group, flavor)])
        assert kind is not None
        for labels in ({}, {"kind": "spot"}, {"kind": "other"}, {"zone": "a", "kind": "spot"}):
            assert kind.includes(labels) == (flavor_of_node(group, labels) == flavor)
        assert kind.labels == ["kind"]


def test_flavors_without_labels_leave_all_nodes_to_choose_from() -> None:
    quotas = quotas_of([a_queue("a", groups=[{"any": {"cpu": ["1"]}}])], [], {"any": a_flavor("any")})
    (group,) = quotas.queues["a"].groups

    assert nodes_of([(group, group.flavors[0])]) is None


def test_of_flavors_with_equal_nodes_only_the_first_is_taken() -> None:
    flavors = {"reserved": a_flavor("reserved"), "burst": a_flavor("burst")}
    quotas = quotas_of([a_queue("a", groups=[{"reserved": {"cpu": ["1"]}, "burst": {"cpu": ["9"]}}])], [], flavors)

    assert chosen(quotas, 5000) == ["reserved"]
