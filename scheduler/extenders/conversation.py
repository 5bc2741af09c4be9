"""All that extenders are asked about one pod: which nodes will do, how good they are, and who may be evicted.

Filter asks them one after the other, each about the nodes that the one before has left; so does a preemption, about
candidates. Prioritize asks all at once. Ignorable ones are left out when they fail. While they answer about victims,
pods come and go: a node is no longer a candidate if its pods differ from those that they were shown.

Rule: findNodesThatPassExtenders and prioritizeNodes in pkg/scheduler/schedule_one.go, callExtenders in
framework/preemption/preemption.go and ProcessPreemption in extender.go, at v1.36.3.
"""

import json
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.api.quantities.go_quantity import wrapped
from scheduler.extenders import wire
from scheduler.extenders.chain import FilterVerdict, PodSource
from scheduler.extenders.extender import Extender
from scheduler.framework.awaited import together
from scheduler.framework.errors import ClusterError
from scheduler.framework.extenders import ExtenderError, Overtaken, PreemptionExtenders
from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.framework.preemption.dry_run import Victims
from scheduler.runtime.event_stream import EngineEvent, EventStream
from scheduler.state.nodes.node_table import NodeTable

FILTER, PRIORITIZE, PREEMPT = "filter", "prioritize", "preempt"
"""The verbs of requests to extenders."""

MAX_EXTENDER_SCORE: Final = 10
"""extenderv1.MaxExtenderPriority. Scores are not checked against it."""

MAX_BYTES: Final = 64 << 20
"""Of whole victims in one question; candidates beyond are left out, the last first."""

AT_ONCE: Final = 50
"""Victims that are read together."""

_SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_SCORE
_INT64: Final = range(-(2**63), 2**63)

_logger = logging.getLogger(__name__)

ExtenderAnswer: TypeAlias = FilterVerdict | Mapping[str, int] | Mapping[str, Victims]
"""And what they answer, all of them together."""

T = TypeVar("T", bound=ExtenderAnswer)


class ExtendersAnswered(EngineEvent, frozen=True):
    """The extenders that are asked about a pod have answered: its attempt goes on right after this."""

    uid: str
    verb: str
    """FILTER, PRIORITIZE or PREEMPT."""
    answer: ExtenderAnswer | Exception


