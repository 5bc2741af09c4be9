"""Pods that start together with their workload although their template does not say so.

the namespace's label loadmaster.dev/gang  ──► the kinds of workloads that the profile watches
without it, `gangs.kinds` of the profile   ──► these
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from scheduler.api.groups.workloads import REPLICATED_JOB
from scheduler.api.pods.pod import Pod

OWNER: Final = "owner"
NONE: Final = "none"


class ProfileGangs(NamedTuple):
    """The kinds of workloads that a profile knows."""

    kinds: frozenset[str] = frozenset()
    """Those that are gangs anyway."""

    watched: frozenset[str] = frozenset()
    """Those of which gangs can be made."""


class GangDefaults:
    """Kept up to date by `GroupParts`."""

    def __init__(self) -> None:
        self._profiles: Mapping[str, ProfileGangs] = {}
        self._labels: dict[str, str] = {}
        """Namespace with the label → its value."""

    def use(self, profiles: Mapping[str, ProfileGangs]) -> bool:
        """Take over what profiles say; return whether it is something else."""
        before, self._profiles = self._profiles, dict(profiles)
        return before != self._profiles

    def label(self, namespace: str, value: str) -> bool:
        """Take over a namespace's label, empty for none; return whether it is another one."""
        before = self._labels.pop(namespace, "")
        if value:
            self._labels[namespace] = value
        return before != value

    def of(self, pod: Pod) -> tuple[str, Collection[str]]:
        """Return the value that counts for a pod, and the kinds of workloads for which it does; none for no value."""
        profile = self._profiles.get(pod.spec.scheduler_name)
        if profile is None or not (profile.kinds or self._labels):
            return "", ()
        label = self._labels.get(pod.metadata.namespace)
        if label is None:
            return OWNER, profile.kinds
        return label, profile.watched if label in (OWNER, REPLICATED_JOB) else ()
