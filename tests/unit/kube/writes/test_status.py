"""Pod status patches: what is sent, and how little."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.wording.text import MAX_MESSAGE, to_json
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.writes import status as module
from scheduler.kube.writes.status import SENDERS, Condition, PodStatuses, status_patch
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.fakes import sample, settle
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, Request, fake_client, until

PATCH = "PATCH /api/v1/namespaces/default/pods/web/status"
GET = "GET /api/v1/namespaces/default/pods/web"
NOW = 1_700_000_000.0
TIME = "2023-11-14T22:13:20Z"
NO_ROOM = Condition("False", "Unschedulable", "0/3 nodes are available")


def a_web_pod(version: int = 1, *, nominated: str = "", condition: Condition | None = None) -> Pod:
    status: dict[str, Any] = {"nominatedNodeName": nominated}
    if condition is not None:
        status["conditions"] = [
            {"type": "Ready", "status": "False"},
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            },
        ]
    metadata = {
        "name": "web",
        "namespace": "default",
        "uid": "uid-web",
        "resourceVersion": str(version),
        "generation": 4,
    }
    return pod_from_dict({"metadata": metadata, "status": status})


def condition_patch(**changes: Any) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available",
        "observedGeneration": 4,
        "lastProbeTime": None,
    } | changes


@pytest.mark.parametrize(
    ("pod", "condition", "nominated", "status"),
    [
        pytest.param(
            a_web_pod(), NO_ROOM, None, {"conditions": [condition_patch(lastTransitionTime=TIME)]}, id="a new condition"
        ),
        pytest.param(a_web_pod(condition=NO_ROOM), NO_ROOM, None, None, id="the same condition changes nothing"),
        pytest.param(
            a_web_pod(condition=Condition("False", "Unschedulable", "0/2 nodes are available")),
            NO_ROOM,
            None,
            {"conditions": [condition_patch()]},
            id="another message keeps the transition time",
        ),
        pytest.param(
            a_web_pod(condition=Condition("True", "", "")),
            NO_ROOM,
            None,
            {"conditions": [condition_patch(lastTransitionTime=TIME)]},
            id="another status is a transition",
        ),
        pytest.param(a_web_pod(), None, "n1", {"nominatedNodeName": "n1"}, id="a nomination"),
        pytest.param(a_web_pod(nominated="n1"), None, "n1", None, id="the same nomination changes nothing"),
        pytest.param(a_web_pod(nominated="n1"), None, "", {"nominatedNodeName": None}, id="empty clears a nomination"),
        pytest.param(a_web_pod(nominated="n1"), NO_ROOM, None, None, id="None leaves a nomination"),
    ],
)
def test_patch(pod: Pod, condition: Condition | None, nominated: str | None, status: dict[str, Any] | None) -> None:
    patch = status_patch(pod, (condition,) if condition else (), nominated, NOW)

    if condition and nominated is None and pod.nominated_node_name:
        assert patch is not None
        assert "nominatedNodeName" not in patch["status"]
    else:
        assert patch == (status and {"metadata": {"uid": "uid-web"}, "status": status})


def answer(version: int, **status: Any) -> Answer:
    metadata = {"name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": str(version)}
    return Answer(body={"metadata": metadata, "status": status})


@asynccontextmanager
async def statuses(
    directory: Path, *answers: Answer, metrics: Metrics | None = None
) -> AsyncIterator[tuple[PodStatuses, FakeApi]]:
    """What is set is sent on leaving."""
    api = FakeApi().on(PATCH, *answers)
    async with fake_client(directory, api, metrics) as client:
        sender = PodStatuses(client, Tasks(metrics or Metrics()), now=lambda: NOW)
        try:
            yield sender, api
            await sent(sender)
        finally:
            await sender.close()


async def sent(sender: PodStatuses) -> None:
    await until(lambda: not sender.busy)


async def test_only_the_newest_state_is_sent(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2)) as (sender, api):
        sender.set(a_web_pod(), Condition("False", "SchedulerError", "first"))
        sender.set(a_web_pod(), NO_ROOM)
        sender.set(a_web_pod(), nominated_node_name="n1")

    (request,) = api.requests
    assert request.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert request.body == {
        "metadata": {"uid": "uid-web", "resourceVersion": "1"},
        "status": {"conditions": [condition_patch(lastTransitionTime=TIME)], "nominatedNodeName": "n1"},
    }


async def test_one_patch_a_pod_at_a_time(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2, nominatedNodeName="n1"), answer(3)) as (sender, api):
        api.held.clear()
        sender.set(a_web_pod(), nominated_node_name="n1")
        await until(lambda: api.busy)
        sender.set(a_web_pod(), nominated_node_name="n2")
        sender.set(a_web_pod(), nominated_node_name="n3")
        await asyncio.sleep(0)
        api.held.set()

    assert [request.body["status"]["nominatedNodeName"] for request in api.requests] == ["n1", "n3"]
    assert api.most_at_once == 1


async def test_the_answer_counts_while_the_watch_is_behind(tmp_path: Path) -> None:
    """The pod that we are given does not show the nomination yet: clearing it must be sent all the same."""

    async with statuses(tmp_path, answer(2, nominatedNodeName="n1"), answer(3)) as (sender, api):
        sender.set(a_web_pod(1), nominated_node_name="n1")
        await sent(sender)
        sender.set(a_web_pod(1), nominated_node_name="")

    assert [request.body["status"] for request in api.requests] == [
        {"nominatedNodeName": "n1"},
        {"nominatedNodeName": None},
    ]


async def test_a_newer_pod_counts_more_than_an_old_answer(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2, nominatedNodeName="n1")) as (sender, api):
        sender.set(a_web_pod(1), nominated_node_name="n1")
        await sent(sender)
        sender.set(a_web_pod(3), nominated_node_name="")

    assert len(api.requests) == 1


@pytest.mark.parametrize("failure", [LOST, Answer(500), Answer(429, headers={"Retry-After": "0.01"})])
async def test_what_may_pass_is_sent_again(tmp_path: Path, failure: Answer) -> None:
    async with statuses(tmp_path, failure, answer(2)) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)

    first, second = api.requests
    assert first.body == second.body


@pytest.mark.parametrize("status", [404, 422, 403])
async def test_a_refusal_is_final(tmp_path: Path, status: int) -> None:
    async with statuses(tmp_path, Answer(status)) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)

    assert len(api.requests) == 1


def found(version: int, *, node: str = "", uid: str = "uid-web", **status: Any) -> Answer:
    metadata = {"name": "web", "namespace": "default", "uid": uid, "resourceVersion": str(version), "generation": 4}
    return Answer(body={"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def versions(requests: list[Request]) -> list[str]:
    return [request.body["metadata"]["resourceVersion"] for request in requests]


async def test_a_patch_changes_the_newest_version_that_is_known(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(5, nominatedNodeName="n1"), answer(6)) as (sender, api):
        sender.set(a_web_pod(3), nominated_node_name="n1")
        await sent(sender)
        sender.set(a_web_pod(3), nominated_node_name="n2")

    assert versions(api.requests) == ["3", "5"]


async def test_a_pod_that_somebody_else_changed_is_read_and_told_what_still_differs(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(409), answer(8)) as (sender, api):
        api.on(GET, found(7, nominatedNodeName="n1"))
        sender.set(a_web_pod(), NO_ROOM, nominated_node_name="n1")

    first, read, second = api.requests
    assert versions([first, second]) == ["1", "7"]
    assert f"{read.method} {read.path}" == GET
    assert second.body["status"] == {"conditions": [condition_patch(lastTransitionTime=TIME)]}


async def test_a_patch_whose_answer_was_lost_is_found_out_to_have_taken_effect(tmp_path: Path) -> None:
    async with statuses(tmp_path, LOST, Answer(409)) as (sender, api):
        api.on(GET, found(2, conditions=[condition_patch()]))
        sender.set(a_web_pod(), NO_ROOM)

    assert [request.method for request in api.requests] == ["PATCH", "PATCH", "GET"]


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(found(7, node="n1"), id="bound"),
        pytest.param(found(7, uid="uid-of-another"), id="another pod of its name"),
        pytest.param(Answer(404), id="gone"),
        pytest.param(Answer(403), id="may not be read"),
        pytest.param(Answer(body={"spec": 1}), id="no pod"),
    ],
)
async def test_a_pod_that_is_found_not_to_wait_any_more_gets_no_other_patch(tmp_path: Path, read: Answer) -> None:
    async with statuses(tmp_path, Answer(409)) as (sender, api):
        api.on(GET, read)
        sender.set(a_web_pod(), NO_ROOM)

    assert [request.method for request in api.requests] == ["PATCH", "GET"]


async def test_a_pod_that_is_bound_while_it_is_read_gets_no_other_patch(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(409)) as (sender, api):
        api.on(GET, found(7))
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.seen(PATCH))
        api.held.clear()
        await until(lambda: api.seen(GET))
        sender.forget(a_web_pod())
        api.held.set()

    assert [request.method for request in api.requests] == ["PATCH", "GET"]


async def test_a_read_without_an_answer_settles_nothing(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(409), Answer(409), answer(8)) as (sender, api):
        api.on(GET, Answer(500), found(7))
        sender.set(a_web_pod(), NO_ROOM)

    assert versions(api.seen(PATCH)) == ["1", "1", "7"]


async def test_conflicts_without_end_come_to_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRIES", RetryPolicy(first=0.001, limit=0.001, tries=4))
    async with statuses(tmp_path, Answer(409)) as (sender, api):
        api.on(GET, found(7))
        sender.set(a_web_pod(), NO_ROOM)

    assert len(api.seen(PATCH)) == 4


async def test_a_forgotten_pod_gets_nothing(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2)) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)
        sender.forget(a_web_pod())

    assert api.requests == []


async def test_a_pod_that_is_forgotten_while_its_patch_waits_for_a_retry_gets_no_other(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(500), answer(2)) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.requests and not api.busy)
        sender.forget(a_web_pod())

    assert len(api.requests) == 1


async def test_a_pod_that_is_forgotten_while_its_patch_is_under_way_gets_no_other(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(500), answer(2)) as (sender, api):
        api.held.clear()
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.busy)
        sender.forget(a_web_pod())
        api.held.set()

    assert len(api.requests) == 1


async def test_a_pod_that_is_forgotten_while_the_server_holds_us_back_gets_no_patch(tmp_path: Path) -> None:
    other = pod_from_dict({"metadata": {"name": "other", "namespace": "default", "uid": "uid-other"}})
    refused, metrics = {"verb": "PATCH", "resource": "pods/status", "code": "429"}, Metrics()
    answers = Answer(429, headers={"Retry-After": "1"}), answer(2)
    async with statuses(tmp_path, *answers, metrics=metrics) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: sample(metrics, "loadmaster_api_calls_total", **refused))
        sender.set(other, NO_ROOM)  # waits within its slot
        await settle()
        sender.forget(other)

    assert [request.path.split("/")[-2] for request in api.requests] == ["web", "web"]


async def test_what_is_set_after_a_pod_was_forgotten_is_sent_without_the_old(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(500), answer(2)) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.requests and not api.busy)
        sender.forget(a_web_pod())
        sender.set(a_web_pod(), nominated_node_name="n1")

    assert [list(request.body["status"]) for request in api.requests] == [["conditions"], ["nominatedNodeName"]]


async def test_a_pod_that_is_forgotten_and_set_again_while_it_waits_is_sent_once_at_a_time(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2)) as (sender, api):
        api.held.clear()
        for _ in range(3):
            sender.set(a_web_pod(), NO_ROOM)
            sender.forget(a_web_pod())
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.busy)
        sender.set(a_web_pod(), nominated_node_name="n1")
        await settle()
        api.held.set()

    assert (len(api.requests), api.most_at_once) == (2, 1)


def test_a_message_without_end_is_cut() -> None:
    patch = status_patch(a_web_pod(), (Condition("False", "Odd", "\u20ac" * 10_000_000),), None, 0)

    assert patch is not None
    message = patch["status"]["conditions"][0]["message"]
    assert message.endswith("\u20ac ...")
    assert MAX_MESSAGE - 3 <= len(message.encode()) <= MAX_MESSAGE


async def test_a_text_that_utf8_cannot_carry_is_made_fit(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2)) as (sender, api):
        sender.set(a_web_pod(), Condition("False", "Odd\ud800", "half a pair: \udcff."))

    (request,) = api.requests
    condition = request.body["status"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == ("Odd\ufffd", "half a pair: \ufffd.")
    fit = Condition("False", "Odd\ufffd", "half a pair: \ufffd.")
    assert (
        status_patch(a_web_pod(condition=fit), (Condition("False", "Odd\ud800", "half a pair: \udcff."),), None, 0)
        is None
    )


async def test_a_patch_that_fails_unexpectedly_costs_nobody_else_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(patch: Any) -> bytes:
        if patch["metadata"]["uid"] != "uid-web":
            raise RuntimeError("a bug")
        return to_json(patch)

    monkeypatch.setattr(module, "to_json", broken)
    metrics = Metrics()
    async with statuses(tmp_path, answer(2), metrics=metrics) as (sender, api):
        for number in range(SENDERS + 1):
            metadata = {"name": f"w{number}", "namespace": "default", "uid": f"uid-{number}"}
            sender.set(pod_from_dict({"metadata": metadata}), NO_ROOM)
        sender.set(a_web_pod(), NO_ROOM)

    assert len(api.requests) == 1
    assert sample(metrics, "loadmaster_task_failures_total", operation="pod status") == SENDERS + 1


async def test_a_sender_that_is_cancelled_before_it_began_loses_nothing(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2)) as (sender, api):
        before = asyncio.all_tasks()
        sender.set(a_web_pod(), NO_ROOM)
        for task in asyncio.all_tasks() - before:
            task.cancel()

    assert len(api.requests) == 1
