from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bench.operations import (
    Barrier,
    Churn,
    CreateNodes,
    CreatePods,
    Decoder,
    DeletePods,
    UnsupportedError,
    seconds,
)
from tests.bench.workloads import Workload, read_case, select

SUITE = Path("/suite")
HERE = SUITE / "misc"

CASE = """
name: Basic
defaultPodTemplatePath: ../templates/pod.yaml
featureGates: {Hints: true}
workloadTemplate:
- opcode: createNodes
  countParam: $initNodes
- opcode: createPodSets
  countParam: $sets
  namespacePrefix: init
  createPodsOp: {opcode: createPods, countParam: $perSet}
- opcode: churn
  mode: recreate
  number: 1
  templatePaths: [churn/a.yaml, ../b.yaml]
- opcode: createPods
  countParam: $measurePods
  collectMetrics: true
workloads:
- name: small
  labels: [short]
  params: {initNodes: 5, sets: 2, perSet: 3, measurePods: 10}
- name: large
  labels: [performance]
  featureGates: {Hints: false}
  params: {initNodes: 500, sets: 2, perSet: 30, measurePods: 1000}
- name: large_Hints
  labels: [performance]
  params: {initNodes: 500, sets: 2, perSet: 30, measurePods: 1000}
- name: large_Hints_again
  labels: [performance]
  params: {initNodes: 500, sets: 2, perSet: 30, measurePods: 1000}
- name: larger
  labels: [performance]
  params: {initNodes: 5000, sets: 2, perSet: 30, measurePods: 1000000}
"""


def read(case: str = CASE, scale: float = 1.0) -> dict[str, Workload]:
    return {one.name: one for one in read_case(yaml.safe_load(case), HERE, SUITE, {"Hints": True}, scale)}


def decode(*operations: dict[str, Any], **params: Any) -> tuple[Any, ...]:
    return Decoder(params, HERE).decode_all(operations)


def test_a_workload_has_its_parameters_filled_in_and_its_paths_absolute() -> None:
    small = read()["small"]

    assert small.operations == (
        CreateNodes(count=5),
        CreatePods(count=3, namespace="init-0"),
        CreatePods(count=3, namespace="init-1"),
        Churn(mode="recreate", number=1, template_paths=(HERE / "churn/a.yaml", HERE / "../b.yaml")),
        CreatePods(count=10, collect_metrics=True),
    )
    assert (small.id, small.nodes, small.pods, small.skip) == ("Basic/small", 5, 16, "")
    assert (small.pod_template, small.directory) == (HERE / "../templates/pod.yaml", "misc")


def test_nodes_and_pods_are_scaled_and_nothing_else() -> None:
    assert read(scale=0.1)["large"].params == {"initNodes": 50, "sets": 2, "perSet": 3, "measurePods": 100}
    assert read(scale=0.01)["small"].params == {"initNodes": 1, "sets": 2, "perSet": 1, "measurePods": 1}


def test_a_workload_that_cannot_be_run_says_why() -> None:
    found = read()

    assert found["large"].skip == "not the default: Hints=false"
    assert found["large_Hints"].skip == ""
    assert found["large_Hints_again"].skip == "the same as large_Hints with default gates"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("$perSet", "$perset", "parameter perset is not defined"),
        ("mode: recreate", "node: recreate", "churn: unknown field node"),
        ("opcode: churn", "opcode: burn", "unknown operation burn"),
        ("{initNodes: 5,", "{initNodes: 5, more: 1,", "parameters that only Go code of this directory uses: more"),
    ],
)
def test_what_is_not_understood_is_the_reason_to_skip(old: str, new: str, reason: str) -> None:
    assert read(CASE.replace(old, new))["small"].skip == reason


def test_a_workload_without_pods_is_skipped() -> None:
    assert read(CASE.replace("createPods,", "createAny,").replace("opcode: createPods", "opcode: sleep"))["small"].skip


def test_without_a_pattern_the_smallest_that_is_measured_upstream_is_chosen() -> None:
    workloads = list(read().values())

    assert [one.name for one in select(workloads, [])] == ["large_Hints"]
    assert [one.name for one in select(workloads, [], every=True)] == [one.name for one in workloads[1:]]
    assert [one.name for one in select(workloads, ["^Basic/s", "larger"])] == ["small", "larger"]


def test_where_a_number_and_a_parameter_are_given_the_parameter_wins() -> None:
    assert decode({"opcode": "createPods", "countParam": "$n", "count": 1}, n=7) == (CreatePods(count=7),)


def test_the_other_operations_keep_their_names_in_snake_case() -> None:
    selector = {"type": "x"}

    assert decode(
        {"opcode": "deletePods", "namespace": "a", "deletePodsPerSecond": 50, "skipWaitToCompletion": True},
        {"opcode": "barrier", "stageRequirement": "Attempted", "labelSelector": selector},
        {"opcode": "createPods", "steadyStateParam": "$s", "durationParam": "$d"},
        s=True,
        d="1m10s",
    ) == (
        DeletePods(namespace="a", delete_pods_per_second=50, skip_wait_to_completion=True),
        Barrier(stage_requirement="Attempted", label_selector=selector),
        CreatePods(steady_state=True, duration=70.0),
    )


def test_wishes_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="skipWaitToCompletion"):
        decode({"opcode": "createPods", "collectMetrics": True, "skipWaitToCompletion": True})
    with pytest.raises(UnsupportedError, match="duration"):
        decode({"opcode": "createPods", "steadyState": True})


@pytest.mark.parametrize(("text", "expected"), [("10s", 10.0), ("0s", 0.0), ("1h2m3.5s", 3723.5), ("250ms", 0.25)])
def test_durations_are_those_of_go(text: str, expected: float) -> None:
    assert seconds(text) == expected


def test_what_is_no_duration_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="5 minutes"):
        seconds("5 minutes")
