"""`loadmaster explain` against an API server that answers from a script: whatever goes wrong is one clear sentence."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from plugins import IN_TREE
from scheduler.__main__ import main
from scheduler.commands import explaining
from scheduler.framework import Plugin
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.identity import credentials
from scheduler.kube.informers import listing
from scheduler.kube.services import service_proxy
from tests.unit.commands.scripted_api import Script, a_list, a_program, served, status
from tests.unit.kube.fake_api import HANGS, LOST, Answer, kubeconfig_text

TOKEN: Final = "POST /api/v1/namespaces/kube-system/serviceaccounts/loadmaster-explain/token"
EXPLAIN: Final = "GET /api/v1/namespaces/kube-system/services/https:loadmaster:metrics/proxy/debug/explain"
A_TOKEN: Final = Answer(201, {"status": {"token": "for-us"}})
FOUND: Final[dict[str, Any]] = {
    "found": True,
    "state": "unschedulable",
    "leading": True,
    "namespace": "shop",
    "name": "web",
}
SERVICE: Final = "the scheduler's Service kube-system/loadmaster"
NO_EXPLANATION: Final = f"{SERVICE} answered, but not with an explanation: is Loadmaster behind it?"
ODD: Final = "; is it of another version than this command? -o json prints it"
HERE: Final = "; deciding here, by what the cluster has now"
GONE: Final = "there is no pod shop/web"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing long."""
    monkeypatch.setattr(listing, "TRIES", RetryPolicy(first=0.001, limit=0.001, tries=2))
    monkeypatch.setattr(listing, "SECONDS", 0.9)
    monkeypatch.setattr(service_proxy, "_SECONDS", 0.9)
    monkeypatch.setattr(credentials, "REJECTED_SECONDS", 0.01)
    monkeypatch.setattr(explaining, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(explaining, "OUTAGE", RetryPolicy(first=0.001, limit=0.001, tries=4))


class Said(NamedTuple):
    """How the command ended, what it printed, and what the API server was asked."""

    code: int
    out: str
    err: str
    asked: Sequence[str]


Explain = Callable[..., Said]


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    """The command, of a scheduler that gives these answers behind an API server."""

    def run(script: Script, *options: str, pod: str = "shop/web", program: Mapping[str, str] | None = None) -> Said:
        with served(tmp_path, {TOKEN: A_TOKEN, **script}) as (api, kubeconfig):
            if program:
                kubeconfig.write_text(kubeconfig_text(api.url, exec=program))
            code = main(["explain", f"--kubeconfig={kubeconfig}", *options, "--", pod])
        return Said(code, *capsys.readouterr(), api.asked)

    return run


class Bad(NamedTuple):
    """What is answered, and what is said."""

    what: str
    script: Script
    said: str


def of_answer(what: str, answer: Answer, said: str) -> Bad:
    """What comes in the place of an explanation."""
    return Bad(what, {EXPLAIN: answer}, said)


def odd(what: str, said: str, **members: Any) -> Bad:
    """An explanation of another version."""
    said = f"what the scheduler answered cannot be shown: {said}{ODD}"
    return of_answer(f"odd: {what}", Answer(200, {**FOUND, **members}), said)


def of_token(what: str, answer: Answer, said: str) -> Bad:
    return Bad(f"token: {what}", {TOKEN: answer, EXPLAIN: Answer(200, FOUND)}, said)


NO_TOKEN: Final = "no token for asking"
UNREADABLE_TOKEN: Final = "the API server's token cannot be read"
REJECTED: Final = "the scheduler does not accept the token of loadmaster-explain; its log says why"
TOO_OLD: Final = f"{SERVICE} is of a scheduler that cannot explain: is it an older version?"
CUT_SHORT: Final = "the server closed the connection before the whole answer had come"
CUT: Final = Answer(200, b'{"found"', {"Content-Length": "100", "Connection": "close"})
NAMELESS: Final = Answer(200, {"found": True, "state": "x"})
NO_NAME: Final = f"what the scheduler answered cannot be shown: Object missing required field `namespace`{ODD}"
OBEYED: Final = "\x1b[31mred\nline"


def a_token(token: Any) -> Answer:
    return Answer(201, {"status": {"token": token}})


BAD: Final = (
    of_answer("HTML", Answer(200, b"<html>Please log in"), NO_EXPLANATION),
    of_answer("nothing", Answer(200, b""), NO_EXPLANATION),
    of_answer("a list", Answer(200, [FOUND]), NO_EXPLANATION),
    of_answer("another object", Answer(200, {"kind": "Pod"}), NO_EXPLANATION),
    of_answer("deep lists", Answer(200, b"[" * 100_000), NO_EXPLANATION),
    of_answer("half an answer", Answer(200, b'{"found": true, "state": "un'), NO_EXPLANATION),
    of_answer("500", status(500, "out of order"), f"{SERVICE} answered HTTP 500: out of order"),
    of_answer("429", status(429, "slow down"), f"{SERVICE} answered HTTP 429: slow down"),
    of_answer("a redirect", Answer(302, b"", {"Location": "https://login.example"}), f"{SERVICE} answered HTTP 302"),
    of_answer("a message that is a number", Answer(500, {"message": 7}), f"{SERVICE} answered HTTP 500"),
    of_answer("an escape sequence", status(500, OBEYED), f"{SERVICE} answered HTTP 500: \\x1b[31mred\\nline"),
    of_answer("a long message", status(500, "x" * 5000), f"{SERVICE} answered HTTP 500: {'x' * 300}"),
    of_answer("401", status(401, "who?"), REJECTED),
    of_answer("403", status(403, "services is forbidden"), "asking is not allowed: services is forbidden"),
    of_answer("403 without a word", Answer(403, b""), "asking is not allowed: HTTP 403"),
    of_answer("a page that is not there", Answer(404, b"404 page not found"), TOO_OLD),
    of_answer("no answer", LOST, "cannot ask the API server: Server disconnected"),
    of_answer("a hanging scheduler", HANGS, "cannot ask the API server: no answer within 0.9 s"),
    of_answer("a body that is cut", CUT, f"cannot ask the API server: {CUT_SHORT}"),
    of_answer("too much", Answer(200, b" " * 4000), "the answer has more than 2000 bytes"),
    odd("a number as state", "Expected `str`, got `int` - at `$.state`", state=7),
    odd("no count", "Object missing required field `count` - at `$.explanation.nodes`", explanation={"nodes": {}}),
    of_answer("odd: no name", NAMELESS, NO_NAME),
    of_token("403", status(403, "not you"), f"{NO_TOKEN}: not you; the Role loadmaster-explain allows it"),
    of_token("401", status(401, "who?"), f"{NO_TOKEN}: who?"),
    of_token("500", status(500, "etcd is away"), f"{NO_TOKEN}: etcd is away"),
    of_token("HTML", Answer(201, b"<html>"), f"{UNREADABLE_TOKEN}: JSON is malformed: invalid character (byte 0)"),
    of_token("a number", a_token(7), f"{UNREADABLE_TOKEN}: Expected `str`, got `int` - at `$.status.token`"),
    of_token("two lines", a_token("a\nb"), f"{UNREADABLE_TOKEN}: it is no text for a header"),
    of_token("an umlaut", a_token("ä"), f"{UNREADABLE_TOKEN}: it is no text for a header"),
    of_token("lost", LOST, f"{TOKEN}: {CUT_SHORT}"),
)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.what) for case in BAD])
def test_what_goes_wrong_is_one_sentence(case: Bad, explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.kube.http.client.MAX_ANSWER_BYTES", 2000 if case.what == "too much" else 1 << 20)

    assert explain(case.script)[:3] == (2, "", case.said + "\n")


NO_SCHEDULER: Final = f"{SERVICE} leads to no running scheduler"
NO_ACCOUNT: Final = "there is no scheduler loadmaster in the namespace kube-system: not found"
NOT_RUNNING: Final = (
    of_answer("503", status(503, "no endpoints"), f"{NO_SCHEDULER}: no endpoints"),
    of_answer("503 in HTML", Answer(503, b"<html>"), f"{NO_SCHEDULER}: HTTP 503"),
    of_answer("502", status(502, "bad gateway"), f"{NO_SCHEDULER}: bad gateway"),
    of_answer("an escape sequence", status(503, "\x1b[31m"), f"{NO_SCHEDULER}: \\x1b[31m"),
    of_answer("no Service", status(404, 'services "a" not found'), f'{SERVICE} is not there: services "a" not found'),
    of_token("no account", status(404, "not found"), NO_ACCOUNT),
)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.what) for case in NOT_RUNNING])
def test_without_a_scheduler_it_is_decided_here_and_said(case: Bad, explain: Explain) -> None:
    assert explain(case.script)[:3] == (1, "", f"{case.said}{HERE}\n{GONE}\n")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(403, "not you"), "listing nodes: 403: not you"),
        (status(500, "etcd is away"), "listing nodes: 500: etcd is away"),
        (status(410, "too old"), "listing nodes: 410: too old"),
        (Answer(200, b"<html>"), "listing nodes: JSON is malformed: invalid character (byte 0)"),
        (Answer(200, {"kind": "Status"}), "listing nodes: this is no list: Status"),
        (LOST, "listing nodes: GET /api/v1/nodes?limit=500: Server disconnected"),
        (HANGS, "listing nodes: GET /api/v1/nodes?limit=500: no answer in time"),
    ],
    ids=["403", "500", "410", "HTML", "no list", "lost", "hangs"],
)
def test_a_cluster_that_cannot_be_read_is_one_sentence(answer: Answer, said: str, explain: Explain) -> None:
    code, out, err, _ = explain({"GET /api/v1/nodes": answer}, "--from-cluster")

    *before, last = err.splitlines()
    assert (code, out, last) == (2, "", said)
    assert set(before) <= {f"{said.replace(': 500', '')}; trying again"}


