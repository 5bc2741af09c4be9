"""`loadmaster explain` of many kinds of pending pods, as a user without other rights; and what it suggests, works.

docs/explain-gallery.md shows what was seen. LOADMASTER_WRITE_PAGE=1 (`make explain-page`) writes it.
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.__main__ import main
from scheduler.api.decoding import convert
from scheduler.explain.documents import PodReport
from scheduler.explain.screen import Screen, lines_of
from tests.cluster.explain_kinds import KINDS, NAMESPACE, POD, PRIORITY_CLASSES, Kind
from tests.cluster.loadmaster import http_get, node_of, sum_of
from tests.cluster.proxied import asker, proxied
from tests.controlplane import ApiError, Client, Cluster, Component, ControlPlane, wait_until
from tests.controlplane.client import Object

PAGE: Final = Path(__file__).parents[2] / "docs" / "explain-gallery.md"
MARK: Final = "<!-- From here on `make explain-page` writes what a test has seen. -->\n"
IS_WRITING: Final = bool(os.environ.get("LOADMASTER_WRITE_PAGE"))

SOON: Final = 8.0
"""Seconds until a pod is bound after something that helps it; it may have to wait for the end of its backoff."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MORE: Final = re.compile(r"(?ms)^  (?:created [^\n]*|tried once)\n|; may be woken by.*?(?=\n  \S)|\s+preemption: .*\Z")
"""The parts of an answer that only the page's first section shows."""
_LIKE: Final = re.compile(r"one more node (?:of \S+, )?like (\S+?)(?:, but with another (\S+))?,? would do")
_HIGHER: Final = [
    {"op": "remove", "path": "/spec/priority"},
    {"op": "add", "path": "/spec/priorityClassName", "value": "system-cluster-critical"},
]


@pytest.fixture(scope="module")
def admin(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        client.create_many(PRIORITY_CLASSES)
        own.create_namespace(NAMESPACE)
        yield client


@pytest.fixture(scope="module")
def loadmaster(own: ControlPlane, admin: Client, address: str) -> Iterator[Component]:
    with proxied(own, admin, address) as process:
        yield process


@pytest.fixture(scope="module")
def user(own: ControlPlane) -> Path:
    return asker(own)


class Stage:
    """The cluster, with what a kind consists of."""

    def __init__(self, cluster: Cluster, api: Client, port: int, kind: Kind) -> None:
        self.cluster, self.api, self._port, self._kind = cluster, api, port, kind

    def set(self) -> None:
        """Create everything, the pending pod last, and return when the scheduler has said what it thinks of it."""
        kind = self._kind
        self.api.create_many(kind.nodes)
        for each in kind.others:
            self.api.create(each)
        running = sum(each["kind"] == "Pod" for each in kind.others)
        wait_until(lambda: self._known("nodes") == len(kind.nodes), 10, "the nodes are known")
        wait_until(lambda: self._known("pods") == running, 10, "the pods are known")
        self.api.create(kind.pod)
        if kind.is_tried:
            wait_until(lambda: self._waiting() == 1, 10, "the pod waits")

    def strike(self) -> None:
        """Delete everything."""
        self.api.delete_all("Pod", NAMESPACE)
        self.api.delete_all("Node")
        for each in self._kind.others:
            if each["kind"] != "Pod":
                kind = each["kind"] if each["apiVersion"] == "v1" else f"{each['apiVersion']}/{each['kind']}"
                self.api.delete(kind, each["metadata"]["name"], each["metadata"].get("namespace"))
        wait_until(lambda: self._known("nodes") == self._known("pods") == 0, 10, "the cluster is empty")

    def carry_out(self, suggestion: Object) -> None:
        """Do what is suggested, as an administrator would."""
        like = _LIKE.fullmatch(suggestion["text"])
        if like is not None:
            self._add_node_like(like[1], (like[2] or "").rstrip(","))
            if not self._kind.is_woken:
                self._replace_pod([])
        for command in filter(None, suggestion.get("command", "").split(" && ")):
            program, *arguments = shlex.split(command)
            assert program == "kubectl"
            self.cluster.kubectl(*arguments)
        patch = _HIGHER if suggestion["text"].startswith("give it a priority") else suggestion.get("patch")
        if patch:
            self._replace_pod(patch)
        assert like or suggestion.get("command") or patch, suggestion["text"]

    def node(self) -> str:
        """Return the pod's node, once it has one."""
        return wait_until(lambda: node_of(self._pod()), SOON, "the pod is bound")

    def _pod(self) -> Object:
        return self.api.get("Pod", POD, NAMESPACE)

    def _known(self, what: str) -> float:
        return self._figure("scheduler_cache_size", type=what)

    def _waiting(self) -> float:
        queues = ("unschedulable", "gated")
        return sum(self._figure("scheduler_pending_pods", queue=queue) for queue in queues)

    def _figure(self, name: str, **labels: str) -> float:
        """A metric, without parsing all the others: it is asked for often."""
        lines = http_get(self._port, "/metrics")[1].splitlines()
        return sum_of("\n".join(line for line in lines if line.startswith(name)) + "\n", name, **labels)

    def _add_node_like(self, name: str, key: str) -> None:
        node = next(node for node in self._kind.nodes if node["metadata"]["name"] == name)
        labels = node["metadata"]["labels"] | {"kubernetes.io/hostname": "node-8"} | ({key: "node-8"} if key else {})
        spec = {key: value for key, value in node.get("spec", {}).items() if key != "unschedulable"}
        self.api.create(node | {"metadata": node["metadata"] | {"name": "node-8", "labels": labels}, "spec": spec})

    def _replace_pod(self, patch: list[Object]) -> None:
        """Create the pod again with a patch: most of a pod's spec cannot be changed."""
        file = self.cluster.directory / "pending.json"
        file.write_text(json.dumps(self._pod()))
        local = ("patch", "--local", f"--filename={file}", "--type=json", f"--patch={json.dumps(patch)}", "-o=json")
        changed: Object = json.loads(self.cluster.kubectl(*local))
        self.api.delete("Pod", POD, NAMESPACE)
        meta = {key: changed["metadata"].get(key) for key in ("name", "namespace", "labels")}
        self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": changed["spec"]})


@contextmanager
def staged(stage: Stage) -> Iterator[None]:
    try:
        stage.set()
        yield
    finally:
        stage.strike()


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[str, str]]:
    """What is to be on the page, by title; it is written at the end if that is wanted and all is there."""
    seen: dict[str, str] = {}
    yield seen
    if IS_WRITING and len(seen) == len(KINDS):
        before = PAGE.read_text().partition(MARK)[0]
        PAGE.write_text(before + MARK + "".join(f"\n{seen[kind.title]}" for kind in KINDS))


