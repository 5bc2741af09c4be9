"""What extenders say, shown to an observer where there is one: decisions depend on it."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from scheduler.api.pod import Pod
from scheduler.cycle.observer import FILTER, PREEMPT, PRIORITIZE, ExtenderAnswer, Observer
from scheduler.extenders.chain import FilterVerdict
from scheduler.extenders.conversation import Conversation
from scheduler.framework.extenders import Victims

T = TypeVar("T", bound=ExtenderAnswer)


class ObservedConversation:
    """Implements scheduler.extenders.conversation.Conversation, by another one."""

    def __init__(self, conversation: Conversation, observer: Observer) -> None:
        self._conversation = conversation
        self._observer = observer
        self.pod = conversation.pod

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        return await self._observed(FILTER, self._conversation.filter(names))

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        return await self._observed(PRIORITIZE, self._conversation.prioritize(names))

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return await self._observed(PREEMPT, self._conversation.process_preemption(pod, victims))

    async def _observed(self, verb: str, work: Awaitable[T]) -> T:
        try:
            answer = await work
        except Exception as error:
            self._observer.extenders_answered(self.pod.uid, verb, error)
            raise
        self._observer.extenders_answered(self.pod.uid, verb, answer)
        return answer
