"""`/debug/explain`: who may ask, also through the API server's proxy, and what is answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scheduler.api.reviews import User
from scheduler.explain.documents import GroupReport, PodReport, ShareReport, SharesReport
from scheduler.serve.endpoints.explanations import MAX_WAITING, PATH, Explanations
from tests.unit.serve.serving import FakeReviews, Served, a_server

USER = User(username="system:serviceaccount:kube-system:loadmaster-explain")
WEB = f"{PATH}?namespace=default&name=web"
GROUP = f"{PATH}?namespace=default&podgroup"


class Knowing:
    """Knows one pod."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def about_pod_or_group(self, namespace: str, name: str) -> PodReport:
        self.asked += 1
        await self.answers.wait()
        return PodReport(namespace=namespace, name=f"{name}\ud800", found=name == "web", state="unschedulable")

    async def about_group(self, namespace: str, name: str) -> GroupReport:
        return GroupReport(namespace=namespace, name=name, found=name == "training", state="incomplete", leading=False)

    async def about_shares(self) -> SharesReport:
        return SharesReport(found=True, state="on", shares=[ShareReport(name="team-a", source="shares")])


@asynccontextmanager
async def served(knowing: Knowing | None = None) -> AsyncIterator[Served]:
    reviews = FakeReviews(
        {"for-us": USER, "for-all": USER}, audiences={"for-us": "loadmaster"}, allowed=[(USER.username, "get", PATH)]
    )
    queried = {PATH: Explanations(knowing or Knowing())}
    async with a_server(tokens=reviews, rights=reviews, queried=queried) as server:
        yield server


PASSED_ON = "X-Loadmaster-Authorization"


@pytest.mark.parametrize(
    ("query", "token", "headers", "status", "words"),
    [
        pytest.param(WEB, "for-all", {}, 200, '"name":"web\ufffd"', id="a pod"),
        pytest.param(f"{GROUP}=training", "for-all", {}, 200, '"kind":"PodGroup"', id="a group"),
        pytest.param(f"{GROUP}=other", "for-all", {}, 404, '"found":false', id="an unknown group"),
        pytest.param(f"{PATH}?shares=true", "for-all", {}, 200, '"name":"team-a"', id="the shares"),
        pytest.param(WEB, "", {PASSED_ON: "Bearer for-us"}, 200, "web", id="a token for us through the API server"),
        pytest.param(WEB, "", {PASSED_ON: "Bearer for-all"}, 401, "", id="a token of the API server in that header"),
        pytest.param(WEB, "", {}, 403, "", id="nobody in particular"),
        pytest.param(f"{PATH}?namespace=default&name=other", "for-all", {}, 404, '"found":false', id="an unknown pod"),
        pytest.param(f"{PATH}?name=web", "for-all", {}, 400, "namespace=NAMESPACE&name=POD\n", id="half a question"),
    ],
)
async def test_who_asks_and_for_what_decides_the_answer(
    query: str, token: str, headers: dict[str, Any], status: int, words: str
) -> None:
    async with served() as server:
        answer = await server.answer(query, token, **headers)
        assert answer.status == status
        assert words in (text := await answer.text())
        assert (answer.headers.get("X-Loadmaster-Leading") == "false") is ('"leading":false' in text)


async def test_questions_beyond_the_room_are_refused() -> None:
    knowing = Knowing()
    knowing.answers.clear()
    async with served(knowing) as server:
        waiting = [asyncio.create_task(server.get(WEB, "for-all")) for _ in range(MAX_WAITING)]
        while knowing.asked < MAX_WAITING:  # noqa: ASYNC110  they come over sockets
            await asyncio.sleep(0)
        assert (await server.get(WEB, "for-all"))[0] == 429
        knowing.answers.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200] * MAX_WAITING
