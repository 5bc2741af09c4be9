"""Label selectors: what they select, which are the same, and what is wrong with them."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from scheduler.api.label_selectors import (
    EVERYTHING,
    NOTHING,
    Selector,
    parse_label_selector,
    selector_from_labels,
)
from scheduler.api.objects import LabelSelector

LABELS = {"app": "web", "empty": ""}


def parsed(manifest: Mapping[str, Any] | None) -> Selector:
    return parse_label_selector(msgspec.convert(manifest, LabelSelector | None))


def where(key: str, operator: str, *values: str) -> Selector:
    return parsed({"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]})


@pytest.mark.parametrize(
    ("operator", "key", "values", "expected"),
    [
        ("In", "app", ["db", "web"], True),
        ("In", "app", ["db"], False),
        ("In", "empty", [""], True),
        ("In", "absent", [""], False),
        ("NotIn", "app", ["db"], True),
        ("NotIn", "app", ["web"], False),
        ("NotIn", "absent", ["web"], True),
        ("NotIn", "absent", [""], True),
        ("Exists", "empty", [], True),
        ("Exists", "absent", [], False),
        ("DoesNotExist", "absent", [], True),
        ("DoesNotExist", "empty", [], False),
    ],
)
def test_a_requirement_looks_at_one_label(operator: str, key: str, values: list[str], expected: bool) -> None:
    assert where(key, operator, *values).matches(LABELS) == expected


def test_all_requirements_must_hold() -> None:
    both = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    assert parsed(both).matches({"app": "web", "tier": "1"})
    assert not parsed(both).matches({"app": "web"})
    assert not parsed(both).matches({"tier": "1"})


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert parsed(None) is NOTHING
    assert parsed({}) == parsed({"matchLabels": {}, "matchExpressions": []}) == EVERYTHING
    for labels in (LABELS, {}, None):
        assert not NOTHING.matches(labels)
        assert EVERYTHING.matches(labels)
    assert EVERYTHING.is_everything
    assert not NOTHING.is_everything
    assert not where("app", "Exists").is_everything


def test_absent_labels_are_no_labels() -> None:
    assert where("app", "DoesNotExist").matches(None)
    assert not where("app", "Exists").matches(None)


def test_selectors_that_ask_for_the_same_are_equal() -> None:
    one = parsed({"matchLabels": {"a": "1", "b": "2"}})
    other = parsed(
        {
            "matchLabels": {"b": "2"},
            "matchExpressions": [
                {"key": "b", "operator": "In", "values": ["2"]},
                {"key": "a", "operator": "In", "values": ["1", "1"]},
            ],
        }
    )
    assert one == other == selector_from_labels({"b": "2", "a": "1"})
    assert hash(one) == hash(other)
    assert one != where("a", "In", "1")
    assert NOTHING != EVERYTHING


def test_what_both_select_is_a_selector() -> None:
    web, tier = selector_from_labels({"app": "web"}), where("tier", "Exists")
    assert web.and_also(tier) == tier.and_also(web)
    assert web.and_also(tier).matches({"app": "web", "tier": "1"})
    assert not web.and_also(tier).matches({"app": "web"})
    assert web.and_also(EVERYTHING) == web
    assert web.and_also(NOTHING) == NOTHING == NOTHING.and_also(web)


NAME_RULE = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with"


@pytest.mark.parametrize(
    ("manifest", "start"),
    [
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            '"Gt" is not a valid label selector operator',
            id="operator",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x", "y"]}]},
            'values: Invalid value: ["x","y"]: values set must be empty for exists and does not exist',
            id="values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["<"]}]},
            '[values: Invalid value: ["\\u003c"]: values set must be empty for exists and does not exist, '
            'values[0][a]: Invalid value: "<": a valid label must be',
            id="values as Go writes them",
        ),
        pytest.param({"matchLabels": {"a b": "1"}}, f'key: Invalid value: "a b": {NAME_RULE}', id="key"),
        pytest.param(
            {"matchLabels": {"a": "-"}},
            'values[0][a]: Invalid value: "-": a valid label must be an empty string or consist of',
            id="value",
        ),
        pytest.param({"matchLabels": {"": "-"}}, '[key: Invalid value: "": name part must be non-empty; ', id="two"),
        pytest.param(
            {"matchLabels": {"a": "-"}, "matchExpressions": [{"key": "b", "operator": "?"}]},
            "values[0][a]: ",
            id="only the first requirement is named, labels before expressions",
        ),
    ],
)
def test_a_selector_that_is_not_valid_is_refused_in_kubernetes_words(manifest: dict[str, Any], start: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(start)}"):
        parsed(manifest)
