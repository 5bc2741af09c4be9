"""Whole pods and nodes for extenders."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.extenders.chain import FoundPod
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers.intake import node_intake
from scheduler.kube.informers.raw_nodes import keep_raw
from scheduler.kube.reads.pods import FOR_EXTENDERS, RawPods
from scheduler.process.metrics import Metrics
from scheduler.testing import a_pod
from tests.unit.kube.fake_api import Answer, FakeApi, FakeHandlers, fake_client

POD = a_pod("web", uid="uid-web")
GET = "GET /api/v1/namespaces/default/pods/web"
AT_ONCE = RetryPolicy(first=0.001, limit=0.001, tries=FOR_EXTENDERS.tries)


def stored(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "web",
            "uid": "uid-web",
            "annotations": {"note": "ü"},
            "managedFields": [{"fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"containers": [{"name": "main", "command": ["sleep"]}], **spec},
        "status": {"phase": "Pending"},
    }


async def read(directory: Path, *answers: Answer, pod: Pod = POD) -> FoundPod | None:
    async with fake_client(directory, FakeApi().on(GET, *answers)) as client:
        return await RawPods(client, AT_ONCE).read(pod)


async def test_a_pod_is_read_whole_but_for_who_wrote_what(tmp_path: Path) -> None:
    found = await read(tmp_path, Answer(body=stored()))

    assert found is not None
    assert json.loads(found.json) == {
        "metadata": {"name": "web", "uid": "uid-web", "annotations": {"note": "ü"}},
        "spec": {"containers": [{"name": "main", "command": ["sleep"]}]},
        "status": {"phase": "Pending"},
    }
    assert found.node_name == ""


async def test_a_pod_that_is_assumed_is_shown_on_its_node(tmp_path: Path) -> None:
    found = await read(tmp_path, Answer(body=stored()), pod=POD.bound_to("n1"))
    elsewhere = await read(tmp_path, Answer(body=stored(nodeName="n2")), pod=POD.bound_to("n1"))

    assert found is not None
    assert elsewhere is not None
    assert (json.loads(found.json)["spec"]["nodeName"], found.node_name) == ("n1", "")
    assert (json.loads(elsewhere.json)["spec"]["nodeName"], elsewhere.node_name) == ("n2", "n2")


@pytest.mark.parametrize(
    "answer", [Answer(404), Answer(body={**stored(), "metadata": {"name": "web", "uid": "uid-other"}})]
)
async def test_of_a_pod_that_is_gone_there_is_nothing(tmp_path: Path, answer: Answer) -> None:
    assert await read(tmp_path, answer) is None


@pytest.mark.parametrize("answer", [Answer(403), Answer(body={"metadata": 7}), Answer(body=stored(nodeName=7))])
async def test_what_cannot_be_read_is_an_error(tmp_path: Path, answer: Answer) -> None:
    with pytest.raises(ClusterError):
        await read(tmp_path, answer)


async def test_what_is_nested_too_deeply_is_passed_on_as_it_is(tmp_path: Path) -> None:
    deep: Any = "end"
    for _ in range(300):
        deep = {"a": deep}
    body = stored()
    body["metadata"]["managedFields"] = deep
    body["metadata"]["odd"] = deep

    found = await read(tmp_path, Answer(body=body))

    assert found is not None
    assert json.loads(found.json)["metadata"]["odd"] == deep


NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "n", "uid": "u", "resourceVersion": "5", "managedFields": [{"manager": "kubelet"}]},
    "spec": {"podCIDR": "10.0.0.0/24"},
    "status": {"nodeInfo": {"kernelVersion": "6"}},
}


def event(node: dict[str, Any], kind: str = "ADDED") -> bytes:
    return json.dumps({"type": kind, "object": node}).encode()


def test_nodes_are_kept_whole_where_extenders_need_them_and_only_there() -> None:
    handlers = FakeHandlers()
    intake = node_intake(handlers, Metrics(), keep_raw=keep_raw)

    intake.from_line(event(NODE))
    page = intake.read_page(
        json.dumps(
            {
                "metadata": {"resourceVersion": "6"},
                "items": [{**NODE, "metadata": {"name": "m", "uid": "v", "resourceVersion": "6"}}],
            }
        ).encode()
    )

    whole = {key: value for key, value in NODE.items() if key not in ("kind", "apiVersion")}
    assert json.loads(handlers.nodes["u"].raw_json) == whole
    assert json.loads(page.items[0].raw_json)["spec"] == {"podCIDR": "10.0.0.0/24"}

    elsewhere = FakeHandlers()
    node_intake(elsewhere, Metrics()).from_line(event(NODE))
    assert elsewhere.nodes["u"].raw_json == Node().raw_json == b"", "no more memory than scheduling needs"
