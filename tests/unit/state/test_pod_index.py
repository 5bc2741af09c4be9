"""Counts of pods by row, through the node table that keeps them."""

from typing import Any

import pytest
from msgspec.structs import replace

from scheduler.api.label_selectors import EVERYTHING, NOTHING, Requirement, Selector, selector_from_labels
from scheduler.api.objects import Affinity, LabelSelector, PodAffinityTerm, PodAntiAffinity
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.framework.pods import PodMatch, TermKind, TermWeights
from scheduler.state.nodes.count_columns import column_bytes
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.pod_index import FREE_MATCHES, MAX_COLUMNS_OF_A_GROUP, MAX_UNLISTED, AlikePodsIndex
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import a_table

ANTI: TermWeights = ((TermKind.REQUIRED_ANTI_AFFINITY, 1),)
NEAR: TermWeights = ((TermKind.REQUIRED_AFFINITY, 1),)
LABEL_KEYS = {"zone": 1}
WEB = selector_from_labels({"app": "web"})
ALL = PodMatch(None, EVERYTHING)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def app_pod(
    name: str,
    labels: Any = None,
    *,
    namespace: str = "default",
    deleting: bool = False,
    apart: str = "",
    times: int = 1,
) -> Pod:
    """`apart` is the value of the label `app` of the pods from which this one keeps away, `times` over."""
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"app": apart}))
    affinity = Affinity(pod_anti_affinity=PodAntiAffinity(required=(term,) * times)) if apart else None
    made = a_pod(name, uid=name, namespace=namespace, labels=labels)
    metadata = replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None)
    return Pod(metadata=metadata, spec=replace(made.spec, affinity=affinity), status=made.status)


def matching(selector: Selector, *namespaces: str, alive_only: bool = False) -> PodMatch:
    return PodMatch(frozenset(namespaces or ["default"]), selector, alive_only)


def two_nodes() -> NodeTable:
    return a_table(*(a_node(name, labels={"zone": "z"}) for name in "ab"))


def counts(table: NodeTable, match: PodMatch) -> list[int]:
    table.check_invariants()
    return [int(count) for count in table.pods.counts(match)]


def towards(
    table: NodeTable | AlikePodsIndex, labels: Any, weights: TermWeights = ANTI, namespace: str = "default"
) -> dict[str, list[int]]:
    """How many terms of each row select such a pod, by topology key."""
    index = table.pods if isinstance(table, NodeTable) else table
    return {key: column.counts.tolist() for key, column in index.terms_towards(weights, namespace, labels, {})}


def anti_affinity(table: NodeTable) -> dict[str, list[int]]:
    """How many terms of each row keep away from pods with a value of the label `app`."""
    table.check_invariants()
    found = {value: towards(table, {"app": value}).get("zone") for value in "xy"}
    table.check_invariants()
    return {value: column for value, column in found.items() if column is not None}


@pytest.mark.parametrize("asked_first", [True, False], ids=["kept up to date", "built afterwards"])
def test_pods_are_counted_by_row_namespace_and_labels(asked_first: bool) -> None:
    table = two_nodes()
    matches = {
        matching(WEB): [2, 0],
        matching(WEB, "other"): [0, 1],
        matching(WEB, "default", "other", "empty"): [2, 1],
        PodMatch(None, WEB): [2, 1],
        matching(EVERYTHING): [3, 1],
        matching(NOTHING): [0, 0],
        ALL: [3, 2],
        matching(WEB, alive_only=True): [1, 0],
    }
    if asked_first:
        assert all(counts(table, match) == [0, 0] for match in matches)

    table.add_pod("a", app_pod("web", {"app": "web"}))
    table.add_pod("a", app_pod("leaving", {"app": "web"}, deleting=True))
    table.add_pod("a", app_pod("db", {"app": "db"}))
    table.add_pod("b", app_pod("plain"))
    table.add_pod("b", app_pod("far", {"app": "web"}, namespace="other"))

    assert {match: counts(table, match) for match in matches} == matches


def test_a_pod_cannot_be_counted_twice() -> None:
    table = two_nodes()
    table.add_pod("a", app_pod("p", {"app": "web"}))
    with pytest.raises(ValueError, match="already"):
        table.add_pod("a", app_pod("p", {"app": "web"}))
    assert counts(table, matching(WEB)) == [1, 0]


@pytest.mark.parametrize("stranger", [app_pod("p", {"app": "db"}), app_pod("p", {"app": "web"}, namespace="other")])
def test_a_pod_that_was_never_counted_cannot_be_taken_away(stranger: Pod) -> None:
    index = AlikePodsIndex(1, LABEL_KEYS)
    index.resize(2)
    index.count(0, app_pod("p", {"app": "web"}), 1)
    with pytest.raises(KeyError):
        index.count(0, stranger, -1)
    with pytest.raises(KeyError):
        index.count(1, app_pod("p", {"app": "web"}), -1)
    index.check_invariants([[app_pod("p", {"app": "web"})], []])


