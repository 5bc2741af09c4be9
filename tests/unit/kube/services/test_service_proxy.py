"""A running scheduler is asked through the API server. What goes wrong with explanations: commands/test_explain.py."""

import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scheduler.api.reviews import PASSED_ON
from scheduler.framework.errors import ClusterError
from scheduler.kube.services.service_proxy import RECORD, RunningScheduler
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client

TOKEN = "POST /api/v1/namespaces/kube-system/serviceaccounts/loadmaster-explain/token"
EXPLAIN = "GET /api/v1/namespaces/kube-system/services/https:loadmaster:metrics/proxy/debug/explain"
FOUND = {"found": True, "state": "unschedulable", "leading": True}


def a_token() -> Answer:
    return Answer(201, {"status": {"token": "for-us"}})


def refusal(status: int, message: str) -> Answer:
    return Answer(status, {"kind": "Status", "message": message})


async def test_the_token_is_for_the_scheduler_alone_and_goes_in_a_header_of_its_own(tmp_path: Path) -> None:
    api = FakeApi().on(TOKEN, a_token())
    api.on(EXPLAIN, Answer(200, FOUND))
    async with fake_client(tmp_path, api) as client:
        scheduler = RunningScheduler(client, "kube-system", "loadmaster")
        document = await scheduler.explain({"namespace": "shop", "name": "web"})

    assert document == FOUND
    (made,), (asked,) = api.seen(TOKEN), api.seen(EXPLAIN)
    assert made.body["spec"] == {"audiences": ["loadmaster"], "expirationSeconds": 600}
    assert asked.headers[PASSED_ON] == "Bearer for-us"
    assert asked.query == {"namespace": "shop", "name": "web"}


RECORD_TOKEN = "POST /api/v1/namespaces/kube-system/serviceaccounts/loadmaster-record/token"
RECORD_PATH = "GET /api/v1/namespaces/kube-system/services/https:loadmaster:metrics/proxy/debug/record"


async def taken(scheduler: RunningScheduler, seconds: int) -> AsyncIterator[bytes]:
    async with scheduler.record(seconds) as parts:
        async for part in parts:
            yield part


async def recorded(directory: Path, *answers: Answer, seconds: int = 5) -> tuple[FakeApi, bytes]:
    api = FakeApi().on(RECORD_TOKEN, a_token())
    api.on(RECORD_PATH, *answers)
    async with fake_client(directory, api) as client:
        asked = RunningScheduler(client, "kube-system", "loadmaster", RECORD)
        return api, b"".join([part async for part in taken(asked, seconds)])


async def test_a_recording_is_the_leaders_and_has_a_token_that_outlives_it(tmp_path: Path) -> None:
    elsewhere = Answer(409, "does not lead")
    api, found = await recorded(tmp_path, elsewhere, elsewhere, Answer(200, "a trace"), seconds=3_600)
    assert found == b'"a trace"'
    assert [made.body["spec"]["expirationSeconds"] for made in api.seen(RECORD_TOKEN)] == [4_200]
    assert [asked.query for asked in api.seen(RECORD_PATH)] == [{"seconds": "3600"}] * 3


async def test_a_recording_without_an_end_is_a_day_at_most(tmp_path: Path) -> None:
    api, _ = await recorded(tmp_path, Answer(200, "a trace"), seconds=0)
    assert api.seen(RECORD_PATH)[0].query == {"seconds": "86400"}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Answer(409, "this replica does not lead"), "no replica that leads was found"),
        (Answer(429, "a recording is under way"), "the scheduler refuses: .*a recording is under way"),
        (Answer(404, {}), "is of a scheduler that cannot record: is it an older version"),
        (refusal(503, "no endpoints"), "leads to no running scheduler: no endpoints"),
        (refusal(403, "not yours"), "asking is not allowed: not yours"),
        (Answer(401, {}), "does not accept the token of loadmaster-record"),
        (Answer(500, "oops"), "answered HTTP 500"),
        (LOST, "cannot ask the API server"),
    ],
)
async def test_a_recording_that_cannot_be_is_one_sentence(tmp_path: Path, answer: Answer, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        await recorded(tmp_path, answer)


async def test_what_fails_in_the_hands_of_whoever_reads_is_not_put_down_to_the_api_server(tmp_path: Path) -> None:
    api = FakeApi().on(RECORD_TOKEN, a_token())
    api.on(RECORD_PATH, Answer(200, "a trace"))
    async with fake_client(tmp_path, api) as client:
        with pytest.raises(OSError, match="No space left on device"):
            async with RunningScheduler(client, "kube-system", "loadmaster", RECORD).record(5):
                raise OSError(errno.ENOSPC, "No space left on device")