def a_pod(name: str, scheduler: str = "loadmaster", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, **spec}, "status": {}}


def test_an_unknown_pod_is_told_with_names_that_may_be_meant(explain: Explain) -> None:
    said = explain({"GET /api/v1/pods": a_list("Pod", a_pod("web-1"), a_pod("postgres"))}, "--from-cluster")

    assert said[:3] == (1, "", f"{GONE}; did you mean shop/web-1?\n")


def test_a_pod_of_another_scheduler_is_told_with_the_name_that_may_be_meant(explain: Explain) -> None:
    said = explain({"GET /api/v1/pods": a_list("Pod", a_pod("web", "loadmastr"))}, "--from-cluster")

    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[1:3] == [
        "  its spec.schedulerName is 'loadmastr': did you mean 'loadmaster'?",
        "  this scheduler places pods of loadmaster",
    ]


A_GROUP: Final[dict[str, Any]] = {
    **{key: FOUND[key] for key in ("found", "leading", "namespace")},
    "kind": "PodGroup",
    "name": "training",
    "state": "incomplete",
    "text": "3 pods are needed at once, and there are 2",
    "waiting": [{"name": "w-0", "state": "gated"}, {"name": "w-1", "state": "gated"}],
}


@pytest.mark.parametrize(
    "named",
    [("podgroup/shop/training",), ("podgroups/shop/training",), ("pg/shop/training",), ("pg/training", "-nshop")],
)
def test_a_group_of_pods_is_asked_about_by_its_kind(named: Sequence[str], explain: Explain) -> None:
    said = explain({EXPLAIN: Answer(200, A_GROUP)}, *named[1:], pod=named[0])

    assert said.code == 0
    assert any(each.endswith("explain?namespace=shop&podgroup=training") for each in said.asked)
    assert said.out.splitlines() == [
        "shop/training  incomplete",
        "  3 pods are needed at once, and there are 2",
        "",
        "PODS WITHOUT A NODE",
        "  gated: 2 (w-0, w-1)",
    ]


