"""Whether the outcome of a run is one that kube-scheduler's rules allow: a quick scheduler has to be right, too.

What can be told from the pods as they are at the end: no node has more than it holds, and no pod is beside one that its
required anti-affinity keeps from its node. What depends on the order of placements, such as spread, is the business of
the conformance tests. Shares no code with the scheduler.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final

from kubernetes.utils.quantity import parse_quantity

from tests.bench.api import Api, Object, fetch
from tests.bench.objects import HOSTNAME

COUNTED: Final = ("cpu", "memory")


def problems(api: Api) -> list[str]:
    """What is wrong in the cluster; empty if nothing is."""
    pods, nodes, namespaces = (fetch(api, *api.path(f"v1/{kind}"))["items"] for kind in ("Pod", "Node", "Namespace"))
    labels = {one["metadata"]["name"]: one["metadata"].get("labels", {}) for one in namespaces}
    return find_problems(pods, nodes, labels)


def find_problems(
    pods: Iterable[Object], nodes: Iterable[Object], namespaces: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """The same for objects; `namespaces` are their labels by name."""
    on_node: dict[str, list[Object]] = defaultdict(list)
    for pod in pods:
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            on_node[pod["spec"]["nodeName"]].append(pod)
    found: list[str] = []
    for node in nodes:
        name = node["metadata"]["name"]
        placed = on_node.get(name, [])
        found += [f"{name}: {text}" for text in (*overload(node, placed), *neighbours(placed, namespaces))]
    return found


def overload(node: Object, pods: Sequence[Object]) -> Iterator[str]:
    """Of what the pods ask for more than the node has."""
    allocatable = node["status"].get("allocatable", {})
    if len(pods) > amount(room := str(allocatable.get("pods", 0))):
        yield f"{len(pods)} pods where {room} fit"
    for resource in COUNTED:
        asked = sum((requested(pod, resource) for pod in pods), Decimal())
        if asked > (limit := amount(str(allocatable.get(resource, 0)))):
            yield f"{asked} of {resource} asked of {limit}"


def requested(pod: Object, resource: str) -> Decimal:
    """What its containers ask for, the sum."""
    asked = (one.get("resources", {}).get("requests", {}).get(resource, 0) for one in pod["spec"]["containers"])
    return sum((amount(str(one)) for one in asked), Decimal())


@lru_cache(maxsize=10_000)
def amount(text: str) -> Decimal:
    return Decimal(parse_quantity(text))  # type: ignore[no-untyped-call]


def neighbours(pods: Sequence[Object], namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Pods of one node that must not be together."""
    for pod in pods:
        anti = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
        for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            if term["topologyKey"] != HOSTNAME:
                continue
            for other in pods:
                if other is not pod and selects(term, pod, other, namespaces):
                    yield f"{pod['metadata']['name']} is beside {other['metadata']['name']}"


def selects(term: Object, owner: Object, other: Object, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a term of one pod means the other. Of selectors, only `matchLabels` are read."""
    wanted: Mapping[str, str] = term.get("labelSelector", {}).get("matchLabels", {})
    if not wanted.items() <= other["metadata"].get("labels", {}).items():
        return False
    namespace: str = other["metadata"]["namespace"]
    chosen: Mapping[str, str] | None = term.get("namespaceSelector", {}).get("matchLabels")
    if chosen is not None and chosen.items() <= namespaces.get(namespace, {}).items():
        return True
    listed = term.get("namespaces", [] if chosen is not None else [owner["metadata"]["namespace"]])
    return namespace in listed
