"""Calls: three outcomes, a budget each, fresh credentials."""

import asyncio
from pathlib import Path

import pytest

from scheduler.framework.metrics import Metrics
from scheduler.kube.client import AnswerLost, Budget, Client, NotSent, Operation, Reply
from scheduler.kube.credentials import load_credentials
from tests.fakes import run, sample
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, kubeconfig_text

LIST = "GET /api/v1/pods"


def an_operation(limit: int = 10, timeout: float = 5.0) -> Operation:
    return Operation("GET", "pods", Budget(limit), timeout)


def test_any_status_is_a_reply(tmp_path: Path) -> None:
    async def scenario() -> tuple[Reply, Metrics]:
        api, metrics = FakeApi(), Metrics()
        api.on(LIST, Answer(403, {"message": "pods is forbidden"}))
        async with fake_client(tmp_path, api, metrics) as client:
            return await client.call(an_operation(), "/api/v1/pods"), metrics

    reply, metrics = run(scenario())
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
            await client.call(Operation("POST", "pods", Budget(1)), "/api/v1/pods", b"{}")

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


def test_a_429_holds_the_whole_budget_back(tmp_path: Path) -> None:
    async def scenario() -> float:
        api = FakeApi()
        api.on(LIST, Answer(429, headers={"Retry-After": "0.2"}), Answer())
        async with fake_client(tmp_path, api) as client:
            operation = an_operation()
            await client.call(operation, "/api/v1/pods")
            started = asyncio.get_running_loop().time()
            await asyncio.gather(*(client.call(operation, "/api/v1/pods") for _ in range(3)))
            return asyncio.get_running_loop().time() - started

    assert run(scenario()) >= 0.19


def test_other_budgets_are_not_held_back(tmp_path: Path) -> None:
    async def scenario() -> int:
        api = FakeApi()
        api.on(LIST, Answer(429, headers={"Retry-After": "30"}), Answer())
        async with fake_client(tmp_path, api) as client:
            await client.call(an_operation(), "/api/v1/pods")
            return (await client.call(an_operation(), "/api/v1/pods")).status

    assert run(scenario()) == 200


def test_a_cancelled_wait_gives_its_slot_back() -> None:
    async def scenario() -> None:
        budget = Budget(1)
        budget.pause(30)
        waiting = asyncio.create_task(budget.__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        budget._paused_until = 0.0
        async with budget:
            pass

    run(scenario())


def test_a_401_reads_the_credentials_again(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        now = 0.0
        api = FakeApi()
        api.on(LIST, Answer(), Answer(401), Answer())
        token = tmp_path / "token"
        token.write_text("old")
        async with api.server:
            kubeconfig = tmp_path / "kubeconfig"
            kubeconfig.write_text(kubeconfig_text(str(api.server.make_url("/")), tokenFile=str(token)))
            credentials = await load_credentials(str(kubeconfig), now=lambda: now)
            async with Client(credentials, Metrics()) as client:
                await client.call(an_operation(), "/api/v1/pods")
                token.write_text("new")
                now = 5.0
                await client.call(an_operation(), "/api/v1/pods")
                await client.call(an_operation(), "/api/v1/pods")
        return [request.headers["Authorization"] for request in api.requests]

    assert run(scenario()) == ["Bearer old", "Bearer old", "Bearer new"]
