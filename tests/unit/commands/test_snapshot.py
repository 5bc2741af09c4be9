"""`loadmaster snapshot` against an API server that answers from a script."""

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scheduler.__main__ import main
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.identity import credentials
from scheduler.kube.informers import listing
from scheduler.snapshots.kept_fields import KINDS
from tests.unit.commands.scripted_api import Script, a_list, a_program, served, status
from tests.unit.kube.fake_api import HANGS, LOST, Answer, kubeconfig_text

PODS, NODES, LIMITS = "GET /api/v1/pods", "GET /api/v1/nodes", "GET /api/v1/limitranges"
METRICS = "GET /apis/metrics.k8s.io/v1beta1/nodes"


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}}


VERSION = Answer(body={"gitVersion": "v1.36.3"})
GOOD: Script = {
    "GET /version": VERSION,
    PODS: a_list("Pod", named("web")),
    NODES: a_list("Node", named("n1")),
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing long."""
    monkeypatch.setattr(listing, "TRIES", RetryPolicy(first=0.001, limit=0.001, tries=2))
    monkeypatch.setattr(listing, "SECONDS", 0.2)
    monkeypatch.setattr(credentials, "REJECTED_SECONDS", 0.01)


class Taken(NamedTuple):
    """How the command ended, where its file is, what it printed, and what the API server was asked."""

    code: int
    file: Path
    out: str
    err: str
    asked: Sequence[str]


Snapshot = Callable[..., Taken]


@pytest.fixture
def snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Snapshot:
    """The command, for an API server that is well except for this."""

    def run(script: Script, *options: str, program: Mapping[str, str] | None = None) -> Taken:
        file = tmp_path / "out.json.gz"
        with served(tmp_path, {**GOOD, **script}) as (api, kubeconfig):
            if program is not None:
                kubeconfig.write_text(kubeconfig_text(api.url, exec=program))
            code = main(["snapshot", f"--kubeconfig={kubeconfig}", f"--out={file}", *options])
        return Taken(code, file, *capsys.readouterr(), api.asked)

    return run


def content_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return content


def names_in(path: Path) -> list[str]:
    return [each["metadata"]["name"] for each in content_of(path)["items"]]


def test_a_snapshot_says_of_what_it_is(snapshot: Snapshot) -> None:
    taken = snapshot({})

    content = content_of(taken.file)
    header = content["snapshot"]
    assert (header["version"], header["server"], header["anonymised"]) == (1, "v1.36.3", False)
    assert content["leftOut"] == [], "kinds that are not served are no problem"
    assert (taken.code, taken.out) == (0, "")
    assert taken.err == f"{taken.file}: 2 objects of 2 kinds in 1 KB, of an API server v1.36.3\n"


def test_it_is_read_page_by_page(snapshot: Snapshot) -> None:
    pages = (a_list("Pod", named("a"), more="2 /&"), a_list("Pod", named("b"), named("c")))
    taken = snapshot({PODS: pages})

    assert (taken.code, names_in(taken.file)) == (0, ["a", "b", "c", "n1"])
    assert "GET /api/v1/pods?limit=500&continue=2%20/%26" in taken.asked


def test_the_snapshot_is_what_simulate_reads(snapshot: Snapshot, capsys: pytest.CaptureFixture[str]) -> None:
    amounts = {"cpu": "1", "pods": "9"}
    node = named("n1") | {"status": {"allocatable": amounts}}
    pod = named("web") | {"spec": {"schedulerName": "loadmaster", "containers": [{"name": "c"}]}}
    taken = snapshot({PODS: a_list("Pod", pod), NODES: a_list("Node", node)})

    assert main(["simulate", str(taken.file), "--output=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(pod["name"], pod["node"]) for pod in document["pods"]] == [("web", "n1")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.without], ids=lambda kind: kind.name)
def test_a_kind_that_may_not_be_read_is_named_with_what_that_means(
    snapshot: Snapshot, capsys: pytest.CaptureFixture[str], kind: Any
) -> None:
    taken = snapshot({f"GET {kind.resource.path}": status(403, "forbidden for you")})

    why = f"listing {kind.resource.name}: 403: forbidden for you; in a simulation, {kind.without}"
    assert (taken.code, content_of(taken.file)["leftOut"][0]) == (0, {"kind": kind.name, "why": why})
    assert f"left out: {kind.name}: {why}\n" in taken.err
    assert main(["simulate", str(taken.file)]) == 0
    assert f"left out of the snapshot: {kind.name}: {why}" in capsys.readouterr().err


def test_deployments_of_which_the_replica_sets_are_not_known_make_no_pods_anew(snapshot: Snapshot) -> None:
    deployments = a_list("Deployment", named("web") | {"spec": {"template": {}}})
    script = {"GET /apis/apps/v1/replicasets": status(403, "no"), "GET /apis/apps/v1/deployments": deployments}
    taken = snapshot(script)

    assert {each["kind"] for each in content_of(taken.file)["leftOut"]} == {"ReplicaSet", "Deployment"}
    assert names_in(taken.file) == ["web", "n1"]


def test_measurements_that_are_out_of_order_are_left_out(snapshot: Snapshot) -> None:
    taken = snapshot({METRICS: status(503, "no endpoints")})

    assert taken.code == 0
    assert [each["kind"] for each in content_of(taken.file)["leftOut"]] == ["NodeMetrics"]


def test_a_list_that_became_too_old_goes_on_later_and_says_so(snapshot: Snapshot) -> None:
    expired = status(410, "too old", metadata={"continue": "later"})
    pages = (a_list("Pod", named("a"), more="2"), expired, a_list("Pod", named("b")))
    taken = snapshot({PODS: pages})

    (left_out,) = content_of(taken.file)["leftOut"]
    assert (taken.code, names_in(taken.file)) == (0, ["a", "b", "n1"])
    assert left_out == {
        "kind": "Pod",
        "why": "after 1 object the list is of a later moment: it was too long to be read at once",
    }


GONE = status(410, "too old")
FORGOTTEN_LATER = status(410, "too old", metadata={"continue": "later"})


@pytest.mark.parametrize(
    "forgotten", [(GONE,), (FORGOTTEN_LATER, FORGOTTEN_LATER)], ids=["once", "wherever it goes on"]
)
def test_a_list_that_is_forgotten_is_read_again(forgotten: tuple[Answer, ...], snapshot: Snapshot) -> None:
    taken = snapshot({PODS: (a_list("Pod", named("old"), more="2"), *forgotten, a_list("Pod", named("new")))})

    assert (taken.code, names_in(taken.file)) == (0, ["new", "n1"])
    assert "listing pods: too old; reading it again\n" in taken.err


def test_replica_sets_of_a_later_moment_cost_no_deployments(snapshot: Snapshot) -> None:
    sets = (a_list("ReplicaSet", named("a"), more="2"), FORGOTTEN_LATER, a_list("ReplicaSet", named("b")))
    deployments = a_list("Deployment", named("web") | {"spec": {"template": {}}})
    script: Script = {"GET /apis/apps/v1/replicasets": sets, "GET /apis/apps/v1/deployments": deployments}
    file = snapshot(script).file

    assert [each["kind"] for each in content_of(file)["leftOut"]] == ["ReplicaSet"]
    assert sorted(names_in(file)) == ["a", "b", "n1", "web", "web"]


def test_credentials_that_come_to_their_end_are_renewed(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "REJECTED_SECONDS", 10.0)
    pages = (a_list("Pod", named("a"), more="2"), status(401, "expired"), a_list("Pod", named("b")))
    taken = snapshot({PODS: pages}, program=a_program(tmp_path))

    assert (taken.code, names_in(taken.file)) == (0, ["a", "b", "n1"])
    assert (tmp_path / "runs").read_text().split() == ["run", "run"]
    assert taken.err.splitlines()[0] == "listing pods: expired; trying again"


def test_an_anonymised_snapshot_does_not_tell_who_took_it_or_who_built_the_api_server(snapshot: Snapshot) -> None:
    refused = status(403, 'User "ada@corp.example" cannot list resource "limitranges"')
    built = Answer(body={"gitVersion": "v1.36.3-corp.7+abc"})
    taken = snapshot({LIMITS: refused, "GET /version": built}, "--anonymise")

    content = content_of(taken.file)
    why = "HTTP 403; in a simulation, new pods get none of its requests and limits"
    assert (taken.code, content["leftOut"]) == (0, [{"kind": "LimitRange", "why": why}])
    assert "ada@corp.example" in taken.err
    assert content["snapshot"]["server"] == "v1.36.3"


@pytest.mark.parametrize(
    "trouble",
    [status(429, "too many requests"), status(500, "etcd is away"), status(503, "starting"), HANGS],
    ids=["429", "500", "503", "hangs"],
)
def test_trouble_that_passes_is_waited_out(trouble: Answer, snapshot: Snapshot) -> None:
    taken = snapshot({PODS: (trouble, a_list("Pod", named("web")))})

    assert (taken.code, names_in(taken.file)) == (0, ["web", "n1"])
    assert "; trying again\n" in taken.err


def test_an_object_that_cannot_be_read_costs_itself(snapshot: Snapshot) -> None:
    taken = snapshot({PODS: a_list("Pod", 7, named("web"))})

    assert (taken.code, names_in(taken.file)) == (0, ["web", "n1"])
    assert content_of(taken.file)["leftOut"] == [{"kind": "Pod", "why": "1 object cannot be read"}]


class Bad(NamedTuple):
    """What an API server answers, and the lines that are told; the last one ends it."""

    what: str
    script: Script
    problem: str


AGAIN = "; trying again"
NOTHING = "; no snapshot was written"
FORGOTTEN = (a_list("Pod", named("a"), more="2"), status(410, "too old")) * 3


def of_limits(what: str, answer: Answer, problem: str) -> Bad:
    """What comes in the place of one of the lists."""
    return Bad(what, {LIMITS: answer}, f"listing limitranges: {problem}")


def with_limits(**body: Any) -> Answer:
    return Answer(200, {"kind": "LimitRangeList", **body})


BAD = (
    Bad("no right to list pods", {PODS: status(403, "no")}, "listing pods: 403: no; a simulation needs pods"),
    Bad("nor nodes", {NODES: status(403, "no")}, "listing nodes: 403: no; a simulation needs nodes"),
    Bad("unknown to the server", {"GET /version": status(401, "who?")}, "asking the API server: 401: who?"),
    Bad("not let in", {"GET /version": status(403, "anonymous")}, "asking the API server: 403: anonymous"),
    Bad("a login that ends", {PODS: status(401, "who?")}, "listing pods: 401: who?; a simulation needs pods"),
    Bad("a list forgotten again and again", {PODS: FORGOTTEN}, "listing pods: too old"),
    of_limits("a login that ends later", status(401, "who?"), "401: who?"),
    of_limits(
        "a page that comes again and again",
        a_list("LimitRange", named("a"), more="2"),
        "after a page comes the same one again",
    ),
    of_limits("busy for ever", status(429, "slow down"), "429: slow down"),
    of_limits("no etcd", status(500, "etcd is away"), "500: etcd is away"),
    of_limits("a bad gateway", Answer(502, b"<html>Bad Gateway</html>"), "502: <html>Bad Gateway</html>"),
    of_limits("an error without a word", Answer(500, b""), "500: HTTP 500"),
    of_limits("a redirect", Answer(302, b"", {"Location": "https://login.example"}), "302: HTTP 302"),
    of_limits("no answer", LOST, "GET /api/v1/limitranges?limit=500: Server disconnected"),
    of_limits("a hanging server", HANGS, "GET /api/v1/limitranges?limit=500: no answer in time"),
    of_limits("HTML", Answer(200, b"<html>Please log in"), "JSON is malformed: invalid character (byte 0)"),
    of_limits("half a page", Answer(200, b'{"kind": "LimitRangeList", "items": [{'), "Input data was truncated"),
    of_limits(
        "a body that is cut",
        Answer(200, b'{"kind"', {"Content-Length": "100", "Connection": "close"}),
        "GET /api/v1/limitranges?limit=500: the server closed the connection before the whole answer had come",
    ),
    of_limits("another object", Answer(200, {"kind": "Status"}), "this is no list: Status"),
    of_limits("no kind", Answer(200, {}), "this is no list: it has no kind"),
    of_limits("items that are none", with_limits(items={}), "Expected `array | null`, got `object` - at `$.items`"),
    of_limits("a text as metadata", with_limits(metadata="a"), "Expected `object`, got `str` - at `$.metadata`"),
)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.what) for case in BAD])
def test_what_goes_wrong_is_one_sentence_and_nothing_is_written(case: Bad, snapshot: Snapshot, tmp_path: Path) -> None:
    taken = snapshot(case.script)

    *before, last = taken.err.splitlines()
    assert (taken.code, taken.out, last) == (2, "", case.problem + NOTHING)
    assert all(line.endswith((AGAIN, "; reading it again")) for line in before)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kubeconfig"]


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text("http://127.0.0.1:9"))

    assert main(["snapshot", f"--kubeconfig={kubeconfig}", f"--out={tmp_path / 'out'}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("cannot ask the API server: Cannot connect to host 127.0.0.1:9")
    assert line.endswith(NOTHING)


def test_an_answer_of_more_than_we_read_is_one_sentence(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.kube.http.client.MAX_ANSWER_BYTES", 1000)
    taken = snapshot({LIMITS: Answer(200, b" " * 2000)})

    assert taken.code == 2
    assert taken.err.splitlines()[-1] == f"listing limitranges: the answer has more than 1000 bytes{NOTHING}"


def test_a_cluster_that_no_simulation_reads_is_not_read_to_its_end(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.snapshots.file.MAX_BYTES", 2000)
    endless = tuple(a_list("Pod", named("a" * 100), more=f"{number}") for number in range(100))

    taken = snapshot({PODS: endless})

    assert (taken.code, taken.file.exists()) == (2, False)
    assert taken.err == "the cluster has more than 2000 bytes, which no simulation reads\n"


def test_a_list_that_is_begun_again_counts_once(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.snapshots.file.MAX_BYTES", 2000)
    first = a_list("Pod", *(named(f"p{i}") for i in range(10)), more="2")

    taken = snapshot({PODS: (first, GONE, first, a_list("Pod", named("b")))})

    assert (taken.code, len(names_in(taken.file))) == (0, 12)


class BadTarget(NamedTuple):
    """Where a snapshot shall go, and what is said; `DIR` stands for the directory."""

    out: str
    problem: str


TARGETS = (
    BadTarget("there", "DIR/there: it is there already; --force replaces it"),
    BadTarget("folder", "DIR/folder: this is a directory: name a file in it"),
    BadTarget("missing/a", "DIR/missing/a: cannot be written: No such file or directory"),
    BadTarget("there/a", "DIR/there/a: cannot be written: Not a directory"),
    BadTarget("link", "DIR/link: this is no ordinary file; --out - writes to standard output"),
    BadTarget("fifo", "DIR/fifo: this is no ordinary file; --out - writes to standard output"),
    BadTarget("/dev/full", "/dev/full: this is no ordinary file; --out - writes to standard output"),
    BadTarget("x" * 300, "DIR/" + "x" * 300 + ": cannot be written: File name too long"),
    BadTarget("a\0b", "DIR/a\\x00b: cannot be written: no name of a file"),
    BadTarget("", ".: this is a directory: name a file in it"),
)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.out[:20].replace("\0", "0")) for case in TARGETS])
def test_a_file_that_cannot_be_written_is_one_sentence(case: BadTarget, snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("there")
    os.mkfifo(tmp_path / "fifo")
    out = f"{tmp_path}/{case.out}" if case.out[:1] not in ("", "/") else case.out
    taken = snapshot({}, f"--out={out}")

    assert (taken.code, taken.err.replace(str(tmp_path), "DIR")) == (2, case.problem + "\n")
    assert (tmp_path / "there").read_text() == "mine"


def test_a_directory_in_which_nothing_may_be_written_is_said(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> tuple[int, str]:  # root may write everywhere
        raise PermissionError(13, "Permission denied", "out")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    taken = snapshot({})

    assert (taken.code, taken.err) == (2, f"{taken.file}: cannot be written: Permission denied\n")


def test_an_older_file_is_replaced_by_choice(snapshot: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "out.json.gz").write_text("old")
    taken = snapshot({}, "--force")

    assert (taken.code, names_in(taken.file)) == (0, ["web", "n1"])


def in_a_process(
    tmp_path: Path, out: str, stdout: Any, limit: int | None = None, pods: int = 500
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process that may write files of `limit` bytes."""
    many = a_list(
        "Pod", *({**named(f"web-{number}"), "spec": {"nodeName": os.urandom(99).hex()}} for number in range(pods))
    )
    with served(tmp_path, {**GOOD, PODS: many}) as (_, kubeconfig):
        return subprocess.run(
            [sys.executable, "-m", "scheduler", "snapshot", f"--kubeconfig={kubeconfig}", f"--out={out}"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )


@pytest.mark.parametrize(("limit", "pods"), [(10_000, 500), (1_000, 20)], ids=["while it is written", "at its end"])
def test_a_disk_that_gets_full_is_said_and_nothing_is_left(tmp_path: Path, limit: int, pods: int) -> None:
    done = in_a_process(tmp_path, f"{tmp_path}/out", subprocess.PIPE, limit, pods)

    assert (done.returncode, done.stderr.decode()) == (2, f"{tmp_path}/out: cannot be written: File too large\n")
    assert [each.name for each in tmp_path.iterdir()] == ["kubeconfig"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_left_of_a_command_that_is_ended(tmp_path: Path, number: int, code: int) -> None:
    with served(tmp_path, {**GOOD, NODES: HANGS}) as (api, kubeconfig):
        command = [sys.executable, "-m", "scheduler", "snapshot", f"--kubeconfig={kubeconfig}", f"--out={tmp_path}/out"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            assert api.is_hanging.wait(60)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (code, b"")
    assert [each.name for each in tmp_path.iterdir()] == ["kubeconfig"]


def test_a_pipe_gets_the_snapshot(tmp_path: Path) -> None:
    done = in_a_process(tmp_path, "-", subprocess.PIPE)

    assert done.returncode == 0
    assert len(json.loads(gzip.decompress(done.stdout))["items"]) == 501
    assert done.stderr.startswith(b"standard output: 501 objects of 2 kinds in ")


def test_a_full_disk_behind_standard_output_is_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = in_a_process(tmp_path, "-", full)

    assert (done.returncode, done.stderr) == (2, b"standard output: cannot be written: No space left on device\n")


def test_a_reader_that_goes_away_is_no_error_of_ours(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = in_a_process(tmp_path, "-", write)
    os.close(write)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_gets_no_snapshot(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    assert main(["snapshot", "--out=-"]) == 2
    assert capsys.readouterr().err == (
        "standard output: a snapshot is packed, and not for a terminal: --out names a file\n"
    )
