"""The page on this machine: for who started the command, through the API server, and for nobody else."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from scheduler.api.reviews import PASSED_ON
from scheduler.commands.local_page import COOKIE, LIMITS, LocalPage, served
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.services.service_proxy import RunningScheduler
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.serve.port.limits import Limits
from tests.fakes import FakeClock
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client

TOKEN = "POST /api/v1/namespaces/kube-system/serviceaccounts/loadmaster-explain/token"
PROXY = "GET /api/v1/namespaces/kube-system/services/https:loadmaster:metrics/proxy/"
INDEX = f"{PROXY}debug/page/"
NODE = f"{PROXY}debug/page/node"


def an_api() -> FakeApi:
    api = FakeApi().on(TOKEN, Answer(201, {"status": {"token": "for-us"}}))
    api.on(INDEX, Answer(200, "the page"))
    api.on(NODE, Answer(200, {"name": "n"}))
    return api


def refusal(status: int, message: str) -> Answer:
    return Answer(status, {"kind": "Status", "message": message})


class Browser:
    """Sends requests, and keeps the cookie."""

    def __init__(self, page: LocalPage, session: aiohttp.ClientSession) -> None:
        self.page, self.place, self.cookie = page, "", ""
        self._session, self._port = session, page.port

    async def get(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", cookie: str | None = None
    ) -> tuple[int, str, Mapping[str, str]]:
        sent = {"Cookie": f"{COOKIE}={self.cookie if cookie is None else cookie}", **(headers or {})}
        url = f"http://127.0.0.1:{self._port}{path}"
        async with self._session.request(method, url, headers=sent, allow_redirects=False) as answer:
            return answer.status, await answer.text(), answer.headers.copy()

    async def open(self) -> Mapping[str, str]:
        """Open the address that was printed."""
        parts = urlsplit(self.page.url)
        status, _, headers = await self.get(f"{parts.path}?{parts.query}")
        assert status == 303
        self.place = headers["Location"].removesuffix("debug/page/")
        self.cookie = SimpleCookie(headers["Set-Cookie"])[COOKIE].value
        return headers


@asynccontextmanager
async def browsing(
    directory: Path, api: FakeApi, clock: FakeClock | None = None, limits: Limits = LIMITS
) -> AsyncIterator[Browser]:
    metrics = Metrics()
    async with fake_client(directory, api) as client:
        page = LocalPage(RunningScheduler(client, "kube-system", "loadmaster", now=clock or FakeClock()), limits)
        async with (
            served(page, 0, metrics, Tasks(metrics)),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        ):
            yield Browser(page, session)


async def test_the_printed_address_leads_to_the_page_and_queries_are_passed_on_as_they_are(tmp_path: Path) -> None:
    api = an_api().on(f"{PROXY}debug/explain", Answer(404, {"found": False, "state": "unknown"}))
    async with browsing(tmp_path, api) as browser:
        headers = await browser.open()
        status, text, _ = await browser.get(f"{browser.place}debug/page/")
        assert (await browser.get(f"{browser.place}debug/page/node?name=a%26b%3D%2F%23"))[0] == 200
        gone = await browser.get(f"{browser.place}debug/explain?namespace=a&name=b")

    assert (status, text) == (200, '"the page"')
    cookie = headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", f"Path={browser.place}"))
    assert api.seen(INDEX)[0].headers[PASSED_ON] == "Bearer for-us"
    assert api.seen(NODE)[0].query == {"name": "a&b=/#"}
    assert gone[:2] == (404, '{"found": false, "state": "unknown"}'), "a pod that is not there is an answer"


@pytest.mark.parametrize(
    ("path", "headers", "method", "status"),
    [
        pytest.param("{place}debug/page/", {"Host": "evil.example"}, "GET", 421, id="a name that leads here"),
        pytest.param("{place}debug/page/", {"Host": "127.0.0.1:1"}, "GET", 421, id="another port"),
        pytest.param("{place}debug/page/", {"Host": "127.0.0.1"}, "GET", 421, id="no port"),
        pytest.param("/open?token=guessed", {}, "GET", 403, id="a wrong token"),
        pytest.param("/open", {}, "GET", 403, id="no token"),
        pytest.param("/open?token=%F0%9F%92%A9", {}, "GET", 403, id="a token that is no ASCII"),
        pytest.param("{place}debug/page/", {"Sec-Fetch-Site": "cross-site"}, "GET", 403, id="another site"),
        pytest.param("{place}debug/page/", {"Sec-Fetch-Site": "same-site"}, "GET", 403, id="another port's site"),
        pytest.param("/debug/page/", {}, "GET", 403, id="without its place"),
        pytest.param("/", {}, "GET", 403, id="the root"),
        pytest.param("{place}debug/page/", {}, "POST", 405, id="a change"),
        pytest.param("{place}debug/flags/v", {}, "GET", 404, id="another page of the scheduler"),
        pytest.param("{place}debug/page/../../metrics", {}, "GET", 404, id="a way up"),
        pytest.param("{place}debug/page/%2e%2e%2fmetrics", {}, "GET", 404, id="a hidden way up"),
        pytest.param("{place}debug/page/node%3Fname=n", {}, "GET", 404, id="a hidden query"),
    ],
)
async def test_whatever_else_is_asked_for_reaches_no_scheduler(
    tmp_path: Path, path: str, headers: Mapping[str, str], method: str, status: int
) -> None:
    async with browsing(tmp_path, api := an_api()) as browser:
        await browser.open()

        assert (await browser.get(path.format(place=browser.place), headers, method))[0] == status
        assert api.requests == []


async def test_a_browser_leaves_out_port_80(tmp_path: Path) -> None:
    async with browsing(tmp_path, an_api()) as browser:
        await browser.open()
        browser.page.port = 80  # as far as it knows

        assert (await browser.get(f"{browser.place}debug/page/", {"Host": "127.0.0.1"}))[0] == 200


@pytest.mark.parametrize("cookie", ["", "guessed", "\u00e9"])
async def test_without_the_cookie_there_is_nothing(tmp_path: Path, cookie: str) -> None:
    async with browsing(tmp_path, api := an_api()) as browser:
        await browser.open()

        assert (await browser.get(f"{browser.place}debug/page/", cookie=cookie))[0] == 403
        assert api.requests == []


STANDS_BY = Answer(200, "standby", {"X-Loadmaster-Leading": "false"})
LEADS = Answer(200, "leader", {"X-Loadmaster-Leading": "true"})


@pytest.mark.parametrize("page", ["live", "node"])
@pytest.mark.parametrize(("answers", "shown"), [((STANDS_BY, LEADS), "leader"), ((STANDS_BY,), "standby")])
async def test_a_replica_that_stands_by_is_not_the_last_to_be_asked_if_another_leads(
    tmp_path: Path, page: str, answers: tuple[Answer, ...], shown: str
) -> None:
    async with browsing(tmp_path, an_api().on(f"{PROXY}debug/page/{page}", *answers)) as browser:
        await browser.open()

        assert (await browser.get(f"{browser.place}debug/page/{page}"))[1] == f'"{shown}"'


async def test_a_token_is_made_anew_before_it_ends(tmp_path: Path) -> None:
    clock = FakeClock()
    async with browsing(tmp_path, api := an_api(), clock) as browser:
        await browser.open()
        for seconds in (0, 470, 20):
            clock.advance(seconds)
            await browser.get(f"{browser.place}debug/page/")

    assert len(api.seen(TOKEN)) == 2


@pytest.mark.parametrize(
    ("answer", "status", "sentence"),
    [
        (refusal(503, "no endpoints"), 503, "kube-system/loadmaster leads to no running scheduler: no endpoints"),
        (refusal(404, 'services "loadmaster" not found'), 503, "kube-system/loadmaster is not there: services"),
        (refusal(403, "services is forbidden"), 403, "services is forbidden"),
        (refusal(401, "Unauthorized"), 401, "your credentials are not accepted any more: log in again"),
        (Answer(404, "404 page not found"), 404, "serves no page: start it with --page (in the chart: page.enabled"),
        (Answer(429, "too many streams are open"), 429, "too many streams are open"),
        (Answer(500, "<script>alert(1)</script>\x1b[2J"), 500, "<script>alert(1)</script>"),
        (Answer(302, "", {"Location": "https://evil.example/"}), 502, '""'),
        (LOST, 502, "cannot ask the API server"),
    ],
)
async def test_any_other_answer_is_one_sentence_of_plain_text(
    tmp_path: Path, answer: Answer, status: int, sentence: str
) -> None:
    api = FakeApi().on(TOKEN, Answer(201, {"status": {"token": "for-us"}}))
    api.on(INDEX, answer)
    async with browsing(tmp_path, api) as browser:
        await browser.open()
        got, text, headers = await browser.get(f"{browser.place}debug/page/")

        assert (got, headers["Content-Type"]) == (status, "text/plain; charset=utf-8")
        assert sentence in text
        assert headers["Content-Security-Policy"] == "default-src 'none'"
        assert "Location" not in headers
        with pytest.raises(ClusterError):
            await browser.page.check()


@pytest.mark.parametrize(
    ("answer", "status", "sentence"),
    [
        (refusal(404, "serviceaccounts not found"), 503, "there is no scheduler loadmaster in the namespace"),
        (refusal(403, "serviceaccounts/token is forbidden"), 403, "the Role loadmaster-explain allows it"),
        (refusal(401, "Unauthorized"), 401, "your credentials are not accepted any more"),
    ],
)
async def test_who_gets_no_token_is_told_why(tmp_path: Path, answer: Answer, status: int, sentence: str) -> None:
    async with browsing(tmp_path, FakeApi().on(TOKEN, answer)) as browser:
        await browser.open()
        got, text, _ = await browser.get(f"{browser.place}debug/page/")

        assert got == status
        assert sentence in text


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01\x02\x00", b"GET * HTTP/1.1\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"?\r\n\r\n"]
)
async def test_what_is_no_http_is_no_traceback_on_the_terminal(
    tmp_path: Path, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with browsing(tmp_path, an_api()) as browser:
        reader, writer = await asyncio.open_connection("127.0.0.1", browser.page.port)
        writer.write(said)
        assert (await reader.read()).startswith(b"HTTP/1.0 400")
        writer.close()

    assert caplog.records == []


async def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    async with browsing(tmp_path, an_api()) as browser:
        with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use"):
            async with served(browser.page, browser.page.port, Metrics(), Tasks(Metrics())):
                pass
