"""Groups without any object: each of their pods names its group, and how many it needs, in annotations.

    loadmaster.dev/pod-group: training
    loadmaster.dev/pod-group-min-available: "64"

Annotations about where the pods go count for groups that have an object, too.
"""

from typing import Any, Final

from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
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
        group = {"minimum": minimum, "priority": pod.priority, "is_ours": True, "problem": problem}
        uid = f"{namespace}/{name}"  # no object has such a one
        return PodGroup(namespace, name, uid, self.source, **{**group, **wishes(annotations, problem=problem)})


def wishes(*several: GroupAnnotations | None, problem: str = "") -> dict[str, Any]:
    """Return what annotations say about where a group is to be and for how long, as fields of PodGroup.

    Of several, the first that says anything counts, field by field. `problem`: of the group anyway.
    """
    every = [each for each in several if each is not None]
    if not every or all(each == NO_ANNOTATIONS for each in every):
        return {"problem": problem} if problem else {}
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
