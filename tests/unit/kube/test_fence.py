"""The fence: whoever does not lead sends no write, however far the call has come."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler.kube.election.leadership import Leadership, boot_time
from scheduler.kube.http.client import Client, NotSent
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.process.metrics import Metrics
from tests.fakes import FakeClock
from tests.unit.kube.fake_api import Answer, FakeApi, credentials_of

ROOT = Path(__file__).parents[3]
PATH = "/api/v1/namespaces/a/pods/p/binding"


def a_write(*, fenced: bool = True) -> Operation:
    return Operation("POST", "pods/binding", CallLimit(10), 5.0, fenced=fenced)


async def a_client(directory: Path, server: str, may_write: Callable[[], bool], **cluster: str) -> Client:
    return Client(await credentials_of(directory, server, cluster), Metrics(), may_write)


@pytest.mark.parametrize("through_proxy", [False, True])
async def test_a_write_of_whoever_does_not_lead_is_certainly_not_sent(tmp_path: Path, through_proxy: bool) -> None:
    api, leads = FakeApi(), True
    api.on(f"POST {PATH}", Answer(201))
    async with api.server:
        url = str(api.server.make_url("/"))
        server, cluster = ("http://api.example.com", {"proxy-url": url}) if through_proxy else (url, {})
        async with await a_client(tmp_path, server, lambda: leads, **cluster) as client:
            sent = await client.attempt(a_write(), PATH, b'{"kind":"Binding"}')
            leads = False
            refused = await client.attempt(a_write(), PATH, b'{"kind":"Binding"}')
            leads = True
            again = await client.attempt(a_write(), PATH, b'{"kind":"Binding"}')

    assert (sent.status, again.status) == (201, 201)
    assert isinstance(refused, NotSent)
    assert refused.message == f"POST {PATH}: this replica does not lead"
    assert [request.body for request in api.requests] == [{"kind": "Binding"}] * 2


async def test_the_question_comes_after_the_connection_was_made(tmp_path: Path) -> None:
    api = FakeApi().on(f"POST {PATH}", Answer(201))
    questions: list[bool] = []

    def may_write() -> bool:
        questions.append(_is_connected(client))
        return False

    async with api.server:
        client = await a_client(tmp_path, str(api.server.make_url("/")), may_write)
        async with client:
            outcome = await client.attempt(a_write(), PATH, b"{}")

    assert isinstance(outcome, NotSent)
    assert questions == [True]


def _is_connected(client: Client) -> bool:
    connections = client._connections
    return connections is not None and connections.open == 1


async def test_reads_and_what_every_replica_may_write_pass(tmp_path: Path) -> None:
    api = FakeApi().on(f"POST {PATH}", Answer(201))
    api.on(f"GET {PATH}", Answer(200))
    async with api.server:
        client = await a_client(tmp_path, str(api.server.make_url("/")), lambda: False)
        async with client:
            read = await client.attempt(Operation("GET", "pods", CallLimit(1)), PATH)
            written = await client.attempt(a_write(fenced=False), PATH, b"{}")

    assert (read.status, written.status) == (200, 201)


def test_only_leases_events_and_reviews_are_written_by_every_replica() -> None:
    sources = (ROOT / "scheduler").rglob("*.py")
    unfenced = {path.name: re.findall(r"Operation\([^)]*fenced=False", path.read_text()) for path in sources}

    assert {name for name, found in unfenced.items() if found} <= {
        "events.py",
        "single_events.py",
        "lease_lock.py",
        "permissions.py",
        "reviews.py",
    }


async def test_leadership_lasts_until_its_time_and_never_comes_back() -> None:
    clock = FakeClock(100.0)
    leadership = Leadership(clock)
    before = leadership.is_held()

    assert leadership.extend(110.0)
    clock.advance(9.9)
    assert leadership.is_held()
    assert leadership.extend(115.0)
    clock.advance(5.1)
    assert (before, leadership.is_held(), leadership.ended.is_set()) == (False, False, False)

    assert not leadership.extend(200.0), "the answer came too late"
    assert leadership.ended.is_set()
    assert not leadership.is_held()


async def test_a_renewal_that_is_over_when_its_answer_comes_begins_nothing() -> None:
    clock = FakeClock(100.0)
    leadership = Leadership(clock)

    assert not leadership.extend(100.0)
    assert not leadership.began.is_set()


def test_the_clock_runs_on_while_the_machine_sleeps() -> None:
    assert "CLOCK_BOOTTIME" in (ROOT / "scheduler/kube/election/leadership.py").read_text()
    assert boot_time() <= boot_time()
