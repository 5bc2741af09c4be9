from collections.abc import Iterator

import orjson
import pytest

from tests.bench.api import ServerApi, create, fetch, merge, must, replace
from tests.bench.wire import Refused, Request
from tests.unit.bench.test_wire import OK, FakeServer

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
DISCOVERY = {
    "resources": [
        {"name": "nodes", "kind": "Node", "namespaced": False},
        {"name": "pods", "kind": "Pod", "namespaced": True},
        {"name": "pods/binding", "kind": "Binding", "namespaced": True},
    ]
}


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture
def server() -> FakeServer:
    return FakeServer(answer(orjson.dumps(DISCOVERY)))


@pytest.fixture
def api(server: FakeServer) -> Iterator[ServerApi]:
    with ServerApi(server) as opened:
        yield opened


def test_where_a_kind_is_is_asked_once(api: ServerApi, server: FakeServer) -> None:
    assert api.path("v1/Pod", "team", "p", "status") == ("/api/v1/namespaces/team/pods/p/status", "pods/status")
    assert api.path("v1/Node", "team", "n") == ("/api/v1/nodes/n", "nodes")
    assert api.is_namespaced("v1/Pod")
    assert len(server.requests) == 1


def test_requests_of_our_own_are_counted_as_the_api_server_names_them(api: ServerApi, server: FakeServer) -> None:
    server.answers += [OK, OK, OK, answer(b'{"items": []}')]

    api.bulk([[create(api, POD, "a"), merge(api, POD, {}, "a", "status")]], lambda number, at: None)
    must(api, replace(api, POD, "a", "resize"))
    fetch(api, *api.path("v1/Pod", "a"))
    api.send(Request("DELETE", "/pods/p", "pods"))
    api.send(Request("DELETE", "/pods", "pods", whole=True))

    assert api.own.pop("DELETE pods") == api.own.pop("DELETECOLLECTION pods") == 1
    assert api.own == {"LIST ": 1, "POST pods": 1, "PATCH pods/status": 1, "PUT pods/resize": 1, "LIST pods": 1}


def test_one_connection_serves_the_requests_of_a_thread(api: ServerApi, server: FakeServer) -> None:
    for _ in range(3):
        api.send(Request("GET", "/x", "x"))

    assert server.connections == 1


def test_what_must_be_and_is_refused_is_an_error(api: ServerApi, server: FakeServer) -> None:
    server.answers.append(answer(b"no", "403 Forbidden"))

    with pytest.raises(Refused, match="403 no"):
        must(api, create(api, POD, "a"))
