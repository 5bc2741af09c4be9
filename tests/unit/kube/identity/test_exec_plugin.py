"""A program that gives credentials: whatever it does, it costs nobody anything but itself, and tells no secret."""

import asyncio
import base64
import json
import logging
import os
import pty
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from scheduler.framework.errors import ConfigError
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.identity import credentials as credentials_module
from scheduler.kube.identity import exec_plugin as module
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.identity.exec_plugin import ExecPlugin
from scheduler.process.logs import TextFormatter
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.fakes import FakeClock
from tests.unit.kube.fake_api import Answer, FakeApi, kubeconfig_text, until

V1 = "client.authentication.k8s.io/v1"
SECRET = "the-very-secret"


def an_answer(**status: Any) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": SECRET, **status}}


def a_program(directory: Path, script: str) -> str:
    program = directory / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def printing(directory: Path, output: Any) -> str:
    text = output if isinstance(output, str) else json.dumps(output)
    (directory / "output").write_text(text)
    return a_program(directory, f"cat {directory}/output")


def a_plugin(command: str, **config: Any) -> ExecPlugin:
    return ExecPlugin({"command": command, "apiVersion": V1, **config}, Path("/"), by_hand="loadmaster doctor")


async def problem_of(plugin: ExecPlugin) -> str:
    with pytest.raises(ConfigError) as raised:
        await plugin.run()
    (problem,) = raised.value.problems
    assert SECRET not in problem
    assert raised.value.__cause__ is None or SECRET not in str(raised.value.__cause__)
    return problem.partition("plugin' ")[2]


async def test_a_token_is_taken_with_its_end(tmp_path: Path) -> None:
    given = await a_plugin(printing(tmp_path, an_answer(expirationTimestamp="2026-01-31T12:00:00Z"))).run()

    assert (given.token, given.certificate, given.expires) == (SECRET, "", 1769860800.0)
    assert SECRET not in repr(given)


async def test_a_plugin_is_told_what_is_asked_of_it(tmp_path: Path) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO $X $*" > {tmp_path}/told; cat {tmp_path}/output'
    (tmp_path / "output").write_text(json.dumps(an_answer()))
    await a_plugin(a_program(tmp_path, script), args=["a", "b"], env=[{"name": "X", "value": "y"}]).run()

    told = (tmp_path / "told").read_text()

    assert told == f'{{"apiVersion":"{V1}","kind":"ExecCredential","spec":{{"interactive":false}}}} y a b\n'


async def test_a_plugin_with_provide_cluster_info_learns_of_the_cluster_what_client_go_says(tmp_path: Path) -> None:
    authority = trustme.CA().cert_pem.bytes()
    (tmp_path / "ca.crt").write_bytes(authority)
    (tmp_path / "output").write_text(json.dumps(an_answer()))
    program = a_program(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/told; cat {tmp_path}/output')
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "06e3", "kind": "Any"}}
    cluster = {
        "certificate-authority": "ca.crt",
        "tls-server-name": "api",
        "proxy-url": "http://proxy:3128",
        "extensions": [{"name": "other", "extension": 1}, extension],
    }
    plugin = {"command": program, "apiVersion": V1, "provideClusterInfo": True}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text("https://10.0.0.1:6443", cluster, exec=plugin))

    await load_credentials(str(kubeconfig))

    assert json.loads((tmp_path / "told").read_text())["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://10.0.0.1:6443",
            "tls-server-name": "api",
            "proxy-url": "http://proxy:3128",
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "config": {"audience": "06e3", "kind": "Any"},
        },
    }


def test_anchors_that_stand_for_more_than_a_variable_holds_are_a_problem() -> None:
    bomb: list[Any] = []
    for _ in range(60):
        bomb = [bomb, bomb]

    with pytest.raises(ConfigError, match="provideClusterInfo: more than 131072 bytes about the cluster"):
        ExecPlugin({"command": "x", "apiVersion": V1}, Path("/"), {"config": bomb})


