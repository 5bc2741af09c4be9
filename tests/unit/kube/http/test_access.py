"""A refusal that lasts fails `/livez`; one that passes, or an outage, does not."""

import ssl
from pathlib import Path

import pytest
import trustme

from scheduler.kube.http.access import REFUSED_SECONDS, Access
from scheduler.kube.http.client import Client, NotSent
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.identity import credentials as credentials_module
from scheduler.process.metrics import Metrics
from tests.fakes import FakeClock
from tests.unit.kube.fake_api import Answer, FakeApi, credentials_of, fake_client
from tests.unit.kube.raw_server import RawServer

POST = Operation("POST", "pods", CallLimit(1), timeout=5.0)


def test_only_a_refusal_that_lasts_fails(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    access = Access(clock)
    access.refused("HTTP 401")
    clock.advance(REFUSED_SECONDS - 1)
    access.refused("HTTP 401")
    assert access.is_granted()
    clock.advance(1)
    assert access.is_granted()  # nothing is known of now
    access.refused("HTTP 401")
    access.refused("HTTP 401")

    assert not access.is_granted()
    assert caplog.messages == ["Every call is refused: /livez fails"]
    access.accepted()
    assert access.is_granted()


def test_an_accepted_call_starts_the_time_anew() -> None:
    clock = FakeClock()
    access = Access(clock)
    for _ in range(10):
        access.refused("HTTP 401")
        clock.advance(REFUSED_SECONDS / 2)
        access.accepted()
        access.refused("HTTP 401")
        clock.advance(REFUSED_SECONDS / 2)

    assert access.is_granted()


async def test_a_401_is_a_refusal_and_any_other_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials_module, "REJECTED_SECONDS", 0.01)
    async with fake_client(tmp_path, FakeApi().on("POST /x", Answer(401), Answer(500), Answer(401))) as client:
        for refused in (True, False, True):
            await client.call(POST, "/x")
            assert (client.access.refused_since is not None) is refused


async def test_a_server_that_is_not_ours_refuses_us_and_one_that_is_away_does_not(tmp_path: Path) -> None:
    server = RawServer()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    async with server.serving(tls):
        credentials = await credentials_of(tmp_path, f"https://{server.url}")
        async with Client(credentials, Metrics()) as client:
            assert isinstance(await client.attempt(POST, "/x"), NotSent)
            assert client.access.refused_since is not None
    async with Client(credentials, Metrics()) as client:
        assert isinstance(await client.attempt(POST, "/x"), NotSent)
        assert client.access.refused_since is None
