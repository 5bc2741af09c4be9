"""NodeUnschedulable: cordoned nodes."""

import pytest

from plugins.node_unschedulable import UNSCHEDULABLE, NodeUnschedulable
from scheduler import framework as fw
from scheduler.testing import a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, refusals
from tests.unit.plugins.hints import NODE_ADDED, NODE_TAINTED, TOLERATION_ADDED, wakes

KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "refused"),
    [
        pytest.param([], True, id="a pod without tolerations is refused"),
        pytest.param([fw.Toleration(key=KEY, operator="Exists", effect="NoSchedule")], False, id="key and effect"),
        pytest.param([fw.Toleration(key=KEY, effect="NoSchedule")], False, id="equal to the empty value"),
        pytest.param([fw.Toleration(operator="Exists")], False, id="a toleration of everything"),
        pytest.param([fw.Toleration(key=KEY, operator="Exists", effect="NoExecute")], True, id="another effect"),
        pytest.param([fw.Toleration(key=KEY, value="x", effect="NoSchedule")], True, id="another value"),
        pytest.param([fw.Toleration(key="other", operator="Exists")], True, id="another key"),
    ],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(tolerations: list[fw.Toleration], refused: bool) -> None:
    cluster = a_cluster(a_node("open"), a_node("cordoned", unschedulable=True))

    found = refusals(NodeUnschedulable(), a_pod(tolerations=tolerations), cluster)

    assert found == ({"cordoned": UNSCHEDULABLE} if refused else {})


CORDONED, OPEN = a_node(unschedulable=True), a_node()


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param(NODE_ADDED, None, OPEN, True, id="a new node that is not cordoned"),
        pytest.param(NODE_ADDED, None, CORDONED, False, id="a new node that is cordoned"),
        pytest.param(NODE_TAINTED, CORDONED, OPEN, True, id="a node is uncordoned"),
        pytest.param(NODE_TAINTED, OPEN, CORDONED, False, id="a node is cordoned"),
        pytest.param(NODE_TAINTED, OPEN, OPEN, False, id="another taint of an open node changes"),
        pytest.param(NODE_TAINTED, CORDONED, CORDONED, False, id="another taint of a cordoned node changes"),
    ],
)
def test_a_node_helps_that_is_cordoned_no_more(
    event: fw.ClusterEvent, old: fw.Node | None, new: fw.Node, expected: bool
) -> None:
    assert wakes(NodeUnschedulable(), a_pod(), event, old, new) == expected


@pytest.mark.parametrize(
    ("name", "toleration", "expected"),
    [
        pytest.param("waiting", fw.Toleration(key=KEY, operator="Exists"), True, id="the pod tolerates cordoned nodes"),
        pytest.param(
            "waiting", fw.Toleration(key="other", operator="Exists"), False, id="the pod tolerates another taint"
        ),
        pytest.param("other", fw.Toleration(key=KEY, operator="Exists"), False, id="another pod does"),
    ],
)
def test_a_toleration_helps_the_pod_that_got_it_if_it_covers_cordoned_nodes(
    name: str, toleration: fw.Toleration, expected: bool
) -> None:
    new = a_pod(name, tolerations=[toleration])

    assert wakes(NodeUnschedulable(), a_pod("waiting"), TOLERATION_ADDED, a_pod(name), new) == expected
