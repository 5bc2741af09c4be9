"""JSON as Go reads it."""

import pytest

from scheduler.extenders import wire
from scheduler.extenders.go_json import BadJson, first_value
from scheduler.extenders.wire import MetaVictims, Score


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
        pytest.param(b' {"NodeNames":["a"]} trailing {', ["a"], id="the rest is not looked at"),
        pytest.param(b'{"NodeNames":["a"]}{"NodeNames":["b"]}', ["a"], id="the first of two"),
        pytest.param(b'{"NodeNames":["b"],"NodeNames":["a"]}', ["a"], id="the last of two members"),
        pytest.param(b'{"NodeNames":["\xff"]}', ["\ufffd"], id="bytes that are no UTF-8"),
        pytest.param('{"NodeName\u017f":["a"]}'.encode(), ["a"], id="with a long s"),
        pytest.param('{"N\u00f6deNames":["a"]}'.encode(), None, id="with a letter that is another one"),
        pytest.param(b'{"NodeNames":["a"],"nodenames":null}', None, id="the last, however it is spelled"),
    ],
)
def test_fields_are_found_as_go_finds_them(body: bytes, names: list[str] | None) -> None:
    assert wire.filter_result(body).node_names == names


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "EOF"),
        (b"  \n", "EOF"),
        (b'{"NodeNames":["a"', "unexpected EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b"[]", "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult"),
        (b'"no"', "json: cannot unmarshal string into Go value of type v1.ExtenderFilterResult"),
        (
            b'{"NodeNames":"a"}',
            "json: cannot unmarshal string into Go struct field ExtenderFilterResult.NodeNames of type []string",
        ),
        (
            b'{"Error":7}',
            "json: cannot unmarshal number into Go struct field ExtenderFilterResult.Error of type string",
        ),
        (
            b'{"NodeNames":[1]}',
            "json: cannot unmarshal number into Go struct field ExtenderFilterResult.NodeNames of type string",
        ),
        (
            b'{"FailedNodes":{"a":1}}',
            "json: cannot unmarshal number into Go struct field ExtenderFilterResult.FailedNodes of type string",
        ),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
    ],
)
def test_what_is_no_result_is_said_in_gos_words(body: bytes, problem: str) -> None:
    with pytest.raises(BadJson) as error:
        wire.filter_result(body)

    assert str(error.value) == problem


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a":NaN}', b"{'a':1}", b"\xef\xbb\xbf{}"])
def test_no_body_does_more_harm_than_that(body: bytes) -> None:
    with pytest.raises(BadJson):
        first_value(body)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"1.0", "number 1.0"),
        (b"1e1", "number 1e1"),
        (b'"1"', "string"),
        (b"true", "bool"),
        (b"9223372036854775808", "number 9223372036854775808"),
        (b"-9223372036854775809", "number -9223372036854775809"),
        (b"[]", "array"),
    ],
)
def test_an_int64_is_written_as_one(text: bytes, shown: str) -> None:
    with pytest.raises(BadJson) as error:
        wire.priorities(b'[{"Host":"a","Score":' + text + b"}]")

    expected = f"json: cannot unmarshal {shown} into Go struct field HostPriority.Score of type int64"
    assert str(error.value) == expected


def test_the_longest_number_is_no_trap() -> None:
    with pytest.raises(BadJson):
        wire.priorities(b'[{"Host":"a","Score":' + b"9" * 1_000_000 + b"}]")


@pytest.mark.parametrize(
    "body",
    [
        b'[{"Host":"a","Score":3}]',
        b'[{"host":"a","score":3}]',
        b'[{"HOST":"a","Score":3,"Why":"x"}]',
        b'[{"Host":"b","Host":"a","score":3}]',
    ],
)
def test_scores_are_read_however_they_are_spelled(body: bytes) -> None:
    assert [(each.host, each.score) for each in wire.priorities(body)] == [("a", 3)]


def test_what_is_left_out_of_a_score_is_empty() -> None:
    assert wire.priorities(b'[{"Host":"a"},{"Score":-5},{}]') == [Score("a", 0), Score("", -5), Score("", 0)]
    assert wire.priorities(b"null") == []


def test_a_score_beyond_an_int64_is_none() -> None:
    with pytest.raises(BadJson):
        wire.priorities(b'[{"Host":"a","Score":9223372036854775808}]')


def test_victims_are_read() -> None:
    body = b'{"nodeNameToMetaVictims":{"n":{"pods":[{"uid":"u1"},{"UID":"u2"}],"NumPDBViolations":2},"m":{}}}'

    assert wire.preemption_result(body) == {"n": MetaVictims(["u1", "u2"], 2), "m": MetaVictims([], 0)}


@pytest.mark.parametrize("victims", [b"null", b'{"Pods":[null]}', b"7", b'{"Pods":[{"UID":1}]}'])
def test_where_kube_scheduler_would_panic_the_answer_is_an_error(victims: bytes) -> None:
    with pytest.raises(BadJson):
        wire.preemption_result(b'{"NodeNameToMetaVictims":{"n":' + victims + b"}}")


def test_names_of_nodes_that_failed_are_no_fields() -> None:
    body = b'{"FailedNodes":{"A":"1","a":"2","b":null}}'

    assert wire.filter_result(body).failed == {"A": "1", "a": "2", "b": ""}


def test_nodes_are_read_by_their_names() -> None:
    body = b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{}},{},null]}}'

    assert wire.filter_result(body).nodes == ["a", "", ""]
    assert wire.filter_result(b'{"Nodes":{"Items":[]}}').nodes == []
    assert wire.filter_result(b'{"Nodes":null}').nodes is None
