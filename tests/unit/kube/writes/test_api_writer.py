"""What plugins write reaches the API server once, or the plugin learns why not."""

import json
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from scheduler.api.storage.volumes import PersistentVolumeClaim
from scheduler.framework.errors import ApiError
from scheduler.framework.events import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from scheduler.kube.http.client import AnswerLost, Client, NotSent, Reply
from scheduler.kube.http.operations import Operation
from scheduler.kube.http.retries import Outcome
from scheduler.kube.writes.api_writer import PluginWriter, has_all
from scheduler.process.virtual_time import run_virtually
from tests.unit.kube.fake_api import Answer, FakeApi, fake_client
from tests.unit.kube.writes.script import NextCall, end_of

CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/data"
PATCH = {"metadata": {"resourceVersion": "7", "annotations": {"node": "a", "old": None}}}
WRITTEN = b'{"metadata":{"resourceVersion":"8","annotations":{"node":"a"}}}'
OTHER = b'{"metadata":{"resourceVersion":"8","annotations":{"node":"b"}}}'
CONFLICTED = "the object has been modified"
CONFLICT = Reply(409, b'{"message":"%b"}' % CONFLICTED.encode())
LOST_ANSWER = AnswerLost("no answer")


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        pytest.param([Reply(200, WRITTEN)], "8", id="an answer ends it"),
        pytest.param([NotSent("refused")] * 2, ("PATCH", 0.2), id="what was not sent is sent again, later and later"),
        pytest.param([LOST_ANSWER] * 3, ("PATCH", 0.4), id="what was not answered, too"),
        pytest.param([Reply(503, b"")], ("PATCH", 0.1), id="and what failed"),
        pytest.param([Reply(200, b"cut o")], ("PATCH", 0.1), id="and what cannot be read"),
        pytest.param([Reply(429, b"", retry_after=3.0)], ("PATCH", 3.0), id="it waits as long as the server asks"),
        pytest.param([CONFLICT], CONFLICTED, id="a refusal ends it"),
        pytest.param([Reply(422, b'{"message":"invalid"}')], "invalid", id="whatever it is"),
        pytest.param([NotSent("refused")] * 9, ("PATCH", 2.0), id="waits have a limit"),
        pytest.param([NotSent("refused")] * 10, "refused (10 tries)", id="tries have a limit"),
        pytest.param([LOST_ANSWER, CONFLICT], ("GET", 0.0), id="a conflict after a lost answer is settled by a read"),
        pytest.param([Reply(500, b""), CONFLICT, Reply(200, WRITTEN)], "8", id="it was our own change"),
        pytest.param([LOST_ANSWER, CONFLICT, Reply(200, OTHER)], CONFLICTED, id="it was somebody else's"),
        pytest.param([LOST_ANSWER, CONFLICT, Reply(404, b'{"message":"gone"}')], "gone", id="it is gone"),
        pytest.param([LOST_ANSWER, CONFLICT, LOST_ANSWER], ("GET", 0.2), id="a read is repeated"),
        pytest.param([NotSent("refused"), CONFLICT], CONFLICTED, id="without a lost answer it is somebody else's"),
    ],
)
def test_next_step(outcomes: list[Outcome], last: str | NextCall) -> None:
    async def write(client: Client) -> str:
        found = await PluginWriter(client).patch(PERSISTENT_VOLUME_CLAIM, "data", "default", PATCH)
        version: str = found.metadata.resource_version
        return version

    assert end_of(outcomes, write) == last


@pytest.mark.parametrize(
    ("found", "wanted", "yes"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"b": 1}, {"a": None}, True),
        ({"a": 1}, {"a": None}, False),
        ({"a": {"b": [1, 2], "c": 3}}, {"a": {"b": [1, 2]}}, True),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1]}}, False),
        ({"a": 1}, {"a": {"b": 1}}, False),
        ({"metadata": {"resourceVersion": "2", "labels": {}}}, {"metadata": {"resourceVersion": "1"}}, True),
        ({}, {"metadata": {"labels": {"a": "b"}}}, False),
    ],
)
def test_whether_an_object_is_as_was_wanted(found: Any, wanted: Any, yes: bool) -> None:
    assert has_all(found, wanted) is yes


async def test_a_patch_goes_where_the_object_is(tmp_path: Path) -> None:
    api = FakeApi().on(f"PATCH {CLAIM}", Answer(200, {"metadata": {"resourceVersion": "8"}}))
    api.on("PATCH /api/v1/persistentvolumes/pv", Answer(200, {"kind": "PersistentVolume"}))
    async with fake_client(tmp_path, api) as client:
        writer = PluginWriter(client)
        await writer.patch(PERSISTENT_VOLUME, "pv", "", {"spec": {}})
        found = await writer.patch(PERSISTENT_VOLUME_CLAIM, "data", "default", PATCH)
    (request,) = api.seen(f"PATCH {CLAIM}")

    assert isinstance(found, PersistentVolumeClaim)
    assert found.metadata.resource_version == "8"
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.body == PATCH


async def test_an_update_puts_a_whole_object_or_a_part_of_it(tmp_path: Path) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu"
    content = {"metadata": {"name": "gpu", "namespace": "default", "resourceVersion": "3"}, "status": {}}

    api = FakeApi().on(f"PUT {path}/status", Answer(200, content))
    async with fake_client(tmp_path, api) as client:
        found = await PluginWriter(client).update(RESOURCE_CLAIM, content, "status")

    (request,) = api.requests

    assert (found.metadata.name, found.metadata.resource_version) == ("gpu", "3")
    assert request.body == content
    assert request.headers["Content-Type"] == "application/json"


