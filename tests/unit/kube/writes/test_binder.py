"""Bindings: never in doubt, never twice."""

import asyncio
from pathlib import Path

import pytest

from scheduler.framework.errors import BindRejected
from scheduler.kube.http.client import AnswerLost, NotSent, Reply
from scheduler.kube.http.retries import WRITES, Failed, Outcome, Read
from scheduler.kube.writes.binder import ApiBinder, Binding, Bound, Post, Step
from scheduler.process.metrics import Metrics
from scheduler.testing import a_pod
from tests.fakes import sample
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, until

UID = "uid-web"


def answer(status: int, message: str = "", retry_after: float = 0.0) -> Reply:
    return Reply(status, b'{"message":"%b"}' % message.encode(), retry_after)


def pod(uid: str = UID, node: str = "", more: str = "", spec: str = "") -> Reply:
    return Reply(200, f'{{"metadata":{{"uid":"{uid}"{more}}},"spec":{{"nodeName":"{node}"{spec}}}}}'.encode())


REFUSED = NotSent("connection refused")
NO_ANSWER = AnswerLost("timeout")
CONFLICT = answer(409, "conflict")
FAILED = answer(500, "etcdserver: request timed out")
UNBOUND = pod()
WAIT = 0.1
"""The first wait, with jitter at its middle."""


@pytest.mark.parametrize(
    ("outcomes", "last"),
    [
        pytest.param([answer(201)], Bound(), id="a created binding is bound"),
        pytest.param([answer(404, "no pod")], Failed("no pod"), id="a pod that is gone is rejected"),
        pytest.param([answer(403, "no")], Failed("no"), id="what is forbidden is rejected"),
        pytest.param([answer(400, "bad")], Failed("bad"), id="a bad request is rejected"),
        pytest.param([answer(422, "invalid")], Failed("invalid"), id="an invalid binding is rejected"),
        pytest.param([REFUSED], Post(WAIT), id="what was not sent is sent again"),
        pytest.param([answer(429, retry_after=3.0)], Post(3.0), id="Retry-After is obeyed"),
        pytest.param([answer(401)], Post(WAIT), id="expired credentials are tried again"),
        pytest.param([NO_ANSWER], Read(), id="a lost answer is read"),
        pytest.param([FAILED], Read(), id="a server error is read"),
        pytest.param([answer(504)], Read(), id="a gateway timeout is read"),
        pytest.param([CONFLICT], Read(), id="a conflict is read"),
        pytest.param([NO_ANSWER, pod(node="n1")], Bound(), id="a lost answer may have bound the pod"),
        pytest.param([CONFLICT, pod(node="n1")], Bound(), id="a conflict with ourselves is bound"),
        pytest.param([CONFLICT, pod(node="n2")], Failed("the pod is bound to node 'n2'"), id="bound by another"),
        pytest.param(
            [NO_ANSWER, pod(uid="other")], Failed("the pod is gone, and another one has its name"), id="recreated"
        ),
        pytest.param([NO_ANSWER, answer(404)], Failed("the pod is gone"), id="gone while in doubt"),
        pytest.param(
            [CONFLICT, pod(more=',"deletionTimestamp":"2026-01-01T00:00:00Z"')],
            Failed("the pod is being deleted"),
            id="a pod that is being deleted is rejected",
        ),
        pytest.param(
            [answer(409, "gated"), pod(spec=',"schedulingGates":[{"name":"wait"}]')], Failed("gated"), id="gated"
        ),
        pytest.param([NO_ANSWER, UNBOUND], Post(WAIT), id="unbound after a lost answer is tried again"),
        pytest.param([CONFLICT, UNBOUND], Post(WAIT), id="unbound after a conflict is tried again: etcd failed"),
        pytest.param([NO_ANSWER, REFUSED], Read(WAIT), id="a read that is not answered is repeated"),
        pytest.param([NO_ANSWER, FAILED], Read(WAIT), id="a read that fails is repeated"),
        pytest.param([NO_ANSWER, answer(429, retry_after=2.0)], Read(2.0), id="a throttled read waits"),
        pytest.param([NO_ANSWER, Reply(200, b"<html>")], Read(WAIT), id="an answer that is no pod is no answer"),
        pytest.param([NO_ANSWER, UNBOUND, answer(403, "no")], Read(), id="a refusal while in doubt is read"),
        pytest.param(
            [NO_ANSWER, UNBOUND, answer(403, "no"), UNBOUND], Failed("no"), id="a refusal, then no doubt, is final"
        ),
        pytest.param(
            [NO_ANSWER, UNBOUND, answer(403, "no"), pod(node="n1")], Bound(), id="the first try came through late"
        ),
        pytest.param([REFUSED, REFUSED], Post(2 * WAIT), id="waits double"),
        pytest.param([REFUSED] * 6, Post(2.0), id="waits have a limit"),
        pytest.param(
            [REFUSED] * WRITES.tries, Failed("connection refused (10 tries)"), id="an API server away lets the pod go"
        ),
        pytest.param(
            [FAILED, UNBOUND] * WRITES.tries,
            Failed("etcdserver: request timed out (10 tries)", 500),
            id="a failure that lasts lets the pod go",
        ),
        pytest.param([NO_ANSWER, UNBOUND] + [REFUSED] * (WRITES.tries - 1), Read(), id="never let go while in doubt"),
        pytest.param([NO_ANSWER] + [REFUSED] * 50, Read(2.0), id="doubt lasts as long as the API server is away"),
    ],
)
def test_next_step(outcomes: list[Outcome], last: Step) -> None:
    binding = Binding(UID, "n1", chance=lambda: 0.5)
    step: Step = Post()
    for outcome in outcomes:
        match step:
            case Post():
                step = binding.posted(outcome)
            case Read():
                step = binding.read(outcome)
            case _:
                pytest.fail(f"{step} came before {outcome}")

    assert step == last


POD = a_pod("web", namespace="shop", uid=UID)
BINDING = "POST /api/v1/namespaces/shop/pods/web/binding"
GET_POD = "GET /api/v1/namespaces/shop/pods/web"


def bound_to(node: str) -> Answer:
    return Answer(body={"metadata": {"uid": UID}, "spec": {"nodeName": node}})


async def test_the_binding_names_pod_uid_and_node(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(BINDING, Answer(201))
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


async def test_a_pod_bound_elsewhere_is_rejected(tmp_path: Path) -> None:
    api = FakeApi()
    api.on(BINDING, Answer(409, {"message": "already assigned"}))
    api.on(GET_POD, bound_to("n2"))
    async with fake_client(tmp_path, api) as client:
        with pytest.raises(BindRejected, match="bound to node 'n2'"):
            await ApiBinder(client, Metrics()).bind(POD, "n1")


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
