"""What is trouble of the API server, and what is for us to cure."""

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest
import trustme

from scheduler.framework.errors import ConfigError
from scheduler.kube.http.client import AnswerLost, BadStatus, NotSent, Reply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import is_outage, is_trouble
from scheduler.kube.informers.relister import ListFailed
from tests.unit.kube.fake_api import client_of
from tests.unit.kube.raw_server import RawServer


def because_of(error: Exception) -> NotSent:
    not_sent = NotSent("not sent")
    not_sent.__cause__ = error
    return not_sent


@pytest.mark.parametrize(
    ("status", "expected"), [(200, False), (401, False), (403, False), (404, False), (429, True), (500, True)]
)
def test_the_status_of_an_answer_tells(status: int, expected: bool) -> None:
    assert is_trouble(status) is expected
    assert is_outage(BadStatus("listing pods", Reply(status, b""))) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(AnswerLost("no answer"), True, id="no answer"),
        pytest.param(NotSent("refused"), True, id="no connection"),
        pytest.param(aiohttp.ServerDisconnectedError(), True, id="a connection that breaks"),
        pytest.param(TimeoutError(), True, id="silence"),
        pytest.param(ListFailed("not JSON"), False, id="an answer that cannot be read"),
        pytest.param(KeyError("getpwuid"), False, id="an error of our own"),
        pytest.param(because_of(ConfigError(["kubeconfig: wrong"])), False, id="a configuration that is to blame"),
    ],
)
def test_the_kind_of_an_error_tells(error: Exception, expected: bool) -> None:
    assert is_outage(error) is expected


@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_certificate_that_cannot_be_verified_is_no_outage(tmp_path: Path, verb: str) -> None:
    theirs, ours, tls = trustme.CA(), trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.issue_cert("127.0.0.1").configure_cert(tls)
    ours.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = RawServer()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the server's side of the handshake
    async with server.serving(tls):
        cluster = {"certificate-authority": str(tmp_path / "ca.pem")}
        async with client_of(tmp_path, f"https://{server.url}", cluster) as client:
            with pytest.raises(NotSent) as ours_raised:
                await client.call(Operation(verb, "pods", CallLimit(1)), "/api/v1/pods", b"{}")
            with pytest.raises(aiohttp.ClientError) as theirs_raised:
                await client.session.get(f"https://{server.url}/api/v1/pods")

    assert [is_outage(error) for error in (ours_raised.value, theirs_raised.value)] == [False, False]
