"""PodGroups as operators create them for Volcano: what their pods need, and what their status says."""

from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.api.groups import volcano as api
from scheduler.api.objects import GroupedMeta
from scheduler.framework.events import VOLCANO_POD_GROUP, VOLCANO_QUEUE
from tests.fakes import settle
from tests.unit.cycle.fakes import newer
from tests.unit.groups.coscheduling import Coscheduled


class Volcano(Coscheduled):
    """With an API server that keeps the status of Volcano's PodGroups."""

    def group(self, name: str = "pg", minimum: int = 2, **spec: Any) -> None:
        """Let the watch show a PodGroup."""
        metadata = GroupedMeta(name=name, namespace="default", uid=f"u-{name}")
        self.show(VOLCANO_POD_GROUP, api.PodGroup(metadata=metadata, spec=api.PodGroupSpec(min_member=minimum, **spec)))

    def queue(self, name: str) -> None:
        """Let the watch show a queue."""
        self.show_written(VOLCANO_QUEUE, {"name": name})

    def members(self, count: int, first: int = 0, group: str = "pg") -> list[fw.Pod]:
        names = [f"p{number}" for number in range(first, first + count)]
        return self.see(names, annotations={"scheduling.k8s.io/group-name": group})

    async def status(self) -> api.PodGroupStatus:
        """The status once what has changed is written."""
        self.statuses.write()
        await settle()
        group = self.engine.objects.get(VOLCANO_POD_GROUP, "pg", "default")
        assert group is not None
        found: api.PodGroupStatus = group.status
        return found

    async def said(self) -> tuple[str, dict[str, str]]:
        """The phase, and the type of each condition that is True → its reason."""
        status = await self.status()
        return status.phase, {each.type: each.reason for each in status.conditions or () if each.status == "True"}


async def test_the_pods_of_a_pod_group_start_together() -> None:
    stage = Volcano()
    stage.group(minimum=3)
    (pod, _) = stage.members(2)
    await stage.schedule()
    assert (stage.bound, "minMember of group: 3" in stage.refusal(pod)) == ({}, True)

    stage.members(1, first=2)
    await stage.schedule()

    assert len(stage.bound) == 3


@pytest.mark.parametrize(
    ("spec", "needed"),
    [({"minimum": 0}, 0), ({"min_task_member": {"ps": 1, "worker": 2}}, 3), ({"min_task_member": {"ps": 1}}, 2)],
)
def test_a_group_needs_its_members_or_those_of_its_tasks(spec: dict[str, Any], needed: int) -> None:
    stage = Volcano()
    stage.group(**spec)
    (pod,) = stage.members(1)

    group = stage.under_test.framework.handle.pod_groups.of(pod)

    assert group is not None
    assert (group.minimum, group.problem) == (needed, "")


async def test_resources_must_be_free_before_a_pod_starts() -> None:
    stage = Volcano(nodes=1)
    stage.group(minimum=1, min_resources={"cpu": "3"})
    stage.members(1)

    await stage.schedule()

    assert stage.bound == {}


async def test_a_group_waits_for_its_queue_where_there_are_queues() -> None:
    stage = Volcano()
    stage.queue("default")
    stage.group(minimum=1, queue="ml")
    (pod,) = stage.members(1)
    await stage.schedule()
    assert stage.refusal(pod) == 'the queue "ml" of the PodGroup does not exist'
    assert await stage.said() == ("Pending", {"Unschedulable": "NotEnoughResources"})

    stage.queue("ml")
    await stage.schedule()

    assert stage.bound.keys() == {"p0"}


async def test_without_queues_none_is_waited_for() -> None:
    stage = Volcano()
    stage.group(minimum=1, queue="ml")
    stage.members(1)

    await stage.schedule()

    assert stage.bound.keys() == {"p0"}


async def test_the_status_says_how_far_a_group_is() -> None:
    stage = Volcano()
    stage.group(minimum=2)
    stage.members(1)
    assert await stage.said() == ("Inqueue", {"Unschedulable": "NotEnoughTasks"})

    stage.members(1, first=1)
    await stage.schedule()
    assert await stage.said() == ("Running", {"Scheduled": "tasks in gang are ready to be scheduled"})

    seen = [newer(pod.bound_to(stage.bound[pod.name]), phase="Running") for pod in stage.members(2)]
    for pod in seen:
        stage.engine.handlers.pod_changed(pod)
    assert (await stage.status()).running == 2

    for pod in seen:
        stage.engine.handlers.pod_deleted(newer(pod, phase="Succeeded"))
    status = await stage.status()
    assert (status.phase, status.running, status.succeeded) == ("Completed", 0, 2)


async def test_the_status_of_groups_with_pods_of_others_is_theirs() -> None:
    stage = Volcano()
    stage.group()

    assert await stage.status() == api.PodGroupStatus()


@pytest.mark.parametrize("name", ["volcano", "kai-scheduler", "scheduler-plugins-scheduler", "yunikorn"])
async def test_a_profile_may_have_the_name_of_another_scheduler(name: str) -> None:
    stage = Volcano(profiles=(name,))
    stage.group(minimum=2)
    annotations = {"scheduling.k8s.io/group-name": "pg"}
    stage.see(["p0"], annotations=annotations, scheduler_name=name)
    await stage.schedule()
    assert stage.bound == {}

    stage.see(["p1"], annotations=annotations, scheduler_name=name)
    await stage.schedule()

    assert stage.bound.keys() == {"p0", "p1"}
