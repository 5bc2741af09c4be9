"""CompositePodGroups: a group here may be a tree of two levels, whose parts are PodGroups of scheduling.k8s.io.

Other rules than for groups of Loadmaster's own kinds: pods that are being deleted count until they are gone, pods that
have succeeded do not, a level is a label by itself, and what is freed is kept from more important pods no more than
kube-scheduler keeps it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from tests.campaigns.groups.model import GroupState, Model, PodState
from tests.campaigns.groups.scenarios import GroupPlan

APART: Final = "its pods are in several domains"


def placed(model: Model, group: GroupState) -> list[PodState]:
    """The pods of a tree that count as placed."""
    there = [pod for pod in model.pods.values() if pod.place and pod.phase in ("Pending", "Running")]
    return [pod for pod in there if pod.group == group.plan.name and pod.part in group.parts]


def is_complete(plan: GroupPlan, parts: Mapping[int, int], pods: Iterable[PodState]) -> bool:
    """Whether a tree has its minimum with these pods. `parts`: those that exist, with their minimums."""
    counts = Counter(pod.part for pod in pods)
    return sum(counts[part] >= minimum for part, minimum in parts.items()) >= plan.needs


def faults(
    plan: GroupPlan,
    parts: Mapping[int, int],
    before: Collection[PodState],
    sent: Collection[PodState],
) -> Iterator[str]:
    """Say what is wrong about pods that are bound beside those that were."""
    counts = Counter(pod.part for pod in (*before, *sent))
    for part in sorted({pod.part for pod in sent} & parts.keys()):
        if counts[part] < parts[part]:
            yield "a part of one of its groups starts"
    if not is_complete(plan, parts, (*before, *sent)):
        yield "too few of its groups start"


def is_apart(model: Model, plan: GroupPlan, pod: PodState, placed: Iterable[PodState]) -> bool:
    """Whether a pod is in another domain than others of its tree, or of its part, as long as these are there."""
    levels = [(plan.required, range(len(plan.parts))), (plan.parts[pod.part].required, (pod.part,))]
    for level, parts in levels:
        nodes = [model.nodes[each.place] for each in (pod, *placed) if each.part in parts]
        if level and len({node.labels.get(level) for node in nodes if node.exists}) > 1:
            return True
    return False


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
    return found if is_complete(group.plan, group.parts, [*there, *found]) else []
