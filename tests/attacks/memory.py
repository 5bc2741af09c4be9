"""Attacks on memory: what a pod says is large, differs from pod to pod, and is gone a moment later."""

from collections.abc import Iterator
from typing import Final

from tests.attacks.affinity import HOSTNAME, ZONE, anti_affinity
from tests.attacks.attack import Attack, Object, Target
from tests.controlplane import a_pod

TEXT: Final = "x" * 40


def resource_names(_: Target) -> Iterator[Object]:
    for pod in range(4):
        names = {f"example.com/r-{pod}-{number}": "1" for number in range(10_000)}
        yield a_pod(f"hostile-{pod}", resources=names)


def running_resource_names(target: Target) -> Iterator[Object]:
    for pod, obj in enumerate(resource_names(target)):
        obj["spec"]["nodeName"] = target.nodes[pod % len(target.nodes)]
        yield obj


def large_pods(_: Target) -> Iterator[Object]:
    for pod in range(300):
        texts = [f"{TEXT}-{pod}-{number}" for number in range(1_300)]
        yield a_pod(f"hostile-{pod}", cpu="1m", memory="1Mi", **large(pod, texts))


def large(pod: int, texts: list[str]) -> Object:
    """What a pod's spec says with these texts, 60 to 130 kB: each kind in its turn."""
    terms = [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": text}}} for text in texts[:500]]
    values = [{"key": HOSTNAME, "operator": "NotIn", "values": texts}]
    spread = [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": texts}]},
        }
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": values}]}
    kinds: tuple[Object, ...] = (
        {"tolerations": [{"key": f"example.com/{text}", "operator": "Exists"} for text in texts]},
        {"affinity": anti_affinity(terms)},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}},
        {"topologySpreadConstraints": spread},
        {"nodeSelector": {f"example.com/{text}": "x" for text in texts}},
    )
    return kinds[pod % len(kinds)]


ATTACKS: Final = (
    Attack("resource-names", "Four pods ask for 10,000 resources each that no node has.", resource_names),
    Attack(
        "running-resource-names",
        "Four running pods ask for 10,000 resources each that no node has.",
        running_resource_names,
    ),
    Attack(
        "large-pods",
        "300 pods of 130 kB, no two alike, are created and deleted all the time.",
        large_pods,
        recreated=True,
    ),
)
