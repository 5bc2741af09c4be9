"""The number of pods of a group that have ended: those in its object's status when first seen, and those since."""

from scheduler.api.groups import coscheduling, volcano


class EndedMembers:
    __slots__ = ("failed", "succeeded", "uid")

    def __init__(self, shown: coscheduling.PodGroup | volcano.PodGroup) -> None:
        """`shown`: the group's object."""
        self.uid = shown.metadata.uid
        self.succeeded = shown.status.succeeded
        self.failed = shown.status.failed

    def start_again(self) -> None:
        self.succeeded = self.failed = 0
