"""Shapes: pods that no signing plugin can tell apart, and what is kept for all of them together."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from scheduler.api.objects import Volume
from scheduler.api.pod import Pod
from scheduler.api.requests import HostPort, PodResources
from scheduler.framework.nodes import NodeColumns
from scheduler.framework.plugin import PreFilterPlugin, SignPlugin
from scheduler.runtime.answers.views import BYTES_PER_ROW, KEPT_BYTES
from scheduler.runtime.plugin_calls import as_plugin_error

if TYPE_CHECKING:
    from scheduler.runtime.filter_outcome import FilterPlan
    from scheduler.runtime.scoring import ScorePlan

_NO_SOURCE = Volume()

_encode = msgspec.msgpack.Encoder().encode


class Shape:
    """The signatures of some pods, and how plugins that skip or not are asked about them."""

    __slots__ = ("filter_plans", "home", "score_plans", "signatures")

    def __init__(self, signatures: dict[str, object], home: "Shapes") -> None:
        self.home = home
        """Whose plugins signed: a pod may be shown to several schedulers, one after the other."""
        self.signatures = signatures
        """Plugin → signature, without those that cannot sign."""
        self.filter_plans: dict[frozenset[str], FilterPlan] = {}
        """Names of the plugins that skip → who is asked, and what is kept of it."""
        self.score_plans: dict[frozenset[str], ScorePlan] = {}
        """The same for Score."""


class KnownSpec:
    """A spec that was seen, and what follows from it."""

    __slots__ = ("concerned", "host_ports", "resources", "shape")

    def __init__(self, shape: Shape, resources: PodResources | None, host_ports: tuple[HostPort, ...] | None) -> None:
        self.shape = shape
        self.resources = resources
        self.host_ports = host_ports
        self.concerned: tuple[Sequence[PreFilterPlugin], frozenset[str]] | None = None
        """The PreFilter plugins that want to be asked, and the names of the others, once somebody wanted to know."""


class Shapes:
    """The shapes of one profile that were seen last."""

    def __init__(self, signers: Sequence[SignPlugin], nodes: NodeColumns) -> None:
        self._signers = signers
        self._nodes = nodes
        self._by_spec = all(plugin.signs_spec for plugin in signers)
        self._specs: OrderedDict[bytes, KnownSpec] = OrderedDict()
        self._shapes: OrderedDict[Hashable, Shape] = OrderedDict()
        self.unsigned = Shape({}, self)
        """For a pod that nobody is to sign."""

    def of(self, pod: Pod) -> Shape:
        """Return the shape of `pod`: the same object for all pods of it, as long as it is remembered.

        Raises PluginError.
        """
        shape = self._shape(pod)
        spec = _spec_of(pod) if self._by_spec else None
        if spec is not None:
            self._specs[spec] = KnownSpec(shape, pod.derived.resources, pod.derived.host_ports)
            self._trim(self._specs)
        return shape

    def recall(self, pod: Pod) -> KnownSpec | None:
        """Return what is known of a spec like the pod's: None if it was not seen, or does not tell enough.

        What follows from the spec is then worked out once for all pods of a Deployment.
        """
        spec = _spec_of(pod) if self._by_spec else None
        known = None if spec is None else self._specs.get(spec)
        if spec is None or known is None:
            return None
        derived = pod.derived
        if derived.resources is None:
            derived.resources = known.resources
        if derived.host_ports is None:
            derived.host_ports = known.host_ports
        self._specs.move_to_end(spec)
        return known

    def _shape(self, pod: Pod) -> Shape:
        signatures: dict[str, object] = {}
        for plugin in self._signers:
            try:
                signature = plugin.sign(pod)
                hash(signature)  # it is to be a key: one that cannot be is the plugin's fault
            except Exception as error:
                raise as_plugin_error("Sign", plugin.name, error) from error
            if signature is not None:
                signatures[plugin.name] = signature
        key = tuple(signatures.items())
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(signatures, self)
            self._trim(self._shapes)
        else:
            self._shapes.move_to_end(key)
        return shape

    def _trim(self, entries: OrderedDict[bytes, KnownSpec] | OrderedDict[Hashable, Shape]) -> None:
        room = max(8, KEPT_BYTES // (BYTES_PER_ROW * max(1, self._nodes.size)))
        while len(entries) > room:
            entries.popitem(last=False)


def _spec_of(pod: Pod) -> bytes | None:
    """Return what plugins may read that sign by the spec, as bytes; None if the status says more than usual.

    Volumes of sources that nobody looks at are left out: Kubernetes gives each pod one of a name of its own.
    """
    status = pod.status
    if status.container_statuses or status.init_container_statuses or status.resources:
        return None
    spec = pod.spec
    if spec.volumes:
        volumes = tuple(each for each in spec.volumes if replace(each, name="") != _NO_SOURCE)
        spec = replace(spec, volumes=volumes)
    return _encode(spec)
