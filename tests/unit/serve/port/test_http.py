"""Health and metrics over HTTPS: what is answered to whom."""

import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.api.reviews import ANONYMOUS, User
from scheduler.config.options import ServingOptions
from scheduler.framework.errors import ConfigError
from scheduler.serve.endpoints.health import Check
from tests.fakes import sample
from tests.unit.serve.serving import HEALTH, FakeReviews, a_server

PROMETHEUS = User(username="system:serviceaccount:monitoring:prometheus")
ADMIN = User(username="admin", groups=("system:masters",))


def yes() -> bool:
    return True


def no() -> bool:
    return False


def broken() -> bool:
    raise RuntimeError("boom")


async def get(
    path: str, live: Mapping[str, Check] | None = None, ready: Mapping[str, Check] | None = None
) -> tuple[int, str]:
    """Status and text of what everybody may see."""
    async with a_server(live, ready, always_allow=("*",)) as served:
        return await served.get(path)


def a_cluster() -> FakeReviews:
    """It knows Prometheus, who may see metrics, a guest, who may not, and an administrator."""
    users = {"p": PROMETHEUS, "g": User(username="guest"), "a": ADMIN}
    return FakeReviews(users, [(PROMETHEUS.username, "get", "/metrics")])


# --- health and metrics


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/synced"])
async def test_what_is_well_is_ok(path: str) -> None:
    assert await get(path, ready={"synced": yes}) == (200, "ok")


async def test_verbose_lists_the_checks_and_a_failing_one_is_named_and_its_reason_withheld() -> None:
    assert await get("/readyz?verbose", live={"loop": yes}, ready={"synced": yes}) == (
        200,
        "[+]ping ok\n[+]loop ok\n[+]synced ok\nreadyz check passed\n",
    )
    assert await get("/readyz", ready={"sched-handler-sync": no}) == (
        500,
        "[+]ping ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
    )


@pytest.mark.parametrize(
    ("path", "live", "ready", "status"),
    [
        pytest.param("/livez", {}, {"synced": no}, 200, id="not ready is still alive"),
        pytest.param("/readyz", {"loop": no}, {}, 500, id="not alive is not ready"),
        pytest.param("/livez", {"loop": broken}, {}, 500, id="a check that raises has failed"),
        pytest.param("/readyz?exclude=synced", {}, {"synced": no}, 200, id="a check is excluded"),
        *(("/readyz/synced", {}, {"synced": no}, 500), ("/readyz/nothing", {}, {"synced": no}, 404)),
        *(("/readyz/", {}, {}, 404), ("/readyz/ping/x", {}, {}, 404), ("/nothing", {}, {}, 404)),
    ],
)
async def test_checks_by_path(path: str, live: dict[str, Any], ready: dict[str, Any], status: int) -> None:
    assert (await get(path, live=live, ready=ready))[0] == status


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("text/plain", "text/plain"), ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text")],
)
async def test_metrics_come_as_asked(accept: str, content_type: str) -> None:
    async with a_server() as served:
        answer = await served.answer("/metrics", Accept=accept)

        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(content_type)
        assert "# TYPE loadmaster_api_calls" in await answer.text()


async def test_a_head_request_gets_no_body() -> None:
    async with a_server() as served:
        assert await served.get("/livez", method="HEAD") == (200, "")


# --- who may see what


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        pytest.param("/livez", "", 200, id="health, nobody in particular"),
        pytest.param("/readyz?verbose", "", 200, id="health with its checks"),
        pytest.param("/livez", "x", 401, id="health with a wrong token, as in kube-scheduler"),
        pytest.param("/livez/ping", "", 403, id="a single check is not for everyone"),
        pytest.param("/metrics", "", 403, id="metrics, nobody in particular"),
        pytest.param("/metrics", "x", 401, id="metrics with a wrong token"),
        pytest.param("/metrics", "g", 403, id="metrics with a token that may not"),
        pytest.param("/metrics", "p", 200, id="metrics with a token that may"),
        pytest.param("/metrics", "a", 200, id="metrics for an administrator"),
        pytest.param("/nothing", "g", 404, id="what is not there"),
    ],
)
async def test_health_is_for_everyone_and_metrics_for_those_who_may(path: str, token: str, status: int) -> None:
    cluster = a_cluster()

    async with a_server(tokens=cluster, rights=cluster, always_allow=HEALTH) as served:
        assert (await served.get(path, token))[0] == status
    if status == 404:
        assert cluster.accesses == [], "nobody is asked about paths that are not there"


