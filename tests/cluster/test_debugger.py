"""SIGUSR2: what the scheduler believes, and whether the API server agrees, in its log."""

import json
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import install_rbac, metric, node_of, start
from tests.controlplane import Client, Cluster, Component, ControlPlane, a_pod, condition, wait_until

Line = dict[str, Any]


@pytest.fixture
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    install_rbac(cluster)
    with start(cluster, "--logging-format", "json", name="loadmaster-debugged") as process:
        yield process


def lines(loadmaster: Component) -> list[Line]:
    text = loadmaster.log.read_text()
    return [json.loads(line) for line in text.splitlines() if re.fullmatch(r"\{.*\}", line)]


def debug(loadmaster: Component) -> list[Line]:
    """Send the signal; return what it has logged."""
    before = len(lines(loadmaster))

    def logged() -> list[Line]:
        return lines(loadmaster)[before:]

    loadmaster.send_signal(signal.SIGUSR2)
    ended = ("Cache comparer finished", "Cache comparer failed")
    wait_until(lambda: any(line["msg"] in ended for line in logged()), 20, "the debugger is done")
    return logged()


def about(found: list[Line], message: str, name: str) -> Line:
    """The one line with that message about that pod or node."""
    key = "node" if message == "Dump of cached node" else "pod"
    (line,) = [line for line in found if line["msg"] == message and line[key] == name]
    return line


def test_everything_is_named_and_agrees_and_scheduling_goes_on(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1, cpu="1")
    api.create(a_pod("bound", cpu="250m"), namespace)
    api.create(a_pod("gated", schedulingGates=[{"name": "example.com/quota"}]), namespace)
    api.create(a_pod("big", cpu="4"), namespace)
    api.create(a_pod("theirs", scheduler="somebody-else"), namespace)
    bound = wait_until(lambda: node_of(api.get("Pod", "bound", namespace)), 10, "the pod is bound")
    wait_until(lambda: condition(api.get("Pod", "big", namespace), "PodScheduled"), 10, "the refusal")
    wait_until(lambda: metric(loadmaster.port, "scheduler_cache_size", type="assumed_pods") == 0, 10, "none assumed")

    found = debug(loadmaster)

    assert bound == node
    told = about(found, "Dump of cached node", node)
    assert (told["requested"]["cpu"], told["allocatable"]["cpu"], told["pods"]) == ("0.25", "1", 1)
    counted = about(found, "Dump of cached pod", f"{namespace}/bound")
    assert (counted["node"], counted["state"]) == (node, "confirmed")
    assert counted["uid"] == api.get("Pod", "bound", namespace)["metadata"]["uid"]
    gated = about(found, "Dump of queued pod", f"{namespace}/gated")
    assert (gated["queue"], gated["gatedBy"], gated["attempts"]) == ("gated", "SchedulingGates", 0)
    big = about(found, "Dump of queued pod", f"{namespace}/big")
    assert (big["queue"], big["plugins"]) == ("unschedulable", ["NodeResourcesFit"])
    assert big["attempts"] >= 1
    assert not [line for line in found if f"{namespace}/theirs" in line.values()]
    assert not [line for line in found if line["msg"] == "Cache mismatch"]
    (finished,) = [line for line in found if line["msg"] == "Cache comparer finished"]
    assert (finished["mismatch"], finished["nodes"] >= 1, finished["pods"] >= 4) == (False, True, True)
    assert {line["level"] for line in found if line["msg"].startswith(("Dump", "Cache"))} == {"info"}

    oldest = "loadmaster_oldest_pending_pod_age_seconds"
    assert 0 < big["ageSeconds"] <= metric(loadmaster.port, oldest, queue="unschedulable") < 60
    assert 0 < metric(loadmaster.port, oldest, queue="gated") < 60
    assert metric(loadmaster.port, oldest, queue="active") == 0
    api.create(a_pod("after", cpu="250m"), namespace)
    wait_until(lambda: node_of(api.get("Pod", "after", namespace)), 10, "the next pod is bound")


def test_without_the_api_server_it_still_dumps(
    loadmaster: Component, controlplane: ControlPlane, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1)
    wait_until(lambda: metric(loadmaster.port, "scheduler_cache_size", type="nodes") >= 1, 10, "the node is known")

    controlplane.apiserver.kill()
    found = debug(loadmaster)
    controlplane.apiserver.start()

    assert about(found, "Dump of cached node", node)["deleted"] is False
    assert [line["level"] for line in found if line["msg"] == "Cache comparer failed"] == ["warning"]
    assert loadmaster.running
