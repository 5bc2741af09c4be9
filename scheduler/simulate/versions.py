"""Several versions of an object: one in a file counts instead of the cluster's, and of two in files the later one."""

from collections.abc import Iterable, Sequence

from scheduler.simulate.other_objects import OtherObject


def newest(objects: Iterable[OtherObject]) -> tuple[Sequence[OtherObject], list[str]]:
    """Return each object once, and a note for each that another one in the files replaces."""
    found: dict[object, OtherObject] = {}
    notes = []
    for number, obj in enumerate(objects):
        before = found.get(obj.key)
        if not obj.metadata.get("name"):
            found[number] = obj
        elif before is None or (_is_stored(before) and not _is_stored(obj)):
            found[obj.key] = obj
        elif _is_stored(before) or not _is_stored(obj):
            found[obj.key] = obj
            notes.append(f"{obj.place}: {named(obj)} replaces that of {before.place}")
    return list(found.values()), notes


def named(obj: OtherObject) -> str:
    """Deployment shop/web."""
    label, _, name = obj.key
    namespace = obj.metadata.get("namespace")
    return f"{label.partition(' ')[0]} {f'{namespace}/' if namespace else ''}{name}"


def _is_stored(obj: OtherObject) -> bool:
    return bool(obj.metadata.get("resourceVersion"))
