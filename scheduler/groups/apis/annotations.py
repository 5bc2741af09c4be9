"""Groups without any object: each of their pods names its group, and how many it needs, in annotations.

    loadmaster.dev/pod-group: training                    gang.scheduling.koordinator.sh/name: training
    loadmaster.dev/pod-group-min-available: "64"          gang.scheduling.koordinator.sh/min-available: "64"
                                                          gang.scheduling.koordinator.sh/waiting-time: 30s

Loadmaster's annotations about where the pods go count for groups that have an object, too. Koordinator's other ones do
not count: `mode`, as nothing is held for a gang that does not fit, `total-number`, `match-policy`, and `groups`, which
makes one of several gangs.
"""

from typing import Any, Final

from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.framework.duration import Duration
from scheduler.framework.groups.pod_groups import PodGroup

POD_GROUP_ANNOTATION: Final = "loadmaster.dev/pod-group"
MIN_AVAILABLE_ANNOTATION: Final = "loadmaster.dev/pod-group-min-available"
EXPECTED_SECONDS_ANNOTATION: Final = "loadmaster.dev/expected-seconds"

MAX_MEMBERS: Final = 2**31 - 1

MAX_SHOWN: Final = 63
"""Characters of an annotation, or of a name, in a message."""

NO_ANNOTATIONS: Final = GroupAnnotations()


class AnnotatedGroups:
    """Implements Adapter."""

    source: Final = POD_GROUP_ANNOTATION

    def name_of(self, pod: Pod) -> str:
        annotations = pod.group_annotations
        return "" if annotations is None else annotations.group

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup:
        annotations = said or NO_ANNOTATIONS
        minimum = whole_number(annotations.min_available)
        problem = "" if minimum else invalid(MIN_AVAILABLE_ANNOTATION, annotations.min_available, "a number of pods")
        return without_object(self.source, namespace, name, pod, annotations, problem, minimum=minimum)


def without_object(
    source: str, namespace: str, name: str, pod: Pod, said: GroupAnnotations, problem: str, **fields: Any
) -> PodGroup:
    """Return the group of our own rules that a pod names, and of which it says this."""
    uid = f"{namespace}/{name}"  # no object has such a one
    fields |= wishes(said, problem=problem)
    return PodGroup(namespace, name, uid, source, priority=pod.priority, is_ours=True, **fields)


def wishes(*several: GroupAnnotations | None, problem: str = "") -> dict[str, Any]:
    """Return what annotations say about where a group is to be and for how long, as fields of PodGroup.

    Of several, the first that says anything counts, field by field. `problem`: of the group anyway.
    """
    every = [each for each in several if each is not None]
    if all(each == NO_ANNOTATIONS for each in every):
        return {"problem": problem}
    seconds = next((each.expected_seconds for each in every if each.expected_seconds), "")
    expected = whole_number(seconds)
    if seconds and not expected:
        problem = problem or invalid(EXPECTED_SECONDS_ANNOTATION, seconds, "a number of seconds")
    return {
        "required_level": _first(every, "required_topology") or _first(every, "kueue_required_topology"),
        "preferred_level": _first(every, "preferred_topology") or _first(every, "kueue_preferred_topology"),
        "expected_seconds": float(expected),
        "problem": problem,
    }


def _first(several: list[GroupAnnotations], field: str) -> str:
    return next((text for each in several if (text := getattr(each, field))), "")


def whole_number(text: str) -> int:
    """Return a number from 1 on that fits into 32 bits; 0 for any other text."""
    number = int(text) if len(text) <= 10 and text.isascii() and text.isdigit() else 0
    return number if number <= MAX_MEMBERS else 0


def invalid(annotation: str, text: str, expected: str) -> str:
    """Say that an annotation is no such number."""
    said = f'the annotation {annotation} is "{shortened(text, MAX_SHOWN)}"'
    return f"{said}, which is not {expected} from 1 to {MAX_MEMBERS}"


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
        fields = {"minimum": minimum, "timeout_seconds": seconds}
        return without_object(self.source, namespace, name, pod, annotations, problem or unreadable, **fields)


def _seconds(text: str) -> tuple[float, str]:
    """Return how long a pod waits for others, 0 for as long as usual, and the problem of a text that says nothing."""
    try:
        return (max(0.0, Duration.parse(text)) if text else 0.0), ""
    except ValueError:
        return 0.0, f'the annotation {WAITING_TIME} is "{shortened(text, MAX_SHOWN)}", which is no duration such as 30s'
