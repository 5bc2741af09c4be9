"""Evictions: a condition, then the deletion of that very pod, whatever the API server makes of it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from scheduler.api.objects import PodCondition, PodStatus
from scheduler.kube.http.client import Client, Reply
from scheduler.kube.http.retries import WRITES, Outcome
from scheduler.kube.writes.evictor import ApiEvictor
from scheduler.kube.writes.status import PodStatuses
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.testing import a_pod
from tests.unit.kube.fake_api import Answer, FakeApi, fake_client, until
from tests.unit.kube.writes.script import CONFLICT, FAILED, NO_ANSWER, REFUSED, WAIT, NextCall, answer, end_of

UID = "uid-web"
DELETED, GONE = True, False


def found(uid: str) -> Reply:
    return Reply(200, f'{{"metadata":{{"uid":"{uid}"}}}}'.encode())


OK = answer(200)


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        pytest.param([OK], ("DELETE", 0.0), id="the condition first, then the deletion"),
        pytest.param([OK, OK], DELETED, id="both, and it goes"),
        pytest.param([OK, answer(202)], DELETED, id="accepted is deleted: the pod has its grace period"),
        pytest.param([answer(404)], GONE, id="gone before the condition"),
        pytest.param([OK, answer(404)], GONE, id="gone before the deletion"),
        pytest.param([OK, CONFLICT], GONE, id="another pod has its name: the precondition failed"),
        pytest.param([CONFLICT], ("GET", WAIT), id="a patch in conflict is settled by a read"),
        pytest.param([CONFLICT, found(UID)], ("PATCH", 0.0), id="it is still there: again"),
        pytest.param([CONFLICT, found("other")], GONE, id="another one has its name"),
        pytest.param([CONFLICT, answer(404)], GONE, id="it is gone"),
        pytest.param([CONFLICT, NO_ANSWER], ("GET", 2 * WAIT), id="a read without an answer is repeated"),
        pytest.param([CONFLICT, FAILED], ("GET", 2 * WAIT), id="a read that fails is repeated"),
        pytest.param([CONFLICT, Reply(200, b"<html>")], ("GET", 2 * WAIT), id="an answer that is no pod is none"),
        pytest.param([REFUSED], ("PATCH", WAIT), id="a patch that was not sent"),
        pytest.param([NO_ANSWER], ("PATCH", WAIT), id="a patch without an answer"),
        pytest.param([FAILED], ("PATCH", WAIT), id="a patch that the server failed at"),
        pytest.param([answer(401)], ("PATCH", WAIT), id="a patch with expired credentials"),
        pytest.param([answer(429, retry_after=3.0)], ("PATCH", 3.0), id="a patch that is one too many"),
        pytest.param([OK, REFUSED], ("DELETE", WAIT), id="a deletion that was not sent"),
        pytest.param([OK, NO_ANSWER], ("DELETE", WAIT), id="a deletion without an answer"),
        pytest.param([OK, FAILED], ("DELETE", WAIT), id="a deletion that the server failed at"),
        pytest.param([OK, answer(429, retry_after=3.0)], ("DELETE", 3.0), id="a deletion that is one too many"),
        pytest.param([OK, NO_ANSWER, answer(404)], DELETED, id="it was the lost deletion that took effect"),
        pytest.param([OK, FAILED, CONFLICT], DELETED, id="and it was recreated since"),
        pytest.param([OK, REFUSED, answer(404)], GONE, id="what was not sent has not deleted it"),
        pytest.param([answer(403, "no")], "evicting pod shop/web: no", id="a forbidden patch"),
        pytest.param([answer(422, "invalid")], "evicting pod shop/web: invalid", id="an invalid patch"),
        pytest.param([OK, answer(403, "no")], "evicting pod shop/web: no", id="a forbidden deletion"),
        pytest.param([REFUSED] * 8, ("PATCH", 2.0), id="waits have a limit"),
        pytest.param(
            [REFUSED] * WRITES.tries, "evicting pod shop/web: connection refused (10 tries)", id="tries have a limit"
        ),
    ],
)
def test_next_step(outcomes: list[Outcome], last: str | NextCall | bool) -> None:
    async def evict(client: Client) -> bool:
        statuses = PodStatuses(client, Tasks(Metrics()))
        return await ApiEvictor(client, statuses, lambda: NOW).evict(POD, HIGH, MESSAGE)

    assert end_of(outcomes, evict) == last


POD = a_pod("web", namespace="shop", uid=UID)
HIGH = a_pod("high")
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"
PATCH = "PATCH /api/v1/namespaces/shop/pods/web/status"
DELETE = "DELETE /api/v1/namespaces/shop/pods/web"
NOW = 1_700_000_000.0


async def evict(directory: Path, api: FakeApi, **status: Any) -> bool:
    victim = msgspec.structs.replace(POD, status=PodStatus(**status))
    async with fake_client(directory, api) as client:
        return await ApiEvictor(client, PodStatuses(client, Tasks(Metrics())), lambda: NOW).evict(victim, HIGH, MESSAGE)


async def test_the_owner_reads_why_and_only_this_pod_is_deleted(tmp_path: Path) -> None:
    api = FakeApi().on(PATCH, Answer())
    api.on(DELETE, Answer())

    assert await evict(tmp_path, api)

    patch, deletion = api.requests
    assert patch.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert patch.body["metadata"] == {"uid": UID}
    (condition,) = patch.body["status"]["conditions"]
    written = {key: condition[key] for key in ("type", "status", "reason", "message", "lastTransitionTime")}
    assert written == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": MESSAGE,
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }
    assert deletion.method == "DELETE"
    assert deletion.body == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": UID}}


async def test_a_condition_that_is_there_is_not_set_again(tmp_path: Path) -> None:
    api = FakeApi().on(DELETE, Answer())
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=MESSAGE)

    assert await evict(tmp_path, api, conditions=(condition,))
    assert [request.method for request in api.requests] == ["DELETE"]


async def test_a_nomination_is_cleared_in_the_background(tmp_path: Path) -> None:
    api = FakeApi().on(PATCH, Answer())
    async with fake_client(tmp_path, api) as client:
        statuses = PodStatuses(client, Tasks(Metrics()))
        nominated = msgspec.structs.replace(POD, status=PodStatus(nominated_node_name="n1"))
        ApiEvictor(client, statuses).clear_nomination(nominated)
        await until(lambda: api.requests and not statuses.busy)
        await statuses.close()

    (patch,) = api.requests

    assert patch.body["status"] == {"nominatedNodeName": None}
