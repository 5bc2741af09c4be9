"""What the answers of extenders mean, however they spell their fields."""

import pytest

from scheduler.api.decoding import Unreadable
from scheduler.extenders import wire
from scheduler.extenders.wire import MetaVictims, Score


@pytest.mark.parametrize(
    ("body", "names"),
    [
        pytest.param(b'{"NodeNames":["a"]}\n', ["a"], id="as Go's encoder writes it"),
        pytest.param(b'{"nodenames":["a"]}', ["a"], id="in small letters"),
        pytest.param(b'{"nodeNames":["a"],"Other":1}', ["a"], id="as others spell it, with more"),
        pytest.param(b'{"NodeNames":["\\u003ca\\u003e"]}', ["<a>"], id="as Go escapes it"),
        pytest.param(b'{"NodeNames":[]}', [], id="no node"),
        pytest.param(b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"Error":""}', None, id="null is nothing"),
        pytest.param(b"null", None, id="null for all"),
        pytest.param(b"{}", None, id="nothing"),
    ],
)
def test_fields_are_found_whatever_their_case(body: bytes, names: list[str] | None) -> None:
    assert wire.filter_result(body).node_names == names


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "truncated"),
        (b'{"NodeNames":["a"', "truncated"),
        (b"<html>", "malformed"),
        (b"[]", "Expected `object | null`, got `array`"),
        (b'{"NodeNames":"a"}', r"^NodeNames: Expected `array \| null`, got `str`"),
        (b'{"Error":7}', r"^Error: Expected `str \| null`, got `int`"),
        (b'{"FailedNodes":{"a":1}}', r"^FailedNodes: Expected `str`, got `int` - at `\$\[\.\.\.\]`"),
        (b"[" * 100_000, "nested too deeply|Expected"),
        (b'{"a":' * 100_000, "nested too deeply|truncated"),
    ],
)
def test_what_is_no_result_says_where_it_is_wrong(body: bytes, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        wire.filter_result(body)


def test_nodes_are_read_by_their_names() -> None:
    body = b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{}},{}]}}'

    assert wire.filter_result(body).nodes == ["a", ""]
    assert wire.filter_result(b'{"Nodes":{"metadata":{},"items":null}}').nodes == []
    assert wire.filter_result(b'{"Nodes":null}').nodes is None


def test_names_of_nodes_that_failed_are_no_fields() -> None:
    result = wire.filter_result(b'{"failedNodes":{"A":"1","a":"2"},"FailedAndUnresolvableNodes":{"B":"3"}}')

    assert (result.failed, result.failed_for_good) == ({"A": "1", "a": "2"}, {"B": "3"})


@pytest.mark.parametrize(
    "body", [b'[{"Host":"a","Score":3}]', b'[{"host":"a","score":3}]', b'[{"HOST":"a","Score":3,"Why":"x"}]']
)
def test_scores_are_read_however_they_are_spelled(body: bytes) -> None:
    assert wire.priorities(body) == [Score("a", 3)]


def test_what_is_left_out_of_a_score_is_empty() -> None:
    assert wire.priorities(b'[{"Host":"a"},{"Score":-5},{}]') == [Score("a", 0), Score("", -5), Score("", 0)]
    assert wire.priorities(b"null") == []


@pytest.mark.parametrize(
    "score", [b"1.5", b'"1"', b"true", b"[]", b"9223372036854775808", b"-9223372036854775809", b"9" * 1_000_000]
)
def test_a_score_is_an_int64(score: bytes) -> None:
    with pytest.raises(Unreadable):
        wire.priorities(b'[{"Host":"a","Score":' + score + b"}]")


def test_victims_are_read() -> None:
    body = b'{"nodeNameToMetaVictims":{"n":{"pods":[{"uid":"u1"},{"UID":"u2"}],"NumPDBViolations":2},"m":{}}}'

    assert wire.preemption_result(body) == {"n": MetaVictims(["u1", "u2"], 2), "m": MetaVictims([], 0)}


@pytest.mark.parametrize("victims", [b"null", b'{"Pods":[null]}', b"7", b'{"Pods":[{"UID":1}]}'])
def test_where_kube_scheduler_would_panic_the_answer_is_an_error(victims: bytes) -> None:
    with pytest.raises(Unreadable):
        wire.preemption_result(b'{"NodeNameToMetaVictims":{"n":' + victims + b"}}")


def test_a_binding_names_its_error() -> None:
    assert wire.binding_error(b'{"error":"full"}') == "full"
    assert wire.binding_error(b'{"Error":null}') == ""
