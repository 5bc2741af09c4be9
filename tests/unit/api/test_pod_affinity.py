"""Affinity terms of pods: which namespaces, which pods, and what is left when one cannot be parsed."""

from typing import Any

import pytest

from scheduler.api.label_selectors import EVERYTHING, NOTHING, selector_from_labels
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.pods.pod_affinity import NO_TERMS, AffinityTerm, WeightedTerm
from tests.controlplane.objects import a_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = selector_from_labels({"app": "web"})


def a_term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}


BROKEN = a_term(labelSelector={"matchExpressions": [{"key": "a", "operator": "?"}]})


def with_affinity(affinity: Any, namespace: str = "here") -> Pod:
    return pod_from_dict(a_pod("p", namespace, affinity=affinity))


def only_term(**more: Any) -> AffinityTerm:
    (term,) = with_affinity({"podAffinity": {REQUIRED: [a_term(**more)]}}).affinity_terms.required_affinity
    return term


def test_all_four_lists_are_read() -> None:
    terms = with_affinity(
        {
            "podAffinity": {
                REQUIRED: [a_term()],
                PREFERRED: [{"weight": 3, "podAffinityTerm": a_term(topologyKey="a")}],
            },
            "podAntiAffinity": {
                REQUIRED: [a_term(topologyKey="b")],
                PREFERRED: [{"weight": 4, "podAffinityTerm": a_term(topologyKey="c")}],
            },
        }
    ).affinity_terms

    def term(key: str) -> AffinityTerm:
        return AffinityTerm(frozenset(["here"]), NOTHING, WEB, key)

    assert terms.required_affinity == (term("zone"),)
    assert terms.preferred_affinity == (WeightedTerm(term("a"), 3),)
    assert terms.required_anti_affinity == (term("b"),)
    assert terms.preferred_anti_affinity == (WeightedTerm(term("c"), 4),)
    assert terms.error == ""


@pytest.mark.parametrize(
    "affinity", [None, {}, {"nodeAffinity": {}}, {"podAffinity": {}, "podAntiAffinity": {REQUIRED: []}}]
)
def test_pods_without_terms_share_one_object(affinity: Any) -> None:
    assert with_affinity(affinity).affinity_terms is NO_TERMS


@pytest.mark.parametrize(
    ("more", "namespaces", "selector"),
    [
        pytest.param({}, {"here"}, NOTHING, id="the pod's own"),
        pytest.param({"namespaces": []}, {"here"}, NOTHING, id="an empty list is none"),
        pytest.param({"namespaces": ["x", "y"]}, {"x", "y"}, NOTHING, id="a list"),
        pytest.param({"namespaceSelector": {}}, set(), EVERYTHING, id="all"),
        pytest.param(
            {"namespaces": ["x"], "namespaceSelector": {"matchLabels": {"app": "web"}}}, {"x"}, WEB, id="both"
        ),
    ],
)
def test_a_term_means_the_namespaces_it_names_or_else_its_own(more: Any, namespaces: set[str], selector: Any) -> None:
    term = only_term(**more)
    assert term.namespaces == namespaces
    assert term.namespace_selector == selector


def test_a_term_matches_by_namespace_and_labels() -> None:
    term = only_term(namespaces=["x"], namespaceSelector={"matchLabels": {"team": "a"}})
    web = {"app": "web"}
    assert term.matches("x", web, None)
    assert term.matches("y", web, {"team": "a"})
    assert not term.matches("y", web, {"team": "b"})
    assert not term.matches("here", web, None)
    assert not term.matches("x", None, None)


def test_a_term_without_label_selector_matches_no_pod() -> None:
    term = only_term(labelSelector=None)
    assert term.selector == NOTHING
    assert not term.matches("here", {}, None)


def test_a_list_with_a_broken_term_is_empty_and_the_others_are_kept() -> None:
    terms = with_affinity(
        {
            "podAffinity": {REQUIRED: [a_term(), BROKEN], PREFERRED: [{"weight": 1, "podAffinityTerm": a_term()}]},
            "podAntiAffinity": {REQUIRED: [a_term()]},
        }
    ).affinity_terms

    assert terms.error == 'requiredAffinityTerms: "?" is not a valid label selector operator'
    assert terms.required_affinity == ()
    assert len(terms.preferred_affinity) == len(terms.required_anti_affinity) == 1


def test_every_broken_list_is_named_once() -> None:
    broken = {
        REQUIRED: [BROKEN, BROKEN],
        PREFERRED: [{"weight": 1, "podAffinityTerm": a_term(namespaceSelector=BROKEN["labelSelector"])}],
    }
    reason = '"?" is not a valid label selector operator'

    assert with_affinity({"podAffinity": broken, "podAntiAffinity": broken}).affinity_terms.error == (
        f"[requiredAffinityTerms: {reason}, requiredAntiAffinityTerms: {reason}, "
        f"preferredAffinityTerms: {reason}, preferredAntiAffinityTerms: {reason}]"
    )


def test_pods_that_ask_for_the_same_share_one_object() -> None:
    affinity = {"podAffinity": {REQUIRED: [a_term()]}}
    assert with_affinity(affinity).affinity_terms is with_affinity(affinity).affinity_terms
    assert with_affinity(affinity).affinity_terms is not with_affinity(affinity, "there").affinity_terms
    pod = with_affinity(affinity)
    assert pod.bound_to("n1").affinity_terms is pod.affinity_terms
