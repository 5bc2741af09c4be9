"""Calls: three outcomes, a limit each, fresh credentials."""

import asyncio
from pathlib import Path

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.kube.http.client import AnswerLost, Client, NotSent
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.identity.credentials import load_credentials
from scheduler.process.metrics import Metrics
from tests.fakes import run, sample
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, kept_fresh, kubeconfig_text

LIST = "GET /api/v1/pods"


def an_operation(limit: int = 10, timeout: float = 5.0) -> Operation:
    return Operation("GET", "pods", CallLimit(limit), timeout)


async def test_any_status_is_a_reply(tmp_path: Path) -> None:
    api, metrics = FakeApi(), Metrics()
    api.on(LIST, Answer(403, {"message": "pods is forbidden"}))
    async with fake_client(tmp_path, api, metrics) as client:
        reply = await client.call(an_operation(), "/api/v1/pods")

    assert (reply.status, reply.message, reply.ok) == (403, "pods is forbidden", False)
    assert sample(metrics, "loadmaster_api_calls_total", verb="GET", resource="pods", code="403") == 1


def test_a_refused_connection_was_not_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text("http://127.0.0.1:1"))
        async with Client(await load_credentials(str(kubeconfig)), Metrics()) as client:
            await client.call(an_operation(), "/api/v1/pods")

    with pytest.raises(NotSent, match="GET /api/v1/pods: Cannot connect"):
        run(scenario())


def test_a_broken_connection_loses_the_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        api = FakeApi()
        api.on("POST /api/v1/pods", LOST)
        async with fake_client(tmp_path, api) as client:
            await client.call(Operation("POST", "pods", CallLimit(1)), "/api/v1/pods", b"{}")

    with pytest.raises(AnswerLost):
        run(scenario())


def test_a_timeout_loses_the_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        api = FakeApi()
        api.held.clear()
        async with fake_client(tmp_path, api) as client:
            try:
                await client.call(an_operation(timeout=0.02), "/api/v1/pods")
            finally:
                api.held.set()

    with pytest.raises(AnswerLost):
        run(scenario())


async def test_a_429_holds_the_whole_kind_of_call_back(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(LIST, Answer(429, headers={"Retry-After": "0.2"}), Answer())
    async with fake_client(tmp_path, api) as client:
        operation = an_operation()
        await client.call(operation, "/api/v1/pods")
        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(client.call(operation, "/api/v1/pods") for _ in range(3)))

        assert (asyncio.get_running_loop().time() - started) >= 0.19


async def test_other_kinds_of_call_are_not_held_back(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(LIST, Answer(429, headers={"Retry-After": "30"}), Answer())
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


async def test_a_401_reads_the_credentials_again(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(LIST, Answer(), Answer(401), Answer())
    token = tmp_path / "token"
    token.write_text("old")
    async with api.server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(api.server.make_url("/")), tokenFile=str(token)))
        credentials = await load_credentials(str(kubeconfig))
        async with Client(credentials, Metrics()) as client, kept_fresh(credentials):
            await client.call(an_operation(), "/api/v1/pods")
            token.write_text("new")
            await client.call(an_operation(), "/api/v1/pods")
            await client.call(an_operation(), "/api/v1/pods")

    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer old", "Bearer old", "Bearer new"]


# --- Writes, which have connections of their own ---


def a_write(limit: int = 10, timeout: float = 5.0, content_type: str | None = None) -> Operation:
    return Operation("POST", "pods/binding", CallLimit(limit), timeout, content_type)


async def test_a_write_says_who_we_are_and_what_it_brings(tmp_path: Path) -> None:
    api = FakeApi()
    async with fake_client(tmp_path, api) as client:
        await client.call(a_write(content_type="application/merge-patch+json"), "/api/v1/pods", b'{"a":"\xe2\x82\xac"}')
    (request,) = api.requests

    assert (request.method, request.path, request.body) == ("POST", "/api/v1/pods", {"a": "\u20ac"})
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.headers["User-Agent"].startswith("loadmaster/")
    assert request.headers["Host"].startswith("127.0.0.1:")


def test_a_write_on_a_refused_connection_was_not_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text("http://127.0.0.1:1"))
        async with Client(await load_credentials(str(kubeconfig)), Metrics()) as client:
            await client.call(a_write(), "/api/v1/pods", b"{}")

    with pytest.raises(NotSent, match=r"POST /api/v1/pods: cannot connect to 127\.0\.0\.1:1"):
        run(scenario())


def test_a_write_that_times_out_loses_its_answer(tmp_path: Path) -> None:
    metrics = Metrics()

    async def scenario() -> None:
        api = FakeApi()
        async with fake_client(tmp_path, api, metrics) as client:
            await client.call(a_write(), "/api/v1/pods", b"{}")  # once connected, nothing but the answer takes time
            api.held.clear()
            try:
                await client.call(a_write(timeout=0.02), "/api/v1/pods", b"{}")
            finally:
                api.held.set()

    with pytest.raises(AnswerLost, match="POST /api/v1/pods: no answer in time"):
        run(scenario())
    assert sample(metrics, "loadmaster_api_calls_total", verb="POST", resource="pods/binding", code="timeout") == 1


