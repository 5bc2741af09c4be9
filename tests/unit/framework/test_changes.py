import msgspec
import pytest

from scheduler.api.pod import Pod
from scheduler.framework.changes import pod_changes
from scheduler.framework.events import UNSCHEDULABLE_POD, UNSCHEDULABLE_POD_UPDATE, Action, ClusterEvent
from tests.unit.queue.fakes import a_pod

POD_LABEL = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL)
POD_SCALE_DOWN = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_SCALE_DOWN)
POD_GATES_ELIMINATED = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
POD_TOLERATION = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION)
POD_UPDATE = UNSCHEDULABLE_POD_UPDATE


def with_node_selector(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_selector={"disk": "ssd"}))


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        pytest.param(a_pod(), a_pod(version=2), (), id="nothing that counts"),
        pytest.param(a_pod(), a_pod(phase="Unknown", nominated="n"), (), id="status only"),
        pytest.param(a_pod(), a_pod(labels={"app": "web"}), (POD_LABEL,), id="labels"),
        pytest.param(a_pod(cpu="2"), a_pod(cpu="1"), (POD_SCALE_DOWN,), id="asks for less"),
        pytest.param(a_pod(cpu="2"), a_pod(), (POD_SCALE_DOWN,), id="no longer asks"),
        pytest.param(a_pod(cpu="1"), a_pod(cpu="2"), (POD_UPDATE,), id="asks for more"),
        pytest.param(a_pod(cpu="much"), a_pod(cpu="1"), (POD_UPDATE,), id="asked for nonsense"),
        pytest.param(a_pod(gates=("x",)), a_pod(), (POD_GATES_ELIMINATED,), id="last gate gone"),
        pytest.param(a_pod(gates=("x", "y")), a_pod(gates=("x",)), (POD_UPDATE,), id="one of the gates gone"),
        pytest.param(a_pod(), a_pod(tolerations=("x",)), (POD_TOLERATION,), id="tolerates more"),
        pytest.param(a_pod(), with_node_selector(a_pod()), (POD_UPDATE,), id="another part of the spec"),
        pytest.param(
            a_pod(gates=("x",)),
            a_pod(labels={"app": "web"}, tolerations=("x",)),
            (POD_LABEL, POD_GATES_ELIMINATED, POD_TOLERATION),
            id="several at once",
        ),
    ],
)
def test_an_update_amounts_to_the_events_that_plugins_know(
    old: Pod, new: Pod, events: tuple[ClusterEvent, ...]
) -> None:
    assert pod_changes(old, new) == events


def test_the_same_object_has_not_changed() -> None:
    pod = a_pod()

    assert pod_changes(pod, pod) == ()
