"""New pods that the API server would not have. tests/cluster/test_simulate.py compares the words with a real one."""

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


def of(requests: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]}


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**base, **each} for each in constraints]}


RESOURCES = "spec.containers[0].resources"
SPREAD = "spec.topologySpreadConstraints[0]"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            "spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 1}]},
            'spec.tolerations[0].effect: Invalid value: "": '
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            of({"cpu": "2"}, {"cpu": "1"}),
            f'{RESOURCES}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            of({"cpu": "1"}, {"cpu": "x"}),
            f'{RESOURCES}.limits[cpu]: Invalid value: "x": not a quantity such as 500m or 1.5Gi',
        ),
        (
            of({"a.b/gpu": "1"}, {}),
            f"{RESOURCES}.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            of({"a.b/gpu": "1"}, {"a.b/gpu": "2"}),
            f'{RESOURCES}.requests: Invalid value: "1": must be equal to a.b/gpu limit of 2',
        ),
        (spread({"maxSkew": 0}), f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero"),
        (spread({"topologyKey": ""}), f"{SPREAD}.topologyKey: Required value: can not be empty"),
        (spread({}, {}), f'{SPREAD}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{zone, DoNotSchedule}}"'),
        (spread({"minDomains": 0}), f"{SPREAD}.minDomains: Invalid value: 0: must be greater than zero"),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, 'spec.schedulingGates[1]: Duplicate value: "a"'),
        (
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"affinity": {"nodeAffinity": {REQUIRED: {}}}},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: "
            "Required value: must have at least one node selector term",
        ),
        (
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": TERM}]}}},
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
        ),
    ],
)
def test_what_is_invalid_is_told(spec: dict[str, Any], problem: str) -> None:
    assert problems(spec) == [problem]


def test_names_and_labels_have_a_form() -> None:
    (name,) = problems({}, name="In_Capitals")
    (key, value) = problems({}, labels={"a b": "c d"})

    assert name.startswith('metadata.name: Invalid value: "In_Capitals": a lowercase RFC 1123 subdomain must')
    assert key.startswith('metadata.labels: Invalid value: "a b": name part must consist of')
    assert value.startswith('metadata.labels: Invalid value: "c d": a valid label must be an empty string or')


def test_a_pod_that_was_stored_was_valid_to_its_api_server() -> None:
    assert problems(spread({"maxSkew": 0}), resourceVersion="1") == []


def near(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{**TERM, **term}]}}}


def at_node(**term: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


NEAR = f"spec.affinity.podAntiAffinity.{REQUIRED}[0]"
AT_NODE = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
NOT_BOTH = "exists in both matchLabelKeys and labelSelector"
C = {"name": "c"}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            near(labelSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            f'{NEAR}.labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
        ),
        (
            near(labelSelector={"matchExpressions": [{"key": "a", "operator": "NotIn"}]}),
            f"{NEAR}.labelSelector.matchExpressions[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            near(labelSelector={"matchLabels": {"app": "b"}}, matchLabelKeys=["app"]),
            f'{NEAR}[0]: Invalid value: "app": {NOT_BOTH}',
        ),
        (
            near(labelSelector=None, mismatchLabelKeys=["app"]),
            f"{NEAR}.mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ),
        (
            near(matchLabelKeys=["z"], mismatchLabelKeys=["z"]),
            f'{NEAR}.matchLabelKeys[0]: Invalid value: "z": exists in both matchLabelKeys and mismatchLabelKeys',
        ),
        (
            spread({"labelSelector": {"matchLabels": {"app": "b"}}, "matchLabelKeys": ["x", "app"]}),
            f'{SPREAD}[1]: Invalid value: "app": {NOT_BOTH}',
        ),
        (
            at_node(matchExpressions=[{"key": "a", "operator": "Gt"}]),
            f"{AT_NODE}.matchExpressions[0].values: Required value: "
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        (
            at_node(matchFields=[{"key": "metadata.uid", "operator": "In", "values": ["x"]}]),
            f'{AT_NODE}.matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
        ),
        (
            of({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}),
            f"{RESOURCES}: Forbidden: HugePages require cpu or memory",
        ),
        (
            of({"hugepages-2Mi": "2Mi", "cpu": 1}, {"hugepages-2Mi": "4Mi"}),
            f'{RESOURCES}.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 4Mi',
        ),
        ({"containers": [C, C]}, 'spec.containers[1].name: Duplicate value: "c"'),
        ({"initContainers": [C]}, 'spec.initContainers[0].name: Duplicate value: "c"'),
        (
            {"containers": [{**C, "ports": [{"hostPort": 80}, {"hostPort": 80}]}]},
            'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
        ),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, 'spec.volumes[1].name: Duplicate value: "v"'),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            {"containers": [{**C, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"containers": [{**C, "resources": {"claims": [{"name": "g"}]}}]},
            f'{RESOURCES}.claims[0]: Not found: "g": must be one of the names in pod.spec.resourceClaims which is',
        ),
        (
            {"resourceClaims": [{"name": "g", "resourceClaimName": "X"}]},
            'spec.resourceClaims[0].resourceClaimName: Invalid value: "X": a lowercase RFC 1123 subdomain',
        ),
    ],
)
def test_what_scheduling_does_not_read_but_names_is_told_too(spec: dict[str, Any], told: str) -> None:
    (problem,) = problems(spec, labels={"app": "a", "k": "v", "x": "y"})[:1]

    assert problem.startswith(told)


@pytest.mark.parametrize(
    "spec",
    [
        near(labelSelector={"matchLabels": {"app": "b"}}, mismatchLabelKeys=["app"]),
        near(matchLabelKeys=["app"]),
        {
            "affinity": {
                "nodeAffinity": {
                    PREFERRED: [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [{"key": "a", "operator": "In", "values": ["no label"]}]
                            },
                        }
                    ]
                }
            }
        },
        of({"hugepages-2Mi": "2Mi", "cpu": 1}, {"hugepages-2Mi": "2Mi"}),
        {
            "containers": [
                {**C, "ports": [{"hostPort": 80}]},
                {"name": "d", "ports": [{"hostPort": 80, "protocol": "UDP"}]},
            ]
        },
        {"initContainers": [{"name": "i", "ports": [{"hostPort": 80}]}, {"name": "j", "ports": [{"hostPort": 80}]}]},
        {"volumes": [{"name": "v"}], "containers": [{**C, "volumeMounts": [{"name": "v"}], "volumeDevices": []}]},
    ],
)
def test_what_the_api_server_takes_is_taken(spec: dict[str, Any]) -> None:
    assert problems(spec, labels={"app": "a"}) == []
