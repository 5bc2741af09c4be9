"""How many pods of a group have ended: those of its object's status when it was first seen, and those since."""

from scheduler.api import coscheduling, volcano


class EndedMembers:
    __slots__ = ("failed", "succeeded", "uid")

    def __init__(self, shown: coscheduling.PodGroup | volcano.PodGroup) -> None:
        """`shown`: the group's object."""
        self.uid = shown.metadata.uid
        self.succeeded = shown.status.succeeded
        self.failed = shown.status.failed

    def start_again(self) -> None:
        self.succeeded = self.failed = 0
