"""NodeUnschedulable: cordoned nodes."""

import pytest

from plugins.node_unschedulable import UNSCHEDULABLE, NodeUnschedulable
from scheduler import framework as fw
from scheduler.framework.testing import a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, refusals

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


def test_preemption_does_not_help() -> None:
    assert fw.unresolvable("node(s) were unschedulable") == UNSCHEDULABLE