def test_what_ifs_are_counted_inside_and_leave_no_trace() -> None:
    table = two_nodes()
    here = app_pod("here", {"app": "web"}, apart="x")
    table.add_pod("a", here)
    assert counts(table, matching(WEB)) == [1, 0]

    with table.what_if(0, add=[app_pod("v", {"app": "web"}, apart="y")], remove=[here]):
        inside = counts(table, matching(WEB)), counts(table, ALL), anti_affinity(table)

    assert inside == ([1, 0], [1, 0], {"y": [1, 0]})
    assert counts(table, matching(WEB)) == counts(table, ALL) == [1, 0]
    assert anti_affinity(table) == {"x": [1, 0]}


def test_columns_grow_with_the_table() -> None:
    table = a_table(a_node("a", labels={"zone": "z"}), capacity=1)
    table.add_pod("a", app_pod("p", {"app": "web"}, apart="x"))
    assert counts(table, matching(WEB)) == [1]
    assert anti_affinity(table) == {"x": [1]}

    for name in "bcdef":
        table.set_node(a_node(name))
    table.add_pod("f", app_pod("q", {"app": "web"}, apart="x"))

    assert counts(table, matching(WEB)) == [1, 0, 0, 0, 0, 1]
    assert anti_affinity(table) == {"x": [1, 0, 0, 0, 0, 1]}


def test_a_term_that_a_pod_has_twice_counts_twice() -> None:
    table = two_nodes()
    pods = [app_pod("p", apart="x"), app_pod("q", apart="x", times=2), app_pod("r", apart="y")]
    for pod in pods:
        table.add_pod("a", pod)
    assert anti_affinity(table) == {"x": [3, 0], "y": [1, 0]}
    assert not table.pods.has_terms(NEAR)

    table.remove_pod("a", pods[1])
    assert anti_affinity(table) == {"x": [1, 0], "y": [1, 0]}


def test_preferred_terms_count_by_their_weights() -> None:
    def preferring(name: str, weight: int, kind: str) -> Pod:
        term = {"topologyKey": "zone", "labelSelector": {}}
        wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}
        metadata = {"uid": name, "namespace": "default"}
        return pod_from_dict({"metadata": metadata, "spec": {"affinity": {kind: wish}}})

    weights: TermWeights = ((TermKind.PREFERRED_AFFINITY, 1), (TermKind.PREFERRED_ANTI_AFFINITY, -1))
    table = two_nodes()
    table.add_pod("b", preferring("p", 5, "podAffinity"))
    table.add_pod("b", preferring("q", 7, "podAffinity"))
    table.add_pod("a", preferring("r", 3, "podAntiAffinity"))

    assert towards(table, {}, weights) == {"zone": [-3, 12]}
    assert towards(table, {}, weights, namespace="other") == {}


def test_of_a_pod_with_a_broken_term_the_other_lists_count() -> None:
    broken = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
    fine = {"topologyKey": "zone", "labelSelector": {}}
    affinity = {"podAffinity": {REQUIRED: [fine, broken]}, "podAntiAffinity": {REQUIRED: [fine]}}
    table = two_nodes()
    table.add_pod("a", pod_from_dict({"metadata": {"uid": "p"}, "spec": {"affinity": affinity}}))
    assert not table.pods.has_terms(NEAR)
    assert table.pods.has_terms(ANTI)


def test_a_term_counts_while_any_node_has_its_topology_key() -> None:
    table = a_table(a_node("a"), a_node("b"))
    table.add_pod("a", app_pod("p", apart="x"))
    assert not table.pods.has_terms(ANTI)
    assert anti_affinity(table) == {}

    table.set_node(a_node("b", labels={"zone": "z"}))
    assert table.pods.has_terms(ANTI)
    assert anti_affinity(table) == {"x": [1, 0]}

    table.remove_node("b")
    assert not table.pods.has_terms(ANTI)
    assert anti_affinity(table) == {}


def test_terms_that_come_after_the_first_question_count_too() -> None:
    table = two_nodes()
    assert anti_affinity(table) == {}

    table.add_pod("a", app_pod("p", apart="x"))
    assert anti_affinity(table) == {"x": [1, 0]}

    table.add_pod("b", app_pod("q", apart="x", times=2))
    assert anti_affinity(table) == {"x": [1, 2]}


def test_labels_that_no_term_mentions_make_no_difference() -> None:
    index = two_nodes().pods
    index.count(0, app_pod("p", apart="x"), 1)

    found = [towards(index, {"app": "x", "pod-name": f"web-{number}"}) for number in range(3)]
    others = [towards(index, {"app": f"app-{number}"}) for number in range(3)]

    assert found == [{"zone": [1, 0]}] * 3
    assert others == [{}] * 3
    assert len(index._terms._sums) == 2


