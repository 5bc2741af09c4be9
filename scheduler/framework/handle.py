"""The scheduler's services for its plugins. The roles are Protocols, implemented in upper packages."""

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import ApiError
from scheduler.framework.groups.pod_groups import NO_POD_GROUPS, PodGroups
from scheduler.framework.nodes.nodes import NodeColumns
from scheduler.framework.nodes.stored_columns import StoredColumns
from scheduler.framework.preemption.dry_run import DryRuns
from scheduler.framework.preemption.preemptions import NO_PREEMPTIONS, Preemptions
from scheduler.framework.shares import NO_SHARES, Shares

T = TypeVar("T")


class Shared:
    """One object of each class, made when it is first asked for: the same for all profiles.

    It stays when the configuration is loaded again, as long as a plugin of some profile asks for it in its `start`.
    """

    __slots__ = ("_by_class",)

    def __init__(self) -> None:
        self._by_class: dict[type, Any] = {}

    def get(self, cls: type[T], make: Callable[[], T]) -> T:
        """Return the object of exactly this class; `make` is called if there is none yet."""
        found: T | None = self._by_class.get(cls)
        if found is None:
            found = self._by_class[cls] = make()
        return found


class Binder(Protocol):
    """Binds pods at the API server."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Return once the pod is bound to the node. Raises BindRejected if it never will be."""


class EventRecorder(Protocol):
    """Reports an event of a pod, as an events.k8s.io/v1 Event. Never waits, never raises."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...


class PodNominator(Protocol):
    """The pods that are nominated to nodes. Plugins read it; the queue and the loop keep it up to date."""

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that have nominated pods: a live view."""

    @property
    def kept(self) -> Mapping[str, int]:
        """UID → number of the pods for which others are evicted, to which all yield, whatever the priorities.

        A live view. Of two of them, the one with the higher number, which began later, yields.
        """

    def kept_on(self, uid: str) -> str:
        """Return the node that one of these is nominated to, or was until it was tried; empty if none."""

    def kept_before(self, uid: str) -> int:
        """Return the highest of these numbers when a pod was nominated to its node; 0 if it is not nominated."""

    def has_gained(self, uid: str) -> bool:
        """Say whether any pod is gone yet that was evicted for one of these, and for no more important one before."""

    def nominated_pods(self, node_name: str) -> Collection[Pod]:
        """Return the pods nominated to a node, in the order of their nominations."""

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to; empty without one."""

    def by_node(self) -> Iterator[tuple[str, Collection[Pod]]]:
        """Yield each node that has nominated pods, with these pods."""

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate a pod to `node_name`, or to the node that its status names, if any; an earlier nomination ends."""

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod by its new version."""

    def delete(self, uid: str) -> bool:
        """End the nomination of a pod; return whether it had one."""


class WaitingPod(Protocol):
    """A pod that Permit plugins hold."""

    @property
    def pod(self) -> Pod: ...
    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that still hold the pod."""

    def message_of(self, plugin: str) -> str:
        """Return what the pod waits for, as that plugin said; empty if it said nothing or does not hold the pod."""

    def seconds_left(self, plugin: str) -> float:
        """Return after how many seconds that plugin rejects the pod; 0 if it does not hold the pod."""

    def allow(self, plugin: str) -> None:
        """Stop holding the pod for `plugin`; when no plugin holds it any more, it is bound."""

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod in the name of `plugin`; return whether it was still on hold."""

    def preempt(self, plugin: str, message: str) -> bool:
        """Reject the waiting pod in the name of `plugin`; return whether it was still waiting."""


class WaitingPods(Protocol):
    """All pods that Permit plugins hold."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[WaitingPod]: ...
    def get(self, uid: str) -> WaitingPod | None: ...
    def reject(self, uid: str, message: str = "removed") -> bool:
        """Reject a pod if it is on hold; return whether it was."""


class PodsInPreBind(Protocol):
    """The pods at their PreBind plugins: until the first Bind plugin is asked, their binding can be cancelled."""

    def cancel(self, uid: str, message: str) -> bool:
        """Cancel a pod's binding, for the reason `message`; return whether that was still possible."""


class Counter(Protocol):
    """A Prometheus counter."""

    def labels(self, *values: str) -> Self: ...
    def inc(self, amount: float = 1) -> None: ...


