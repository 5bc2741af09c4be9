"""Prefer nodes that already have the pod's images."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.shared.column_math import held, quotient
from scheduler import framework as fw

MEBIBYTE: Final = 1024 * 1024

MIN_BYTES: Final = 23 * MEBIBYTE
"""Images up to this size do not count."""

MAX_BYTES_PER_CONTAINER: Final = 1000 * MEBIBYTE
"""The sum is capped at this times the number of containers."""


@dataclass(frozen=True, slots=True)
class ImageLocality(fw.ScoreNodesPlugin, fw.SignPlugin):
    """Score: the size of the pod's images that the node has, each scaled by the share of nodes that have it.

    The scaling keeps pods from piling up on the few nodes that have an image.
    Rule: imagelocality/image_locality.go at v1.36.3.
    """

    name: ClassVar[str] = "ImageLocality"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.IMAGES
    signs_spec: ClassVar[bool] = True

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The pod's images, with repeats, and the number of its containers."""
        return tuple(sorted(_images(pod))), _containers(pod)

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return the score of each of `rows`, 0 to 100."""
        images = Counter(_images(pod))
        most = MAX_BYTES_PER_CONTAINER * _containers(pod)
        present = [
            (on_nodes, times) for image, times in images.items() if (on_nodes := nodes.images.get(image)) is not None
        ]
        if not present:
            return None
        total = np.zeros(len(rows), np.int64)
        for on_nodes, times in present:
            spread = len(on_nodes.rows) / nodes.count
            total += min(times * int(on_nodes.size * spread), most) * held(on_nodes.rows, rows, nodes.size)
        total = np.clip(total, MIN_BYTES, most) - MIN_BYTES
        return quotient(fw.MAX_NODE_SCORE * total, most - MIN_BYTES)


def _containers(pod: fw.Pod) -> int:
    """Count containers; image volumes add to the sum, but not to this number."""
    return len(pod.spec.init_containers or ()) + len(pod.spec.containers or ())


def _images(pod: fw.Pod) -> Iterator[str]:
    """Yield the image of each container and volume, with its tag. Rule: image_locality.go (normalizedImageName)."""
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        yield _with_tag(container.image)
    for volume in pod.spec.volumes or ():
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
