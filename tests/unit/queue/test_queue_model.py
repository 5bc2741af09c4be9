"""Random life: whatever the watch, the scheduling loop and time do, and in whatever order, no pod is lost or doubled.

Not covered: what the caller must keep away from the queue, that is pods that are bound or assumed.
"""

import logging
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import ClusterEvent
from scheduler.framework.queued import QueuedGroup, QueuedPod, pods_of
from scheduler.framework.status import Code
from tests.unit.queue.fakes import (
    CLAIM_ADD,
    FIT,
    NODE_ADD,
    NODE_LABEL,
    QUOTA,
    VOLUME_ADD,
    VOLUMES,
    FakeQuota,
    Gate,
    Grouped,
    QueueUnderTest,
    a_waiting_pod,
)

uids = st.sampled_from(["a", "b", "c", "d", "e"])
shapes = st.fixed_dictionaries(
    {
        "priority": st.sampled_from([None, 0, 1, 5]),
        "gates": st.sampled_from([(), (), (), ("x",), ("x", "y")]),
        "labels": st.sampled_from(
            [{}, {}, {"group": "g"}, {"group": "g"}, {"group": "h"}, {"app": "web"}, {"broken": ""}]
        ),
        "cpu": st.sampled_from(["1", "2", "nonsense"]),
        "nominated": st.sampled_from(["", "", "n1"]),
    }
)
plugins = st.sets(st.sampled_from([FIT, VOLUMES, QUOTA, "Unheard"]), max_size=2)
events = st.sampled_from([NODE_ADD, NODE_LABEL, VOLUME_ADD, CLAIM_ADD])

logging.getLogger("scheduler.queue").addHandler(logging.NullHandler())


class QueueLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.groups = Grouped("h")
        self.quota = FakeQuota()
        self.queue = QueueUnderTest(Gate(), groups=self.groups, quota=self.quota)
        self.nominator = self.queue.nominator
        self.newest: dict[str, Pod] = {}
        """What is left of the pods that were added: not those that were deleted or are done."""
        self.popped: list[QueuedPod] = []
        """What the scheduling loop holds, handed back or not: it may be confused."""
        self.tried: list[QueuedGroup] = []
        """Groups whose attempt has not ended."""
        self.versions = 0

    def a_version(self, uid: str, shape: dict[str, Any]) -> Pod:
        self.versions += 1
        return a_waiting_pod(uid, version=self.versions, **shape)

    def held(self, data: st.DataObject) -> QueuedPod | None:
        return data.draw(st.sampled_from(self.popped)) if self.popped else None

    # The watch, reliable or not.

    @rule(uid=uids, shape=shapes)
    def add(self, uid: str, shape: dict[str, Any]) -> None:
        self.newest[uid] = pod = self.a_version(uid, shape)
        self.queue.add(pod)

    @rule(uid=uids, shape=shapes, knows_old=st.booleans())
    def update(self, uid: str, shape: dict[str, Any], knows_old: bool) -> None:
        old = self.newest.get(uid) if knows_old else None
        self.newest[uid] = pod = self.a_version(uid, shape)
        self.queue.update(old, pod)

    @rule(uid=uids)
    def repeat(self, uid: str) -> None:
        pod = self.newest.get(uid)
        if pod is not None:
            self.queue.update(pod, pod)

    @rule(uid=uids)
    def delete(self, uid: str) -> None:
        self.queue.delete(uid)
        self.newest.pop(uid, None)

    @rule(event=events, uid=uids, checks=st.booleans())
    def move(self, event: ClusterEvent, uid: str, checks: bool) -> None:
        self.queue.move_all(event, None, object(), (lambda pod: pod.uid == uid) if checks else None)

    @rule(cores=st.integers(0, 4), wakes=st.booleans())
    def change_quota(self, cores: int, wakes: bool) -> None:
        self.quota.cores = cores
        for entry in tuple(self.queue.pending_for_quota):
            if wakes:
                self.queue.wake(entry.key, "QuotaFreed")
            else:
                self.queue.ask_quota_again(entry.key, "QuotaChanged")

    # The scheduling loop, careful or not.

    @rule()
    def pop(self) -> None:
        queued = self.queue.pop_nowait()
        if queued is None:
            assert len(self.queue.pending_pods()["active"]) == len(self.queue._held)
            return
        for each in pods_of(queued):
            assert each.pod is self.newest[each.pod.uid]
            self.popped.append(each)
        if isinstance(queued, QueuedGroup):
            queued.take_all()
            self.tried.append(queued)

    @rule(data=st.data(), code=st.sampled_from([Code.SUCCESS, Code.UNSCHEDULABLE, Code.ERROR]), refused_by=plugins)
    def end_group(self, data: st.DataObject, code: Code, refused_by: set[str]) -> None:
        if self.tried:
            group = data.draw(st.sampled_from(self.tried))
            self.tried.remove(group)
            self.queue.group_tried(group, code, refused_by)

    @rule(name=st.sampled_from("gh"), exists=st.booleans(), priority=st.integers(0, 3))
    def change_group(self, name: str, exists: bool, priority: int) -> None:
        (self.groups.missing.discard if exists else self.groups.missing.add)(name)
        self.groups.priorities[name] = priority
        self.queue.group_changed(self.groups.key(name))

    @rule(name=st.sampled_from("gh"))
    def wake_group(self, name: str) -> None:
        self.queue.wake(self.groups.key(name), "Woken")

    @rule()
    def repair(self) -> None:
        self.queue.rebuild()

    @rule(without=st.booleans())
    def regroup(self, without: bool) -> None:
        self.groups.are_off = without
        self.queue.regroup()

    @rule(data=st.data(), refused_by=plugins, pending=plugins)
    def fail(self, data: st.DataObject, refused_by: set[str], pending: set[str]) -> None:
        queued = self.held(data)
        if queued is None:
            return
        self.popped.remove(queued)
        if not self.queue.where(queued.pod.uid):
            # It was done already, and then its binding failed.
            self.newest[queued.pod.uid] = queued.pod
        self.queue.fail(queued, *refused_by, pending=tuple(pending))

    @rule(data=st.data(), lane=st.sampled_from(["x", "y"]))
    def hold(self, data: st.DataObject, lane: str) -> None:
        queued = self.held(data)
        if queued is not None and queued.group is None and queued in self.queue.in_flight_pods():
            self.popped.remove(queued)
            self.queue.hold(queued, lane)

    @rule(lane=st.sampled_from(["x", "y"]))
    def pop_held(self, lane: str) -> None:
        queued = self.queue.pop_held(lane)
        if queued is not None:
            assert queued.pod is self.newest[queued.pod.uid]
            self.popped.append(queued)

    @rule(data=st.data())
    def hand_back_twice(self, data: st.DataObject) -> None:
        queued = self.held(data)
        # Once it is dropped, as deleted, a pod that comes back is believed to be alive.
        if queued is not None and queued in self.queue.in_flight_pods() and queued.pod.uid in self.queue:
            self.queue.fail(queued, FIT)
            self.queue.add_unschedulable_if_not_present(queued)
            self.popped.remove(queued)

    @rule(data=st.data(), node_name=st.sampled_from(["", "n1", "n2"]))
    def nominate(self, data: st.DataObject, node_name: str) -> None:
        queued = self.held(data)
        if queued is not None and (queued.pod.uid in self.queue or queued in self.queue.in_flight_pods()):
            self.nominator.add(queued.pod, node_name)

    @rule(uid=uids)
    def done(self, uid: str) -> None:
        if self.queue.where(uid) == "in flight":
            self.newest.pop(uid, None)
            self.nominator.delete(uid)
        self.queue.done(uid)

    @rule(chosen=st.sets(uids, max_size=3))
    def activate(self, chosen: set[str]) -> None:
        self.queue.activate(chosen)

    # Time.

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.5, 11.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.queue.clock.advance(seconds)

    @rule()
    def flush(self) -> None:
        self.queue.flush_backoff_completed()
        self.queue.flush_unschedulable_leftover()

    # What always holds.

    @invariant()
    def is_consistent(self) -> None:
        self.queue.check_invariants()
        self.nominator.check_invariants()

    @invariant()
    def no_pod_is_lost_and_none_comes_back_from_the_dead(self) -> None:
        assert {uid for uid in "abcde" if uid in self.queue} == set(self.newest)

    @invariant()
    def every_waiting_pod_has_its_newest_version(self) -> None:
        for pods in self.queue.pending_pods().values():
            for queued in pods:
                assert queued.pod is self.newest[queued.pod.uid]

    def teardown(self) -> None:
        """When the trouble is over, every pod gets its turn, and nothing is left behind."""
        queue = self.queue
        for queued in queue.in_flight_pods():
            queue.fail(queued, "Unheard")
        for group in self.tried:
            queue.group_tried(group, Code.UNSCHEDULABLE)
        self.change_quota(99, wakes=False)
        for name in "gh":
            self.change_group(name, exists=True, priority=0)
        for uid in self.newest:
            queue.update(None, self.a_version(uid, {"labels": {"group": "g"} if uid in "de" else {}}))
        served: set[str] = set()
        for _ in range(400):
            queue.clock.advance(1)
            queue.flush_backoff_completed()
            queue.flush_unschedulable_leftover()
            while (popped := queue.pop_nowait() or queue.pop_held("x") or queue.pop_held("y")) is not None:
                served |= {each.pod.uid for each in pods_of(popped)}
                queue.drop(popped)
        assert served == set(self.newest)
        assert sum(queue.pending_counts().values()) == 0
        assert not queue.unschedulable_counts()
        queue.check_invariants()


TestQueueLife = QueueLife.TestCase
TestQueueLife.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
