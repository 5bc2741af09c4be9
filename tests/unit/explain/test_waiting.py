"""Events in words."""

from scheduler.explain.waiting import events_in_words
from scheduler.framework.events import ANY, ASSIGNED_POD, DEVICE_CLASS, NODE, POD, TARGET_POD, Action, ClusterEvent


def test_what_happens_to_a_kind_is_said_once() -> None:
    events = [
        ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        ClusterEvent(POD, Action.DELETE),
    ]
    assert events_in_words(events) == "a new or changed Node (label, taint), a deleted Pod"


def test_any_change_is_not_spelled_out_and_a_kind_has_no_group() -> None:
    assert events_in_words([ClusterEvent(DEVICE_CLASS, Action.ALL)]) == "a new, changed or deleted DeviceClass"
    assert events_in_words([ClusterEvent(ANY, Action.UPDATE)]) == "a changed object"


def test_a_change_of_the_pod_itself_is_no_change_of_others() -> None:
    events = [ClusterEvent(ASSIGNED_POD, Action.DELETE), ClusterEvent(TARGET_POD, Action.UPDATE_POD_LABEL)]

    assert events_in_words(events) == "a deleted Pod, a change of the pod itself (label)"


def test_there_may_be_no_event() -> None:
    assert events_in_words([]) == ""
