"""Calls through a SOCKS proxy, which may be the only one that knows the API server's name."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from scheduler.kube.http.client import NotSent
from scheduler.kube.http.operations import CallLimit, Operation
from tests.unit.kube.fake_api import client_of
from tests.unit.kube.raw_server import RawServer, serving

REACHED, REFUSED = 0, 5


class SocksServer:
    """Leads every connection to a server of this machine (RFC 1928), for those who know the password (RFC 1929)."""

    def __init__(self, target: RawServer, answer: int = REACHED) -> None:
        self._target = target
        self._answer = answer
        self.asked: list[tuple[str, int]] = []
        """Names and ports."""
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"socks5://me:p%40ss@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x02")
        assert await reader.readexactly(3 + len("me") + len("p@ss")) == b"\x01\x02me\x04p@ss"
        writer.write(b"\x01\x00")
        *_, length = await reader.readexactly(5)
        name = (await reader.readexactly(length)).decode()
        self.asked.append((name, *struct.unpack("!H", await reader.readexactly(2))))
        writer.write(bytes([5, self._answer, 0, 1, 0, 0, 0, 0, 0, 0]))
        if self._answer == REACHED:
            there, back = await asyncio.open_connection("127.0.0.1", self._target.port)
            await asyncio.gather(pumped(reader, back), pumped(there, writer))
        writer.close()


async def pumped(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while part := await source.read(1 << 16):
        target.write(part)
    target.close()


def a_call(verb: str) -> Operation:
    return Operation(verb, "pods", CallLimit(1), timeout=5.0)


@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_call_goes_through_socks_with_the_servers_own_certificate(tmp_path: Path, verb: str) -> None:
    authority, api = trustme.CA(), RawServer()
    socks = SocksServer(api)
    async with api.serving(serving(authority)), socks.serving():
        (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())
        # The certificate is for `localhost`, which is not the name that is asked for.
        cluster = {"proxy-url": socks.url, "certificate-authority": "ca.crt", "tls-server-name": "localhost"}
        async with client_of(tmp_path, "https://api.example.invalid:6443", cluster) as client:
            reply = await client.call(a_call(verb), "/api/v1/pods", b"{}" if verb == "POST" else None)

    assert (reply.status, socks.asked) == (200, [("api.example.invalid", 6443)])


async def test_a_call_that_the_proxy_refuses_was_not_sent(tmp_path: Path) -> None:
    api = RawServer()
    socks = SocksServer(api, answer=REFUSED)
    async with (
        api.serving(),
        socks.serving(),
        client_of(tmp_path, "http://api.example.invalid", {"proxy-url": socks.url}) as client,
    ):
        with pytest.raises(NotSent, match="the proxy refused: Connection refused"):
            await client.call(a_call("POST"), "/api/v1/pods", b"{}")

    assert api.requests == []


async def test_a_proxy_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with client_of(tmp_path, "http://api.example.invalid", {"proxy-url": "socks5://127.0.0.1:1"}) as client:
        with pytest.raises(NotSent, match=r"Could not connect to proxy 127\.0\.0\.1:1"):
            await client.call(a_call("GET"), "/api/v1/pods")
