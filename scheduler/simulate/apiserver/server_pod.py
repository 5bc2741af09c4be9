"""Pods with the fields that the simulated API server and evictions read, in addition to those that scheduling reads."""

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler.api.objects import (
    EphemeralVolumeSource,
    GroupAnnotations,
    PodMeta,
    PodSpec,
    Volume,
    Wire,
)
from scheduler.api.pods.pod import Pod, keep_raw_pod
from scheduler.simulate.files.objects import decoded


class ServerAnnotations(GroupAnnotations, frozen=True):
    """With the annotation of a static pod's image."""

    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")


class ServerMeta(PodMeta, frozen=True):
    group_annotations: ServerAnnotations | None = msgspec.field(default=None, name="annotations")


class ServerEphemeral(EphemeralVolumeSource, frozen=True):
    volume_claim_template: Mapping[str, Any] | None = None


class ServerVolume(Volume, frozen=True):
    ephemeral: ServerEphemeral | None = None
    empty_dir: Wire | None = None


class ServerSpec(PodSpec, frozen=True):
    active_deadline_seconds: int | None = None
    runtime_class_name: str | None = None
    volumes: tuple[ServerVolume, ...] | None = None


class ServerPod(Pod, frozen=True, eq=False):
    metadata: ServerMeta = ServerMeta()
    spec: ServerSpec = ServerSpec()


def server_pod(raw: msgspec.Raw, *, keeps_raw: bool) -> ServerPod:
    """Decode a pod. `keeps_raw`: for plugins that read it as JSON, too. Raises Unreadable."""
    pod = decoded(raw, ServerPod)
    if keeps_raw:
        keep_raw_pod(pod, raw)
    return pod
