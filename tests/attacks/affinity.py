"""Attacks by pod affinity: the number of terms, of topology keys and of selectors is the pod's to choose."""

from collections.abc import Iterator
from typing import Final

from tests.attacks.attack import Attack, Object, Target
from tests.controlplane import a_pod

ALL_LABELS: Final[Object] = {}
"""A selector of every pod."""
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


def anti_affinity(required: list[Object]) -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def towards_everybody(topology_key: str) -> Object:
    """A term that concerns the pods of all namespaces."""
    return {"topologyKey": topology_key, "labelSelector": ALL_LABELS, "namespaceSelector": {}}


def towards_nobody(topology_key: str, label: str) -> Object:
    """A term that selects a label which no pod has."""
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": {label: "x"}}, "namespaceSelector": {}}


def one_running_pod(target: Target) -> Iterator[Object]:
    terms = [towards_everybody(f"example.com/key-{number}") for number in range(3_000)]
    yield a_pod("hostile", nodeName=target.nodes[0], affinity=anti_affinity(terms))


def one_running_pod_with_known_keys(target: Target) -> Iterator[Object]:
    terms = [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchExpressions": [{"key": f"label-{number}", "operator": "DoesNotExist"}]},
            "namespaceSelector": {},
        }
        for number in range(3_000)
    ]
    yield a_pod("hostile", nodeName=target.nodes[0], affinity=anti_affinity(terms))


def one_running_pod_that_is_preferred(target: Target) -> Iterator[Object]:
    terms = [
        {"weight": 1, "podAffinityTerm": towards_everybody(f"example.com/key-{number}")} for number in range(3_000)
    ]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    yield a_pod("hostile", nodeName=target.nodes[0], affinity={"podAffinity": preferred})


def pending_pods(target: Target) -> Iterator[Object]:
    terms = [towards_nobody(ZONE, f"label-{number}") for number in range(4_000)]
    for pod in range(5):
        yield a_pod(f"hostile-{pod}", affinity=anti_affinity([*terms, towards_everybody(HOSTNAME)]))


def waiting_pods(target: Target) -> Iterator[Object]:
    # Each has terms of its own, so that nothing found for one of them serves another.
    for pod in range(30):
        terms = [towards_nobody(f"example.com/key-{number}", f"pod-{pod}-{number}") for number in range(4_000)]
        affinity = anti_affinity([towards_everybody(HOSTNAME), *terms])
        yield a_pod(f"hostile-{pod}", nodeSelector={"example.com/no": "node"}, affinity=affinity)


def many_running_pods(target: Target) -> Iterator[Object]:
    for pod in range(5_000):
        terms = [
            {
                "topologyKey": (HOSTNAME, ZONE, f"example.com/key-{number}")[number % 3],
                "labelSelector": {"matchExpressions": [{"key": f"key-{pod}-{number}", "operator": "DoesNotExist"}]},
                "namespaces": [target.namespace],
            }
            for number in range(10)
        ]
        weighted = [{"weight": 1 + number, "podAffinityTerm": term} for number, term in enumerate(terms)]
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
        yield a_pod(f"hostile-{pod}", nodeName=target.nodes[pod % len(target.nodes)], affinity=affinity)


def many_selectors(target: Target) -> Iterator[Object]:
    for pod in range(2_000):
        terms = [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": {f"label-{number}": f"{pod}"}}}
            for number in range(10)
        ]
        yield a_pod(f"hostile-{pod}", cpu="1m", memory="1Mi", affinity=anti_affinity(terms))


def many_label_sets(target: Target) -> Iterator[Object]:
    for pod in range(5_000):
        node = target.nodes[pod % len(target.nodes)]
        yield a_pod(
            f"running-{pod}", cpu="1m", memory="1Mi", nodeName=node, labels={f"set-{pod}": "x", "app": f"{pod}"}
        )
    for pod in range(20):
        terms = [
            {
                "topologyKey": ZONE,
                "labelSelector": {"matchExpressions": [{"key": f"label-{pod}-{number}", "operator": "DoesNotExist"}]},
                "namespaceSelector": {},
            }
            for number in range(100)
        ]
        weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
        yield a_pod(f"hostile-{pod}", cpu="1m", memory="1Mi", affinity=affinity)


ATTACKS: Final = (
    Attack(
        "running-terms",
        "One running pod has 3,000 required anti-affinity terms of distinct topology keys, which select every pod.",
        one_running_pod,
    ),
    Attack(
        "running-hostname-terms",
        "One running pod has 3,000 required anti-affinity terms over nodes, with distinct selectors of every pod.",
        one_running_pod_with_known_keys,
    ),
    Attack(
        "running-preferred-terms",
        "One running pod has 3,000 preferred affinity terms of distinct topology keys, which select every pod.",
        one_running_pod_that_is_preferred,
    ),
    Attack("pending-terms", "Five pending pods have 4,000 required anti-affinity terms each.", pending_pods),
    Attack(
        "waiting-terms",
        "Thirty pods that fit nowhere have 4,000 required anti-affinity terms each, and are asked at each event.",
        waiting_pods,
    ),
    Attack(
        "many-terms",
        "5,000 running pods have ten distinct preferred terms each, which concern pods of their namespace.",
        many_running_pods,
    ),
    Attack(
        "many-label-sets",
        "5,000 running pods have labels of their own, and 20 pods have 100 distinct selectors that match all of them.",
        many_label_sets,
    ),
    Attack("many-selectors", "2,000 pods that can run have ten selectors each that nobody else has.", many_selectors),
)
