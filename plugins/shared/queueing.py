"""What the queueing hints of several plugins share."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from scheduler import framework as fw

T = TypeVar("T")

_NOTHING = object()


class OncePerEvent(Generic[T]):
    """`compute(old, new)`, worked out once for all the pods that are asked about the same event.

    Only the last event is remembered, by the identity of its objects.
    """

    __slots__ = ("_compute", "_found", "_new", "_old")

    def __init__(self, compute: Callable[[Any, Any], T]) -> None:
        self._compute = compute
        self._old: object = _NOTHING
        self._new: object = _NOTHING
        self._found: T

    def __call__(self, old: object, new: object) -> T:
        """Raise whatever `compute` raises, each time again."""
        if new is not self._new or old is not self._old:
            self._found = self._compute(old, new)
            self._old, self._new = old, new
        return self._found


def queue_if_itself(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
    """The hint of a plugin for which no other pod's update matters."""
    return fw.QueueingHint.QUEUE if new.uid == pod.uid else fw.QueueingHint.SKIP


def any_pod(pod: fw.Pod) -> Hashable:
    """The key for a hint that answers the same for all pods, except the one that an event is about."""
    return ()


def tolerations_of(pod: fw.Pod) -> Hashable:
    """The key for a hint that looks at tolerations."""
    return pod.spec.tolerations or ()
