import pytest

from tests.bench.observer import BindReader, WatchError

ADDED = b'{"type":"ADDED","object":{"kind":"X","metadata":{"name":"a","namespace":"team","uid":"1"}}}\n'
GENERATED = b'{"type":"ADDED","object":{"metadata":{"name":"b-x","generateName":"b-","namespace":"team"}}}\n'
MODIFIED = b'{"type":"MODIFIED","object":{"metadata":{"name":"a","annotations":{"note":"{\\"type\\":\\"ADDED\\""}}}}\n'
DELETED = b'{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"team"}}}\n'


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([ADDED + GENERATED], [["team/a", "team/b-x"]], id="two pods in one chunk"),
        pytest.param(
            [ADDED[:10], ADDED[10:] + ADDED[:3], ADDED[3:]],
            [[], ["team/a"], ["team/a"]],
            id="lines that end in later chunks",
        ),
        pytest.param([ADDED[:-1], b"\n"], [[], ["team/a"]], id="an end of line that comes alone"),
        pytest.param([MODIFIED + DELETED], [[]], id="changes of a pod that is bound already"),
    ],
)
def test_a_pod_is_reported_when_the_whole_line_of_its_binding_was_read(
    chunks: list[bytes], expected: list[list[str]]
) -> None:
    reader = BindReader()

    assert [reader.feed(chunk) for chunk in chunks] == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(b'{"type":"ERROR","object":{"message":"too old resource version"}}\n', "too old", id="an error"),
        pytest.param(b'{"type":"ADDED","object":{}}\n', "no name", id="a pod without a name"),
    ],
)
def test_a_line_that_cannot_be_counted_is_an_error(line: bytes, message: str) -> None:
    with pytest.raises(WatchError, match=message):
        BindReader().feed(line)


def test_a_new_watch_goes_on_from_the_last_binding_that_was_read() -> None:
    reader = BindReader()
    assert reader.resume() == ""

    versioned = ADDED.replace(b'"uid":"1"', b'"resourceVersion":"17"')
    reader.feed(versioned + ADDED[:20])

    assert reader.resume() == "17"
    assert reader.feed(ADDED) == ["team/a"]
