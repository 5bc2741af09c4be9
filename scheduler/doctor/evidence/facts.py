"""The facts about an installation, read once for all checks. One that cannot be read is the error that says why."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar

from scheduler.api.decoding import Decoder
from scheduler.doctor.evidence.cluster import Cluster, NotThere
from scheduler.doctor.evidence.configured import CONFIG_KEY, Configured, configured, of_file
from scheduler.doctor.evidence.objects import ConfigMap, Deployment, Lease, Pod, Service
from scheduler.doctor.evidence.samples import Samples
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.services.api_server import ApiServer
from scheduler.kube.services.service_proxy import TRIES
from scheduler.runtime.registry import Registry

T = TypeVar("T")

Outcome: TypeAlias = T | ClusterError

_any: Final[Decoder[Any]] = Decoder(Any)

NAME_LABEL: Final = "app.kubernetes.io/name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"


def known(outcome: Outcome[T]) -> T:
    """The fact. Raises the ClusterError that is in its place."""
    if isinstance(outcome, ClusterError):
        raise outcome
    return outcome


@dataclass(frozen=True, slots=True)
class Facts:
    """About one installation: the Service's namespace and name are those of its other objects."""

    namespace: str
    name: str
    now: float
    """Of this machine, in seconds since 1970."""
    server: ApiServer
    service: Outcome[Service]
    deployment: Outcome[Deployment]
    pods: Outcome[tuple[Pod, ...]]
    samples: Outcome[Samples]
    """Of the replica that leads, if one was found."""
    config: Outcome[Configured]
    """The one in effect, or else the one in the ConfigMap."""
    is_running: bool
    """Whether `config` is the one in effect."""
    file: Outcome[Configured | ConfigError]
    """The one in the ConfigMap, or its problem."""
    lease: Outcome[Lease]

    @property
    def server_now(self) -> datetime:
        """The API server's time; this machine's if it shows none."""
        return datetime.fromtimestamp(self.now + (self.server.ahead or 0.0), UTC)

    @property
    def account(self) -> str:
        """The scheduler's service account, as `namespace/name`; the chart's default if nothing shows it."""
        account = ""
        if not isinstance(self.deployment, ClusterError):
            account = self.deployment.spec.template.spec.service_account_name
        return f"{self.namespace}/{account or self.name}"

    @property
    def role_binding(self) -> str:
        """The command that gives a user the role to ask the running scheduler."""
        return f"kubectl create rolebinding doctor -n {self.namespace} --role={self.name}-doctor --user=YOU"

    def age(self, of: datetime | None) -> float:
        """Seconds since a time, by the API server's clock; 0 without one."""
        return 0.0 if of is None else (self.server_now - of).total_seconds()


async def collect(
    cluster: Cluster, namespace: str, name: str, plugins: Registry, given: Configured | None, now: Callable[[], float]
) -> Facts:
    """`given`: the configuration to take for the ConfigMap's. Raises ClusterError if the API server does not answer."""
    server = await cluster.server()
    base = f"/api/v1/namespaces/{namespace}"
    service = await _outcome(cluster.get(f"{base}/services/{name}", Service))
    deployment = await _outcome(cluster.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", Deployment))
    pods = await _outcome(_pods(cluster, base, service))
    running = await _outcome(_in_effect(cluster, plugins))
    file: Outcome[Configured | ConfigError]
    if given is None:
        file = await _outcome(_file(cluster, f"{base}/configmaps/{name}", plugins))
    else:
        file = given
    config: Outcome[Configured] = running
    if isinstance(running, ClusterError) and isinstance(file, Configured):
        config = file
    election = config.election if isinstance(config, Configured) else None
    lease_namespace, lease_name = namespace, name
    if election is not None and config is running:
        lease_namespace, lease_name = election.resource_namespace, election.resource_name
    lease = await _outcome(
        cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/{lease_namespace}/leases/{lease_name}", Lease)
    )
    samples = await _outcome(_samples(cluster))
    is_running = config is running
    return Facts(namespace, name, now(), server, service, deployment, pods, samples, config, is_running, file, lease)


async def _outcome(work: Awaitable[T]) -> Outcome[T]:
    try:
        return await work
    except TimeoutError:
        return ClusterError("no answer in time")
    except ClusterError as error:
        return error


async def _pods(cluster: Cluster, base: str, service: Outcome[Service]) -> tuple[Pod, ...]:
    selector = known(service).spec.selector
    if not selector:
        return ()
    labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return (await cluster.list(f"{base}/pods", Pod, labelSelector=labels)).items


async def _in_effect(cluster: Cluster, plugins: Registry) -> Configured:
    body = await cluster.page("configz")
    try:
        return configured(_any.decode(body)["componentconfig"], plugins)
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError("what answers for the scheduler shows no configuration") from error
    except ConfigError as error:
        raise ClusterError(f"the configuration in effect cannot be read here: {error.problems[0]}") from error


async def _file(cluster: Cluster, path: str, plugins: Registry) -> Configured | ConfigError:
    text = ((await cluster.get(path, ConfigMap)).data or {}).get(CONFIG_KEY)
    if text is None:
        raise NotThere(f"{path} has no {CONFIG_KEY}")
    try:
        return of_file(text, CONFIG_KEY, plugins)
    except ConfigError as error:
        return error


async def _samples(cluster: Cluster) -> Samples:
    """Those of the leader, if one of a few answers is its own."""
    for _ in range(TRIES):
        samples = Samples((await cluster.page("metrics")).decode(errors="replace"))
        if samples.leads:
            break
    return samples
