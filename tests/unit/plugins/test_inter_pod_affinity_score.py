"""InterPodAffinity: preferred terms, both ways, and what required affinity of others is worth."""

from collections.abc import Mapping

import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_pod
from tests.unit.plugins.cluster import a_cluster, every_row, raw_scores
from tests.unit.plugins.pod_affinity import (
    ZONE,
    a_plugin,
    a_selector,
    a_zoned_node,
    pods_like,
    with_terms,
)

WEB, DB = {"app": "web"}, {"app": "db"}
WEBS, DBS = pods_like(ZONE, app="web"), pods_like(ZONE, app="db")
BLUE = a_selector(team="blue")


def three_nodes(pods: Mapping[str, list[fw.Pod]] | None = None) -> NodeTable:
    """Two nodes in one zone, one in another."""
    return a_cluster(a_zoned_node("a", "z1"), a_zoned_node("b", "z1"), a_zoned_node("c", "z2"), pods=pods)


@pytest.mark.parametrize(
    ("pod", "there", "expected"),
    [
        pytest.param(
            a_pod(labels=WEB),
            {"a": [with_terms("x", likes=[(3, WEBS), (3, WEBS), (4, WEBS)])]},
            [10, 10, 0],
            id="a pod that says it twice means it twice",
        ),
        pytest.param(
            with_terms(labels=WEB, likes=[(10, DBS)], dislikes=[(4, WEBS)]),
            {"a": [a_pod("x", labels=DB)], "c": [with_terms("y", WEB, dislikes=[(7, WEBS)])]},
            [10, 10, -11],
            id="all of it together",
        ),
        pytest.param(
            a_pod(namespace="blue", labels=WEB),
            {
                "a": [with_terms("x", likes=[(5, pods_like(ZONE, of=BLUE, app="web"))])],
                "c": [with_terms("y", likes=[(9, WEBS)])],
            },
            [5, 5, 0],
            id="a pod there likes pods of a namespace with a label",
        ),
        pytest.param(
            with_terms(likes=[(5, WEBS)], dislikes=[(5, WEBS)]),
            {"a": [a_pod("x", labels=WEB)]},
            [0, 0, 0],
            id="likes and dislikes that cancel out are an answer",
        ),
    ],
)  # fmt: skip
def test_domains_are_worth_the_weights_of_the_terms_that_meet_a_pod_there(
    pod: fw.Pod, there: dict[str, list[fw.Pod]], expected: list[int]
) -> None:
    cluster = three_nodes(there)
    state = fw.CycleState()

    assert a_plugin().pre_score(state, pod, cluster, every_row(cluster)) is None
    assert raw_scores(a_plugin(), pod, cluster).tolist() == expected


@pytest.mark.parametrize(
    ("pod", "there"),
    [
        pytest.param(a_pod(labels=WEB), [a_pod("x", labels=WEB)], id="nobody has terms"),
        pytest.param(with_terms(likes=[(5, WEBS)]), [a_pod("x", labels=DB)], id="no pod matches"),
        pytest.param(with_terms(likes=[(5, pods_like("absent"))]), [a_pod("x")], id="no node has the topology"),
        pytest.param(a_pod(labels=WEB), [with_terms("x", apart=[WEBS])], id="required anti-affinity has no weight"),
    ],
)
def test_a_pod_that_no_preferred_term_concerns_skips_score(pod: fw.Pod, there: list[fw.Pod]) -> None:
    cluster = three_nodes({"a": there})

    assert a_plugin().pre_score(fw.CycleState(), pod, cluster, every_row(cluster)) == fw.SKIP


@pytest.mark.parametrize(("weight", "expected"), [(0, [0, 0, 0]), (1, [1, 1, 0]), (100, [100, 100, 0])])
def test_required_affinity_of_a_pod_there_is_worth_the_hard_weight(weight: int, expected: list[int]) -> None:
    cluster = three_nodes({"a": [with_terms("x", near=[WEBS])]})

    found = raw_scores(a_plugin(hard_pod_affinity_weight=weight), a_pod(labels=WEB), cluster)

    assert found.tolist() == expected


def test_preferences_of_others_can_be_ignored_for_pods_without_preferences() -> None:
    cluster = three_nodes({"a": [with_terms("x", DB, likes=[(3, WEBS)])]})
    plugin = a_plugin(ignore_preferred_terms_of_existing_pods=True)

    assert raw_scores(plugin, a_pod(labels=WEB), cluster).tolist() == [0, 0, 0]
    assert raw_scores(plugin, with_terms(labels=WEB, near=[WEBS]), cluster).tolist() == [0, 0, 0]
    assert raw_scores(plugin, with_terms(labels=WEB, likes=[(2, DBS)]), cluster).tolist() == [5, 5, 0]


def test_scores_are_scaled_by_floats_and_cut_off() -> None:
    found = a_plugin().normalize_score(fw.CycleState(), a_pod(), np.array([-7, 0, 22, 93]))

    assert found.tolist() == [0, 7, 28, 100]  # 100 * (29 / 100) is a little less than 29
    assert found.dtype == np.int64


def test_no_nodes_need_no_scaling() -> None:
    assert a_plugin().normalize_score(fw.CycleState(), a_pod(), np.zeros(0, np.int64)).tolist() == []


def test_terms_that_cannot_be_parsed_are_an_error_of_pre_score() -> None:
    cluster = three_nodes()
    pod = with_terms(dislikes=[(1, pods_like(ZONE, ("app", "Near")))])

    answer = a_plugin().pre_score(fw.CycleState(), pod, cluster, every_row(cluster))

    text = 'failed to parse pod: preferredAntiAffinityTerms: "Near" is not a valid label selector operator'
    assert answer == fw.Status(fw.Code.ERROR, (text,))


def test_score_without_pre_score_is_an_error() -> None:
    with pytest.raises(LookupError, match='failed to read "PreScoreInterPodAffinity" from cycleState: not found'):
        a_plugin().score_nodes(fw.CycleState(), a_pod(), three_nodes(), every_row(three_nodes()))
