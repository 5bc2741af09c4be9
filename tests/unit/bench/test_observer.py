import pytest

from tests.bench.observer import BindCounter, WatchError

ADDED = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
MODIFIED = b'{"type":"MODIFIED","object":{"metadata":{"name":"a","annotations":{"note":"{\\"type\\":\\"ADDED\\""}}}}\n'
DELETED = b'{"type":"DELETED","object":{"metadata":{"name":"a"}}}\n'


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([ADDED + ADDED], [2], id="two pods in one chunk"),
        pytest.param([ADDED[:10], ADDED[10:] + ADDED[:3], ADDED[3:]], [0, 1, 1], id="lines that end in later chunks"),
        pytest.param([ADDED[:-1], b"\n"], [0, 1], id="an end of line that comes alone"),
        pytest.param([MODIFIED + DELETED], [0], id="changes of a pod that is bound already"),
    ],
)
def test_a_pod_counts_when_the_whole_line_of_its_binding_was_read(chunks: list[bytes], expected: list[int]) -> None:
    counter = BindCounter()

    assert [counter.feed(chunk) for chunk in chunks] == expected
    assert counter.count == sum(expected)


def test_an_error_of_the_watch_is_raised() -> None:
    counter = BindCounter()

    with pytest.raises(WatchError, match="too old"):
        counter.feed(b'{"type":"ERROR","object":{"message":"too old resource version"}}\n')


def test_a_new_watch_goes_on_from_the_last_binding_that_was_read() -> None:
    counter = BindCounter()
    assert counter.resume() == ""

    counter.feed(b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"17"}}}\n' + ADDED[:20])

    assert counter.resume() == "17"
    assert counter.feed(ADDED) == 1
