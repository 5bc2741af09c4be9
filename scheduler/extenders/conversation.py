"""All that extenders are asked about one pod: which nodes will do, how good they are, and who may be evicted."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from scheduler.api.pod import Pod
from scheduler.extenders.chain import FilterVerdict, Nodes, PodSource, Question
from scheduler.extenders.extender import Extender
from scheduler.extenders.preemption import PodsOnNodes, PreemptionQuestion
from scheduler.framework.extenders import PreemptionExtenders, Victims


class Conversation(PreemptionExtenders, Protocol):
    """About one version of a pod."""

    @property
    def pod(self) -> Pod:
        """The version that the extenders are shown."""

    async def filter(self, names: Sequence[str]) -> FilterVerdict:
        """Ask which of these nodes will do. Raises ExtenderError."""

    async def prioritize(self, names: Sequence[str]) -> Mapping[str, int]:
        """Ask what is to be added to the scores of nodes; whoever fails adds nothing."""


class Table(Nodes, PodsOnNodes, Protocol):
    """The live nodes, and who runs there."""


class Conversations:
    """Begins one for each version of a pod that is decided about."""

    def __init__(self, nodes: Table, pods: PodSource) -> None:
        self._nodes = nodes
        self._pods = pods

    def begin(self, extenders: Sequence[Extender], pod: Pod) -> Conversation:
        """`extenders`: those that are interested, in their order."""
        return _Live(Question(extenders, pod, self._nodes, self._pods), self._nodes)


class _Live:
    """Over HTTP."""

    def __init__(self, question: Question, nodes: Table) -> None:
        self.pod = question.pod
        self.filter = question.filter
        self.prioritize = question.prioritize
        self._preemption = PreemptionQuestion(question, nodes)

    async def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return await self._preemption.process_preemption(pod, victims)