async def test_a_write_is_told_when_to_come_again(tmp_path: Path) -> None:
    api = FakeApi()
    api.on("POST /api/v1/pods", Answer(429, headers={"Retry-After": "0.2"}), Answer())
    async with fake_client(tmp_path, api) as client:
        operation = a_write()
        reply = await client.call(operation, "/api/v1/pods", b"{}")
        started = asyncio.get_running_loop().time()
        await client.call(operation, "/api/v1/pods", b"{}")
        waited = asyncio.get_running_loop().time() - started

    assert (reply.status, reply.retry_after) == (429, 0.2)
    assert waited >= 0.19


async def test_a_path_that_needs_quoting_is_quoted(tmp_path: Path) -> None:
    api = FakeApi()
    async with fake_client(tmp_path, api) as client:
        await client.call(a_write(), "/api/v1/things/a b", b"{}")

    assert [request.path for request in api.requests] == ["/api/v1/things/a b"]


async def test_a_401_renews_the_token_of_writes(tmp_path: Path) -> None:
    api = FakeApi()
    api.on("POST /api/v1/pods", Answer(), Answer(401), Answer())
    token = tmp_path / "token"
    token.write_text("old")
    async with api.server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(api.server.make_url("/")), tokenFile=str(token)))
        credentials = await load_credentials(str(kubeconfig))
        async with Client(credentials, Metrics()) as client, kept_fresh(credentials):
            await client.call(a_write(), "/api/v1/pods", b"{}")
            token.write_text("new")
            await client.call(a_write(), "/api/v1/pods", b"{}")
            await client.call(a_write(), "/api/v1/pods", b"{}")

    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_server_may_have_a_path(tmp_path: Path) -> None:
    api = FakeApi()
    async with api.server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(f"{api.server.make_url('/k8s/clusters/c-1')}/"))
        async with Client(await load_credentials(str(kubeconfig)), Metrics()) as client:
            await client.call(a_write(), "/api/v1/pods", b"{}")
            await client.call(an_operation(), "/api/v1/pods")

    assert [request.path for request in api.requests] == ["/k8s/clusters/c-1/api/v1/pods"] * 2


async def test_writes_follow_a_server_that_moves(tmp_path: Path) -> None:
    old, new = FakeApi(), FakeApi()
    async with old.server, new.server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(old.server.make_url("/"))))
        credentials = await load_credentials(str(kubeconfig))
        async with Client(credentials, Metrics()) as client:
            await client.call(a_write(), "/api/v1/pods", b"{}")
            kubeconfig.write_text(kubeconfig_text(str(new.server.make_url("/"))))
            await credentials.refresh()
            await client.call(a_write(), "/api/v1/pods", b"{}")

    assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_a_token_that_no_header_can_carry_is_not_sent(tmp_path: Path) -> None:
    api = FakeApi()
    token = tmp_path / "token"
    token.write_text("old")
    async with api.server:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(api.server.make_url("/")), tokenFile=str(token)))
        credentials = await load_credentials(str(kubeconfig))
        async with Client(credentials, Metrics()) as client:
            token.write_text("new\r\nX-Remote-User: admin")
            with pytest.raises(ConfigError, match="Authorization"):
                await credentials.refresh()
            await client.call(a_write(), "/api/v1/pods", b"{}")

    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer old"]


@pytest.mark.parametrize(
    ("server", "problem"),
    [("https://127.0.0.1:66666", "Port out of range"), ("127.0.0.1:6443", "not the URL"), ("https://", "not the URL")],
)
def test_a_server_that_is_no_address_is_a_fault_of_the_configuration(tmp_path: Path, server: str, problem: str) -> None:
    async def scenario() -> None:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(server))
        async with Client(await load_credentials(str(kubeconfig)), Metrics()):
            raise AssertionError("opened")

    with pytest.raises(ConfigError, match=rf"kubeconfig: clusters\[main\]\.cluster\.server: .*{problem}"):
        run(scenario())


async def test_with_a_proxy_writes_go_through_it(tmp_path: Path) -> None:
    proxy = FakeApi()
    async with proxy.server:
        kubeconfig = tmp_path / "kubeconfig"
        cluster = {"proxy-url": str(proxy.server.make_url("/"))}
        kubeconfig.write_text(kubeconfig_text("http://api.example.com", cluster))
        async with Client(await load_credentials(str(kubeconfig)), Metrics()) as client:
            await client.call(a_write(), "/api/v1/pods", b"{}")
    (request,) = proxy.requests

    assert request.headers["Host"] == "api.example.com"
