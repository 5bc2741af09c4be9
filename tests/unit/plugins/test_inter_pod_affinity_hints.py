"""InterPodAffinity: which events are worth another attempt."""

import pytest

from plugins.inter_pod_affinity.hints import AffinityHints, hint_key
from plugins.inter_pod_affinity.terms import TermResolver
from scheduler import framework as fw
from scheduler.api.objects import PodAffinityTerm, PodStatus
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_cluster, a_node, a_pod, an_object
from tests.unit.plugins.pod_affinity import (
    HOST,
    a_plugin,
    a_selector,
    pods_like,
    with_terms,
)

QUEUE, SKIP = fw.QueueingHint.QUEUE, fw.QueueingHint.SKIP
SCANS = pods_like("region", ("service", "In", "scan", "audit"))
NEAR, APART = with_terms("p", near=[SCANS]), with_terms("p", apart=[SCANS])
BLUE = a_selector(team="blue")


def hints(nodes: NodeTable | None = None) -> AffinityHints:
    plugin = a_plugin(nodes=nodes)
    return AffinityHints(plugin.handle, TermResolver(plugin.handle))


def running(namespace: str = "default", **labels: str) -> fw.Pod:
    return a_pod("other", namespace=namespace, labels=labels, node_name="n")


SCAN, AUDIT, OTHER = running(service="scan"), running(service="audit"), running(aaa="a")


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, SCAN, QUEUE, id="added, matches affinity"),
        pytest.param(NEAR, None, a_pod("other", labels={"service": "scan"}), SKIP, id="added, without a node"),
        pytest.param(NEAR, None, OTHER, SKIP, id="added, does not match"),
        pytest.param(NEAR, OTHER, SCAN, QUEUE, id="comes to match affinity"),
        pytest.param(NEAR, AUDIT, SCAN, SKIP, id="matched before"),
        pytest.param(NEAR, a_pod("other"), a_pod("other", labels={"service": "scan"}), SKIP, id="updated, no node"),
        pytest.param(NEAR, SCAN, OTHER, SKIP, id="stops to match affinity"),
        pytest.param(
            with_terms("p", near=[SCANS, pods_like(HOST, tier="x")]), OTHER, SCAN, SKIP, id="matches one term of two"
        ),
        pytest.param(
            with_terms("p", near=[SCANS, pods_like(HOST, tier="x")]),
            SCAN,
            running(service="scan", tier="x"),
            QUEUE,
            id="comes to match both terms",
        ),
        pytest.param(a_pod("p"), a_pod("p"), a_pod("p", labels={"a": "b"}), QUEUE, id="the pod itself"),
        pytest.param(APART, SCAN, OTHER, QUEUE, id="stops to match anti-affinity"),
        pytest.param(APART, OTHER, SCAN, SKIP, id="comes to match anti-affinity"),
        pytest.param(APART, OTHER, None, SKIP, id="deleted, did not match"),
        pytest.param(APART, SCAN, None, QUEUE, id="deleted, matched anti-affinity"),
        pytest.param(
            a_pod("p", labels={"service": "scan"}),
            with_terms("other", apart=[SCANS], node_name="n"),
            None,
            QUEUE,
            id="deleted, kept the pod away",
        ),
        pytest.param(
            a_pod("p", labels={"service": "web"}),
            with_terms("other", apart=[SCANS], node_name="n"),
            None,
            SKIP,
            id="deleted, kept others away",
        ),
        pytest.param(
            APART,
            a_pod("other", labels={"service": "scan"}, status=PodStatus(nominated_node_name="n")),
            None,
            QUEUE,
            id="deleted, was nominated",
        ),
        pytest.param(NEAR, SCAN, None, SKIP, id="deleted, matched affinity"),
    ],
)
def test_a_pod_helps_that_comes_to_match_or_goes(
    pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None, expected: fw.QueueingHint
) -> None:
    assert hints().after_pod(pod, old, new) == expected


def test_pods_in_a_namespace_that_a_term_selects_help_too() -> None:
    pod = with_terms("p", near=[pods_like("region", of=BLUE, service="scan")])

    assert hints().after_pod(pod, None, running("blue", service="scan")) == QUEUE
    assert hints().after_pod(pod, None, running("bare", service="scan")) == SKIP


def test_a_deleted_pod_kept_pods_away_by_the_labels_of_their_namespace() -> None:
    gone = with_terms("other", apart=[pods_like("region", of=BLUE, service="scan")], node_name="n")
    labels = {"service": "scan"}

    assert hints().after_pod(a_pod("p", namespace="blue", labels=labels), gone, None) == QUEUE
    assert hints().after_pod(a_pod("p", namespace="bare", labels=labels), gone, None) == SKIP


