"""All single changes that are tried by brute force, each judged by a fresh engine.

Of the pod: tolerate one taint that any node has, other than those that say how a node is doing; drop one entry of the
nodeSelector; drop one requirement of one term of the node affinity, or all of it if the term has no other; drop one
required term of pod affinity or anti-affinity; make one spreading constraint a preference; ask for less of one
resource, as much as is free on some node, or for none of an extended resource; drop one host port.

Of the cluster: uncordon one node; remove one such taint of one node; give one node a label that the nodeSelector wants,
other than its hostname; delete one pod of lower priority, other than static ones; one more node like one that is there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from scheduler.api.pod import Pod
from scheduler.api.requests import allocatable_of
from tests.campaigns.suggestions import sizes
from tests.campaigns.suggestions.carrying_out import (
    after_deletion,
    deletable,
    label,
    spelled_taint,
    uncordon,
    untaint,
)
from tests.campaigns.suggestions.clusters import HOSTNAME, Json
from tests.campaigns.suggestions.sizes import Sizes
from tests.campaigns.suggestions.worlds import Invalid, Judge, World, pending_pod

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_OF_CONDITIONS: Final = "node.kubernetes.io/"

Alter = Callable[[Json], None]
"""Changes an object."""


@dataclass(frozen=True)
class Single:
    """A single change that helps."""

    text: str
    sizes: Sizes


class OneWorld:
    """Looks for what helps the pods of one world. What is changed of the cluster is read once for all of them."""

    def __init__(self, world: World, judge: Judge) -> None:
        """`judge`: over the world as it is."""
        self._world = world
        self._judge = judge
        self._changed: dict[str, Judge] = {}

    def __enter__(self) -> "OneWorld":
        return self

    def __exit__(self, *error: object) -> None:
        for judge in self._changed.values():
            judge.__exit__(*error)

    def that_help(self, name: str) -> Iterator[Single]:
        """Yield the single changes that help the pod of this name."""
        pod = self._judge.pod(name)
        yield from self._of_pod(name, pod)
        yield from self._requests(name, pod)
        yield from self._of_cluster(name, pod)

    def _of_pod(self, name: str, pod: Pod) -> Iterator[Single]:
        _, spec = self._world.source(name)
        for text, alter in (*_tolerations(self._world), *_drops(spec)):
            after = self._altered(name, alter)
            if after is not None and self._judge.fits(after):
                yield Single(text, sizes.of_pod(pod, after))

    def _altered(self, name: str, alter: Alter) -> Pod | None:
        """The pod after a change of its spec; None if it would be refused."""
        source, spec = self._world.source(name)
        alter(spec)
        source["metadata"].pop("resourceVersion", None)
        try:
            return pending_pod(World([source]).read(), name)
        except Invalid:
            return None

    def _requests(self, name: str, pod: Pod) -> Iterator[Single]:
        for resource, wanted in pod.requests.items():
            targets = {free for free in self._free(resource) if 0 < free < wanted}
            if "/" in resource:
                targets.add(0)
            for target in sorted(targets, reverse=True):
                after = self._altered(name, partial(_lower, resource=resource, target=target))
                if after is not None and self._judge.fits(after):
                    yield Single(f"ask for {target} of {resource} only", sizes.of_pod(pod, after))
                    break

    def _free(self, resource: str) -> Iterator[int]:
        for node in self._judge.cluster.nodes:
            used = sum(pod.requests.get(resource, 0) for pod in self._judge.cluster.pods if pod.node_name == node.name)
            yield allocatable_of(node.status.allocatable).get(resource, 0) - used

    def _of_cluster(self, name: str, pod: Pod) -> Iterator[Single]:
        for node in self._world.nodes():
            node_name = node["metadata"]["name"]
            for text, kind, alter in _of_node(node, pod):
                judge = self._judge_of(f"{text} {node_name}", partial(self._with_node, node_name, alter))
                if node_name in judge.fits(pod):
                    yield Single(f"{text} {node_name}", {kind: 1})
            text = f"one more node like {node_name}"
            judge = self._judge_of(text, partial(Judge, self._world, one_more_like=node_name))
            if judge.added in judge.fits(pod):
                yield Single(text, {"one more node": 1})
        for victim in deletable(self._world, pod.priority):
            text = f"delete {victim}"
            if self._judge_of(text, partial(self._without, victim)).fits(pod):
                yield Single(text, {"delete": 1})

    def _with_node(self, name: str, alter: Alter) -> Judge:
        node = self._world.get("Node", name)
        alter(node)
        return Judge(self._world.changed("Node", name, node))

    def _without(self, victim: str) -> Judge:
        return Judge(after_deletion(self._world, victim))

    def _judge_of(self, text: str, make: Callable[[], Judge]) -> Judge:
        if text not in self._changed:
            self._changed[text] = make()
        return self._changed[text]


def _of_node(node: Json, pod: Pod) -> Iterator[tuple[str, str, Alter]]:
    """Yield the changes of one node: text, kind, and what makes them."""
    if node["spec"].get("unschedulable"):
        yield "uncordon", "uncordon", uncordon
    for taint in _taints(node):
        yield f"taint {spelled_taint(taint)}-", "untaint", partial(untaint, taint=f"{spelled_taint(taint)}-")
    for key, value in (pod.spec.node_selector or {}).items():
        if key != HOSTNAME and node["metadata"]["labels"].get(key) != value:
            yield f"label {key}={value}", "label", partial(label, arguments=["--overwrite", f"{key}={value}"])


def _taints(node: Json) -> Iterator[Json]:
    return (taint for taint in node["spec"].get("taints", ()) if not taint["key"].startswith(_OF_CONDITIONS))


def _tolerations(world: World) -> Iterator[tuple[str, Alter]]:
    every = {spelled_taint(taint): taint for node in world.nodes() for taint in _taints(node)}
    for text, taint in sorted(every.items()):
        operator = "Equal" if taint.get("value") else "Exists"
        yield f"tolerate {text}", partial(_tolerate, toleration={"operator": operator, **taint})


def _tolerate(spec: Json, toleration: Json) -> None:
    spec["tolerations"] = [*(spec.get("tolerations") or ()), toleration]


def _drops(spec: Json) -> Iterator[tuple[str, Alter]]:
    affinity = spec.get("affinity", {})
    for key in spec.get("nodeSelector") or ():
        yield f"drop {key}", partial(_drop, path=("nodeSelector", key))
    for kind in ("podAffinity", "podAntiAffinity"):
        for place in range(len(affinity.get(kind, {}).get(REQUIRED, ()))):
            yield f"drop {kind} {place}", partial(_drop, path=("affinity", kind, REQUIRED, place))
    yield from _requirements(affinity.get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", ()))
    for place in range(len(spec.get("topologySpreadConstraints", ()))):
        yield f"spread {place}", partial(_soften, place=place)
    for place, container in enumerate(spec["containers"]):
        for i, port in enumerate(container.get("ports", ())):
            if "hostPort" in port:
                yield f"drop port {place} {i}", partial(_drop, path=("containers", place, "ports", i, "hostPort"))


def _requirements(terms: Sequence[Json]) -> Iterator[tuple[str, Alter]]:
    required = ("affinity", "nodeAffinity", REQUIRED)
    for place, term in enumerate(terms):
        every = [(field, i) for field in ("matchExpressions", "matchFields") for i in range(len(term.get(field, ())))]
        for field, i in every:
            path = required if len(every) == 1 else (*required, "nodeSelectorTerms", place, field, i)
            yield f"drop {field} {place} {i}", partial(_drop, path=path)


def _drop(spec: Json, path: Sequence[str | int]) -> None:
    found: Any = spec
    for part in path[:-1]:
        found = found[part]
    del found[path[-1]]


def _soften(spec: Json, place: int) -> None:
    constraint = spec["topologySpreadConstraints"][place]
    constraint["whenUnsatisfiable"] = "ScheduleAnyway"
    constraint.pop("minDomains", None)


def _lower(spec: Json, resource: str, target: int) -> None:
    """Let the pod ask for no more than this: containers from the last to the first, and each init container."""
    sidecars = sum(_asked(each, resource) for each in spec.get("initContainers", ()) if "restartPolicy" in each)
    for each in spec.get("initContainers", ()):
        if "restartPolicy" not in each:
            _ask(each, resource, max(0, target - sidecars))
    left = target - sidecars
    for each in spec["containers"]:
        _ask(each, resource, max(0, left))
        left -= _asked(each, resource)


def _asked(container: Json, resource: str) -> int:
    resources = container.get("resources", {})
    text = resources.get("requests", {}).get(resource, resources.get("limits", {}).get(resource, "0"))
    found: dict[str, Any] = allocatable_of({resource: text})
    return int(found.get(resource, 0))


def _ask(container: Json, resource: str, most: int) -> None:
    if _asked(container, resource) <= most:
        return
    resources = container["resources"]
    text = f"{most}m" if resource == "cpu" else str(most)
    if "/" in resource:
        resources["limits"] = {**resources.get("limits", {}), resource: text}
    resources["requests"] = {**resources.get("requests", {}), resource: text}