def test_a_group_that_no_pod_names_is_not_found(explain: Explain) -> None:
    said = explain(
        {EXPLAIN: Answer(404, {**A_GROUP, "found": False, "near": ["shop/training2"]})}, pod="pg/shop/training"
    )

    assert said[:3] == (1, "", "no pod names the group shop/training; did you mean shop/training2?\n")


def test_a_group_is_watched_until_it_is_placed(explain: Explain) -> None:
    answers = (Answer(200, A_GROUP), Answer(200, {**A_GROUP, "state": "placed", "text": "", "waiting": []}))

    said = explain({EXPLAIN: answers}, "--watch", pod="podgroup/shop/training")

    assert (said.code, said.out.splitlines()[-1]) == (0, "shop/training  placed")


def test_replicas_of_which_none_leads_know_no_history(explain: Explain) -> None:
    said = explain({EXPLAIN: Answer(200, {**FOUND, "leading": False})})

    assert len([each for each in said.asked if "/proxy/" in each]) == service_proxy.TRIES
    assert (said.code, said.err) == (0, "no replica that was asked leads: none of them knows the pod's history\n")


def test_the_leader_is_asked_until_it_answers(explain: Explain) -> None:
    follower = Answer(200, {**FOUND, "leading": False})

    assert explain({EXPLAIN: (follower, follower, Answer(200, FOUND))})[:3] == (0, "shop/web  unschedulable\n", "")


