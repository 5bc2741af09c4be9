"""Whether a watch goes on in time: with the real kopf, a fake API server and a fake clock."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kopf
import pytest

from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers import kopf_settings, watch
from scheduler.kube.informers.deadlines import BEGIN_SECONDS, FIRST_COMPARISON, PROGRESS_SECONDS, Deadlines
from scheduler.kube.informers.intake import NODES, PODS, pod_intake
from tests.fakes import FakeClock, Metrics
from tests.unit.kube.fake_api import FakeApi, FakeHandlers, fake_client, node_dict, pod_dict, until
from tests.unit.kube.watch_api import BREAK, NoComparisons, Setup, WatchApi, a_watch


def asked_again(setup: Setup, resource: str, times: int = 2) -> Callable[[], bool]:
    """Whether a watch was requested this many times more: with two, the first has its answer."""
    before = sum(name == resource for name, _ in setup.api.watches)
    return lambda: sum(name == resource for name, _ in setup.api.watches) >= before + times


async def begun(setup: Setup) -> None:
    """Both streams are read: something has come over each."""
    setup.api.send(NODES, "ADDED", node_dict("n", 101))
    setup.api.send(PODS, "ADDED", pod_dict("a", 102))
    await until(lambda: len(setup.handlers.calls) == 2)


async def test_a_watch_over_which_nothing_comes_is_overdue(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        await begun(setup)
        setup.clock.advance(PROGRESS_SECONDS)
        overdue = [setup.deadlines.overdue()]
        setup.clock.advance(1.0)

        assert [*overdue, setup.deadlines.overdue()] == [
            {},
            {PODS: PROGRESS_SECONDS + 1.0, NODES: PROGRESS_SECONDS + 1.0},
        ]


async def test_whatever_comes_over_a_watch_is_its_progress(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        await begun(setup)
        setup.clock.advance(PROGRESS_SECONDS + 1.0)
        setup.api.send(PODS, "BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "150"}, "spec": {}})
        await until(lambda: PODS not in setup.deadlines.overdue())

        assert set(setup.deadlines.overdue()) == {NODES}


async def test_a_silent_watch_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    async with a_watch(tmp_path, frozen_seconds=0.1) as setup:
        setup.clock.advance(PROGRESS_SECONDS + 1.0)
        await until(lambda: not setup.deadlines.overdue())


@pytest.mark.parametrize("status", [401, 403])
async def test_a_watch_that_is_refused_from_the_start_is_overdue(tmp_path: Path, status: int) -> None:
    api = WatchApi()
    api.refused[PODS] = status

    async with a_watch(tmp_path, api) as setup:
        await until(asked_again(setup, PODS))
        setup.clock.advance(BEGIN_SECONDS + 1.0)
        await until(asked_again(setup, PODS))

        assert PODS in set(setup.deadlines.overdue())


async def test_a_watch_that_broke_and_is_refused_is_overdue_until_it_is_opened_again(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        await begun(setup)
        setup.api.refused[NODES] = 403
        setup.api.send_raw(NODES, BREAK)
        await until(asked_again(setup, NODES))
        setup.clock.advance(PROGRESS_SECONDS - 1.0)
        setup.api.send(PODS, "MODIFIED", pod_dict("a", 103))
        await until(lambda: len(setup.handlers.calls) == 3)
        setup.clock.advance(2.0)
        await until(asked_again(setup, NODES))
        overdue = set(setup.deadlines.overdue())
        setup.api.refused.clear()
        await until(lambda: not setup.deadlines.overdue())

        assert overdue == {NODES}


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_trouble_of_the_api_server_is_no_fault_of_the_watch(tmp_path: Path, status: int) -> None:
    api = WatchApi()
    api.refused[PODS] = status

    async with a_watch(tmp_path, api) as setup:
        for _ in range(2):
            setup.clock.advance(BEGIN_SECONDS + 1.0)
            await until(lambda: PODS not in setup.deadlines.overdue())


async def test_trouble_with_discovery_is_trouble_with_every_watch_and_with_the_first_comparison(tmp_path: Path) -> None:
    api = WatchApi()
    api.refused[""] = 503

    async with a_watch(tmp_path, api, asked=0) as setup:
        setup.deadlines.expect(FIRST_COMPARISON, 10.0)
        await until(lambda: setup.starts)
        setup.clock.advance(BEGIN_SECONDS + 1.0)
        await until(lambda: not setup.deadlines.overdue())


async def test_an_api_server_that_cannot_be_reached_is_no_fault_of_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kopf_settings, "RETRIES", RetryPolicy(first=0.01, limit=0.1))
    api = WatchApi()
    api.refused[""] = 503  # no stream that would keep it from closing

    async with a_watch(tmp_path, api, asked=0) as setup:
        await until(lambda: setup.starts)
        port = api.server.port
        await api.server.close()
        with socket.socket() as taken:  # or another test's server may get the port, and answer
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            for _ in range(2):
                setup.clock.advance(BEGIN_SECONDS + 1.0)
                await until(lambda: not setup.deadlines.overdue())


async def test_an_api_server_that_takes_a_request_and_says_nothing_is_in_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "ANSWER_SECONDS", 0.05)
    api, metrics, clock = FakeApi(), Metrics(), FakeClock()
    deadlines = Deadlines(metrics, clock)

    async with fake_client(tmp_path, api) as client:
        session = watch.WatchSession(client, [pod_intake(FakeHandlers(), metrics)], print, NoComparisons(), deadlines)
        deadlines.expect(PODS, BEGIN_SECONDS)
        clock.advance(BEGIN_SECONDS + 1.0)
        api.held.clear()
        with pytest.raises(TimeoutError):
            await session.request("GET", str(api.server.make_url("/api/v1/pods?watch=true")))
        api.held.set()

    assert deadlines.overdue() == {}


async def test_a_kopf_that_fails_before_it_asks_for_anything_is_overdue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(**_: Any) -> None:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr(kopf, "spawn_tasks", fail)

    async with a_watch(tmp_path, asked=0) as setup:
        setup.clock.advance(BEGIN_SECONDS + 1.0)
        await until(lambda: setup.errors() >= 2)
        setup.clock.advance(BEGIN_SECONDS + 1.0)
        await until(lambda: setup.errors() >= 3)

        assert set(setup.deadlines.overdue()) == {PODS, NODES}
