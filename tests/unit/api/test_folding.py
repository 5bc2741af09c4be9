"""JSON that decoders refuse: folded until they can read it, and unfolded to what it was."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api.wording.folding import MAX_DEPTH, fold, unfolded


def nested(levels: int, innermost: bytes = b"{}") -> bytes:
    return b'{"f:a":' * levels + innermost + b"}" * levels


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"a": [1, {"b": null}], "c": "\\ud83d\\ude00 \xc3\xa9 [{"}', id="ordinary"),
        pytest.param(nested(MAX_DEPTH - 1), id="as deep as may be"),
        pytest.param(b'["' + b"[" * 100 + b'"]', id="brackets in a string"),
        pytest.param(b'["\\"' + b"[" * 100 + b'"]', id="brackets after an escaped quote"),
        pytest.param(rb'["\\", [], "\\\"[\\\\"]', id="backslashes before quotes"),
        pytest.param(rb'["\\ud800", "\\\\ud800"]', id="an escaped backslash before what looks like a surrogate"),
    ],
)
def test_what_can_be_read_stays_as_it_is(data: bytes) -> None:
    assert fold(data) is data
    assert unfolded(data) is data


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(nested(1500), id="deep"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="very deep"),
        pytest.param(rb'"\ud800"', id="the first half of a pair"),
        pytest.param(rb'"a \udc00\ud800 b"', id="both halves in the wrong order"),
        pytest.param(rb'"\ud83d\ude00\ude00"', id="half a pair after a pair"),
        pytest.param(rb'"\\\ud800"', id="half a pair after an escaped backslash"),
        pytest.param(b'"\xff\xc3"', id="bytes that are not UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', id="a surrogate in UTF-8"),
        pytest.param(rb'{"\udfff": "\xff"}'.replace(rb"\xff", b"\xff"), id="as a key"),
        pytest.param(nested(100, b'["\\udead \xfe", "\\\\"]'), id="all of it, deep down"),
    ],
)
def test_what_cannot_be_read_is_folded_and_the_rest_stays(odd: bytes) -> None:
    data = b'{"before": "\\\\", "odd": %b, "after": ["\\"]"]}' % odd

    folded = fold(data)

    read = json.loads(folded)
    assert (read["before"], read["after"]) == ("\\", ['"]'])
    json.dumps(read, ensure_ascii=False).encode()  # Unicode throughout
    assert unfolded(folded) == data


def test_values_that_are_too_deep_are_folded_alone() -> None:
    deep = b"[" * MAX_DEPTH + b'1, {"a": [2]}, [3], "]"' + b"]" * MAX_DEPTH

    (*_, innermost) = _levels(json.loads(fold(deep)))

    assert innermost[0] == 1
    assert [isinstance(each, str) for each in innermost] == [False, True, True, True]
    assert innermost[-1] == "]"


def _levels(value: list[object]) -> list[list[object]]:
    levels = [value]
    while isinstance(levels[-1][0], list):
        levels.append(levels[-1][0])
    return levels


def test_deep_values_are_found_wherever_they_lie_among_the_chunks() -> None:
    filler = b'{"a": "\\\\\\"[", "b": [1, 2]}, ' * 20_000
    data = b"[%b%b, %b%b]" % (filler, nested(80), filler, nested(90))

    read = json.loads(fold(data))

    assert len(read) == 40_002
    assert unfolded(fold(data)) == data


@pytest.mark.parametrize("data", [b"[" * 100, b'"' + b"\\" * 300_001, b"]" * 100 + b"[" * 300, b"\xff", rb"\ud800"])
def test_what_is_no_json_is_taken_as_well(data: bytes) -> None:
    assert unfolded(fold(data)) == data


@given(st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", rb"\u", b"d83d", b"de00", b"\xff", b",", b"a"])))
def test_whatever_was_folded_is_unfolded(parts: list[bytes]) -> None:
    data = b"".join(parts) * 20

    if b"\\\xff" not in data:  # an escape that is none: no JSON
        assert unfolded(fold(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" + b"{}," * 100_000 + b"1]", id="brackets"),
        pytest.param(b'["' + b"\\n" * 150_000 + b'"]', id="escapes"),
        pytest.param(b"[" + b'"",' * 100_000 + b"1]", id="strings"),
        pytest.param(b"[" + b'"\\ud800",' * 30_000 + b"1]", id="half pairs"),
        pytest.param(b"[" + b'"\xff",' * 75_000 + b"1]", id="bytes that are not UTF-8"),
        pytest.param(b"[" + (nested(65) + b",") * 500 + b"1]", id="many deep values"),
        pytest.param(b"[" * 300_000, id="depth"),
        pytest.param(b'"' + b"\\" * 300_000, id="backslashes"),
    ],
)
def test_folding_costs_as_much_as_there_are_bytes(data: bytes) -> None:
    def seconds(text: bytes) -> float:
        fold(text)  # once to warm up
        times = []
        for _ in range(3):
            started = time.process_time()
            fold(text)
            times.append(time.process_time() - started)
        return min(times)

    assert seconds(data * 8) < 30 * max(seconds(data), 1e-3)  # 64 times, if it were quadratic
