"""Calls: three outcomes, a limit each, fresh credentials."""

import asyncio
from pathlib import Path

import pytest

from scheduler.kube.http.client import AnswerLost, Client, NotSent, Reply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.process.metrics import Metrics
from tests.fakes import sample
from tests.unit.kube.fake_api import Answer, FakeApi, client_of, fake_client, kept_fresh, kubeconfig_text

PATH = "/api/v1/pods"
LIST = f"GET {PATH}"
READ, WRITE = "GET", "POST"  # writes have connections of their own
both = pytest.mark.parametrize("verb", [READ, WRITE])


def an_operation(verb: str = READ, timeout: float = 5.0, content_type: str | None = None) -> Operation:
    return Operation(verb, "pods" if verb == READ else "pods/binding", CallLimit(10), timeout, content_type)


async def call(client: Client, operation: Operation) -> Reply:
    return await client.call(operation, PATH, None if operation.verb == READ else b"{}")


def url_of(api: FakeApi, path: str = "/") -> str:
    return str(api.server.make_url(path))


async def test_any_status_is_a_reply(tmp_path: Path) -> None:
    api, metrics = FakeApi(), Metrics()
    api.on(LIST, Answer(403, {"message": "pods is forbidden"}))
    async with fake_client(tmp_path, api, metrics) as client:
        reply = await client.call(an_operation(), "/api/v1/pods")

    assert (reply.status, reply.message, reply.ok) == (403, "pods is forbidden", False)
    assert sample(metrics, "loadmaster_api_calls_total", verb="GET", resource="pods", code="403") == 1


@pytest.mark.parametrize(("verb", "problem"), [(READ, "Cannot connect"), (WRITE, r"cannot connect to 127\.0\.0\.1:1")])
async def test_a_refused_connection_was_not_sent(tmp_path: Path, verb: str, problem: str) -> None:
    async with client_of(tmp_path, "http://127.0.0.1:1") as client:
        with pytest.raises(NotSent, match=f"{verb} /api/v1/pods: {problem}"):
            await call(client, an_operation(verb))


@both
async def test_a_timeout_loses_the_answer(tmp_path: Path, verb: str) -> None:
    api, metrics = FakeApi(), Metrics()
    async with fake_client(tmp_path, api, metrics) as client:
        await call(client, an_operation(verb))  # once connected, nothing but the answer takes time
        api.held.clear()
        with pytest.raises(AnswerLost, match=f"{verb} /api/v1/pods: no answer in time"):
            await call(client, operation := an_operation(verb, timeout=0.02))
        api.held.set()

    labels = {"verb": verb, "resource": operation.resource, "code": "timeout"}
    assert sample(metrics, "loadmaster_api_calls_total", **labels) == 1


@both
async def test_a_429_holds_the_whole_kind_of_call_back(tmp_path: Path, verb: str) -> None:
    api = FakeApi().on(f"{verb} {PATH}", Answer(429, headers={"Retry-After": "0.2"}), Answer())
    async with fake_client(tmp_path, api) as client:
        operation = an_operation(verb)
        reply = await call(client, operation)
        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(call(client, operation) for _ in range(3)))

        assert (reply.status, reply.retry_after) == (429, 0.2)
        assert (asyncio.get_running_loop().time() - started) >= 0.19


async def test_other_kinds_of_call_are_not_held_back(tmp_path: Path) -> None:
    api = FakeApi().on(LIST, Answer(429, headers={"Retry-After": "30"}), Answer())
    async with fake_client(tmp_path, api) as client:
        await client.call(an_operation(), "/api/v1/pods")

        assert (await client.call(an_operation(), "/api/v1/pods")).status == 200


async def test_a_cancelled_wait_gives_its_slot_back() -> None:
    limit = CallLimit(1)
    limit.pause(30)
    waiting = asyncio.create_task(limit.__aenter__())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    limit._paused_until = 0.0
    async with limit:
        pass


@both
async def test_a_401_reads_the_credentials_again(tmp_path: Path, verb: str) -> None:
    api = FakeApi().on(f"{verb} {PATH}", Answer(), Answer(401), Answer())
    token = tmp_path / "token"
    token.write_text("old")
    async with (
        api.server,
        client_of(tmp_path, url_of(api), tokenFile=str(token)) as client,
        kept_fresh(client.credentials),
    ):
        await call(client, an_operation(verb))
        token.write_text("new")
        await call(client, an_operation(verb))
        await call(client, an_operation(verb))

    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_write_says_who_we_are_and_what_it_brings(tmp_path: Path) -> None:
    api = FakeApi()
    patch = an_operation(WRITE, content_type="application/merge-patch+json")
    async with fake_client(tmp_path, api) as client:
        await client.call(patch, PATH, b'{"a":"\xe2\x82\xac"}')
    (request,) = api.requests

    assert (request.method, request.path, request.body) == ("POST", "/api/v1/pods", {"a": "\u20ac"})
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.headers["User-Agent"].startswith("loadmaster/")
    assert request.headers["Host"].startswith("127.0.0.1:")


async def test_a_path_that_needs_quoting_is_quoted(tmp_path: Path) -> None:
    api = FakeApi()
    async with fake_client(tmp_path, api) as client:
        await client.call(an_operation(WRITE), "/api/v1/things/a b", b"{}")

    assert [request.path for request in api.requests] == ["/api/v1/things/a b"]


async def test_a_server_may_have_a_path(tmp_path: Path) -> None:
    api = FakeApi()
    async with api.server, client_of(tmp_path, f"{url_of(api, '/k8s/clusters/c-1')}/") as client:
        for verb in (WRITE, READ):
            await call(client, an_operation(verb))

    assert [request.path for request in api.requests] == ["/k8s/clusters/c-1/api/v1/pods"] * 2


async def test_writes_follow_a_server_that_moves(tmp_path: Path) -> None:
    old, new = FakeApi(), FakeApi()
    async with old.server, new.server, client_of(tmp_path, url_of(old)) as client:
        await call(client, an_operation(WRITE))
        (tmp_path / "kubeconfig").write_text(kubeconfig_text(url_of(new)))
        await client.credentials.refresh()
        await call(client, an_operation(WRITE))

    assert (len(old.requests), len(new.requests)) == (1, 1)
