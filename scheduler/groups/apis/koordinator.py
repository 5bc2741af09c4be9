"""The groups of Koordinator: each of their pods names its gang, and how many pods it needs, in annotations.

    gang.scheduling.koordinator.sh/name: training
    gang.scheduling.koordinator.sh/min-available: "64"
    gang.scheduling.koordinator.sh/waiting-time: 30s

Its other annotations do not count: `mode`, as nothing is held for a gang that does not fit, `total-number`,
`match-policy`, and `groups`, which makes one of several gangs.
"""

from typing import Final

from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.framework.duration import Duration
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.groups.apis.annotations import MAX_SHOWN, NO_ANNOTATIONS, invalid, whole_number, wishes

GANG_NAME: Final = "gang.scheduling.koordinator.sh/name"
MIN_AVAILABLE: Final = "gang.scheduling.koordinator.sh/min-available"
WAITING_TIME: Final = "gang.scheduling.koordinator.sh/waiting-time"


class KoordinatorGroups:
    """Implements Adapter."""

    source: Final = GANG_NAME

    def name_of(self, pod: Pod) -> str:
        annotations = pod.group_annotations
        return "" if annotations is None else annotations.koordinator_gang

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup:
        annotations = said or NO_ANNOTATIONS
        minimum = whole_number(annotations.koordinator_min_available)
        problem = "" if minimum else invalid(MIN_AVAILABLE, annotations.koordinator_min_available, "a number of pods")
        seconds, unreadable = _seconds(annotations.koordinator_waiting_time)
        problem = problem or unreadable
        return PodGroup(
            namespace,
            name,
            f"{namespace}/{name}",  # no object has such a one
            self.source,
            minimum=minimum,
            priority=pod.priority,
            is_ours=True,
            timeout_seconds=seconds,
            **{"problem": problem, **wishes(annotations, problem=problem)},
        )


def _seconds(text: str) -> tuple[float, str]:
    """Return how long a pod waits for others, 0 for as long as usual, and the problem of a text that says nothing."""
    try:
        return (max(0.0, Duration.parse(text)) if text else 0.0), ""
    except ValueError:
        return 0.0, f'the annotation {WAITING_TIME} is "{shortened(text, MAX_SHOWN)}", which is no duration such as 30s'
