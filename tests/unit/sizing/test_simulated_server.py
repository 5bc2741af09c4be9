"""The simulated API server answers as a scheduler expects, and a scheduler schedules on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from scheduler.framework.resources import NODES, PODS
from tests.sizing.clusters import SIMULATED
from tests.sizing.measure import measure
from tests.sizing.objects import AFFINITY, KINDS, SPREAD, Size, apps_of, node_name, pod_of
from tests.sizing.server import SimulatedServer

SIZE = Size(nodes=7, pods=20)


@asynccontextmanager
async def a_server() -> AsyncIterator[tuple[SimulatedServer, TestClient[Any, Any]]]:
    server = SimulatedServer(SIZE)
    async with TestClient(TestServer(server.app())) as client:
        yield server, client


async def listed(client: TestClient[Any, Any], path: str, limit: int) -> list[dict[str, Any]]:
    """All objects, page by page."""
    found: list[dict[str, Any]] = []
    following = ""
    while True:
        page = await (await client.get(path, params={"limit": limit, "continue": following or "0"})).json()
        found += page["items"]
        following = page["metadata"].get("continue", "")
        if not following:
            return found


def test_a_list_has_every_object_once_whatever_the_pages() -> None:
    async def names() -> list[list[str]]:
        async with a_server() as (_, client):
            return [
                [each["metadata"]["name"] for each in await listed(client, NODES.path, limit)] for limit in (2, 500)
            ]

    by_two, at_once = asyncio.run(names())

    assert by_two == at_once == [node_name(number) for number in range(7)]


def test_a_pod_that_is_created_and_bound_is_seen_by_a_watch_and_waits_no_longer() -> None:
    async def story() -> tuple[list[dict[str, Any]], list[int]]:
        async with a_server() as (_, client):
            version = (await (await client.get(PODS.path, params={"limit": 1})).json())["metadata"]["resourceVersion"]
            watch = await client.get(PODS.path, params={"watch": "true", "resourceVersion": version})
            pod = pod_of(0, "new", "")
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            path = f"/api/v1/namespaces/{namespace}/pods"
            waiting = []
            await client.post(path, data=orjson.dumps(pod))
            waiting.append(len(await pending(client)))
            binding = {"metadata": {"name": name}, "target": {"name": "node-000001"}}
            answers = [
                (await client.post(f"{path}/{name}/binding", data=orjson.dumps(binding))).status for _ in range(2)
            ]
            waiting.append(len(await pending(client)))
            events = [orjson.loads(await watch.content.readline()) for _ in range(2)]
            watch.close()
            return events, [*waiting, *answers]

    (added, bound), numbers = asyncio.run(story())

    assert (added["type"], bound["type"]) == ("ADDED", "MODIFIED")
    assert bound["object"]["spec"]["nodeName"] == "node-000001"
    assert numbers == [1, 0, 201, 409]


async def pending(client: TestClient[Any, Any]) -> list[dict[str, Any]]:
    answer = await client.get(PODS.path, params={"fieldSelector": "spec.nodeName=", "limit": 10})
    found: list[dict[str, Any]] = (await answer.json())["items"]
    return found


def test_a_heartbeat_gives_a_node_a_new_version_and_nothing_else() -> None:
    async def nodes() -> tuple[dict[str, Any], dict[str, Any]]:
        async with a_server() as (server, client):
            before = (await listed(client, NODES.path, 500))[3]
            server.nodes.beat(3, lambda _: None)
            return before, (await listed(client, NODES.path, 500))[3]

    before, after = asyncio.run(nodes())

    assert int(after["metadata"].pop("resourceVersion")) > int(before["metadata"].pop("resourceVersion"))
    assert after == before


def test_every_kind_of_pod_has_apps_at_each_size() -> None:
    assert all(apps_of(kind, Size(1, 1)) for kind in KINDS)
    spread, affinity = (pod_of(apps_of(kind, SIZE)[0], "0", "")["spec"] for kind in (SPREAD, AFFINITY))
    assert "topologySpreadConstraints" in spread
    assert "podAntiAffinity" in affinity["affinity"]


@pytest.mark.programs
def test_a_scheduler_is_measured_from_its_start_to_a_takeover() -> None:
    found = measure(SIMULATED, Size(20, 60), pods_a_kind=20, idle_seconds=1.0, note=lambda _: None)

    assert (found.nodes, found.pods, found.server) == (20, 60, SIMULATED)
    assert found.ready_cpu <= found.first_bound_cpu
    assert found.steady <= found.peak
    assert min(found.ready, found.takeover, found.takeover_peak, *found.bound_rate.values()) > 0
