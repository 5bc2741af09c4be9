"""Health and metrics over HTTP."""

import asyncio
import socket
from collections.abc import Mapping

import aiohttp
import pytest

from scheduler.framework.errors import ConfigError
from scheduler.runtime.metrics import Metrics
from scheduler.serve.http import Check, HttpServer


def yes() -> bool:
    return True


def no() -> bool:
    return False


def broken() -> bool:
    raise RuntimeError("boom")


def get(
    path: str,
    live: Mapping[str, Check] | None = None,
    ready: Mapping[str, Check] | None = None,
    accept: str = "",
) -> tuple[int, str, str]:
    """Status, content type, text."""

    async def scenario() -> tuple[int, str, str]:
        server = HttpServer(Metrics().registry, live or {}, ready or {}, "127.0.0.1", 0)
        async with server, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{server.port}{path}"
            async with session.get(url, headers={"Accept": accept}) as response:
                return response.status, response.headers["Content-Type"], await response.text()

    return asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/synced"])
def test_what_is_well_is_ok(path: str) -> None:
    status, _, text = get(path, ready={"synced": yes})

    assert (status, text) == (200, "ok")


def test_verbose_lists_the_checks() -> None:
    _, _, text = get("/readyz?verbose", live={"loop": yes}, ready={"synced": yes})

    assert text == "[+]ping ok\n[+]loop ok\n[+]synced ok\nreadyz check passed\n"


def test_a_failing_check_is_named_and_its_reason_withheld() -> None:
    status, _, text = get("/readyz", ready={"sched-handler-sync": no})

    assert status == 500
    assert text == "[+]ping ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n"


def test_not_ready_is_still_alive() -> None:
    assert get("/livez", ready={"synced": no})[0] == 200


def test_not_alive_is_not_ready() -> None:
    assert get("/readyz", live={"loop": no})[0] == 500


def test_a_check_that_raises_has_failed() -> None:
    assert get("/livez", live={"loop": broken})[0] == 500


def test_a_check_can_be_excluded() -> None:
    assert get("/readyz?exclude=synced", ready={"synced": no})[0] == 200


@pytest.mark.parametrize(("path", "status"), [("/readyz/synced", 500), ("/readyz/nothing", 404), ("/nothing", 404)])
def test_one_check_can_be_asked_for(path: str, status: int) -> None:
    assert get(path, ready={"synced": no})[0] == status


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("text/plain", "text/plain"), ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text")],
)
def test_metrics_come_as_asked(accept: str, content_type: str) -> None:
    status, found, text = get("/metrics", accept=accept)

    assert status == 200
    assert found.startswith(content_type)
    assert "# TYPE loadmaster_api_calls" in text


def test_a_port_that_is_taken_is_a_config_error() -> None:
    async def scenario(port: int) -> None:
        async with HttpServer(Metrics().registry, {}, {}, "127.0.0.1", port):
            pass

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError) as raised:
            asyncio.run(scenario(port))
    assert raised.value.problems == (f"cannot listen on 127.0.0.1:{port}: Address already in use",)


def test_an_address_of_another_machine_is_a_config_error() -> None:
    async def scenario() -> None:
        async with HttpServer(Metrics().registry, {}, {}, "192.0.2.1", 10259):
            pass

    with pytest.raises(ConfigError) as raised:
        asyncio.run(scenario())
    assert raised.value.problems == ("cannot listen on 192.0.2.1:10259: Cannot assign requested address",)
