"""Node selectors: what they match, and what is wrong with them."""

import pytest

from scheduler.api.objects import NodeAffinity, NodeSelectorTerm
from scheduler.api.pods.pod import Pod
from scheduler.api.selectors import (
    FieldProblem,
    as_one_message,
    matches_any,
    parse_int64,
    pod_selector_keys,
    pod_selects,
    preferred_terms,
    problems_of,
    required_terms,
)
from scheduler.testing import a_pod, a_requirement, a_term, preferred, required

LABELS = {"zone": "a", "generation": "12", "signed": "-3", "plus": "+5", "huge": "9223372036854775808"}


def matches(affinity: NodeAffinity, name: str = "n1") -> bool:
    assert affinity.required is not None
    return matches_any(required_terms(affinity.required), LABELS, name)


@pytest.mark.parametrize(
    ("operator", "key", "values", "expected"),
    [
        ("In", "zone", ["b", "a"], True),
        ("In", "zone", ["b"], False),
        ("In", "absent", ["a"], False),
        ("NotIn", "zone", ["b"], True),
        ("NotIn", "zone", ["a"], False),
        ("NotIn", "absent", ["a"], True),
        ("Exists", "zone", [], True),
        ("Exists", "absent", [], False),
        ("DoesNotExist", "absent", [], True),
        ("DoesNotExist", "zone", [], False),
        ("Gt", "generation", ["9"], True),
        ("Gt", "generation", ["12"], False),
        ("Gt", "generation", ["011"], True),
        ("Lt", "generation", ["13"], True),
        ("Lt", "generation", ["12"], False),
        ("Lt", "signed", ["0"], True),
        ("Gt", "plus", ["4"], True),
        ("Gt", "huge", ["1"], False),
        ("Gt", "zone", ["1"], False),
        ("Lt", "absent", ["1"], False),
    ],
)
def test_a_requirement_matches_by_its_operator(operator: str, key: str, values: list[str], expected: bool) -> None:
    assert matches(required(a_term(a_requirement(key, operator, *values)))) == expected


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        pytest.param(
            a_requirement("zone", "Like", "a"),
            'operator: Unsupported value: "Like": supported values: '
            '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
            id="an unknown operator",
        ),
        pytest.param(
            a_requirement("zone", "In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            a_requirement("zone", "Exists", "a"),
            'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
            id="Exists with a value",
        ),
        pytest.param(
            a_requirement("zone", "Gt", "1", "2"),
            "values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
            id="Gt with two values",
        ),
        pytest.param(
            a_requirement("zone", "Lt", "1.5"),
            "values[0]: Invalid value: \"1.5\": for 'Gt', 'Lt' operators, the value must be an integer",
            id="Lt of no integer",
        ),
    ],
)
def test_a_requirement_that_cannot_be_parsed_says_why(requirement: object, problem: str) -> None:
    affinity = required(NodeSelectorTerm(match_expressions=(requirement,)))  # type: ignore[arg-type]
    assert affinity.required is not None

    problems = problems_of(required_terms(affinity.required))

    assert [str(found) for found in problems] == [f"nodeSelectorTerms[0].matchExpressions[0].{problem}"]
    assert not matches(affinity)


def test_a_bad_key_and_a_bad_value_are_both_reported() -> None:
    affinity = required(a_term(), a_term(a_requirement("a b", "In", "ok", "-")))
    assert affinity.required is not None

    paths = [path for path, _ in problems_of(required_terms(affinity.required))]

    assert paths == [
        "nodeSelectorTerms[1].matchExpressions[0].key",
        "nodeSelectorTerms[1].matchExpressions[0].values[1][a b]",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param([a_requirement("metadata.name", "In", "n1")], True, id="its name"),
        pytest.param([a_requirement("metadata.name", "In", "n2")], False, id="another name"),
        pytest.param([a_requirement("metadata.name", "NotIn", "n2")], True, id="not another name"),
        pytest.param([a_requirement("metadata.name", "NotIn", "n1")], False, id="not its name"),
        pytest.param([a_requirement("metadata.name", "In", "n1", "n2")], False, id="two values cannot be parsed"),
        pytest.param([a_requirement("metadata.name", "Exists")], False, id="other operators cannot be parsed"),
        pytest.param([a_requirement("metadata.uid", "In", "")], True, id="other fields are empty"),
    ],
)
def test_a_field_matches_by_the_nodes_name(fields: list[object], expected: bool) -> None:
    assert matches(required(a_term(fields=fields))) == expected  # type: ignore[arg-type]


