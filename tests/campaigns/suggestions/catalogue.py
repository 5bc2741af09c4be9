"""All single changes that are tried by brute force, each judged by a fresh engine.

Of the pod: tolerate one taint that any node has, other than those that say how a node is doing; drop one entry of the
nodeSelector; drop one requirement of one term of the node affinity, or all of it if the term has no other; drop one
required term of pod affinity or anti-affinity; make one spreading constraint a preference, let it honour taints or
node affinity, or lower its minDomains; ask for less of one resource, as much as is free on some node, or for none of an
extended resource; drop one host port; a priority higher by one, where only pods of the same priority are in the way.

Of the cluster: uncordon one node; remove one such taint of one node; give one node a label that the nodeSelector wants,
other than its hostname; delete one pod of lower priority, other than static ones, or wait until one has left; if none
of lower priority would do, delete one of the same; one more node like one that is there, or with another zone; remove
the annotation of a claim that names a node which is gone; tolerate a taint of devices in one claim.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from typing import Any, Final

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import allocatable_of
from tests.campaigns.suggestions import sizes
from tests.campaigns.suggestions.carrying_out import (
    after_command,
    after_deletion,
    deletable,
    label,
    raised_preempts,
    spelled_taint,
    uncordon,
    untaint,
    with_toleration,
)
from tests.campaigns.suggestions.clusters import HOSTNAME, HOT, NAMESPACE, Json
from tests.campaigns.suggestions.sizes import Sizes
from tests.campaigns.suggestions.worlds import Invalid, Judge, World, pending_pod

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
SELECTED: Final = "volume.kubernetes.io/selected-node"
DEFAULTS: Final = {"nodeTaintsPolicy": "Ignore", "nodeAffinityPolicy": "Honor"}
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
            judge = self._one_more(node_name)
            if judge.added in judge.fits(pod):
                yield Single(f"one more node like {node_name}", {"one more node": 1})
        yield from self._of_new_domain(pod)
        yield from self._of_objects(pod)
        lower = [*deletable(self._world, lambda priority: priority < pod.priority)]
        helping = [each for each in lower if self._fits_without(pod, each)]
        leaving = [each for each in helping if "deletionTimestamp" in each["metadata"]]
        kind = "wait" if leaving else "delete"
        yield from (Single(f"{kind} {victim['metadata']['name']}", {kind: 1}) for victim in leaving or helping)
        yield from self._among_equals(name, pod)

    def _fits_without(self, pod: Pod, victim: Json) -> set[str]:
        name = victim["metadata"]["name"]
        return self._judge_of(f"delete {name}", partial(self._without, name)).fits(pod)

    def _among_equals(self, name: str, pod: Pod) -> Iterator[Single]:
        """Without one pod of the same priority on the node, where none that is lower, or leaving, would do."""
        lower = [*deletable(self._world, lambda priority: priority < pod.priority)]
        equals = [*deletable(self._world, lambda priority: priority == pod.priority)]
        gone = [*lower, *(each for each in equals if "deletionTimestamp" in each["metadata"])]
        if any(node in self._without_all(node, gone).fits(pod) for node in {each["spec"]["nodeName"] for each in gone}):
            return
        for victim in equals:
            node = victim["spec"]["nodeName"]
            if node not in self._fits_without(pod, victim):
                continue
            yield Single(f"delete equal {victim['metadata']['name']}", {"delete equal": 1})
            if pod.spec.preemption_policy != "Never" and node in raised_preempts(self._world, name, pod):
                yield Single("a higher priority", {"priority": 1})

    def _without_all(self, node: str, pods: Sequence[Json]) -> Judge:
        names = [each["metadata"]["name"] for each in pods if each["spec"]["nodeName"] == node]
        return self._judge_of(f"delete all {names}", lambda: Judge(reduce(after_deletion, names, self._world)))

    def _after(self, change: Callable[[World], World]) -> Judge:
        return Judge(change(self._world))

    def _of_objects(self, pod: Pod) -> Iterator[Single]:
        """An annotation of a claim that names a node which is gone, and tolerations of a claim for devices."""
        claims = {
            each.persistent_volume_claim.claim_name for each in pod.spec.volumes or () if each.persistent_volume_claim
        }
        for each in self._world.objects:
            name, annotations = each["metadata"]["name"], each["metadata"].get("annotations", {})
            if each["kind"] == "PersistentVolumeClaim" and name in claims and annotations.get(SELECTED) == "gone":
                arguments = ["kubectl", "annotate", "pvc", "--namespace", NAMESPACE, name, f"{SELECTED}-"]
                make = partial(self._after, partial(after_command, arguments=arguments))
                if self._judge_of(f"annotate {name}", make).fits(pod):
                    yield Single(f"annotate {name}", {"annotate": 1})
        for asked in pod.spec.resource_claims or ():
            claim = asked.resource_claim_name or ""
            make = partial(self._after, partial(with_toleration, claim=claim, taint=spelled_taint(HOT)))
            if self._judge_of(f"device toleration {claim}", make).fits(pod):
                yield Single(f"device toleration {claim}", {"device toleration": 1})

    def _of_new_domain(self, pod: Pod) -> Iterator[Single]:
        """One more node with another zone, if none helps that is like one that is there, and its constraints ask."""
        names = [node["metadata"]["name"] for node in self._world.nodes()]
        keys = {each.topology_key for each in pod.spec.topology_spread_constraints or ()} - {HOSTNAME}
        if any((judge := self._one_more(name)).added in judge.fits(pod) for name in names):
            return
        for name, key in product(names, sorted(keys)):
            judge = self._one_more(name, key)
            if judge.added in judge.fits(pod):
                yield Single(f"one more node like {name}, but with another {key}", {"one of a new domain": 1})

    def _one_more(self, name: str, key: str = "") -> Judge:
        make = partial(Judge, self._world, one_more_like=name, of_new=key)
        return self._judge_of(f"one more node like {name} {key}", make)

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
    yield from _of_spreading(spec)
    for place, container in enumerate(spec["containers"]):
        for i, port in enumerate(container.get("ports", ())):
            if "hostPort" in port:
                yield f"drop port {place} {i}", partial(_drop, path=("containers", place, "ports", i, "hostPort"))


def _of_spreading(spec: Json) -> Iterator[tuple[str, Alter]]:
    for place, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        yield f"spread {place}", partial(_soften, place=place)
        for field in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
            if constraint.get(field, DEFAULTS[field]) != "Honor":
                yield f"{field} {place}", partial(_set, place=place, field=field, value="Honor")
        for least in range(constraint.get("minDomains", 1) - 1, 0, -1):
            yield f"minDomains {place} {least}", partial(_set, place=place, field="minDomains", value=least)


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


def _set(spec: Json, place: int, field: str, value: str | int) -> None:
    spec["topologySpreadConstraints"][place][field] = value


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
