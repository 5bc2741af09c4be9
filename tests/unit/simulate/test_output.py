import json
from typing import Any

from scheduler.simulate.output import MAX_NODES, MAX_PENDING, MAX_PODS, as_json, as_text


def a_result(name: str = "p", **fields: Any) -> dict[str, Any]:
    return {
        "namespace": "default",
        "name": name,
        "node": None,
        "nominatedNode": None,
        "victims": [],
        "message": "",
        **fields,
    }


def test_pods_are_a_table() -> None:
    document = {
        "pods": [
            a_result("web-1", node="n001"),
            a_result("b", message="0/1 nodes are available: 1 Too many pods."),
            a_result("c", message="no", nominatedNode="n2", victims=["x/y", "x/z"]),
            a_result("d", gated="SchedulingGates"),
        ]
    }

    assert as_text(document, explain=False).splitlines() == [
        "1 of 4 pods placed",
        "",
        "POD            NODE  MESSAGE",
        "default/web-1  n001",
        "default/b      -     0/1 nodes are available: 1 Too many pods.",
        "default/c      -     no; nominated to n2; would preempt x/y, x/z",
        "default/d      -     held back by SchedulingGates",
    ]


def test_explained_pods_have_a_table_of_nodes_the_best_on_top() -> None:
    nodes = {
        "n1": {"code": "Success", "scores": {"Fit": 55, "ImageLocality": 0}, "total": 55},
        "n2": {"code": "Unschedulable", "plugin": "Fit", "reasons": ["Insufficient cpu", "Too many pods"]},
        "n3": {"code": "Success", "scores": {"Fit": 100, "ImageLocality": 7}, "total": 107},
    }

    assert as_text({"pods": [a_result(node="n3", nodes=nodes)]}, explain=True).splitlines() == [
        "1 of 1 pods placed",
        "",
        "default/p: placed on n3",
        "  NODE  VERDICT  TOTAL  Fit  ImageLocality",
        "  n3    fits     107    100  7",
        "  n1    fits     55     55   0",
        "  n2    Unschedulable by Fit: Insufficient cpu, Too many pods",
    ]


def test_a_pod_that_was_not_tried_is_explained_without_a_table() -> None:
    assert as_text({"pods": [a_result()]}, explain=True).splitlines()[2:] == ["default/p: not placed"]


def test_long_tables_are_cut_and_say_so() -> None:
    nodes = {f"n{i}": {"code": "Success", "scores": {}, "total": 0} for i in range(MAX_NODES + 2)}
    pods = [a_result(f"p{i}", node="n1") for i in range(MAX_PODS + 3)]

    assert "... and 3 more pods (all of them with -o json)" in as_text({"pods": pods}, explain=False)
    assert "  ... and 2 more nodes (all of them with -o json)" in as_text(
        {"pods": [a_result(nodes=nodes)]}, explain=True
    )


def test_many_pending_pods_are_shown_by_workload_and_reason() -> None:
    pods = [
        a_result("web-0", node="n1"),
        *(a_result(f"web-{i}", message="no cpu") for i in range(1, MAX_PENDING)),
        a_result("db-0", message="no cpu", nominatedNode="n2", victims=["x/y"]),
        a_result("db-1", message="no disk"),
    ]
    workloads = {("default", pod["name"]): f"ReplicaSet default/{pod['name'][:-2].rstrip('-')}" for pod in pods}

    assert as_text({"pods": pods}, workloads, explain=False).splitlines() == [
        "1 of 22 pods placed",
        "",
        "PENDING  OF                      MESSAGE",
        "19       ReplicaSet default/web  no cpu",
        "1        ReplicaSet default/db   no cpu; 1 would preempt others",
        "1        ReplicaSet default/db   no disk",
        "",
        "POD            NODE  MESSAGE",
        "default/web-0  n1",
    ]


def test_no_pods_are_no_table() -> None:
    assert as_text({"pods": []}, explain=False) == "nothing to place"


def test_json_is_the_whole_document() -> None:
    document = {"pods": [a_result(f"p{i}") for i in range(MAX_PODS + 1)]}

    assert json.loads("".join(as_json(document))) == document
