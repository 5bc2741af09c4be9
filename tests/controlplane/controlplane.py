"""A real Kubernetes control plane as child processes: etcd, kube-apiserver and what `Settings` adds to them.

with ControlPlane(Settings(controller_manager=True, kwok=True)) as cp:
    with cp.client() as api:
        api.create_many(a_node(f"node-{i}") for i in range(100))
    print(cp.kubectl("get", "nodes"))
    cp.apiserver.kill(); cp.apiserver.start()      # faults, the data stays
"""

import http.client
import os
import signal
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from tests.controlplane import flags
from tests.controlplane.build import find_binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.credentials import Credentials
from tests.controlplane.flags import Settings
from tests.controlplane.processes import Component, ProcessError, Program
from tests.controlplane.versions import beside_older_servers

UNLIMITED_QPS: Final = 5000.0
"""What scheduler_perf gives its client: no limit in practice. kube-scheduler's default is 50, with a burst of 100."""


class ControlPlane(Cluster):
    """The built control plane: starts on entering (about 3 s), leaves nothing behind on leaving.

    Users with a kubeconfig: `admin`, `system:kube-scheduler`, `system:kube-controller-manager`, `kwok`.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.settings = settings or Settings()
        self._components: dict[str, Component] = {}
        self._server_starts = 0
        self._credentials: Credentials | None = None

    @property
    def etcd(self) -> Component:
        """Its data stays over stops, SIGKILL included."""
        return self._component("etcd")

    @property
    def apiserver(self) -> Component:
        """`stop`, `kill` and `start` for faults: same port, same data; start waits for /readyz."""
        return self._component("kube-apiserver")

    @property
    def controller_manager(self) -> Component:
        """Raises ProcessError if the settings have none."""
        return self._component("kube-controller-manager")

    @property
    def kwok(self) -> Component:
        """Raises ProcessError if the settings have none."""
        return self._component("kwok")

    @property
    def server(self) -> str:
        """The API server's URL, the same over restarts."""
        return f"https://127.0.0.1:{self.apiserver.port}"

    @property
    def has_controllers(self) -> bool:
        return self.settings.controller_manager

    @property
    def credentials(self) -> Credentials:
        """Keys and tokens, written before the first component starts."""
        if self._credentials is None:
            raise RuntimeError("the control plane is not started: use it in a `with` statement")
        return self._credentials

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.credentials.write_kubeconfig(self.server, user)

    def start_kube_scheduler(
        self,
        config: Path | None = None,
        *,
        qps: float = UNLIMITED_QPS,
        burst: int = int(UNLIMITED_QPS),
        leader_elect: bool = False,
        further: Sequence[str] = (),
    ) -> Component:
        """Start kube-scheduler with the KubeSchedulerConfiguration in `config`, or its default, and wait until ready.

        Its client may do `qps` requests a second. Its metrics are at `https://127.0.0.1:PORT/metrics`, for everyone.
        `further`: more flags, such as feature gates.
        """
        kubeconfig = self.kubeconfig("system:kube-scheduler")
        written = self.directory / "kube-scheduler.yaml"
        text = config.read_text() if config else ""
        written.write_text(flags.scheduler_config(text, kubeconfig, qps, burst, leader_elect=leader_elect))
        binary = find_binaries(["kube-scheduler"])["kube-scheduler"]
        further = (*beside_older_servers(os.environ), *further)
        argv = partial(flags.kube_scheduler, binary, self.credentials, kubeconfig, written, further)
        return self.spawn("kube-scheduler", argv, partial(self._answers, "/readyz"))

    def restore(self) -> None:
        """Bring all components back to work after a test of faults.

        What was halted goes on, what has ended is started. If etcd or the API server was away, the others are
        started again: by themselves they come back only after a pause of up to 30 s (client-go's backoff).
        """
        servers = [self.etcd, self.apiserver]
        others = [component for component in self._components.values() if component not in servers]
        for component in (*servers, *others):
            if component.running:
                component.send_signal(signal.SIGCONT)
            else:
                component.start()
        if sum(component.starts for component in servers) > self._server_starts:
            for component in others:
                component.kill()
            start_all(others)
        self._server_starts = sum(component.starts for component in servers)

    def _start(self) -> None:
        settings = self.settings
        binaries = find_binaries(programs(settings))
        credentials = self._credentials = Credentials.create(self.directory)

        argv: Callable[[int], list[str]] = partial(flags.etcd, binaries["etcd"], self.directory / "etcd")
        etcd = self._add(Program("etcd", argv, lambda port: http_status(port, "/health") == 200))
        etcd.start()
        argv = partial(flags.kube_apiserver, binaries["kube-apiserver"], credentials, etcd.port, settings)
        self._add(Program("kube-apiserver", argv, self._apiserver_ready)).start()
        self._server_starts = etcd.starts + self.apiserver.starts

        others = []
        if settings.controller_manager:
            argv = partial(
                flags.kube_controller_manager,
                binaries["kube-controller-manager"],
                credentials,
                self.kubeconfig("system:kube-controller-manager"),
                settings,
            )
            others.append(Program("kube-controller-manager", argv, self._controllers_ready))
        if settings.kwok:
            argv = partial(flags.kwok, binaries["kwok"], self.kubeconfig("kwok"))
            others.append(Program("kwok", argv, lambda port: http_status(port, "/healthz") == 200))
        start_all([self._add(program) for program in others])

    def _add(self, program: Program) -> Component:
        component = self._components[program.name] = Component(self.supervisor, program)
        return component

    def _component(self, name: str) -> Component:
        try:
            return self._components[name]
        except KeyError:
            raise ProcessError(f"this control plane has no {name}: {self.settings}") from None

    def _answers(self, path: str, port: int) -> bool:
        return http_status(port, path, ca=self.credentials.ca) == 200

    def _apiserver_ready(self, port: int) -> bool:
        # /readyz is true before the namespaces exist: `default` is the last one that the server makes for itself.
        return self._answers("/readyz", port) and self._exists("/api/v1/namespaces/default", port)

    def _controllers_ready(self, port: int) -> bool:
        # From then on a pod is accepted in the namespace `default`.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        return self._answers("/healthz", port) and self._exists(account, self.apiserver.port)

    def _exists(self, path: str, apiserver_port: int) -> bool:
        token = self.credentials.tokens["admin"]
        return http_status(apiserver_port, path, self.credentials.ca, token) == 200


def programs(settings: Settings) -> list[str]:
    """The binaries that a control plane with these settings runs."""
    names = ["etcd", "kube-apiserver"]
    names += ["kube-controller-manager"] if settings.controller_manager else []
    return names + (["kwok"] if settings.kwok else [])


def start_all(components: Sequence[Component]) -> None:
    """Start components at the same time and return when all are ready. Raises the first ProcessError."""
    with ThreadPoolExecutor(max_workers=max(1, len(components))) as pool:
        list(pool.map(Component.start, components))


def http_status(port: int, path: str, ca: Path | None = None, token: str = "") -> int | None:
    """The status of GET `path` on this machine, with TLS if `ca` is given; None without an answer in 2 s.

    Not urllib: it would ask the proxy of the environment.
    """
    connection: http.client.HTTPConnection
    if ca:
        context = ssl.create_default_context(cafile=str(ca))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