def node(**labels: str) -> fw.Node:
    return a_node("n", labels=labels)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR, None, node(region="r1"), QUEUE, id="new, with the topology"),
        pytest.param(NEAR, None, node(zone="z"), SKIP, id="new, without it"),
        pytest.param(NEAR, node(region="r1", a="1"), node(region="r1", a="2"), SKIP, id="another label"),
        pytest.param(NEAR, node(region="r1"), node(region="r2"), QUEUE, id="moves"),
        pytest.param(NEAR, node(), node(region="r1"), QUEUE, id="gets the topology"),
        pytest.param(NEAR, node(region="r1"), node(), SKIP, id="loses the topology"),
        pytest.param(APART, None, node(region="r1"), QUEUE, id="anti-affinity: new, with the topology"),
        pytest.param(APART, None, node(zone="z"), QUEUE, id="anti-affinity: new, without it"),
        pytest.param(APART, node(a="1"), node(a="2"), SKIP, id="anti-affinity: another label"),
        pytest.param(APART, node(region="r1"), node(region="r2"), QUEUE, id="anti-affinity: moves"),
        pytest.param(APART, node(), node(region="r1"), SKIP, id="anti-affinity: gets the topology"),
        pytest.param(APART, node(region="r1"), node(), QUEUE, id="anti-affinity: loses the topology"),
        pytest.param(a_pod("p"), None, node(region="r1"), SKIP, id="no terms"),
    ],
)
def test_a_node_helps_that_joins_or_leaves_a_domain(
    pod: fw.Pod, old: fw.Node | None, new: fw.Node, expected: fw.QueueingHint
) -> None:
    assert hints().after_node(pod, old, new) == expected


WEB = {"app": "web"}
LONELY = pods_like("region", app="web")


def with_pods(*pods: fw.Pod, **labels: str) -> NodeTable:
    """A cluster with one node `n`, and pods there."""
    return a_cluster(node(**labels), pods={"n": pods})


@pytest.mark.parametrize(
    ("pod", "there", "old", "new", "expected"),
    [
        pytest.param(a_pod("p", labels=WEB), [LONELY], None, node(region="r2"), QUEUE, id="a new node"),
        pytest.param(a_pod("p"), [LONELY], None, node(region="r2"), SKIP, id="a new node, and no pod keeps it away"),
        pytest.param(
            a_pod("p", labels=WEB), [LONELY], node(region="r2"), node(region="r1"), QUEUE, id="leaves a domain"
        ),
        pytest.param(a_pod("p", labels=WEB), [LONELY], node(region="r2"), None, QUEUE, id="is deleted"),
        pytest.param(a_pod("p", labels=WEB), [LONELY], node(zone="z"), None, SKIP, id="is deleted, of no domain"),
        pytest.param(
            a_pod("p", labels=WEB), [LONELY], node(region="r1", a="1"), node(region="r1"), SKIP, id="another label"
        ),
    ],
)
def test_a_node_helps_where_the_anti_affinity_of_pods_there_ends(
    pod: fw.Pod, there: list[PodAffinityTerm], old: fw.Node | None, new: fw.Node | None, expected: fw.QueueingHint
) -> None:
    nodes = with_pods(with_terms("other", apart=there, node_name="n"), region="r1")

    assert hints(nodes=nodes).after_node(pod, old, new) == expected


def test_a_node_helps_that_was_the_last_in_any_domain_of_an_anti_affinity() -> None:
    nodes = with_pods(with_terms("other", apart=[LONELY], node_name="n"))
    pod = a_pod("p", labels=WEB)

    assert hints(nodes=nodes).after_node(pod, node(region="r1"), node()) == QUEUE
    assert hints(nodes=nodes).after_node(a_pod("p"), node(region="r1"), node()) == SKIP


@pytest.mark.parametrize(("others", "expected"), [(0, QUEUE), (1, SKIP)])
def test_a_pod_may_be_the_first_when_the_last_that_matched_is_gone(others: int, expected: fw.QueueingHint) -> None:
    first, gone = with_terms("p", WEB, near=[LONELY]), running(app="web")
    nodes = with_pods(*[running(app="web")] * others, region="r1")

    assert hints(nodes=nodes).after_pod(first, gone, None) == expected
    assert hints(nodes=nodes).after_pod(first, gone, running()) == expected
    assert hints(nodes=nodes).after_node(first, node(region="r2"), None) == expected
    assert hints(nodes=nodes).after_node(first, node(region="r2"), node()) == expected
    assert hints(nodes=nodes).after_pod(with_terms("p", near=[LONELY]), gone, None) == SKIP


