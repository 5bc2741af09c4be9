"""The scheduler's services for its plugins. The roles are Protocols, implemented in upper packages."""

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol, Self, TypeAlias

from scheduler.api.pod import Pod
from scheduler.framework.dry_run import DryRuns
from scheduler.framework.errors import ApiError
from scheduler.framework.nodes import NodeColumns
from scheduler.framework.pod_groups import NO_POD_GROUPS, PodGroups
from scheduler.framework.preemptions import NO_PREEMPTIONS, Preemptions
from scheduler.framework.shared import Shared
from scheduler.framework.shares import NO_SHARES, Shares
from scheduler.framework.stored_columns import StoredColumns


class Binder(Protocol):
    """Binds pods at the API server."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Return once the pod is bound to the node. Raises BindRejected if it never will be."""


class EventRecorder(Protocol):
    """Reports what happened to a pod, as an events.k8s.io/v1 Event. Never waits, never raises."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...


class PodNominator(Protocol):
    """Knows which pods are nominated to which node. Plugins read it; the queue and the loop keep it up to date."""

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that have nominated pods: a live view."""

    @property
    def kept(self) -> Mapping[str, int]:
        """The pods for which others are evicted and to which all yield, whatever the priorities: a live view.

        By UID: a number that is lower the sooner that began. Of two of them, the later one yields.
        """

    def kept_on(self, uid: str) -> str:
        """Return the node that one of these is nominated to, or was until it was tried; empty if there was none."""

    def kept_before(self, uid: str) -> int:
        """Return the highest of these numbers when a pod was nominated to its node; 0 if it is not nominated."""

    def nominated_pods(self, node_name: str) -> Collection[Pod]:
        """Return the pods nominated to a node, in the order of their nominations."""

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to; empty without one."""

    def by_node(self) -> Iterator[tuple[str, Collection[Pod]]]:
        """Yield each node that has nominated pods, with these pods."""

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate a pod to `node_name`, or to the node that its status names, if any; an earlier nomination ends."""

    def update(self, old: Pod, new: Pod) -> None:
        """Put a new version of a pod in the place of an old one."""

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
        """Refuse the pod in the name of `plugin`; say whether it was still on hold."""

    def preempt(self, plugin: str, message: str) -> bool:
        """Reject the waiting pod in the name of `plugin`; return whether it was still waiting."""


class WaitingPods(Protocol):
    """All pods that Permit plugins hold."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[WaitingPod]: ...
    def get(self, uid: str) -> WaitingPod | None: ...
    def reject(self, uid: str, message: str = "removed") -> bool:
        """Refuse a pod if it is on hold; say whether it was."""


class PodsInPreBind(Protocol):
    """The pods at their PreBind plugins: until the first Bind plugin is asked, their binding can be cancelled."""

    def cancel(self, uid: str, message: str) -> bool:
        """Cancel a pod's binding, for the reason `message`; say whether that is still possible."""


class Counter(Protocol):
    """A Prometheus counter."""

    def labels(self, *values: str) -> Self: ...
    def inc(self, amount: float = 1) -> None: ...


class Histogram(Protocol):
    """A Prometheus histogram."""

    def labels(self, *values: str) -> Self: ...
    def observe(self, amount: float) -> None: ...


class PreemptionMetrics(Protocol):
    """Those that kube-scheduler shows with the metrics of groups of pods."""

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
    """Evicts pods that have to make room."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Set the condition DisruptionTarget with this message, then delete the pod; False if it was gone already.

        Raises ClusterError if the API server does neither. To evict a pod twice does no harm, and a new pod of the
        same name is never touched.
        """

    def clear_nomination(self, pod: Pod) -> None:
        """Take the nominated node out of a pod's status. Never waits, never raises."""


class Jobs(Protocol):
    """Work of one kind in the background, that ends by itself."""

    def start(self, name: str, work: Coroutine[Any, Any, None], ended: "Ended | None" = None) -> object:
        """Do `work` in a task of that name, then call `ended`.

        With None if the work is done, or the program ends; otherwise with what went wrong, which is logged and counted:
        what the work was responsible for is to be settled then.
        """


