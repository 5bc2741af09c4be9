"""What one client of the page on this machine can take; its port is the scheduler's: serve/port/test_limits.py."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from scheduler.commands.local_page import COOKIE, LIMITS
from tests.unit.commands.test_local_page import PROXY, Browser, an_api, browsing
from tests.unit.kube.fake_api import GOES_ON

SOON = 0.05
NEVER = 60.0
PATIENT = replace(LIMITS, handshake_seconds=NEVER, head_seconds=NEVER, request_seconds=NEVER, idle_seconds=NEVER)
LIVE = f"{PROXY}debug/page/live"


@asynccontextmanager
async def half_open(browser: Browser, count: int, said: bytes = b"") -> AsyncIterator[list[socket.socket]]:
    """Connections that say nothing more."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            each = stack.enter_context(socket.socket())
            each.setblocking(False)
            await loop.sock_connect(each, ("127.0.0.1", browser.page.port))
            await loop.sock_sendall(each, said)
            found.append(each)
        yield found


async def ends(connection: socket.socket) -> bool:
    """Whether the server ends it, and says nothing; waits for that."""
    try:
        return not await asyncio.get_running_loop().sock_recv(connection, 1000)
    except ConnectionResetError:
        return True


async def ended_streams(browser: Browser) -> None:
    """Wait until the page has noticed that nobody reads any more."""
    async with asyncio.timeout(10):
        while len(browser.page.streams):  # noqa: ASYNC110  nobody is told of their end
            await asyncio.sleep(SOON / 5)


def request(browser: Browser, path: str) -> bytes:
    lines = [f"GET {browser.place}{path} HTTP/1.1", f"Host: 127.0.0.1:{browser.page.port}"]
    return "\r\n".join([*lines, f"Cookie: {COOKIE}={browser.cookie}", "", ""]).encode()


async def test_of_six_hundred_half_open_connections_few_stay_and_the_browser_gets_its_page(tmp_path: Path) -> None:
    async with browsing(tmp_path, an_api(), limits=PATIENT) as browser:
        await browser.open()
        async with half_open(browser, 600) as connections:
            async with asyncio.timeout(15):
                oldest = connections[: 600 - PATIENT.connections]
                assert await asyncio.gather(*map(ends, oldest)) == [True] * len(oldest)

                assert (await browser.get(f"{browser.place}debug/page/"))[0] == 200


async def test_a_request_that_is_not_answered_in_time_ends(tmp_path: Path) -> None:
    api = an_api()
    async with browsing(tmp_path, api, limits=replace(PATIENT, request_seconds=SOON)) as browser:
        await browser.open()
        hanging = api.hanging[f"{PROXY}debug/page/"] = asyncio.Event()
        async with half_open(browser, 1, request(browser, "debug/page/")) as [connection]:
            async with asyncio.timeout(10):
                assert await ends(connection)
        hanging.set()


async def test_windows_beyond_those_that_may_be_live_are_told_so_and_answered_otherwise(tmp_path: Path) -> None:
    api = an_api()
    api.on(LIVE, GOES_ON)
    async with browsing(tmp_path, api, limits=PATIENT) as browser:
        await browser.open()
        live = request(browser, "debug/page/live")
        async with half_open(browser, LIMITS.streams, live) as windows:
            async with asyncio.timeout(10):
                loop = asyncio.get_running_loop()
                for window in windows:
                    assert (await loop.sock_recv(window, 65536)).startswith(b"HTTP/1.1 200 OK")
                seventh = await browser.get(f"{browser.place}debug/page/live")
                page = await browser.get(f"{browser.place}debug/page/")
        await ended_streams(browser)

        assert (seventh[0], page[0]) == (429, 200)
        assert seventh[1] == (
            "4 windows show the scheduler live already, and a browser has no connections for more: close one\n"
        )


async def test_a_window_that_is_closed_makes_room_for_another(tmp_path: Path) -> None:
    api = an_api()
    api.on(LIVE, GOES_ON)
    async with browsing(tmp_path, api, limits=replace(PATIENT, streams=1)) as browser:
        await browser.open()
        live = request(browser, "debug/page/live")
        for _ in range(3):
            async with half_open(browser, 1, live) as [window]:
                async with asyncio.timeout(10):
                    answer = await asyncio.get_running_loop().sock_recv(window, 65536)
            await ended_streams(browser)

            assert answer.startswith(b"HTTP/1.1 200 OK")