def test_fields_of_a_node_without_a_name_are_not_looked_at() -> None:
    assert matches(required(a_term(fields=[a_requirement("metadata.name", "In", "n2")])), name="")


def test_one_matching_term_is_enough_whatever_is_wrong_with_others() -> None:
    assert matches(required(a_term(a_requirement("zone", "Like")), a_term(a_requirement("zone", "Exists"))))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod(), True, id="nothing is selected"),
        pytest.param(a_pod(node_selector={"zone": "a"}), True, id="a nodeSelector"),
        pytest.param(a_pod(node_selector={"zone": "b"}), False, id="another value"),
        pytest.param(a_pod(node_selector={"absent": ""}), False, id="an empty value is not an absent label"),
        pytest.param(a_pod(node_affinity=required()), False, id="no terms match nothing"),
        pytest.param(a_pod(node_affinity=preferred()), True, id="preferences do not select"),
    ],
)
def test_a_pod_selects_a_node(pod: Pod, expected: bool) -> None:
    assert pod_selects(pod, LABELS, "n1") == expected


def test_a_required_term_that_cannot_be_parsed_is_an_error_unless_another_one_matches() -> None:
    unreadable = a_term(a_requirement("zone", "Like"))

    assert pod_selects(a_pod(node_affinity=required(unreadable, a_term(a_requirement("zone", "Exists")))), LABELS, "n1")
    assert not pod_selects(a_pod(node_selector={"zone": "b"}, node_affinity=required(unreadable)), LABELS, "n1")
    with pytest.raises(ValueError, match="Like"):
        pod_selects(a_pod(node_affinity=required(unreadable)), LABELS, "n1")


@pytest.mark.parametrize(
    ("pod", "keys"),
    [
        pytest.param(a_pod(), frozenset(), id="nothing is selected"),
        pytest.param(a_pod(node_selector={"zone": "a"}), frozenset({"zone"}), id="a nodeSelector"),
        pytest.param(
            a_pod(
                node_selector={"zone": "a"},
                node_affinity=required(
                    a_term(a_requirement("disk", "Exists")), a_term(fields=[a_requirement("metadata.name", "In", "n1")])
                ),
            ),
            frozenset({"zone", "disk"}),
            id="a nodeSelector and terms",
        ),
        pytest.param(
            a_pod(node_affinity=preferred((1, a_term(a_requirement("zone", "Exists"))))), frozenset(), id="preferred"
        ),
        pytest.param(a_pod(node_affinity=required(a_term(a_requirement("zone", "Like")))), None, id="unreadable"),
    ],
)
def test_the_labels_are_known_on_which_a_selection_depends(pod: Pod, keys: frozenset[str] | None) -> None:
    assert pod_selector_keys(pod) == keys


def test_of_preferred_terms_those_count_that_have_a_weight_and_match() -> None:
    affinity = preferred(
        (1, a_term(a_requirement("zone", "Exists"))),
        (10, a_term(a_requirement("zone", "In", "b"))),
        (100, a_term(a_requirement("generation", "Gt", "1"))),
        (0, a_term(a_requirement("zone", "Like"))),
        (7, a_term()),
    )
    terms = preferred_terms(affinity.preferred or ())

    assert [preferred.weight for preferred in terms if preferred.term.matches(LABELS, "n1")] == [1, 100]
    assert problems_of(term for _, term in terms) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0" * 70 + "1", 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("1" * 5000, None),
        ("", None),
        ("-", None),
        ("1_000", None),
        (" 1", None),
        ("1.0", None),
        ("0x1", None),
        ("٣", None),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: int | None) -> None:
    assert parse_int64(text) == number


def test_several_problems_make_one_message_with_each_once() -> None:
    one, other = FieldProblem("[0].key", "bad"), FieldProblem("[1].key", "worse")

    assert as_one_message([one]) == "[0].key: bad"
    assert as_one_message([one, one]) == "[0].key: bad"
    assert as_one_message([one, other, one]) == "[[0].key: bad, [1].key: worse]"
