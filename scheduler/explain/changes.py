"""A pod with a few changes, and the JSON Patch (RFC 6902) that makes them."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from scheduler.api.decoding import convert
from scheduler.api.pod import Pod
from scheduler.framework.obstacles import Change

Operation = dict[str, Any]


def change(pod: Pod, changes: Iterable[Change]) -> tuple[Pod, list[Operation]]:
    """Return a pod like this one, but for the changes to its spec, and the patch.

    Lists and objects on the way to a change that are not there are made first. Raises ValueError for a path that leads
    nowhere, and Unreadable for what cannot be in a spec.
    """
    document: Any = {"spec": _mutable(msgspec.to_builtins(pod.spec))}
    patch: list[Operation] = []
    for each in changes:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in each.path.split("/")[1:]]
        target = document
        for place, part in enumerate(parts[:-1]):
            path = "/".join(each.path.split("/")[: place + 2])
            if isinstance(target, dict) and target.get(part) is None:
                target[part] = [] if parts[place + 1] == "-" else {}
                patch.append({"op": "add", "path": path, "value": _mutable(target[part])})
            target = _member(target, part, each.path)
        _apply(target, parts[-1], each)
        patch.append(
            {"op": each.op, "path": each.path} | ({} if each.op == "remove" else {"value": _mutable(each.value)})
        )
    spec = convert(document["spec"], type(pod.spec))
    return type(pod)(metadata=pod.metadata, spec=spec, status=pod.status), patch


def _apply(target: Any, key: str, each: Change) -> None:
    if isinstance(target, list) and each.op == "add":
        target.insert(len(target) if key == "-" else int(key), _mutable(each.value))
        return
    _member(target, key, each.path)
    place: Any = int(key) if isinstance(target, list) else key
    if each.op == "remove":
        del target[place]
    else:
        target[place] = _mutable(each.value)


def _member(target: Any, key: str, path: str) -> Any:
    if isinstance(target, list) and key.isdigit() and int(key) < len(target):
        return target[int(key)]
    if isinstance(target, dict):
        return target.get(key)
    raise ValueError(f"{path}: there is no {key}")


def _mutable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mutable(item) for key, item in value.items()}
    return [_mutable(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
