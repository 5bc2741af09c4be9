"""Which victims a PodDisruptionBudget protects."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from plugins.shared.eviction.budgets import Budgets
from scheduler import framework as fw
from scheduler.api.unstructured import Unstructured
from scheduler.testing import a_pod, an_object

DB = {"app": "db"}


def a_budget(allowed: int = 0, namespace: str = "default", name: str = "budget", **spec: Any) -> Unstructured:
    return an_object(name, namespace=namespace, spec=spec, status={"disruptionsAllowed": allowed})


def protecting(allowed: int = 0, **labels: str) -> Unstructured:
    return a_budget(allowed, selector={"matchLabels": labels})


def violating(pods: list[fw.Pod], *budgets: Unstructured) -> list[str]:
    """Return who is protected; the others are the rest, in their order."""
    protected, others = Budgets.among(budgets).split(pods)
    names = {pod.name for pod in protected}
    assert [pod.name for pod in pods if pod.name not in names] == [pod.name for pod in others]
    return [pod.name for pod in protected]


class Lower(NamedTuple):
    """The part of fw.LowerPods that counts here."""

    pods: Sequence[fw.Pod]
    counts: fw.Int64Column


def violating_at_once(nodes: list[list[fw.Pod]], *budgets: Unstructured) -> list[str]:
    """Return who is protected on some nodes."""
    pods = [pod for on in nodes for pod in on]
    found = Budgets.among(budgets).violating_on_nodes(
        cast("fw.LowerPods", Lower(pods, np.array(list(map(len, nodes)))))
    )
    return [pod.name for pod, violates in zip(pods, () if found is None else found.tolist(), strict=True) if violates]


PODS = [a_pod("db-1", labels=DB), a_pod("web", labels={"app": "web"}), a_pod("db-2", labels=DB), a_pod("bare")]


def test_without_budgets_nobody_is_protected() -> None:
    assert violating(PODS) == []


def test_what_is_allowed_is_taken_in_order() -> None:
    assert violating(PODS, protecting(0, app="db")) == ["db-1", "db-2"]
    assert violating(PODS, protecting(1, app="db")) == ["db-2"]
    assert violating(PODS, protecting(2, app="db")) == []


def test_the_budgets_that_are_violated_if_all_go_have_names() -> None:
    budgets = Budgets.among([protecting(1, app="db"), protecting(0, app="none")])

    assert budgets.violated_by(PODS[:2]) == []
    assert budgets.violated_by(PODS) == ["default/budget"]


def test_each_question_begins_with_the_whole_budget() -> None:
    budgets = Budgets.among([protecting(1, app="db")])

    assert [len(budgets.split(PODS[:1])[0]) for _ in range(3)] == [0, 0, 0]


def test_one_violated_budget_is_enough() -> None:
    both = a_pod("both", labels={"app": "db", "tier": "back"})

    assert violating([both], protecting(5, app="db"), protecting(0, tier="back")) == ["both"]


@pytest.mark.parametrize(
    ("none_left", "one_left", "violate"),
    [
        pytest.param("a", "b", ["first"], id="the violated one comes first: the other is not charged"),
        pytest.param("b", "a", ["first", "second"], id="the violated one comes last: both are charged"),
    ],
)
def test_a_pod_takes_from_its_budgets_up_to_the_first_that_it_violates(
    none_left: str, one_left: str, violate: list[str]
) -> None:
    first, second = a_pod("first", labels={"app": "db", "tier": "back"}), a_pod("second", labels={"tier": "back"})
    empty = a_budget(0, name=none_left, selector={"matchLabels": {"app": "db"}})
    one = a_budget(1, name=one_left, selector={"matchLabels": {"tier": "back"}})

    for budgets in ([empty, one], [one, empty]):
        assert violating([first, second], *budgets) == violate
        assert violating_at_once([[first, second], [second]], *budgets) == violate


def test_a_budget_is_for_its_namespace() -> None:
    other = a_budget(namespace="other", selector={"matchLabels": DB})

    assert violating(PODS, other) == []


def test_pods_that_the_api_server_has_counted_already_take_nothing() -> None:
    counted = an_object(
        "budget",
        namespace="default",
        spec={"selector": {"matchLabels": DB}},
        status={"disruptionsAllowed": 0, "disruptedPods": {"db-1": "2026-01-01T00:00:00Z"}},
    )

    assert violating(PODS, counted) == ["db-2"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no selector"),
        pytest.param({"selector": {}}, id="an empty selector"),
        pytest.param({"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}}, id="no such operator"),
        pytest.param({"selector": "app=db"}, id="not a selector"),
    ],
)
def test_a_selector_of_no_use_protects_nobody(spec: dict[str, Any]) -> None:
    assert violating(PODS, a_budget(**spec)) == []


def test_a_pod_without_labels_is_protected_by_none() -> None:
    not_db = a_budget(selector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]})

    assert violating(PODS, not_db) == ["web"]


def test_a_budget_without_a_status_allows_nothing() -> None:
    fresh = an_object("budget", namespace="default", spec={"selector": {"matchLabels": DB}})

    assert violating(PODS, fresh) == ["db-1", "db-2"]
