"""Suggestions that contain another one, and so need not be made."""

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.api.quantities.quantity import parse_quantity
from scheduler.explain.documents import Suggestion


def with_smallest(found: Iterable[Suggestion], one: Suggestion) -> list[Suggestion]:
    """Return suggestions with one more, without those that contain another one."""
    known = list(found)
    if any(each.text == one.text or contains(one, each) for each in known):
        return known
    return [*(each for each in known if not contains(each, one)), one]


def contains(larger: Suggestion, smaller: Suggestion) -> bool:
    """Return whether all that one suggestion changes, or more of it, is in another one, for no more nodes."""
    if not (smaller.patch or smaller.command) or larger.object != smaller.object:
        return False
    if not larger.command and larger.count > smaller.count:
        return False
    commands = larger.command.split(" && ")
    if smaller.command and not all(each in commands for each in smaller.command.split(" && ")):
        return False
    return all(any(_is_as_large(other, each) for other in larger.patch) for each in smaller.patch)


def _is_as_large(operation: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether an operation of a JSON Patch does the same as another one, or lowers the same request further."""
    if operation == other:
        return True
    path = operation["path"]
    if path != other["path"] or operation["op"] == "remove" or not ("/requests/" in path or "/limits/" in path):
        return False
    try:
        return parse_quantity(operation["value"]) <= parse_quantity(other["value"])
    except (ValueError, TypeError, KeyError):
        return False
