from typing import Any

import pytest

from tests.bench.verify import find_problems
from tests.controlplane.objects import a_pod

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "3"}}}


def a_pod_on_n(name: str, cpu: str = "100m", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    whole = a_pod(name, "a", cpu=cpu, memory="100Mi", labels={"color": "green"}, nodeName="n", **spec)
    return {**whole, "status": {"phase": phase}}


def apart(**term: Any) -> dict[str, Any]:
    whole = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"color": "green"}}, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [whole]}}


def found(*pods: dict[str, Any]) -> list[str]:
    return find_problems(pods, [NODE], {"a": {"team": "devops"}, "b": {}})


def test_a_node_that_is_exactly_full_is_right() -> None:
    assert found(a_pod_on_n("x", "500m"), a_pod_on_n("y", "0.5")) == []


def test_more_than_a_node_holds_is_wrong() -> None:
    assert found(a_pod_on_n("x", "600m"), a_pod_on_n("y", "0.5")) == ["n: 1.100 of cpu asked of 1"]
    assert found(*(a_pod_on_n(str(number)) for number in range(4))) == ["n: 4 pods where 3 fit"]


def test_what_has_ended_or_has_no_node_asks_for_nothing() -> None:
    unbound = a_pod_on_n("z", "900m")
    del unbound["spec"]["nodeName"]

    assert found(a_pod_on_n("x", "900m"), a_pod_on_n("y", "900m", phase="Succeeded"), unbound) == []


@pytest.mark.parametrize(
    ("term", "wrong"),
    [
        pytest.param({}, True, id="in its own namespace"),
        pytest.param({"namespaces": ["b"]}, False, id="in another namespace"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "devops"}}}, True, id="by the namespace's labels"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, False, id="by labels it has not"),
        pytest.param({"labelSelector": {"matchLabels": {"color": "red"}}}, False, id="from others"),
        pytest.param({"topologyKey": "zone"}, False, id="over a zone, which is not looked at"),
    ],
)
def test_pods_that_must_be_apart_are_not_on_one_node(term: dict[str, Any], wrong: bool) -> None:
    assert bool(found(a_pod_on_n("x", affinity=apart(**term)), a_pod_on_n("y"))) == wrong