@pytest.mark.parametrize(
    ("token", "status", "message"),
    [
        ("x", 401, "Unauthorized"),
        ("g", 403, 'forbidden: User "guest" cannot get path "/metrics"'),
        ("", 403, f'forbidden: User "{ANONYMOUS.username}" cannot get path "/metrics"'),
    ],
)
async def test_a_refusal_is_a_status_object_and_ends_the_connection_of_a_token(
    token: str, status: int, message: str
) -> None:
    cluster = a_cluster()

    async with a_server(tokens=cluster, rights=cluster, always_allow=HEALTH) as served:
        answer = await served.answer("/metrics", token)
        said: dict[str, Any] = json.loads(await answer.text())

    assert answer.headers["Content-Type"] == "application/json"
    assert (answer.headers.get("Connection") == "close") is (status == 401)
    assert (said["kind"], said["status"], said["code"], said["message"]) == ("Status", "Failure", status, message)


async def test_without_anybody_to_ask_tokens_are_ignored_and_only_health_is_served() -> None:
    async with a_server(always_allow=HEALTH) as served:
        answers = [(await served.get(path, "p"))[0] for path in ("/livez", "/metrics")]

    assert answers == [200, 403]


async def test_an_api_server_that_is_away_is_no_way_in() -> None:
    cluster = a_cluster()
    cluster.is_away = True

    async with a_server(tokens=cluster, rights=cluster, always_allow=HEALTH) as served:
        with_token = await served.get("/metrics", "p")
        without = await served.get("/metrics")
        health = await served.get("/livez")

    assert with_token[0] == 401
    assert without == (500, 'Internal Server Error: "/metrics": connection refused\n')
    assert health == (200, "ok")


async def test_tokens_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    cluster = a_cluster()

    async with a_server(tokens=cluster, rights=cluster, always_allow=HEALTH) as served:
        for token in ("p", "g", "very-secret"):
            await served.get("/metrics", token)

    assert cluster.tokens == ["p", "g", "very-secret"]
    assert "very-secret" not in caplog.text
    assert "very-secret" not in str([vars(record) for record in caplog.records])


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_only_get_and_head_are_served(method: str) -> None:
    cluster = a_cluster()

    async with a_server(tokens=cluster, rights=cluster) as served:
        answer = await served.answer("/metrics", "x", method)

    assert (answer.status, answer.headers["Allow"], cluster.tokens) == (405, "GET, HEAD", [])


async def test_requests_are_counted_by_page_and_status() -> None:
    async with a_server(always_allow=HEALTH) as served:
        for path in ("/livez", "/readyz", "/metrics", "/a", "/b"):
            await served.get(path)

        def count(page: str, code: int) -> float:
            return sample(served.metrics, "loadmaster_serving_requests_total", page=page, code=str(code))

        assert [count("livez", 200), count("readyz", 200), count("metrics", 403), count("", 404)] == [1, 1, 1, 2]


# --- the port


async def test_a_port_that_cannot_be_had_is_a_config_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = "127.0.0.1", other.getsockname()[1], "Address already in use"
        for address, port, why in (taken, ("192.0.2.1", 10259, "Cannot assign requested address")):
            with pytest.raises(ConfigError) as raised:
                async with a_server(options=ServingOptions(secure_port=port, bind_address=address)):
                    pass
            assert raised.value.problems == (f"cannot listen on {address}:{port}: {why}",)