def test_the_labels_of_the_namespace_are_those_of_now() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "t"}}}
    affinity = {"podAntiAffinity": {REQUIRED: [term]}}
    table = two_nodes()
    table.add_pod("a", pod_from_dict({"metadata": {"uid": "p"}, "spec": {"affinity": affinity}}))

    found = [len(table.pods.terms_towards(ANTI, "default", {}, {"team": team})) for team in ("s", "t", "s")]

    assert found == [0, 1, 0]


def test_the_least_recently_used_matches_are_forgotten_when_memory_is_full() -> None:
    index = AlikePodsIndex(8, LABEL_KEYS, limit=4 * column_bytes(8))
    index.resize(2)
    index.count(1, app_pod("p", {"app": "web"}), 1)
    matches = [matching(EVERYTHING, f"ns{i}", "default") for i in range(4)]
    columns = [index.matching(match) for match in matches]
    index.counts(matches[0])

    columns.append(index.matching(ALL))

    index.count(0, app_pod("q", {"app": "web"}), 1)
    assert [column.counts.tolist() for column in columns] == [[1, 1], [0, 1], [1, 1], [1, 1], [1, 1]]
    index.check_invariants([[app_pod("q", {"app": "web"})], [app_pod("p", {"app": "web"})]])
    assert [index.counts(match).tolist() for match in (*matches, ALL)] == [[1, 1]] * 5


def test_columns_that_are_not_asked_for_are_given_back_and_made_again_when_they_are() -> None:
    index = AlikePodsIndex(8, LABEL_KEYS)
    index.resize(1)
    pods = [app_pod(value, apart=value) for value in "xyz"]
    for pod in pods:
        index.count(0, pod, 1)
    matches = [matching(EVERYTHING, f"ns{i}", "default") for i in range(3)]
    for match in matches:
        index.counts(match)
    kept = index._matches.peek(matches[1])
    assert [towards(index, {"app": value}) for value in "xyz"] == [{"zone": [1]}] * 3

    index.forget_idle()
    index.counts(matches[1])
    index.forget_idle()

    index.check_invariants([pods])
    assert index.bytes == column_bytes(8)
    assert index._matches.peek(matches[1]) is kept
    assert [index.counts(match).tolist() for match in matches] == [[3]] * 3
    assert [towards(index, {"app": value}) for value in "xyz"] == [{"zone": [1]}] * 3


def test_the_sums_of_terms_are_made_again_when_memory_is_full() -> None:
    index = AlikePodsIndex(8, LABEL_KEYS, sums_limit=2 * (1024 + 8 * 4))  # room for two kinds of pods
    index.resize(1)
    pods = [app_pod(value, apart=value) for value in "xyz"]
    for pod in pods:
        index.count(0, pod, 1)

    for _ in range(2):
        assert [towards(index, {"app": value}) for value in "xyz"] == [{"zone": [1]}] * 3
        assert len(index._terms._sums) == 2
        index.check_invariants([pods])


def selecting_all(number: int) -> PodMatch:
    """A match of every pod, unlike those of other numbers."""
    requirement = Requirement(f"absent-{number}", "DoesNotExist")
    return matching(Selector((requirement,)))


def test_a_pod_is_counted_in_a_limited_number_of_columns() -> None:
    index = two_nodes().pods
    pod = app_pod("p", {"app": "web"})
    index.count(0, pod, 1)
    index.counts(ALL)

    for number in range(2 * MAX_COLUMNS_OF_A_GROUP):
        assert index.counts(selecting_all(number)).tolist() == [1, 0]
        index.counts(ALL)

    [group] = index._groups["default"].values()
    assert len(group.columns) <= MAX_COLUMNS_OF_A_GROUP
    assert index._matches.peek(ALL) in group.columns, "it was used all the time"
    index.check_invariants([[pod], []])


def test_a_limited_number_of_matches_is_asked_about_each_new_group() -> None:
    index = two_nodes().pods

    for number in range(2 * MAX_UNLISTED):
        index.counts(selecting_all(number)._replace(namespaces=frozenset({f"ns-{number}"})))

    assert len(index._matches) <= MAX_UNLISTED
    index.check_invariants([[], []])


def test_matches_that_take_too_many_looks_are_found_over_several_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.state.pod_index.MAX_LOOKS", 30)
    index = two_nodes().pods
    for number in range(10):
        index.count(0, app_pod(f"p{number}", {"app": f"{number}"}), 1)
    matches = [selecting_all(number) for number in range(FREE_MATCHES + 2)]

    def decide() -> list[int]:
        index.decision += 1
        return [index.counts(match).tolist()[0] for match in matches]

    with pytest.raises(ValueError, match="80 sets of labels were looked at; the next attempt goes on"):
        decide()
    assert decide() == [10] * len(matches)
