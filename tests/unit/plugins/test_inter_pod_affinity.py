"""InterPodAffinity: required affinity and anti-affinity, both ways."""

from collections.abc import Sequence

import pytest

from plugins.inter_pod_affinity.filter import AFFINITY, ANTI_AFFINITY
from scheduler import framework as fw
from scheduler.api.objects import PodAffinityTerm
from scheduler.framework.arguments import parse_arguments
from scheduler.testing import Objects, a_node, a_pod, an_object
from tests.unit.plugins.cluster import a_cluster, every_row, refusals
from tests.unit.plugins.pod_affinity import (
    HOST,
    ZONE,
    a_plugin,
    a_selector,
    a_zoned_node,
    pods_like,
    with_terms,
)

WEB = {"app": "web"}
DB = {"app": "db"}


def test_a_pod_that_no_required_term_concerns_skips_filter() -> None:
    cluster = a_cluster(
        a_zoned_node("a", "z1"),
        pods={"a": [with_terms("x", near=[pods_like(ZONE, app="web")], apart=[pods_like(ZONE, app="db")])]},
    )

    answer = a_plugin().pre_filter(fw.CycleState(), with_terms(labels=WEB, likes=[(1, pods_like(ZONE))]), cluster)

    assert answer == fw.SKIP


def test_a_term_without_selector_matches_no_pod() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"a": [a_pod("x", labels=WEB)]})
    nobody = PodAffinityTerm(topology_key=ZONE)

    assert refusals(a_plugin(), with_terms(labels=WEB, near=[nobody]), cluster) == {"a": AFFINITY}
    assert refusals(a_plugin(), with_terms(labels=WEB, apart=[nobody]), cluster) == {}


def test_all_affinity_terms_must_be_met_by_a_single_pod() -> None:
    both = [pods_like(ZONE, app="web"), pods_like(HOST, tier="back")]
    nodes = [a_zoned_node("a", "z1"), a_zoned_node("b", "z1")]
    halves = {"a": [a_pod("x", labels={"app": "web"}), a_pod("y", labels={"tier": "back"})]}

    apart = refusals(a_plugin(), with_terms(near=both), a_cluster(*nodes, pods=halves))
    together = refusals(
        a_plugin(),
        with_terms(near=both),
        a_cluster(*nodes, pods={"a": [a_pod("x", labels={"app": "web", "tier": "back"})]}),
    )

    assert apart == {"a": AFFINITY, "b": AFFINITY}
    assert together == {"b": AFFINITY}


def test_a_like_pod_on_a_node_without_the_topology_leaves_a_pod_the_first() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"), a_zoned_node("bare", None), pods={"bare": [a_pod("x", labels=WEB)]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web")])

    assert refusals(a_plugin(), pod, cluster) == {"bare": AFFINITY}


def test_pods_of_a_node_that_is_not_there_count_for_nobody() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"gone": [a_pod("x", labels=WEB)]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web")], apart=[pods_like(HOST, app="web")])

    assert refusals(a_plugin(), pod, cluster) == {}


BLUE = a_selector(team="blue")


@pytest.mark.parametrize(
    ("namespaces", "selector", "matches"),
    [
        pytest.param((), None, {"default"}, id="nothing said: its own"),
        pytest.param(("default",), BLUE, {"default", "blue"}, id="by name or label"),
        pytest.param((), a_selector(), {"default", "blue", "bare", "unknown"}, id="an empty selector means all"),
        pytest.param((), a_selector(("team", "DoesNotExist")), {"bare"}, id="those that lack a label"),
    ],
)
def test_a_term_reaches_into_the_namespaces_that_it_names(
    namespaces: Sequence[str], selector: object, matches: set[str]
) -> None:
    names = ("default", "blue", "bare", "unknown")
    cluster = a_cluster(
        *(a_zoned_node(name, "z1") for name in names),
        pods={name: [a_pod("x", namespace=name, labels=WEB)] for name in names},
    )
    term = pods_like(HOST, namespaces=namespaces, of=selector, app="web")  # type: ignore[arg-type]

    apart = refusals(a_plugin(), with_terms(apart=[term]), cluster)
    near = refusals(a_plugin(), with_terms(near=[term]), cluster)

    assert apart == dict.fromkeys(matches, ANTI_AFFINITY)
    assert near == dict.fromkeys(set(names) - matches, AFFINITY)


