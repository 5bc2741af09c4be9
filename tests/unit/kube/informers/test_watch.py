"""kopf against a fake API server: what it lists, what arrives, what happens when the watch breaks."""

import asyncio
import getpass
import os
from pathlib import Path
from typing import Any

import pytest

from scheduler.kube.informers.intake import NODES, PODS
from scheduler.kube.informers.watch import NOTHING
from tests.fakes import sample
from tests.unit.kube.fake_api import pod_dict, until
from tests.unit.kube.watch_api import BREAK, GONE, HistoryApi, a_watch, size_of

USER_WITHOUT_NAME = 65_532_001
"""A UID that no machine has an entry for, as few have one for the 65532 of our image."""


async def test_kopf_gets_empty_lists_and_watches_from_their_version(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        pass  # until it has begun

    assert sorted(setup.api.lists) == [(NODES, NOTHING), (PODS, NOTHING)]
    assert sorted(setup.api.watches) == [(NODES, "100"), (PODS, "100")]
    assert sorted(setup.listed) == [NODES, PODS]
    assert setup.starts == 1


async def test_the_watch_begins_where_the_user_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME", "POD_ID"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: USER_WITHOUT_NAME)
    with pytest.raises((KeyError, OSError)):  # OSError since Python 3.13
        getpass.getuser()

    async with asyncio.timeout(5.0), a_watch(tmp_path) as setup:
        assert setup.starts == 1


async def test_after_410_gone_a_comparison_is_asked_for(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        setup.api.version = 200
        setup.api.send_raw(PODS, GONE)
        await until(lambda: len(setup.api.watches) >= 3)

    assert setup.api.watches[-1] == (PODS, "200")
    assert setup.listed.count(PODS) == 2


@pytest.mark.parametrize("line", [{"type": "ERROR", "object": {"code": 500}}, "no event"])
async def test_kopf_is_started_again_when_it_ends_and_ends_no_task_of_others(tmp_path: Path, line: Any) -> None:
    async with a_watch(tmp_path) as setup:
        ours = asyncio.create_task(asyncio.Event().wait())
        setup.api.send_raw(PODS, line)
        await until(lambda: len(setup.api.watches) >= 4)
        assert not ours.done()
        ours.cancel()

    assert setup.starts == 2
    assert setup.listed.count(PODS) == 2
    assert sample(setup.metrics, "loadmaster_watch_errors_total", resource="all", reason="operator") == 1
    assert setup.interrupted == [PODS, NODES], "until both are opened again"


async def test_a_watch_that_cannot_be_opened_is_interrupted_and_no_other(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        setup.api.refused[PODS] = 503
        setup.api.send_raw(PODS, BREAK)
        await until(lambda: bool(setup.interrupted))
        opened = len(setup.opened)
        del setup.api.refused[PODS]
        await until(lambda: len(setup.opened) > opened)

    assert set(setup.interrupted) == {PODS}
    assert setup.opened[-1] == PODS


async def test_after_a_401_every_watch_goes_on_with_a_new_token(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        setup.api.rejected.add("first")
        (tmp_path / "token").write_text("second")
        setup.api.send_raw(PODS, BREAK)
        await until(lambda: len(setup.api.watches) >= 4)

        assert "second" in setup.api.tokens


async def test_objects_take_the_short_way_past_kopf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen_by_kopf: list[Any] = []

    async def see(event: Any, **_: Any) -> None:
        seen_by_kopf.append(event)

    monkeypatch.setattr("scheduler.kube.informers.watch._ignore", see)

    async with a_watch(tmp_path) as setup:
        for version in range(101, 111):
            setup.api.send(PODS, "MODIFIED", pod_dict("a", version))
        setup.api.send_raw(PODS, BREAK)
        await until(lambda: len(setup.api.watches) >= 3)

    assert setup.handlers.calls == [f"changed a {version}" for version in range(101, 111)]
    assert (seen_by_kopf, setup.listed.count(PODS)) == ([], 1)
    assert setup.api.watches[-1] == (PODS, "110")


async def test_a_bookmark_is_where_the_watch_goes_on(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        setup.api.send(PODS, "ADDED", pod_dict("a", 102))
        setup.api.send(PODS, "BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "150"}, "spec": {}})
        setup.api.send_raw(PODS, BREAK)
        await until(lambda: len(setup.api.watches) >= 3)

    assert setup.handlers.calls == ["changed a 102"]
    assert setup.api.watches[-1] == (PODS, "150")


HISTORY = [
    {"type": "ADDED", "object": pod_dict("a", 101)},
    {"type": "ADDED", "object": pod_dict("b", 102)},
    {"type": "MODIFIED", "object": pod_dict("a", 104, nodeName="n")},
    {"type": "DELETED", "object": pod_dict("a", 107)},
    {"type": "MODIFIED", "object": pod_dict("b", 110, nodeName="n")},
]
CALLS = ["changed a 101", "changed b 102", "changed a 104", "deleted a", "changed b 110"]


@pytest.mark.parametrize("lost", [0, 1, 40], ids=["before an event", "in its last byte", "in its middle"])
async def test_wherever_the_connection_breaks_nothing_is_lost_and_nothing_comes_twice(
    tmp_path: Path, lost: int
) -> None:
    breaks = [size_of(HISTORY[:2]) - lost, size_of(HISTORY[2 - bool(lost) : 4]) - lost]

    async with a_watch(tmp_path, HistoryApi(HISTORY, breaks)) as setup:
        await until(lambda: len(setup.handlers.calls) >= len(CALLS))
    assert setup.handlers.calls == CALLS
    counts = [
        sample(setup.metrics, "loadmaster_watch_events_total", resource=PODS, type=type_)
        for type_ in ("ADDED", "MODIFIED", "DELETED")
    ]
    assert counts == [2, 2, 1]
    versions = [version for resource, version in setup.api.watches if resource == PODS]
    assert versions == (["100", "101", "104"] if lost else ["100", "102", "107"])


async def test_a_silent_watch_is_opened_again_from_the_last_version(tmp_path: Path) -> None:
    async with a_watch(tmp_path, frozen_seconds=0.1) as setup:
        setup.api.send(PODS, "ADDED", pod_dict("a", 102))
        await until(lambda: (PODS, "102") in setup.api.watches)

        assert setup.handlers.calls == ["changed a 102"]


async def test_the_end_of_the_watch_ends_its_streams(tmp_path: Path) -> None:
    async with a_watch(tmp_path) as setup:
        setup.api.send(PODS, "ADDED", pod_dict("a", 102))
        await until(lambda: setup.handlers.pods)
    await until(lambda: setup.api.ended == 2)

    assert len(setup.api.watches) == 2
