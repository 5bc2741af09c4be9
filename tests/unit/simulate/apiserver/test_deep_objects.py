"""Objects nested too deeply to be gone through: which of them a decoder still reads differs from Python to Python."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from scheduler.simulate.apiserver.admission import Admission
from scheduler.simulate.other_objects import OtherObject
from scheduler.simulate.what_if.budgets import Budgets

READERS: Final[dict[str, Callable[[OtherObject, list[str]], object]]] = {
    "LimitRange": lambda obj, problems: Admission([obj], problems),
    "RuntimeClass (node.k8s.io/v1)": lambda obj, problems: Admission([obj], problems),
    "PodDisruptionBudget (policy/v1)": lambda obj, problems: Budgets([obj], [], problems),
}


@pytest.mark.parametrize("label", READERS)
def test_an_object_that_is_nested_too_deeply_is_a_problem_of_its_file(label: str) -> None:
    spec: dict[str, Any] = {}
    for _ in range(5000):
        spec = {"a": spec}
    problems: list[str] = []

    READERS[label](OtherObject("f:1", label, {"metadata": {"name": "x"}, "spec": spec}), problems)

    assert problems == ["f:1: nested too deeply"]
