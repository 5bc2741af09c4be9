"""`loadmaster doctor`, and the first words of `loadmaster run`, against an API server that answers from a script."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.doctor import examination
from scheduler.doctor.checks import tables
from scheduler.kube.identity import credentials
from scheduler.kube.services import service_proxy
from tests.unit.commands.scripted_api import Script, served, status
from tests.unit.kube.fake_api import HANGS, LOST, Answer

VERSION = "GET /version"
BASE = "/api/v1/namespaces/kube-system"
PROXY = f"GET {BASE}/services/https:loadmaster:metrics/proxy"
REVIEWS = "POST /apis/authorization.k8s.io/v1"
TOKEN = f"POST {BASE}/serviceaccounts/loadmaster-doctor/token"


A_TOKEN = Answer(201, {"status": {"token": "t"}})
A_VERSION = Answer(body={"gitVersion": "v1.36.3"})
ASKED = (
    f"GET {BASE}/services/loadmaster",
    f"GET {BASE}/pods",
    f"GET {BASE}/configmaps/loadmaster",
    "GET /apis/apps/v1/namespaces/kube-system/deployments/loadmaster",
    "GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/loadmaster",
    "GET /apis/policy/v1/namespaces/kube-system/poddisruptionbudgets",
    "GET /api/v1/pods",
    "GET /api/v1/nodes",
    "GET /api/v1/services",
    "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
    f"{REVIEWS}/selfsubjectaccessreviews",
    f"{REVIEWS}/subjectaccessreviews",
    f"{PROXY}/metrics",
    f"{PROXY}/configz",
    f"{PROXY}/livez",
    f"{PROXY}/readyz",
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_proxy, "_SECONDS", 0.2)
    monkeypatch.setattr(credentials, "REJECTED_SECONDS", 0.01)
    monkeypatch.setattr(examination, "SECONDS", 1.0)
    monkeypatch.setattr(tables, "SETTLE_SECONDS", 0.0)


Doctor = Callable[..., tuple[int, str, str]]


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """The command: its exit code, and what it prints."""

    def run(script: Script, *options: str) -> tuple[int, str, str]:
        with served(tmp_path, {TOKEN: A_TOKEN, VERSION: A_VERSION, **script}) as (_, kubeconfig):
            code = main(["doctor", f"--kubeconfig={kubeconfig}", *options])
        return code, *capsys.readouterr()

    return run


ODD: dict[str, Answer] = {
    "HTML": Answer(200, b"<html>Please log in"),
    "nothing": Answer(200, b""),
    "null": Answer(200, None),
    "a list": Answer(200, [{"found": 1}]),
    "deep lists": Answer(200, b"[" * 100_000),
    "wrong types": Answer(200, {"metadata": 7, "spec": [], "items": {"a": 1}, "status": "x", "componentconfig": 9}),
    "odd items": Answer(200, {"items": [None, 7, {"metadata": {"name": [], "creationTimestamp": "soon"}}]}),
    "a time without a zone": Answer(200, {"spec": {"renewTime": "2026-01-01T00:00:00"}}),
    "an escape sequence": status(500, "\x1b[31mred\nline"),
    "a long message": status(403, "x" * 50_000),
    "no answer": LOST,
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_whatever_is_answered_it_costs_lines_and_nothing_else(answer: Answer, doctor: Doctor) -> None:
    code, out, err = doctor(dict.fromkeys(ASKED, answer))

    assert code in (0, 1)
    assert "\x1b" not in out
    assert "OK       versions      API server v1.36.3" in out
    assert "not checked" in out.splitlines()[-1]
    assert "Traceback" not in err


def test_a_list_that_never_ends_is_left(doctor: Doctor) -> None:
    pod = {"metadata": {"name": "a", "namespace": "x"}, "spec": {"schedulerName": "loadmaster"}}
    endless = Answer(200, {"kind": "PodList", "metadata": {"continue": "more"}, "items": [pod]})

    assert "API server v1.36.3" in doctor({"GET /api/v1/pods": endless, "GET /api/v1/nodes": endless})[1]


def test_a_scheduler_that_hangs_costs_its_own_lines(doctor: Doctor) -> None:
    _, out, _ = doctor({f"{PROXY}/metrics": HANGS, f"{PROXY}/configz": HANGS})

    assert "cannot ask the API server: no answer within 0.2 s" in " ".join(out.split())


@pytest.mark.parametrize("code", [401, 403])
def test_an_api_server_that_does_not_know_the_user_is_exit_code_2(code: int, doctor: Doctor) -> None:
    assert doctor({VERSION: status(code, "who?")}) == (2, "", f"asking the API server: {code}: who?\n")


def test_names_that_cannot_be_are_all_told_at_once(doctor: Doctor) -> None:
    code, _, err = doctor({}, "--service=A B", "--service-namespace=x/y", "--metrics-reader=prometheus")

    assert (code, len(err.splitlines())) == (2, 3)


def test_as_json_it_has_the_same(doctor: Doctor) -> None:
    document: dict[str, Any] = json.loads(doctor({}, "--output=json")[1])

    assert (document["namespace"], document["service"]) == ("kube-system", "loadmaster")
    assert {each["level"] for each in document["findings"]} <= {"ok", "warning", "problem", "unknown"}


@pytest.mark.programs
@pytest.mark.parametrize(
    ("version", "words"),
    [
        (Answer(body={"gitVersion": "v1.29.4"}), "the API server is v1.29.4, older than the oldest"),
        (status(403, "not for you"), ""),
        (Answer(body={"gitVersion": "v1.36.3"}), ""),
    ],
)
def test_a_start_names_an_old_api_server_and_all_that_is_missing(tmp_path: Path, version: Answer, words: str) -> None:
    script = {VERSION: version, f"{REVIEWS}/selfsubjectaccessreviews": Answer(201, {"status": {"allowed": False}})}
    with served(tmp_path, script) as (_, kubeconfig):
        command = [sys.executable, "-m", "scheduler", "run", f"--kubeconfig={kubeconfig}", "--secure-port=0"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 2, ended.stderr
    assert words in ended.stderr
    assert ("older than" in ended.stderr) == bool(words)
    assert '- {apiGroups: [""], resources: [pods/binding], verbs: [create]}' in ended.stderr.splitlines()
    assert "may not create pods/binding (core)" in ended.stderr.splitlines()
