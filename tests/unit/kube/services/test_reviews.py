"""Questions about tokens and rights, and the cluster's client authorities: what is asked, and what the answers mean."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.reviews import User
from scheduler.framework.errors import ClusterError
from scheduler.kube.services.client_ca import ClusterClientCA
from scheduler.kube.services.reviews import Reviews
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client

TOKENS = "POST /apis/authentication.k8s.io/v1/tokenreviews"
RIGHTS = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
CONFIG_MAP = "GET /api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"

JANE = {"username": "jane", "uid": "1", "groups": ["devs"], "extra": {"scopes": ["a", "b"]}}


def status(**fields: Any) -> Answer:
    return Answer(201, {"status": fields})


@asynccontextmanager
async def reviews(directory: Path, api: FakeApi) -> AsyncIterator[Reviews]:
    async with fake_client(directory, api) as client:
        yield Reviews(client)


async def test_a_token_is_asked_about_and_again_if_the_answer_was_lost(tmp_path: Path) -> None:
    api = FakeApi().on(TOKENS, LOST, status(authenticated=True, user=JANE))

    async with reviews(tmp_path, api) as asked:
        verdict = await asked.review_token("secret")

    assert [request.body["spec"] for request in api.seen(TOKENS)] == [{"token": "secret"}] * 2
    assert verdict.authenticated
    assert verdict.user == User(username="jane", uid="1", groups=("devs",), extra={"scopes": ("a", "b")})


@pytest.mark.parametrize(
    ("fields", "error"), [({}, ""), ({"authenticated": False, "error": "token has expired"}, "token has expired")]
)
async def test_a_token_that_is_not_accepted(tmp_path: Path, fields: dict[str, Any], error: str) -> None:
    async with reviews(tmp_path, FakeApi().on(TOKENS, status(**fields))) as asked:
        verdict = await asked.review_token("secret")

    assert (verdict.authenticated, verdict.error) == (False, error)


async def test_a_right_is_asked_about_with_all_that_is_known_of_the_user(tmp_path: Path) -> None:
    api = FakeApi().on(RIGHTS, status(allowed=True, reason="RBAC"))
    user = User(username="jane", uid="1", groups=("devs",), extra={"scopes": ("a", "b")})

    async with reviews(tmp_path, api) as asked:
        verdict = await asked.review_access(user, "/metrics", "get")

    (request,) = api.seen(RIGHTS)
    assert request.body["spec"] == {
        "user": "jane",
        "uid": "1",
        "groups": ["devs"],
        "extra": {"scopes": ["a", "b"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }
    assert (verdict.allowed, verdict.denied, verdict.reason) == (True, False, "RBAC")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(403, {"kind": "Status", "message": "tokenreviews is forbidden"}), "403: tokenreviews is forbidden"),
        (Answer(201, {"status": {"authenticated": "yes"}}), "an answer to a review cannot be read"),
        (Answer(201, {"spec": {}}), "an answer to a review cannot be read"),
    ],
)
async def test_a_refusal_is_no_answer_and_does_not_tell_the_token(tmp_path: Path, answer: Answer, said: str) -> None:
    api = FakeApi().on(TOKENS, answer)

    async with reviews(tmp_path, api) as asked:
        with pytest.raises(ClusterError) as raised:
            await asked.review_token("secret")

    assert said in str(raised.value)
    assert "secret" not in str(raised.value)
    assert len(api.seen(TOKENS)) == 1


async def test_the_cluster_says_whose_client_certificates_count(tmp_path: Path) -> None:
    trusted: list[str] = []

    answer = Answer(200, {"data": {"client-ca-file": "PEM", "other": "x"}})
    async with fake_client(tmp_path, FakeApi().on(CONFIG_MAP, answer)) as client:
        await ClusterClientCA(client, trusted.append).read()

    assert trusted == ["PEM"]


def refuse(text: str) -> None:
    raise ValueError(f"not a certificate: {text}")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(403, {"kind": "Status", "message": "forbidden"}), "403: forbidden"),
        (
            Answer(404, {"kind": "Status", "message": "not found"}),
            "there is no configmap kube-system/extension-apiserver-authentication",
        ),
        (Answer(200, {"data": {}}), "has no client-ca-file"),
        (Answer(200, {"data": {"client-ca-file": 5}}), "configmap kube-system/extension-apiserver-authentication"),
        (Answer(200, {"data": {"client-ca-file": "garbage"}}), "not a certificate: garbage"),
    ],
)
async def test_authorities_that_cannot_be_read_are_none(tmp_path: Path, answer: Answer, said: str) -> None:
    async with fake_client(tmp_path, FakeApi().on(CONFIG_MAP, answer)) as client:
        with pytest.raises(ClusterError, match=said):
            await ClusterClientCA(client, refuse).read()
