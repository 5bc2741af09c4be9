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

MAX_BYTES_PER_IMAGE: Final = 1000 * MEBIBYTE
"""The sum is capped at this times the number of containers and image volumes, and each image volume at this."""


@dataclass(frozen=True, slots=True)
class ImageLocality(fw.ScoreNodesPlugin, fw.SignPlugin):
    """Score: the size of the pod's images that the node has, each scaled by the share of nodes that have it.

    The scaling keeps pods from piling up on the few nodes that have an image.
    An image volume alone, a model for instance, does not reach the cap: it must not hide which node has the images.
    Rule: imagelocality/image_locality.go at v1.36.3; that image volumes count in the cap is of v1.37.2.
    """

    name: ClassVar[str] = "ImageLocality"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.IMAGES
    signs_spec: ClassVar[bool] = True

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The images of the pod's containers and of its volumes, with repeats."""
        return tuple(sorted(_of_containers(pod))), tuple(sorted(_of_volumes(pod)))

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return the score of each of `rows`, 0 to 100."""
        containers, volumes = Counter(_of_containers(pod)), Counter(_of_volumes(pod))
        most = MAX_BYTES_PER_IMAGE * (containers.total() + volumes.total())
        present = [
            (on_nodes, times, limit)
            for images, limit in ((containers, most), (volumes, MAX_BYTES_PER_IMAGE))
            for image, times in images.items()
            if (on_nodes := nodes.images.get(image)) is not None
        ]
        if not present:
            return None
        total = np.zeros(len(rows), np.int64)
        for on_nodes, times, limit in present:
            spread = len(on_nodes.rows) / nodes.count
            size = times * min(int(on_nodes.size * spread), limit)
            total += min(size, most) * held(on_nodes.rows, rows, nodes.size)
        total = np.clip(total, MIN_BYTES, most) - MIN_BYTES
        return quotient(fw.MAX_NODE_SCORE * total, most - MIN_BYTES)


def _of_containers(pod: fw.Pod) -> Iterator[str]:
    """Yield the image of each container, with its tag. Rule: image_locality.go (normalizedImageName)."""
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        yield _with_tag(container.image)


def _of_volumes(pod: fw.Pod) -> Iterator[str]:
    for volume in pod.spec.volumes or ():
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
