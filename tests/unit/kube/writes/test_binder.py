"""Bindings: never in doubt, never twice."""

import asyncio
from pathlib import Path

import pytest

from scheduler.kube.http.client import Client, Reply
from scheduler.kube.http.retries import WRITES, Outcome
from scheduler.kube.writes.binder import ApiBinder
from scheduler.process.metrics import Metrics
from scheduler.testing import a_pod
from tests.fakes import sample
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, until
from tests.unit.kube.writes.script import CONFLICT, FAILED, NO_ANSWER, REFUSED, WAIT, NextCall, answer, end_of

UID = "uid-web"
BOUND = "bound"
POD = a_pod("web", namespace="shop", uid=UID)


def pod(uid: str = UID, node: str = "", more: str = "", spec: str = "") -> Reply:
    return Reply(200, f'{{"metadata":{{"uid":"{uid}"{more}}},"spec":{{"nodeName":"{node}"{spec}}}}}'.encode())


UNBOUND = pod()


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        pytest.param([answer(201)], BOUND, id="a created binding is bound"),
        pytest.param([answer(404, "no pod")], "no pod", id="a pod that is gone is rejected"),
        pytest.param([answer(403, "no")], "no", id="what is forbidden is rejected"),
        pytest.param([answer(400, "bad")], "bad", id="a bad request is rejected"),
        pytest.param([answer(422, "invalid")], "invalid", id="an invalid binding is rejected"),
        pytest.param([REFUSED], ("POST", WAIT), id="what was not sent is sent again"),
        pytest.param([answer(429, retry_after=3.0)], ("POST", 3.0), id="Retry-After is obeyed"),
        pytest.param([answer(401)], ("POST", WAIT), id="expired credentials are tried again"),
        pytest.param([NO_ANSWER], ("GET", 0.0), id="a lost answer is read"),
        pytest.param([FAILED], ("GET", 0.0), id="a server error is read"),
        pytest.param([answer(504)], ("GET", 0.0), id="a gateway timeout is read"),
        pytest.param([CONFLICT], ("GET", 0.0), id="a conflict is read"),
        pytest.param([NO_ANSWER, pod(node="n1")], BOUND, id="a lost answer may have bound the pod"),
        pytest.param([CONFLICT, pod(node="n1")], BOUND, id="a conflict with ourselves is bound"),
        pytest.param([CONFLICT, pod(node="n2")], "the pod is bound to node 'n2'", id="bound by another"),
        pytest.param([NO_ANSWER, pod(uid="other")], "the pod is gone, and another one has its name", id="recreated"),
        pytest.param([NO_ANSWER, answer(404)], "the pod is gone", id="gone while in doubt"),
        pytest.param(
            [CONFLICT, pod(more=',"deletionTimestamp":"2026-01-01T00:00:00Z"')],
            "the pod is being deleted",
            id="a pod that is being deleted is rejected",
        ),
        pytest.param([answer(409, "gated"), pod(spec=',"schedulingGates":[{"name":"wait"}]')], "gated", id="gated"),
        pytest.param([NO_ANSWER, UNBOUND], ("POST", WAIT), id="unbound after a lost answer is tried again"),
        pytest.param([CONFLICT, UNBOUND], ("POST", WAIT), id="unbound after a conflict is tried again: etcd failed"),
        pytest.param([NO_ANSWER, REFUSED], ("GET", WAIT), id="a read that is not answered is repeated"),
        pytest.param([NO_ANSWER, FAILED], ("GET", WAIT), id="a read that fails is repeated"),
        pytest.param([NO_ANSWER, answer(429, retry_after=2.0)], ("GET", 2.0), id="a throttled read waits"),
        pytest.param([NO_ANSWER, Reply(200, b"<html>")], ("GET", WAIT), id="an answer that is no pod is no answer"),
        pytest.param([NO_ANSWER, UNBOUND, answer(403, "no")], ("GET", 0.0), id="a refusal while in doubt is read"),
        pytest.param([NO_ANSWER, UNBOUND, answer(403, "no"), UNBOUND], "no", id="a refusal, then no doubt, is final"),
        pytest.param(
            [NO_ANSWER, UNBOUND, answer(403, "no"), pod(node="n1")], BOUND, id="the first try came through late"
        ),
        pytest.param([REFUSED, REFUSED], ("POST", 2 * WAIT), id="waits double"),
        pytest.param([REFUSED] * 6, ("POST", 2.0), id="waits have a limit"),
        pytest.param(
            [REFUSED] * WRITES.tries, "connection refused (10 tries)", id="an API server away lets the pod go"
        ),
        pytest.param(
            [FAILED, UNBOUND] * WRITES.tries,
            "etcdserver: request timed out (10 tries)",
            id="a failure that lasts lets the pod go",
        ),
        pytest.param(
            [NO_ANSWER, UNBOUND] + [REFUSED] * (WRITES.tries - 1), ("GET", 0.0), id="never let go while in doubt"
        ),
        pytest.param([NO_ANSWER] + [REFUSED] * 50, ("GET", 2.0), id="doubt lasts as long as the API server is away"),
    ],
)
def test_next_step(outcomes: list[Outcome], last: str | NextCall) -> None:
    async def bind(client: Client) -> str:
        await ApiBinder(client, Metrics()).bind(POD, "n1")
        return BOUND

    assert end_of(outcomes, bind) == last


BINDING = "POST /api/v1/namespaces/shop/pods/web/binding"
GET_POD = "GET /api/v1/namespaces/shop/pods/web"


def bound_to(node: str) -> Answer:
    return Answer(body={"metadata": {"uid": UID}, "spec": {"nodeName": node}})


async def test_the_binding_names_pod_uid_and_node(tmp_path: Path) -> None:
    api = FakeApi().on(BINDING, Answer(201))
    async with fake_client(tmp_path, api) as client:
        failure = await ApiBinder(client, Metrics()).bind(POD, "n1")

    (sent,) = api.requests

    assert failure == ""
    assert sent.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "shop", "uid": UID},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
    assert sent.headers["Content-Type"] == "application/json"


async def test_a_lost_answer_is_settled_by_a_read(tmp_path: Path) -> None:
    api, metrics = FakeApi(), Metrics()
    api.on(BINDING, LOST)
    api.on(GET_POD, bound_to("n1"))
    async with fake_client(tmp_path, api, metrics) as client:
        failure = await ApiBinder(client, metrics).bind(POD, "n1")

    assert failure.endswith("the server closed the connection before the whole answer had come")
    assert len(api.seen(BINDING)) == 1
    assert sample(metrics, "loadmaster_bind_outcomes_settled_total", found="bound") == 1


async def test_bindings_in_flight_are_limited(tmp_path: Path) -> None:
    api = FakeApi()
    pods = [a_pod(f"p{i}", namespace="shop") for i in range(6)]
    for each in pods:
        api.on(f"POST /api/v1/namespaces/shop/pods/{each.name}/binding", Answer(201))
    async with fake_client(tmp_path, api) as client:
        binder = ApiBinder(client, Metrics(), max_in_flight=2)
        api.held.clear()
        bindings = [asyncio.create_task(binder.bind(each, "n1")) for each in pods]
        await until(lambda: api.busy == 2)
        api.held.set()
        await asyncio.gather(*bindings)

    assert api.most_at_once == 2
