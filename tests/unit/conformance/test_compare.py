"""The comparison finds every difference that is planted, and no other."""

import copy
from typing import Any

import pytest

from tests.conformance.compare import differences

Json = dict[str, Any]


def a_verdict() -> Json:
    """One pod placed, one rejected."""
    placed: Json = {
        "namespace": "default",
        "name": "placed",
        "node": "n1",
        "nominatedNode": None,
        "victims": [],
        "message": "",
        "best": ["n1", "n3"],
        "nodes": {
            "n1": {"code": "Success", "scores": {"ImageLocality": 5, "NodeAffinity": 0}, "total": 5},
            "n2": {
                "code": "Unschedulable",
                "plugin": "NodeResourcesFit",
                "reasons": ["Insufficient cpu", "Too many pods"],
            },
            "n3": {"code": "Success", "scores": {"ImageLocality": 5, "NodeAffinity": 0}, "total": 5},
        },
    }
    rejected: Json = {
        "namespace": "default",
        "name": "rejected",
        "node": None,
        "nominatedNode": "n2",
        "victims": ["default/a", "default/b"],
        "message": "0/3 nodes are available: 3 Too many pods.",
        "best": [],
        "nodes": {},
    }
    return {"pods": [placed, rejected]}


def with_change(path: tuple[str | int, ...], value: object) -> Json:
    """The verdict, changed in one place."""
    verdict = a_verdict()
    target: Any = verdict["pods"]
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return verdict


def test_a_verdict_equals_itself() -> None:
    assert differences(a_verdict(), copy.deepcopy(a_verdict())) == []


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        pytest.param((0, "node"), "n2", "default/placed node", id="a worse node"),
        pytest.param((0, "node"), None, "default/placed node", id="no node"),
        pytest.param((1, "node"), "n1", "default/rejected node", id="a node for a pod that has none"),
        pytest.param((1, "message"), "0/3 nodes are available.", "default/rejected message", id="the message"),
        pytest.param((1, "nominatedNode"), None, "default/rejected nominatedNode", id="the nomination"),
        pytest.param((1, "victims"), ["default/a"], "default/rejected victims", id="the victims"),
        pytest.param((0, "gated"), "SchedulingGates", "default/placed gated", id="a gate"),
        pytest.param((0, "nodes", "n2", "code"), "Error", "default/placed on n2: code", id="the code"),
        pytest.param((0, "nodes", "n2", "plugin"), "NodePorts", "default/placed on n2: plugin", id="the plugin"),
        pytest.param((0, "nodes", "n2", "reasons"), [], "default/placed on n2: reasons", id="the reasons"),
        pytest.param((0, "nodes", "n1", "total"), 6, "default/placed on n1: total", id="the total"),
        pytest.param(
            (0, "nodes", "n1", "scores", "ImageLocality"),
            6,
            "default/placed on n1: score of ImageLocality",
            id="one score",
        ),
        pytest.param(
            (0, "nodes", "n1", "scores"),
            {"ImageLocality": 5},
            "default/placed on n1: score of NodeAffinity",
            id="a score of zero that is not given",
        ),
        pytest.param((0, "nodes"), {}, "default/placed nodes judged", id="a node left out"),
        pytest.param((0, "name"), "other", "pods judged", id="another pod"),
    ],
)
def test_a_planted_difference_is_found(path: tuple[str | int, ...], value: object, where: str) -> None:
    assert [found.where for found in differences(a_verdict(), with_change(path, value))] == [where]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param((0, "node"), "n3", id="another of the best nodes"),
        pytest.param((0, "nodes", "n2", "reasons"), ["Too many pods", "Insufficient cpu"], id="the order of reasons"),
        pytest.param((1, "victims"), ["default/b", "default/a"], id="the order of victims"),
    ],
)
def test_what_kube_scheduler_leaves_to_chance_is_no_difference(path: tuple[str | int, ...], value: object) -> None:
    assert differences(a_verdict(), with_change(path, value)) == []


def test_an_error_of_ours_is_a_difference() -> None:
    assert differences(a_verdict(), {"error": "KeyError: 'x'", "pods": []})


def with_claims(**result: object) -> Json:
    """The verdict, with what a claim would get on a node."""
    results = [{"request": "q", "driver": "d", "pool": "p", "device": "gpu-0", **result}]
    return with_change((0, "nodes", "n1", "claims"), {"default/c": {"devices": {"results": results}}})


def test_devices_are_compared_but_not_share_ids_or_how_a_quantity_is_spelled() -> None:
    one = with_claims(shareID="a", consumedCapacity={"memory": "1Gi"})
    same = with_claims(shareID="b", consumedCapacity={"memory": "1024Mi"})
    other = with_claims(device="gpu-1")

    assert differences(one, same) == []
    assert [each.where for each in differences(one, other)] == ["default/placed on n1: claims"]