def test_a_pod_that_may_be_the_first_is_kept_away_by_others_all_the_same() -> None:
    there = with_terms("other", apart=[LONELY], node_name="n")
    first = with_terms("p", WEB, near=[pods_like(HOST, app="web")])

    nodes = with_pods(there, region="r1")
    assert hints(nodes=nodes).after_node(first, node(region="r2"), node(region="r1")) == QUEUE


def test_of_several_anti_affinity_terms_each_keeps_pods_away() -> None:
    both = [SCANS, pods_like(HOST, tier="x")]

    assert hints().after_pod(with_terms("p", apart=both), SCAN, None) == QUEUE
    assert hints().after_pod(with_terms("p", apart=both), SCAN, OTHER) == QUEUE
    there = with_terms("other", apart=both, node_name="n")
    assert hints().after_pod(a_pod("p", labels={"service": "scan"}), there, None) == QUEUE


NEAR_BLUE = with_terms("p", near=[pods_like("region", of=BLUE)])
APART_BLUE = with_terms("p", apart=[pods_like("region", of=BLUE)])
SHOP, BLUE_SHOP, CHANGED = (
    an_object("shop", labels=each) for each in ({}, {"team": "blue"}, {"team": "blue", "a": "b"})
)


@pytest.mark.parametrize(
    ("pod", "old", "new", "expected"),
    [
        pytest.param(NEAR_BLUE, None, BLUE_SHOP, QUEUE, id="new, selected"),
        pytest.param(NEAR_BLUE, None, SHOP, SKIP, id="new, not selected"),
        pytest.param(NEAR_BLUE, SHOP, BLUE_SHOP, QUEUE, id="comes to be selected"),
        pytest.param(NEAR_BLUE, BLUE_SHOP, CHANGED, SKIP, id="was selected"),
        pytest.param(NEAR_BLUE, BLUE_SHOP, SHOP, SKIP, id="stops to be selected"),
        pytest.param(APART_BLUE, SHOP, BLUE_SHOP, SKIP, id="anti-affinity: comes to be selected"),
        pytest.param(APART_BLUE, BLUE_SHOP, SHOP, QUEUE, id="anti-affinity: stops to be selected"),
        pytest.param(a_pod("p", namespace="shop"), BLUE_SHOP, SHOP, QUEUE, id="the pod's own namespace"),
        pytest.param(a_pod("p", namespace="shop"), SHOP, SHOP, SKIP, id="its own, with the labels it had"),
        pytest.param(APART_BLUE, BLUE_SHOP, None, QUEUE, id="anti-affinity: is deleted"),
        pytest.param(NEAR_BLUE, BLUE_SHOP, None, SKIP, id="is deleted"),
    ],
)
def test_a_namespace_helps_that_starts_or_stops_to_be_selected(
    pod: fw.Pod, old: fw.Unstructured | None, new: fw.Unstructured | None, expected: fw.QueueingHint
) -> None:
    assert hints().after_namespace(pod, old, new) == expected


def test_a_pod_whose_terms_cannot_be_parsed_is_woken() -> None:
    with pytest.raises(ValueError, match="is not a valid label selector operator"):
        hints().after_node(with_terms(near=[pods_like("region", ("a", "Near"))]), None, node())


def test_pods_of_one_key_get_one_answer() -> None:
    one, same = (with_terms(name, {"a": "b"}, near=[SCANS]) for name in ("one", "same"))

    assert hint_key(one) == hint_key(same)
    for other in (with_terms("x", {"a": "c"}, near=[SCANS]), with_terms("x", {"a": "b"}, apart=[SCANS]), a_pod("x")):
        assert hint_key(one) != hint_key(other)


def test_pods_nodes_and_namespaces_are_listened_to() -> None:
    events: dict[str, fw.Action] = {}
    for each in a_plugin().events_to_register():
        events[each.event.resource] = events.get(each.event.resource, fw.Action(0)) | each.event.action

    assert events == {
        fw.ASSIGNED_POD: fw.Action.ADD | fw.Action.UPDATE_POD_LABEL | fw.Action.DELETE,
        fw.TARGET_POD: fw.Action.UPDATE_POD_LABEL,
        fw.NODE: fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL | fw.Action.DELETE,
        fw.NAMESPACE: fw.Action.ALL,
    }
