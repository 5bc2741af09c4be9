"""All that extenders are asked about one pod: which nodes will do, how good they are, and who may be evicted."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.extenders.chain import FilterVerdict, Question
from scheduler.extenders.preemption import PreemptionQuestion
from scheduler.framework.extenders import PreemptionExtenders
from scheduler.framework.preemption.dry_run import Victims
from scheduler.runtime.event_stream import EngineEvent, EventStream
from scheduler.state.nodes.node_table import NodeTable

FILTER, PRIORITIZE, PREEMPT = "filter", "prioritize", "preempt"
"""The verbs of requests to extenders."""

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
        """Request the extenders' part of the nodes' scores; failing extenders add nothing."""


class LiveConversation:
    """Asks the extenders themselves, and publishes what they answer."""

    def __init__(self, question: Question, nodes: NodeTable, stream: EventStream) -> None:
        self.pod = question.pod
        self._question = question
        self._preemption = PreemptionQuestion(question, nodes)
        self._stream = stream

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        return await self._published(FILTER, self._question.filter(names))

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        return await self._published(PRIORITIZE, self._question.prioritize(names))

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return await self._published(PREEMPT, self._preemption.process_preemption(pod, victims))

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
