"""Pods that ask for too much, and those that just do not."""

from typing import Any

import pytest

from scheduler.api.pods.pod import pod_from_dict
from scheduler.runtime.pod_limits import MAX_POD_SELECTORS, MAX_REQUIREMENTS, excess_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def excess(spec: dict[str, Any]) -> str:
    return excess_of(pod_from_dict({"spec": spec}).spec)


def terms(count: int, **selectors: Any) -> list[dict[str, Any]]:
    return [{"topologyKey": "zone", **selectors}] * count


def weighted(count: int) -> list[dict[str, Any]]:
    return [{"weight": 1, "podAffinityTerm": term} for term in terms(count)]


def labels(count: int) -> dict[str, Any]:
    return {"matchLabels": {f"key-{number}": "x" for number in range(count)}}


def expressions(count: int) -> list[dict[str, Any]]:
    return [{"key": f"key-{number}", "operator": "Exists"} for number in range(count)]


def towards_pods(count: int) -> dict[str, Any]:
    """A pod with terms of all four lists, and constraints."""
    fifth = count // 5
    return {
        "affinity": {
            "podAffinity": {REQUIRED: terms(fifth), PREFERRED: weighted(fifth)},
            "podAntiAffinity": {REQUIRED: terms(fifth), PREFERRED: weighted(fifth)},
        },
        "topologySpreadConstraints": [{"topologyKey": "zone"}] * (count - 4 * fifth),
    }


@pytest.mark.parametrize("spec", [{}, {"affinity": {}}, {"affinity": {"podAffinity": {}, "nodeAffinity": {}}}])
def test_almost_every_pod_asks_for_little(spec: dict[str, Any]) -> None:
    assert excess(spec) == ""


def test_terms_and_constraints_count_together() -> None:
    assert excess(towards_pods(MAX_POD_SELECTORS)) == ""
    assert excess(towards_pods(MAX_POD_SELECTORS + 1)) == (
        "the pod has 101 pod affinity terms and topology spread constraints, more than 100 are not looked at"
    )


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(lambda count: {"nodeSelector": labels(count)["matchLabels"]}, id="node selector"),
        pytest.param(
            lambda count: {"affinity": {"podAffinity": {REQUIRED: terms(1, labelSelector=labels(count))}}},
            id="pod selector",
        ),
        pytest.param(
            lambda count: {
                "affinity": {
                    "podAntiAffinity": {REQUIRED: terms(1, namespaceSelector={"matchExpressions": expressions(count)})}
                }
            },
            id="namespace selector",
        ),
        pytest.param(
            lambda count: {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": labels(count)}]},
            id="spread constraint",
        ),
        pytest.param(
            lambda count: {
                "affinity": {
                    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions(count - 1)}]}}
                }
            },
            id="required node affinity",
        ),
        pytest.param(
            lambda count: {
                "affinity": {
                    "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchFields": expressions(count - 1)}}]}
                }
            },
            id="preferred node affinity",
        ),
        pytest.param(
            lambda count: {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1}] * count}}}, id="empty node terms"
        ),
    ],
)
def test_requirements_count_wherever_they_are(spec: Any) -> None:
    assert excess(spec(MAX_REQUIREMENTS)) == ""
    assert excess(spec(MAX_REQUIREMENTS + 1)) == (
        "the pod has 1001 requirements in its selectors, more than 1000 are not looked at"
    )


def test_the_values_of_a_requirement_do_not_count() -> None:
    values = [f"node-{number}" for number in range(10 * MAX_REQUIREMENTS)]
    hostnames = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]}

    assert excess({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [hostnames]}}}}) == ""
