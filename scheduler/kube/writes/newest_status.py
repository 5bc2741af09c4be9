"""The API server's answers to our status patches, until the watch has caught up."""

from collections import OrderedDict
from typing import Final

from msgspec.structs import replace

from scheduler.api.objects import PodStatus
from scheduler.api.pods.pod import Pod
from scheduler.api.versions import is_newer

MAX_ANSWERS: Final = 10_000
"""Answers remembered; the oldest are forgotten first."""

MAX_CHARACTERS: Final = 8 << 20
"""Of the texts in them: a message may have a megabyte."""


class NewestStatus:
    """The fields of each pod that a patch compares: names, versions, the nomination and the conditions that we set."""

    def __init__(self, kinds: frozenset[str]) -> None:
        """`kinds`: the types of conditions that we set."""
        self._kinds = kinds
        self._answers: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        """UID → what is kept, and how many characters it has."""
        self._characters = 0

    def __len__(self) -> int:
        return len(self._answers)

    def remember(self, answered: Pod) -> None:
        uid = answered.uid
        self.forget(uid)
        conditions = tuple(each for each in answered.status.conditions or () if each.type in self._kinds)
        status = PodStatus(nominated_node_name=answered.status.nominated_node_name, conditions=conditions)
        size = sum(len(each.reason) + len(each.message) for each in conditions)
        kept = answered.reference
        metadata = replace(kept.metadata, generation=answered.metadata.generation)
        self._answers[uid] = replace(kept, metadata=metadata, status=status), size
        self._characters += size
        while len(self._answers) > MAX_ANSWERS or self._characters > MAX_CHARACTERS:
            self.forget(next(iter(self._answers)))

    def forget(self, uid: str) -> None:
        if (answer := self._answers.pop(uid, None)) is not None:
            self._characters -= answer[1]

    def of(self, pod: Pod) -> Pod:
        """Return the pod, or our last answer if that is newer."""
        answer = self._answers.get(pod.uid)
        if answer is None:
            return pod
        if is_newer(answer[0].metadata.resource_version, pod.metadata.resource_version):
            return answer[0]
        self.forget(pod.uid)
        return pod
