"""Evictions: a condition, then the deletion of that very pod, whatever the API server makes of it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from scheduler.api.objects import PodCondition, PodStatus
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import AnswerLost, NotSent, Reply
from scheduler.kube.http.retries import WRITES, Failed, Outcome, Read
from scheduler.kube.writes.evictor import ApiEvictor, Delete, Deleted, Eviction, Gone, Patch, Step
from scheduler.kube.writes.status import PodStatuses
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.testing import a_pod
from tests.unit.kube.fake_api import Answer, FakeApi, fake_client, until

UID = "uid-web"
WAIT = 0.1
"""The first wait, with jitter at its middle."""


def answer(status: int, message: str = "", retry_after: float = 0.0) -> Reply:
    return Reply(status, b'{"message":"%b"}' % message.encode(), retry_after)


def found(uid: str) -> Reply:
    return Reply(200, f'{{"metadata":{{"uid":"{uid}"}}}}'.encode())


OK = answer(200)
REFUSED = NotSent("connection refused")
NO_ANSWER = AnswerLost("timeout")
CONFLICT = answer(409, "conflict")
FAILED = answer(500, "etcdserver: request timed out")


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        pytest.param([OK], Delete(), id="the condition first, then the deletion"),
        pytest.param([OK, OK], Deleted(), id="both, and it goes"),
        pytest.param([OK, answer(202)], Deleted(), id="accepted is deleted: the pod has its grace period"),
        pytest.param([answer(404)], Gone(), id="gone before the condition"),
        pytest.param([OK, answer(404)], Gone(), id="gone before the deletion"),
        pytest.param([OK, CONFLICT], Gone(), id="another pod has its name: the precondition failed"),
        pytest.param([CONFLICT], Read(WAIT), id="a patch in conflict is settled by a read"),
        pytest.param([CONFLICT, found(UID)], Patch(), id="it is still there: again"),
        pytest.param([CONFLICT, found("other")], Gone(), id="another one has its name"),
        pytest.param([CONFLICT, answer(404)], Gone(), id="it is gone"),
        pytest.param([CONFLICT, NO_ANSWER], Read(2 * WAIT), id="a read without an answer is repeated"),
        pytest.param([CONFLICT, FAILED], Read(2 * WAIT), id="a read that fails is repeated"),
        pytest.param([CONFLICT, Reply(200, b"<html>")], Read(2 * WAIT), id="an answer that is no pod is none"),
        pytest.param([REFUSED], Patch(WAIT), id="a patch that was not sent"),
        pytest.param([NO_ANSWER], Patch(WAIT), id="a patch without an answer"),
        pytest.param([FAILED], Patch(WAIT), id="a patch that the server failed at"),
        pytest.param([answer(401)], Patch(WAIT), id="a patch with expired credentials"),
        pytest.param([answer(429, retry_after=3.0)], Patch(3.0), id="a patch that is one too many"),
        pytest.param([OK, REFUSED], Delete(WAIT), id="a deletion that was not sent"),
        pytest.param([OK, NO_ANSWER], Delete(WAIT), id="a deletion without an answer"),
        pytest.param([OK, FAILED], Delete(WAIT), id="a deletion that the server failed at"),
        pytest.param([OK, answer(429, retry_after=3.0)], Delete(3.0), id="a deletion that is one too many"),
        pytest.param([OK, NO_ANSWER, answer(404)], Deleted(), id="it was the lost deletion that took effect"),
        pytest.param([OK, FAILED, CONFLICT], Deleted(), id="and it was recreated since"),
        pytest.param([OK, REFUSED, answer(404)], Gone(), id="what was not sent has not deleted it"),
        pytest.param([answer(403, "no")], Failed("no", 403), id="a forbidden patch"),
        pytest.param([answer(422, "invalid")], Failed("invalid", 422), id="an invalid patch"),
        pytest.param([OK, answer(403, "no")], Failed("no", 403), id="a forbidden deletion"),
        pytest.param([REFUSED] * 8, Patch(2.0), id="waits have a limit"),
        pytest.param([REFUSED] * WRITES.tries, Failed("connection refused (10 tries)"), id="tries have a limit"),
    ],
)
def test_next_step(outcomes: list[Outcome], last: Step) -> None:
    eviction = Eviction(UID, chance=lambda: 0.5)
    step: Step = Patch()
    for outcome in outcomes:
        assert isinstance(step, Patch | Read | Delete), f"{step} came before {outcome}"
        step = eviction.after(step, outcome)

    assert step == last


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
    api = FakeApi()
    api.on(PATCH, Answer())
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
    api = FakeApi()
    api.on(DELETE, Answer())
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=MESSAGE)

    assert await evict(tmp_path, api, conditions=(condition,))
    assert [request.method for request in api.requests] == ["DELETE"]


async def test_a_pod_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert not await evict(tmp_path, FakeApi())


async def test_a_refusal_is_told(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(PATCH, Answer(403, {"message": "not allowed"}))

    with pytest.raises(ClusterError, match="evicting pod shop/web: not allowed"):
        await evict(tmp_path, api)


async def test_a_nomination_is_cleared_in_the_background(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(PATCH, Answer())
    async with fake_client(tmp_path, api) as client:
        statuses = PodStatuses(client, Tasks(Metrics()))
        nominated = msgspec.structs.replace(POD, status=PodStatus(nominated_node_name="n1"))
        ApiEvictor(client, statuses).clear_nomination(nominated)
        await until(lambda: api.requests and not statuses.busy)
        await statuses.close()

    (patch,) = api.requests

    assert patch.body["status"] == {"nominatedNodeName": None}
