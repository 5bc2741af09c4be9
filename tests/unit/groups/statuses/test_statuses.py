"""The status of a PodGroup of scheduling.x-k8s.io: what it says while the group comes, runs and ends."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api.groups import coscheduling as api
from scheduler.api.objects import OwnerReference
from scheduler.cycle.writers import Ending
from scheduler.framework.errors import ApiError, ClusterError
from scheduler.framework.events import COSCHEDULING_POD_GROUP
from tests.fakes import settle
from tests.unit.cycle.fakes import newer
from tests.unit.groups.coscheduling import Coscheduled


class Stage(Coscheduled):
    """With an API server that keeps the status."""

    def object(self, name: str = "g") -> Any:
        return self.engine.objects.get(COSCHEDULING_POD_GROUP, name, "default")

    def store(self, name: str, **changes: Any) -> Any:
        """Let the watch show a new version."""
        return self.show(COSCHEDULING_POD_GROUP, msgspec.structs.replace(self.object(name), **changes))

    async def status(self, name: str = "g") -> api.PodGroupStatus:
        """The status once what has changed is written."""
        self.statuses.write()
        await settle()
        found: api.PodGroupStatus = self.object(name).status
        return found

    async def phase(self) -> str:
        return (await self.status()).phase

    def report(self, phase: str, *pods: fw.Pod) -> None:
        """Let the watch show the phase of pods that are bound; those that have ended leave the watch."""
        for pod in pods:
            seen = newer(pod.bound_to(self.bound[pod.name]), phase=phase)
            if phase in ("Succeeded", "Failed"):
                self.engine.handlers.pod_deleted(seen)
            else:
                self.engine.handlers.pod_changed(seen)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_group_comes_runs_and_ends(stage: Stage) -> None:
    stage.create(minimum=2)
    assert await stage.phase() == "Pending"

    pods = stage.pods(2)
    assert await stage.phase() == "Scheduling"
    await stage.schedule()
    stage.report("Running", pods[0])
    assert await stage.phase() == "Scheduling"
    stage.report("Running", pods[1])
    assert await stage.phase() == "Running"
    stage.report("Succeeded", pods[0])
    assert await stage.phase() == "Running"
    stage.report("Succeeded", pods[1])

    assert await stage.status() == api.PodGroupStatus(
        phase="Finished", scheduled=0, succeeded=2, schedule_start_time="2023-11-14T22:13:20Z"
    )


async def test_counts_follow_the_pods(stage: Stage) -> None:
    pods = await stage.try_group(minimum=3, pods=3)
    stage.report("Running", *pods)

    status = await stage.status()

    assert (status.scheduled, status.running, status.succeeded, status.failed) == (3, 3, 0, 0)


async def test_a_pod_that_fails_while_the_others_run_fails_the_group(stage: Stage) -> None:
    pods = await stage.try_group(minimum=3, pods=3)
    stage.report("Running", *pods[:2])

    stage.report("Failed", pods[2])

    status = await stage.status()
    assert (status.phase, status.failed, status.running) == ("Failed", 1, 2)
    stage.pods(1, first=7)
    assert await stage.phase() == "Failed"


async def test_a_group_that_loses_its_pods_is_pending_again(stage: Stage) -> None:
    pods = stage.create(minimum=2, pods=2)
    assert await stage.phase() == "Scheduling"

    stage.engine.handlers.pod_deleted(pods[0])

    assert await stage.phase() == "Pending"


async def test_the_owners_of_the_pods_occupy_the_group(stage: Stage) -> None:
    (pod,) = stage.create(minimum=1, pods=1)
    owners = (OwnerReference(kind="Job", name="z"), OwnerReference(kind="JobSet", name="a"))
    metadata = msgspec.structs.replace(pod.metadata, owner_references=owners, resource_version="2")
    stage.engine.handlers.pod_changed(fw.Pod(metadata=metadata, spec=pod.spec))

    status = await stage.status()

    assert status.occupied_by == "default/a,default/z"


async def test_nothing_is_written_twice(stage: Stage) -> None:
    stage.create(minimum=2, pods=2)
    await stage.status()
    written = len(stage.patches)

    await stage.schedule()
    stage.store("g")
    for _ in range(3):
        await stage.status()

    assert len(stage.patches) == written


async def test_a_server_that_does_not_keep_a_count_is_not_told_again_and_again(stage: Stage) -> None:
    stage.unknown = {"scheduled": 0}
    pods = await stage.try_group(minimum=2, pods=2)
    stage.report("Running", *pods)
    assert await stage.phase() == "Running"
    written = len(stage.patches)

    for _ in range(3):
        stage.store("g")
        await stage.status()

    assert len(stage.patches) == written


async def test_what_ended_before_this_process_began_still_counts(stage: Stage) -> None:
    stage.create(minimum=3)
    stage.store("g", status=api.PodGroupStatus(phase="Running", succeeded=1))
    stage.statuses._ended.clear()
    stage.statuses.group_changed(COSCHEDULING_POD_GROUP, None, stage.object())
    pods = await stage.try_pods(2)
    stage.report("Running", *pods)
    assert (await stage.status()).running == 2

    stage.report("Succeeded", *pods)

    status = await stage.status()
    assert (status.phase, status.succeeded) == ("Finished", 3)


async def test_another_group_of_the_same_name_begins_anew(stage: Stage) -> None:
    (pod,) = await stage.try_group(minimum=1, pods=1)
    stage.report("Running", pod)
    stage.report("Succeeded", pod)
    assert await stage.phase() == "Finished"

    stage.delete()
    stage.create(minimum=1)

    assert await stage.phase() == "Pending"


async def test_a_conflict_is_tried_again_on_the_newest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.cycle.status_writer.FIRST_WAIT", 0.0)
    stage = Stage()
    stage.create(minimum=1)
    stage.errors = [ApiError(409, "it has changed"), ApiError(409, "it has changed")]

    assert await stage.phase() == "Pending"


async def test_a_refusal_is_logged_and_tried_with_the_next_change(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.create(minimum=1)
    stage.errors = [ApiError(403, "not allowed")]
    assert await stage.phase() == ""
    assert "The status of an object was not set" in caplog.text

    stage.pods(1)

    assert await stage.phase() == "Scheduling"


async def test_a_replica_that_does_not_lead_writes_nothing(stage: Stage) -> None:
    stage.create(minimum=1, pods=1)

    await settle()

    assert stage.patches == []


async def test_what_is_marked_is_forgotten_with_its_group(stage: Stage) -> None:
    for number in range(50):
        stage.create(f"g{number}", minimum=1, pods=1)
    await stage.status("g0")

    for pod in list(stage.engine.pods.values()):
        stage.engine.handlers.pod_deleted(pod)
    for number in range(50):
        stage.delete(f"g{number}")
    stage.statuses.write()
    await settle()

    assert not stage.statuses._ended
    assert not stage.statuses._writer._marked
    assert not stage.statuses._writer._wanted


async def test_a_replica_that_never_leads_remembers_only_so_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.cycle.status_writer.MAX_MARKED", 3)
    stage = Stage()

    for number in range(5):
        stage.create(f"g{number}", minimum=1)

    assert [key.name for key in stage.statuses._writer._marked] == ["g2", "g3", "g4"]


async def test_pods_that_come_after_all_were_deleted_begin_anew(stage: Stage) -> None:
    pods = await stage.try_group(minimum=2, pods=2)
    stage.report("Running", pods[0])
    stage.report("Succeeded", pods[0])
    assert (await stage.status()).succeeded == 1
    stage.engine.handlers.pod_deleted(pods[1])
    assert await stage.status() == api.PodGroupStatus(phase="Pending", schedule_start_time="2023-11-14T22:13:20Z")

    stage.pods(1, first=5)

    assert await stage.schedule() == 0


class Endings:
    """A cycle.writers.EndedPods that knows how pods have ended."""

    def __init__(self, *earlier: fw.Pod, **phases: str) -> None:
        """`earlier`: pods that had succeeded before the watch began."""
        self.earlier = earlier
        self.phases = phases

    async def succeeded(self) -> AsyncIterator[fw.Pod]:
        for pod in self.earlier:
            yield pod

    async def ending(self, pod: fw.Pod) -> Ending | None:
        phase = self.phases.get(pod.name.replace("-", "_"))
        if phase == "away":
            raise ClusterError("the API server is away")
        return Ending(phase, "", "") if phase else None


async def test_how_a_pod_has_ended_is_read_as_the_watch_does_not_show_it(stage: Stage) -> None:
    pods = await stage.try_group(minimum=2, pods=4)
    stage.report("Running", *pods)
    assert await stage.phase() == "Running"

    for pod in pods:
        stage.engine.handlers.pod_deleted(newer(pod.bound_to(stage.bound[pod.name]), phase="Running"))
    await stage.statuses.read(Endings(g_0="Succeeded", g_1="Succeeded", g_2="away"))

    status = await stage.status()
    assert (status.phase, status.succeeded, status.failed, status.running) == ("Finished", 2, 0, 0)


async def test_a_pod_that_was_waiting_for_its_group_is_placed_once_another_is_known_to_have_succeeded() -> None:
    stage = Stage()
    pods = stage.annotated(2, 2)
    await stage.schedule()
    first, second = (newer(pod.bound_to(stage.bound[pod.name]), phase="Running") for pod in pods)
    stage.engine.handlers.pod_changed(second)
    stage.engine.handlers.pod_deleted(first)
    stage.engine.handlers.pod_deleted(newer(second, deletion_timestamp="2026-01-01T00:00:00Z"))
    stage.annotated(1, 2, first=7)
    assert await stage.schedule() == 0

    await stage.statuses.read(Endings(a_0="Succeeded"))
    await stage.schedule()

    assert "a-7" in stage.bound


async def test_a_group_of_pods_without_a_controller_begins_again_once_all_have_ended(stage: Stage) -> None:
    (pod,) = stage.annotated(1, 1)
    await stage.schedule()
    stage.engine.handlers.pod_deleted(newer(pod.bound_to(stage.bound["a-0"]), phase="Running"))

    await stage.statuses.read(Endings(a_0="Succeeded"))
    stage.annotated(1, 2, first=7)
    await stage.schedule()

    assert "a-7" not in stage.bound


@pytest.mark.parametrize(("controller", "counts"), [("this run", True), ("the next run", False)])
async def test_a_success_counts_for_pods_of_the_same_controller(stage: Stage, controller: str, counts: bool) -> None:
    first = (OwnerReference(uid="this run", controller=True),)
    pods = [newer(pod, owner_references=first) for pod in stage.annotated(2, 2)]
    stage.under_test.see(*pods)
    await stage.schedule()
    ended, other = (newer(pod.bound_to(stage.bound[pod.name]), phase="Running") for pod in pods)
    stage.under_test.see(ended, other)
    stage.engine.handlers.pod_deleted(ended)
    stage.under_test.see(newer(other, deletion_timestamp="2026-01-01T00:00:00Z"))

    await stage.statuses.read(Endings(a_0="Succeeded"))
    (late,) = stage.annotated(1, 2, first=7)
    stage.under_test.see(newer(late, owner_references=(OwnerReference(uid=controller, controller=True),)))
    await stage.schedule()

    assert ("a-7" in stage.bound) is counts


@pytest.mark.parametrize(("controller", "counts"), [("this run", True), ("an earlier run", False)])
async def test_after_a_restart_pods_that_had_succeeded_count_if_they_are_of_this_run(
    controller: str, counts: bool
) -> None:
    stage = Stage()
    pods = zip(stage.annotated(2, 2), ("this run", controller), strict=True)
    pod, ended = (newer(pod, owner_references=(OwnerReference(uid=of, controller=True),)) for pod, of in pods)
    stage.engine.handlers.pod_changed(pod)
    stage.engine.handlers.pod_deleted(ended)

    await stage.statuses.read_earlier(Endings(newer(ended, phase="Succeeded")))
    await stage.schedule()

    assert ("a-0" in stage.bound) is counts