def ask(user: Path, pod: str) -> tuple[int, dict[str, Any], str]:
    """Run the command in this process, and return its exit code, its answer as JSON, and what it says of errors."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["explain", f"{NAMESPACE}/{pod}", f"--kubeconfig={user}", "--output=json"])
    return code, json.loads(out.getvalue()), err.getvalue()


def section(kind: Kind, output: str) -> str:
    """The page's section about a kind: the first has the whole answer, the others the parts that differ."""
    body = _TIME.sub("2026-01-02T15:04:05Z", output).strip()
    if kind is not KINDS[0]:
        body = _MORE.sub("", body)
    if kind is KINDS[0] or kind.asked != POD:
        body = f"$ loadmaster explain {NAMESPACE}/{kind.asked}\n{body}"
    return f"## {kind.title}\n\n{kind.story}\n\n```text\n{body}\n```\n"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_a_pending_pod_is_explained_and_what_is_suggested_works(
    own: ControlPlane, admin: Client, loadmaster: Component, user: Path, seen: dict[str, str], kind: Kind
) -> None:
    stage = Stage(own, admin, loadmaster.port, kind)
    with staged(stage):
        code, document, said = ask(user, kind.asked)
        assert (code, document["found"]) == ((0, True) if kind.asked == POD else (1, False))
        output = "\n".join(lines_of(convert(document, PodReport), Screen())) if document["found"] else said
        seen[kind.title] = section(kind, output)
        suggestions = document.get("explanation", {}).get("suggestions", [])
        works = [carried_out(stage, each) for each in suggestions[:1]]
    for each in suggestions[1:]:
        with staged(stage):
            works.append(carried_out(stage, each))

    assert works == [""] * kind.helps
    assert IS_WRITING or seen[kind.title] in PAGE.read_text()


def carried_out(stage: Stage, suggestion: Object) -> str:
    """Return what is wrong with a suggestion; empty if it works."""
    try:
        stage.carry_out(suggestion)
        node = stage.node()
    except (ApiError, TimeoutError) as error:
        return f"{suggestion['text']}: {error}"
    is_any = node == "node-8" or suggestion["text"].startswith("give it a priority")
    return "" if is_any or node in suggestion["names"] else f"{suggestion['text']}: bound to {node}"


def test_the_command_prints_what_the_page_shows(
    own: ControlPlane, admin: Client, loadmaster: Component, user: Path, seen: dict[str, str]
) -> None:
    kind = next(kind for kind in KINDS if kind.title == "Taint")
    with staged(Stage(own, admin, loadmaster.port, kind)):
        command = [sys.executable, "-m", "scheduler", "explain", f"{NAMESPACE}/{POD}", f"--kubeconfig={user}"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert IS_WRITING or section(kind, answer.stdout) in PAGE.read_text()


def test_the_user_may_do_nothing_else(own: ControlPlane, user: Path) -> None:
    rights = own.kubectl(
        "auth", "can-i", "--list", "--namespace=kube-system", "--as=system:serviceaccount:default:asker"
    )
    assert "pods" not in rights.replace("podsecurity", "")
    assert "services/proxy" in rights


def test_the_page_has_no_other_kinds() -> None:
    titles = re.findall(r"^## (.+)$", PAGE.read_text().partition(MARK)[2], re.MULTILINE)
    assert IS_WRITING or titles == [kind.title for kind in KINDS]
