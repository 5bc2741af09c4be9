"""matchLabelKeys and mismatchLabelKeys, which the API server merges into label selectors."""

from typing import Any

import msgspec
import pytest

from scheduler.api.label_selectors import NOTHING, Requirement, Selector, parse_label_selector
from scheduler.api.pods.pod import Pod
from scheduler.simulate.apiserver.defaults import ServerPod, completed_pod

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
TWO = frozenset({"2"})


def stored(spec: dict[str, Any]) -> Pod:
    """A pod that is web in version 2."""
    metadata = {"name": "p", "labels": {"app": "web", "version": "2"}}
    return completed_pod(msgspec.convert({"metadata": metadata, "spec": spec}, ServerPod))


def selectors(term: dict[str, Any]) -> list[Selector]:
    """The selector of a term, wherever a pod may have it."""
    wanted = {REQUIRED: [term], PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}
    terms = stored({"affinity": {"podAffinity": wanted, "podAntiAffinity": wanted}}).affinity_terms
    weighted = (*terms.preferred_affinity, *terms.preferred_anti_affinity)
    required = (*terms.required_affinity, *terms.required_anti_affinity)
    return [each.selector for each in (*required, *(each.term for each in weighted))]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(
            {"labelSelector": {}, "matchLabelKeys": ["version", "absent"]},
            Selector((Requirement("version", "In", TWO),)),
            id="the pod's own value",
        ),
        pytest.param(
            {"labelSelector": {}, "mismatchLabelKeys": ["version"]},
            Selector((Requirement("version", "NotIn", TWO),)),
            id="any but its own",
        ),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "db"}}, "matchLabelKeys": ["version"]},
            Selector((Requirement("app", "In", frozenset({"db"})), Requirement("version", "In", TWO))),
            id="besides what is written",
        ),
        pytest.param({"matchLabelKeys": ["version"]}, NOTHING, id="an absent selector stays absent"),
    ],
)
def test_a_term_takes_over_values_of_the_pods_labels(term: dict[str, Any], expected: Selector) -> None:
    assert selectors({"topologyKey": "zone", **term}) == [expected] * 4


def test_a_spread_constraint_does_too() -> None:
    constraint = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["version"]}

    constraints = stored({"topologySpreadConstraints": [constraint]}).spec.topology_spread_constraints or ()

    assert [parse_label_selector(each.label_selector) for each in constraints] == [
        Selector((Requirement("version", "In", TWO),))
    ]