class Conversation(PreemptionExtenders, Protocol):
    """About one version of a pod."""

    @property
    def pod(self) -> Pod:
        """The version that the extenders are shown."""

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        """Ask which of these nodes will do. Raises ExtenderError."""

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return what the extenders add to the scores of nodes, as an int64; failing extenders add nothing."""


class LiveConversation:
    """Asks the extenders themselves, and publishes what they answer."""

    def __init__(
        self, extenders: Sequence[Extender], pod: Pod, nodes: NodeTable, pods: PodSource, stream: EventStream
    ) -> None:
        """`extenders`: those that are interested, in their order."""
        self.pod = pod
        self._extenders = extenders
        self._nodes = nodes
        self._pods = pods
        self._stream = stream
        self._json: bytes | None = None

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        return await self._published(FILTER, self._filter(names))

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        return await self._published(PRIORITIZE, self._prioritize(names))

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return await self._published(PREEMPT, self._process_preemption(victims))

    async def _published(self, verb: str, work: Awaitable[T]) -> T:
        try:
            answer = await work
        except Exception as error:
            self._publish(verb, error)
            raise
        self._publish(verb, answer)
        return answer

    def _publish(self, verb: str, answer: ExtenderAnswer | Exception) -> None:
        if ExtendersAnswered in self._stream.listeners:
            self._stream.publish(ExtendersAnswered(self.pod.uid, verb, answer))

    async def _shown_pod(self) -> bytes:
        """The pod as JSON, read once. Raises ExtenderError if it cannot be."""
        if self._json is None:
            try:
                found = await self._pods.read(self.pod)
            except ClusterError as error:
                raise ExtenderError(f"reading the pod for its extenders: {error}") from error
            if found is None:
                raise ExtenderError(f'pod "{self.pod.name}" not found')
            self._json = found.json
        return self._json

    def _raw_nodes(self, names: Sequence[str]) -> list[bytes]:
        """These nodes as JSON; those that are gone by now are left out."""
        found = map(self._nodes.node, names)
        return [node.raw_json for node in found if node is not None and node.raw_json]

    def _skip(self, extender: Extender, error: ExtenderError) -> None:
        """Go on without an ignorable extender that failed. Raises the error if it is not ignorable."""
        if not extender.is_ignorable:
            raise error
        fields = {"pod": str(self.pod), "extender": extender.name, "err": str(error)}
        _logger.info("An extender is left out, as it failed and is ignorable", extra=fields)

    async def _filter(self, names: Sequence[str]) -> FilterVerdict:
        verdict = FilterVerdict(names, names)
        for extender in self._extenders:
            if not verdict.passed:
                break
            if not extender.filters:
                continue
            pod = await self._shown_pod()
            try:
                answer = await extender.filter(pod, verdict.passed, self._raw_nodes)
            except ExtenderError as error:
                self._skip(extender, error)
                continue
            verdict.refusals |= answer.refusals
            verdict.passed = answer.passed
        return verdict

    async def _prioritize(self, names: Sequence[str]) -> dict[str, int]:
        asked = [extender for extender in self._extenders if extender.prioritizes]
        if not asked:
            return {}
        pod = await self._shown_pod()
        total: dict[str, int] = {}
        scores = await together(*(self._scores(extender, pod, names) for extender in asked))
        for extender, found in zip(asked, scores, strict=True):
            factor = extender.settings.weight * _SCALE
            for each in found:
                total[each.host] = total.get(each.host, 0) + each.score * factor
        # Of a sum it does not matter when it overflows.
        return total if all(map(_INT64.__contains__, total.values())) else {k: wrapped(v) for k, v in total.items()}

    async def _scores(self, extender: Extender, pod: bytes, names: Sequence[str]) -> Sequence[wire.Score]:
        try:
            return await extender.prioritize(pod, names, self._raw_nodes)
        except ExtenderError as error:
            fields = {"pod": str(self.pod), "extender": extender.name, "err": str(error)}
            _logger.debug("An extender did not rate the nodes; it has no say in this", extra=fields)
            return ()

    async def _process_preemption(self, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        shown = {name: self._uids(name) for name in victims}
        left = dict(victims)
        was_overtaken = False
        for extender in self._extenders:
            if not extender.preempts:
                continue
            try:
                answer = await extender.preempt(await self._arguments(extender, left))
                found = {name: self._victims(extender, name, meta, shown) for name, meta in answer.items()}
            except ExtenderError as error:
                self._skip(extender, error)
                continue
            left = {name: each for name, each in found.items() if each is not None and each.pods}
            was_overtaken |= None in found.values()
            if not left:
                break
        # A node that was not asked about counts as it is.
        unchanged = {k: each for k, each in left.items() if k not in shown or shown[k] == self._uids(k)}
        if not unchanged and (left or was_overtaken):
            raise Overtaken("the pods on the nodes changed while the extenders were asked about victims")
        return unchanged

    def _uids(self, name: str) -> frozenset[str] | None:
        """The pods on a node; None if there is no such node."""
        if self._nodes.row_of(name) is None:
            return None
        return frozenset(pod.uid for pod in self._nodes.pods_on(name))

    async def _arguments(self, extender: Extender, victims: Mapping[str, Victims]) -> wire.Body:
        pod = await self._shown_pod()
        if extender.knows_nodes:
            meta = {
                name: wire.MetaVictims([each.uid for each in pods], violations)
                for name, (pods, violations) in victims.items()
            }
            return wire.meta_preemption_arguments(pod, meta)
        whole: dict[str, tuple[list[bytes], int]] = {}
        size = 0
        for name, (pods, violations) in victims.items():
            read = await self._read(pods)
            size += sum(map(len, read))
            if whole and size > MAX_BYTES:
                break
            whole[name] = read, violations
        return wire.preemption_arguments(pod, whole)

    async def _read(self, pods: Sequence[Pod]) -> list[bytes]:
        """Whole pods as JSON; those that are gone by now are left out."""
        found = []
        for start in range(0, len(pods), AT_ONCE):
            try:
                read = await together(*map(self._pods.read, pods[start : start + AT_ONCE]))
            except ClusterError as error:
                raise ExtenderError(f"reading victims for extenders: {error}") from error
            found += [each.json for each in read if each is not None]
        return found

    def _victims(
        self, extender: Extender, name: str, meta: wire.MetaVictims, shown: Mapping[str, frozenset[str] | None]
    ) -> Victims | None:
        """Find the victims that an extender names; None if node or victims are gone since it was asked.

        Raises ExtenderError for what never was there, and for a node without victims: one that an ignorable extender
        names is just left out.
        """
        if self._nodes.row_of(name) is None:
            if name in shown:
                return None
            raise ExtenderError(f"nodeinfo not found for node name {json.dumps(name)}")
        there = {pod.uid: pod for pod in self._nodes.pods_on(name)}
        known = shown.get(name) or ()
        for uid in meta.uids:
            if uid not in there and uid not in known:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                    "but the pod is not found on that node"
                )
        if not (meta.uids or extender.is_ignorable):
            raise ExtenderError(f"expected at least one victim pod on node {json.dumps(name)}")
        pods = [there[uid] for uid in meta.uids if uid in there]
        return Victims(pods, meta.violations) if pods or not meta.uids else None
