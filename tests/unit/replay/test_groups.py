"""Groups of pods in a trace: decided again as a whole, to the same result."""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
import pytest

from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.cycle import loop as loop_module
from scheduler.framework.events import COMPOSITE_POD_GROUP, POD_GROUP
from scheduler.groups import what_if
from tests.fakes import settle
from tests.unit.replay.stage import Stage, a_busy_hour, enabled
from tests.unit.replay.traces import MOST_ALLOCATED, Play, RecordedTrace

GATES: Final = "GenericWorkload=true,GangScheduling=true"
ALL_GATES: Final = f"{GATES},TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"


def a_group(
    stage: Stage,
    name: str,
    minimum: int,
    *keys: str,
    priority: int = 0,
    resource: str = POD_GROUP,
    parent: str | None = None,
) -> None:
    """Let the watch show a PodGroup, or CompositePodGroup."""
    stage.versions += 1
    topology = tuple(api.TopologyConstraint(key=key) for key in keys)
    spec = api.PodGroupSpec(
        scheduling_policy=api.SchedulingPolicy(gang=api.GangPolicy(min_count=minimum, min_group_count=minimum)),
        scheduling_constraints=api.SchedulingConstraints(topology=topology) if keys else None,
        priority=priority,
        parent_composite_pod_group_name=parent,
    )
    metadata = ObjectMeta(name=name, namespace="default", uid=name, resource_version=str(stage.versions))
    stage.engine.object_handlers.object_changed(resource, api.PodGroup(metadata=metadata, spec=spec))


