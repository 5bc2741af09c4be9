"""What extenders are sent, field by field as Go spells it, and how their answers are read."""

import json
from typing import Any

import pytest

from scheduler.api.decoding import Unreadable
from scheduler.extenders import wire
from scheduler.extenders.wire import Body, MetaVictims, Score

POD = b'{"metadata":{"name":"web"}}'


def sent(body: Body) -> Any:
    return json.loads(b"".join(body))


def test_a_filter_question_has_the_names_of_nodes_or_the_nodes() -> None:
    nodes = [b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"b"}}']
    pod = {"metadata": {"name": "web"}}

    assert sent(wire.arguments(POD, None, ["a", "b"])) == {"Pod": pod, "Nodes": None, "NodeNames": ["a", "b"]}
    assert sent(wire.arguments(POD, nodes, None)) == {
        "Pod": pod,
        "Nodes": {"metadata": {}, "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]},
        "NodeNames": None,
    }


def test_victims_are_sent_by_uid_or_whole() -> None:
    pod = {"metadata": {"name": "web"}}
    assert sent(wire.meta_preemption_arguments(POD, {"n": MetaVictims(["u"], 1)})) == {
        "Pod": pod,
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}},
    }
    assert sent(wire.preemption_arguments(POD, {"n": ([POD, POD], 0), "m": ([], 3)})) == {
        "Pod": pod,
        "NodeNameToVictims": {
            "m": {"Pods": [], "NumPDBViolations": 3},
            "n": {"Pods": [pod, pod], "NumPDBViolations": 0},
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


@pytest.mark.parametrize(
    ("body", "names"),
    [
        pytest.param(b'{"NodeNames":["a"]}', ["a"], id="as Go spells it"),
        pytest.param(b'{"nodenames":["a"]}', ["a"], id="in small letters"),
        pytest.param(b'{"nodeNames":["a"],"Other":1}', ["a"], id="as others spell it, with more"),
        pytest.param(b'{"NodeNames":["a",null]}', ["a", ""], id="null is an empty string"),
        pytest.param(b'{"NodeNames":null}', None, id="null is nothing"),
        pytest.param(b"null", None, id="null for all"),
        pytest.param(b"{}", None, id="nothing"),
        pytest.param(b'{"NodeNames":["b"],"nodenames":["a"]}', ["a"], id="the last of two members"),
        pytest.param('{"N\u00f6deNames":["a"]}'.encode(), None, id="with a letter that is another one"),
    ],
)
def test_fields_are_found_whatever_their_case(body: bytes, names: list[str] | None) -> None:
    assert wire.filter_result(body).node_names == names


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "Input data was truncated"),
        (b"<html>", "JSON is malformed: invalid character (byte 0)"),
        (b"[]", "Expected `object | null`, got `array`"),
        (b'{"NodeNames":"a"}', "nodenames: Expected `array | null`, got `str`"),
        (b'{"NodeNames":[1]}', "nodenames: Expected `str | null`, got `int` - at `$[0]`"),
        (b'{"FailedNodes":{"a":1}}', "failednodes: Expected `str | null`, got `int` - at `$[...]`"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_problem_is_named_with_its_field(body: bytes, problem: str) -> None:
    with pytest.raises(Unreadable) as error:
        wire.filter_result(body)

    assert str(error.value) == problem


@pytest.mark.parametrize("score", [2**63 - 1, -(2**63), 0])
@pytest.mark.parametrize(
    "body", ['[{"Host":"a","Score":%d}]', '[{"host":"a","score":%d}]', '[{"HOST":"a","Score":%d,"Why":"x"}]']
)
def test_scores_are_read_however_they_are_spelled(body: str, score: int) -> None:
    assert wire.priorities((body % score).encode()) == [Score("a", score)]


@pytest.mark.parametrize(
    "score", [b"9223372036854775808", b"-9223372036854775809", b"1.5", b'"1"', b"true", b"9" * 1_000_000]
)
def test_a_score_is_an_int64(score: bytes) -> None:
    with pytest.raises(Unreadable, match=r"^score: "):
        wire.priorities(b'[{"Host":"a","Score":' + score + b"}]")


def test_what_is_left_out_of_a_score_is_empty() -> None:
    assert wire.priorities(b'[{"Host":"a"},{"Score":-5},null]') == [Score("a", 0), Score("", -5), Score("", 0)]
    assert wire.priorities(b"null") == []


def test_victims_are_read() -> None:
    body = b'{"nodeNameToMetaVictims":{"n":{"pods":[{"uid":"u1"},{"UID":"u2"}],"NumPDBViolations":2},"m":{}}}'

    assert wire.preemption_result(body) == {"n": MetaVictims(["u1", "u2"], 2), "m": MetaVictims([], 0)}


@pytest.mark.parametrize("victims", [b"null", b'{"Pods":[null]}', b"7", b'{"Pods":[{"UID":1}]}'])
def test_where_kube_scheduler_would_panic_the_answer_is_an_error(victims: bytes) -> None:
    with pytest.raises(Unreadable):
        wire.preemption_result(b'{"NodeNameToMetaVictims":{"n":' + victims + b"}}")


def test_names_of_nodes_that_failed_are_no_fields() -> None:
    body = b'{"FailedNodes":{"A":"1","a":"2","b":null}}'

    assert wire.filter_result(body).failed == {"A": "1", "a": "2", "b": ""}


def test_nodes_are_read_by_their_names() -> None:
    body = b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{}},{},null]}}'

    assert wire.filter_result(body).nodes == ["a", "", ""]
    assert wire.filter_result(b'{"Nodes":{"Items":[]}}').nodes == []
    assert wire.filter_result(b'{"Nodes":null}').nodes is None