Ended: TypeAlias = Callable[[BaseException | None], None]


class Repetition(Protocol):
    """Work that is done again and again."""

    def stop(self) -> None:
        """Stop; a call that is under way is cancelled."""


class Tasks(Protocol):
    """Starts what a plugin does in the background. A task started otherwise may fail or hang unseen."""

    def jobs(self, operation: str, seconds: float) -> Jobs:
        """The jobs of one kind: one that takes more than `seconds` is cancelled. `operation` labels them in metrics."""

    def repeat(
        self, operation: str, seconds: float, pause: float, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> Repetition:
        """Do `work` now, and again `pause` seconds after its end, whatever that was; each time it is a job, as above.

        Without an event loop, as in a test that is no coroutine, it is not done at all.
        """


class ApiWriter(Protocol):
    """Changes objects in the cluster, for plugins that declare it in `writes`. Resources are named as in events.

    Each call is repeated where that can help, and a read settles the outcome of one whose answer was lost. So a
    write needs a resource version, or to be harmless when done twice. All but a deletion return the object as it is
    then, of the type that `ObjectLister` has. They raise ApiError; 409 says that the object was changed meanwhile, or
    deleted and made again, or that there is one to be created already.
    """

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        """Create `content`, with a name that no other client would choose, and with the server's defaults."""

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        """Delete the object of that name if it has this UID; without an error too if it is gone."""

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        """Put `content` in the place of the object of its name."""

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
    """How to get at data outside of the cluster. Files are read each time, so that they can be renewed."""

    token_file: str = ""
    """A file with a bearer token."""

    ca_file: str = ""
    """A file with the certificates to trust, in PEM. Empty: those of the system."""


NO_CREDENTIALS: Final = Access()


class Reader(Protocol):
    """HTTP for plugins: reads data that cannot be watched, and posts. Awaited, so never in a decision."""

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Return what there is at a URL, within `seconds`.

        A path, such as `/apis/metrics.k8s.io/v1beta1/nodes`, is asked of the API server, as the scheduler's account;
        anything else by http or https. Redirections are not followed. Raises ApiError for any answer but a good one of
        at most 32 MiB.
        """

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Post JSON to an http or https URL once, and return the answer, within `seconds`.

        Limits are those of `read`. At most 10 calls of plugins go to other servers than the API server at once, reads
        included; time that a call waits for its turn counts. Raises ApiError with the status of an answer that is not
        2xx, or 0 if there is no answer: then the server may have acted or not. Simulations and shadows post nothing.
        """

    def now(self) -> datetime:
        """Return the time by which data are old: the time of day, and in a simulation that of the newest data."""


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
    """Has the newest objects of all resources that plugins name in their events or in `reads`, as those name them.

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
        """Call `listener` for each change from now on, and first for each object that there is: `(None, object)`.

        It is called as soon as `get` and `list` show the change, before pods are woken. For a plugin that keeps objects
        by a key of its own, from its start.

        If it raises, what it keeps may be half changed. So `reset` is called, which empties that, and then it, for each
        object that there is, as at the start; an object for which it raises again is left out for now. A listener that
        can take `(None, object)` for an object that it knows, and does not mind a deletion that it missed, needs no
        `reset`.
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
    """Objects that plugins share with those of other profiles, as kube-scheduler's SharedDRAManager."""
    pod_groups: PodGroups = NO_POD_GROUPS
    """The groups of pods that are scheduled together, and their members. None at the default of the feature gates."""
    shares: Shares = NO_SHARES
    """The shares of the cluster that pods count against. None without the plugin CapacityScheduling."""
    preemptions: Preemptions = NO_PREEMPTIONS
    """The preemptions that are under way, of all profiles."""
    feature_gates: frozenset[str] = frozenset()
    """Those that are on of the feature gates that plugins ask for."""
