"""What `loadmaster run` leaves as the last lines of its log when it cannot start: a container's termination message."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.kube.fake_api import kubeconfig_text

pytestmark = pytest.mark.programs

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def last_lines(*options: str, **env: str) -> list[str]:
    """What it writes to standard error, where it ends with exit code 2."""
    command = [sys.executable, "-m", "scheduler", "run", *options]
    environment = {**os.environ, **env}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, env=environment)
    assert (ended.returncode, ended.stdout) == (2, "")
    return ended.stderr.splitlines()


@pytest.mark.parametrize("logging_format", ["text", "json"])
def test_a_wrong_configuration_ends_with_a_line_for_each_problem(tmp_path: Path, logging_format: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(HEADER + "profiles: [{schedulerNam: x}]\nparalelism: 3\n")

    lines = last_lines(f"--config={config}", f"--logging-format={logging_format}")

    assert lines[-2:] == [
        f"{config}:3: profiles[0].schedulerNam: unknown field; did you mean 'schedulerName'?",
        f"{config}:4: paralelism: unknown field; did you mean 'parallelism'?",
    ]


def test_a_configuration_that_is_missing_ends_with_its_path() -> None:
    assert last_lines("--config=/nowhere.yaml")[-1] == "/nowhere.yaml: cannot be read: No such file or directory"


def test_a_pod_without_a_token_ends_with_where_it_was_looked_for() -> None:
    if Path("/var/run/secrets/kubernetes.io/serviceaccount/token").exists():
        pytest.skip("runs in a pod that has a token")

    (line,) = last_lines("--secure-port=0", KUBERNETES_SERVICE_HOST="10.0.0.1", KUBERNETES_SERVICE_PORT="443")

    assert line.startswith("in-cluster service account: no token at /var/run/secrets/")


def test_a_port_that_is_taken_ends_with_its_address(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text("http://127.0.0.1:1"))

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        lines = last_lines(f"--kubeconfig={kubeconfig}", "--bind-address=127.0.0.1", f"--secure-port={port}")

    assert lines[-1] == f"cannot listen on 127.0.0.1:{port}: Address already in use"
