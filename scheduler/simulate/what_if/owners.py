"""Fields of pods that evictions read, in addition to the owner: see `scheduler.api.owners`."""

from scheduler.api.pod import Pod


def has_local_data(pod: Pod) -> bool:
    """Return whether it has an emptyDir, which goes with it."""
    return any(getattr(volume, "empty_dir", None) is not None for volume in pod.spec.volumes or ())
