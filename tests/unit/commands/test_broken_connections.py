"""The API server's connection is reset in the middle of an answer: nothing half is left, and what came is kept."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scheduler.__main__ import main
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.identity import credentials
from scheduler.kube.informers import listing
from scheduler.replay.trace.trace_file import is_as_recorded
from tests.fakes.trace import BEGINNING, member
from tests.unit.commands.scripted_api import Script, a_list, served
from tests.unit.kube.fake_api import Answer

pytestmark = pytest.mark.programs

HEAD = len("HTTP/1.1 200 OK\r\nContent-Length: 00\r\n\r\n")
PLACES = [
    pytest.param(0, id="before its first byte"),
    pytest.param(20, id="in its head"),
    pytest.param(HEAD, id="after its head"),
    pytest.param(HEAD + 10, id="in its body"),
    pytest.param(-1, id="before its last byte"),
]

PODS, NODES = "GET /api/v1/pods", "GET /api/v1/nodes"
SERVICE = "/api/v1/namespaces/kube-system/services/https:loadmaster:metrics/proxy/debug"
ACCOUNTS = "POST /api/v1/namespaces/kube-system/serviceaccounts"
TOKEN = Answer(201, {"status": {"token": "for-us"}})


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}}


GOOD: Script = {
    "GET /version": Answer(body={"gitVersion": "v1.36.3"}),
    PODS: (a_list("Pod", named("a"), more="2"), a_list("Pod", named("b"))),
    NODES: a_list("Node", named("n1")),
    f"{ACCOUNTS}/loadmaster-record/token": TOKEN,
    f"{ACCOUNTS}/loadmaster-explain/token": TOKEN,
}


def broken(answer: Answer, place: int) -> Answer:
    """The answer, of which so many bytes come; negative: but the last ones."""
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    whole = len(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n") + len(body)
    return replace(answer, breaks_after=place if place >= 0 else whole + place)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "TRIES", RetryPolicy(first=0.001, limit=0.001, tries=2))
    monkeypatch.setattr(credentials, "REJECTED_SECONDS", 0.01)


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command, for an API server that is well except for this."""

    def of(script: Script, *command: str) -> Ended:
        with served(tmp_path, {**GOOD, **script}) as (_, kubeconfig):
            code = main([*command, f"--kubeconfig={kubeconfig}"])
        return Ended(code, *capsys.readouterr())

    return of


def names_in(path: Path) -> list[str]:
    return [each["metadata"]["name"] for each in json.loads(gzip.decompress(path.read_bytes()))["items"]]


@pytest.mark.parametrize("place", PLACES)
def test_a_snapshot_whose_page_breaks_off_once_is_whole(place: int, tmp_path: Path, run: Run) -> None:
    first, second = a_list("Pod", named("a"), more="2"), a_list("Pod", named("b"))
    pages = (broken(first, place), first, broken(second, place), second)
    out = tmp_path / "out"

    code, _, err = run({PODS: pages}, "snapshot", f"--out={out}")

    *retries, last = err.splitlines()
    assert (code, names_in(out)) == (0, ["a", "b", "n1"])
    assert len(retries) <= 2, "on a connection that was in use before, the client asks anew by itself"
    assert all(line.startswith("listing pods: ") and line.endswith("trying again") for line in retries)
    assert "3 objects of 2 kinds" in last


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("request_", ["GET /version", PODS, NODES])
@pytest.mark.parametrize("is_there", [False, True])
def test_of_a_snapshot_that_always_breaks_off_nothing_is_left(
    request_: str, is_there: bool, place: int, tmp_path: Path, run: Run
) -> None:
    answers = GOOD[request_]
    last = answers[-1] if isinstance(answers, tuple) else answers
    before = answers[:-1] if isinstance(answers, tuple) else ()
    out = tmp_path / "out"
    if is_there:
        out.write_text("precious")

    said = run({request_: (*before, broken(last, place))}, "snapshot", f"--out={out}", "--force")

    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[-1].endswith("; no snapshot was written")
    assert "Traceback" not in said.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kubeconfig", *(["out"] if is_there else [])]
    assert not is_there or out.read_text() == "precious"