BOUND: Final = Answer(200, {**FOUND, "node": "n1", "state": "bound"})
WATCHED: Final = "shop/web  unschedulable\nshop/web  bound\n"


def test_a_token_that_came_to_its_end_is_replaced_while_a_pod_is_watched(explain: Explain) -> None:
    said = explain({EXPLAIN: (Answer(200, FOUND), status(401, "expired"), BOUND)}, "--watch")

    assert (said.code, said.out, said.asked.count(TOKEN)) == (0, WATCHED, 2)


def test_watching_ends_with_the_pod(explain: Explain) -> None:
    gone = Answer(404, {**FOUND, "found": False})

    said = explain({EXPLAIN: (Answer(200, FOUND), Answer(200, FOUND), gone)}, "--watch")

    assert said[:3] == (1, "shop/web  unschedulable\n" * 2, f"{GONE}\n")


def test_watching_ends_where_the_scheduler_cannot_be_asked(explain: Explain) -> None:
    said = explain({EXPLAIN: (Answer(200, FOUND), status(403, "no more"))}, "--watch")

    assert (said.code, said.err) == (2, "asking is not allowed: no more\n")


def test_watching_outlives_a_scheduler_that_is_replaced(explain: Explain) -> None:
    away = (status(503, "no endpoints"), HANGS, status(500, "etcd is away"))

    said = explain({EXPLAIN: (Answer(200, FOUND), *away, BOUND)}, "--watch")

    assert (said.code, said.out) == (0, WATCHED)
    assert said.err.splitlines() == [
        f"{NO_SCHEDULER}: no endpoints; asking again",
        "cannot ask the API server: no answer within 0.9 s; asking again",
        f"{SERVICE} answered HTTP 500: etcd is away; asking again",
    ]


