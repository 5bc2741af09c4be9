from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import pytest

from scheduler.api.objects import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.framework.arguments import YAML, arguments_of, parse_arguments
from scheduler.framework.duration import Duration


class Strategy(Enum):
    LEAST = "LeastAllocated"
    MOST = "MostAllocated"


@dataclass(frozen=True, slots=True)
class Resource:
    name: str
    weight: int = 1

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.weight > 100:
            yield "weight", "more than 100"


@dataclass(frozen=True, slots=True)
class Guard:
    strict: bool = True
    percentage: int = 10
    factor: float = 1.0
    label_key: str = "gpu"
    strategy: Strategy = Strategy.LEAST
    mode: Literal["a", "b"] = "a"
    resources: tuple[Resource, ...] = (Resource("cpu"),)
    names: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    either: int | str = 0
    added_affinity: NodeAffinity | None = None
    timeout: Duration = field(default=Duration(15))
    use_https: bool = field(default=False, metadata={YAML: "useHTTPS"})

    def __post_init__(self) -> None:
        if self.percentage > 100:
            raise ValueError("percentage is more than 100")

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.label_key:
            yield "labelKey", "must not be empty"
        if not self.resources:
            yield "", "needs resources"


def parse(values: Mapping[str, Any]) -> tuple[Guard | None, list[str]]:
    problems: list[str] = []
    return parse_arguments(Guard, values, "args", problems), problems


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        pytest.param({}, "strict", True, id="what is not given has its default"),
        pytest.param({"strict": None}, "strict", True, id="null is not given"),
        pytest.param({"strict": False}, "strict", False, id="a bool"),
        pytest.param({"labelKey": "x"}, "label_key", "x", id="camelCase"),
        pytest.param({"label_key": "x"}, "label_key", "x", id="snake_case"),
        pytest.param({"useHTTPS": True}, "use_https", True, id="a spelling of its own"),
        pytest.param({"factor": 2}, "factor", 2.0, id="an int is a float"),
        pytest.param({"strategy": "MostAllocated"}, "strategy", Strategy.MOST, id="a choice of an enum"),
        pytest.param({"mode": "b"}, "mode", "b", id="a literal"),
        pytest.param(
            {"resources": [{"name": "a", "weight": 3}]}, "resources", (Resource("a", 3),), id="nested objects"
        ),
        pytest.param({"names": ["a", "b", "a"]}, "names", frozenset("ab"), id="a set"),
        pytest.param({"limits": {"a": 1}}, "limits", {"a": 1}, id="a mapping"),
        pytest.param({"either": "x"}, "either", "x", id="one type of several"),
        pytest.param({"timeout": "1m30s"}, "timeout", 90.0, id="a length of time"),
        pytest.param(
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                    }
                }
            },
            "added_affinity",
            NodeAffinity(
                required=NodeSelector(
                    node_selector_terms=(
                        NodeSelectorTerm(
                            match_expressions=(NodeSelectorRequirement(key="a", operator="In", values=("b",)),)
                        ),
                    )
                )
            ),
            id="a part of the API",
        ),
    ],
)
def test_a_value_of_the_right_type_is_taken(values: dict[str, Any], name: str, expected: object) -> None:
    made, problems = parse(values)

    assert problems == []
    assert getattr(made, name) == expected


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        pytest.param({"strict": "yes"}, "args.strict: expected bool, got 'yes'", id="a string is no bool"),
        pytest.param({"percentage": True}, "args.percentage: expected int, got true", id="a bool is no int"),
        pytest.param({"percentage": 1.0}, "args.percentage: expected int, got 1.0", id="a float is no int"),
        pytest.param(
            {"percentage": 2**63},
            "args.percentage: 9223372036854775808 does not fit into 64 bits",
            id="too large an int",
        ),
        pytest.param({"factor": float("nan")}, "args.factor: expected a finite number, got nan", id="no number"),
        pytest.param({"labelKey": 5}, "args.labelKey: expected string, got 5", id="an int is no string"),
        pytest.param({"labelKey": "x" * 99}, None, id="a long string is a string"),
        pytest.param(
            {"strategy": "most"},
            'args.strategy: Unsupported value: "most": supported values: "LeastAllocated", "MostAllocated"',
            id="none of the choices",
        ),
        pytest.param(
            {"mode": 1}, 'args.mode: Unsupported value: 1: supported values: "a", "b"', id="none of the literals"
        ),
        pytest.param({"resources": {}}, "args.resources: expected a list, got a mapping", id="no list"),
        pytest.param({"resources": [None]}, "args.resources[0]: expected a mapping, got null", id="null in a list"),
        pytest.param({"resources": [{}]}, "args.resources[0].name: Required value", id="a field is missing"),
        pytest.param({"names": [1]}, "args.names[0]: expected string, got 1", id="a wrong item"),
        pytest.param({"limits": {"a": "b"}}, "args.limits[a]: expected int, got 'b'", id="a wrong value"),
        pytest.param({"limits": {1: 1}}, "args.limits[1]: the key must be a string", id="a wrong key"),
        pytest.param({"either": []}, "args.either: expected int or string, got a list", id="none of several types"),
        pytest.param(
            {"timeout": 15}, "args.timeout: expected a duration such as '15s', got 15", id="a time without unit"
        ),
        pytest.param(
            {"timeout": "15"},
            "args.timeout: not a duration: '15' (write for example '15s' or '1m30s')",
            id="a time in a string without unit",
        ),
        pytest.param({"stric": True}, "args.stric: unknown field; did you mean 'strict'?", id="almost a field"),
        pytest.param({"colour": True}, "args.colour: unknown field", id="no field"),
        pytest.param({"handle": 1}, "args.handle: unknown field", id="what start takes is no argument"),
        pytest.param({3: 1}, "args.3: unknown field", id="a key that is no string"),
        pytest.param(
            {"labelKey": "a", "label_key": "b"},
            "args.label_key: given twice, as 'labelKey' and 'label_key'",
            id="both spellings",
        ),
        pytest.param(
            {"addedAffinity": {"required": {}}},
            "args.addedAffinity.required: unknown field",
            id="strict within the API",
        ),
        pytest.param({"percentage": 101}, "args: percentage is more than 100", id="refused by __post_init__"),
        pytest.param({"labelKey": ""}, "args.labelKey: must not be empty", id="a rule of a field"),
        pytest.param({"resources": []}, "args: needs resources", id="a rule of the whole"),
        pytest.param(
            {"resources": [{"name": "a", "weight": 101}]}, "args.resources[0].weight: more than 100", id="a nested rule"
        ),
    ],
)
def test_a_wrong_value_is_a_problem_with_its_path(values: dict[Any, Any], problem: str | None) -> None:
    made, problems = parse(values)

    assert problems == ([problem] if problem else [])
    assert (made is None) == (problem is not None)


