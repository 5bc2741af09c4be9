"""NodeAffinity: which events of nodes help a pod that none of them matched."""

import pytest

from plugins.node_affinity import NodeAffinity
from scheduler import framework as fw
from scheduler.testing import a_node, a_pod, a_requirement, a_term, required
from tests.unit.plugins.hints import NODE_ADDED, NODE_LABELLED, wakes

IN_ZONE_A = a_term(a_requirement("zone", "In", "a"))
NOT_A_NUMBER = a_term(a_requirement("generation", "Gt", "many"))

SELECTS_ZONE_A = a_pod(node_selector={"zone": "a"})
REQUIRES_ZONE_A = a_pod(node_affinity=required(IN_ZONE_A))

BARE, A, B = a_node("n1"), a_node("n1", labels={"zone": "a"}), a_node("n1", labels={"zone": "b"})
A_AND_MORE = a_node("n1", labels={"zone": "a", "disk": "ssd"})


@pytest.mark.parametrize(
    "pod", [pytest.param(SELECTS_ZONE_A, id="selector"), pytest.param(REQUIRES_ZONE_A, id="affinity")]
)
@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param(NODE_ADDED, None, A, True, id="a new node that matches"),
        pytest.param(NODE_ADDED, None, B, False, id="a new node that does not"),
        pytest.param(NODE_LABELLED, B, A, True, id="a node that matches now"),
        pytest.param(NODE_LABELLED, A, B, False, id="a node that matches no more"),
        pytest.param(NODE_LABELLED, A, A_AND_MORE, False, id="a node that matched before"),
        pytest.param(NODE_LABELLED, BARE, B, False, id="a node that still does not match"),
    ],
)
def test_a_node_helps_that_matches_and_did_not_before(
    pod: fw.Pod, event: fw.ClusterEvent, old: fw.Node | None, new: fw.Node, expected: bool
) -> None:
    assert wakes(NodeAffinity(), pod, event, old, new) == expected


@pytest.mark.parametrize(
    ("pod", "new", "expected"),
    [
        pytest.param(a_pod(), A, True, id="it matches what the scheduler adds, and the pod asks for nothing"),
        pytest.param(a_pod(), B, False, id="it does not match what the scheduler adds"),
        pytest.param(
            a_pod(node_selector={"zone": "b"}), A, False, id="it matches what the scheduler adds, not the pod"
        ),
        pytest.param(a_pod(node_selector={"disk": "ssd"}), A_AND_MORE, True, id="it matches both"),
    ],
)
def test_a_new_node_must_match_what_the_scheduler_adds_too(pod: fw.Pod, new: fw.Node, expected: bool) -> None:
    assert wakes(NodeAffinity(added_affinity=required(IN_ZONE_A)), pod, NODE_ADDED, None, new) == expected


def test_a_node_helps_that_matches_what_the_scheduler_adds_only_now() -> None:
    plugin = NodeAffinity(added_affinity=required(IN_ZONE_A))

    assert wakes(plugin, a_pod(), NODE_LABELLED, B, A)
    assert not wakes(plugin, a_pod(), NODE_LABELLED, A, B)
    assert not wakes(plugin, a_pod(), NODE_LABELLED, A, A)
    assert not wakes(plugin, a_pod(node_selector={"zone": "b"}), NODE_LABELLED, B, A)


def test_a_term_that_cannot_be_read_is_an_error_unless_something_else_decides() -> None:
    unreadable = a_pod(node_affinity=required(NOT_A_NUMBER, IN_ZONE_A))
    beside_a_selector = a_pod(node_selector={"zone": "a"}, node_affinity=required(NOT_A_NUMBER))

    assert wakes(NodeAffinity(), unreadable, NODE_ADDED, None, A)
    assert not wakes(NodeAffinity(), beside_a_selector, NODE_ADDED, None, B)
    with pytest.raises(ValueError, match="must be an integer"):
        wakes(NodeAffinity(), unreadable, NODE_ADDED, None, B)