class Histogram(Protocol):
    """A Prometheus histogram."""

    def labels(self, *values: str) -> Self: ...
    def observe(self, amount: float) -> None: ...


class PreemptionMetrics(Protocol):
    """The preemption metrics that kube-scheduler shows with those of groups of pods."""

    @property
    def workload_disruptions(self) -> Histogram: ...
    @property
    def evaluation_duration(self) -> Histogram: ...
    @property
    def execution_duration(self) -> Histogram: ...
    @property
    def pdb_violations(self) -> Counter: ...


class Metrics(Protocol):
    """kube-scheduler's metrics that its own plugins count; the names are those of pkg/scheduler/metrics/metrics.go."""

    @property
    def preemption_attempts(self) -> Counter: ...
    @property
    def preemption_victims(self) -> Histogram: ...
    @property
    def preemption_goroutines_execution(self) -> Counter: ...
    @property
    def preemption_goroutines_duration(self) -> Histogram: ...
    @property
    def preemption(self) -> PreemptionMetrics: ...
    @property
    def volume_stage_errors(self) -> Counter: ...
    @property
    def resource_claim_creates(self) -> Counter: ...
    @property
    def dra_binding_conditions_allocations(self) -> Counter: ...
    @property
    def dra_binding_conditions_wait_duration(self) -> Histogram: ...
    @property
    def plugin_data_faults(self) -> Counter:
        """Loadmaster's own: what was wrong with data that a plugin reads. Labels: plugin, reason (few values)."""


class PodActivator(Protocol):
    """Brings pods back to activeQ."""

    def activate(self, uids: Iterable[str]) -> None: ...


class Evictor(Protocol):
    """Evicts the victims of a preemption."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Set the condition DisruptionTarget with this message, then delete the pod; False if it was gone already.

        Raises ClusterError if the API server does neither. Evicting a pod twice does no harm, and a new pod of the
        same name is never touched.
        """

    def clear_nomination(self, pod: Pod) -> None:
        """Remove the nominated node from a pod's status. Never waits, never raises."""


class Jobs(Protocol):
    """Background work of one kind that ends by itself."""

    def start(self, name: str, work: Coroutine[Any, Any, None], ended: "Ended | None" = None) -> object:
        """Do `work` in a task of that name, then call `ended`.

        `ended` gets None if the work is done, or the program ends, and otherwise the error, which is logged and
        counted: clean up then.
        """


Ended: TypeAlias = Callable[[BaseException | None], None]


class Repetition(Protocol):
    """Periodic work."""

    def stop(self) -> None:
        """Stop, and cancel a run that is under way."""


