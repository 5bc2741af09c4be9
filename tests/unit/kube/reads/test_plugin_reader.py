"""What plugins read besides objects comes from the API server or from elsewhere, or they learn why not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest

from scheduler.framework.errors import ApiError
from scheduler.framework.handle import Access
from scheduler.kube.http import client as client_module
from scheduler.kube.reads.plugin_reader import MAX_ELSEWHERE, PluginReader, SilentReader
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, until


@asynccontextmanager
async def elsewhere(
    status: int = 200, body: bytes = b"data", *, hangs: bool = False
) -> AsyncIterator[tuple[str, FakeApi]]:
    """Serve that at any path; yields where."""
    server = FakeApi()
    server.otherwise = Answer(status, body, {"Location": "http://127.0.0.1:1/"})
    if hangs:
        server.held.clear()
    async with server.server:
        yield str(server.server.make_url("/")), server
        server.held.set()


async def test_a_path_is_asked_of_the_api_server(tmp_path: Path) -> None:
    api = FakeApi().on("GET /apis/metrics.k8s.io/v1beta1/nodes", Answer(body={"items": []}), Answer(503), LOST)
    statuses = []
    async with fake_client(tmp_path, api) as client:
        reader = PluginReader(client)
        body = await reader.read("/apis/metrics.k8s.io/v1beta1/nodes", 5)
        for path in ("nodes", "nodes", "pods"):
            with pytest.raises(ApiError) as refused:
                await reader.read(f"/apis/metrics.k8s.io/v1beta1/{path}", 5)
            statuses.append(refused.value.status)

    assert body == b'{"items": []}'
    assert statuses == [503, 0, 404]


async def test_a_url_is_asked_with_the_token_of_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    async with elsewhere() as (url, server), fake_client(tmp_path, FakeApi()) as client:
        reader = PluginReader(client)
        bodies = [await reader.read(f"{url}api", 5)]
        for text in ("one\n", "two"):
            token.write_text(text)
            bodies.append(await reader.read(f"{url}api", 5, Access(str(token))))

    assert bodies == [b"data"] * 3
    tokens = [each.headers.get("Authorization", "") for each in server.requests]
    assert tokens == ["", "Bearer one", "Bearer two"]


@pytest.mark.parametrize(
    ("method", "status"), [("GET", 204), *product(("GET", "POST"), (302, 401, 404, 409, 500, 503))]
)
async def test_any_other_answer_is_an_error_and_nothing_is_repeated(tmp_path: Path, method: str, status: int) -> None:
    body = b"" if status == 204 else b"why"
    async with elsewhere(status, body) as (url, server), fake_client(tmp_path, FakeApi()) as client:
        reader = PluginReader(client)
        with pytest.raises(ApiError, match="HTTP") as refused:
            await (reader.read(url, 5) if method == "GET" else reader.post(url, b"{}", 5))

    assert (refused.value.status, len(server.requests)) == (status, 1)


async def test_an_answer_that_takes_too_long_is_none(tmp_path: Path) -> None:
    async with elsewhere(hangs=True) as (url, _), fake_client(tmp_path, FakeApi()) as client:
        with pytest.raises(ApiError) as late:
            await PluginReader(client).read(url, 0.05)

    assert late.value.status == 0


async def test_a_huge_answer_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_ANSWER_BYTES", 1000)
    async with elsewhere(body=b"x" * 5000) as (url, _), fake_client(tmp_path, FakeApi()) as client:
        with pytest.raises(ApiError, match="more than 1000 bytes"):
            await PluginReader(client).read(url, 5)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "https://127.0.0.1:1/", "http://[::1", "prometheus:9090", "", "http://"]
)
async def test_where_nobody_answers_there_is_an_error(tmp_path: Path, url: str) -> None:
    async with fake_client(tmp_path, FakeApi()) as client:
        with pytest.raises(ApiError) as nobody:
            await PluginReader(client).read(url, 5)

    assert nobody.value.status == 0


@pytest.mark.parametrize("text", ["", "two words", "nothing\x00printable", "ünusual"])
async def test_what_is_no_token_is_not_sent(tmp_path: Path, text: str) -> None:
    token = tmp_path / "token"
    token.write_text(text)
    async with elsewhere() as (url, server), fake_client(tmp_path, FakeApi()) as client:
        for access in (Access(str(token)), Access(str(tmp_path / "missing")), Access(ca_file=str(token))):
            with pytest.raises(ApiError):
                await PluginReader(client).read(url, 5, access)

    assert server.requests == []


@pytest.mark.parametrize(("status", "answer"), [(200, b"taken"), (201, b"taken"), (204, b"")])
async def test_a_body_is_posted_once_as_json(tmp_path: Path, status: int, answer: bytes) -> None:
    async with elsewhere(status, answer) as (url, server), fake_client(tmp_path, FakeApi()) as client:
        assert await PluginReader(client).post(f"{url}take", b'{"pod": "cart"}', 5) == answer

    (posted,) = server.requests
    assert (posted.headers["Content-Type"], posted.body) == ("application/json", {"pod": "cart"})


async def test_ten_calls_go_elsewhere_at_once_and_the_others_wait(tmp_path: Path) -> None:
    async with elsewhere(hangs=True) as (url, server), fake_client(tmp_path, FakeApi()) as client:
        reader = PluginReader(client)
        calls = asyncio.gather(*(reader.post(url, b"{}", 20) for _ in range(35)))
        await until(lambda: server.busy == MAX_ELSEWHERE)
        server.held.set()
        await calls

    assert (len(server.requests), server.most_at_once) == (35, MAX_ELSEWHERE)


async def test_to_wait_for_others_counts_as_time(tmp_path: Path) -> None:
    async with elsewhere(hangs=True) as (url, _), fake_client(tmp_path, FakeApi()) as client:
        reader = PluginReader(client)
        calls = [reader.post(url, b"{}", 0.1) for _ in range(MAX_ELSEWHERE + 1)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(each) for each in outcomes] == [ApiError] * len(calls)


async def test_nothing_is_posted_to_the_api_server_nor_by_a_shadow(tmp_path: Path) -> None:
    async with elsewhere() as (url, server), fake_client(tmp_path, FakeApi()) as client:
        for reader, where in ((PluginReader(client), "/api/v1/pods"), (SilentReader(client), url)):
            with pytest.raises(ApiError):
                await reader.post(where, b"{}", 5)

    assert server.requests == []
