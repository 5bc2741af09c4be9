"""PrioritySort: who is tried first."""

import pytest

from plugins.priority_sort import PrioritySort
from scheduler import framework as fw
from scheduler.testing import a_pod


def queued(name: str, priority: int | None, timestamp: float) -> fw.QueuedPod:
    return fw.QueuedPod(a_pod(name, priority=priority), timestamp)


@pytest.mark.parametrize(
    ("a", "b", "a_first"),
    [
        pytest.param((10, 5.0), (1, 1.0), True, id="the higher priority goes first, however late"),
        pytest.param((1, 1.0), (10, 5.0), False, id="the lower priority waits"),
        pytest.param((7, 1.0), (7, 2.0), True, id="of equals the older goes first"),
        pytest.param((7, 2.0), (7, 1.0), False, id="of equals the newer waits"),
        pytest.param((7, 1.0), (7, 1.0), False, id="of twins neither goes first"),
        pytest.param((0, 1.0), (None, 2.0), True, id="no priority is priority 0"),
        pytest.param((None, 1.0), (-5, 0.0), True, id="a negative priority comes after none"),
    ],
)
def test_pods_are_ordered_by_priority_then_age(
    a: tuple[int | None, float], b: tuple[int | None, float], a_first: bool
) -> None:
    plugin = PrioritySort()
    one, other = queued("a", *a), queued("b", *b)

    assert plugin.less(one, other) == a_first
    assert (plugin.sort_key(one) < plugin.sort_key(other)) == a_first
