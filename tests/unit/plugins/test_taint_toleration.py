"""TaintToleration: nodes that keep pods away, and nodes that would rather not have them."""

import dataclasses

import numpy as np
import pytest

from plugins.taint_toleration import UNTOLERATED, TaintToleration
from scheduler import framework as fw
from scheduler.api.pods.tolerations import COMPARISONS
from scheduler.testing import a_node, a_pod
from tests.fakes import a_handle
from tests.unit.plugins.cluster import a_cluster, every_row, refusals, scores
from tests.unit.plugins.hints import NODE_ADDED, NODE_TAINTED, TOLERATION_ADDED, wakes

GPU = fw.Taint(key="gpu", value="a100", effect="NoSchedule")
EVICTING = fw.Taint(key="down", effect="NoExecute")
SOFT = fw.Taint(key="spot", effect="PreferNoSchedule")
OTHER = fw.Taint(key="gpu", value="h100", effect="NoSchedule")
GPU_PREFERRED = fw.Taint(key="gpu", value="a100", effect="PreferNoSchedule")


def test_score_without_pre_score_fails_as_in_kube_scheduler() -> None:
    cluster = a_cluster(a_node())

    with pytest.raises(LookupError, match="failed to read"):
        TaintToleration().score_nodes(fw.CycleState(), a_pod(), cluster, every_row(cluster))


def test_a_stored_score_is_not_changed_by_normalising_it() -> None:
    stored = np.array([3, 1, 0])

    TaintToleration().normalize_score(fw.CycleState(), a_pod(), stored)

    assert stored.tolist() == [3, 1, 0]


@pytest.mark.parametrize(
    ("event", "before", "after", "expected"),
    [
        pytest.param(NODE_ADDED, None, [], True, id="a new node without taints"),
        pytest.param(NODE_ADDED, None, [GPU], False, id="a new node with a taint that keeps the pod away"),
        pytest.param(NODE_ADDED, None, [EVICTING], True, id="a new node with a taint that the pod tolerates"),
        pytest.param(NODE_ADDED, None, [SOFT], True, id="a new node with a taint that keeps nobody away"),
        pytest.param(NODE_TAINTED, [GPU], [], True, id="the taint is gone"),
        pytest.param(NODE_TAINTED, [GPU, SOFT], [SOFT, EVICTING], True, id="it made room for one that is tolerated"),
        pytest.param(NODE_TAINTED, [], [GPU], False, id="the taint is new"),
        pytest.param(NODE_TAINTED, [GPU], [GPU, SOFT], False, id="the taint stays"),
        pytest.param(NODE_TAINTED, [GPU, OTHER], [GPU], False, id="one of two taints is gone"),
        pytest.param(NODE_TAINTED, [GPU], [OTHER], False, id="another one took its place"),
        pytest.param(NODE_TAINTED, [EVICTING], [], False, id="a taint is gone that did no harm"),
        pytest.param(NODE_TAINTED, [SOFT], [], False, id="a taint is gone that keeps nobody away"),
        pytest.param(NODE_TAINTED, [GPU], [GPU_PREFERRED], True, id="the taint became a preference"),
    ],
)
def test_a_node_helps_that_keeps_the_pod_away_no_more(
    event: fw.ClusterEvent, before: list[fw.Taint] | None, after: list[fw.Taint], expected: bool
) -> None:
    pod = a_pod(tolerations=[fw.Toleration(key="down", operator="Exists")])
    old = None if before is None else a_node(taints=before)

    assert wakes(TaintToleration(), pod, event, old, a_node(taints=after)) == expected


@pytest.mark.parametrize(("name", "expected"), [("waiting", True), ("other", False)])
def test_a_toleration_helps_the_pod_that_got_it(name: str, expected: bool) -> None:
    new = a_pod(name, tolerations=[fw.Toleration(key="unrelated", operator="Exists")])

    assert wakes(TaintToleration(), a_pod("waiting"), TOLERATION_ADDED, a_pod(name), new) == expected


def a_comparing_plugin() -> TaintToleration:
    plugin = TaintToleration()
    plugin.start(dataclasses.replace(a_handle(), feature_gates=frozenset({COMPARISONS})))
    return plugin


def sla(value: str, effect: str = "NoSchedule") -> fw.Taint:
    return fw.Taint(key="sla", value=value, effect=effect)


ABOVE_950 = fw.Toleration(key="sla", operator="Gt", value="950")


def test_with_the_gate_nodes_are_filtered_and_scored_by_numbers() -> None:
    soft = [a_node(name, taints=[sla(name, "PreferNoSchedule")]) for name in ("900", "999")]
    cluster = a_cluster(a_node("low", taints=[sla("900")]), a_node("high", taints=[sla("999")]), *soft)
    pod = a_pod(tolerations=[ABOVE_950])

    assert refusals(a_comparing_plugin(), pod, cluster) == {"low": UNTOLERATED}
    assert scores(a_comparing_plugin(), pod, cluster) == {"low": 100, "high": 100, "900": 0, "999": 100}


def test_with_the_gate_a_node_helps_whose_number_suffices_now() -> None:
    pod, low, high = a_pod(tolerations=[ABOVE_950]), a_node(taints=[sla("900")]), a_node(taints=[sla("999")])

    assert wakes(a_comparing_plugin(), pod, NODE_TAINTED, low, high)
    assert not wakes(a_comparing_plugin(), pod, NODE_TAINTED, high, low)
    assert not wakes(TaintToleration(), pod, NODE_TAINTED, low, high)
