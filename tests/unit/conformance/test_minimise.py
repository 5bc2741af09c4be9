from collections.abc import Sequence
from typing import Any

from tests.conformance.minimise import minimise

Json = dict[str, Any]


def an_object(name: str, **spec: object) -> Json:
    return {"kind": "Pod", "metadata": {"name": name, "labels": {"a": "b"}}, "spec": spec}


def test_only_what_the_failure_needs_is_left() -> None:
    objects = [an_object(f"pod-{i}", priority=i, tolerations=[{"key": str(i)}, {"key": "x"}]) for i in range(20)]

    def failing(candidates: Sequence[Json]) -> list[bool]:
        return [any({"key": "13"} in each["spec"].get("tolerations", ()) for each in c["objects"]) for c in candidates]

    small = minimise({"name": "big", "config": {"profiles": [{}]}, "objects": objects}, failing)

    assert small == {
        "name": "big",
        "objects": [{"kind": "Pod", "metadata": {"name": "pod-13"}, "spec": {"tolerations": [{"key": "13"}]}}],
    }


def test_two_objects_that_fail_only_together_stay() -> None:
    def failing(candidates: Sequence[Json]) -> list[bool]:
        return [{"pod-2", "pod-9"} <= {each["metadata"]["name"] for each in c["objects"]} for c in candidates]

    small = minimise({"name": "pair", "objects": [an_object(f"pod-{i}") for i in range(10)]}, failing)

    assert [each["metadata"]["name"] for each in small["objects"]] == ["pod-2", "pod-9"]


def test_a_case_is_left_as_it_was() -> None:
    case = {"name": "kept", "objects": [an_object("pod", priority=1)]}

    minimise(case, lambda candidates: [True] * len(candidates))

    assert case == {"name": "kept", "objects": [an_object("pod", priority=1)]}
