"""How a pod ended, as the API server tells it."""

from pathlib import Path

import pytest

from scheduler.cycle.writers import Ending
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.reads.pods import FOR_ENDINGS, MAX_MESSAGE, ApiPodReader
from scheduler.testing import a_pod
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client

POD = a_pod("web", uid="uid-web")
GET = "GET /api/v1/namespaces/default/pods/web"
AT_ONCE = RetryPolicy(first=0.001, limit=0.001, tries=FOR_ENDINGS.tries)


def found(uid: str = "uid-web", message: str = "no room") -> Answer:
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": message}
    return Answer(body={"metadata": {"uid": uid}, "status": status})


async def ending(directory: Path, *answers: Answer) -> tuple[Ending | None, int]:
    """What is read, and how many calls that took."""
    api = FakeApi().on(GET, *answers)
    async with fake_client(directory, api) as client:
        return await ApiPodReader(client, AT_ONCE).ending(POD), len(api.seen(GET))


@pytest.mark.parametrize(("message", "kept"), [("no room", "no room"), ("x" * 10_000, "x" * MAX_MESSAGE)])
async def test_phase_reason_and_message_are_read(tmp_path: Path, message: str, kept: str) -> None:
    assert await ending(tmp_path, found(message=message)) == (Ending("Failed", "OutOfcpu", kept), 1)


@pytest.mark.parametrize(
    "answer",
    [pytest.param(Answer(404), id="gone"), pytest.param(found("uid-other"), id="another pod has its name")],
)
async def test_of_a_pod_that_is_gone_nothing_is_known(tmp_path: Path, answer: Answer) -> None:
    assert await ending(tmp_path, answer) == (None, 1)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(LOST, id="no answer"),
        pytest.param(Answer(500), id="a failure"),
        pytest.param(Answer(429), id="one too many"),
        pytest.param(Answer(401), id="expired credentials"),
    ],
)
async def test_trouble_of_the_api_server_is_waited_for(tmp_path: Path, trouble: Answer) -> None:
    read, calls = await ending(tmp_path, trouble, found())

    assert read is not None
    assert calls == 2


async def test_but_not_for_ever(tmp_path: Path) -> None:
    api = FakeApi().on(GET, Answer(500))
    async with fake_client(tmp_path, api) as client:
        with pytest.raises(ClusterError):
            await ApiPodReader(client, AT_ONCE).ending(POD)

    assert len(api.seen(GET)) == FOR_ENDINGS.tries


@pytest.mark.parametrize(
    ("answer", "why"), [(Answer(403), ": 403"), (Answer(body={"metadata": 1}), "")], ids=["refused", "no pod"]
)
async def test_an_answer_of_no_use_is_an_error_and_not_asked_for_again(
    tmp_path: Path, answer: Answer, why: str
) -> None:
    with pytest.raises(ClusterError, match=f"reading default/web{why}"):
        await ending(tmp_path, answer)


async def test_pods_that_have_succeeded_are_listed_but_for_those_that_cannot_be_read(tmp_path: Path) -> None:
    api = FakeApi()
    pod = {"metadata": {"name": "a", "uid": "a"}, "spec": {}}
    first = Answer(body={"kind": "PodList", "metadata": {"continue": "more"}, "items": [pod, {"spec": 1}]})
    api.on("GET /api/v1/pods", first, Answer(body={"kind": "PodList", "metadata": {}, "items": [pod]}))
    async with fake_client(tmp_path, api) as client:
        found = [pod.name async for pod in ApiPodReader(client, AT_ONCE).succeeded()]

    assert found == ["a", "a"]
    assert {request.query["fieldSelector"] for request in api.seen("GET /api/v1/pods")} == {"status.phase=Succeeded"}
