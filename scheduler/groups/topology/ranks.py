"""The rank of a pod in its group: neighbours talk most with each other, and are placed near each other."""

from typing import Final

from scheduler.api.pods.pod import Pod

KEYS: Final = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
"""Labels that indexed Jobs and StatefulSets give their pods."""

NO_RANK: Final = 2**31
"""The rank of a pod without one: after all others."""

_LONGEST: Final = 9


def rank_of(pod: Pod) -> int:
    """Return a pod's rank, 0 first."""
    for key in KEYS:
        text = pod.labels.get(key, "")
        if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
            return int(text)
    return NO_RANK
