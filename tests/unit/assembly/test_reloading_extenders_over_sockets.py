"""Extenders over real sockets, with redirections, TLS and delays, while the configuration changes."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trustme

from scheduler.config.types import Config
from scheduler.engine.engine import ExtenderAccess
from scheduler.extenders.roster import Roster
from scheduler.kube.services.extender_transport import Budget, HttpTransport
from scheduler.process.metrics import Metrics
from scheduler.testing import a_node, a_pod
from tests.fakes import settle
from tests.fakes.extenders import FakePods
from tests.unit.assembly.test_reloading_extenders import OfExtenders
from tests.unit.kube.raw_server import CLOSE, RawServer, serving

PATIENCE = 10.0
"""Seconds for what takes milliseconds."""


def says(answer: Any) -> tuple[bytes, ...]:
    """An answer in JSON."""
    body = json.dumps(answer).encode()
    return (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body),)


def redirects(server: RawServer, code: int) -> tuple[bytes, ...]:
    """A redirection to another server."""
    head = f"HTTP/1.1 {code} There\r\nLocation: http://{server.url}/filter\r\nContent-Length: 0\r\n\r\n"
    return (head.encode(),)


ONLY_N0, ONLY_N1 = says({"NodeNames": ["n0"]}), says({"NodeNames": ["n1"]})


class OverSockets(OfExtenders):
    """With extenders that are asked over HTTP."""

    backoff = 400.0

    def __init__(self, *extenders: dict[str, Any], **fields: Any) -> None:
        self.budget = Budget()
        super().__init__(*extenders, **fields)
        self.under_test.see(*(a_node(f"n{number}", cpu="64") for number in range(2)))

    def extender_access(self, config: Config) -> ExtenderAccess:
        connect = partial(HttpTransport, budget=self.budget, may_send=lambda: True)
        return ExtenderAccess(Roster(connect, Metrics(), config.extenders), FakePods())

    async def begin(self, *names: str) -> None:
        """Have pods come, and begin to try them."""
        self.under_test.see(*(a_pod(name, scheduler_name="one") for name in names))
        await self.under_test.schedule()

    async def end(self) -> None:
        """Wait until all attempts and bindings are over, and close what is not needed any more."""
        async with asyncio.timeout(PATIENCE):
            while self.engine.queue.in_flight_pods() or self.engine.loop.bindings:
                await settle()
        await self.reloader.look()
        self.under_test.check()

    async def place(self, *names: str) -> None:
        await self.begin(*names)
        await self.end()

    async def try_again(self) -> None:
        await super().try_again()
        await self.end()

    @property
    def free_bytes(self) -> bool:
        """Whether all of the budget for answers is given back."""
        return self.budget._taken == 0


def an_entry(server: RawServer, scheme: str = "http", **fields: Any) -> dict[str, Any]:
    """An extender in a file, that knows the nodes and filters."""
    host = "localhost" if scheme == "https" else "127.0.0.1"
    url = f"{scheme}://{host}:{server.port}"
    return {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "5s", **fields}


@asynccontextmanager
async def started(*servers: RawServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server.serving(tls))
        yield


async def until_closed(server: RawServer) -> None:
    """Wait until no connection to a server is open."""
    async with asyncio.timeout(PATIENCE):
        while server.open:
            await settle()


# Redirections.


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirection_leads_no_pod_elsewhere_and_another_address_does(code: int) -> None:
    there = RawServer(ONLY_N1)
    async with started(there):
        here = RawServer(redirects(there, code))
        async with started(here):
            reloading = OverSockets(an_entry(here))
            await reloading.place("web")
            refused, asked_there = dict(reloading.bound), len(there.requests)

            await reloading.use(an_entry(there))
            await reloading.try_again()

            assert (refused, asked_there) == ({}, 0)
            assert f"code {code}" in reloading.under_test.world.notes()[0]
            assert reloading.bound == {"default/web": "n1"}
            await until_closed(here)
            await reloading.engine.roster.close()


# TLS.


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def trusting(authority: trustme.CA) -> dict[str, Any]:
    return {"enableHTTPS": True, "tlsConfig": {"caData": base64.b64encode(authority.cert_pem.bytes()).decode()}}


async def test_another_authority_counts_from_the_next_question_on(authority: trustme.CA) -> None:
    server, other = RawServer(ONLY_N1), trustme.CA()
    async with started(server, tls=serving(authority)):
        reloading = OverSockets(an_entry(server, "https", **trusting(other)))
        await reloading.place("web")
        refused = dict(reloading.bound)

        await reloading.use(an_entry(server, "https", **trusting(authority)))
        await reloading.try_again()
        trusted = dict(reloading.bound)
        await reloading.use(an_entry(server, "https", **trusting(other)))
        await reloading.place("next")

        assert (refused, trusted, reloading.bound) == ({}, {"default/web": "n1"}, {"default/web": "n1"})
        assert all("failed to verify certificate" in note for note in reloading.under_test.world.notes())
        assert len(server.requests) == 1, "nothing was sent to one that is not trusted"
        await until_closed(server)
        await reloading.engine.roster.close()


async def test_a_handshake_that_never_ends_is_given_up_and_holds_up_no_change(authority: trustme.CA) -> None:
    silent = RawServer()  # it waits for a request in plain HTTP
    new = RawServer(ONLY_N1)
    async with started(silent), started(new, tls=serving(authority)):
        reloading = OverSockets(an_entry(silent, "https", httpTimeout="300ms", **trusting(authority)))
        await reloading.begin("web")

        await reloading.use(an_entry(new, "https", **trusting(authority)))
        await reloading.begin("next")
        await reloading.end()
        await reloading.try_again()

        assert reloading.bound == {"default/web": "n1", "default/next": "n1"}
        assert "context deadline exceeded" in reloading.under_test.world.notes()[0]
        assert silent.requests == []
        await until_closed(silent)
        await reloading.engine.roster.close()


# All at once.


async def test_a_crowd_is_placed_once_each_whatever_changes_meanwhile(authority: trustme.CA) -> None:
    """Every pod is bound, whatever the extenders were that it met, and in the end one connection pool is open."""
    good, slow, other = RawServer(ONLY_N0), RawServer(ONLY_N0), RawServer(ONLY_N1)
    (whole,) = ONLY_N1
    slow.answers.clear()
    slow.answers.append((whole[:10], whole[10:30], whole[30:]))
    async with started(good, slow), started(other, tls=serving(authority)):
        leading = RawServer(redirects(good, 307))
        closing = RawServer((CLOSE,))
        async with started(leading, closing):
            entries = [
                an_entry(good),
                an_entry(slow),
                an_entry(leading),
                an_entry(other, "https", **trusting(authority)),
                an_entry(closing),
            ]
            reloading = OverSockets()
            pods = [[f"web{change}-{number}" for number in range(4)] for change in range(len(entries))]
            for entry, names in zip(entries, pods, strict=True):
                await reloading.begin(*names[:2])
                await reloading.use(entry)
                await reloading.begin(*names[2:])
            await reloading.use(entries[3])
            for _ in range(2):
                await reloading.try_again()

            assert set(reloading.bound) == {f"default/{name}" for names in pods for name in names}
            assert len(reloading.under_test.world.asked) == 20, "each is bound once"
            assert reloading.free_bytes
            assert not reloading.engine.roster.is_retiring
            for server in (good, slow, leading, closing):
                await until_closed(server)
            assert other.open >= 1
            await reloading.engine.roster.close()
            await until_closed(other)