def members(stage: Stage, group: str, count: int, cpu: str = "1500m", **spec: Any) -> None:
    for number in range(count):
        resources = {"resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
        grouped = {"container": resources, "schedulingGroup": {"podGroupName": group}, **spec}
        stage.pod(f"{group}-{number}", grouped)


async def gangs(stage: Stage, count: int = 12, keys: Sequence[str] = ()) -> None:
    """Gangs of all sizes among other pods, until there is no space for some."""
    random_ = random.Random(3)
    for number in range(count):
        size = random_.randrange(2, 9)
        a_group(stage, f"gang-{number}", size, *keys, priority=100 * (number % 2))
        members(stage, f"gang-{number}", size, priority=100 * (number % 2))
        await a_busy_hour(stage, seed=100 + number, pods=4)
        stage.clock.advance(2.0)
        stage.engine.queue.flush_backoff_completed()
        await stage.schedule()


async def annotated_gangs(stage: Stage) -> None:
    """The same by annotations; some need one zone."""
    random_ = random.Random(5)
    for gang in range(12):
        size = random_.randrange(2, 9)
        annotations = {
            "loadmaster.dev/pod-group": f"gang-{gang}",
            "loadmaster.dev/pod-group-min-available": str(size),
            **({"loadmaster.dev/required-topology": "zone"} if gang % 3 == 0 else {}),
        }
        for number in range(size):
            resources = {"resources": {"requests": {"cpu": "1500m", "memory": "256Mi"}}}
            stage.pod(f"gang-{gang}-{number}", {"container": resources}, annotations=annotations)
        await a_busy_hour(stage, seed=200 + gang, pods=4)
        stage.clock.advance(2.0)
        stage.engine.queue.flush_backoff_completed()
        await stage.schedule()


async def trees(stage: Stage) -> None:
    """Trees of three gangs each, of which two have to fit, until there is no space for some."""
    for number in range(8):
        a_group(stage, f"tree-{number}", 2, resource=COMPOSITE_POD_GROUP)
        for part in range(3):
            a_group(stage, f"gang-{number}-{part}", 2, parent=f"tree-{number}")
            members(stage, f"gang-{number}-{part}", 2 + part)
        await stage.schedule()


def outcomes(trace: RecordedTrace) -> list[str]:
    """The nodes, or nothing, of all members in a trace."""
    return [line[3][0] for line in trace.lines("member")]


@pytest.mark.parametrize(
    ("play", "settings"),
    [
        pytest.param(gangs, {"gates": GATES}, id="gangs"),
        pytest.param(gangs, {"gates": ALL_GATES}, id="preemption"),
        pytest.param(partial(gangs, keys=("zone",)), {"gates": ALL_GATES}, id="topology"),
        pytest.param(trees, {"gates": f"{ALL_GATES},CompositePodGroup=true"}, id="trees"),
        pytest.param(annotated_gangs, {"profile": enabled("Coscheduling")}, id="annotations"),
    ],
)
def test_gangs_are_decided_again_to_the_same_result(play: Play, settings: dict[str, Any], trace: RecordedTrace) -> None:
    trace.record(play, **settings)

    report = trace.decided_again()
    assert {bool(node) for node in outcomes(trace)} == {True, False}
    assert report["decisions"] == sum(kind in ("decide", "member") for kind in trace.kinds())


def test_a_recording_that_begins_amid_gangs_knows_their_members(trace: RecordedTrace) -> None:
    async def before(stage: Stage) -> None:
        a_group(stage, "g", 3)
        members(stage, "g", 4, cpu="1")
        await stage.schedule()
        a_group(stage, "late", 3)
        members(stage, "late", 2)

    async def play(stage: Stage) -> None:
        stage.pod("late-2", {"schedulingGroup": {"podGroupName": "late"}})
        stage.pod("g-4", {"schedulingGroup": {"podGroupName": "g"}})
        await stage.schedule()

    trace.record(play, before=before, gates=GATES)

    trace.decided_again()
    assert len(outcomes(trace)) == 4
    assert all(outcomes(trace))


async def a_gang(stage: Stage, name: str = "g") -> None:
    a_group(stage, name, 3)
    members(stage, name, 3)
    await stage.schedule()


def test_a_large_group_keeps_the_scores_of_its_first_members(
    trace: RecordedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if, "MAX_SCORES", 13)  # there are 12 nodes

    trace.record(a_gang, gates=GATES)

    decisions = [line[3] for line in trace.lines("member")]
    assert [len(each) > 3 and each[3] > 0 for each in decisions] == [True, True, False]


def test_a_member_has_the_scores_of_its_own_decision(trace: RecordedTrace) -> None:
    trace.record(partial(a_gang, name="h"), before=a_gang, gates=GATES)

    trace.decided_again()  # in which no pod was seen before


WHOLE_NODE: Final = {"resources": {"requests": {"cpu": "4"}}}


async def a_gang_evicts(stage: Stage) -> None:
    """All nodes are full, and the victims of a gang of two are leaving."""

    async def evict(victim: Pod, preemptor: Pod, message: str) -> bool:
        newest = stage.newer(stage.engine.pods[victim.uid])
        leaving = msgspec.structs.replace(newest.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        stage.engine.handlers.pod_changed(msgspec.structs.replace(newest, metadata=leaving))
        return True

    stage.evict = evict  # type: ignore[method-assign]
    for number in range(9):
        stage.pod(f"low-{number}", {"container": dict(WHOLE_NODE)})
    await stage.schedule()
    annotations = {"loadmaster.dev/pod-group": "g", "loadmaster.dev/pod-group-min-available": "2"}
    for number in range(2):
        stage.pod(f"g-{number}", {"container": dict(WHOLE_NODE), "priority": 10}, annotations=annotations)
    await stage.schedule()
    assert len(leaving_of(stage)) == 2


def leaving_of(stage: Stage) -> list[Pod]:
    return [pod for pod in stage.engine.pods.values() if pod.is_deleting]


async def its_victims_end(stage: Stage) -> None:
    """The victims end one by one, while another pod would like their nodes."""
    stage.pod("urgent", {"container": dict(WHOLE_NODE), "priority": 100})
    for pod in leaving_of(stage):
        await stage.schedule()
        stage.engine.handlers.pod_deleted(pod)
        stage.clock.advance(20.0)
        stage.engine.queue.flush_backoff_completed()
    await stage.schedule()


async def evicts_and_starts(stage: Stage) -> None:
    await a_gang_evicts(stage)
    await its_victims_end(stage)


@pytest.mark.parametrize(
    ("before", "play"),
    [(None, evicts_and_starts), (a_gang_evicts, its_victims_end)],
    ids=["begins before", "begins after"],
)
def test_what_is_kept_for_a_gang_that_evicts_is_kept_in_a_replay(
    before: Play | None, play: Play, trace: RecordedTrace
) -> None:
    trace.record(play, before=before, profile=enabled("Coscheduling"))

    trace.decided_again()
    assert [bool(node) for node in outcomes(trace)][-2:] == [True, True]


def test_a_member_that_was_put_on_another_node_is_found(trace: RecordedTrace) -> None:
    def put_elsewhere(line: list[Any]) -> None:
        if line[0] == "member" and line[2] == "g-1":
            line[3][0] = "node-9"

    trace.record(a_gang, gates=GATES)
    trace.edit(put_elsewhere)

    code, report = trace.replay("--edited")

    assert code == 1
    assert [(each["pod"], each["kind"], each["then"]) for each in report["differences"]] == [
        ("default/g-1", "other node", {"node": "node-9"})
    ]


def test_a_gang_whose_minimum_was_changed_is_found(trace: RecordedTrace) -> None:
    def ask_for_more(line: list[Any]) -> None:
        if line[0] == "object" and line[2] == POD_GROUP:
            line[3]["spec"]["schedulingPolicy"]["gang"]["minCount"] = 4

    trace.record(a_gang, gates=GATES)
    trace.edit(ask_for_more)

    code, report = trace.replay("--edited")

    assert (code, report["kinds"]) == (1, {"placed only then": 3})


def test_another_configuration_decides_about_the_group_as_a_whole(trace: RecordedTrace) -> None:
    trace.record(partial(gangs, count=6), gates=GATES)

    report = trace.decided_by(MOST_ALLOCATED)

    assert report["kinds"]["other node"] > 5
    assert report["carriedOn"]["now"]["nodesUsed"] < report["carriedOn"]["then"]["nodesUsed"]
    assert not [note for note in report["notes"] if "recorded configuration, too" in note]


def test_a_decision_that_began_before_the_recording_is_left_out(trace: RecordedTrace) -> None:
    trace.record(a_gang, gates=GATES, kind=Late)

    assert trace.decided_again()["decisions"] == 0
    assert outcomes(trace) == []


class Late(Stage):
    """Its recordings miss how decisions about groups begin."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        publish = self.engine.stream.publish

        def published(event: Any) -> None:
            if type(event).__name__ != "GroupStarted":
                publish(event)

        self.engine.stream.publish = published  # type: ignore[method-assign]


async def interrupted(stage: Stage) -> None:
    """Large gangs, while pods of other schedulers come to nodes and nodes change."""
    loop, random_ = stage.engine.loop, random.Random(4)
    task = asyncio.create_task(loop.run())
    for gang in range(3):
        a_group(stage, f"gang-{gang}", 16)
        members(stage, f"gang-{gang}", 16, cpu="700m")
        for number in range(120):
            await asyncio.sleep(0)
            if loop.group_steps and number % 10 == 0:
                node = f"node-{random_.randrange(12)}"
                resources = {"resources": {"requests": {"cpu": "300m"}}}
                stage.pod(
                    f"other-{gang}-{number}", {"container": resources, "nodeName": node, "schedulerName": "other"}
                )
            if number % 40 == 7:
                stage.node(f"late-{gang}-{number}", allocatable={"cpu": "1", "memory": "1Gi", "pods": 9})
    await settle()
    stage.engine.queue.close()
    await task


def test_what_happens_in_the_middle_of_a_decision_is_repeated_in_the_same_place(
    trace: RecordedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)
    trace.record(interrupted, gates=GATES)

    trace.decided_again()
    assert len(trace.lines("steps")) > 5
    assert len(outcomes(trace)) >= 48


def test_without_the_steps_it_is_decided_in_another_state(
    trace: RecordedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget_steps(line: list[Any]) -> None:
        if line[0] == "steps":
            line[2] = 0

    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)
    trace.record(interrupted, gates=GATES)
    trace.edit(forget_steps)

    assert trace.replay("--edited")[0] == 1
