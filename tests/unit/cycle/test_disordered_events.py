"""Random disorder: whatever the watch loses, doubles, reorders or garbles corrupts nothing, and a comparison heals it.

The truth is an API server in memory. Its news comes through the real intake into a whole engine, which goes on
deciding meanwhile. `LOADMASTER_SEED=7 pytest` on this file runs other steps; a failure is shrunk and printed
as the steps that lead to it. Not covered: Permit, and what only the binder does when no answer comes.
"""

import itertools
import os
from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.unit.cycle.api_truth import DELETION, LACKING, NODES, PODS, UNADDRESSED, UNREADABLE
from tests.unit.cycle.disorder import NAMES, UNKNOWN_NODE, World
from tests.unit.cycle.fakes import PROFILE

SEED: Final = int(os.environ.get("LOADMASTER_SEED", "4"))
STEPS: Final = 4_000
STORIES_OF_A_ROUND, STEPS_OF_A_STORY = 25, 100
"""Some stories end early, so the number of rounds is not fixed."""

names = st.sampled_from(NAMES)
resources = st.sampled_from((PODS, PODS, NODES))
rarely = st.sampled_from((False, False, False, True))


class Disorder(RuleBasedStateMachine):
    """One story."""

    steps = 0
    """Of all stories together."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.truth = self.world.truth

    # The cluster.

    @initialize()
    def there_are_nodes_and_pods(self) -> None:
        for number, name in enumerate(NAMES[:2]):
            self.truth.make_node(name, number + 2)
        for number in range(2):
            self.truth.make_pod(f"p{number}", {"schedulerName": PROFILE}, 1)
        for resource in (NODES, PODS):
            self.world.compare(resource)

    @rule(cpu=st.integers(1, 3), priority=st.integers(0, 2), foreign=rarely, gated=rarely)
    def a_pod_comes(self, cpu: int, priority: int, foreign: bool, gated: bool) -> None:
        spec: dict[str, Any] = {"schedulerName": "other" if foreign else PROFILE, "priority": priority}
        if gated:
            spec["schedulingGates"] = [{"name": "gate"}]
        self.truth.make_pod(f"p{len(self.truth.objects[PODS])}", spec, cpu)

    @precondition(lambda self: self.truth.objects[PODS])
    @rule(data=st.data(), label=st.sampled_from(["web", "db"]))
    def a_pod_changes(self, data: st.DataObject, label: str) -> None:
        uid = self.some(data, PODS)
        if self.truth.objects[PODS][uid]["spec"].get("schedulingGates"):
            self.truth.change(PODS, uid, "spec", "schedulingGates", to=None)
        else:
            self.truth.change(PODS, uid, "metadata", "labels", to={"app": label})

    @precondition(lambda self: self.truth.objects[PODS])
    @rule(data=st.data(), node_name=names)
    def somebody_else_binds_a_pod(self, data: st.DataObject, node_name: str) -> None:
        self.truth.bind(self.some(data, PODS), node_name)

    @precondition(lambda self: self.truth.objects[PODS])
    @rule(data=st.data(), how=st.sampled_from(["gone", "announced", "made again"]))
    def a_pod_is_deleted(self, data: st.DataObject, how: str) -> None:
        uid = self.some(data, PODS)
        name = self.truth.objects[PODS][uid]["metadata"]["name"]
        if how == "announced":
            self.truth.change(PODS, uid, "metadata", "deletionTimestamp", to=DELETION)
        else:
            self.truth.remove(PODS, uid)
        if how == "made again":
            self.truth.make_pod(name, {"schedulerName": PROFILE}, 1)

    @rule(name=names, cpu=st.integers(1, 6), how=st.sampled_from(["changed", "changed", "gone", "made again"]))
    def a_node_comes_changes_or_goes(self, name: str, cpu: int, how: str) -> None:
        uid = self.truth.node_named(name)
        if uid is None:
            self.truth.make_node(name, cpu)
        elif how == "changed":
            self.truth.change(NODES, uid, "status", "allocatable", "cpu", to=str(cpu))
        else:
            self.truth.remove(NODES, uid)
            if how == "made again":
                self.truth.make_node(name, cpu)

    @rule(data=st.data(), resource=resources, lacking=st.booleans())
    def an_object_is_spoilt(self, data: st.DataObject, resource: str, lacking: bool) -> None:
        if self.truth.objects[resource]:
            faults = (LACKING if lacking else UNREADABLE)[resource]
            self.truth.spoil(resource, self.some(data, resource), data.draw(st.sampled_from(sorted(faults))))

    @precondition(lambda self: self.truth.faults)
    @rule(data=st.data())
    def an_object_is_mended(self, data: st.DataObject) -> None:
        self.world.mend(data.draw(st.sampled_from(sorted(self.truth.faults))))

    # The watch.

    @precondition(lambda self: self.truth.on_the_way)
    @rule(data=st.data())
    def news_arrives(self, data: st.DataObject) -> None:
        self.world.tell(self.truth.take(data.draw(st.sampled_from(self.truth.next_of_each()))))

    @precondition(lambda self: self.truth.on_the_way)
    @rule(data=st.data())
    def news_overtakes_older_news_of_its_object(self, data: st.DataObject) -> None:
        self.world.tell(self.truth.take(data.draw(st.sampled_from(self.truth.on_the_way))))

    @precondition(lambda self: self.truth.on_the_way)
    @rule(data=st.data())
    def news_is_lost(self, data: st.DataObject) -> None:
        self.truth.take(data.draw(st.sampled_from(self.truth.on_the_way)))

    @precondition(lambda self: self.truth.told)
    @rule(data=st.data())
    def old_news_arrives_again_or_late(self, data: st.DataObject) -> None:
        self.world.tell(data.draw(st.sampled_from(list(self.truth.told))))

    @rule(
        resource=resources,
        type_=st.sampled_from(["ADDED", "MODIFIED", "DELETED"]),
        node_name=st.sampled_from(["", *NAMES, UNKNOWN_NODE]),
        foreign=rarely,
    )
    def news_of_an_unknown_object_arrives(self, resource: str, type_: str, node_name: str, foreign: bool) -> None:
        self.world.tell(self.truth.stranger(resource, type_, node_name, "other" if foreign else PROFILE))

    @rule(
        resource=resources,
        type_=st.sampled_from(["ADDED", "DELETED"]),
        fault=st.sampled_from(sorted(UNADDRESSED)),
    )
    def news_of_nobody_knows_whom_arrives(self, resource: str, type_: str, fault: str) -> None:
        raw = self.truth.stranger(resource, type_, "", PROFILE).raw
        UNADDRESSED[fault](raw)
        self.world.tell_garbage(resource, type_, raw)

    @rule()
    def all_news_arrives(self) -> None:
        while self.truth.on_the_way:
            self.world.tell(self.truth.take(self.truth.on_the_way[0]))

    # The comparison, as scheduler.kube.informers.relister does it: much may happen between its two halves.

    @rule(resource=resources)
    def a_list_is_read(self, resource: str) -> None:
        self.world.read_list(resource)

    @rule(data=st.data(), resource=resources)
    def an_object_goes_while_a_list_is_on_its_way(self, data: st.DataObject, resource: str) -> None:
        self.world.read_list(resource)
        if self.truth.objects[resource]:
            self.truth.remove(resource, self.some(data, resource))
            self.world.tell(self.truth.take(self.truth.on_the_way[-1]))

    @precondition(lambda self: self.world.lists)
    @rule(data=st.data())
    def a_list_is_compared(self, data: st.DataObject) -> None:
        resource = data.draw(st.sampled_from(sorted(self.world.lists)))
        self.world.repair(resource)

    # The scheduler.

    @rule(pods=st.integers(1, 4))
    def pods_are_tried(self, pods: int) -> None:
        for _ in range(pods):
            queued = self.world.engine.queue.pop_nowait()
            if queued is not None:
                self.world.place(queued)

    @precondition(lambda self: self.world.undecided())
    @rule(data=st.data(), refuse=rarely)
    def a_binding_is_decided(self, data: st.DataObject, refuse: bool) -> None:
        self.world.decide(data.draw(st.sampled_from(self.world.undecided())), refuse=refuse)

    @precondition(lambda self: self.world.decided)
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        self.world.answer(data.draw(st.sampled_from(sorted(self.world.decided))))

    @rule(seconds=st.sampled_from([0.5, 2.0, 11.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.engine.wait(seconds)

    # What always holds.

    @invariant()
    def all_is_consistent(self) -> None:
        Disorder.steps += 1
        self.world.check()

    def teardown(self) -> None:
        """When the trouble is over, all is as it should be: what was lost, a comparison finds."""
        try:
            self.world.heal()
        finally:
            self.world.close()

    # How.

    def some(self, data: st.DataObject, resource: str) -> str:
        return data.draw(st.sampled_from(list(self.truth.objects[resource])))


def test_disordered_events_corrupt_nothing_and_a_comparison_heals_all(capsys: pytest.CaptureFixture[str]) -> None:
    Disorder.steps = 0
    rules = settings(
        max_examples=STORIES_OF_A_ROUND,
        stateful_step_count=STEPS_OF_A_STORY,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )

    for number in itertools.count(SEED * 1_000):
        if Disorder.steps >= STEPS:
            break
        run_state_machine_as_test(seed(number)(Disorder), settings=rules)

    with capsys.disabled():
        print(f"\n{Disorder.steps:,} steps of disordered events, LOADMASTER_SEED={SEED}")
