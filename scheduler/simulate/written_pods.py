"""The object in which the user has written a pod: a pod, or the template of a workload."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from scheduler.api.decoding import Decoder
from scheduler.api.pods.pod import Pod
from scheduler.explain.changes import WrittenPod
from scheduler.simulate.other_objects import OtherObject

Source = msgspec.Raw | OtherObject
"""A pod as JSON, or a workload."""

_decode: Final = Decoder[dict[str, Any]](dict[str, Any]).decode
_PATHS: Final[Mapping[str, str]] = {"CronJob": "/spec/jobTemplate/spec/template"}
_PATH: Final = "/spec/template"


def written_pod(pod: Pod, source: Source | None) -> WrittenPod | None:
    """Return where the pod is written; None for no source: then it is written nowhere else."""
    if source is None:
        return None
    if isinstance(source, OtherObject):
        return of_workload(source)
    return WrittenPod("Pod", pod.namespace, pod.name, _decode(source))


def of_workload(obj: OtherObject) -> WrittenPod:
    """Return the template of a workload."""
    label, namespace, name = obj.key
    kind = label.partition(" ")[0]
    path = obj.path or _PATHS.get(kind, _PATH)
    content: Any = obj.content
    for key in path.split("/")[1:]:
        content = content[int(key)] if isinstance(content, list) else content[key]
    return WrittenPod(kind, namespace, name, content, path)