class Tasks(Protocol):
    """Starts a plugin's background work. A task started in any other way may fail or hang unnoticed."""

    def jobs(self, operation: str, seconds: float) -> Jobs:
        """The jobs of one kind, each cancelled after `seconds`. `operation` labels them in metrics."""

    def repeat(
        self, operation: str, seconds: float, pause: float, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> Repetition:
        """Do `work` now, and again `pause` seconds after each end, failed or not; each run is a job.

        Without an event loop, as in a synchronous test, it never runs.
        """


class ApiWriter(Protocol):
    """Changes objects in the cluster, for plugins that declare it in `writes`. Resources are named as in events.

    Each call is retried where that can help, and a read settles the outcome of one whose response was lost: a write
    needs a resource version, or must do no harm if it happens twice. All except a deletion return the new object, of
    the type that `ObjectLister` has. They raise ApiError; its status is 409 if the object was changed, recreated, or
    exists already.
    """

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        """Create `content`, with a name that no other client would choose."""

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        """Delete the object of that name if it has this UID. It is no error if it is gone."""

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        """Replace the object of that name by `content`."""

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        """Apply a JSON merge patch: null takes a field away. `namespace` is empty for resources without."""


class NoWrites:
    """An ApiWriter that refuses all."""

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        raise ApiError(0, f"nothing is written here, so no {resource} either")

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        raise ApiError(0, f"nothing is written here, so no {resource} either")

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        raise ApiError(0, f"nothing is written here, so no {resource} either")

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        raise ApiError(0, f"nothing is written here, so no {resource} either")


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials for servers outside of the cluster. The files are read for each call."""

    token_file: str = ""
    """A file with a bearer token."""

    ca_file: str = ""
    """A file with the certificates to trust, in PEM. Empty: the system's."""


NO_CREDENTIALS: Final = Access()


class Reader(Protocol):
    """HTTP for plugins, outside of decisions: for data that cannot be watched."""

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Return the body at a URL, or at a path of the API server, within `seconds`.

        `/apis/metrics.k8s.io/v1beta1/nodes`, for example, is read with the scheduler's account. Redirections are not
        followed. Raises ApiError except for a successful response of at most 32 MiB.
        """

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Post JSON to an http or https URL once, and return the response, within `seconds`.

        Limits are those of `read`. Plugins make at most 10 calls at once to servers other than the API server, reads
        included; waiting for one of these slots counts. Raises ApiError with the status of a response that is not 2xx,
        or 0 if there is none: the server may have acted or not. Simulations and shadows post nothing.
        """

    def now(self) -> datetime:
        """Return the time to compute the age of data with: in a simulation, that of the newest data."""


class NoReads:
    """A Reader that finds nothing."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        raise ApiError(0, f"nothing is read here, so not {url} either")

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        raise ApiError(0, f"nothing is posted, so nothing to {url}")


Listener: TypeAlias = Callable[[Any | None, Any | None], None]
"""`(old, new)`: called for each change of a resource's objects. Quick; what happens if it raises: see `listen`."""


class ObjectLister(Protocol):
    """The newest objects of all resources that plugins name in their events or in `reads`.

    Objects are structs for some built-in resources and `Unstructured` for all others; each has a `metadata`. Each
    method raises LookupError for a resource that no plugin named.
    """

    def get(self, resource: str, name: str, namespace: str = "") -> Any | None:
        """Return the object of that name, or None. `namespace` is empty for resources without."""

    def list(self, resource: str, namespace: str | None = None) -> Collection[Any]:
        """Return all objects, or those of a namespace: a live view, not to be kept while waiting."""

    def version(self, resource: str) -> int:
        """Return a number that grows with each change of the resource's objects."""

    def listen(self, resource: str, listener: Listener, reset: Callable[[], None] | None = None) -> None:
        """Call `listener` first for each existing object, with `(None, object)`, then for each change.

        It is called as soon as `get` and `list` show the change, before pods are woken. Use it in `start`, for an index
        with a key of your own.

        If it raises, its data may be half changed: `reset` is called to clear them, then the listener for each existing
        object; one for which it raises again is left out for now. A listener that accepts `(None, object)` for a known
        object, and a missed deletion, needs no `reset`.
        """


@dataclass(frozen=True, slots=True)
class Handle:
    """kube-scheduler's framework.Handle, for one profile."""

    profile_name: str
    nodes: NodeColumns
    nominator: PodNominator
    activator: PodActivator
    waiting_pods: WaitingPods
    binder: Binder
    events: EventRecorder
    objects: ObjectLister
    pods: Mapping[str, Pod]
    """UID → newest version that the watch has shown, of all pods that have not ended. A live view."""
    evictor: Evictor
    metrics: Metrics
    columns: StoredColumns
    """Columns that a plugin keeps, refreshed only where a node has changed."""
    tasks: Tasks
    pods_in_pre_bind: PodsInPreBind
    dry_runs: DryRuns
    """For use within one call of a PostFilter plugin."""
    api: ApiWriter = field(default_factory=NoWrites)
    reader: Reader = field(default_factory=NoReads)
    shared: Shared = field(default_factory=Shared)
    """Objects shared with the plugins of other profiles, like kube-scheduler's SharedDRAManager."""
    pod_groups: PodGroups = NO_POD_GROUPS
    """The groups of pods that are scheduled together, and their members. Empty if groups are off."""
    shares: Shares = NO_SHARES
    """The shares of the cluster that pods count against. Empty without the plugin CapacityScheduling."""
    preemptions: Preemptions = NO_PREEMPTIONS
    """The preemptions that are under way, of all profiles."""
    feature_gates: frozenset[str] = frozenset()
    """The enabled ones of the feature gates that plugins use."""
    post_filters: Sequence[type] = ()
    """The classes of the profile's PostFilter plugins, in their order."""
