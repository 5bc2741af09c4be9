"""What extenders are sent, field by field as Go spells it."""

import json
from typing import Any

import pytest

from scheduler.extenders import wire
from scheduler.extenders.go_json import BadJson
from scheduler.extenders.wire import Body, MetaVictims

POD = b'{"metadata":{"name":"web"}}'


def sent(body: Body) -> Any:
    return json.loads(b"".join(body))


def test_an_extender_that_knows_the_nodes_is_sent_their_names() -> None:
    assert sent(wire.arguments(POD, None, ["a", "b"])) == {
        "Pod": {"metadata": {"name": "web"}},
        "Nodes": None,
        "NodeNames": ["a", "b"],
    }


def test_another_one_is_sent_the_nodes() -> None:
    nodes = [b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"b"}}']

    assert sent(wire.arguments(POD, nodes, None)) == {
        "Pod": {"metadata": {"name": "web"}},
        "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]},
        "NodeNames": None,
    }


def test_victims_are_sent_by_uid_or_whole() -> None:
    assert sent(wire.meta_preemption_arguments(POD, {"n": MetaVictims(["u"], 1)})) == {
        "Pod": {"metadata": {"name": "web"}},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}},
    }
    assert sent(wire.preemption_arguments(POD, {"n": ([POD, POD], 0), "m": ([], 3)})) == {
        "Pod": {"metadata": {"name": "web"}},
        "NodeNameToVictims": {
            "m": {"Pods": [], "NumPDBViolations": 3},
            "n": {"Pods": [json.loads(POD), json.loads(POD)], "NumPDBViolations": 0},
        },
        "NodeNameToMetaVictims": None,
    }


def test_a_binding_names_pod_and_node() -> None:
    assert sent(wire.binding_arguments("web", "default", "uid", "n")) == {
        "PodName": "web",
        "PodNamespace": "default",
        "PodUID": "uid",
        "Node": "n",
    }


@pytest.mark.parametrize("score", [2**63 - 1, -(2**63), 0])
@pytest.mark.parametrize(
    "body", ['[{"Host":"a","Score":%d}]', '[{"host":"a","score":%d}]', '[{"HOST":"a","sCORE":%d}]']
)
def test_scores_are_read_however_they_are_spelled_and_as_far_as_they_go(body: str, score: int) -> None:
    (found,) = wire.priorities((body % score).encode())

    assert (found.host, found.score) == ("a", score)


@pytest.mark.parametrize("score", [2**63, -(2**63) - 1, 10**30])
def test_and_no_further(score: int) -> None:
    with pytest.raises(BadJson, match=f"cannot unmarshal number {score} into Go struct field"):
        wire.priorities(b'[{"Host":"a","Score":%d}]' % score)