async def test_where_there_is_no_such_program_the_hint_says_how_to_install_it() -> None:
    plugin = a_plugin("no-such-plugin", installHint="Get it at\n  https://example.com.\n")

    with pytest.raises(ConfigError) as raised:
        await plugin.run()

    (problem,) = raised.value.problems
    assert problem.endswith("'no-such-plugin' cannot be run: No such file or directory. Get it at https://example.com.")


@pytest.mark.programs
async def test_the_command_that_an_error_names_shows_why_the_program_failed(tmp_path: Path) -> None:
    script = 'echo "log in first, for $KUBERNETES_EXEC_INFO" >&2; exit 3'
    plugin = {"command": a_program(tmp_path, script), "apiVersion": V1}
    kubeconfig = tmp_path / "kube config"
    kubeconfig.write_text(kubeconfig_text("https://10.0.0.1:6443", exec=plugin))
    with pytest.raises(ConfigError) as raised:
        await load_credentials(str(kubeconfig), "main")
    (problem,) = raised.value.problems
    command = problem.partition("ended with exit code 3; to see why, run on a terminal: ")[2]

    shown = on_a_terminal([sys.executable, "-m", "scheduler", *shlex.split(command)[1:]])

    assert "log in first, for {" in shown
    assert "ended with exit code 3\r\n" in shown


