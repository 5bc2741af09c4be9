"""A plugin's answer. `None` is success everywhere; a refusal is a value, a fault is an exception."""

from enum import IntEnum
from typing import Final

import msgspec

from scheduler.api.wording.text import MAX_MESSAGE, shortened


class Code(IntEnum):
    """kube-scheduler's status codes, with its numbers and names."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The name as metrics, messages and JSON spell it, such as `UnschedulableAndUnresolvable`."""
        return _LABELS[self]


_LABELS: Final = {code: "".join(map(str.capitalize, code.name.split("_"))) for code in Code}

REJECTIONS: Final = frozenset((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING))


class Status(msgspec.Struct, frozen=True, gc=False):
    """An answer other than success."""

    code: Code
    reasons: tuple[str, ...] = ()
    """The text in the FailedScheduling event, counted over the nodes."""

    plugin: str = ""
    """The plugin that answered; the framework fills it in."""

    @property
    def is_rejected(self) -> bool:
        """Whether the pod (here, or as a whole) cannot be scheduled for now."""
        return self.code in REJECTIONS

    @property
    def message(self) -> str:
        """All of the reasons, in MAX_MESSAGE characters."""
        return shortened(", ".join(self.reasons), MAX_MESSAGE)

    def by(self, plugin: str) -> "Status":
        """This answer, with the name of the plugin that gave it."""
        return self if self.plugin == plugin else msgspec.structs.replace(self, plugin=plugin)


def unschedulable(*reasons: str) -> Status:
    """Not here for now; taking other pods away (preemption) might help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Not here, and preemption would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def wait(*reasons: str) -> Status:
    """Not yet: it depends on what is still to be tried."""
    return Status(Code.WAIT, reasons)


def pending(*reasons: str) -> Status:
    """Not yet: something outside the scheduler has to finish first. The retry skips the backoff."""
    return Status(Code.PENDING, reasons)


SKIP: Final = Status(Code.SKIP)
"""From PreFilter or PreScore: this plugin has nothing to say about this pod. From Bind: let the next one bind."""
