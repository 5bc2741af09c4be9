"""Pods with affinity terms, namespaces with labels, and what InterPodAffinity says of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import msgspec

from plugins.inter_pod_affinity.plugin import InterPodAffinity
from scheduler import framework as fw
from scheduler.api.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    WeightedPodAffinityTerm,
)
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing import a_cluster, a_node, a_pod, started

HOST, ZONE = "kubernetes.io/hostname", "zone"


class Namespace:
    """A namespace as plugins see it."""

    def __init__(self, name: str, labels: Mapping[str, str]) -> None:
        self.metadata = ObjectMeta(name=name, labels=dict(labels))


class Namespaces:
    """The part of a handle that knows namespaces."""

    def __init__(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        self._version = 0
        self._by_name: dict[str, Namespace] = {}
        for name, each in labels.items():
            self.set(name, each)

    def set(self, name: str, labels: Mapping[str, str]) -> None:
        self._by_name[name] = Namespace(name, labels)
        self._version += 1

    def get(self, resource: str, name: str, namespace: str = "") -> Namespace | None:
        assert resource == fw.NAMESPACE
        return self._by_name.get(name)

    def list(self, resource: str, namespace: str | None = None) -> Collection[Namespace]:
        assert resource == fw.NAMESPACE
        return self._by_name.values()

    def version(self, resource: str) -> int:
        assert resource == fw.NAMESPACE
        return self._version


class _Handle:
    def __init__(self, objects: Namespaces, nodes: NodeTable) -> None:
        self.objects = objects
        self.nodes = nodes
        self.nominator = Nominator()


def a_plugin(
    namespaces: Namespaces | None = None, nodes: NodeTable | None = None, **arguments: Any
) -> InterPodAffinity:
    """Make the plugin in a cluster with these namespaces and nodes, or none."""
    known = namespaces or Namespaces({"default": {"team": "red"}, "blue": {"team": "blue"}, "bare": {}})
    handle = _Handle(known, a_cluster() if nodes is None else nodes)
    return started(InterPodAffinity(**arguments), cast("fw.Handle", handle))


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
