"""CompositePodGroups: a group here may be a tree of two levels, whose parts are PodGroups of scheduling.k8s.io.

Other rules than for groups of Loadmaster's own kinds: pods that are being deleted count until they are gone, pods that
have succeeded do not, a level is a label by itself, and what is freed is kept from more important pods no more than
kube-scheduler keeps it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from tests.campaigns.groups.model import GroupState, Model, PodState


def placed(model: Model, group: GroupState) -> list[PodState]:
    """The pods of a tree that count as placed."""
    there = [pod for pod in model.pods.values() if pod.place and pod.phase in ("Pending", "Running")]
    return [pod for pod in there if pod.group == group.plan.name and pod.part in group.parts]


def is_complete(group: GroupState, pods: Iterable[PodState]) -> bool:
    """Whether a tree has its minimum with these pods."""
    counts = Counter(pod.part for pod in pods)
    return sum(counts[part] >= minimum for part, minimum in group.parts.items()) >= group.plan.needs


def faults(model: Model, group: GroupState, before: Collection[PodState], sent: Collection[PodState]) -> Iterator[str]:
    """Say what is wrong about pods that are bound beside those that were."""
    counts = Counter(pod.part for pod in (*before, *sent))
    for part in sorted({pod.part for pod in sent} & group.parts.keys()):
        if counts[part] < group.parts[part]:
            yield "a part of one of its groups starts"
    if not is_complete(group, (*before, *sent)):
        yield "too few of its groups start"
    levels = [(group.plan.required, range(len(group.plan.parts)))]
    levels += [(plan.required, range(part, part + 1)) for part, plan in enumerate(group.plan.parts)]
    for level, parts in levels:
        nodes = [model.nodes[pod.place] for pod in (*before, *sent) if pod.part in parts and pod.place]
        domains = {node.labels.get(level) for node in nodes if node.exists}
        if level and len(domains) > 1 and any(pod.part in parts for pod in sent):
            yield "its pods are in several domains"


def starts(model: Model, group: GroupState, waiting: Collection[PodState], free: dict[str, int]) -> list[PodState]:
    """The pods of a tree without levels that start if they are alike, and so much is free on the nodes."""
    (cpu,) = {pod.cpu for pod in waiting}
    slots = sum(max(0, cores) // cpu for cores in free.values())
    there = placed(model, group)
    found: list[PodState] = []
    for part in sorted(group.parts, key=lambda part: (int(group.created[part]), part)):
        fitting = [pod for pod in waiting if pod.part == part][:slots]
        if sum(pod.part == part for pod in there) + len(fitting) >= group.parts[part]:
            slots -= len(fitting)
            found += fitting
    return found if is_complete(group, [*there, *found]) else []
