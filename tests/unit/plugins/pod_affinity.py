"""Pods with affinity terms, and what InterPodAffinity says of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from plugins.inter_pod_affinity.plugin import InterPodAffinity
from scheduler import framework as fw
from scheduler.api.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    WeightedPodAffinityTerm,
)
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import Objects, a_cluster, a_handle, a_node, a_pod, an_object, started

HOST, ZONE = "kubernetes.io/hostname", "zone"


NAMESPACES = (
    an_object("default", labels={"team": "red"}),
    an_object("blue", labels={"team": "blue"}),
    an_object("bare"),
)


def a_plugin(objects: Objects | None = None, nodes: NodeTable | None = None, **arguments: Any) -> InterPodAffinity:
    """Make the plugin in a cluster with these objects and nodes, or with NAMESPACES and no nodes."""
    known = objects or Objects({fw.NAMESPACE: NAMESPACES})
    return started(InterPodAffinity(**arguments), a_handle(a_cluster() if nodes is None else nodes, known))


def a_selector(*expressions: tuple[str, ...], **labels: str) -> LabelSelector:
    """Make a selector of `matchLabels` and of `matchExpressions` such as `("app", "In", "web", "db")`."""
    requirements = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=tuple(values) or None)
        for key, operator, *values in expressions
    )
    return LabelSelector(match_labels=labels or None, match_expressions=requirements or None)


def pods_like(
    key: str,
    *expressions: tuple[str, ...],
    namespaces: Sequence[str] = (),
    of: LabelSelector | None = None,
    **labels: str,
) -> PodAffinityTerm:
    """Make a term: pods with these labels in the same domain of `key`, in `namespaces` and those selected by `of`."""
    return PodAffinityTerm(
        label_selector=a_selector(*expressions, **labels),
        topology_key=key,
        namespaces=tuple(namespaces) or None,
        namespace_selector=of,
    )


def with_terms(
    name: str = "pod",
    labels: Mapping[str, str] | None = None,
    *,
    near: Sequence[PodAffinityTerm] = (),
    apart: Sequence[PodAffinityTerm] = (),
    likes: Sequence[tuple[int, PodAffinityTerm]] = (),
    dislikes: Sequence[tuple[int, PodAffinityTerm]] = (),
    **fields: Any,
) -> fw.Pod:
    """Make a pod with required and preferred terms towards other pods."""
    pod = a_pod(name, labels=labels, **fields)
    affinity = Affinity(
        pod_affinity=PodAffinity(required=tuple(near) or None, preferred=_weighted(likes)),
        pod_anti_affinity=PodAntiAffinity(required=tuple(apart) or None, preferred=_weighted(dislikes)),
    )
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def _weighted(terms: Sequence[tuple[int, PodAffinityTerm]]) -> tuple[WeightedPodAffinityTerm, ...] | None:
    return tuple(WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in terms) or None


def a_zoned_node(name: str, zone: str | None, **labels: str) -> fw.Node:
    """Make a node with its name as host name, in a zone or in none."""
    return a_node(name, labels={HOST: name, **({} if zone is None else {ZONE: zone}), **labels})
