"""All extenders of a configuration, and their common answer about one pod.

Filter asks them one after the other, each about the nodes that the one before has left; Prioritize asks all at once.
Ignorable ones come last, and are left out when they fail.

Rule: buildExtenders in pkg/scheduler/scheduler.go, findNodesThatPassExtenders and prioritizeNodes in schedule_one.go,
at v1.36.3.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from scheduler.api.pods.pod import Pod
from scheduler.api.quantities.go_quantity import wrapped
from scheduler.extenders.extender import Extender
from scheduler.extenders.wire import Score
from scheduler.framework.awaited import together
from scheduler.framework.errors import ClusterError
from scheduler.framework.extenders import ExtenderError
from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.status import Status
from scheduler.state.nodes.node_table import NodeTable

MAX_EXTENDER_SCORE: Final = 10
"""extenderv1.MaxExtenderPriority. Scores are not checked against it."""

_SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_SCORE
_INT64: Final = range(-(2**63), 2**63)

_logger = logging.getLogger(__name__)


class FoundPod(NamedTuple):
    """A pod as the API server has it."""

    json: bytes
    """Without `managedFields`, which kube-scheduler does not keep."""
    node_name: str
    """The node that it is bound to; empty if none."""


class PodSource(Protocol):
    """Reads whole pods: the cache has only the fields that scheduling reads."""

    async def read(self, pod: Pod) -> FoundPod | None:
        """Return the pod, with the node that `pod` has if it is not bound yet; None if it is gone.

        Raises ClusterError.
        """


@dataclass(slots=True)
class FilterVerdict:
    """The extenders' verdict on nodes."""

    asked: Sequence[str]
    passed: Sequence[str]
    refusals: dict[str, Status] = field(default_factory=dict)
    """Node → why not. Nodes that were left out without a word are missing here; others may be here."""


class Extenders:
    """In the order in which they are asked."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self._all = tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))

    def __iter__(self) -> Iterator[Extender]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def prioritizing(self) -> int:
        """How many calls for scores are under way."""
        return sum(extender.prioritizing for extender in self._all)

    @property
    def need_whole_nodes(self) -> bool:
        """Whether one of them is sent nodes and not just their names."""
        return any(not each.knows_nodes and (each.filters or each.prioritizes) for each in self._all)

    def interested(self, pod: Pod) -> tuple[Extender, ...]:
        """Those to which the pod is of interest."""
        return tuple(extender for extender in self._all if extender.is_interested(pod))

    def asked_about(self, pod: Pod) -> tuple[Extender, ...]:
        """Those that have a say in where the pod goes; one that only binds it has none."""
        return tuple(each for each in self.interested(pod) if each.filters or each.prioritizes or each.preempts)

    def binder_of(self, pod: Pod) -> Extender | None:
        """The one that binds the pod, if any."""
        return next((each for each in self._all if each.is_binder and each.is_interested(pod)), None)


class Question:
    """One pod that is shown to extenders."""

    def __init__(self, extenders: Sequence[Extender], pod: Pod, nodes: NodeTable, pods: PodSource) -> None:
        """`extenders`: those that are interested, in their order."""
        self.extenders = extenders
        self.pod = pod
        self._nodes = nodes
        self.pods = pods
        self._json: bytes | None = None

    async def json(self) -> bytes:
        """The pod as JSON, read once. Raises ExtenderError if it cannot be."""
        if self._json is None:
            try:
                found = await self.pods.read(self.pod)
            except ClusterError as error:
                raise ExtenderError(f"reading the pod for its extenders: {error}") from error
            if found is None:
                raise ExtenderError(f'pod "{self.pod.name}" not found')
            self._json = found.json
        return self._json

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        """Ask which of these nodes will do. Raises ExtenderError."""
        verdict = FilterVerdict(names, names)
        for extender in self.extenders:
            if not verdict.passed:
                break
            if not extender.filters:
                continue
            pod = await self.json()
            try:
                answer = await extender.filter(pod, verdict.passed, self.raw_nodes)
            except ExtenderError as error:
                if not extender.is_ignorable:
                    raise
                self.skip(extender, error)
                continue
            verdict.refusals |= answer.refusals
            verdict.passed = answer.passed
        return verdict

    async def prioritize(self, names: Sequence[str]) -> dict[str, int]:
        """Return what the extenders add to the scores of nodes, as an int64; failing extenders add nothing."""
        asked = [extender for extender in self.extenders if extender.prioritizes]
        if not asked:
            return {}
        pod = await self.json()
        total: dict[str, int] = {}
        scores = await together(*(self._scores(extender, pod, names) for extender in asked))
        for extender, found in zip(asked, scores, strict=True):
            factor = extender.settings.weight * _SCALE
            for each in found:
                total[each.host] = total.get(each.host, 0) + each.score * factor
        # Of a sum it does not matter when it overflows.
        return total if all(map(_INT64.__contains__, total.values())) else {k: wrapped(v) for k, v in total.items()}

    async def _scores(self, extender: Extender, pod: bytes, names: Sequence[str]) -> Sequence[Score]:
        try:
            return await extender.prioritize(pod, names, self.raw_nodes)
        except ExtenderError as error:
            fields = {"pod": str(self.pod), "extender": extender.name, "err": str(error)}
            _logger.debug("An extender did not rate the nodes; it has no say in this", extra=fields)
            return ()

    def raw_nodes(self, names: Sequence[str]) -> list[bytes]:
        """These nodes as JSON; those that are gone by now are left out."""
        found = map(self._nodes.node, names)
        return [node.raw_json for node in found if node is not None and node.raw_json]

    def skip(self, extender: Extender, error: Exception) -> None:
        """Log that an ignorable extender is ignored."""
        fields = {"pod": str(self.pod), "extender": extender.name, "err": str(error)}
        _logger.info("An extender is left out, as it failed and is ignorable", extra=fields)