EXTENDED_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"namespace": "default", "name": "web-extended-resources-1a2b3", "annotations": {"ours": "true"}},
    "spec": {"devices": {"requests": []}},
}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
NAME = f"{CLAIMS}/web-extended-resources-1a2b3"


class Fault(NamedTuple):
    """What goes wrong with a call."""

    outcome: Any
    is_carried_out: bool = False


FAULTS = {
    "no connection": Fault(NotSent("refused")),
    "429": Fault(Reply(429, b"", retry_after=3.0)),
    "401": Fault(Reply(401, b"")),
    "500": Fault(Reply(500, b"etcd is away")),
    "lost on its way": Fault(AnswerLost("reset")),
    "500 after it took effect": Fault(Reply(500, b"context deadline exceeded"), is_carried_out=True),
    "answer lost": Fault(AnswerLost("reset"), is_carried_out=True),
    "timed out": Fault(AnswerLost("no answer within 10 s"), is_carried_out=True),
    "garbage for an answer": Fault(Reply(200, b"<html>"), is_carried_out=True),
}


class ClaimServer:
    """Stores ResourceClaims by path. Its first calls go wrong."""

    def __init__(self, *faults: Fault, always: Fault | None = None) -> None:
        self.stored: dict[str, Any] = {}
        self.calls: list[str] = []
        self._faults = iter(faults) if always is None else repeat(always)

    async def attempt(self, operation: Operation, path: str, body: bytes = b"", check: Any = None) -> Any:
        self.calls.append(operation.verb)
        fault = next(self._faults, None)
        outcome = self._carried_out(operation.verb, path, body) if fault is None or fault.is_carried_out else None
        return outcome if fault is None else fault.outcome

    def _carried_out(self, verb: str, path: str, body: bytes) -> Reply:
        content = json.loads(body) if body else {}
        found = self.stored.get(path)
        if verb == "POST":
            path = f"{path}/{content['metadata']['name']}"
            if path in self.stored:
                return Reply(409, b'{"message":"already exists"}')
            found = self.stored[path] = {
                **content,
                "metadata": {**content["metadata"], "uid": f"uid-{len(self.calls)}"},
            }
        elif found is None:
            return Reply(404, b'{"message":"not found"}')
        elif verb == "DELETE":
            if content["preconditions"]["uid"] != found["metadata"]["uid"]:
                return Reply(409, b'{"message":"the UID in the precondition does not match"}')
            del self.stored[path]
        return Reply(200, json.dumps(found).encode())


def a_writer(server: ClaimServer) -> PluginWriter:
    return PluginWriter(cast("Client", server))


def stored_claim(uid: str) -> Any:
    return {**EXTENDED_CLAIM, "metadata": {**EXTENDED_CLAIM["metadata"], "uid": uid}}  # type: ignore[dict-item]


def delete(server: ClaimServer) -> None:
    run_virtually(a_writer(server).delete(RESOURCE_CLAIM, NAME.rpartition("/")[2], "default", "ours"))


@pytest.mark.parametrize("second", FAULTS)
@pytest.mark.parametrize("first", FAULTS)
def test_a_claim_is_created_and_deleted_once_whatever_goes_wrong(first: str, second: str) -> None:
    server = ClaimServer(FAULTS[first], FAULTS[second])
    created = run_virtually(a_writer(server).create(RESOURCE_CLAIM, EXTENDED_CLAIM))
    assert {path: claim["metadata"]["uid"] for path, claim in server.stored.items()} == {NAME: created.uid}

    server = ClaimServer(FAULTS[first], FAULTS[second])
    server.stored[NAME] = stored_claim("ours")
    delete(server)
    assert server.stored == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_creation_that_is_given_up_leaves_one_claim_at_most_under_the_name_that_was_given(fault: str) -> None:
    server = ClaimServer(always=FAULTS[fault])

    with pytest.raises(ApiError, match="10 tries"):
        run_virtually(a_writer(server).create(RESOURCE_CLAIM, EXTENDED_CLAIM))

    assert list(server.stored) == ([NAME] if FAULTS[fault].is_carried_out else [])


@pytest.mark.parametrize("faults", [(), ("429",), ("500",), ("answer lost",), ("timed out", "500")])
def test_a_name_that_somebody_else_has_taken_is_a_conflict_and_his_claim_stays(faults: tuple[str, ...]) -> None:
    server = ClaimServer(*(FAULTS[fault] for fault in faults))
    his = {**stored_claim("his"), "spec": {"devices": {"requests": [{"name": "his"}]}}}
    server.stored[NAME] = his

    with pytest.raises(ApiError) as raised:
        run_virtually(a_writer(server).create(RESOURCE_CLAIM, EXTENDED_CLAIM))

    assert raised.value.status == 409
    assert server.stored == {NAME: his}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_deletion_harms_no_other_claim_of_that_name(fault: str | None) -> None:
    server = ClaimServer(*([FAULTS[fault]] if fault else []))
    server.stored[NAME] = stored_claim("another")

    delete(server)

    assert server.stored == {NAME: stored_claim("another")}


@pytest.mark.parametrize("fault", ["no connection", "429", "500", "lost on its way"])
def test_a_deletion_that_is_given_up_is_told(fault: str) -> None:
    server = ClaimServer(always=FAULTS[fault])
    server.stored[NAME] = stored_claim("ours")

    with pytest.raises(ApiError, match="10 tries"):
        delete(server)

    assert NAME in server.stored
