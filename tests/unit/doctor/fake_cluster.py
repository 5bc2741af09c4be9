"""A cluster that answers from tables, and facts of a healthy installation to change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from plugins import SHIPPED
from scheduler.api.decoding import convert
from scheduler.doctor.checks.versions import VERSION_LABEL
from scheduler.doctor.evidence.cluster import Cluster, Listed, NotAllowed, NotThere
from scheduler.doctor.evidence.configured import Configured, configured
from scheduler.doctor.evidence.facts import Facts
from scheduler.doctor.evidence.objects import Deployment, Lease, Pod, Service
from scheduler.doctor.evidence.samples import Samples
from scheduler.doctor.findings import Finding, Level
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.permissions import Permission
from scheduler.kube.services.api_server import ApiServer

T = TypeVar("T")

NOW: Final = datetime(2026, 6, 1, 12, tzinfo=UTC)

BUILD: Final = 'kubernetes_build_info{git_version="v1.36.3+loadmaster.0.2.0",go_version="python3.13.1"} 1.0\n'

HOLDER: Final = "loadmaster-7d4b9c6f5d-abcde_1"

OK, WARNING, PROBLEM, UNKNOWN = Level.OK, Level.WARNING, Level.PROBLEM, Level.UNKNOWN

HEALTHY = {
    "livez?verbose": "[+]ping ok\nlivez check passed\n",
    "readyz?verbose": "[+]ping ok\nreadyz check passed\n",
    "metrics": BUILD + 'scheduler_cache_size{type="nodes"} 2.0\nscheduler_cache_size{type="pods"} 0.0\n',
}
BUDGETS = "/apis/policy/v1/namespaces/kube-system/poddisruptionbudgets"
A_NODE = {"metadata": {"name": "n1", "labels": {"kubernetes.io/arch": "amd64"}}}

LABELS: Final = {"app.kubernetes.io/instance": "loadmaster"}


@dataclass
class FakeCluster(Cluster):
    """What is in no table is not there, or may not be read."""

    objects: Mapping[str, Any] = field(default_factory=dict)
    lists: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Account, or nothing for the user → resources of which it may do nothing."""
    not_served: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    """Paths."""
    more: int = 0
    """Objects that a list has beyond those in the table."""

    async def server(self) -> ApiServer:
        return ApiServer("v1.36.3", 0.0)

    async def get(self, path: str, type_: type[T]) -> T:
        self._check(path)
        if path not in self.objects:
            raise NotThere(f"{path} not found")
        return convert(self.objects[path], type_)

    async def list(self, path: str, type_: type[T], pages: int = 20, **query: str) -> Listed[T]:
        self._check(path)
        items = tuple(convert(each, type_) for each in self.lists.get(path, ()))
        return Listed(items, is_whole=not self.more, count=len(items) + self.more)

    async def user(self) -> str:
        return "ada"

    async def missing(self, permissions: Sequence[Permission], account: str = "") -> Sequence[Permission]:
        return [each for each in permissions if each.resource in self.lacking.get(account, ())]

    async def may_read(self, account: str, path: str) -> bool:
        return path not in self.lacking.get(account, ())

    async def serves(self, resource: ApiResource) -> bool:
        return resource.plural not in self.not_served

    async def page(self, path: str) -> bytes:
        self._check(path)
        if path not in self.pages:
            raise ClusterError(f"{path} is not answered")
        return self.pages[path].encode()

    def _check(self, path: str) -> None:
        if path in self.forbidden:
            raise NotAllowed(f"you cannot read {path}")


def healthy(**changes: Any) -> FakeCluster:
    lists = {BUDGETS: [{}], "/api/v1/nodes": [A_NODE, A_NODE]}
    return FakeCluster(**{"lists": lists, "pages": HEALTHY, **changes})


def samples(text: str) -> Samples:
    return Samples(BUILD + text)


def said(findings: list[Finding]) -> str:
    return "\n".join(f"{each.message} {each.advice}" for each in findings)


def a_pod(name: str, node: str = "n1", *, is_ready: bool = True, version: str = "0.2.0") -> Pod:
    """One of the scheduler's own."""
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    meta = {"name": name, "namespace": "kube-system", "labels": {**LABELS, VERSION_LABEL: version}}
    return convert({"metadata": meta, "spec": {"nodeName": node}, "status": {"conditions": conditions}}, Pod)


def a_lease(holder: str = HOLDER, renewed: float = 1.0, **more: Any) -> Lease:
    """`renewed`: seconds ago."""
    at = datetime.fromtimestamp(NOW.timestamp() - renewed, UTC)
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": at, "acquireTime": NOW}
    meta = {"name": "loadmaster", "namespace": "kube-system", "managedFields": [{"time": at}], **more}
    return convert({"metadata": meta, "spec": spec}, Lease)


def config_of(**document: Any) -> Configured:
    return configured(document, SHIPPED)


def facts(**changes: Any) -> Facts:
    """Of a healthy installation of two replicas."""
    deployment = {
        "metadata": {"name": "loadmaster", "labels": {"helm.sh/chart": "loadmaster-0.2.0"}},
        "spec": {"replicas": 2, "template": {"spec": {"serviceAccountName": "loadmaster"}}},
    }
    config = config_of()
    healthy: dict[str, Any] = {
        "namespace": "kube-system",
        "name": "loadmaster",
        "now": NOW.timestamp(),
        "server": ApiServer("v1.36.3", 0.0),
        "service": Service(),
        "deployment": convert(deployment, Deployment),
        "pods": (a_pod("loadmaster-7d4b9c6f5d-abcde", "n1"), a_pod("loadmaster-7d4b9c6f5d-fghij", "n2")),
        "samples": Samples(BUILD),
        "config": config,
        "is_running": True,
        "file": config,
        "lease": a_lease(),
    }
    return Facts(**{**healthy, **changes})


def levels(findings: Sequence[Finding]) -> list[Level]:
    return [each.level for each in findings]
