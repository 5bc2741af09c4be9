"""The clusters that are measured on: a simulated API server in its own process, and a real one of the same objects."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scheduler.framework.nodes.resources import PODS
from tests.bench.api import Api, create, fetch, merge
from tests.bench.wire import Job, Server
from tests.controlplane import Component, ControlPlane, Settings
from tests.controlplane.cluster import Cluster
from tests.controlplane.controlplane import http_status
from tests.controlplane.credentials import Credentials
from tests.sizing.objects import Family, Object, Size

SIMULATED: Final = "simulated"
REAL: Final = "real"

REAL_SETTINGS: Final = Settings(disable_admission=("Priority", "PodSecurity"))


class SimulatedCluster(Cluster):
    """Of any size, within seconds."""

    server_kind = SIMULATED

    def __init__(self, size: Size) -> None:
        super().__init__()
        self._size = size
        self._credentials: Credentials | None = None
        self._server: Component | None = None

    @property
    def credentials(self) -> Credentials:
        if self._credentials is None:
            raise RuntimeError("the cluster is not started: use it in a `with` statement")
        return self._credentials

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.credentials.write_kubeconfig(f"https://127.0.0.1:{self.port}", user)

    @property
    def port(self) -> int:
        """Of the API server."""
        assert self._server is not None
        return self._server.port

    def _start(self) -> None:
        credentials = self._credentials = Credentials.create(self.directory)

        def argv(port: int) -> list[str]:
            size = [f"--nodes={self._size.nodes}", f"--pods={self._size.pods}"]
            return [sys.executable, "-m", "tests.sizing.server", str(self.directory), str(port), *size]

        self._server = self.spawn("server", argv, lambda port: http_status(port, "/readyz", credentials.ca) == 200)


class RealCluster(ControlPlane):
    """etcd and kube-apiserver, filled by requests: some 300 objects a second. Without kubelets, so nobody reports."""

    server_kind = REAL

    def __init__(self, size: Size) -> None:
        super().__init__(REAL_SETTINGS)
        self._size = size

    @property
    def port(self) -> int:
        """Of the API server."""
        return self.apiserver.port

    def _start(self) -> None:
        super()._start()
        with self.api() as api:
            for family in self._size.families():
                api.bulk([_requests(api, family, number) for number in range(family.count)], lambda *_: None)

    def api(self) -> Api:
        return api_of(self)


AnyCluster = SimulatedCluster | RealCluster


def api_of(cluster: AnyCluster) -> Api:
    """A client of its API server."""
    credentials = cluster.credentials
    return Api(Server(cluster.port, credentials.ca, credentials.tokens["admin"]))


def cluster_of(kind: str, size: Size) -> AnyCluster:
    """Not started yet."""
    return RealCluster(size) if kind == REAL else SimulatedCluster(size)


def add(api: Api, objects: Iterable[tuple[str, Object]]) -> None:
    """Create pods, given as (namespace, object)."""
    api.bulk([[create(api, obj, namespace)] for namespace, obj in objects], lambda *_: None)


def waiting(api: Api) -> int:
    """How many pods have no node; at most as many as a page has."""
    path, what = api.path("v1/Pod")
    return len(fetch(api, f"{path}?fieldSelector=spec.nodeName%3D&limit=10", what)["items"])


def _requests(api: Api, family: Family, number: int) -> Job:
    """Those that create an object and, of a pod, let it run."""
    obj = {"apiVersion": _api_version(family), "kind": family.kind, **family.make(number)}
    namespace = obj["metadata"].get("namespace", "")
    if family.resource != PODS:
        return [create(api, obj, namespace)]
    status = obj.pop("status")
    return [create(api, obj, namespace), merge(api, obj, {"status": status}, namespace, "status")]


def _api_version(family: Family) -> str:
    resource = family.resource
    return f"{resource.group}/{resource.version}" if resource.group else resource.version
