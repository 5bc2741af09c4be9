from typing import Any

import pytest

from tests.controlplane import a_node, a_pod
from tests.demo import facts
from tests.demo.facts import Gone, Node, Pod, Refusal


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(a_node("a-1", cpu="8", zone="a"), Node("a-1", "a", 8000), id="plain"),
        pytest.param(a_node("a-1", cpu="500m"), Node("a-1", "no zone", 500), id="no zone, half a cpu"),
        pytest.param(
            a_node("a-1", cpu="8", zone="a", unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable"}]),
            Node("a-1", "a", 8000, cordoned=True),
            id="cordoned, which is no taint of its owner's",
        ),
        pytest.param(
            a_node("a-1", cpu="8", zone="a", resources={"nvidia.com/gpu": "2"}),
            Node("a-1", "a", 8000, gpus=2),
            id="GPUs",
        ),
        pytest.param({**a_node("a-1", cpu="8"), "status": {"allocatable": {"cpu": "8"}}}, None, id="not ready"),
    ],
)
def test_a_node_is_read(node: dict[str, Any], expected: Node | None) -> None:
    assert facts.read("Node", "MODIFIED", node) == (expected or Node("a-1", "no zone", 8000, ready=False))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod("p", cpu="250m", labels={"app": "web"}), Pod("p", "web", 250), id="without a node"),
        pytest.param(a_pod("p", cpu="2", labels={"app": "web"}, nodeName="n"), Pod("p", "web", 2000, "n"), id="bound"),
        pytest.param(a_pod("p", cpu="1"), Pod("p", "p", 1000), id="of no Deployment"),
        pytest.param(
            {"metadata": {"name": "p"}, "spec": {"containers": [{}]}}, Pod("p", "p", 0), id="asks for nothing"
        ),
    ],
)
def test_a_pod_is_read(pod: dict[str, Any], expected: Pod) -> None:
    assert facts.read("Pod", "ADDED", pod) == expected


def an_event(reason: str, kind: str = "Pod") -> dict[str, Any]:
    return {"reason": reason, "involvedObject": {"kind": kind, "name": "p"}, "message": "0/3 nodes are available."}


@pytest.mark.parametrize(
    ("change", "event", "expected"),
    [
        ("ADDED", an_event("FailedScheduling"), Refusal("p", "0/3 nodes are available.")),
        ("MODIFIED", an_event("FailedScheduling"), Refusal("p", "0/3 nodes are available.")),
        ("DELETED", an_event("FailedScheduling"), None),
        ("ADDED", an_event("Scheduled"), None),
        ("ADDED", an_event("FailedScheduling", kind="Node"), None),
    ],
)
def test_only_a_refusal_is_read_from_events(change: str, event: dict[str, Any], expected: Refusal | None) -> None:
    assert facts.read("Event", change, event) == expected


def test_what_is_deleted_is_gone() -> None:
    assert facts.read("Pod", "DELETED", a_pod("p")) == Gone("Pod", "p")
    assert facts.read("Node", "DELETED", a_node("n")) == Gone("Node", "n")


def test_a_bookmark_says_nothing() -> None:
    assert facts.read("Pod", "BOOKMARK", {"metadata": {"resourceVersion": "7"}}) is None