DECISIONS = member(("decide", 900, "a"), ("decide", 1_500, "b"))
MORE = member(("decide", 2_000, "c"), ("decide", 3_000, "d"))
TRACE = Answer(body=BEGINNING + DECISIONS + MORE, headers={"Content-Type": "application/gzip"})
TRACE_HEAD = len(f"HTTP/1.1 200 OK\r\nContent-Length: {len(TRACE.body)}\r\n\r\n")


@pytest.mark.parametrize("of_the_next", [0, 1, len(MORE) // 2, len(MORE) - 1])
def test_a_recording_that_breaks_off_has_what_came_and_says_why_it_ended(
    of_the_next: int, tmp_path: Path, run: Run
) -> None:
    place = TRACE_HEAD + len(BEGINNING + DECISIONS) + of_the_next
    out = tmp_path / "out"

    said = run({f"GET {SERVICE}/record": broken(TRACE, place)}, "record", f"--out={out}")

    lines = [json.loads(line) for line in gzip.decompress(out.read_bytes()).splitlines()]
    assert said.code == 0
    assert [line[0] for line in lines[1:]] == ["begin", "decide", "decide", "end", "sum"]
    assert lines[-2][2].startswith("the connection to the scheduler was lost: ")
    assert is_as_recorded(str(out))
    assert "2 decisions in 1.5 s; it ended because the connection to the scheduler was lost" in said.out


@pytest.mark.parametrize("place", [0, 20, TRACE_HEAD, TRACE_HEAD + 10])
def test_of_a_recording_that_breaks_off_before_anything_came_nothing_is_left(
    place: int, tmp_path: Path, run: Run
) -> None:
    out = tmp_path / "out"

    said = run({f"GET {SERVICE}/record": broken(TRACE, place)}, "record", f"--out={out}")

    assert (said.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("place", PLACES)
def test_an_explanation_that_breaks_off_is_one_sentence(place: int, run: Run) -> None:
    answer = Answer(
        body={"found": True, "state": "unschedulable", "namespace": "default", "name": "a", "more": "x" * 99}
    )

    said = run({f"GET {SERVICE}/explain": broken(answer, place)}, "explain", "a")

    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("cannot ask the API server: ")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", [["simulate", "--from-cluster"], ["explain", "a", "--from-cluster"]])
def test_a_cluster_that_cannot_be_read_to_its_end_decides_nothing(command: list[str], place: int, run: Run) -> None:
    said = run({NODES: broken(a_list("Node", named("n1")), place)}, *command)

    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[-1].startswith("listing nodes: ")
    assert "Traceback" not in said.err


@pytest.mark.parametrize("command", [["simulate", "--from-cluster"], ["explain", "a", "--from-cluster"]])
def test_a_list_without_an_end_ends_with_the_memory(
    command: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages_left = iter([None] * 20)

    def check() -> None:
        if next(pages_left, MemoryError) is MemoryError:
            raise MemoryError

    monkeypatch.setattr(listing, "check_memory", check)
    endless = tuple(a_list("Pod", named("a"), more=f"{number}") for number in range(100))

    said = run({PODS: endless}, *command)

    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[-1].startswith("out of memory: this process may have ")


def test_an_answer_that_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, run: Run) -> None:
    bomb = Answer(body=gzip.compress(b" " * (200 << 20)), headers={"Content-Encoding": "gzip"})
    tracemalloc.start()

    code, _, err = run({NODES: bomb}, "snapshot", f"--out={tmp_path / 'out'}")
    _, peak = tracemalloc.get_traced_memory()

    tracemalloc.stop()
    said = err.splitlines()[-1]
    assert code == 2
    assert said.startswith("listing nodes: ")
    assert said.endswith("; no snapshot was written")
    assert peak < 150 << 20
