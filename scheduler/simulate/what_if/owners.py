"""What evictions read of pods, besides whose they are: see `scheduler.api.owners`."""

from typing import Final

from scheduler.api.pod import Pod

NEEDS: Final = ("metadata.annotations[kubernetes.io/config.mirror]", "spec.volumes.emptyDir")
"""What evictions read of pods, besides what scheduling reads."""


def has_local_data(pod: Pod) -> bool:
    """Whether it has an emptyDir, which goes with it."""
    return any(getattr(volume, "empty_dir", None) is not None for volume in pod.spec.volumes or ())
