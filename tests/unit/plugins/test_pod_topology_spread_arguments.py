"""PodTopologySpreadArgs: the intent of ValidatePodTopologySpreadArgs's tests, and how a file gives them."""

from collections.abc import Mapping
from typing import Any

import pytest

from plugins.pod_topology_spread.plugin import PodTopologySpread
from scheduler.framework.arguments import arguments_of, parse_arguments

GOOD = {"maxSkew": 1, "topologyKey": "node", "whenUnsatisfiable": "DoNotSchedule"}


def parsed(arguments: Mapping[str, Any]) -> tuple[PodTopologySpread | None, list[str]]:
    """Return the plugin, or what is wrong."""
    problems: list[str] = []
    made = parse_arguments(PodTopologySpread, arguments, "args", problems)
    return made, problems


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"defaultingType": "System"},
        {"defaultingType": ""},
        {"defaultingType": "List"},
        {
            "defaultingType": "List",
            "defaultConstraints": [GOOD, {**GOOD, "topologyKey": "zone", "minDomains": 3}],
        },
        {"defaultingType": "List", "defaultConstraints": [GOOD, {**GOOD, "whenUnsatisfiable": "ScheduleAnyway"}]},
    ],
)
def test_arguments_that_are_allowed(arguments: Mapping[str, Any]) -> None:
    made, problems = parsed(arguments)

    assert problems == []
    assert made is not None
    assert arguments_of(made)["defaultingType"] == arguments.get("defaultingType") or "System"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"maxSkew": -1}, "args.defaultConstraints[0].maxSkew: Invalid value: -1: not in valid range (0, inf)"),
        ({"topologyKey": ""}, "args.defaultConstraints[0].topologyKey: Required value: can not be empty"),
        (
            {"topologyKey": "a/b/c"},
            'args.defaultConstraints[0].topologyKey: Invalid value: "a/b/c": a valid label key must consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
            "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyName')",
        ),
        ({"whenUnsatisfiable": ""}, "args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"),
        (
            {"whenUnsatisfiable": "Never"},
            'args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            {"labelSelector": {"matchLabels": {"a": "b"}}},
            "args.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they "
            "deduced for each pod",
        ),
    ],
)
def test_a_default_constraint_that_is_not_allowed(change: Mapping[str, Any], problem: str) -> None:
    assert parsed({"defaultingType": "List", "defaultConstraints": [{**GOOD, **change}]})[1] == [problem]


def test_a_constraint_may_be_there_once() -> None:
    _, problems = parsed({"defaultingType": "List", "defaultConstraints": [GOOD, {**GOOD, "maxSkew": 2}]})

    assert problems == ['args.defaultConstraints[1]: Duplicate value: "{node, DoNotSchedule}"']


def test_the_type_decides_whether_there_may_be_constraints() -> None:
    assert parsed({"defaultConstraints": [GOOD]})[1] == [
        'args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'
    ]
    assert parsed({"defaultingType": "Any"})[1] == [
        'args.defaultingType: Unsupported value: "Any": supported values: "System", "List"'
    ]
