from collections import Counter

import pytest

from scheduler.framework.events import Action
from tests.bench.queue import CHANGED, Waiting, main, some_pods, update_cost, updates


def test_it_runs_at_a_tiny_scale(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--scale", "0.0005", "--updates", "2", "--operations", "3", "--runs", "1"])

    printed = capsys.readouterr().out
    for part in ("Node updates that help none", "An assigned pod is deleted", "One pod, 50 others", "Memory a pod"):
        assert part in printed


def test_a_kind_is_shared_by_pods_of_equal_numbers() -> None:
    kinds = Counter(pod.labels["kind"] for pod in some_pods(20, 4))

    assert kinds == {"0": 5, "1": 5, "2": 5, "3": 5}


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("allocatable", Action.UPDATE_NODE_ALLOCATABLE),
        ("label", Action.UPDATE_NODE_LABEL),
        ("taint", Action.UPDATE_NODE_TAINT),
    ],
)
def test_an_update_is_one_event(kind: str, action: Action) -> None:
    assert [event.action for event, _, _ in updates(kind, 2)] == [action, action]


@pytest.mark.parametrize("kind", CHANGED)
def test_no_update_helps_a_waiting_pod(kind: str) -> None:
    waiting = Waiting().refuse(some_pods(10, 5))

    update_cost(waiting, list(updates(kind, 3)))

    assert waiting.count("unschedulable") == 10
