"""HTTP to extenders: what is sent, and every way in which no answer comes back."""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme

from scheduler.config.extenders import Extender as Settings
from scheduler.config.extenders import TLSConfig
from scheduler.extenders.extender import CallFailed
from scheduler.extenders.roster import Roster
from scheduler.framework.duration import Duration
from scheduler.framework.errors import BindRejected, ConfigError
from scheduler.kube.services import extender_transport
from scheduler.kube.services.extender_transport import Budget, HttpTransport
from scheduler.process.metrics import Metrics
from tests.unit.kube.raw_server import CLOSE, RawServer, serving

QUICK = Settings(http_timeout=Duration(0.2))


def ok(body: bytes = b"{}", head: bytes = b"") -> tuple[bytes, ...]:
    return (b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body),)


@asynccontextmanager
async def to(
    server: RawServer, settings: Settings = QUICK, *, leads: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[HttpTransport]:
    async with server.serving(tls):
        scheme = "https" if tls else "http"
        name = "localhost" if tls else "127.0.0.1"
        settings = replace(settings, url_prefix=f"{scheme}://{name}:{server.port}/ext/")
        transport = HttpTransport(settings, "extenders[0]", Budget(), lambda: leads)
        try:
            yield transport
        finally:
            await transport.close()


async def failure(server: RawServer, settings: Settings = QUICK, **wishes: Any) -> CallFailed:
    async with to(server, settings, **wishes) as transport:
        with pytest.raises(CallFailed) as error:
            await transport.post("filter", [b"{}"])
    return error.value


@pytest.mark.parametrize("pieces", [[b'{"Pod":', b"null", b"}"], [b"[", *([b"x" * 50_000 + b","] * 100), b"]"]])
async def test_a_question_of_any_size_is_posted_as_json_and_its_answer_is_the_body(pieces: list[bytes]) -> None:
    server = RawServer(ok(b'{"NodeNames":[]}'))
    async with to(server, Settings(http_timeout=Duration(10))) as transport:
        answer = await transport.post("filter", pieces)

    assert answer == b'{"NodeNames":[]}'
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /ext/filter HTTP/1.1\r\n")
    assert b"Content-Type: application/json" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"chunked" not in head.lower()
    assert body == b"".join(pieces)


async def test_a_connection_is_used_again_and_one_that_was_closed_meanwhile_costs_no_attempt() -> None:
    server = RawServer(ok(b"1"), ok(b"2"), (CLOSE,), ok(b"3"))
    async with to(server) as transport:
        answers = [await transport.post("filter", [b"{}"]) for _ in range(3)]

    assert answers == [b"1", b"2", b"3"]
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "result", "text"),
    [
        pytest.param(
            (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",),
            "status",
            "failed filter with extender at URL ADDRESS, code 500",
            id="500",
        ),
        pytest.param(
            (b"HTTP/1.1 204 No Content\r\n\r\n",),
            "status",
            "failed filter with extender at URL ADDRESS, code 204",
            id="not quite 200",
        ),
        pytest.param(
            (b"HTTP/1.1 307 There\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",),
            "status",
            "failed filter with extender at URL ADDRESS, code 307",
            id="a redirection is not followed",
        ),
        pytest.param((CLOSE,), "connection", 'Post "ADDRESS": EOF', id="no answer at all"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", CLOSE), "connection", "unexpected EOF", id="half of it"
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",),
            "timeout",
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
            id="half of it, and then silence",
        ),
        pytest.param(
            (),
            "timeout",
            'Post "ADDRESS": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
            id="silence",
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx",),
            "answer",
            "the answer is encoded as 'gzip', which was not asked for",
            id="compressed",
        ),
        pytest.param((b"garbage\r\n\r\n",), "connection", None, id="no HTTP"),
        pytest.param((b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",), "connection", None, id="a long head"),
    ],
)
async def test_whatever_goes_wrong_is_said_in_gos_words(
    answer: tuple[bytes, ...], result: str, text: str | None
) -> None:
    server = RawServer(answer)

    error = await failure(server)

    assert error.result == result
    assert error.was_sent
    if text is not None:
        assert str(error) == text.replace("ADDRESS", f"http://127.0.0.1:{server.port}/ext/filter")


async def test_a_huge_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_transport, "MIN_ANSWER_BYTES", 1000)

    error = await failure(RawServer(ok(b"x" * 1_000_000)))

    assert (error.result, str(error)) == ("answer", "the answer has more than 1004 bytes")


async def test_what_could_not_be_connected_to_was_certainly_not_asked() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    transport = HttpTransport(replace(QUICK, url_prefix=f"http://127.0.0.1:{port}"), "x", Budget(), lambda: True)

    with pytest.raises(CallFailed) as error:
        await transport.post("filter", [b"{}"])

    await transport.close()
    assert str(error.value) == (
        f'Post "http://127.0.0.1:{port}/filter": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )
    assert not error.value.was_sent
    with pytest.raises(CallFailed) as error:
        await HttpTransport(QUICK, "x", Budget(), lambda: True).post("filter", [b"{}"])
    assert str(error.value) == 'Post "/filter": unsupported protocol scheme ""'


async def test_a_binding_is_checked_before_it_is_sent_and_never_repeated() -> None:
    def refuse() -> None:
        raise BindRejected("no longer")

    server = RawServer((CLOSE,))
    async with to(server) as transport:
        with pytest.raises(BindRejected, match="no longer"):
            await transport.post("bind", [b"{}"], refuse)
        assert server.requests == []
        with pytest.raises(CallFailed) as lost:
            await transport.post("bind", [b"{}"], lambda: None)

    assert lost.value.was_sent
    assert len(server.requests) == 1


async def test_a_replica_that_does_not_lead_has_nothing_bound() -> None:
    server = RawServer(ok())
    async with to(server, leads=False) as transport:
        await transport.post("filter", [b"{}"])
        with pytest.raises(CallFailed, match="does not lead") as error:
            await transport.post("bind", [b"{}"], lambda: None)

    assert len(server.requests) == 1
    assert not error.value.was_sent


# TLS.


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def https(**fields: Any) -> Settings:
    return replace(QUICK, http_timeout=Duration(2), enable_https=True, tls_config=TLSConfig(**fields))


async def test_an_authority_in_the_configuration_is_trusted(authority: trustme.CA, tmp_path: Path) -> None:
    pem = authority.cert_pem.bytes()
    (tmp_path / "ca.pem").write_bytes(pem)

    for trust in (https(ca_data=base64.b64encode(pem).decode()), https(ca_file=str(tmp_path / "ca.pem"))):
        async with to(RawServer(ok()), trust, tls=serving(authority)) as transport:
            assert await transport.post("filter", [b"{}"]) == b"{}"


async def test_another_authority_another_name_and_one_that_the_system_does_not_know_are_not(
    authority: trustme.CA,
) -> None:
    ours, other = (base64.b64encode(each.cert_pem.bytes()).decode() for each in (authority, trustme.CA()))
    untrusted = {
        "tls: failed to verify certificate: ": https(ca_data=other),
        "Hostname mismatch": https(ca_data=ours, server_name="elsewhere"),
        "unable to get local issuer certificate": replace(QUICK, http_timeout=Duration(2)),
    }
    for said, trust in untrusted.items():
        error = await failure(RawServer(ok()), trust, tls=serving(authority))

        assert said in str(error)
        assert not error.was_sent


@pytest.mark.parametrize(
    "trusting",
    [
        pytest.param(https(), id="enableHTTPS without an authority looks at no certificate"),
        pytest.param(replace(https(insecure=True), enable_https=False), id="insecure"),
    ],
)
async def test_certificates_are_not_looked_at_where_kube_scheduler_does_not(
    authority: trustme.CA, trusting: Settings
) -> None:
    async with to(RawServer(ok()), trusting, tls=serving(authority)) as transport:
        assert await transport.post("filter", [b"{}"]) == b"{}"


async def test_plain_http_from_what_should_be_https_is_an_error() -> None:
    async def speak_plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(speak_plainly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        transport = HttpTransport(replace(https(), url_prefix=f"https://127.0.0.1:{port}"), "x", Budget(), lambda: True)
        with pytest.raises(CallFailed, match="tls: ") as error:
            await transport.post("filter", [b"{}"])
        await transport.close()

    assert not error.value.was_sent


async def test_a_client_certificate_is_shown_and_followed(authority: trustme.CA, tmp_path: Path) -> None:
    server_side = serving(authority)
    server_side.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(server_side)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    stranger = trustme.CA().issue_cert("me")
    stranger.cert_chain_pems[0].write_to_path(str(certificate))
    stranger.private_key_pem.write_to_path(str(key))
    mine = https(
        ca_data=base64.b64encode(authority.cert_pem.bytes()).decode(), cert_file=str(certificate), key_file=str(key)
    )

    async with to(RawServer(ok()), mine, tls=server_side) as transport:
        with pytest.raises(CallFailed):
            await transport.post("filter", [b"{}"])
        known = authority.issue_cert("me")
        known.cert_chain_pems[0].write_to_path(str(certificate))
        known.private_key_pem.write_to_path(str(key))
        assert transport.follows_files
        transport.refresh()
        assert await transport.post("filter", [b"{}"]) == b"{}"
        certificate.write_text("nonsense")
        transport.refresh()
        assert await transport.post("filter", [b"{}"]) == b"{}", "what is of no use changes nothing"


def test_all_certificates_that_are_of_no_use_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    nonsense = base64.b64encode(b"nonsense").decode()
    settings = [
        https(ca_file="/nowhere/ca.pem", cert_file=str(tmp_path / "empty")),
        https(ca_data=nonsense),
        https(cert_data=nonsense),
        https(cert_data=nonsense, key_data=nonsense),
    ]

    with pytest.raises(ConfigError) as error:
        Roster(partial(HttpTransport, budget=Budget(), may_send=lambda: True), Metrics(), settings)

    missing, empty, *unreadable, no_key, unusable = error.value.problems
    assert missing == "extenders[0].tlsConfig.caFile: cannot read '/nowhere/ca.pem': No such file or directory"
    assert empty == f"extenders[0].tlsConfig.certFile: {tmp_path}/empty: empty"
    assert [line.startswith("extenders[1].tlsConfig: these certificates are of no use: ") for line in unreadable] == [
        True
    ]
    assert no_key == "extenders[2].tlsConfig: a client certificate without its key"
    assert unusable.startswith("extenders[3].tlsConfig: these certificates are of no use: ")


# Memory.


async def test_answers_share_their_memory_and_wait_for_it() -> None:
    budget, order = Budget(total=10), []

    async with budget.share(8):

        async def second() -> None:
            async with budget.share(8):
                order.append("second")

        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        order.append("first")
    await waiting

    assert order == ["first", "second"]
    async with budget.share(1000):
        order.append("even one that wants more than there is")
    assert len(order) == 3


def test_the_environment_names_a_proxy_as_for_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", ".svc")

    proxies = {
        url: HttpTransport(replace(QUICK, url_prefix=url), "x", Budget(), lambda: True)._proxy
        for url in ("http://a.example", "http://ext.kube-system.svc", "http://127.0.0.1:80", "https://a.example")
    }

    assert proxies == {
        "http://a.example": "http://proxy:3128",
        "http://ext.kube-system.svc": None,
        "http://127.0.0.1:80": None,
        "https://a.example": None,
    }