def test_watching_a_cluster_loads_plugins_once(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def registry(*_: object) -> Mapping[str, type[Plugin]]:
        loaded.append(1)
        return IN_TREE

    monkeypatch.setattr(explaining, "registry", registry)
    waits = a_list("Pod", a_pod("web", "nobody"))
    bound = a_list("Pod", a_pod("web", nodeName="n1"))

    said = explain({"GET /api/v1/pods": (waits, waits, bound)}, "--from-cluster", "--watch")

    assert (said.code, loaded) == (0, [1])
    assert said.out.splitlines()[-1] == "shop/web  runs on n1"


def test_watching_ends_where_no_answer_comes_any_more(explain: Explain) -> None:
    said = explain({EXPLAIN: (Answer(200, FOUND), status(503, "no endpoints"))}, "--watch")

    gone = f"{NO_SCHEDULER}: no endpoints"
    assert (said.code, said.err.splitlines()) == (2, [f"{gone}; asking again"] * 3 + [gone])


def test_credentials_that_have_come_to_their_end_are_renewed_while_a_pod_is_watched(
    explain: Explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "REJECTED_SECONDS", 10.0)
    script = {
        TOKEN: (A_TOKEN, status(401, "expired"), A_TOKEN),
        EXPLAIN: (Answer(200, FOUND), status(401, "expired"), BOUND),
    }

    assert explain(script, "--watch", program=a_program(tmp_path))[:3] == (0, WATCHED, "")
    assert (tmp_path / "runs").read_text().split() == ["run", "run"]


def test_json_is_ascii_and_nothing_that_a_terminal_obeys(explain: Explain) -> None:
    hostile = {**FOUND, "state": "\x9b31m \u202e ä", "about": ["\x1b]0;title\x07"]}

    code, out, *_ = explain({EXPLAIN: Answer(200, hostile)}, "--output=json")

    assert code == 0
    assert out.replace("\n", "").isprintable()
    assert out.isascii()
    assert json.loads(out) == hostile


@pytest.mark.parametrize("levels", [50, 900])
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_deep_answer_is_shown_or_one_sentence(levels: int, output: str, explain: Explain) -> None:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]

    code, out, err, _ = explain({EXPLAIN: Answer(200, {**FOUND, "more": deep})}, f"--output={output}")

    assert (code, bool(out), len(err.splitlines())) in ((0, True, 0), (2, False, 1))


def test_what_cannot_be_shown_is_printed_as_json(explain: Explain) -> None:
    said = explain({EXPLAIN: Answer(200, {"found": True, "state": 7})}, "--output=json")

    assert (said.code, said.out) == (0, '{\n  "found": true,\n  "state": 7\n}\n')


def test_names_of_others_do_not_reach_the_terminal_as_they_are(explain: Explain) -> None:
    said = explain({EXPLAIN: Answer(200, {**FOUND, "state": "\x1b[31m", "about": ["\x1b]0;title\x07"]})})

    assert (said.code, said.out) == (0, "shop/web  \\x1b[31m\n  \\x1b]0;title\\x07\n")


@pytest.mark.parametrize(
    ("pod", "options", "said"),
    [
        *((name, (), f"expected [NAMESPACE/]POD or podgroup/[NAMESPACE/]NAME, got '{name}'") for name in ("", "/web")),
        ("shop/", (), "expected [NAMESPACE/]POD or podgroup/[NAMESPACE/]NAME, got 'shop/'"),
        ("a/b/c", (), "'b/c' cannot be the name of a pod"),
        ("..", (), "'..' cannot be the name of a pod"),
        ("Web", (), "'Web' cannot be the name of a pod"),
        ("a\0b", (), "'a\\x00b' cannot be the name of a pod"),
        ("\udcff", (), "'\\udcff' cannot be the name of a pod"),
        ("käse", (), "'käse' cannot be the name of a pod"),
        ("x" * 300, (), f"'{'x' * 100}' cannot be the name of a pod"),
        ("web", ("--namespace=a?b",), "'a?b' cannot be the name of a namespace"),
        ("web", ("--service=../a",), "'../a' cannot be the name of a Service"),
        ("web", ("--service-namespace=%2e",), "'%2e' cannot be the name of a namespace"),
    ],
)
def test_what_cannot_be_a_name_is_said_before_anybody_is_asked(
    pod: str, options: tuple[str, ...], said: str, explain: Explain
) -> None:
    assert explain({}, *options, pod=pod) == (2, "", said + "\n", [])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"snapshot":{"version":9},"kind":"List"}', "f:1: a snapshot of version 9: this Loadmaster reads version 1"),
        ("kind: Pod\nmetadata: {name: p}\nspec: {priority: high}", "f:3: spec.priority: expected int, got str"),
    ],
)
def test_files_of_no_use_are_told_as_simulate_tells_them(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f"
    path.write_text(content)

    assert main(["explain", "web", "--from", str(path)]) == 2
    assert capsys.readouterr().err.replace(str(path), "f") == said + "\n"
