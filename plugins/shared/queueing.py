"""Common parts of the queueing hints of several plugins."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from scheduler import framework as fw

T = TypeVar("T")

_NOTHING = object()


class OncePerEvent(Generic[T]):
    """`compute(old, new)`, computed once per event for all the pods that are asked about it.

    Only the last event is remembered, by the identity of its objects.
    """

    __slots__ = ("_compute", "_new", "_old", "_result")

    def __init__(self, compute: Callable[[Any, Any], T]) -> None:
        self._compute = compute
        self._old: object = _NOTHING
        self._new: object = _NOTHING
        self._result: T

    def __call__(self, old: object, new: object) -> T:
        """Return the result for this event. Raises what `compute` raises, each time."""
        if new is not self._new or old is not self._old:
            self._result = self._compute(old, new)
            self._old, self._new = old, new
        return self._result


def queue_if_itself(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
    """The hint of a plugin for which only the pod's own updates matter."""
    return fw.QueueingHint.QUEUE if new.uid == pod.uid else fw.QueueingHint.SKIP


def any_pod(pod: fw.Pod) -> Hashable:
    """The key for a hint that answers the same for all pods, except the one that an event is about."""
    return ()


def tolerations_of(pod: fw.Pod) -> Hashable:
    """The key for a hint that looks at tolerations."""
    return pod.spec.tolerations or ()
