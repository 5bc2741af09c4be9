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
from scheduler.kube.writes.status import SENDERS, Condition, NewestStatus, PodStatuses, status_patch
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.fakes import sample, settle
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, until

PATCH = "PATCH /api/v1/namespaces/default/pods/web/status"
GET = "GET /api/v1/namespaces/default/pods/web"
NOW = 1_700_000_000.0
TIME = "2023-11-14T22:13:20Z"
OURS = frozenset({"PodScheduled"})
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
    body: Any = answer(version).body
    return pod_from_dict({**body, "status": status})


def answer(version: int, *, node: str = "", uid: str = "uid-web", **status: Any) -> Answer:
    metadata = {"name": "web", "namespace": "default", "uid": uid, "resourceVersion": str(version), "generation": 4}
    return Answer(body={"metadata": metadata, "spec": {"nodeName": node}, "status": status})


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


def asked(api: FakeApi) -> list[str]:
    """The version that each patch changes, and what else was asked."""
    return [
        each.body["metadata"]["resourceVersion"] if each.method == "PATCH" else f"{each.method} {each.path}"
        for each in api.requests
    ]


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


@pytest.mark.parametrize(
    ("version", "wanted", "sent_then"),
    [
        pytest.param(1, "", [("2", None)], id="the answer counts while the watch is behind: clearing it must be sent"),
        pytest.param(1, "n2", [("2", "n2")], id="a patch changes the newest version that is known"),
        pytest.param(3, "", [], id="a newer pod counts more than an old answer"),
    ],
)
async def test_answer_and_watch(tmp_path: Path, version: int, wanted: str, sent_then: list[tuple[str, Any]]) -> None:
    async with statuses(tmp_path, answer(2, nominatedNodeName="n1"), answer(4)) as (sender, api):
        sender.set(a_web_pod(1), nominated_node_name="n1")
        await sent(sender)
        sender.set(a_web_pod(version), nominated_node_name=wanted)

    asked = [
        (each.body["metadata"]["resourceVersion"], each.body["status"]["nominatedNodeName"]) for each in api.requests
    ]
    assert asked == [("1", "n1"), *sent_then]


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


@pytest.mark.parametrize(
    ("patched", "read", "expected"),
    [
        pytest.param(
            [LOST, Answer(409)], [answer(2, conditions=[condition_patch()])], ["1", "1", GET], id="it is ours"
        ),
        pytest.param([Answer(409)], [answer(7, node="n1")], ["1", GET], id="bound"),
        pytest.param([Answer(409)], [answer(7, uid="uid-of-another")], ["1", GET], id="another pod of its name"),
        pytest.param([Answer(409)], [Answer(404)], ["1", GET], id="gone"),
        pytest.param([Answer(409)], [Answer(403)], ["1", GET], id="may not be read"),
        pytest.param([Answer(409)], [Answer(body={"spec": 1})], ["1", GET], id="no pod"),
        pytest.param(
            [Answer(409), Answer(409), answer(8)],
            [Answer(500), answer(7)],
            ["1", GET, "1", GET, "7"],
            id="a read without an answer settles nothing",
        ),
        pytest.param(
            [Answer(409)], [answer(7)], ["1", GET, *["7", GET] * 3], id="conflicts without end come to an end"
        ),
    ],
)
async def test_a_conflict_is_settled_by_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patched: list[Answer], read: list[Answer], expected: list[str]
) -> None:
    monkeypatch.setattr(module, "RETRIES", RetryPolicy(first=0.001, limit=0.001, tries=4))
    async with statuses(tmp_path, *patched) as (sender, api):
        api.on(GET, *read)
        sender.set(a_web_pod(), NO_ROOM)

    assert asked(api) == expected


async def test_a_pod_that_somebody_else_changed_is_told_what_still_differs(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(409), answer(8)) as (sender, api):
        api.on(GET, answer(7, nominatedNodeName="n1"))
        sender.set(a_web_pod(), NO_ROOM, nominated_node_name="n1")

    assert asked(api) == ["1", GET, "7"]
    assert api.requests[2].body["status"] == {"conditions": [condition_patch(lastTransitionTime=TIME)]}


