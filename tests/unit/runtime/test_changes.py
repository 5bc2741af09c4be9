import pytest
from msgspec.structs import replace

from scheduler.api.objects import Node, NodePodPreemptionPolicy, PodResourceClaimStatus, Taint
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import NODE, TARGET_POD, TARGET_POD_UPDATE, Action, ClusterEvent
from scheduler.runtime.changes import node_changes, pod_changes
from scheduler.testing import a_node
from tests.unit.queue.fakes import a_waiting_pod

POD_LABEL = ClusterEvent(TARGET_POD, Action.UPDATE_POD_LABEL)
POD_SCALE_DOWN = ClusterEvent(TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)
POD_SCALE_UP = ClusterEvent(TARGET_POD, Action.UPDATE_POD_SCALE_UP)
POD_GATES_ELIMINATED = ClusterEvent(TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
POD_TOLERATION = ClusterEvent(TARGET_POD, Action.UPDATE_POD_TOLERATION)
POD_UPDATE = TARGET_POD_UPDATE


def with_node_selector(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_selector={"disk": "ssd"}))


def with_claim(pod: Pod) -> Pod:
    claims = (PodResourceClaimStatus(name="gpu", resource_claim_name="web-gpu-x7k"),)
    return replace(pod, status=replace(pod.status, resource_claim_statuses=claims))


GOING = replace(a_waiting_pod(), metadata=replace(a_waiting_pod().metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def declaring(*features: str) -> Node:
    node = a_node()
    return replace(node, status=replace(node.status, declared_features=features))


def disabling(*owners: str) -> Node:
    node, policy = a_node(), NodePodPreemptionPolicy(disable_resize_preemption=owners)
    return replace(node, spec=replace(node.spec, pod_preemption_policy=policy))


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(a_waiting_pod(), a_waiting_pod(version=2), (), id="nothing that counts"),
        pytest.param(a_waiting_pod(), a_waiting_pod(phase="Unknown", nominated="n"), (), id="status only"),
        pytest.param(a_waiting_pod(), a_waiting_pod(labels={"app": "web"}), (POD_LABEL,), id="labels"),
        pytest.param(a_waiting_pod(cpu="2"), a_waiting_pod(cpu="1"), (POD_SCALE_DOWN,), id="asks for less"),
        pytest.param(a_waiting_pod(cpu="2"), a_waiting_pod(), (POD_SCALE_DOWN,), id="no longer asks"),
        pytest.param(a_waiting_pod(cpu="1"), a_waiting_pod(cpu="2"), (POD_SCALE_UP,), id="asks for more"),
        pytest.param(a_waiting_pod(cpu="much"), a_waiting_pod(cpu="1"), (POD_UPDATE,), id="asked for nonsense"),
        pytest.param(a_waiting_pod(gates=("x",)), a_waiting_pod(), (POD_GATES_ELIMINATED,), id="last gate gone"),
        pytest.param(a_waiting_pod(gates=("x", "y")), a_waiting_pod(gates=("x",)), (POD_UPDATE,), id="one gate gone"),
        pytest.param(a_waiting_pod(), a_waiting_pod(tolerations=("x",)), (POD_TOLERATION,), id="tolerates more"),
        pytest.param(a_waiting_pod(), with_node_selector(a_waiting_pod()), (POD_UPDATE,), id="another part"),
        pytest.param(a_waiting_pod(), GOING, (POD_UPDATE,), id="its deletion begins"),
        pytest.param(GOING, GOING.bound_to(""), (), id="its deletion goes on"),
        pytest.param(
            a_waiting_pod(),
            with_claim(a_waiting_pod()),
            (ClusterEvent(TARGET_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM),),
            id="a claim was made for it",
        ),
        pytest.param(
            a_waiting_pod(gates=("x",)),
            a_waiting_pod(labels={"app": "web"}, tolerations=("x",)),
            (POD_LABEL, POD_GATES_ELIMINATED, POD_TOLERATION),
            id="several at once",
        ),
    ],
)
def test_an_update_amounts_to_the_events_that_plugins_know(
    old: Pod, new: Pod, events: tuple[ClusterEvent, ...]
) -> None:
    assert pod_changes(old, new) == events


@pytest.mark.parametrize(
    ("new", "actions"),
    [
        pytest.param(a_node(), (), id="a heartbeat"),
        pytest.param(a_node(cpu="8"), (Action.UPDATE_NODE_ALLOCATABLE,), id="capacity"),
        pytest.param(a_node(labels={"zone": "a"}), (Action.UPDATE_NODE_LABEL,), id="labels"),
        pytest.param(a_node(taints=(Taint(key="a", effect="NoSchedule"),)), (Action.UPDATE_NODE_TAINT,), id="taints"),
        pytest.param(a_node(unschedulable=True), (), id="cordoned"),
        pytest.param(a_node(annotations={"rack": "7"}), (Action.UPDATE_NODE_ANNOTATION,), id="annotations"),
        pytest.param(declaring("fast-io"), (Action.UPDATE_NODE_DECLARED_FEATURE,), id="declared features"),
        pytest.param(disabling("someone"), (Action.UPDATE_NODE_PREEMPTION_POLICY,), id="preemption policy"),
        pytest.param(
            a_node(cpu="8", annotations={"rack": "7"}),
            (Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_ANNOTATION),
            id="several at once",
        ),
    ],
)
def test_a_node_update_amounts_to_the_events_that_plugins_know(new: Node, actions: tuple[Action, ...]) -> None:
    assert node_changes(a_node(), new) == tuple(ClusterEvent(NODE, action) for action in actions)


def test_a_node_that_is_uncordoned_counts_as_one_that_lost_a_taint() -> None:
    assert node_changes(a_node(unschedulable=True), a_node()) == (ClusterEvent(NODE, Action.UPDATE_NODE_TAINT),)