def test_whatever_a_class_raises_when_it_is_made_is_a_problem() -> None:
    class Broken:
        def __init__(self) -> None:
            raise FileNotFoundError("no such file")

    problems: list[str] = []

    assert parse_arguments(Broken, {}, "args", problems) is None
    (problem,) = problems
    assert problem.startswith(f"args: FileNotFoundError: no such file, in {__file__}:")


def test_all_problems_come_at_once() -> None:
    _, problems = parse({"strict": "yes", "names": ["a", 1, 2], "labelKey": "", "x": 1, "limits": []})

    assert problems == [
        "args.strict: expected bool, got 'yes'",
        "args.names[1]: expected string, got 1",
        "args.names[2]: expected string, got 2",
        "args.x: unknown field",
        "args.limits: expected a mapping, got a list",
        "args.labelKey: must not be empty",
    ]


def test_arguments_that_are_no_mapping_are_one_problem() -> None:
    problems: list[str] = []

    assert parse_arguments(Guard, [], "args", problems) is None  # type: ignore[arg-type]
    assert problems == ["args: expected a mapping, got a list"]


@dataclass
class Owned:
    owner: object


def test_what_is_injected_goes_to_classes_that_have_the_field() -> None:
    problems: list[str] = []

    with_owner = parse_arguments(Owned, {}, "args", problems, owner="me")
    without = parse_arguments(Resource, {"name": "a"}, "args", problems, owner="me")

    assert with_owner == Owned("me")
    assert without == Resource("a")
    assert problems == []


def test_a_class_without_fields_takes_no_arguments() -> None:
    class Plain:
        pass

    problems: list[str] = []

    assert isinstance(parse_arguments(Plain, {}, "args", problems), Plain)
    assert parse_arguments(Plain, {"a": 1}, "args", problems) is None
    assert problems == ["args.a: unknown field"]


def test_arguments_are_written_as_they_are_read() -> None:
    values = {
        "strict": False,
        "percentage": 5,
        "factor": 2.5,
        "labelKey": "x",
        "strategy": "MostAllocated",
        "mode": "b",
        "resources": [{"name": "a", "weight": 3}],
        "names": ["a", "b"],
        "limits": {"a": 1},
        "either": "x",
        "addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
        "timeout": "1m30s",
        "useHTTPS": True,
    }
    made, _ = parse(values)

    assert arguments_of(made) == values
