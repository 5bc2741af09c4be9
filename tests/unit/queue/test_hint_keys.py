"""Pods that wait for the same thing are asked once."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import NODE, Action, ClusterEvent, ClusterEventWithHint, QueueingHint
from tests.unit.queue.fakes import FIT, NODE_ADD, PROFILE, VOLUMES, QueueUnderTest, a_waiting_pod

TEAM_A, TEAM_B = {"team": "a"}, {"team": "b"}


class Hint:
    """Says yes to pods whose label `team` is what the event is about, and records which pods it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        self.asked.append(pod.uid)
        return QueueingHint.QUEUE if pod.labels.get("team") == new else QueueingHint.SKIP


def team(pod: Pod) -> Hashable:
    return pod.labels.get("team")


def a_queue(*registrations: ClusterEventWithHint, plugin: str = FIT) -> QueueUnderTest:
    return QueueUnderTest(events={PROFILE: {plugin: registrations}})


def on_node_add(hint: Hint, key: Callable[[Pod], Hashable] | None) -> ClusterEventWithHint:
    return ClusterEventWithHint(ClusterEvent(NODE, Action.ADD), hint, key)


def asking() -> tuple[Hint, QueueUnderTest]:
    """A hint for nodes that come, which answers alike about pods of one team, and its queue."""
    hint = Hint()
    return hint, a_queue(on_node_add(hint, team))


def refused(queue: QueueUnderTest, uids: Sequence[str], labels: dict[str, str], *plugins: str) -> None:
    for uid in uids:
        queue.refused(a_waiting_pod(uid, labels=labels), *(plugins or (FIT,)))


def test_one_pod_is_asked_for_all_of_its_key_and_all_of_them_move() -> None:
    hint, queue = asking()
    refused(queue, ["a1", "a2", "a3"], TEAM_A)
    refused(queue, ["b1", "b2"], TEAM_B)

    queue.move_all(NODE_ADD, None, "a")

    assert hint.asked == ["a1", "b1"]
    assert [queue.where(uid) for uid in ("a1", "a2", "a3", "b1", "b2")] == ["backoff"] * 3 + ["unschedulable"] * 2


def test_without_a_key_every_pod_is_asked() -> None:
    hint = Hint()
    queue = a_queue(on_node_add(hint, None))
    refused(queue, ["a1", "a2"], TEAM_A)

    queue.move_all(NODE_ADD, None, "b")

    assert hint.asked == ["a1", "a2"]


def test_pods_of_one_key_that_other_plugins_refused_too_are_asked_apart() -> None:
    hint, queue = asking()
    refused(queue, ["a1"], TEAM_A)
    refused(queue, ["a2"], TEAM_A, FIT, VOLUMES)

    queue.move_all(NODE_ADD, None, "b")

    assert hint.asked == ["a1", "a2"]


def test_pods_that_no_interested_plugin_refused_are_not_asked_about() -> None:
    hint, queue = asking()
    refused(queue, ["a1"], TEAM_A, VOLUMES)

    queue.move_all(NODE_ADD, None, "a")

    assert hint.asked == []
    assert queue.where("a1") == "unschedulable"


def test_a_pod_that_changes_while_it_waits_is_asked_with_its_new_like() -> None:
    _, queue = asking()
    refused(queue, ["a1", "a2"], TEAM_A)

    queue.update(None, a_waiting_pod("a2", labels=TEAM_B, version=2))
    queue.move_all(NODE_ADD, None, "b")

    assert [queue.where("a1"), queue.where("a2")] == ["unschedulable", "backoff"]


def test_a_pre_check_leaves_out_single_pods_of_a_group() -> None:
    _, queue = asking()
    refused(queue, ["a1", "a2"], TEAM_A)

    queue.move_all(NODE_ADD, None, "a", lambda pod: pod.uid == "a2")

    assert [queue.where("a1"), queue.where("a2")] == ["unschedulable", "backoff"]


def not_hashable(pod: Pod) -> Hashable:
    return [pod.uid]  # type: ignore[return-value]


def failing(pod: Pod) -> Hashable:
    raise RuntimeError("no key")


@pytest.mark.parametrize("key", [not_hashable, failing])
def test_pods_whose_key_fails_are_asked_one_by_one(
    key: Callable[[Pod], Hashable], caplog: pytest.LogCaptureFixture
) -> None:
    hint = Hint()
    queue = a_queue(on_node_add(hint, key))
    refused(queue, ["a1", "a2"], TEAM_A)

    queue.move_all(NODE_ADD, None, "b")

    assert hint.asked == ["a1", "a2"]
    assert "Key for queueing hints failed" in caplog.text


def test_an_empty_group_is_forgotten() -> None:
    hint, queue = asking()
    refused(queue, ["a1"], TEAM_A)

    queue.delete("a1")
    queue.move_all(NODE_ADD, None, "a")

    assert hint.asked == []


def test_a_tenth_of_the_events_is_timed() -> None:
    _, queue = asking()
    refused(queue, ["a1"], TEAM_A)

    for _ in range(20):
        queue.move_all(NODE_ADD, None, "b")

    assert queue.hints_timed(FIT, "NodeAdd", "QueueSkip") == 2