def on_a_terminal(command: list[str]) -> str:
    """What a command prints there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True):
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # how Linux says that the last one has closed it
            while part := os.read(ours, 1 << 16):
                shown += part
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("is_terminal", [True, False])
async def test_what_a_plugin_says_of_errors_is_for_terminals_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with pytest.raises(ConfigError):
        await a_plugin(a_program(tmp_path, "echo log in first >&2; exit 1")).run()

    assert capfd.readouterr().err == ("log in first\n" if is_terminal else "")


async def test_a_path_is_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    printing(tmp_path, an_answer())

    given = await ExecPlugin({"command": "./plugin", "apiVersion": V1}, tmp_path).run()

    assert given.token == SECRET


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        pytest.param("", "printed no ExecCredential in JSON", id="nothing"),
        pytest.param(SECRET, "printed no ExecCredential in JSON", id="a bare token"),
        pytest.param(f'"{SECRET}"', "printed no ExecCredential in JSON", id="a text"),
        pytest.param(
            '{"status":{"token":"the-very-secret"},"x":' + "[" * 100_000, "printed no ExecCredential in JSON", id="deep"
        ),
        pytest.param('{"a":' * 5_000 + "1" + "}" * 5_000, f"printed no ExecCredential of {V1}", id="deep and whole"),
        pytest.param({**an_answer(), "status": {"token": 5}}, "printed no ExecCredential in JSON", id="a number"),
        pytest.param({**an_answer(), "kind": "Pod"}, f"printed no ExecCredential of {V1}", id="another kind"),
        pytest.param({**an_answer(), "apiVersion": "v1"}, f"printed no ExecCredential of {V1}", id="another version"),
        pytest.param({**an_answer(), "status": None}, "gave neither a token nor a certificate", id="no status"),
        pytest.param(an_answer(token=""), "gave neither a token nor a certificate", id="an empty token"),
        pytest.param(
            an_answer(clientCertificateData="x"), "gave only a certificate or a key, not both", id="half a pair"
        ),
        *(
            pytest.param(
                an_answer(expirationTimestamp=odd), "gave an expirationTimestamp that is no time", id=f"time {odd}"
            )
            for odd in (
                "soon",
                "",
                "2026-13-01T00:00:00Z",
                "2026-01-01",
                "99999-01-01T00:00:00Z",
                "2026-01-01T00:00:00",
            )
        ),
    ],
)
async def test_what_is_no_answer_is_a_problem(tmp_path: Path, output: Any, problem: str) -> None:
    assert await problem_of(a_plugin(printing(tmp_path, output))) == problem


async def test_a_program_that_fails_is_a_problem(tmp_path: Path) -> None:
    plugin = a_plugin(a_program(tmp_path, f"echo {SECRET}; echo {SECRET} >&2; exit 3"))

    assert await problem_of(plugin) == "ended with exit code 3; to see why, run on a terminal: loadmaster doctor"


async def test_a_program_that_a_signal_ends_is_told_by_the_name_of_the_signal(tmp_path: Path) -> None:
    plugin = a_plugin(a_program(tmp_path, "kill -KILL $$"))

    assert (await problem_of(plugin)).startswith("ended by the signal SIGKILL; to see why")


async def test_a_program_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    plugin = a_plugin(a_program(tmp_path, f"while :; do echo {SECRET * 50}; done"))

    assert await problem_of(plugin) == f"printed more than {module.MAX_OUTPUT} bytes and was ended"


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


async def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXEC_SECONDS", 0.5)
    pids = tmp_path / "pids"
    script = f"sleep 1000 & echo $! > {pids}.new; echo $$ >> {pids}.new; mv {pids}.new {pids}; sleep 1000"

    assert await problem_of(a_plugin(a_program(tmp_path, script))) == "took more than 0.5 s and was ended"

    running = [int(pid) for pid in pids.read_text().split()]
    await until(lambda: not any(map(is_running, running)))


async def test_a_run_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    plugin = a_plugin(a_program(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000"))
    run = asyncio.ensure_future(plugin.run())
    await until(pid.exists)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)

    await until(lambda: not is_running(int(pid.read_text())))


# --- as the source of credentials ---


class Story:
    """A client whose kubeconfig names a plugin."""

    def __init__(self, directory: Path, api: FakeApi) -> None:
        self.directory = directory
        self.api = api
        self.clock = FakeClock(1_769_860_800.0)
        self.kubeconfig = directory / "kubeconfig"
        self.runs = directory / "runs"

    def gives(self, script: str) -> None:
        a_program(self.directory, f"echo run >> {self.runs}; {script}")

    def prints(self, **status: Any) -> None:
        (self.directory / "output").write_text(json.dumps(an_answer(**status)))
        self.gives(f"cat {self.directory}/output")

    @property
    def times_run(self) -> int:
        return len(self.runs.read_text().split())

    async def load(self) -> Any:
        plugin = {"command": str(self.directory / "plugin"), "apiVersion": V1}
        self.kubeconfig.write_text(kubeconfig_text(str(self.api.server.make_url("/")), exec=plugin))
        return await load_credentials(str(self.kubeconfig), now=self.clock)


async def test_a_plugin_is_run_again_when_what_it_gave_is_about_to_expire(tmp_path: Path) -> None:
    api = FakeApi()
    async with api.server:
        story = Story(tmp_path, api)
        story.prints(expirationTimestamp="2026-01-31T13:00:00Z")  # in an hour
        credentials = await story.load()
        for seconds, runs in ((0, 1), (3_299, 1), (3_301, 2)):
            story.clock.time = 1_769_860_800.0 + seconds
            await credentials.refresh()
            assert story.times_run == runs, seconds


async def test_a_plugin_that_names_no_end_is_run_again_after_a_rejection_only(tmp_path: Path) -> None:
    api = FakeApi()
    async with api.server:
        story = Story(tmp_path, api)
        story.prints()
        credentials = await story.load()
        story.clock.advance(1e6)
        await credentials.refresh()
        assert story.times_run == 1
        await credentials.refresh(rejected=True)
        assert story.times_run == 2


async def test_a_plugin_that_hangs_holds_no_call_up_and_the_old_token_stays_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(credentials_module, "REJECTED_SECONDS", 0.05)
    api, operation = FakeApi(), Operation("POST", "pods", CallLimit(10), timeout=1.0)
    api.on("POST /x", Answer(401), Answer(200))
    async with api.server:
        story = Story(tmp_path, api)
        story.prints()
        credentials, tasks = await story.load(), Tasks(Metrics())
        story.gives("exec sleep 1000")
        tasks.start("credentials", credentials.keep_fresh())
        async with Client(credentials, Metrics()) as client:
            assert (await client.call(operation, "/x")).status == 401
            await until(lambda: story.times_run == 2)
            for _ in range(20):
                assert (await client.call(operation, "/x")).status == 200
        assert story.times_run == 2
        await tasks.close()

    assert {request.headers["Authorization"] for request in api.requests} == {f"Bearer {SECRET}"}
    assert SECRET not in "\n".join(TextFormatter().format(record) for record in caplog.records)
