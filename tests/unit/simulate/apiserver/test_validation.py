"""New pods that the API server would not have. tests/cluster/test_simulate.py looks whether a real one refuses them."""

from typing import Any

import pytest

from scheduler.config.documents import Document
from scheduler.simulate.cluster import cluster_of

TERM = {"labelSelector": {}, "topologyKey": "zone"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def problems(spec: dict[str, Any], **metadata: Any) -> list[str]:
    found: list[str] = []
    pod = {"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": {"containers": [{"name": "c"}], **spec}}
    cluster_of([Document("f", pod)], found)
    return [problem.removeprefix("f: ") for problem in found]


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**base, **each} for each in constraints]}


def near(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{**TERM, **term}]}}}


def at_node(**term: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def preferring(*expressions: dict[str, Any], weight: int = 1) -> dict[str, Any]:
    preference = {"matchExpressions": list(expressions)}
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": preference}]}}}


SPREAD = "spec.topologySpreadConstraints[0]"
NEAR = f"spec.affinity.podAntiAffinity.{REQUIRED}[0]"
AT_NODE = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
PREFERS = f"spec.affinity.nodeAffinity.{PREFERRED}[0]"
A_IN_NOTHING = {"key": "a", "operator": "In"}
NO_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "x"}, "requests": {"cpu": "1"}}}]},
            'spec.containers[0].resources.limits[cpu]: Invalid value: "x": not a quantity such as 500m or 1.5Gi',
        ),
        (
            {"containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "HTTP"}]}]},
            'spec.containers[0].ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {"tolerations": [{"value": "x"}]},
            'spec.tolerations[0].operator: Invalid value: "": must be Exists when `key` is empty',
        ),
        (spread({"maxSkew": 0}), f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero"),
        (spread({"topologyKey": ""}), f"{SPREAD}.topologyKey: Required value"),
        (spread({}, {}), 'spec.topologySpreadConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'),
        (spread({"minDomains": 0}), f"{SPREAD}.minDomains: Invalid value: 0: must be greater than zero"),
        (
            spread({"whenUnsatisfiable": "Never"}),
            f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Never": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            spread({"nodeTaintsPolicy": "Maybe"}),
            f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"',
        ),
        (
            spread({"labelSelector": {"matchExpressions": [A_IN_NOTHING]}}),
            f"{SPREAD}.labelSelector: {NO_VALUES}",
        ),
        (
            at_node(matchExpressions=[A_IN_NOTHING]),
            f"{AT_NODE}.matchExpressions[0].{NO_VALUES}",
        ),
        (near(topologyKey=""), f"{NEAR}.topologyKey: Required value"),
        (
            near(labelSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            f'{NEAR}.labelSelector: "Is" is not a valid label selector operator',
        ),
        (
            near(namespaceSelector={"matchExpressions": [A_IN_NOTHING]}),
            f"{NEAR}.namespaceSelector: {NO_VALUES}",
        ),
        (
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": TERM}]}}},
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
        ),
        (
            {"affinity": {"nodeAffinity": {REQUIRED: {}}}},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: "
            "Required value: must have at least one node selector term",
        ),
        (
            at_node(matchExpressions=[{"key": "a", "operator": "Gt"}]),
            f"{AT_NODE}.matchExpressions[0].values: Invalid value: null: "
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        (
            at_node(matchFields=[{"key": "metadata.uid", "operator": "In", "values": ["x"]}]),
            f'{AT_NODE}.matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
        ),
        (preferring(weight=0), f"{PREFERS}.weight: Invalid value: 0: must be in the range 1-100"),
        (
            preferring({"key": "a", "operator": "Is"}),
            f'{PREFERS}.preference.matchExpressions[0].operator: Unsupported value: "Is": '
            'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        ),
    ],
)
def test_what_decides_placement_and_is_invalid_is_one_line(spec: dict[str, Any], problem: str) -> None:
    assert problems(spec) == [problem]


def test_amounts_in_the_status_are_checked_too() -> None:
    found: list[str] = []
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "x"}}]}

    cluster_of([Document("f", {"kind": "Pod", "metadata": {"name": "p"}, "status": status})], found)

    (problem,) = found
    assert problem.startswith("f: status.containerStatuses[0].allocatedResources[cpu]: Invalid value")


def test_a_pod_that_was_stored_was_valid_to_its_api_server() -> None:
    assert problems(spread({"maxSkew": 0}), resourceVersion="1") == []


@pytest.mark.parametrize(
    "spec",
    [
        near(labelSelector={"matchLabels": {"app": "b"}}, mismatchLabelKeys=["app"]),
        near(labelSelector=None),
        preferring({"key": "a", "operator": "In", "values": ["no label"]}),
        {"tolerations": [{"operator": "Exists"}]},
        {"containers": [{"name": "c", "volumeMounts": [{"name": "elsewhere", "mountPath": "/v"}]}]},
    ],
)
def test_what_is_valid_or_decides_nothing_is_taken(spec: dict[str, Any]) -> None:
    assert problems(spec, labels={"app": "a"}) == []
