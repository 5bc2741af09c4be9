"""Changes to a pod, and the JSON Patch (RFC 6902) that makes them in the object that contains the pod."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from scheduler.api.decoding import convert
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import plain
from scheduler.framework.obstacles import Change

Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WrittenPod:
    """The object that defines a pod, as the user wrote it: without the API server's defaults."""

    kind: str
    """`Pod`, or the kind of the workload that has the pod's template."""

    namespace: str
    name: str
    content: Mapping[str, Any]
    """The part that has the pod's `spec`, as parsed JSON."""

    path: str = ""
    """A JSON pointer to that part: empty for a pod."""


def change(pod: Pod, changes: Iterable[Change], written: WrittenPod | None = None) -> tuple[Pod, list[Operation]]:
    """Return the pod with a changed spec, and the patch.

    Missing lists and objects on the path of a change are added first. `written`: the object that the patch is for; the
    pod itself by default. Raises ValueError for a path that does not exist in the pod or in that object, and Unreadable
    if the result is not a valid spec.
    """
    ordered = _ordered(changes)
    document: Any = {"spec": _mutable(msgspec.to_builtins(pod.spec, enc_hook=plain))}
    patch = _carried_out(document, ordered)
    if written is not None:
        own = _carried_out({"spec": _mutable(written.content.get("spec") or {})}, ordered)
        patch = [{**operation, "path": written.path + operation["path"]} for operation in own]
    spec = convert(document["spec"], type(pod.spec))
    return type(pod)(metadata=pod.metadata, spec=spec, status=pod.status), patch


def _ordered(changes: Iterable[Change]) -> list[Change]:
    """Put removals last, and the last items of lists first: paths count items as they are before all changes."""
    every = list(changes)
    removals = [each for each in every if each.op == "remove"]
    removals.sort(
        key=lambda each: [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in _parts(each)]
    )
    return [*(each for each in every if each.op != "remove"), *reversed(removals)]


def _parts(each: Change) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in each.path.split("/")[1:]]


def _carried_out(document: Any, changes: Iterable[Change]) -> list[Operation]:
    """Change the document and return the operations."""
    patch: list[Operation] = []
    for each in changes:
        parts = _parts(each)
        target = document
        for place, part in enumerate(parts[:-1]):
            path = "/".join(each.path.split("/")[: place + 2])
            if isinstance(target, dict) and target.get(part) is None and each.op != "remove":
                target[part] = [] if parts[place + 1] == "-" else {}
                patch.append({"op": "add", "path": path, "value": _mutable(target[part])})
            target = _member(target, part, each.path)
        op = _apply(target, parts[-1], each)
        patch.append({"op": op, "path": each.path} | ({} if op == "remove" else {"value": _mutable(each.value)}))
    return patch


def _apply(target: Any, key: str, each: Change) -> str:
    """Return the operation that is needed: a missing member is added instead of replaced."""
    if isinstance(target, list) and each.op == "add":
        target.insert(len(target) if key == "-" else int(key), _mutable(each.value))
        return "add"
    if isinstance(target, dict) and key not in target and each.op != "remove":
        target[key] = _mutable(each.value)
        return "add"
    _member(target, key, each.path)
    place: Any = int(key) if isinstance(target, list) else key
    if each.op == "remove":
        del target[place]
    else:
        target[place] = _mutable(each.value)
    return each.op


def _member(target: Any, key: str, path: str) -> Any:
    if isinstance(target, list) and key.isdigit() and int(key) < len(target):
        return target[int(key)]
    if isinstance(target, dict) and key in target:
        return target[key]
    raise ValueError(f"{path}: there is no {key}")


def _mutable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _mutable(item) for key, item in value.items()}
    return [_mutable(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
