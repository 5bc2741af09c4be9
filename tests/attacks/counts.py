"""Attacks by the length of lists in a pod that have no limit but the size of a request."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from tests.attacks.attack import Attack, Object, Target
from tests.controlplane import a_pod

POD_COUNT: Final = 5
"""Pods of an attack; each is an attempt of its own, and they are tried again as events come."""


def spread_constraints(_: Target, *, when_unsatisfiable: str) -> Iterator[Object]:
    constraints = [
        {
            "topologyKey": f"example.com/key-{number}",
            "maxSkew": 1,
            "whenUnsatisfiable": when_unsatisfiable,
            "labelSelector": {"matchLabels": {f"label-{number}": "x"}},
        }
        for number in range(4_000)
    ]
    for pod in range(POD_COUNT):
        yield a_pod(f"hostile-{pod}", topologySpreadConstraints=constraints)


def node_affinity_terms(_: Target) -> Iterator[Object]:
    terms = [
        {"matchExpressions": [{"key": f"example.com/key-{number}", "operator": "NotIn", "values": ["x"]}]}
        for number in range(4_000)
    ]
    weighted = [{"weight": 1, "preference": term} for term in terms]
    for pod in range(POD_COUNT):
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
        yield a_pod(f"hostile-{pod}", affinity=affinity)


def node_affinity_values(_: Target) -> Iterator[Object]:
    for pod in range(POD_COUNT):
        values = [f"{pod}-{number}" for number in range(40_000)]
        expressions = [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]
        required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        yield a_pod(f"hostile-{pod}", affinity=affinity)


def tolerations(_: Target) -> Iterator[Object]:
    found = [{"key": f"example.com/key-{number}", "operator": "Exists"} for number in range(10_000)]
    for pod in range(POD_COUNT):
        yield a_pod(f"hostile-{pod}", tolerations=found)


def host_ports(_: Target) -> Iterator[Object]:
    for pod in range(POD_COUNT):
        ports = [
            {"containerPort": 1 + number, "hostPort": 1 + number, "hostIP": f"127.{pod}.0.1"}
            for number in range(10_000)
        ]
        containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10", "ports": ports}]
        yield a_pod(f"hostile-{pod}", containers=containers)


def containers(_: Target) -> Iterator[Object]:
    for pod in range(POD_COUNT):
        found = [
            {"name": f"c{number}", "image": f"i{pod}-{number}", "resources": {"requests": {"cpu": "1m"}}}
            for number in range(6_000)
        ]
        yield a_pod(f"hostile-{pod}", containers=found)


def volumes(_: Target) -> Iterator[Object]:
    for pod in range(POD_COUNT):
        found = [
            {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"absent-{pod}-{number}"}}
            for number in range(10_000)
        ]
        yield a_pod(f"hostile-{pod}", volumes=found)


def labels(_: Target) -> Iterator[Object]:
    for pod in range(POD_COUNT):
        yield a_pod(f"hostile-{pod}", labels={f"label-{pod}-{number}": "x" for number in range(10_000)})


def namespaces(target: Target) -> Iterator[Object]:
    for pod in range(POD_COUNT):
        terms = [
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "labelSelector": {"matchLabels": {f"label-{number}": "x"}},
                "namespaces": [f"ns-{pod}-{number}-{name}" for name in range(1_000)],
            }
            for number in range(30)
        ]
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        yield a_pod(f"hostile-{pod}", affinity=affinity)
        yield a_pod(f"running-{pod}", affinity=affinity, nodeName=target.nodes[0])


SOFT: Final = partial(spread_constraints, when_unsatisfiable="ScheduleAnyway")
HARD: Final = partial(spread_constraints, when_unsatisfiable="DoNotSchedule")
ATTACKS: Final = (
    Attack("soft-spread", "Pods have 4,000 topology spread constraints that only prefer.", SOFT),
    Attack("hard-spread", "Pods have 4,000 topology spread constraints that must hold.", HARD),
    Attack("node-terms", "Pods have 4,000 preferred node affinity terms of distinct labels.", node_affinity_terms),
    Attack("node-values", "Pods have a node affinity with a list of 40,000 values.", node_affinity_values),
    Attack("tolerations", "Pods have 10,000 tolerations.", tolerations),
    Attack("host-ports", "Pods have 10,000 host ports.", host_ports),
    Attack("containers", "Pods have 6,000 containers with requests.", containers),
    Attack("volumes", "Pods have 10,000 volumes with claims that do not exist.", volumes),
    Attack("labels", "Pods have 10,000 labels.", labels),
    Attack("namespaces", "Pods, running and pending, have terms with lists of 1,000 namespaces.", namespaces),
)
