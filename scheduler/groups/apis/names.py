"""The groups of our own rules that a pod names itself, whether a profile keeps them together or not."""

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.pods.pod import Pod
from scheduler.groups.apis.owners import gang_of


def named_by(pod: Pod) -> str:
    """Return the group that a pod names; empty if it names none."""
    return next(iter(named_groups(pod)), "")


def named_groups(pod: Pod) -> list[str]:
    """Return the groups that a pod names, each once: there should be one."""
    label, said = pod.labels.get(POD_GROUP_LABEL, ""), pod.group_annotations
    if said is None:
        return [label] if label else []
    return [
        name
        for name in dict.fromkeys((label, said.group, said.volcano_group, said.koordinator_gang, gang_of(pod)))
        if name
    ]