def test_a_namespace_that_gets_a_label_is_selected_from_then_on() -> None:
    objects = Objects({fw.NAMESPACE: [an_object("shop")]})
    plugin = a_plugin(objects)
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"a": [a_pod("x", namespace="shop", labels=WEB)]})
    pod = with_terms(near=[pods_like(ZONE, of=BLUE, app="web")])
    before = refusals(plugin, pod, cluster)

    objects.put(fw.NAMESPACE, an_object("shop", labels={"team": "blue"}))

    assert before == {"a": AFFINITY}
    assert refusals(plugin, pod, cluster) == {}


def test_terms_that_cannot_be_parsed_refuse_the_pod_and_preemption_does_not_help() -> None:
    pod = with_terms(near=[pods_like(ZONE, ("app", "In"))], apart=[pods_like(ZONE, ("app", "Near", "web"))])

    answer = a_plugin().pre_filter(fw.CycleState(), pod, a_cluster(a_node("a")))

    assert answer == fw.unresolvable(
        "parsing pod: [requiredAffinityTerms: values: Invalid value: null: for 'in', 'notin' operators, values set "
        'can\'t be empty, requiredAntiAffinityTerms: "Near" is not a valid label selector operator]'
    )


def test_a_what_if_counts_the_pods_that_come_and_go_and_leaves_the_cycle_as_it_was() -> None:
    friend, enemy = a_pod("friend", labels=DB), with_terms("enemy", WEB, apart=[pods_like(ZONE, app="web")])
    cluster = a_cluster(a_zoned_node("a", "z1"), a_zoned_node("b", "z1"), a_zoned_node("c", "z2"), pods={"a": [friend]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="db")], apart=[pods_like(HOST, app="web")])
    plugin, state = a_plugin(), fw.CycleState()
    plugin.pre_filter(state, pod, cluster)

    def codes(of: fw.CycleState) -> list[int]:
        found = plugin.filter_nodes(of, pod, cluster, every_row(cluster))
        one_by_one = [plugin.filter_nodes(of, pod, cluster, every_row(cluster)[row : row + 1]) for row in range(3)]
        singles = [0 if each is None else each.item() for each in one_by_one]
        assert singles == ([0, 0, 0] if found is None else found.tolist())
        return singles

    what_if = state.clone()
    plugin.add_pod(what_if, pod, enemy, cluster.info(1))
    plugin.add_pod(what_if, pod, a_pod("friend-2", labels=DB), cluster.info(2))
    without = what_if.clone()
    plugin.remove_pod(without, pod, friend, cluster.info(0))
    plugin.remove_pod(without, pod, enemy, cluster.info(1))

    assert codes(state) == [0, 0, 1]
    assert codes(what_if) == [3, 2, 0]
    assert codes(without) == [1, 1, 0]


def test_filter_without_pre_filter_is_an_error() -> None:
    with pytest.raises(LookupError, match='error reading "PreFilterInterPodAffinity" from cycleState: not found'):
        a_plugin().filter_nodes(fw.CycleState(), a_pod(), a_cluster(), every_row(a_cluster()))


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        pytest.param({"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}, [], id="fine"),
        pytest.param(
            {"hardPodAffinityWeight": 101},
            ["args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
            id="too much",
        ),
    ],
)
def test_arguments_have_kube_schedulers_names_and_range(arguments: dict[str, object], problems: list[str]) -> None:
    found: list[str] = []

    parse_arguments(type(a_plugin()), arguments, "args", found)

    assert found == problems
