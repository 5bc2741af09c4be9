"""What tests may ask of a cluster: one that is built here (`ControlPlane`, which can do more), kind, or simulated."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from tests.controlplane.build import find_binaries
from tests.controlplane.client import AsyncClient
from tests.controlplane.credentials import kubeconfig, write_private
from tests.controlplane.kubeconfig import Connection
from tests.controlplane.processes import Component, Program, Supervisor
from tests.controlplane.sync import Client

T = TypeVar("T")

GROWTH: Final = 1.1
LONGEST_PAUSE: Final = 0.2
"""Seconds between two looks of a test that waits for more than a second."""


class KubectlError(Exception):
    """kubectl ended with a code other than 0. The text has the command and what it wrote to standard error."""


class Cluster:
    """A Kubernetes cluster with an administrator's kubeconfig, and processes that end with it.

    A context manager: it starts on entering, and on leaving ends every process started through it and removes its
    temporary directory. The same happens if this process ends in another way, SIGKILL included.
    """

    def __init__(self) -> None:
        self._supervisor: Supervisor | None = None

    def __enter__(self) -> Self:
        self._supervisor = Supervisor(Path(tempfile.mkdtemp(prefix="loadmaster-cluster-")))
        try:
            self._start()
        except BaseException:  # KeyboardInterrupt, too: nothing may stay behind
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        """Make the cluster answer."""
        raise NotImplementedError

    def close(self) -> None:
        """End every process started here and remove the directory. May be called twice."""
        if self._supervisor:
            directory = self._supervisor.directory
            self._supervisor.close()
            shutil.rmtree(directory, ignore_errors=True)  # if the supervisor was killed

    @property
    def supervisor(self) -> Supervisor:
        """The owner of this cluster's processes."""
        if self._supervisor is None:
            raise RuntimeError("the cluster is not started: use it in a `with` statement")
        return self._supervisor

    @property
    def directory(self) -> Path:
        """The temporary directory: kubeconfigs, logs, and whatever a test wants to have removed."""
        return self.supervisor.directory

    @cached_property
    def kubectl_binary(self) -> Path | str:
        """Built when it is first needed."""
        return find_binaries(["kubectl"])["kubectl"]

    @property
    def has_controllers(self) -> bool:
        """Whether Deployments make pods, namespaces get a service account, and deleted namespaces go away."""
        return True

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of a user. Every cluster has `admin`, who may do everything."""
        raise NotImplementedError

    def service_account_kubeconfig(self, namespace: str, name: str, hours: int = 24) -> Path:
        """The kubeconfig of a service account that exists, with a token from TokenRequest."""
        with self.client() as api:
            token = api.token(name, namespace, hours)
        connection = Connection.load(self.kubeconfig())
        path = self.directory / f"{namespace}-{name}.kubeconfig"
        text = kubeconfig(connection.server, connection.ca_pem.encode(), token, name, namespace)
        write_private(path, text.encode())
        return path

    def kubectl(self, *args: str, stdin: str | None = None, user: str = "admin", timeout: float = 60.0) -> str:
        """Run kubectl as `user` and return its standard output. Raises KubectlError, or TimeoutExpired."""
        command = [
            str(self.kubectl_binary),
            f"--kubeconfig={self.kubeconfig(user)}",
            f"--cache-dir={self.directory / 'kubectl-cache'}",
            *args,
        ]
        result = subprocess.run(
            command, input=stdin or "", capture_output=True, text=True, timeout=timeout, check=False
        )
        if result.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(args)}: {result.stderr.strip()}")
        return result.stdout

    def create_namespace(self, name: str) -> None:
        """Create a namespace and return when pods can be created in it."""
        with self.client() as api:
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            if self.has_controllers:  # until the service account exists, pods are refused
                wait_until(lambda: api.list("ServiceAccount", name), 60, f"the default service account of {name}")

    def client(self, user: str = "admin") -> Client:
        """A client for plain functions; a context manager."""
        return Client(self.kubeconfig(user))

    def async_client(self, user: str = "admin", connections: int = 64) -> AsyncClient:
        """A client for coroutines; an async context manager."""
        return AsyncClient(self.kubeconfig(user), connections=connections)

    def spawn(
        self,
        name: str,
        argv: Callable[[int], Sequence[str]],
        ready: Callable[[int], bool] = lambda _: True,
        env: dict[str, str] | None = None,
    ) -> Component:
        """Start a process that ends with this cluster, such as the scheduler under test, and wait until ready.

        `argv` and `ready` are called with a free port. A `with` statement ends it earlier. A name can be used again
        when its process has ended. Raises ProcessError.
        """
        component = Component(self.supervisor, Program(name, argv, ready, env or {}))
        component.start()
        return component


def wait_until(check: Callable[[], T], timeout: float = 10.0, what: str = "", interval: float = 0.05) -> T:
    """Call `check` until its answer is true and return that. Raises TimeoutError with the last answer.

    `timeout` and `interval` are seconds; the longer it takes, the longer the pauses. An exception of `check` is not
    caught.
    """
    deadline = time.monotonic() + timeout
    while not (answer := check()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what or 'no true answer'}: not after {timeout:g} s, the last answer was {answer!r}")
        time.sleep(interval)
        interval = max(interval, min(interval * GROWTH, LONGEST_PAUSE))
    return answer
