import pytest

from scheduler import framework as fw
from scheduler.framework.events import (
    ALL_EVENTS,
    ANY,
    ASSIGNED_POD,
    ASSIGNED_POD_ADD,
    NODE,
    NODE_ADD,
    POD,
    TARGET_POD,
    TARGET_POD_UPDATE,
    UNSCHEDULED_POD_ADD,
    Action,
    ClusterEvent,
)

NODE_TAINT = ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)


@pytest.mark.parametrize(
    ("pattern", "happened", "matches"),
    [
        (ALL_EVENTS, NODE_ADD, True),
        (ALL_EVENTS, TARGET_POD_UPDATE, True),
        (NODE_ADD, NODE_ADD, True),
        (NODE_ADD, ClusterEvent(ANY, Action.ALL, "UnschedulableTimeout"), True),
        (NODE_ADD, ASSIGNED_POD_ADD, False),
        (NODE_ADD, NODE_TAINT, False),
        (ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT), NODE_TAINT, True),
        (ClusterEvent(NODE, Action.UPDATE), NODE_TAINT, True),
        (ClusterEvent(NODE, Action.UPDATE), NODE_ADD, False),
        (ClusterEvent(ANY, Action.ADD), ASSIGNED_POD_ADD, True),
        (ClusterEvent(ANY, Action.ADD), NODE_TAINT, False),
        (ClusterEvent(POD, Action.ALL), ASSIGNED_POD_ADD, True),
        (ClusterEvent(POD, Action.ALL), TARGET_POD_UPDATE, True),
        (ClusterEvent(POD, Action.DELETE), ASSIGNED_POD_ADD, False),
        (ClusterEvent(ASSIGNED_POD, Action.ALL), TARGET_POD_UPDATE, False),
        (ClusterEvent(POD, Action.ALL), NODE_ADD, False),
    ],
)
def test_a_pattern_matches_the_events_it_names(pattern: ClusterEvent, happened: ClusterEvent, matches: bool) -> None:
    assert pattern.matches(happened) == matches


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (ClusterEvent(NODE, Action.DELETE), "NodeDelete"),
        (ClusterEvent(NODE, Action.UPDATE_NODE_ALLOCATABLE), "NodeUpdateNodeAllocatable"),
        (ClusterEvent(NODE, Action.UPDATE_NODE_LABEL), "NodeUpdateNodeLabel"),
        (NODE_TAINT, "NodeUpdateNodeTaint"),
        (ClusterEvent(NODE, Action.UPDATE_NODE_CONDITION), "NodeUpdateNodeCondition"),
        (ClusterEvent(NODE, Action.UPDATE_NODE_ANNOTATION), "NodeUpdateNodeAnnotation"),
        (ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (ClusterEvent(TARGET_POD, Action.UPDATE_POD_LABEL), "TargetPodUpdatePodLabel"),
        (ClusterEvent(TARGET_POD, Action.UPDATE_POD_SCALE_DOWN), "TargetPodUpdatePodScaleDown"),
        (ClusterEvent(TARGET_POD, Action.UPDATE_POD_TOLERATION), "TargetPodUpdatePodToleration"),
        (
            ClusterEvent(TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
            "TargetPodUpdatePodSchedulingGatesEliminated",
        ),
        (ClusterEvent(TARGET_POD, Action.UPDATE_POD_SCALE_UP), "TargetPodUpdatePodScaleUp"),
        (TARGET_POD_UPDATE, "TargetPodUpdate"),
        (UNSCHEDULED_POD_ADD, "UnscheduledPodAdd"),
        (ClusterEvent(NODE, Action.UPDATE), "NodeUpdate"),
        (ALL_EVENTS, "WildCardEvent"),
    ],
)
def test_an_event_is_labelled_as_kube_scheduler_labels_it(event: ClusterEvent, label: str) -> None:
    assert event.label == label


def test_a_registration_in_one_line_is_the_same_as_by_its_parts() -> None:
    def hint(pod: object, old: object, new: object) -> fw.QueueingHint:
        return fw.QueueingHint.SKIP

    event = fw.ClusterEvent(fw.NODE, fw.Action.ADD)

    assert fw.on(fw.NODE, fw.Action.ADD) == fw.ClusterEventWithHint(event)
    assert fw.on(fw.NODE, fw.Action.ADD, hint=hint, key=len) == fw.ClusterEventWithHint(event, hint, len)
    assert fw.on(fw.NODE).event.action == fw.Action.ALL
