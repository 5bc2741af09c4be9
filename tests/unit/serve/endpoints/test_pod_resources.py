"""`/metrics/resources`: what pods ask for and may use, to whom it is shown, and what it costs the others."""

import asyncio
import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.reviews import User
from scheduler.serve.endpoints.exposition import Exposition
from scheduler.serve.endpoints.pod_resources import PodResourceMetrics
from tests.unit.serve.serving import HEALTH, FakeReviews, a_server

Shown = dict[tuple[str, str, str], float]
"""Metric without its prefix, resource, unit → amount."""


def a_pod(*containers: dict[str, Any], name: str = "web", node: str = "n1", **spec: Any) -> Pod:
    """`containers` are their resources."""
    listed = [{"name": f"c{i}", "resources": resources} for i, resources in enumerate(containers)]
    meta = {"name": name, "namespace": "team", "uid": name}
    return pod_from_dict({"metadata": meta, "spec": {"containers": listed, "nodeName": node, **spec}})


async def text_of(*pods: Pod) -> str:
    answer = await Exposition(PodResourceMetrics({pod.uid: pod for pod in pods})).whole("")
    assert isinstance(answer.body, bytes)
    return answer.body.decode()


async def shown(pod: Pod) -> Shown:
    found: Shown = {}
    for family in text_string_to_metric_families(await text_of(pod)):
        for sample in family.samples:
            name = sample.name.removeprefix("kube_pod_resource_")
            found[name, sample.labels["resource"], sample.labels["unit"]] = sample.value
    return found


async def test_a_pod_is_shown_with_its_node_scheduler_and_priority_if_it_has_them() -> None:
    text = await text_of(
        a_pod({"requests": {"cpu": "250m"}}, schedulerName="mine", priority=7),
        a_pod({"limits": {"memory": "1Gi"}}, name="other", node=""),
    )

    assert (
        'kube_pod_resource_request{namespace="team",node="n1",pod="web",priority="7",resource="cpu",scheduler="mine",'
        'unit="cores"} 0.25\n'
    ) in text
    assert 'node="",pod="other",priority="",resource="memory"' in text
    assert "# TYPE kube_pod_resource_limit gauge\n" in text
    assert "# TYPE kube_pod_resource_request gauge\n" in text


async def test_resources_have_the_units_of_kube_scheduler() -> None:
    asked = {
        "cpu": "1",
        "memory": "1Ki",
        "ephemeral-storage": "2Ki",
        "storage": "3",
        "hugepages-2Mi": "2Mi",
        "attachable-volumes-x": "5",
        "example.com/gpu": "1",
        "pods": "0",
    }

    assert await shown(a_pod({"requests": asked})) == {
        ("request", "cpu", "cores"): 1.0,
        ("request", "memory", "bytes"): 1024.0,
        ("request", "ephemeral-storage", "bytes"): 2048.0,
        ("request", "storage", "bytes"): 3.0,
        ("request", "hugepages-2Mi", "bytes"): 2097152.0,
        ("request", "attachable-volumes-x", "integer"): 5.0,
        ("request", "example.com/gpu", ""): 1.0,
    }


async def test_limits_add_up_as_requests_do_and_overhead_counts_where_there_is_a_limit() -> None:
    init = [
        {"name": "first", "resources": {"limits": {"cpu": "4"}}},
        {"name": "sidecar", "resources": {"limits": {"cpu": "1"}}, "restartPolicy": "Always"},
    ]
    overhead = {"cpu": "100m", "memory": "1Ki"}
    pod = a_pod(
        {"limits": {"cpu": "1"}}, {"limits": {"cpu": "500m"}}, {}, initContainers=init, overhead=overhead, node="n1"
    )

    assert await shown(pod) == {
        ("limit", "cpu", "cores"): 4.1,
        ("request", "cpu", "cores"): 0.1,
        ("request", "memory", "bytes"): 1024.0,
    }


async def test_limits_of_the_pod_as_a_whole_take_the_place_of_its_containers() -> None:
    of_pod = {"limits": {"cpu": "3", "example.com/gpu": "9"}}
    pod = a_pod({"limits": {"cpu": "1", "example.com/gpu": "1"}}, resources=of_pod)

    assert await shown(pod) == {("limit", "cpu", "cores"): 3.0, ("limit", "example.com/gpu", ""): 1.0}


@pytest.mark.parametrize("quantity", ["", "much", "1e999999999"])
async def test_a_pod_with_an_odd_quantity_hides_no_other(quantity: str) -> None:
    text = await text_of(a_pod({"requests": {"cpu": quantity}}, name="odd"), a_pod({"requests": {"cpu": "1"}}))

    assert 'pod="web"' in text


async def test_hostile_names_stay_within_their_quotes() -> None:
    text = await text_of(a_pod({"requests": {"cpu": "1"}}, schedulerName='x"} 1\nkube_pod_resource_request{pod="y'))

    assert len(text.splitlines()) == 5, "two headers of two lines, and one sample"


async def test_twenty_thousand_pods_do_not_hold_the_event_loop() -> None:
    resources = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}
    pods = {str(number): a_pod(resources, name=f"web-{number}") for number in range(20_000)}
    streamed = (await Exposition(PodResourceMetrics(pods)).streamed("")).body
    assert not isinstance(streamed, bytes)
    lines = largest = 0
    longest = 0.0

    began = time.thread_time()
    async for piece in streamed:
        longest = max(longest, time.thread_time() - began)
        lines += piece.count(b"\n")
        largest = max(largest, len(piece))
        began = time.thread_time()

    assert lines == 80_004
    assert largest < 100_000, "bytes in memory at once"
    assert longest < 0.05, "seconds; 0.003 on a quiet machine"


async def test_who_may_see_metrics_may_not_see_these_without_a_right_of_their_own() -> None:
    cluster = FakeReviews({"p": User(username="prometheus")}, [("prometheus", "get", "/metrics")])

    async with a_server(tokens=cluster, rights=cluster, always_allow=HEALTH) as served:
        statuses = [(await served.get(path, "p"))[0] for path in ("/metrics", "/metrics/resources", "/metrics/slis")]

    assert statuses == [200, 403, 403]


@pytest.mark.parametrize("leads", [True, False])
async def test_only_the_leader_shows_them(leads: bool) -> None:
    pods = {"web": a_pod({"requests": {"cpu": "1"}})}

    async with a_server(pods=pods, leads=leads, always_allow=("*",)) as served:
        status, text = await served.get("/metrics/resources")

    assert status == 200
    assert bool(text) is leads


async def test_a_client_of_http_1_0_gets_all_of_it() -> None:
    pods = {str(number): a_pod({"requests": {"cpu": "1"}}, name=f"p{number}") for number in range(2_000)}
    async with a_server(pods=pods, always_allow=("*",)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, ssl=served.any_certificate)
        writer.write(b"GET /metrics/resources HTTP/1.0\r\n\r\n")

        answer = await reader.read()
        writer.close()
        await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert answer.count(b"kube_pod_resource_request{") == 2_000
