"""Pod classes: pods that no signing plugin distinguishes, and how plugins are asked about them."""

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from scheduler.api.objects import Volume
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import HostPort, PodResources
from scheduler.api.read_only import plain
from scheduler.api.recent_caches import weight_of
from scheduler.framework.plugin import PreFilterPlugin, PreScorePlugin, ReservePlugin, SignPlugin
from scheduler.process.instruments import Counter
from scheduler.runtime.answers.store import AnswerStore, Stored
from scheduler.runtime.guards.plugin_faults import as_plugin_error
from scheduler.runtime.plans import FilterPlan, ScorePlan
from scheduler.runtime.pod_limits import excess_of

ConcernedAtPreFilter = tuple[tuple[PreFilterPlugin, ...], frozenset[str], tuple[Counter, ...]]
"""The PreFilter plugins that some pods concern, the names of those that skip them, and counters of the others."""

ConcernedAtPreScore = tuple[tuple[PreScorePlugin, ...], frozenset[str], tuple[Counter, ...]]
"""The same for PreScore."""

_NO_SOURCE = Volume()

_LONG_SPEC: Final = 4096
"""Bytes."""

_encode = msgspec.msgpack.Encoder(enc_hook=plain).encode


class PodClass(Stored):
    """The signatures of some pods, and which plugins are asked about them."""

    __slots__ = ("filter_plans", "score_plans", "signatures")

    least_bytes: ClassVar[int] = 4096

    def __init__(self, key: Hashable, signatures: dict[str, Hashable]) -> None:
        super().__init__(key)
        self.signatures = signatures
        """Plugin → signature, without those that cannot sign."""
        self.filter_plans: dict[frozenset[str], FilterPlan] = {}
        """Names of the plugins that skip → which ones are asked, and the views made of their answers."""
        self.score_plans: dict[frozenset[str], ScorePlan] = {}
        """The same for Score."""

    def on_drop(self) -> None:
        self.filter_plans.clear()
        self.score_plans.clear()


class KnownSpec(Stored):
    """A spec, and the data derived from it for every pod that has it."""

    __slots__ = (
        "concerned",
        "concerned_at_reserve",
        "concerned_at_score",
        "excess",
        "host_ports",
        "pod_class",
        "resources",
    )

    def __init__(
        self,
        key: Hashable,
        pod_class: PodClass,
        resources: PodResources | None = None,
        host_ports: tuple[HostPort, ...] | None = None,
    ) -> None:
        super().__init__(key, sources=(pod_class,))
        self.pod_class = pod_class
        self.excess = ""
        """Why the pods are not looked at, see `runtime/pod_limits.py`; such a spec is not stored."""
        self.resources = resources
        self.host_ports = host_ports
        self.own_bytes += weight_of(resources, host_ports)
        self.concerned: ConcernedAtPreFilter | None = None
        """Which PreFilter plugins the pods concern, once these were asked."""
        self.concerned_at_score: ConcernedAtPreScore | None = None
        """The same for PreScore."""
        self.concerned_at_reserve: tuple[tuple[ReservePlugin, ...], frozenset[str]] | None = None
        """The same for Reserve."""

    def on_drop(self) -> None:
        self.concerned = self.concerned_at_score = self.concerned_at_reserve = None


class PodClasses:
    """Classifies the pods of one profile."""

    def __init__(self, signers: Sequence[SignPlugin], profile: str, store: AnswerStore) -> None:
        self._signers = signers
        self._profile = profile
        self.store = store
        self._by_spec = all(plugin.signs_spec for plugin in signers)

    def of(self, pod: Pod) -> KnownSpec:
        """Return the known facts of the pod's spec, its class first of all. Raises PluginError.

        What follows from a spec, amounts and host ports included, is computed once for all pods that have it.
        """
        encoded = _encoded_spec(pod) if self._by_spec else None
        known = None if encoded is None else self.store.find(encoded, KnownSpec)
        if known is None:
            if excess := excess_of(pod.spec):
                known = KnownSpec(None, PodClass(None, {}))
                known.excess = excess
                return known
            if encoded is None:
                return KnownSpec(None, self._class_of(pod))
            pod_class = self._class_of(pod)
            try:
                return self.store.add(KnownSpec(encoded, pod_class, pod.resources, pod.host_ports))
            except ValueError:  # a quantity that cannot be read: a plugin says which
                return KnownSpec(encoded, pod_class)
        derived = pod._derived
        if derived.resources is None:
            derived.resources = known.resources
        if derived.host_ports is None:
            derived.host_ports = known.host_ports
        return known

    def _class_of(self, pod: Pod) -> PodClass:
        signatures = self._signatures(pod)
        key = ("class", *signatures.items())
        pod_class = self.store.find(key, PodClass)
        return self.store.add(PodClass(key, signatures)) if pod_class is None else pod_class

    def _signatures(self, pod: Pod) -> dict[str, Hashable]:
        """Sign a pod, once per version of it: it may be classified again in its next attempt."""
        signatures: dict[str, Hashable]
        era, signatures = pod._signatures.get(self._profile, (None, {}))
        if era is self.store.era:  # and not that of another scheduler's profile of that name
            return signatures
        signatures = {}
        for plugin in self._signers:
            try:
                signature = plugin.sign(pod)
                hash(signature)  # it becomes part of a key: if it cannot be, that is the plugin's fault
            except BaseException as error:
                raise as_plugin_error("Sign", plugin.name, error) from error
            if signature is not None:
                signatures[plugin.name] = signature
        pod._signatures[self._profile] = self.store.era, signatures
        return signatures


def _encoded_spec(pod: Pod) -> bytes | None:
    """Return what a plugin that signs the spec may read, as bytes; None if the status says more than usual.

    A long one has a digest that cannot be forged: the store and each pod's answers would keep it all once more.
    Volumes of unknown sources are left out: Kubernetes gives each pod one with a name of its own. So is the group, or
    each group of alike pods would be signed once more.
    """
    status = pod.status
    if status.container_statuses or status.init_container_statuses or status.resources:
        return None
    spec = pod.spec
    if spec.scheduling_group is not None:
        spec = replace(spec, scheduling_group=None)
    if spec.volumes:
        volumes = tuple(volume for volume in spec.volumes if replace(volume, name="") != _NO_SOURCE)
        spec = replace(spec, volumes=volumes)
    encoded = _encode(spec)
    return encoded if len(encoded) <= _LONG_SPEC else blake2b(encoded).digest()
