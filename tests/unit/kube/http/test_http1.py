"""Answers, from whatever pieces they come in; and what is no answer."""

import pytest

from scheduler.kube.http.http1 import MAX_HEAD, Answer, AnswerReader, BadAnswer, is_plain, request_headers

CREATED = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{ok}"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CREATED


def read(data: bytes, piece: int = 1 << 20) -> Answer | None:
    reader, answer = AnswerReader(), None
    for at in range(0, len(data), piece):
        assert answer is None
        answer = reader.feed(data[at : at + piece])
    return answer


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    ("data", "status", "body", "after"),
    [
        pytest.param(CREATED, 201, b"{ok}", "", id="with a length"),
        pytest.param(CHUNKED, 200, b"abc0123456789", "", id="in chunks"),
        pytest.param(CONTINUED, 201, b"{ok}", "", id="after 1xx"),
        pytest.param(b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", 204, b"", "", id="no body"),
        pytest.param(b"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", 200, b"", "", id="no reason, empty"),
        pytest.param(
            b"HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 429, b"", "7", id="when to come"
        ),
    ],
)
def test_an_answer_is_read_from_pieces_of_any_size(
    data: bytes, status: int, body: bytes, after: str, piece: int
) -> None:
    assert read(data, piece) == Answer(status, body, after, reusable=True)


@pytest.mark.parametrize("data", [CREATED, CHUNKED, CONTINUED])
def test_a_part_of_an_answer_is_none(data: bytes) -> None:
    assert [read(data[:end]) for end in range(1, len(data))] == [None] * (len(data) - 1)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(CREATED.replace(b"\r\n", b"\r\nConnection: close\r\n", 1), id="close"),
        pytest.param(CREATED.replace(b"\r\n", b"\r\nCONNECTION: keep-alive\r\nconnection: Close\r\n", 1), id="both"),
        pytest.param(CREATED.replace(b"HTTP/1.1", b"HTTP/1.0"), id="HTTP/1.0"),
        pytest.param(CREATED + b"HTTP/1.1 200", id="more than the answer"),
    ],
)
def test_a_connection_that_ends_or_has_more_is_not_used_again(data: bytes) -> None:
    assert read(data) == Answer(201, b"{ok}", "", reusable=False)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/2 200\r\n\r\n", id="HTTP/2"),
        pytest.param(b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", id="status"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", id="upgrade"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Content-Length: 3\r\n\r\nabc", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="negative length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % (b"9" * 5000), id="length beyond all"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", id="length that is no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", id="length and chunks"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", id="another coding"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", id="size of a chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", id="longer chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x" * MAX_HEAD, id="endless head"),
    ],
)
def test_what_does_not_tell_where_it_ends_is_refused(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(data)


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/api/v1/namespaces/shop/pods/web-1.x/binding", True),
        ("/apis/example.com/v1/things?limit=5&continue=a%3D", True),
        ("/api/v1/pods/a b", False),
        ("/api/v1/pods/a\r\nX: y", False),
        ("/api/v1/pods/a\n", False),
        ("/api/v1/pods/\u20ac", False),
        ("/api/v1/pods/#a", False),
        ("api", False),
    ],
)
def test_only_what_needs_no_quoting_is_a_plain_path(path: str, plain: bool) -> None:
    assert is_plain(path) is plain


def test_a_header_cannot_smuggle_in_another() -> None:
    with pytest.raises(ValueError, match="Authorization"):
        request_headers("host", "agent", "Bearer a\r\nX-Remote-User: admin")