async def test_a_pod_that_is_bound_while_it_is_read_gets_no_other_patch(tmp_path: Path) -> None:
    async with statuses(tmp_path, Answer(409)) as (sender, api):
        api.on(GET, answer(7))
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.seen(PATCH))
        api.held.clear()
        await until(lambda: api.seen(GET))
        sender.forget(a_web_pod())
        api.held.set()

    assert [request.method for request in api.requests] == ["PATCH", "GET"]


async def test_a_forgotten_pod_gets_nothing(tmp_path: Path) -> None:
    async with statuses(tmp_path, answer(2)) as (sender, api):
        sender.set(a_web_pod(), NO_ROOM)
        sender.forget(a_web_pod())

    assert api.requests == []


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_a_pod_that_is_forgotten_while_its_patch_is_under_way_or_waits_for_a_retry_gets_no_other(
    tmp_path: Path, is_under_way: bool
) -> None:
    async with statuses(tmp_path, Answer(500), answer(2)) as (sender, api):
        if is_under_way:
            api.held.clear()
        sender.set(a_web_pod(), NO_ROOM)
        await until(lambda: api.busy if is_under_way else api.requests and not api.busy)
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
    odd = Condition("False", "Odd\ud800", "half a pair: \udcff.")
    async with statuses(tmp_path, answer(2)) as (sender, api):
        sender.set(a_web_pod(), odd)

    (request,) = api.requests
    condition = request.body["status"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == ("Odd\ufffd", "half a pair: \ufffd.")
    fit = Condition("False", "Odd\ufffd", "half a pair: \ufffd.")
    assert status_patch(a_web_pod(condition=fit), (odd,), None, 0) is None


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


# Answers to patches: small, few, and forgotten once the watch is as new.


def a_version(version: int, *, uid: str = "a", message: str = "", **content: Any) -> Pod:
    metadata = {"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": str(version), "generation": 3}
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "X", "message": message},
        {"type": "Odd", "status": "True", "message": "y" * 1000},
    ]
    return pod_from_dict(
        {"metadata": metadata, "status": {"conditions": conditions, "nominatedNodeName": "n"}, **content}
    )


def test_an_answer_counts_until_the_watch_is_as_new() -> None:
    newest = NewestStatus(OURS)
    newest.remember(a_version(5))

    found = newest.of(a_version(4))
    assert (found.metadata.resource_version, found.metadata.generation, found.uid) == ("5", 3, "a")
    assert (found.nominated_node_name, str(found)) == ("n", "shop/web")
    caught_up = a_version(5)
    assert newest.of(caught_up) is caught_up
    assert len(newest) == 0


def test_only_what_patches_compare_is_kept() -> None:
    newest = NewestStatus(OURS)
    newest.remember(a_version(5, spec={"nodeSelector": {"a": "b" * 1000}}))

    found = newest.of(a_version(4))

    assert [condition.type for condition in found.status.conditions or ()] == ["PodScheduled"]
    assert not found.spec.node_selector


def test_answers_are_bounded_by_their_number_and_by_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWERS", 3)
    monkeypatch.setattr(module, "MAX_CHARACTERS", 1000)
    newest = NewestStatus(OURS)
    for number in range(10):
        newest.remember(a_version(5, uid=str(number)))
    assert len(newest) == 3
    newest.remember(a_version(5, uid="large", message="m" * 990))
    newest.remember(a_version(6, uid="large", message="m" * 500))
    newest.remember(a_version(5, uid="also large", message="m" * 498))
    assert len(newest) == 2
    newest.remember(a_version(5, uid="too large", message="m" * 1001))
    assert len(newest) == 0
    for number in range(10):
        newest.remember(a_version(5, uid=str(number)))

    assert len(newest) == 3, "what was forgotten no longer counts"
