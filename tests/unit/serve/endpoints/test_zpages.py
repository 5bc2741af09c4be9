"""/configz, /flagz, /statusz and the verbosity: what is shown to whom, and what may be set."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest

from scheduler.serve.endpoints.zpages import Configz, Flagz, Statusz, set_verbosity
from scheduler.serve.port.http import Page
from tests.unit.serve.port.test_http import ADMIN
from tests.unit.serve.serving import FakeReviews, Served, a_server

FLAGZ_V1 = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"
STATUSZ_V1 = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"


@asynccontextmanager
async def served(set_to: list[int] | None = None, always_allow: Sequence[str] = ("*",)) -> AsyncIterator[Served]:
    written: list[int] = [] if set_to is None else set_to
    pages: dict[str, Page] = {
        "/configz": Configz(lambda: {"kind": "KubeSchedulerConfiguration", "parallelism": 16}),
        "/flagz": Flagz("loadmaster", {"v": "2", "config": "/etc/config.yaml"}),
        "/statusz": Statusz(
            "loadmaster", "1.2.3", "1.36", ("/livez", "/flagz"), iter((1769860800.0, 1769864461.0)).__next__
        ),
    }
    settings = {"/debug/flags/v": partial(set_verbosity, written.append)}
    reviews = FakeReviews({"a": ADMIN})
    async with a_server(
        tokens=reviews, rights=reviews, always_allow=always_allow, further=pages, settings=settings
    ) as server:
        yield server


async def test_configz_is_the_configuration_in_effect() -> None:
    async with served() as server:
        answer = await server.answer("/configz")

        assert answer.headers["Content-Type"] == "application/json"
        shown = {"componentconfig": {"kind": "KubeSchedulerConfiguration", "parallelism": 16}}
        assert json.loads(await answer.text()) == shown


async def test_flagz_is_a_line_for_each_flag_and_an_object_for_who_asks_for_it() -> None:
    async with served() as server:
        _, text = await server.get("/flagz")
        _, document = await server.get("/flagz", Accept=FLAGZ_V1)

    assert text.splitlines()[:2] == ["", "loadmaster flagz"]
    assert text.splitlines()[-2:] == ["config=/etc/config.yaml", "v=2"]
    assert json.loads(document) == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "loadmaster"},
        "flags": {"config": "/etc/config.yaml", "v": "2"},
    }


async def test_statusz_tells_since_when_what_runs_and_is_an_object_for_who_asks_for_it() -> None:
    async with served() as server:
        _, text = await server.get("/statusz")
    async with served() as server:
        _, document = await server.get("/statusz", Accept=f"application/yaml, {STATUSZ_V1}")

    assert "Started: Sat Jan 31 12:00:00 UTC 2026" in text
    assert "Up: 1 hr 01 min 01 sec" in text
    assert "Binary version: 1.2.3\nEmulation version: 1.36\nPaths: /flagz /livez\n" in text
    status = json.loads(document)
    assert status["kind"] == "Statusz"
    assert status["startTime"] == "2026-01-31T12:00:00Z"
    assert status["uptimeSeconds"] == 3661
    assert status["paths"] == ["/flagz", "/livez"]


@pytest.mark.parametrize("accept", ["application/json", "image/png", "application/json;v=v9;g=config.k8s.io;as=Flagz"])
async def test_what_there_is_not_is_not_acceptable(accept: str) -> None:
    async with served() as server:
        assert (await server.get("/flagz", Accept=accept))[0] == 406


@pytest.mark.parametrize("path", ["/configz", "/flagz", "/statusz"])
async def test_nobody_in_particular_sees_any_of_it(path: str) -> None:
    async with served(always_allow=("/livez",)) as server:
        assert (await server.get(path))[0] == 403
        assert (await server.get(path, "a"))[0] == 200


@pytest.mark.parametrize(
    ("body", "status"), [(b"x", 400), (b"-1", 400), (b"", 400), (b"9" * 20, 400), (b"\xff", 400), (b"1" * 100_000, 413)]
)
async def test_the_verbosity_is_set_by_a_number_and_by_those_who_may(body: bytes, status: int) -> None:
    set_to: list[int] = []
    async with served(set_to, always_allow=("/livez",)) as server:
        assert (await server.get("/debug/flags/v", "a", "PUT", body=body))[0] == status
        assert (await server.get("/debug/flags/v", "", "PUT", body=b"4"))[0] == 403
        assert set_to == []
        answer = await server.get("/debug/flags/v", "a", "PUT", body=b"4")

    assert answer == (200, "successfully set klog.logging.verbosity to 4")
    assert set_to == [4]


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/debug/flags/v", 406), ("PUT", "/flagz", 405), ("POST", "/configz", 405)]
)
async def test_what_is_set_is_not_read_and_what_is_read_not_set(method: str, path: str, status: int) -> None:
    async with served() as server:
        assert (await server.get(path, "a", method))[0] == status
