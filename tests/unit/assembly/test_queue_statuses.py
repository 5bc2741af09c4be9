"""`status` of ClusterQueues: how many pods wait and run, what they use, and whether the queue takes any."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler.api.decoding import convert
from scheduler.api.quota import kueue as api
from scheduler.assembly.queue_statuses import QueueStatuses
from scheduler.assembly.share_gauges import ShareGauges
from scheduler.framework.errors import ApiError
from scheduler.framework.events import CLUSTER_QUEUE
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.fakes import settle
from tests.unit.cycle.fakes import PROFILE
from tests.unit.quota.kueue_objects import a_queue
from tests.unit.quota.waiting.test_kueue_queues import Queues

CORES: Mapping[str, Mapping[str, list[str | None]]] = {"on-demand": {"cpu": ["2"]}}


class Stage:
    """Two ClusterQueues of a cohort, with two cores each, and an API server that takes statuses."""

    def __init__(self, *, is_on: bool = True, **spec: Any) -> None:
        self.queues = Queues(a_queue("b", "all", [CORES]), groups=(CORES,), cohort="all", **spec)
        engine, metrics = self.queues.engine, Metrics()
        plugin: Any = engine.frameworks[PROFILE].plugins.by_name[CapacityScheduling.name]
        plugin.kueue_status = is_on
        engine.share_parts.use(engine.frameworks)
        self.written: dict[str, Any] = {}
        self.errors: list[Exception] = []
        """That the next patches of the queue `a` are answered with."""
        self._gauges = ShareGauges(engine, metrics)
        self._statuses = QueueStatuses(engine, self, Tasks(metrics), now=lambda: 1_800_000_000.0)  # type: ignore[arg-type]

    async def patch(self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str) -> Any:
        assert (resource, namespace, subresource) == (CLUSTER_QUEUE, "", "status")
        if name == "a" and self.errors:
            raise self.errors.pop(0)
        self.written[name] = json.loads(json.dumps(patch["status"]))
        before: Any = self.queues.engine.objects.get(resource, name)
        status = convert(patch["status"], api.ClusterQueueStatus)
        changed = msgspec.structs.replace(before, status=status)
        self.queues.put(changed)
        return self.queues.engine.objects.get(resource, name)

    async def look(self) -> dict[str, Any]:
        """Let the shares be looked at; return what is written then."""
        self.written = {}
        await self._gauges.look()
        await settle()
        return self.written


async def test_a_queue_shows_what_waits_runs_and_is_borrowed() -> None:
    stage = Stage()
    for number in range(5):
        stage.queues.pod(f"p{number}")
    await stage.queues.schedule()

    status = (await stage.look())["a"]

    used = [{"name": "on-demand", "resources": [{"name": "cpu", "total": "4", "borrowed": "2"}]}]
    assert status == {
        "pendingWorkloads": 1,
        "reservingWorkloads": 4,
        "admittedWorkloads": 4,
        "flavorsReservation": used,
        "flavorsUsage": used,
        "conditions": [
            {
                "type": "Active",
                "status": "True",
                "reason": "Ready",
                "message": "Can admit new workloads",
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            }
        ],
    }


async def test_only_changes_are_written_zeros_included() -> None:
    stage = Stage()
    pod = stage.queues.pod("p")
    await stage.queues.schedule()
    assert (await stage.look()).keys() == {"a", "b"}
    assert await stage.look() == {}

    stage.queues.delete(pod)

    written = await stage.look()
    assert written.keys() == {"a"}
    assert written["a"]["admittedWorkloads"] == 0
    assert written["a"]["flavorsUsage"][0]["resources"] == [{"name": "cpu", "total": "0", "borrowed": "0"}]


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        ({"stopPolicy": "Hold"}, "Stopped", "it is stopped, its stopPolicy is Hold"),
        ({"admissionChecksStrategy": {"admissionChecks": [{"name": "x"}]}}, "AdmissionCheckInactive", "carry out: x"),
    ],
)
async def test_a_queue_that_takes_no_pods_says_why(spec: dict[str, Any], reason: str, text: str) -> None:
    (condition,) = (await Stage(**spec).look())["a"]["conditions"]

    assert (condition["status"], condition["reason"]) == ("False", reason)
    assert condition["message"].startswith("Can't admit new workloads: ")
    assert condition["message"].endswith(text)


async def test_conditions_of_others_stay() -> None:
    stage = Stage()
    at = "2026-01-01T00:00:00Z"
    other = {"type": "Other", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": at}
    queue: Any = stage.queues.engine.objects.get(CLUSTER_QUEUE, "a")
    status = convert({"conditions": [other]}, api.ClusterQueueStatus)
    stage.queues.put(msgspec.structs.replace(queue, status=status))

    conditions = (await stage.look())["a"]["conditions"]

    assert [each["type"] for each in conditions] == ["Other", "Active"]
    assert conditions[0] == other


@pytest.mark.parametrize("status", [404, 403, 0, 504], ids=["gone", "not allowed", "no answer", "timeout"])
async def test_a_refused_write_costs_no_other_queue_and_is_tried_at_the_next_look(status: int) -> None:
    stage = Stage()
    stage.errors = [ApiError(status, "refused")]

    assert (await stage.look()).keys() == {"b"}
    assert (await stage.look()).keys() == {"a"}


async def test_a_conflict_is_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.cycle.status_writer.FIRST_WAIT", 0.0)
    stage = Stage()
    stage.errors = [ApiError(409, "it has changed")]

    assert (await stage.look()).keys() == {"a", "b"}


async def test_a_queue_that_is_deleted_gets_no_write_and_without_the_argument_none_does() -> None:
    stage = Stage()
    stage.queues.remove(CLUSTER_QUEUE, "b")

    assert (await stage.look()).keys() == {"a"}
    assert await Stage(is_on=False).look() == {}
