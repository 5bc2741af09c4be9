"""Sequences of steps about one group, or two, in which groups are known to have failed; random steps go around them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

BLOCK, RACK, HOSTNAME = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
OF_GROUP: Final = "of the group"


@dataclass(frozen=True)
class Story:
    steps: tuple[tuple[str, str], ...]
    """Kind of step, and how it is done: "" as it is drawn."""
    group: Mapping[str, Any] = field(default_factory=dict)
    """What the group is like; all else is drawn."""
    settings: Mapping[str, Any] = field(default_factory=dict)


STORIES: Final = (
    Story(
        (("group", ""), ("lose node", OF_GROUP), ("delete member", OF_GROUP), ("wait", ""), ("return node", "")),
        {"required": RACK, "needs_license": False},
    ),
    Story(
        (("group", ""), ("kill node", OF_GROUP), ("kill node", OF_GROUP), ("wait", ""), ("return node", "")),
        {"required": RACK},
    ),
    Story((("group", ""), ("fill", ""), ("restart group", ""), ("succeed", ""))),
    Story((("fill", "replaced"), ("group", ""), ("group", ""), ("delete lone", "")), {"priority": 10}),
    Story(
        (("fill", "replaced"), ("group", ""), ("group", ""), ("delete lone", "")), {"priority": 10, "preferred": RACK}
    ),
    Story(
        (("lone", ""), ("lone", ""), ("group", ""), ("other group", ""), ("wait", ""), ("lone", ""), ("wait", "")),
        {"size": 3, "cpu": "largest", "priority": 0},
        {"reservation_seconds": 60},
    ),
    Story(
        (
            ("group", ""),
            ("other group", ""),
            ("fill", "replaced"),
            ("crowd", "replaced"),
            ("delete member", OF_GROUP),
            ("other delete member", OF_GROUP),
        ),
        {
            "size": 3,
            "priority": 0,
            "least": 0,
            "required": "",
            "needs_license": False,
            "seconds": 0,
            "announces": "",
            "is_replaced": True,
        },
        {"damaged_seconds": 120, "preempts": True},
    ),
    Story((("group", ""), ("new template", ""), ("delete member", OF_GROUP)), {"has_object": False, "least": 0}),
    Story((("fill", ""), ("group", ""), ("drop object", "")), {"has_object": True, "priority": 10}),
    Story((("fill", ""), ("group", ""), ("delete group", "")), {"priority": 10}),
    Story((("fill", ""), ("cordon", ""), ("cordon", ""), ("group", ""), ("uncordon", ""), ("delete lone", ""))),
    Story((("cordon", ""), ("cordon", ""), ("group", ""), ("fill", ""), ("uncordon", ""), ("delete lone", ""))),
    Story(
        (("group", ""), ("succeed", OF_GROUP), ("fail", OF_GROUP), ("delete member", OF_GROUP)), {"is_replaced": True}
    ),
    Story(
        (("fill", ""), ("group", ""), ("license", ""), ("wait", "")),
        {"needs_license": True},
        {"reservation_seconds": 60},
    ),
    Story((("group", ""), ("fill", ""), ("bindings", ""), ("delete member", OF_GROUP), ("delete lone", ""))),
    Story(
        (
            ("fill", ""),
            ("group", ""),
            ("wait", ""),
            ("delete lone", ""),
            ("lone", ""),
            ("delete group", ""),
            ("wait", ""),
        ),
        {"size": 2, "cpu": "largest"},
        {"reservation_seconds": 60},
    ),
)
